// The page: its parts, what is given to it, and what is done with that.
import { $, el, bytes, count, download } from "./dom.js";
import { KINDS, decode, isArtifact, isBinary, isNamedCore, isMinidump, kindOfText, makeRequest, namedRequest, packingOf } from "./recognise.js";
import { Failure, getJson, readGiven, send, withProgress, curlOf, presetChips, chosenSources } from "./ask.js";
// Modules that are loaded only when they are needed.
const later = {
  answers: () => import("./answers.js"), stack: () => import("./stack.js"), module: () => import("./module.js"),
  status: () => import("./status.js"), examples: () => import("./examples.js"),
};

const FILE_MAX = 64 << 20; // larger files are not read here
const HEAD = 1 << 16;      // bytes by which the service recognises a file
const TEXT_MAX = 4 << 20; // longer files are shown by their name alone
const PAUSE_MS = 120;     // in typing, before the service is asked what it is
let given = null;         // the file that was dropped or chosen: {file, text}
let recognition = Promise.resolve({}); // what the service reads in what was given
let pasted = {};          // the text that was put into the field: as the field shows it, and with its own line ends
let waiting = [];         // crashes that are to be read after it
let artifacts = [];

// ---- parts ----

const VIEWS = ["symbolicate", "module", "status", "api"];

let viewNow = null;

function showView() {
  const wanted = location.hash.slice(1), view = VIEWS.includes(wanted) ? wanted : "symbolicate";
  if (wanted === "main") return;
  for (const name of VIEWS) $("view-" + name).hidden = name !== view;
  for (const a of document.querySelectorAll("nav a")) {
    if (a.hash === "#" + view) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  viewNow = view;
  if (view === "status") later.status().then(({ showStatus }) => showStatus($("status-body"), () => viewNow === "status"));
  if (view === "module") later.module().then(({ setUpModule }) => setUpModule());
  if (view === "api") {
    showLimits();
    for (const example of document.querySelectorAll("#view-api pre"))
      example.textContent = example.textContent.replaceAll("http://localhost:3021", location.origin);
  }
}

let about = null;
async function aboutService() {
  return (about ??= await getJson("/page/about.json"));
}

async function showLimits() {
  if ($("limits").childElementCount) return;
  try {
    const { limits } = await aboutService();
    const rows = [["JSON body", bytes(limits.symbolicate_body_max_bytes)], ["Crash file", bytes(limits.crash_file_body_max_bytes)],
      ["Frames per request", limits.max_request_frames.toLocaleString("en")], ["Modules per request", limits.max_request_modules.toLocaleString("en")],
      ["Frames per response", limits.max_response_frames.toLocaleString("en")], ["Concurrent requests", limits.max_concurrent_requests > 1e15 ? "no limit" : limits.max_concurrent_requests.toLocaleString("en")],
      ["Time per request", `${limits.max_job_duration_seconds} s`], ["Results are kept for", `${limits.result_ttl_seconds} s`]];
    $("limits").append(el("h3", null, "Limits"), el("dl", null, rows.map(([key, value]) => [el("dt", null, key), el("dd", null, value)])));
  } catch { /* the page works without */ }
}

// ---- what is given ----

function kindNow() {
  return $("kind").value || null;
}

function showKind(kind, how) {
  $("kind").value = kind ?? "";
  $("artifacts").hidden = kind === "mozilla" || !(kind || artifacts.length);
  $("sentry").hidden = kind !== "js" && kind !== "jvm";
  $("where").hidden = kind === "js" || kind === "mozilla";
  $("recognised").textContent = how ?? (kind ? `Detected: ${KINDS[kind]}.` : $("text").value.trim() || given ? "Unknown format; choose the type." : "");
}

/** Asks the service what this text is; what was asked before does not count any more. */
let asked = 0, chosen = false; // chosen: somebody has said what kind it is
function recognise(text, { name, wait = 0, before } = {}) {
  const mine = ++asked;
  chosen = false;
  const work = async () => {
    if (!text.trim()) return {};
    if (wait) await new Promise((done) => setTimeout(done, wait));
    return mine === asked ? readGiven(text) : {};
  };
  recognition = work().catch((error) => ({ error }));
  return recognition.then((read) => {
    if (mine !== asked || chosen) return null;
    const kind = read.error ? null : kindOfText(text, read);
    before?.(kind, read);
    if (read.error) showKind(null, read.error instanceof Failure ? read.error.message : "Cannot reach the service.");
    else if (!kind && read.unread) showKind(null, `This looks like ${read.unread}, which is not supported.`);
    else if (!kind && read.advice) showKind(null, `${read.advice}.`);
    else if (!kind && read.plain) showKind(null, `This looks like ${read.plain}, which is already symbolicated.`);
    else if (name && !text.trim()) showKind(null, `${name} is empty.`);
    else showKind(kind, !name ? undefined : kind ? `${name}: detected as ${KINDS[kind]}.` : `${name}: unknown format; choose the type.`);
    return kind;
  });
}

function textChanged() {
  recognise($("text").value, { wait: PAUSE_MS });
}

function showFile(on) {
  $("file").hidden = !on;
  $("text").hidden = on;
  $("drop").querySelector("label").hidden = on;
}

function removeFile() {
  given = null;
  showFile(false);
  return recognise($("text").value);
}

function setFile(file, text) {
  given = { file, text };
  $("file").replaceChildren(el("span", null, `${file.name} – ${bytes(file.size)}`), el("button", { type: "button", class: "small", onclick: () => { removeFile(); $("choose").focus(); } }, "Remove"));
  showFile(true);
}

/** A packed file: crash files stay as they are, texts are unpacked. */
async function takePacked(file, packing) {
  const mine = ++asked;
  setFile(file, null);
  recognition = readGiven(file, { packing }).catch(() => ({ kind: isNamedCore(file.name) ? "core" : "minidump" })); // too large for a text
  const read = await recognition;
  if (mine !== asked) return;
  if (["minidump", "core", "apple"].includes(read.kind)) return showKind(read.kind);
  if (packing !== "gzip") return showKind(null, `${file.name}: only gzip is supported for compressed text; decompress it first.`);
  await takeText(file, decode(new Uint8Array(await new Response(file.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer())));
}

async function takeText(file, text) {
  const short = text.length <= TEXT_MAX && !text.includes("\0");
  if (short) {
    given = null;
    showFile(false);
    $("text").value = text;
    pasted = { shown: $("text").value, text };
  } else {
    setFile(file, text);
  }
  await recognise(text, { name: file.name, before: (kind, read) => { if (short && (kind === "apple" || read.named)) setFile(file, text); } }); // its name is enough
}

/** What is neither a text nor a minidump: the service knows by its beginning what it is. */
async function takeBinary(file) {
  const mine = ++asked;
  setFile(file, null);
  recognition = readGiven(file.slice(0, HEAD)).catch(() => ({}));
  const { kind: seen, unread } = await recognition, kind = !seen && !unread && isNamedCore(file.name) ? "core" : seen; // packed by xz
  if (mine !== asked) return;
  showKind(kind === "core" ? kind : null, kind === "core" ? undefined : unread ? `This looks like ${unread}, which is not supported.` : `${file.name}: unknown format; choose the type.`);
}

async function takeFile(file) {
  const head = await headOf(file), packing = packingOf(head);
  if (packing) return takePacked(file, packing);
  if (!isMinidump(head) && isBinary(head)) return takeBinary(file);
  if (!isMinidump(head) && file.size <= FILE_MAX) return takeText(file, decode(new Uint8Array(await file.arrayBuffer())));
  asked++;
  recognition = Promise.resolve({});
  setFile(file, null);
  showKind(isMinidump(head) ? "minidump" : null, isMinidump(head) ? undefined : `${file.name} is too large to detect its type; choose the type.`);
}

function addArtifacts(files) {
  artifacts.push(...files);
  $("artifact-list").replaceChildren(...artifacts.map((file) => el("li", null, el("span", null, `${file.name} – ${bytes(file.size)}`),
    el("button", { type: "button", class: "small", "aria-label": `Remove ${file.name}`, onclick: () => {
      artifacts = artifacts.filter((f) => f !== file);
      addArtifacts([]);
      $("add-artifact").focus();
    } }, "Remove"))));
}

const headOf = async (file, size = 16) => new Uint8Array(await file.slice(0, size).arrayBuffer());

/** Crashes, and files that help to read them. Of several crashes one is read after the other. */
async function takeFiles(files) {
  const crashes = [], others = [];
  for (const file of files) (isArtifact(await headOf(file, 20), file.name) ? others : crashes).push(file);
  addArtifacts(others);
  waiting = crashes.slice(1);
  if (crashes.length) await takeFile(crashes[0]);
  else if (others.length) {
    $("artifacts").hidden = false;
    $("recognised").textContent = `${count(others.length, "file")} added. Now add the crash.`;
  }
  if (waiting.length) $("recognised").textContent += ` ${count(waiting.length, "more crash", "more crashes")} will follow.`;
  location.hash = "#symbolicate";
}

// ---- examples ----

async function takeExample() {
  const name = $("example").value;
  $("example").value = "";
  if (!name) return;
  given = null;
  showFile(false);
  artifacts = [];
  addArtifacts([]);
  if (name === "native") {
    await withProgress($("progress"), null, async () => {
      $("text").value = JSON.stringify(await getJson("/page/example.json"), null, 1);
    });
  } else {
    const { EXAMPLES } = await later.examples();
    $("text").value = EXAMPLES[name].text;
    addArtifacts(EXAMPLES[name].files.map(([file, text]) => new File([text], file)));
  }
  await recognise($("text").value);
  if ($("text").value) symbolicate();
}

// ---- sending ----

let round = 0;
async function symbolicate() {
  const place = $("result"), mine = ++round;
  foldResult(place);
  await recognition;
  const shown = $("text").value, text = shown === pasted.shown ? pasted.text : shown, kind = kindNow(), input = given ?? { text };
  if (!given && !text.trim()) {
    $("recognised").textContent = "Paste or drop a crash, or choose an example.";
    $("text").focus();
    return;
  }
  if (!kind) {
    const why = /^This looks like [^.]*\./.exec($("recognised").textContent)?.[0];
    $("recognised").textContent = why ? `${why} If it is something else, choose the type.` : "Choose the type first.";
    $("kind").focus();
    return;
  }
  const good = await withProgress($("progress"), $("cancel"), async (tell, signal) => {
    const whole = input.text ?? (["minidump", "core", "apple"].includes(kind) ? null : await input.file.text());
    const before = await recognition;
    const request = makeRequest(kind, { ...input, text: whole, chosen }, {
      sources: chosenSources("presets"), artifacts, sentryUrl: $("sentry-url").value.trim(), sentryToken: $("sentry-token").value,
      release: $("release").value.trim(), debugIds: $("debug-ids").value,
    });
    const [answer, { readAnswer }, { showResult }] = await Promise.all([send(request, tell, signal), later.answers(), later.stack()]);
    if (mine !== round) return;
    tell("Reading the response…");
    showResult(place, readAnswer(kind, answer, request), answer, curlOf(request, given?.file.name ?? "crash.txt"), before.named && (kind === "profile" || kind === "apple") && namedButton(kind, { ...input, text: input.text ?? null }));
    place.focus({ preventScroll: true });
    place.scrollIntoView({ block: "start" });
  });
  if (!good || mine !== round || !waiting.length) return;
  await takeFile(waiting.shift());
  symbolicate();
}

/** A button that has the service write names into what was given, as the command does. */
function namedButton(kind, input) {
  const what = kind === "profile" ? "profile" : "report";
  const [, stem, end] = /^(.*?)((?:\.\w+)?)$/.exec((input.file?.name ?? what).replace(/\.(gz|zst)$/, ""));
  const where = { sources: chosenSources("presets"), artifacts };
  return el("button", { type: "button", class: "small", onclick: () => withProgress($("progress"), $("cancel"), async (tell, signal) => {
    download(`${stem}.named${end || (kind === "profile" ? ".json" : ".txt")}`, (await send(namedRequest(input, where), tell, signal)).named);
  }) }, `Download symbolicated ${what}`);
}

const EARLIER_MAX = 20;

/** Moves the result that is shown below the place of the next one, folded. */
function foldResult(place) {
  const shown = !place.hidden && [...place.childNodes];
  place.hidden = true;
  if (!shown) return;
  const title = place.querySelector("h2")?.textContent ?? "Crash";
  const box = el("div", { class: "earlier" }, el("details", null, el("summary", null, title), ...shown),
    el("button", { type: "button", class: "small", "aria-label": `Remove: ${title}`, onclick: () => { box.remove(); $("earlier").hidden = !$("earlier-list").childElementCount; } }, "Remove"));
  $("earlier-list").prepend(box);
  while ($("earlier-list").childElementCount > EARLIER_MAX) $("earlier-list").lastElementChild.remove();
  $("earlier").hidden = false;
}

// ---- the beginning ----

function setUpDropping() {
  let depth = 0;
  const hasFiles = (event) => [...event.dataTransfer?.types ?? []].includes("Files");
  const show = (on) => document.body.classList.toggle("dragging", on);
  addEventListener("dragenter", (event) => { if (hasFiles(event)) { depth++; show(true); event.preventDefault(); } });
  addEventListener("dragleave", () => { depth = Math.max(0, depth - 1); show(depth > 0); });
  addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
  addEventListener("drop", (event) => {
    depth = 0;
    show(false);
    if (!hasFiles(event)) return;
    event.preventDefault();
    takeFiles(event.dataTransfer.files);
  });
}

document.documentElement.classList.add("on");
$("kind").append(el("option", { value: "" }, "choose…"), ...Object.entries(KINDS).map(([value, label]) => el("option", { value }, label)));
presetChips("presets");
$("module").addEventListener("submit", (event) => event.preventDefault());
setUpDropping();
$("text").addEventListener("input", textChanged);
$("text").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) symbolicate(); });
$("kind").addEventListener("change", () => { chosen = true; showKind(kindNow(), ""); });
$("choose").addEventListener("click", () => $("input").click());
$("input").addEventListener("change", () => { takeFiles($("input").files); $("input").value = ""; });
$("add-artifact").addEventListener("click", () => $("artifact-input").click());
$("artifact-input").addEventListener("change", () => { addArtifacts($("artifact-input").files); $("artifact-input").value = ""; });
$("example").addEventListener("change", takeExample);
$("crash").addEventListener("submit", (event) => { event.preventDefault(); symbolicate(); });
addEventListener("hashchange", () => { showView(); if (location.hash) $("main").focus({ preventScroll: true }); scrollTo(0, 0); });
showView();
aboutService().then((a) => { $("version").textContent = `symloom ${a.version}`; }, () => {});
