// Elements. Texts become text nodes, whatever they contain: nothing is ever parsed as HTML.

export function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const key in attributes) {
    const value = attributes[key];
    if (value === undefined || value === null || value === false) continue;
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false && child !== ""));
  return node;
}

export function svg(name, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  node.append(...children);
  return node;
}

export const $ = (id) => document.getElementById(id);

/** A link to an address of the web; any other text stays a text. */
export function link(address) {
  let url;
  try { url = new URL(address); } catch { return document.createTextNode(address); }
  if (url.protocol !== "https:" && url.protocol !== "http:") return document.createTextNode(address);
  return el("a", { href: url.href, rel: "noopener noreferrer", target: "_blank" }, address);
}

export const count = (n, one, many = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

export function bytes(n) {
  if (!Number.isFinite(n)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; unit++) n /= 1024;
  return `${unit && n < 10 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // only secure contexts have a clipboard
    const area = el("textarea", { class: "skip", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
