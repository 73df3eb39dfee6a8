// What was given, and the request that is made of it. Pure: texts and bytes in, requests out.

export const KINDS = {
  minidump: "Minidump",
  apple: "Apple crash report",
  native: "Native stack",
  js: "JavaScript stack",
  jvm: "Java or Kotlin stack",
  mozilla: "Request to Mozilla's API",
};

export const PRESETS = [
  { id: "microsoft", label: "Microsoft", url: "https://msdl.microsoft.com/download/symbols/", layout: "ssqp", filetypes: ["pe", "pdb", "portablepdb"] },
  { id: "electron", label: "Electron", url: "https://symbols.electronjs.org/", layout: "native", filetypes: ["pdb", "breakpad", "sourcebundle"] },
  { id: "ubuntu", label: "Ubuntu", url: "https://debuginfod.ubuntu.com/buildid/", layout: "debuginfod", filetypes: ["elf_code", "elf_debug"] },
  { id: "mozilla", label: "Mozilla", url: "https://symbols.mozilla.org/", layout: "native", filetypes: ["breakpad"] },
];

export const presetSource = (p) => ({
  id: p.id, type: "http", url: p.url, layout: { type: p.layout }, filters: { filetypes: p.filetypes }, is_public: true,
});

const list = (value) => (Array.isArray(value) ? value : []);

// ---- lines of stacks as text ----

const FILE_PLACE = /^(.*?):(\d+)(?::(\d+))?$/;
const JS_AT = /^\s*at (?:(?:async )?(.*?) \()?((?:[a-z][\w+.-]*:\/\/|\/|[A-Za-z]:[\\/]|node:|[\w.-]+\.[cm]?[jt]sx?:)[^()]*?)\)?\s*$/;
const JS_FIREFOX = /^\s*([^@\s]*)@([a-z][\w+.-]*:\/\/\S+?|\/\S+?):(\d+)(?::(\d+))?\s*$/;
const JVM_AT = /^\s*at (?:[\w.$-]+\/)?(?:[\w.@-]+\/)?([\w$.<>]+)\.([\w$<>-]+)\(([^()]*)\)\s*(?:~?\[.*\])?$/;
const JVM_HEAD = /^(?:.*?\bException in thread "[^"]*" |\s*Caused by: |\s*Suppressed: )?((?:[\w$]+\.)*[\w$]+)(?:: (.*))?$/;

function jsFrame(line) {
  const firefox = JS_FIREFOX.exec(line);
  if (firefox) return place(firefox[1], `${firefox[2]}:${firefox[3]}${firefox[4] ? ":" + firefox[4] : ""}`);
  const at = JS_AT.exec(line);
  return at && place(at[1], at[2]);
}

function place(name, text) {
  const found = FILE_PLACE.exec(text.replace(/\/?:(\d+:\d+)$/, ":$1"));
  const parts = found && /^(.*):(\d+)$/.exec(found[1]) && !found[3] ? null : found;
  if (!parts || !parts[1]) return null;
  const frame = { abs_path: parts[1], lineno: +parts[2] };
  if (name) frame.function = name;
  if (parts[3]) frame.colno = +parts[3];
  return frame;
}

function jvmFrame(line) {
  const found = JVM_AT.exec(line);
  if (!found) return null;
  const frame = { module: found[1], function: found[2] };
  const where = /^(.*?)(?::(\d+))?$/.exec(found[3]);
  if (where[1] && where[1] !== "Native Method" && where[1] !== "Unknown Source") frame.filename = where[1];
  if (where[2]) frame.lineno = +where[2];
  return frame;
}

// ---- addresses and modules ----

const ID = /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?:-[0-9a-f]{1,8})?|[0-9a-f]{32,64})$/i;
const NUMBER = /^0x[0-9a-f]{1,16}$/i;
const OFFSET = /^\s*(?:#?\d+[:.]?\s+)?(?:0x[0-9a-f]+\s+)?\(?(\S+?)\s*\+\s*(0x[0-9a-f]+)\)?\s*$/i;
const ADDRESS = /^\s*(?:#?\d+[:.]?\s+)?(0x[0-9a-f]{1,16})\b/i;

function typeOf(name, id) {
  if (/\.(dll|exe|pdb|sys)$/i.test(name)) return "pe";
  if (/\.dylib$|\.framework|\.dSYM/i.test(name)) return "macho";
  if (/\.wasm$/i.test(name)) return "wasm";
  return /-/.test(id || "") && !/\.so/.test(name) ? "macho" : "elf";
}

/** A line of a module table: a name, an id and a base, in any order; a size may follow the base. */
function moduleLine(line) {
  const words = line.trim().split(/[\s,|]+/);
  const id = words.find((w) => ID.test(w) && !NUMBER.test(w));
  const numbers = words.filter((w) => NUMBER.test(w));
  const name = words.find((w) => w !== id && !NUMBER.test(w) && /[a-z_]/i.test(w));
  if (!id || !name || !numbers.length) return null;
  const module = { type: typeOf(name, id), code_file: name, debug_file: name.replace(/^.*[\\/]/, ""), image_addr: numbers[0] };
  if (module.type === "elf") {
    if (!/-/.test(id)) module.code_id = id.toLowerCase();
    module.debug_id = /-/.test(id) ? id : buildIdToDebugId(id);
  } else {
    module.debug_id = id;
  }
  if (numbers[1]) {
    const base = BigInt(numbers[0]), other = BigInt(numbers[1]);
    module.image_size = Number(other > base ? other - base : other);
  }
  return module;
}

export function buildIdToDebugId(id) {
  const b = id.toLowerCase().padEnd(32, "0").match(/../g);
  const text = [b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], ...b.slice(8, 16)].join("");
  return text.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

function fromAddresses(text) {
  const modules = [], frames = [], byName = new Map();
  const lines = text.split(/\r?\n/);
  for (const line of lines) {
    const module = moduleLine(line);
    if (!module) continue;
    byName.set(module.code_file, modules.length);
    byName.set(module.debug_file, modules.length);
    modules.push(module);
  }
  for (const line of lines) {
    if (moduleLine(line)) continue;
    const offset = OFFSET.exec(line), address = ADDRESS.exec(line);
    if (offset && !NUMBER.test(offset[1])) {
      const name = offset[1].replace(/^.*[(\s]/, "");
      if (!byName.has(name)) {
        byName.set(name, modules.length);
        modules.push({ type: typeOf(name), code_file: name, debug_file: name });
      }
      frames.push({ instruction_addr: offset[2], addr_mode: `rel:${byName.get(name)}` });
    } else if (address) {
      frames.push({ instruction_addr: address[1] });
    }
  }
  return { stacktraces: [{ frames }], modules };
}

// ---- recognising ----

function parse(text) {
  const start = /^\s*[{[]/.test(text);
  if (!start) return null;
  try { return JSON.parse(text); } catch { return null; }
}

function isIps(text) {
  const first = parse(text.slice(0, text.indexOf("\n") + 1 || text.length));
  return !!first && ("bug_type" in first || "incident_id" in first || "incident" in first);
}

function eventStacks(event) {
  const values = event.exception?.values ?? event.exception;
  const exceptions = list(values).filter((v) => Array.isArray(v?.stacktrace?.frames));
  const threads = list(event.threads?.values).filter((v) => Array.isArray(v?.stacktrace?.frames));
  return exceptions.length ? exceptions : threads;
}

function kindOfJson(json) {
  if (!json || typeof json !== "object") return null;
  if ("jobs" in json || "memoryMap" in json) return "mozilla";
  if (json.bug_type || json.incident || json.procName) return "apple";
  const stacks = [json.stacktraces, json.threads].find(Array.isArray);
  const isEvent = !stacks;
  const frames = (stacks ?? eventStacks(json).map((v) => v.stacktrace)).flatMap((s) => list(s?.frames));
  const types = list(json.modules ?? json.debug_meta?.images).map((m) => m?.type);
  const platform = frames.find((f) => f?.platform)?.platform ?? json.platform;
  if (types.includes("proguard") || (isEvent && /^(java|android|kotlin)$/.test(platform))) return "jvm";
  if (types.includes("sourcemap") || (isEvent && /^(javascript|node)$/.test(platform))) return "js";
  if (frames.some((f) => f && "instruction_addr" in f)) return "native";
  if (frames.some((f) => f && "abs_path" in f && "lineno" in f && !("index" in f))) return "js";
  if (frames.some((f) => f && "module" in f && "function" in f)) return "jvm";
  return stacks ? "native" : null;
}

export function kindOfText(text) {
  const json = parse(text);
  if (json) return kindOfJson(json);
  if (/^\s*\{/.test(text) && isIps(text)) return "apple";
  if (text.includes("-----BEGIN BREAKPAD MICRODUMP-----")) return "minidump";
  if (/^(Incident Identifier:|Process: +\S.*\[\d+\]|Binary Images:|Analysis of sampling |Heaviest stack for the )/m.test(text)) return "apple";
  const lines = text.split(/\r?\n/, 2000);
  const js = lines.filter((line) => jsFrame(line)).length;
  const jvm = lines.filter((line) => jvmFrame(line)).length;
  if (jvm > js || (jvm && !lines.some((line) => jsFrame(line)?.colno))) return "jvm";
  if (js) return "js";
  return lines.some((line) => OFFSET.test(line) || moduleLine(line) || ADDRESS.test(line)) ? "native" : null;
}

export function kindOfBytes(head) {
  const four = String.fromCharCode(...head.subarray(0, 4));
  if (four === "MDMP" || four === "PMDM") return "minidump";
  if ((head[0] === 0x1f && head[1] === 0x8b) || four === "\x28\xb5\x2f\xfd") return "minidump"; // packed: crash files may be
  return null;
}

// ---- requests ----

const form = (path, part, file, fields) => ({ path, part, file, fields });

function nativeBody(text) {
  const json = parse(text);
  if (!json) return fromAddresses(text);
  if (json.stacktraces || Array.isArray(json.threads)) return json;
  const stacks = eventStacks(json);
  return {
    stacktraces: stacks.map((v) => ({
      thread_id: Number.isInteger(v.thread_id ?? v.id) ? v.thread_id ?? v.id : undefined,
      thread_name: v.name ?? v.type ?? undefined,
      is_requesting: v.crashed ?? undefined,
      registers: v.stacktrace.registers ?? undefined,
      frames: v.stacktrace.frames.slice().reverse().filter((f) => f?.instruction_addr)
        .map((f) => ({ instruction_addr: f.instruction_addr, package: f.package, trust: f.trust, platform: f.platform })),
    })),
    modules: list(json.debug_meta?.images).filter((m) => m && m.type !== "proguard" && m.type !== "sourcemap")
      .map((m) => ({ type: m.type === "symbolic" ? "unknown" : m.type, debug_id: m.debug_id, code_id: m.code_id, debug_file: m.debug_file,
        code_file: m.code_file, image_addr: m.image_addr, image_size: m.image_size })),
  };
}

function jsBody(text) {
  const json = parse(text);
  if (json?.stacktraces) return json;
  if (!json) {
    const frames = text.split(/\r?\n/).map(jsFrame).filter(Boolean);
    const head = text.split(/\r?\n/).find((line) => line.trim() && !jsFrame(line));
    return { body: { stacktraces: [{ frames }], options: { frame_order: "callee_first" } }, titles: [head?.trim()] };
  }
  const stacks = eventStacks(json);
  const frame = (f) => ({ function: f.function, filename: f.filename, module: f.module, abs_path: f.abs_path ?? f.filename, lineno: f.lineno,
    colno: f.colno ?? undefined, platform: f.platform });
  return {
    body: {
      stacktraces: stacks.map((v) => ({ frames: v.stacktrace.frames.filter((f) => (f?.abs_path ?? f?.filename) && f.lineno).map(frame) })),
      modules: list(json.debug_meta?.images).filter((m) => m?.type === "sourcemap")
        .map((m) => ({ type: "sourcemap", code_file: m.code_file, debug_id: m.debug_id })),
      release: json.release ?? undefined, dist: json.dist ?? undefined,
    },
    titles: stacks.map((v) => [v.type, v.value].filter(Boolean).join(": ")),
  };
}

function splitException(text) {
  const dot = text.lastIndexOf(".");
  return { module: dot < 0 ? "" : text.slice(0, dot), type: text.slice(dot + 1) };
}

function jvmText(text) {
  const stacktraces = [], titles = [];
  let frames = null, exception = null, message, index = 0;
  for (const line of text.split(/\r?\n/)) {
    const frame = jvmFrame(line);
    if (frame) {
      if (!frames) {
        frames = [];
        stacktraces.push(exception ? { exception, frames } : { frames });
        titles.push(message);
      }
      frames.push({ ...frame, index: index++ });
    } else if (JVM_HEAD.test(line) && line.trim()) {
      const head = JVM_HEAD.exec(line);
      exception = splitException(head[1]);
      message = head[2];
      frames = null;
    }
  }
  return { body: { stacktraces, exceptions: stacktraces.map((s) => s.exception).filter(Boolean), options: { frame_order: "callee_first" } }, titles };
}

function jvmBody(text) {
  const json = parse(text);
  if (json?.stacktraces) return json;
  if (!json) return jvmText(text);
  let index = 0;
  const stacks = eventStacks(json);
  const traces = stacks.map((v) => ({
    exception: v.type ? { type: v.type, module: v.module ?? "" } : undefined,
    frames: v.stacktrace.frames.filter((f) => f?.function && f.module).map((f) => ({ function: f.function, module: f.module, filename: f.filename ?? undefined,
      abs_path: f.abs_path ?? undefined, lineno: f.lineno >= 0 ? f.lineno : undefined, in_app: f.in_app ?? undefined, index: index++ })),
  }));
  return {
    body: {
      stacktraces: traces,
      modules: list(json.debug_meta?.images).filter((m) => m?.type === "proguard").map((m) => ({ type: "proguard", uuid: m.uuid ?? m.debug_id })),
    },
    titles: stacks.map((v) => v.value),
  };
}

const unwrap = (made) => (made.body ? made : { body: made, titles: [] });

/** The request for what was given. `where`: what the page's fields say: sources (or none), look-up, artifacts. */
export function makeRequest(kind, input, where) {
  const options = { dif_candidates: true };
  const sources = where.sources;
  if (kind === "minidump" || kind === "apple") {
    const fields = { options: JSON.stringify(options) };
    if (sources) fields.sources = JSON.stringify(sources);
    const file = input.file ?? new File([input.text], "crash.txt");
    return form(kind === "minidump" ? "/minidump" : "/applecrashreport", kind === "minidump" ? "upload_file_minidump" : "apple_crash_report", file, fields);
  }
  if (kind === "mozilla") {
    const json = parse(input.text);
    return { path: json?.version === 4 ? "/symbolicate/v4" : "/symbolicate/v5", text: input.text, body: json };
  }
  const { body, titles } = unwrap(kind === "native" ? nativeBody(input.text) : kind === "js" ? jsBody(input.text) : jvmBody(input.text));
  if (kind === "native") {
    body.options = { ...body.options, ...options };
    if (sources) body.sources = sources;
    return { path: "/symbolicate", body, titles };
  }
  const path = kind === "js" ? "/symbolicate-js" : "/symbolicate-jvm";
  const ids = (where.debugIds || "").split(/\n/).map((line) => line.trim().split(/\s+/)).filter((words) => words[0]);
  if (where.release && kind === "js") body.release = where.release;
  if (ids.length) {
    body.modules = list(body.modules).concat(ids.map((w) => kind === "js"
      ? { type: "sourcemap", code_file: w.length > 1 ? w[0] : "", debug_id: w.at(-1) } : { type: "proguard", uuid: w.at(-1) }));
  }
  if (where.sentryUrl && kind === "js") body.source = { id: "sentry", url: where.sentryUrl, token: where.sentryToken || "" };
  if (where.sentryUrl && kind === "jvm") body.sources = [{ id: "sentry", type: "sentry", url: where.sentryUrl, token: where.sentryToken || "" }];
  if (kind === "jvm" && sources) body.sources = sources;
  const request = { path, body, titles };
  // Without a source of its own a request is a form, where files may come with it and sources may be left out.
  if (where.artifacts?.length || !(body.source ?? body.sources)) request.artifacts = where.artifacts ?? [];
  return request;
}
