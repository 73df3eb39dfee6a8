// The picture of a stack.
import { el, link, count, copy, download } from "./dom.js";
import { MODULE_STATUS, modelText, threadTitle } from "./answers.js";

const CHUNK = 100; // frames that are laid out together, and only when they come into view
const FIRST = 100; // frames that are made at once; the others when these are seen

const TRUST = {
  context: "registers", cfi: "unwind tables", cfiscan: "stack scan with unwind tables", fp: "frame pointer", scan: "stack scan (may be wrong)", prewalked: "unwound by the client",
};

function sourceLines(f) {
  const pre = f.pre ?? [], post = f.post ?? [], first = f.line - pre.length;
  const row = (text, number, hit) => el("div", { class: hit ? "hit" : undefined }, el("span", { class: "n" }, number > 0 ? String(number) : ""), text || " ");
  return el("div", { class: "source", tabindex: "0", role: "group", "aria-label": `Source of ${f.file ?? "the frame"}` },
    pre.map((text, i) => row(text, first + i)), row(f.source, f.line, true), post.map((text, i) => row(text, f.line + 1 + i)));
}

const WORDS = { ok: "downloaded", notfound: "not found", noperm: "permission denied", malformed: "damaged", error: "failed" };

/** Where a module was looked for: a list of what was tried. */
export function candidateList(candidates) {
  return el("ul", { class: "tries" }, candidates.map((c) => {
    const d = c.download ?? {}, ok = d.status === "ok";
    const notes = [WORDS[d.status] ?? d.status, d.details, c.debug && `as debug information: ${WORDS[c.debug.status] === "downloaded" ? "used" : c.debug.details ?? c.debug.status}`,
      c.unwind && `for unwinding: ${c.unwind.status === "ok" ? "used" : c.unwind.details ?? c.unwind.status}`];
    return attempt(c.source, c.location, notes.filter(Boolean).join("; "), ok);
  }));
}

function attempt(source, location, text, ok) {
  return el("li", null, el("span", { class: ok ? "tag good" : "tag warn" }, source ?? ""), el("span", null, text), el("span", { class: "loc" }, link(location ?? "")));
}

function whyBox(why) {
  const box = el("div", { class: "why" }, el("p", null, why.text));
  const candidates = why.module?.candidates;
  if (why.tries?.length) box.append(el("ul", { class: "tries" }, why.tries.map((t) => attempt(t.source, t.location, t.text, t.ok))));
  if (!why.module) return box;
  if (candidates?.length) box.append(el("p", null, "Searched:"), candidateList(candidates));
  else if (!why.module.debug_id && !why.module.code_id) box.append(el("p", null, "The module has no debug id or code id, so it cannot be searched for. Add its file above; it is matched by name."));
  else if (why.module.debug_status !== "found") box.append(el("p", null, "No source was searched. Check a symbol server above, or configure sources."));
  return box;
}

function details(f) {
  const parts = [];
  if (f.source !== undefined && f.source !== null) parts.push(sourceLines(f));
  if (f.why) parts.push(whyBox(f.why()));
  const rows = [["Before", f.was], ["File", f.path !== f.file ? f.path : ""], ["Signature", f.signature], ["Unwound by", TRUST[f.trust]], ["Address", f.address]];
  const known = rows.filter((row) => row[1]);
  if (/^https?:/.test(f.url ?? "")) known.push(["Link", link(f.url)]);
  if (known.length) parts.push(el("dl", null, known.map(([key, value]) => [el("dt", null, key), el("dd", null, value)])));
  return parts;
}

/** One frame, or a line that is none. Its details are made when they are opened. */
function frameRow(f, open) {
  if (f.note !== undefined) return el("li", { class: "note" }, f.note.trim());
  const place = el("div", { class: "place" });
  if (f.file) place.append(el("span", { class: "at" }, f.file + (f.line ? ":" + f.line : "") + (f.column ? ":" + f.column : "")));
  if (f.module && !f.fn?.startsWith(f.module + " +")) place.append(el("span", null, f.module));
  else if (f.address) place.append(el("span", { class: "mono" }, f.address));
  if (f.inlined) place.append(el("span", null, "inlined"));
  if (f.trust === "scan") place.append(el("span", null, "scanned"));
  const name = el("div", null, el("span", { class: "fn" }, f.fn ?? f.address ?? "?"));
  if (f.status) name.append(" ", el("span", { class: "tag warn" }, f.status));
  const more = (f.source !== undefined && f.source !== null) || f.why || f.was || f.path !== f.file || f.signature;
  const li = el("li", { class: "frame" + (f.inlined ? " inlined" : "") + (f.ok ? "" : " failed") }, el("span", { class: "no" }, f.share ?? String(f.index)));
  if (!more) {
    li.append(el("div", null, name, place));
    return li;
  }
  const box = el("details", { class: "more" }, el("summary", null, name, place));
  const fill = () => { if (box.childElementCount === 1) box.append(...details(f)); };
  box.addEventListener("toggle", fill);
  if (open) {
    box.open = true;
    fill();
  }
  li.append(box);
  return li;
}

/** Frames in groups that the browser lays out when they are near; many are made piece by piece, the first at once. */
function frameList(thread, openSource) {
  const list = el("ol", { class: "frames", "aria-label": `Frames of ${threadTitle(thread)}` });
  const frames = thread.frames;
  let at = 0, opened = !openSource;
  const piece = (until) => {
    const few = frames.length <= CHUNK;
    while (at < until) {
      const rows = document.createDocumentFragment();
      for (const end = Math.min(at + CHUNK, frames.length); at < end; at++) {
        const open = !opened && frames[at].source !== undefined && frames[at].source !== null;
        opened ||= open;
        rows.append(frameRow(frames[at], open));
      }
      if (few) list.append(rows);
      else list.append(el("li", { class: "group" }, el("ol", { class: "chunk" }, rows)));
    }
    const next = () => setTimeout(() => piece(Math.min(at + 3 * CHUNK, frames.length)), 0);
    if (at >= frames.length) return;
    if (at === FIRST) requestAnimationFrame(next);
    else next();
  };
  piece(Math.min(FIRST, frames.length));
  return list;
}

function threadBox(thread, open) {
  const all = thread.frames.filter((f) => f.note === undefined), failed = all.filter((f) => !f.ok && !f.isNamed).length;
  const box = el("details", { class: "thread" + (thread.crashed ? " crashed" : "") },
    el("summary", null, el("span", null, threadTitle(thread)), thread.crashed && !thread.exception && el("span", { class: "tag bad" }, "crashed"),
      thread.requesting && !thread.crashed && el("span", { class: "tag calm" }, "requested the dump"),
      el("span", { class: "count" }, count(all.length, "frame") + (failed ? `, ${failed} unsymbolicated` : ""))));
  let filled = false;
  const fill = () => {
    if (filled) return;
    filled = true;
    box.append(thread.frames.length ? frameList(thread, open) : el("p", { class: "message" }, "No frames."));
    const registers = Object.entries(thread.registers ?? {});
    if (registers.length) box.append(el("details", { class: "module" }, el("summary", null, "Registers"), el("div", null, el("dl", null, registers.map(([key, value]) => [el("dt", null, key), el("dd", null, value)])))));
  };
  box.addEventListener("toggle", () => { if (box.open) fill(); });
  if (open) {
    fill();
    box.open = true;
  }
  return box;
}

export function moduleFacts(m) {
  const features = Object.entries(m.features ?? {}).filter(([, on]) => on === true).map(([key]) => key.replace(/^has_/, "").replaceAll("_", " "));
  const rows = [["Debug id", m.debug_id], ["Code id", m.code_id], ["Debug file", m.debug_file], ["Code file", m.code_file], ["Processor", m.arch === "unknown" ? "" : m.arch],
    ["Loaded at", m.image_addr === "0x0" ? "" : m.image_addr], ["Unwind info", m.unwind_status && (MODULE_STATUS[m.unwind_status] ?? m.unwind_status)], ["Contains", features.join(", ")]];
  return el("dl", null, rows.filter((row) => row[1]).map(([key, value]) => [el("dt", null, key), el("dd", null, value)]));
}

export function statusTag(status) {
  const word = MODULE_STATUS[status] ?? status ?? "";
  return el("span", { class: "tag " + (status === "found" ? "good" : status === "unused" ? "calm" : "warn") }, word);
}

function moduleBox(modules) {
  const used = modules.filter((m) => m.debug_status !== "unused");
  const found = used.filter((m) => m.debug_status === "found").length;
  const box = el("details", { class: "card modules thread" }, el("summary", null, el("span", null, "Modules"),
    el("span", { class: "count" }, `Symbols for ${found} of ${count(used.length, "module")} on the stack (${modules.length} loaded)`)));
  let filled = false;
  box.addEventListener("toggle", () => {
    if (filled) return;
    filled = true;
    for (const m of [...used, ...modules.filter((x) => x.debug_status === "unused")]) {
      const one = el("details", { class: "module" }, el("summary", null, el("span", null, (m.code_file ?? m.debug_file ?? "?").replace(/^.*[\\/]/, "")), statusTag(m.debug_status), el("span", { class: "id" }, m.debug_id ?? m.code_id ?? "")));
      one.addEventListener("toggle", () => {
        if (one.childElementCount === 1) one.append(el("div", null, moduleFacts(m), m.candidates?.length ? candidateList(m.candidates) : ""));
      });
      box.append(one);
    }
  });
  return box;
}

/** The whole result into `place`. `made`: the request, `curl`: its command, `answer`: as it came, `more`: another button. */
export function showResult(place, model, answer, curl, more) {
  const say = el("span", { role: "status", class: "hint" });
  const command = el("pre", { class: "curl", tabindex: "0", hidden: true, "aria-label": "The request as a curl command" }, curl);
  const show = el("button", { type: "button", class: "small", "aria-expanded": "false", onclick: () => {
    command.hidden = !command.hidden;
    show.setAttribute("aria-expanded", String(!command.hidden));
  } }, "Show as curl");
  const crashed = model.threads.findIndex((t) => t.crashed);
  const requesting = model.threads.findIndex((t) => t.requesting);
  const first = crashed >= 0 ? crashed : requesting >= 0 ? requesting : 0;
  const order = model.threads.map((t, i) => i).sort((a, b) => (a === first ? -1 : b === first ? 1 : a - b));
  const frames = model.threads.flatMap((t) => t.frames).filter((f) => f.note === undefined);
  const all = frames.length, failed = frames.filter((f) => !f.ok && !f.isNamed).length;
  place.replaceChildren(
    el("div", { class: "head" }, el("div", null, el("h2", null, model.title), model.details && el("p", null, model.details)),
      el("div", { class: "bar" },
        el("button", { type: "button", class: "small", onclick: () => copy(modelText(model)).then(() => { say.textContent = "Copied."; }) }, "Copy as text"),
        el("button", { type: "button", class: "small", onclick: () => download("symloom.json", JSON.stringify(answer, null, 2)) }, "Download JSON"), more, show, say)),
    el("p", { class: "facts" }, model.facts.map(([key, value]) => el("span", null, key + " ", el("b", null, String(value)))),
      el("span", null, count(model.threads.length, model.threads[0]?.exception ? "stack" : "thread") + ", ", el("b", null, count(all, "frame")), failed ? ` – ${failed} unsymbolicated; open a frame for details` : "")),
    command,
    ...model.notices.map((text) => el("p", { class: "notice" }, text)),
    ...order.map((i, nth) => threadBox(model.threads[i], nth === 0 || (model.threads[i].exception && nth < 4))),
    ...(model.modules.length ? [moduleBox(model.modules)] : []));
  place.hidden = false;
}
