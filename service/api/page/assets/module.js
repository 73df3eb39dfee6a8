// Whether there are symbols of one module, and where they were looked for.
import { $, el } from "./dom.js";
import { candidateList, moduleFacts, statusTag } from "./stack.js";
import { MODULE_STATUS } from "./answers.js";
import { chosenSources, presetChips, send, withProgress } from "./ask.js";

/** The debug id of a GNU build id: its first 16 bytes, of which the first three fields are little-endian. */
function buildIdToDebugId(id) {
  const b = id.toLowerCase().padEnd(32, "0").match(/../g);
  const text = [b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], ...b.slice(8, 16)].join("");
  return text.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

const DEBUG_ID = /^(?:[0-9a-f]{32}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})(?:-?[0-9a-f]{1,8})?$|^[0-9a-f]{16,40}$/i;

/** What is wrong with a field; undefined: nothing. */
function wrongField() {
  const checks = [["m-debug", DEBUG_ID, "a debug id (32 hexadecimal digits, optionally with hyphens and an age)"], ["m-code", /^[0-9a-f]{6,128}$/i, "a code id (hexadecimal digits)"], ["m-address", /^(?:0x)?[0-9a-f]{1,16}$/i, "an address (hexadecimal digits)"]];
  const wrong = checks.find(([id, form]) => $(id).value.trim() && !form.test($(id).value.trim()));
  for (const [id] of checks) $(id).toggleAttribute("aria-invalid", id === wrong?.[0]);
  if (!wrong) return undefined;
  $(wrong[0]).focus();
  return `${$(wrong[0]).value.trim()} is not ${wrong[2]}.`;
}

function request() {
  const value = (id) => $(id).value.trim() || undefined;
  const module = { type: $("m-type").value, debug_id: value("m-debug"), code_id: value("m-code"), debug_file: value("m-debug-file"), code_file: value("m-code-file") };
  if (module.type === "elf" && module.code_id && !module.debug_id) module.debug_id = buildIdToDebugId(module.code_id);
  module.debug_file ??= module.code_file;
  module.code_file ??= module.debug_file;
  const body = { stacktraces: [{ frames: [{ instruction_addr: value("m-address") ?? "0x0", addr_mode: "rel:0" }] }], modules: [module], options: { dif_candidates: true } };
  const sources = chosenSources("m-presets");
  if (sources) {
    body.sources = sources;
    body.options.configured_sources = true;
  }
  return { path: "/symbolicate", body };
}

function show(answer, hasAddress) {
  const module = answer.modules[0] ?? {}, frames = answer.stacktraces[0]?.frames ?? [];
  const place = $("m-result");
  const names = hasAddress ? frames.map((f) => el("li", null, el("span", { class: "fn" }, f.function ?? f.status), f.filename && el("span", { class: "hint" }, `${f.filename}:${f.lineno ?? "?"}`))) : [];
  place.replaceChildren(el("div", { class: "card" },
    el("div", { class: "head" }, el("h2", null, module.debug_status === "found" ? "Symbols found" : "No usable symbols"), statusTag(module.debug_status)),
    el("p", { class: "hint" }, `Status: ${MODULE_STATUS[module.debug_status] ?? module.debug_status ?? "unknown"}.`),
    moduleFacts(module), names.length > 0 && el("h3", null, "At this address"), names.length > 0 && el("ul", { class: "plain" }, names),
    el("h3", null, "Searched locations"),
    module.candidates?.length ? candidateList(module.candidates)
      : el("p", null, module.debug_id || module.code_id ? "No source was searched. Check a symbol server, or configure sources." : "Enter a debug id or a code id to search for.")));
  place.hidden = false;
  place.focus({ preventScroll: true });
}

let ready = false;

export function setUpModule() {
  if (ready) return;
  ready = true;
  presetChips("m-presets");
  $("module").addEventListener("submit", (event) => {
    event.preventDefault();
    $("m-result").hidden = true;
    const wrong = wrongField();
    if (wrong) {
      $("m-progress").replaceChildren(el("p", { class: "notice bad" }, wrong));
      return;
    }
    withProgress($("m-progress"), null, async (tell, signal) => show(await send(request(), tell, signal), !!$("m-address").value.trim()));
  });
}
