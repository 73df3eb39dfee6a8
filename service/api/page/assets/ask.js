// Requests to the service, and waiting for their answers.
import { el, $ } from "./dom.js";
import { PRESETS, presetSource } from "./recognise.js";

export function presetChips(id) {
  $(id).append(...PRESETS.map((p) => el("label", null, el("input", { type: "checkbox", value: p.id }), p.label)));
}

/** The sources of the ticked presets; undefined when none is. */
export function chosenSources(id) {
  const ticked = new Set([...$(id).querySelectorAll(":checked")].map((box) => box.value));
  return ticked.size ? PRESETS.filter((p) => ticked.has(p.id)).map(presetSource) : undefined;
}

export function keyHeaders() {
  const key = $("key").value.trim();
  return key ? { Authorization: `Bearer ${key}` } : {};
}

export class Failure extends Error {}

async function problem(response) {
  const text = await response.text();
  let detail = text;
  try {
    const json = JSON.parse(text);
    detail = [json.detail ?? json.title ?? json.error, ...(json.causes ?? [])].filter(Boolean).join(": ");
  } catch { /* a text */ }
  const words = { 401: "This service requires an access key; enter it at the bottom of this page.", 403: "The access key does not grant access to this.", 405: "This API is not enabled: the configuration has no `mozilla` section.", 413: "The request is larger than the service allows.",
    503: "The service is busy. Try again in a moment." };
  return new Failure([words[response.status] ?? `The service returned an error: ${response.status}`, detail].filter(Boolean).join(" "));
}

export async function getJson(path, signal) {
  const response = await fetch(path, { headers: keyHeaders(), signal });
  if (!response.ok) throw await problem(response);
  return response.json();
}

/** What the service sees in a text or in a packed file. */
export async function readGiven(body, { packing } = {}) {
  const headers = { ...keyHeaders(), ...(packing && { "Content-Encoding": packing }) };
  const response = await fetch("/page/read", { method: "POST", body, headers });
  if (!response.ok) throw await problem(response);
  return response.json();
}

function bodyOf(request) {
  if (request.file || request.artifacts) {
    const data = new FormData();
    for (const key in request.fields) data.append(key, request.fields[key]);
    if (request.file) data.append(request.part, request.file);
    else data.append("request", JSON.stringify(request.body));
    for (const file of request.artifacts ?? []) data.append("artifact", file, file.name);
    return { body: data, headers: request.accept ? { Accept: request.accept } : {} };
  }
  return { body: request.text ?? JSON.stringify(request.body), headers: { "Content-Type": "application/json" } };
}

/** Sends the request and asks until there is an answer. `tell(text)`: how far it is. */
export async function send(request, tell, signal) {
  const began = Date.now(), { body, headers } = bodyOf(request);
  tell("Sending…");
  const clock = setInterval(() => tell(`Working… ${Math.round((Date.now() - began) / 1000)} s`), 1000);
  try {
    let response = await fetch(`${request.path}?timeout=5${request.query ? "&" + request.query : ""}`, { method: "POST", body, headers: { ...headers, ...keyHeaders() }, signal });
    for (;;) {
      if (!response.ok) throw response.status === 404 && request.asked ? new Failure("The result of this request has expired. Send it again.") : await problem(response);
      const answer = await response.json();
      if (answer.status === "failed") throw new Failure([`Cannot read the input: ${answer.message}`, answer.detail].filter(Boolean).join(". "));
      if (answer.status === "timeout") throw new Failure("The request took too long and was canceled.");
      if (answer.status === "internal_error") throw new Failure("Internal error; see the log of the service.");
      if (answer.status !== "pending") return answer;
      request.asked = true;
      response = await fetch(`/requests/${encodeURIComponent(answer.request_id)}?timeout=5`, { headers: keyHeaders(), signal });
    }
  } finally {
    clearInterval(clock);
  }
}

/** Runs `work(tell, signal)` with its progress in `place`; true when it went well. */
export async function withProgress(place, cancel, work) {
  const controller = new AbortController(), text = el("span", null, "");
  place.replaceChildren(el("progress", { "aria-label": "Working" }), text);
  const stop = () => controller.abort();
  if (cancel) {
    cancel.hidden = false;
    cancel.addEventListener("click", stop);
  }
  try {
    await work((t) => { text.textContent = t; }, controller.signal);
    place.replaceChildren();
    return true;
  } catch (error) {
    const words = controller.signal.aborted ? "Canceled." : error instanceof Failure ? error.message
      : error instanceof TypeError ? "Cannot reach the service." : `Cannot read this: ${error.message}`;
    place.replaceChildren(el("p", { class: "notice bad" }, words));
    return false;
  } finally {
    if (cancel) {
      cancel.hidden = true;
      cancel.removeEventListener("click", stop);
    }
  }
}

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** The request as a command line. */
export function curlOf(request, fileName) {
  const key = keyHeaders().Authorization ? " -H \"Authorization: Bearer $SYMLOOM_KEY\"" : "";
  const url = location.origin + request.path + (request.query ? "?" + request.query : ""), accept = request.accept ? ` -H 'Accept: ${request.accept}'` : "";
  if (request.file || request.artifacts) {
    const parts = request.file ? [`${request.part}=@${fileName}`] : [`request=${JSON.stringify(request.body)}`];
    for (const k in request.fields) parts.push(`${k}=${request.fields[k]}`);
    for (const file of request.artifacts ?? []) parts.push(`artifact=@${file.name}`);
    return `curl -s${key}${accept} ${url}${parts.map((p) => ` \\\n  -F ${quote(p)}`).join("")}`;
  }
  return `curl -s${key} -H 'Content-Type: application/json' ${url} -d ${quote(request.text ?? JSON.stringify(request.body, null, 1))}`;
}
