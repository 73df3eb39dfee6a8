// Profiles of the Firefox Profiler, as its front end saves them and samply writes them: where the time was spent, with names. Pure.

const list = (value) => (Array.isArray(value) ? value : []);
const typeOf = (platform, lib) => (platform === "Windows" || /\.pdb$/.test(lib.debugName) ? "pe" : platform === "Macintosh" ? "macho" : "elf");

/** A debug id of Breakpad's as requests have it. */
const debugId = (id) => (/^[0-9A-F]{33,40}$/i.test(id ?? "") ? `${id.slice(0, 32)}-${id.slice(32)}` : undefined);

/** Of every thread the addresses at the ends of its samples, most often first. */
function leaves(profile, thread) {
  const shared = profile.shared ?? {}, table = (name) => thread[name] ?? shared[name] ?? {};
  const { frame } = table("stackTable"), frames = table("frameTable"), funcs = table("funcTable"), resources = table("resourceTable");
  const found = new Map();
  list(thread.samples?.stack).forEach((stack, i) => {
    const at = stack === null ? undefined : frame?.[stack], address = frames.address?.[at], lib = resources.lib?.[funcs.resource?.[frames.func?.[at]]];
    if (!(address >= 0) || !(lib >= 0)) return;
    const key = `${lib}:${address}`, leaf = found.get(key) ?? { lib, address, samples: 0 };
    leaf.samples += thread.samples.weightType === "samples" ? thread.samples.weight?.[i] ?? 1 : 1;
    found.set(key, leaf);
  });
  return [...found.values()].sort((a, b) => b.samples - a.samples);
}

const MOST = 200; // of a thread

/** The request for a profile, and what its threads are called. */
export function profileBody(text) {
  const profile = JSON.parse(text), threads = [];
  for (const thread of list(profile.threads)) {
    const found = leaves(profile, thread);
    if (found.length) threads.push({ name: [thread.processName, thread.name].filter(Boolean).join(", "), leaves: found.slice(0, MOST), samples: found.reduce((sum, l) => sum + l.samples, 0) });
  }
  const modules = list(profile.libs).map((lib) => ({ type: typeOf(profile.meta?.platform, lib), debug_id: debugId(lib.breakpadId), code_id: lib.codeId ?? undefined,
    debug_file: lib.debugName, code_file: lib.path ?? lib.name }));
  const stacktraces = threads.map((thread) => ({ frames: thread.leaves.map((l) => ({ instruction_addr: `0x${l.address.toString(16)}`, addr_mode: `rel:${l.lib}`, adjust_instruction_addr: false })) }));
  return { body: { stacktraces, modules, options: { apply_source_context: true } }, profile: threads };
}
