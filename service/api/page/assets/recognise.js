// What was given, and the request that is made of it. Pure: texts and bytes in, requests out.
import { profileBody } from "./profile.js";

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

const WORDS = { minidump: "minidump", core: "core", apple: "apple", jsstack: "js", trace: "jvm", text: "native", mozilla: "mozilla", profile: "profile" };

/** The kind of a text of which the service said `read`. */
export const kindOfText = (text, read) => WORDS[read.kind] ?? (read.kind ? kindOfJson(parse(text)) : null);

/** How a file is packed, as Content-Encoding has it; undefined: it is not. */
export function packingOf(head) {
  const four = String.fromCharCode(...head.subarray(0, 4));
  return four.startsWith("\x1f\x8b") ? "gzip" : four === "\x28\xb5\x2f\xfd" ? "zstd" : undefined;
}

/** Whether a file that is not looked into has the name of a core file: "core.711.zst". */
export const isNamedCore = (name) => /(^|[.-])core([.-]|$)/i.test(name);

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

function nativeBody(json) {
  if (json.stacktraces || Array.isArray(json.threads)) return { body: json };
  const stacks = eventStacks(json);
  return { body: {
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
  } };
}

function jsBody(json) {
  if (json.stacktraces) return { body: json };
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

function jvmBody(json) {
  if (json.stacktraces) return { body: json };
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

/** Debug ids as they are typed in: a line each, with the script in front of those of source maps. */
function idModules(kind, where) {
  const ids = (where.debugIds || "").split(/\n/).map((line) => line.trim().split(/\s+/)).filter((words) => words[0]);
  return ids.map((w) => kind === "js" ? { type: "sourcemap", code_file: w.length > 1 ? w[0] : "", debug_id: w.at(-1) } : { type: "proguard", uuid: w.at(-1) });
}

const sentrySource = (where) => ({ id: "sentry", url: where.sentryUrl, token: where.sentryToken || "" });

/** The request for a text with stacks, whatever they are; a kind that somebody has chosen is the only one that is read. */
function textRequest(kind, text, where, options, chosen) {
  const sources = [...(kind === "jvm" && where.sentryUrl ? [{ ...sentrySource(where), type: "sentry" }] : []), ...(where.sources ?? [])];
  const modules = kind === "native" ? [] : idModules(kind, where), fields = { options: JSON.stringify({ ...options, ...(sources.length && { configured_sources: true }) }) };
  if (sources.length) fields.sources = JSON.stringify(sources);
  if (modules.length) fields.modules = JSON.stringify(modules);
  if (kind === "js" && where.release) fields.release = where.release;
  if (kind === "js" && where.sentryUrl) fields.source = JSON.stringify(sentrySource(where));
  return { path: "/symbolicate-text", query: chosen && kind !== "native" ? `format=${kind}` : "", part: "text", file: new File([text], "given"), fields, artifacts: where.artifacts, accept: "application/json", isText: true };
}

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
  const json = kind === "profile" ? null : parse(input.text);
  if (!json && kind !== "profile") return textRequest(kind, input.text, where, options, input.chosen);
  const { body, titles, profile } = kind === "profile" ? profileBody(input.text) : kind === "native" ? nativeBody(json) : kind === "js" ? jsBody(json) : jvmBody(json);
  if (kind === "native" || kind === "profile") {
    body.options = { ...body.options, ...options };
    if (sources) body.sources = sources;
    return { path: "/symbolicate", body, titles, profile, artifacts: where.artifacts.length ? where.artifacts : undefined };
  }
  const path = kind === "js" ? "/symbolicate-js" : "/symbolicate-jvm";
  const modules = idModules(kind, where);
  if (where.release && kind === "js") body.release = where.release;
  if (modules.length) body.modules = list(body.modules).concat(modules);
  if (where.sentryUrl && kind === "js") body.source = sentrySource(where);
  if (where.sentryUrl && kind === "jvm") body.sources = [{ ...sentrySource(where), type: "sentry" }];
  if (kind === "jvm") {
    body.options = { ...body.options, configured_sources: true };
    if (sources) body.sources = (body.sources ?? []).concat(sources);
  }
  const request = { path, body, titles };
  // Without a source of its own a request is a form, where files may come with it and sources may be left out.
  if (where.artifacts?.length || !(body.source ?? body.sources)) request.artifacts = where.artifacts ?? [];
  return request;
}
