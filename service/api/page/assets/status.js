// The state of the service: shows GET /status, every five seconds while the view is visible.
import { el, svg, bytes, count } from "./dom.js";
import { Failure, getJson } from "./ask.js";

const EVERY_MS = 5000;
let timer = null, place = null;

const WIDTH = 240, HEIGHT = 56;

/** The pieces of a row without its gaps: where nothing was asked there is nothing to show. */
function pieces(row) {
  const found = [];
  row.forEach((v, i) => {
    if (v === null) return;
    if (i && row[i - 1] !== null && found.length) found.at(-1).push(i);
    else found.push([i]);
  });
  return found;
}

/** A small plot of one or two rows of numbers with its axes. Below it stand the values at the pointer, with the `names` of the rows. */
function plot(label, names, rows, times, format, top) {
  const seen = rows.flat().filter((v) => v !== null), most = Math.max(top ?? 0, ...seen), high = most || 1, last = Math.max(1, times.length - 1);
  const x = (i) => (i / last) * WIDTH, y = (v) => HEIGHT - (v / high) * (HEIGHT - 2);
  const at = (row) => (i) => `${x(i).toFixed(1)},${y(row[i]).toFixed(1)}`;
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${label}, two hours; highest ${format(most)}` });
  picture.append(svg("line", { class: "base", x1: 0, y1: HEIGHT, x2: WIDTH, y2: HEIGHT }), svg("line", { class: "base", x1: 0, y1: 0, x2: 0, y2: HEIGHT }));
  rows.forEach((row, nth) => {
    for (const piece of pieces(row)) {
      const points = piece.length > 1 ? piece.map(at(row)) : [at(row)(piece[0]), `${(x(piece[0]) + 1).toFixed(1)},${y(row[piece[0]]).toFixed(1)}`];
      if (!nth) picture.append(svg("polygon", { class: "area", points: `${x(piece[0]).toFixed(1)},${HEIGHT} ${points.join(" ")} ${x(piece.at(-1)).toFixed(1)},${HEIGHT}` }));
      picture.append(svg("polyline", { class: nth ? "line second" : "line", points: points.join(" ") }));
    }
  });
  const mark = svg("line", { class: "mark", x1: 0, y1: 0, x2: 0, y2: HEIGHT, visibility: "hidden" }), readout = el("p", { class: "readout hint" }, "");
  picture.append(mark);
  const point = (i) => {
    mark.setAttribute("visibility", "visible");
    mark.setAttribute("x1", x(i));
    mark.setAttribute("x2", x(i));
    readout.textContent = `${clock(times[i])}: ${rows.map((row, nth) => `${names[nth]} ${row[i] === null ? "–" : format(row[i])}`).join(", ")}`;
  };
  picture.addEventListener("pointermove", (event) => point(Math.min(times.length - 1, Math.max(0, Math.round((event.offsetX / picture.clientWidth) * last)))));
  picture.addEventListener("pointerleave", () => { mark.setAttribute("visibility", "hidden"); readout.textContent = ""; });
  return el("div", { class: "plot" }, el("span", { class: "axis highest" }, format(high)), picture, el("span", { class: "axis lowest" }, format(0)),
    el("span", { class: "axis first" }, clock(times[0])), el("span", { class: "axis last" }, "now"), readout);
}

const clock = (time) => (time ? new Date(time).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" }) : "");

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
  const times = points.map((p) => p.t), asked = (key) => points.map((p) => (p[key] === null || p[key] === undefined ? null : Number(p[key])));
  const hits = points.map((p) => (p.lookups ? Math.max(0, 1 - (Number(p.computed) || 0) / p.lookups) : null)), share = (v) => `${Math.round(v * 100)} %`;
  const out = [tile("State", s.state ?? "?", [s.uptime_seconds !== undefined && `for ${duration(s.uptime_seconds)}`, s.node && `node ${s.node}`].filter(Boolean).join(", "))];
  if (points.length) {
    out.push(tile("Requests", per(last.requests), "per minute; dashed: errors", plot("Requests and errors per minute", ["requests", "errors"], [of("requests"), of("errors")], times, (v) => `${Math.round(v)}`, 10)),
      tile("Latency", ms(Number(last.p50_ms) || 0), `median; dashed: 99th percentile, ${ms(Number(last.p99_ms) || 0)}`, plot("Median and 99th percentile of latency", ["median", "99 %"], [asked("p50_ms"), asked("p99_ms")], times, ms, 1)),
      tile("Cache hit rate", lookups ? share(1 - computed / lookups) : "–", count(lookups, "lookup") + " in the last two hours", plot("Share of lookups answered from the cache", ["cache hits"], [hits], times, share, 1)));
  }
  if (s.jobs) out.push(tile("Jobs", String(s.jobs.running), `${s.jobs.limit ? `of ${s.jobs.limit}; ` : ""}${s.jobs.finished_1h} finished in the last hour, ${s.jobs.failed_1h} failed`));
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
  if (source.up === false) return el("span", { class: "tag bad" }, "down");
  if (source.failed_1h) return el("span", { class: "tag warn" }, "sometimes failing");
  return el("span", { class: "tag " + (source.last_success ? "good" : "calm") }, source.last_success ? "works" : "not used yet");
}

function show(s) {
  const sources = table("Sources", [["Source", (r) => r.id], ["Type", (r) => [r.type, r.layout].filter(Boolean).join(", ")], ["Health", health], ["Found", number("ok_1h"), true],
    ["Not found", number("not_found_1h"), true], ["Failed", number("failed_1h"), true], ["Last error", (r) => (r.last_error ? `${r.last_error} (${when(r.last_error_at)})` : "–")]], s.sources);
  const caches = table("Caches", [["Cache", (r) => r.name], ["In memory", (r) => bytes(r.memory_bytes), true], ["On disk", (r) => bytes(r.disk_bytes), true], ["Files", number("disk_files"), true],
    ["Lookups", number("lookups_1h"), true], ["Hits", (r) => (r.lookups_1h ? `${Math.round(100 * (1 - r.computed_1h / r.lookups_1h))} %` : "–"), true]], s.caches);
  const shared = table("Shared caches", [["Backend", (r) => r.backend], ["State", (r) => el("span", { class: "tag " + (r.up ? "good" : "bad") }, r.up ? "works" : "down")], ["Last error", (r) => r.last_error ?? "–"]], s.shared);
  const processes = table("Processes", [["Node", (r) => r.node], ["State", (r) => `${r.state}, for ${duration(r.uptime_seconds)}`], ["Jobs", (r) => r.jobs?.running ?? "–", true],
    ["Busy threads", (r) => (r.pool ? `${r.pool.busy} / ${r.pool.threads}` : "–"), true], ["Memory", (r) => bytes(r.memory?.resident ?? 0), true]], s.processes);
  const boxes = [processes, sources, caches, shared].filter(Boolean).map((t) => el("div", { class: "tiles" }, t));
  const deaths = s.deaths?.count ? [el("p", { class: "notice bad" }, `${count(s.deaths.count, "process", "processes")} died since the start; last: ${s.deaths.last_why} at ${when(s.deaths.last)}`)] : [];
  place.replaceChildren(...deaths, el("div", { class: "tiles" }, tiles(s)), ...boxes, el("p", { class: "hint" }, `symloom ${s.version ?? ""}${s.commit ? `, commit ${s.commit}` : ""}. Numbers without a time range are for the last hour.`));
}

async function ask() {
  try {
    const s = await getJson("/status");
    if (!place.querySelector(".plot:hover")) show(s); // nobody reads a plot just now
  } catch (error) {
    place.replaceChildren(el("p", { class: "notice bad" }, error instanceof Failure ? error.message : "Cannot reach the service."));
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
