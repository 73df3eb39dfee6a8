// How the service is: what GET /status tells, every five seconds while somebody looks.
import { el, svg, bytes, count } from "./dom.js";
import { Failure, getJson } from "./ask.js";

const EVERY_MS = 5000;
let timer = null, place = null;

/** A small plot of one or two rows of numbers; the numbers are told beside it. */
function plot(label, rows, format) {
  const width = 240, height = 56, top = Math.max(1e-9, ...rows.flat());
  const point = (row) => (v, i) => `${((i / Math.max(1, row.length - 1)) * width).toFixed(1)},${(height - (v / top) * (height - 4)).toFixed(1)}`;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": `${label}, two hours; highest ${format(top > 1e-9 ? top : 0)}` });
  picture.append(svg("line", { class: "base", x1: 0, y1: height, x2: width, y2: height }));
  rows.forEach((row, nth) => {
    if (!row.length) return;
    const points = row.map(point(row)).join(" ");
    if (!nth) picture.append(svg("polygon", { class: "area", points: `0,${height} ${points} ${width},${height}` }));
    picture.append(svg("polyline", { class: nth ? "line second" : "line", points }));
  });
  return picture;
}

const tile = (title, big, hint, picture) => el("section", { class: "tile" }, el("h2", null, title), el("div", { class: "big" }, big), el("p", { class: "hint" }, hint ?? ""), picture);

function duration(s) {
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const [size, name] = units.find(([u]) => s >= u) ?? [1, "s"];
  return `${Math.floor(s / size)} ${name}`;
}

const ms = (v) => (v >= 1000 ? `${(v / 1000).toFixed(1)} s` : v >= 10 || !v ? `${Math.round(v)} ms` : `${v.toFixed(1)} ms`);

function tiles(s) {
  const points = s.history?.points ?? [], step = s.history?.step_seconds ?? 60, of = (key) => points.map((p) => Number(p[key]) || 0);
  const last = points.at(-1) ?? {}, per = (n) => `${((Number(n) || 0) / step).toFixed(1)} /s`;
  const lookups = of("lookups").reduce((a, b) => a + b, 0), computed = of("computed").reduce((a, b) => a + b, 0);
  const hits = points.map((p) => (p.lookups ? 1 - (Number(p.computed) || 0) / p.lookups : 0)), share = (v) => `${Math.round(v * 100)} %`;
  const out = [tile("State", s.state ?? "?", [s.uptime_seconds !== undefined && `for ${duration(s.uptime_seconds)}`, s.node && `node ${s.node}`].filter(Boolean).join(", "))];
  if (points.length) {
    out.push(tile("Requests", per(last.requests), "and errors, dashed", plot("Requests and errors a minute", [of("requests"), of("errors")], (v) => `${Math.round(v)} a minute`)),
      tile("Latency", ms(Number(last.p50_ms) || 0), `99 of 100 below ${ms(Number(last.p99_ms) || 0)}, dashed`, plot("Median and 99th percentile of latency", [of("p50_ms"), of("p99_ms")], ms)),
      tile("Answered from the cache", lookups ? share(1 - computed / lookups) : "–", count(lookups, "look-up") + " in two hours", plot("Share of look-ups that the cache answered", [hits], share)));
  }
  if (s.jobs) out.push(tile("Jobs", String(s.jobs.running), `${s.jobs.limit ? `of ${s.jobs.limit}; ` : ""}${s.jobs.finished_1h} ended in the last hour, ${s.jobs.failed_1h} failed`));
  if (s.pool) out.push(tile("Threads", `${s.pool.busy} / ${s.pool.threads}`, `busy; ${s.pool.queued} waiting`));
  if (s.memory) out.push(tile("Memory", bytes(s.memory.resident), `${bytes(s.memory.budget_used)} of ${bytes(s.memory.budget)} for requests`));
  if (s.disk) out.push(tile("Disk", bytes(s.disk.free), `free of ${bytes(s.disk.size)}`));
  return out;
}

function table(caption, columns, rows) {
  if (!rows?.length) return null;
  return el("div", { class: "card scroll", tabindex: "0", role: "group", "aria-label": caption }, el("table", null, el("caption", null, caption),
    el("thead", null, el("tr", null, columns.map(([name, , numeric]) => el("th", { scope: "col", class: numeric && "num" }, name)))),
    el("tbody", null, rows.map((row) => el("tr", null, columns.map(([, value, numeric]) => el("td", { class: numeric && "num" }, value(row))))))));
}

const when = (text) => (text ? text.replace("T", " ").replace(/(\.\d+)?Z$/, "") : "–");
const number = (key) => (row) => (row[key] ?? 0).toLocaleString("en");

function health(source) {
  if (source.blocked_until) return el("span", { class: "tag bad" }, `blocked until ${when(source.blocked_until)}`);
  if (source.failed_1h) return el("span", { class: "tag warn" }, "failing");
  return el("span", { class: "tag " + (source.last_success ? "good" : "calm") }, source.last_success ? "works" : "not asked yet");
}

function show(s) {
  const sources = table("Sources", [["Source", (r) => r.id], ["Type", (r) => [r.type, r.layout].filter(Boolean).join(", ")], ["Health", health], ["Found", number("ok_1h"), true],
    ["Not there", number("not_found_1h"), true], ["Failed", number("failed_1h"), true], ["Last error", (r) => (r.last_error ? `${r.last_error} (${when(r.last_error_at)})` : "–")]], s.sources);
  const caches = table("Caches", [["Cache", (r) => r.name], ["In memory", (r) => bytes(r.memory_bytes), true], ["On disk", (r) => bytes(r.disk_bytes), true], ["Files", number("disk_files"), true],
    ["Look-ups", number("lookups_1h"), true], ["Hits", (r) => (r.lookups_1h ? `${Math.round(100 * (1 - r.computed_1h / r.lookups_1h))} %` : "–"), true]], s.caches);
  const shared = table("Shared caches", [["Backend", (r) => r.backend], ["State", (r) => el("span", { class: "tag " + (r.up ? "good" : "bad") }, r.up ? "works" : "down")], ["Last error", (r) => r.last_error ?? "–"]], s.shared);
  const processes = table("Processes", [["Node", (r) => r.node], ["State", (r) => `${r.state}, for ${duration(r.uptime_seconds)}`], ["Jobs", (r) => r.jobs?.running ?? "–", true],
    ["Busy threads", (r) => (r.pool ? `${r.pool.busy} / ${r.pool.threads}` : "–"), true], ["Memory", (r) => bytes(r.memory?.resident ?? 0), true]], s.processes);
  const boxes = [processes, sources, caches, shared].filter(Boolean).map((t) => el("div", { class: "tiles" }, t));
  place.replaceChildren(el("div", { class: "tiles" }, tiles(s)), ...boxes, el("p", { class: "hint" }, `symloom ${s.version ?? ""}${s.commit ? `, commit ${s.commit}` : ""}. Numbers without a time are of the last hour.`));
}

async function ask() {
  try {
    show(await getJson("/status"));
  } catch (error) {
    place.replaceChildren(el("p", { class: "notice bad" }, error instanceof Failure ? error.message : "The service cannot be reached."));
  }
}

/** Into `where`, for as long as `wanted()` says so. */
export function showStatus(where, wanted) {
  clearInterval(timer);
  place = where;
  ask();
  timer = setInterval(() => {
    if (!wanted()) clearInterval(timer);
    else if (document.visibilityState === "visible") ask();
  }, EVERY_MS);
}
