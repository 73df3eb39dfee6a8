// Answers of the APIs as one model: threads of frames, innermost first, each with what is known and why something is not. Of stacks
// as text a thread also has the lines that are no frames, as {note}.

const STATUS = {
  missing: "no symbols", malformed: "damaged symbols", missing_symbol: "no symbol at this address", unknown_image: "not in a module",
};

export const MODULE_STATUS = {
  found: "found", unused: "not needed", missing: "not found", malformed: "damaged", fetching_failed: "download failed",
  timeout: "download timed out", unsupported: "unsupported file type", other: "internal error",
};

const big = (text) => { try { return BigInt(text); } catch { return 0n; } };
const base = (path) => (path ? String(path).replace(/^.*[\\/]/, "") : "");

/** The module that an address is in; modules are sorted by their address once. */
function moduleFinder(modules) {
  const sorted = modules.map((m, i) => [big(m.image_addr), m, i]).filter((row) => row[0] > 0n).sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
  return (frame) => {
    const relative = /^(?:rel|file):(\d+)$/.exec(frame.addr_mode ?? "");
    if (relative) return { module: modules[+relative[1]], offset: big(frame.instruction_addr) };
    const address = big(frame.instruction_addr);
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle][0] <= address) low = middle + 1;
      else high = middle;
    }
    const [start, module] = sorted[low - 1] ?? [];
    if (!module || (module.image_size && address >= start + BigInt(module.image_size))) return { offset: address };
    return { module, offset: address - start };
  };
}

function whyNative(frame, module) {
  const name = base(module?.code_file ?? module?.debug_file ?? frame.package) || "the module";
  if (frame.status === "unknown_image") return { text: "The address is not in any loaded module." };
  if (frame.status === "missing_symbol") return { text: `Symbols for ${name} were found, but none covers this address.`, module };
  if (frame.status === "malformed") return { text: `The symbol file of ${name} is damaged.`, module };
  const reasons = {
    fetching_failed: `Downloading symbols for ${name} failed.`, timeout: `Downloading symbols for ${name} timed out.`,
    unsupported: `The file found for ${name} has an unsupported type.`, other: `Symbols for ${name} could not be used because of an internal error.`,
  };
  return { text: reasons[module?.debug_status] ?? `No symbols found for ${name}.`, module };
}

/** `isText`: the frames are lines of a text, which may have a name for a frame that was not found (`isNamed`). Modules of texts have no address: the service takes those for where all others are. */
function nativeThread(trace, at, find, crashed, titles, isText) {
  const frames = trace.frames.map((sent, i) => {
    const { module, offset } = find(sent), nowhere = isText && !module;
    const f = nowhere ? { ...sent, package: undefined, status: "unknown_image" } : sent;
    const next = trace.frames[i + 1];
    const ok = f.status === "symbolicated", isNamed = isText && !ok && !!f.function;
    return {
      ok, isNamed, index: f.original_index, fn: f.function ?? f.symbol ?? (module && !ok ? `${base(f.package ?? module.code_file)} +0x${offset.toString(16)}` : undefined), path: f.abs_path ?? f.filename, file: f.filename ?? base(f.abs_path), line: f.lineno,
      module: base(f.package ?? module?.code_file), address: f.instruction_addr, offset: module ? "+0x" + offset.toString(16) : "",
      trust: f.trust, status: ok ? "" : isNamed ? "not symbolicated" : STATUS[f.status] ?? f.status, why: ok ? null : () => whyNative(f, module),
      inlined: !!next && next.original_index === f.original_index && next.instruction_addr === f.instruction_addr,
      pre: f.pre_context, source: f.context_line, post: f.post_context, url: f.source_link,
    };
  });
  return { id: trace.thread_id ?? at, name: trace.thread_name ?? titles?.[at], crashed: crashed && !!trace.is_requesting, requesting: !!trace.is_requesting,
    frames, registers: trace.registers };
}

/** Frames by their place among those that were sent: those at one address, and those that one frame of a JVM is, have the same. */
function byPlace(frames) {
  const found = new Map(), place = (f) => f.place ?? f.index;
  for (const f of frames) found.get(place(f))?.push(f) ?? found.set(place(f), [f]);
  return (index) => found.get(index) ?? [];
}

function native(answer, request, kind) {
  const modules = answer.modules ?? [], find = moduleFinder(modules);
  const isCrash = kind !== "native";
  const threads = answer.stacktraces.map((t, i) => nativeThread(t, i, find, isCrash ? answer.crashed !== false : true, request.titles, !!request.isText));
  if (request.body?.options?.frame_order === "caller_first") for (const t of threads) t.frames.reverse();
  const system = answer.system_info ?? {};
  const facts = [
    ["System", [system.os_name, system.os_version, system.os_build && `(${system.os_build})`].filter(Boolean).join(" ")],
    ["Processor", system.cpu_arch === "unknown" ? "" : system.cpu_arch], ["Device", system.device_model],
    ["Signal", answer.signal], ["Assertion", answer.assertion],
    ["Time", answer.timestamp ? new Date(answer.timestamp * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC" : ""],
  ];
  const title = answer.crash_reason || (isCrash ? (answer.crashed ? "Crash" : "No crash") : threads.length > 1 ? "Stacks" : "Stack");
  return { title, details: answer.crash_details, facts, threads, modules, notices: [] };
}

/** A profile: instead of stacks, where each thread's samples were taken, most often first. */
function profile(answer, request) {
  const model = native(answer, request, "native"), share = (part, all) => `${((100 * part) / all).toFixed(part * 10 < all ? 1 : 0)} %`;
  model.threads.forEach((thread, i) => {
    const { name, leaves, samples } = request.profile[i];
    Object.assign(thread, { exception: true, title: `${name || "Thread"}: ${samples.toLocaleString("en")} ${samples === 1 ? "sample" : "samples"}`, crashed: i === 0 });
    for (const f of thread.frames) f.share = share(leaves[f.index]?.samples ?? 0, samples);
  });
  const command = `symloom symbolicate PROFILE --server ${globalThis.location?.origin ?? "URL"} --output named.json`;
  return { ...model, title: "Where time was spent", notices: [`Functions by number of samples. To save the whole profile with names, use the button or run: ${command}`] };
}

// ---- JavaScript ----

const JS_ERRORS = {
  invalid_location: (e) => `The source map does not cover line ${e.line}, column ${e.col ?? "unknown"}.`,
  missing_source_content: (e) => `The source map does not include the text of ${e.source}.`,
  missing_source: () => "The script was not found.",
  malformed_sourcemap: (e) => `The source map ${e.url} is damaged.`,
  missing_sourcemap: () => "The script refers to a source map that was not found.",
  scraping_disabled: () => "The script is not among the artifacts, and scraping is disabled.",
};

function js(answer, request) {
  const order = request.body?.options?.frame_order === "callee_first";
  const attempts = (answer.scraping_attempts ?? []).filter((a) => a.status !== "not_attempted");
  const threads = answer.stacktraces.map((trace, at) => {
    const raw = answer.raw_stacktraces?.[at]?.frames ?? [];
    const frames = trace.frames.map((f, i) => {
      const place = f.index ?? i, sent = raw[place];
      const ok = !!f.data?.symbolicated, was = sent?.abs_path ?? f.abs_path;
      const errors = (answer.errors ?? []).filter((e) => e.abs_path === was && (e.type !== "invalid_location" || e.line === sent?.lineno));
      return {
        ok, index: i, place: f.index, inlined: place === trace.frames[i + 1]?.index, fn: f.function || "<anonymous>", path: f.abs_path, file: f.filename ?? f.abs_path, line: f.lineno, column: f.colno, module: f.module,
        status: ok ? "" : "not mapped", pre: f.pre_context, source: f.context_line, post: f.post_context,
        url: f.abs_path, was: ok && sent ? `${sent.function ?? ""} ${base(sent.abs_path)}:${sent.lineno}:${sent.colno ?? 0}`.trim() : "",
        why: ok && !errors.length ? null : () => ({
          text: errors.map((e) => (JS_ERRORS[e.type] ?? (() => e.type))(e)).join(" ") || "No source map was found for this script.",
          tries: attempts.filter((a) => a.url === was || a.url.startsWith(was)).map((a) => ({ source: "web", location: a.url,
            text: a.status === "success" ? "downloaded" : [String(a.reason ?? a.status).replaceAll("_", " "), a.details].filter(Boolean).join(": "), ok: a.status === "success" })),
        }),
      };
    });
    if (!order) frames.reverse();
    frames.forEach((f, i) => { f.index = i; });
    return { id: at, name: "", title: request.titles?.[at], crashed: at === 0, frames, exception: true };
  });
  const title = threads.find((t) => t.title)?.title || "JavaScript stack";
  return { title, facts: [], threads, modules: [], notices: [] };
}

// ---- JVM ----

function jvm(answer, request) {
  const order = request.body?.options?.frame_order === "callee_first";
  const threads = answer.stacktraces.map((trace, at) => {
    const list = order ? trace.frames : trace.frames.slice().reverse();
    const sent = new Map((request.body?.stacktraces?.[at]?.frames ?? []).map((f) => [f.index, f]));
    const frames = list.map((f, i) => {
      const was = sent.get(f.index), same = was && was.function === f.function && was.module === f.module && was.lineno === f.lineno;
      return {
        ok: true, index: f.index, call: { module: f.module, function: f.function, file: f.filename, line: f.lineno }, fn: `${f.module}.${f.function}`, file: f.filename ?? f.abs_path, path: f.abs_path ?? f.filename, line: f.lineno, module: "",
        inlined: list[i + 1]?.index === f.index, pre: f.pre_context, source: f.context_line, post: f.post_context, status: "",
        was: was && !same ? `${was.module}.${was.function}(${was.filename ?? ""}${was.lineno === undefined ? "" : ":" + was.lineno})` : "",
        signature: f.signature,
      };
    });
    const e = trace.exception, name = e ? (e.module ? e.module + "." : "") + e.type : "";
    let last, number = -1;
    for (const f of frames) { // indexes are of the whole request, and people count from the top of a stack
      if (f.index !== last) number++;
      last = f.place = f.index;
      f.index = number;
    }
    return { id: at, name: "", title: [name, request.titles?.[at]].filter(Boolean).join(": "), crashed: at === 0, frames, exception: true };
  });
  const notices = (answer.errors ?? []).map((e) => (e.artifact !== undefined ? `${e.artifact || "A file"} is not a mapping.` : e.type === "missing" ? `The mapping ${e.uuid} was not found.` : `The mapping ${e.uuid} is damaged.`) +
    (e.detail ? " " + e.detail : ""));
  const names = Object.entries(answer.classes ?? {});
  const title = threads.find((t) => t.title)?.title || "Java stack";
  return { title, facts: names, threads, modules: [], notices };
}

// ---- texts ----

const LOG_PREFIX = /^\d\d-\d\d \d\d:\d\d:\d\d\.\d+\s+\d+\s+\d+ \w \S+\s*: */;

/** A text: its stacks as they stand in it, with the frames of the answers for native code, scripts and the JVM. */
function text(answer, request) {
  const order = { body: { options: { frame_order: "callee_first" } } }, whole = native(answer, request, "native");
  const ofJvm = answer.jvm ? jvm(answer.jvm, order) : { threads: [], notices: [] };
  const parts = { native: whole.threads, js: answer.js ? js(answer.js, order).threads : [], jvm: ofJvm.threads };
  let first = 0; // of the JVM's frames, which are counted through all stacks
  const threads = answer.stacks.map((stack, at) => {
    const thread = parts[stack.kind][stack.index], of = byPlace(thread?.frames ?? []), from = stack.kind === "jvm" ? first : 0;
    if (stack.kind === "jvm") first += stack.frames;
    const frames = stack.lines.flatMap((line) => (typeof line === "string" ? [{ note: line }] : of(line + from)));
    return { ...thread, id: at, title: (stack.title ?? "").replace(LOG_PREFIX, ""), crashed: at === 0, exception: !!stack.title || stack.kind !== "native", frames };
  });
  const title = threads.find((t) => t.title)?.title || (threads.length > 1 ? "Stacks" : "Stack");
  return { ...whole, title, threads, notices: ofJvm.notices, text: answer.text };
}

// ---- Mozilla's ----

function mozilla(answer, request) {
  const results = answer.results ?? [{ stacks: (answer.symbolicatedStacks ?? []).map((s) => s.map((text, i) => ({ frame: i, text }))),
    found_modules: Object.fromEntries((request.body?.memoryMap ?? []).map((m, i) => [m.join("/"), answer.knownModules?.[i]])) }];
  const threads = results.flatMap((result, job) => result.stacks.map((stack, at) => ({
    id: at, name: results.length > 1 ? `job ${job}, stack ${at}` : "", crashed: job + at === 0,
    frames: stack.flatMap((f) => {
      const ok = f.text ? !/^(-?0x|[\d.])/.test(f.text) : !!f.function;
      const found = Object.entries(result.found_modules ?? {}).find(([key]) => key.startsWith(f.module + "/"))?.[1];
      const outer = { ok, index: f.frame, fn: f.text ?? f.function ?? `${f.module} +${f.module_offset}`, file: f.file, path: f.file, line: f.line, module: f.module, offset: f.module_offset && "+" + f.module_offset,
        status: ok ? "" : "no symbols", why: ok ? null : () => ({ text: found === true ? "Symbols were found, but none covers this address."
          : found === false ? "No symbols found for the module." : "The address is not in any module." }) };
      return [...(f.inlines ?? []).map((i) => ({ ok: true, index: f.frame, fn: i.function, file: i.file, path: i.file, line: i.line, module: f.module, inlined: true })), outer];
    }),
  })));
  return { title: threads.length > 1 ? "Stacks" : "Stack", facts: [], threads, modules: [], notices: [] };
}

export function readAnswer(kind, answer, request) {
  const read = request.isText ? text : { js, jvm, mozilla, profile }[kind] ?? native;
  const model = read(answer, request, kind);
  model.facts = model.facts.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return model;
}

// ---- as text ----

function frameText(f) {
  if (f.note !== undefined) return `      ${f.note.trim()}`;
  const at = f.file ? `  ${f.path ?? f.file}${f.line ? ":" + f.line : ""}${f.column ? ":" + f.column : ""}` : "";
  const where = f.module ? `  [${f.module}${f.offset ? " " + f.offset : ""}]` : f.address ? `  [${f.address}]` : "";
  return `${(f.share ?? String(f.index)).padStart(f.share ? 7 : 4)}  ${f.inlined ? "  " : ""}${f.fn ?? `<${f.status}>`}${at}${where}${f.inlined ? "  (inlined)" : ""}`;
}

export function threadTitle(thread) {
  if (thread.exception) return thread.title || "Stack";
  return `Thread ${thread.id}${thread.name ? ` – ${thread.name}` : ""}`;
}

/** A stack that was given as text stays that text; of all else a list. */
export function modelText(model) {
  if (model.text !== undefined) return model.text;
  const head = [model.title, ...model.facts.map(([key, value]) => `${key}: ${value}`), ...model.notices];
  if (model.details) head.splice(1, 0, model.details);
  return head.join("\n") + "\n" + model.threads.map((t) => `\n${threadTitle(t)}${t.crashed && !t.exception ? " (crashed)" : ""}\n${t.frames.map(frameText).join("\n")}\n`).join("");
}
