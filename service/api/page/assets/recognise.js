// What was given, and the request that is made of it. Pure: texts and bytes in, requests out.
import { profileBody } from "./profile.js";
import { lineText, plainUrl, stacksOf } from "./text.js";

export const KINDS = {
  minidump: "Minidump",
  core: "ELF core file",
  apple: "Apple crash report",
  native: "Native stack",
  js: "JavaScript stack",
  jvm: "Java or Kotlin stack",
  mozilla: "Request to Mozilla's API",
  profile: "Firefox profile",
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

// ---- addresses and modules ----

const ID = /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?:-[0-9a-f]{1,8})?|[0-9a-f]{32,64})$/i;
const NUMBER = /^0x[0-9a-f]{1,16}$/i;
const OFFSET = /^\s*(?:#?\d+[:.]?\s+)?(?:0x[0-9a-f]+\s+)?\(?(\S+?)\s*\+\s*(0x[0-9a-f]+)\)?\s*$/i;
// Neither bytes of memory ("0x1000: fa fa") nor words about an address ("0x1000 is located ...").
const ADDRESS = /^\s*(?:#?\d+[:.]?\s+)?(0x[0-9a-f]{1,16})\b(?!:\s*[[(]?[0-9a-f]{2}\b)(?!\s+is\b)/i;

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

const SANITIZER = /^(.*?)#\d+ (0x[0-9a-f]+) .*\((\/[^()]+|[\w.-]+)\+(0x[0-9a-f]+)\)(?:\s*\(BuildId: ([0-9a-f]+)\))?\s*$/i;
const TOMBSTONE = /(?:^|\s)#\d+\s+pc\s+([0-9a-f]{4,16})\s+(\/\S+|\S+\.so)(?:.*\(BuildId: ([0-9a-f]+)\))?/i;

/** The module of that name, which is added when it is new. */
function moduleNamed(into, name, id) {
  const key = id ?? name;
  if (!into.byName.has(key)) {
    into.byName.set(key, into.modules.length);
    into.modules.push({ type: typeOf(name), code_file: name, debug_file: name.replace(/^.*[\\/]/, ""), ...(id && { code_id: id.toLowerCase(), debug_id: buildIdToDebugId(id) }) });
  }
  return into.byName.get(key);
}

/** What a line of a native stack asks for: sanitizers and Android write addresses of the file itself. */
function nativeFrame(line, into) {
  const sanitizer = SANITIZER.exec(line), tombstone = sanitizer ? null : TOMBSTONE.exec(line);
  if (sanitizer) return { sanitizer: sanitizer[1], address: sanitizer[2], instruction_addr: sanitizer[4], addr_mode: `file:${moduleNamed(into, sanitizer[3], sanitizer[5])}` };
  if (tombstone) return { instruction_addr: `0x${tombstone[1]}`, addr_mode: `file:${moduleNamed(into, tombstone[2], tombstone[3])}` };
  const offset = OFFSET.exec(line), address = ADDRESS.exec(line);
  if (offset && !NUMBER.test(offset[1])) return { instruction_addr: offset[2], addr_mode: `rel:${moduleNamed(into, offset[1].replace(/^.*[(\s]/, ""))}` };
  return address && { instruction_addr: address[1], told: toldBy(line) };
}

/** What a numbered frame says itself: "#1 0x1000 in f (x=1) at a.c:4" of gdb, "in f /a.c:4:1" of sanitizers, "f" of eu-stack. */
function toldBy(line) {
  const text = /^\D*#\d+\s+0x[0-9a-f]+\s+(?:in\s+)?(.*?)\s*$/i.exec(line)?.[1] ?? "";
  const place = /(?:^|\s)(?:at\s+)?([^\s():]+):(\d+)(?::\d+)?$/.exec(text);
  const name = text.slice(0, place?.index ?? text.length).replace(/ from \S+$/, "").replace(/\s\(.*\)$/, "").trim();
  if (!name || /^(?:\?\?|<unknown.*|[-+(]?\s*(?:0x|\d|\/).*)/.test(name)) return {};
  return { function: name, ...(place && { filename: place[1].replace(/^.*[\\/]/, ""), abs_path: place[1], lineno: +place[2] }) };
}

const isNative = (line) => SANITIZER.test(line) || TOMBSTONE.test(line) || OFFSET.test(line) || ADDRESS.test(line) || !!moduleLine(line);

/** Lines of addresses, with their modules in lines of a table. */
function fromAddresses(given) {
  const lines = given.match(/[^\n]*\n|[^\n]+$/g) ?? [], into = { modules: [], byName: new Map() };
  const tables = lines.map(moduleLine);
  for (const module of tables) {
    if (!module) continue;
    into.byName.set(module.code_file, into.modules.length);
    into.byName.set(module.debug_file, into.modules.length);
    into.modules.push(module);
  }
  const text = stacksOf(lines.map((line, i) => {
    const frame = tables[i] ? null : nativeFrame(line, into);
    return frame ? { ...frame, text: line } : line;
  }));
  const stacktraces = text.stacks.map((stack) => {
    const sent = stack.lines.filter((line) => line.frame);
    sent.forEach((line, i) => { line.sent = i; });
    if (stack.title && moduleLine(lineText(stack.title))) stack.lines.unshift(stack.title), stack.title = undefined;
    return { frames: sent.map(({ frame }) => ({ instruction_addr: frame.instruction_addr, addr_mode: frame.addr_mode, ...frame.told })) };
  });
  return { body: { stacktraces, modules: into.modules }, text };
}

// ---- recognising ----

function parse(text) {
  const start = /^\s*[{[]/.test(text);
  if (!start) return null;
  try { return JSON.parse(text); } catch { return null; }
}

function eventStacks(event) {
  const values = event.exception?.values ?? event.exception;
  const exceptions = list(values).filter((v) => Array.isArray(v?.stacktrace?.frames));
  const threads = list(event.threads?.values).filter((v) => Array.isArray(v?.stacktrace?.frames));
  return exceptions.length ? exceptions : threads;
}

function kindOfJson(json) {
  if (!json || typeof json !== "object") return null;
  const stacks = [json.stacktraces, json.threads].find(Array.isArray);
  const isEvent = !stacks;
  const frames = (stacks ?? eventStacks(json).map((v) => v.stacktrace)).flatMap((s) => list(s?.frames));
  const types = list(json.modules ?? json.debug_meta?.images).map((m) => m?.type);
  const has = (...keys) => keys.some((key) => key in json), mappings = types.includes("proguard") || types.includes("source");
  if (isEvent && /^(java|android)$/.test(json.platform)) return "jvm";
  if (isEvent && /^(javascript|node|nodejs)$/.test(json.platform)) return "js";
  if (isEvent && /^(objc|cocoa|swift|native|c|csharp)$/.test(json.platform)) return "native";
  if (types.includes("sourcemap") || (has("source") && !mappings)) return "js";
  if (mappings || has("exceptions", "classes", "release_package")) return "jvm";
  if (frames.some((f) => f && "instruction_addr" in f)) return "native";
  if (frames.some((f) => f && "abs_path" in f && "lineno" in f && !("index" in f))) return "js";
  if (frames.some((f) => f && "module" in f && "function" in f)) return "jvm";
  return stacks ? "native" : null;
}

const WORDS = { minidump: "minidump", core: "core", apple: "apple", jsstack: "js", trace: "jvm", mozilla: "mozilla", profile: "profile" };

/** The kind of a text of which the service said `read`. */
export function kindOfText(text, read) {
  if (WORDS[read.kind]) return WORDS[read.kind];
  if (read.kind) return kindOfJson(parse(text));
  const is = read.plain ? (line) => SANITIZER.test(line) || TOMBSTONE.test(line) : isNative;
  return text.split(/\r?\n/, 2000).some(is) ? "native" : null;
}

/** What the service is to read a text as when somebody has chosen its kind; null: as it did. */
export const readAs = (kind, read) => (kind === "js" && read.kind !== "jsstack" ? "jsstack" : kind === "jvm" && read.kind !== "trace" ? "trace" : null);

/** How a file is packed, as Content-Encoding has it; undefined: it is not. */
export function packingOf(head) {
  const four = String.fromCharCode(...head.subarray(0, 4));
  return four.startsWith("\x1f\x8b") ? "gzip" : four === "\x28\xb5\x2f\xfd" ? "zstd" : undefined;
}

export const isMinidump = (head) => ["MDMP", "PMDM"].includes(String.fromCharCode(...head.subarray(0, 4)));

const MAGICS = ["MSCF", "\x7fELF", "MZ", "Microsoft C/C++ MSF", "MODULE ", "\0asm", "PK\x03\x04", "\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe", "\xfe\xed\xfa", "\xca\xfe\xba\xbe"];

/** Bytes that are no text; in UTF-16 one of the first two is 0. */
export const isBinary = (head) => head.includes(0) && head[0] !== 0 && head[1] !== 0 && head[0] < 0xfe;

const isCore = (head) => head[0] === 0x7f && head[1] === 0x45 && head[16] + head[17] === 4;

/** Whether a file, by its first bytes and name, is one with symbols, a script, a source map or a mapping, and no crash. */
export function isArtifact(head, name) {
  const text = String.fromCharCode(...head);
  return (MAGICS.some((magic) => text.startsWith(magic)) && !isCore(head)) || /\.(map|[cm]?js|jsbundle|hbc|bundle|sym|pdb)$|(mapping|proguard).*\.txt$/i.test(name);
}

/** Bytes as the text that they are. */
export function decode(bytes) {
  const two = String.fromCharCode(...bytes.subarray(0, 2));
  const wide = two === "\xff\xfe" || (bytes[1] === 0 && bytes[0]) ? "utf-16le" : two === "\xfe\xff" || (bytes[0] === 0 && bytes[1]) ? "utf-16be" : "utf-8";
  return new TextDecoder(wide).decode(bytes);
}

// ---- requests ----

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

/** Frames that name no script are of the only one that there is. */
function jsText(read, artifacts) {
  const text = stacksOf(read.parts), scripts = artifacts.filter((file) => /\.[cm]?jsx?$|bundle$/.test(file.name));
  const only = scripts.length === 1 ? scripts[0].name : artifacts.length === 1 ? artifacts[0].name.replace(/\.map$/, "") : "";
  const stacktraces = text.stacks.map((stack) => {
    const frames = [];
    for (const line of stack.lines) {
      const f = line.frame, url = f && (plainUrl(f.url) || only);
      if (!url) continue;
      line.sent = frames.length;
      frames.push({ abs_path: url, lineno: f.line, colno: f.column, function: f.function || undefined });
    }
    return { frames };
  });
  return { body: { stacktraces, options: { frame_order: "callee_first" } }, text };
}

function jsBody({ text, read }, artifacts) {
  const json = parse(text);
  if (json?.stacktraces) return json;
  if (!json) return jsText(read, artifacts);
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

function jvmText(read) {
  const text = stacksOf(read.parts), classes = new Set();
  let index = 0;
  for (const line of text.all) for (const piece of line.pieces ?? []) if (piece.class) classes.add(piece.class);
  const stacktraces = text.stacks.map((stack) => {
    const thrown = stack.title?.pieces.find((p) => p.class?.includes("."))?.class;
    const frames = stack.lines.filter((line) => line.frame).map((line) => {
      const f = line.frame, nowhere = f.file === "Native Method" || f.file === "Unknown Source";
      return { module: f.class, function: f.method, filename: nowhere || !f.file ? undefined : f.file, lineno: f.line, index: line.sent = index++ };
    });
    return { exception: thrown && splitException(thrown), frames };
  });
  return { body: { stacktraces, exceptions: stacktraces.map((s) => s.exception).filter(Boolean), classes: [...classes], options: { frame_order: "callee_first" } }, text };
}

function jvmBody({ text, read }) {
  const json = parse(text);
  if (json?.stacktraces) return json;
  if (!json) return jvmText(read);
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

/** The request for a file with names in it, of what comes back so. */
export function namedRequest(input, where) {
  const fields = where.sources ? { options: JSON.stringify({ configured_sources: true }), sources: JSON.stringify(where.sources) } : {};
  return { path: "/page/named", part: "file", file: input.text === null ? input.file : new File([input.text], "given"), fields, artifacts: where.artifacts };
}

const unwrap = (made) => (made.body ? made : { body: made });

/** The request for what was given. `where`: what the page's fields say: sources (or none), look-up, artifacts. */
export function makeRequest(kind, input, where) {
  // What is ticked is asked besides what the service is configured with.
  const sources = where.sources, options = { dif_candidates: true, ...(sources && { configured_sources: true }) };
  const door = { minidump: ["/minidump", "upload_file_minidump"], core: ["/core", "upload_file_core"], apple: ["/applecrashreport", "apple_crash_report"] }[kind];
  if (door) {
    const fields = { options: JSON.stringify({ ...options, ...(kind === "minidump" && { all_frames: true }) }) };
    if (sources) fields.sources = JSON.stringify(sources);
    const file = input.file ?? new File([input.text], "crash.txt");
    return { path: door[0], part: door[1], file, fields, artifacts: where.artifacts };
  }
  if (kind === "mozilla") {
    const json = parse(input.text);
    return { path: json?.version === 4 ? "/symbolicate/v4" : "/symbolicate/v5", text: input.text, body: json };
  }
  const { body, titles, text, profile } = unwrap(kind === "profile" ? profileBody(input.text) : kind === "native" ? nativeBody(input.text) : kind === "js" ? jsBody(input, where.artifacts) : jvmBody(input));
  if (kind === "native" || kind === "profile") {
    body.options = { ...body.options, ...options };
    if (sources) body.sources = sources;
    return { path: "/symbolicate", body, titles, lines: text, profile, artifacts: where.artifacts.length ? where.artifacts : undefined };
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
  if (kind === "jvm") {
    body.options = { ...body.options, configured_sources: true };
    if (sources) body.sources = (body.sources ?? []).concat(sources);
  }
  const request = { path, body, titles, lines: text };
  // Without a source of its own a request is a form, where files may come with it and sources may be left out.
  if (where.artifacts?.length || !(body.source ?? body.sources)) request.artifacts = where.artifacts ?? [];
  return request;
}
