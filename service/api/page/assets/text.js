// Stacks as text. The service says what the frames are (POST /page/read); here they are sorted into stacks, and written back into
// the text that they stood in, of which nothing else changes. Pure.

/** Lines that stand between the frames of a stack: of native code, of what was cut off. */
const INSIDE = /(?:^|[\s|])at\s+\S.*\(|\.\.\. \d+ (?:more|common frames)|^\s*#\d+\s/;
const HEADLINE = /ERROR: \w*Sanitizer|^signal \d+ |received signal |terminated with signal |^TID \d+|^Thread \d+ \(/;
const LOG_PREFIX = /^\d\d-\d\d \d\d:\d\d:\d\d\.\d+\s+\d+\s+\d+ \w \S+\s*: */;

/** The parts of a text as lines: a frame, or pieces of text and names of classes. */
function linesOf(parts) {
  const lines = [];
  let open = null;
  for (const part of parts) {
    if (part.text !== undefined) {
      open = null;
      lines.push({ frame: part });
      continue;
    }
    for (const piece of typeof part === "string" ? part.match(/[^\n]*\n|[^\n]+$/g) ?? [] : [part]) {
      if (!open) lines.push(open = { pieces: [] });
      open.pieces.push(piece);
      if (typeof piece === "string" && piece.endsWith("\n")) open = null;
    }
  }
  return lines;
}

export const lineText = (line, classes) => line.pieces.map((p) => (typeof p === "string" ? p : classes?.[p.class] ?? p.class)).join("");
export const titleText = (line, classes) => (line ? lineText(line, classes).trim().replace(LOG_PREFIX, "") : "");

/** The stacks of a text: `title` is a line in front of the frames, `lines` are the others. `all`: every line of the text. */
export function stacksOf(parts) {
  const all = linesOf(parts), stacks = [];
  let waiting = [], stack = null; // lines of which nobody knows yet what stack they are of
  for (const line of all) {
    if (!line.frame) {
      if (stack && !waiting.length && INSIDE.test(lineText(line))) stack.lines.push(line);
      else if (lineText(line).trim()) waiting.push(line);
      continue;
    }
    if (!stack || waiting.length) {
      const title = waiting.find((l) => HEADLINE.test(lineText(l))) ?? waiting.findLast((l) => !INSIDE.test(lineText(l)));
      stacks.push(stack = { title, lines: waiting.filter((l) => l !== title) });
    }
    waiting = [];
    stack.lines.push(line);
  }
  stack?.lines.push(...waiting);
  return { all, stacks };
}

/** The whole text, with what frames and classes are now. */
export const wholeText = (text, classes) => text.all.map((line) => (line.frame ? line.now ?? line.frame.text : lineText(line, classes))).join("");

const escape = (text, times) => (times ? text.replace(/["\\]/g, (c) => "\\".repeat(2 ** Math.min(times, 4) - 1) + c) : text);

/** A frame of JavaScript as its engine writes it, with the name and the place of `now`; nobody knows names without the script. */
export function jsLine(f, now) {
  const name = now.function && now.function !== "<unknown>" ? escape(now.function, f.escapes) : f.function;
  const drive = /^[A-Za-z]:/.test(f.url) && /^\/[A-Za-z]:/.test(now.url);
  const place = `${escape(drive ? now.url.slice(1) : now.url, f.escapes)}:${now.line}:${now.column}`;
  const braces = f.v8 && (name || f.constructor);
  return f.before + (f.constructor && !name.startsWith("new ") ? "new " : "") + name + (!f.v8 ? "@" : !braces ? "" : name ? " (" : "(") + place + (braces ? ")" : "") + f.behind;
}

/** A line of a JVM's trace. */
export const jvmLine = (f, now) => `${f.head}${now.module}.${now.function}${f.gap}(${now.file ?? ""}${now.line ? `:${now.line}` : ""}${f.rest}${f.end}`;

/** The URL that a frame of JavaScript means: without what colours it, and with slashes. */
export const plainUrl = (url) => url.replace(/\x1b\[[\d;]*m/g, "").replace(/\\+/g, "/");

const placeOf = (f) => (f.path ? `${f.path}${f.line ? `:${f.line}` : ""}` : "");

/** A line of a native stack: `calls` are the frames that it is. Sanitizers number them anew, `next` from there on. */
export function nativeLine(f, calls, next) {
  const end = /\r?\n$/.exec(f.text)?.[0] ?? "", line = f.text.slice(0, f.text.length - end.length);
  const known = calls.filter((c) => c.ok);
  if (f.sanitizer) {
    if (!known.length) return line.replace(/#\d+/, `#${next}`) + end;
    return known.map((c, i) => `${f.sanitizer}#${next + i} ${f.address} in ${c.fn} ${placeOf(c)}`.trimEnd() + (end || "\n")).join("");
  }
  return known.reduce((text, c, i) => `${text}${i ? `${/^\s*/.exec(line)[0]}  (inlined by)` : " "} ${c.fn}${c.path ? ` (${placeOf(c)})` : ""}${end || "\n"}`, known.length ? line : line + end);
}
