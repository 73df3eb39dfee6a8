// What the page makes of an input against what the command makes of it: the same kind, the same frames, the same text.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import assert from "node:assert/strict";

const SCRIPT = `(()=>{function r(o){if(o.left<1)throw new Error("sold out")}function t(o){o.forEach(r)}t([{left:0}]);})();
//# sourceMappingURL=app.min.js.map
`;
const MAP = JSON.stringify({ version: 3, sources: ["app.js"], names: ["checkStock", "item", "order", "items"],
  mappings: "MAAA,SAASA,EAAWC,EAAM,CACxB,GAAIA,EAAK,KAAO,EAAG,MAAM,IAAI,MAAM,UAAU,CAC/C,CAEO,SAASC,EAAMC,EAAO,CAC3BA,EAAM,QAAQH,CAAU,CAC1B,CAEAE,EAAM,CAAC,CAAC,KAAM,CAAC,CAAC,CAAC" });
const MAPPING = `com.example.Shop -> a.b:
    1:1:void com.example.Stock.check(int):7:7 -> c
    1:1:void order(java.util.List):20 -> c
    12:12:void main(java.lang.String[]):31:31 -> d
com.example.SoldOut -> a.e:
    3:3:com.example.SoldOut of(java.lang.String):12:12 -> a
`;
const SCRIPTS = { "app.min.js": SCRIPT, "app.min.js.map": MAP }, MAPPINGS = { "mapping.txt": MAPPING };
const UNCAUGHT = `/srv/app.min.js:1
(()=>{function r(o){if(o.left<1)throw new Error("sold out")}})();
                                ^

Error: sold out
    at r (/srv/app.min.js:1:39)
    at Array.forEach (<anonymous>)
    at t (/srv/app.min.js:1:77)
    at async Promise.all (index 0)
    at /srv/app.min.js:1:88
    at Object.<anonymous> (/srv/app.min.js:1:104)
    at node:internal/main/run_main_module:28:49 {
  code: 'SOLD_OUT',
  [cause]: Error: empty
      at t (/srv/app.min.js:1:77)
}

Node.js v20.20.2
`;
const TRACE = `Exception in thread "main" java.lang.IllegalStateException: no stock
	at a.b.c(SourceFile:1)
	at a.b.d(Unknown Source:12)
	at java.lang.reflect.Method.invoke(Native Method)
	at java.base/java.lang.Thread.run(Thread.java:833)
	... 5 more
	Suppressed: a.e: closing
		at a.e.a(SourceFile:3)
Caused by: a.e: sold out
	at a.e.a(SourceFile:3)
	... 2 more
`;
const logcat = (text) => text.replace(/^/gm, "11-28 02:39:07.123  4711  4711 E AndroidRuntime: ");

const PROFILE = { meta: { version: 29, preprocessedProfileVersion: 48, interval: 1, startTime: 0, product: "shapes", categories: [{ name: "Other", color: "grey", subcategories: ["Other"] }] },
  libs: [{ arch: "x86_64", name: "shapes", path: "/srv/shapes", debugName: "shapes", debugPath: "/srv/shapes", breakpadId: "771E29AE70984DE9808E784491B032790", codeId: "ae291e779870e94d808e784491b03279b71ef555" }],
  threads: [{ name: "main", isMainThread: true, processType: "default", processStartupTime: 0, registerTime: 0, pausedRanges: [], pid: "1", tid: 1, stringArray: ["0x1106", "0x1111", "shapes"],
    samples: { length: 3, stack: [1, 1, 0], time: [1, 2, 3], weight: [1, 1, 1], weightType: "samples" }, stackTable: { length: 2, prefix: [null, 0], frame: [1, 0] },
    frameTable: { length: 2, address: [4358, 4369], inlineDepth: [0, 0], category: [0, 0], subcategory: [0, 0], func: [0, 1], nativeSymbol: [null, null], innerWindowID: [0, 0], line: [null, null], column: [null, null] },
    funcTable: { length: 2, name: [0, 1], isJS: [false, false], relevantForJS: [false, false], resource: [0, 0], fileName: [null, null], lineNumber: [null, null], columnNumber: [null, null] },
    resourceTable: { length: 1, lib: [0], name: [2], host: [null], type: [1] }, nativeSymbols: { length: 0, libIndex: [], address: [], name: [], functionSize: [] }, markers: { length: 0 } }] };

const SYMBOLS = { "shapes.sym": "MODULE Linux x86_64 771E29AE70984DE9808E784491B032790 shapes\nFILE 0 /src/shapes.cc\nFUNC 1100 8 0 area\n1100 8 7 0\nFUNC 1108 10 0 main\n1108 10 9 0\n" };
const SAMPLES = `Analysis of sampling app (pid 3) every 1 millisecond
Process:         app [3]
Call graph:
    9 Thread_955462   DispatchQueue_1: com.apple.main-thread  (serial)
    + 9 start  (in dyld) + 596  [0x180000254]
    +   2 ???  (in app)  load address 0x108000000 + 0x5  [0x108000005]

Binary Images:
       0x108000000 -        0x108ffffff +app (0) <2d903291-397d-3d14-bfca-52c7fb8c5e00> /Apps/app
`;
const SAMPLE_SYMBOLS = { "app.sym": "MODULE mac x86_64 2D903291397D3D14BFCA52C7FB8C5E000 app\nFILE 0 /src/app.m\nFUNC 0 20 0 -[App stop]\n0 20 7 0\n" };

/** Our own: name, text, files that come with it. */
const OWN = [
  ["uncaught", UNCAUGHT, SCRIPTS], ["firefox", "r@https://shop.example/app.min.js:1:39\nt@https://shop.example/app.min.js:1:77\n@https://shop.example/app.min.js:1:88\n", SCRIPTS],
  ["windows line ends", UNCAUGHT.replaceAll("\n", "\r\n"), SCRIPTS], ["a log", UNCAUGHT.replace(/^/gm, "web-1  | "), SCRIPTS],
  ["a string of JSON", `web {"level":"error","stack":"Error: x\\n    at r (/srv/app.min.js:1:39)\\n    at t (/srv/app.min.js:1:77)"}\n`, SCRIPTS],
  ["hermes", "Error: x\n    at r (address at index.android.bundle:1:22)\n    at native\n", {}], ["no end of line", "Error: x\n    at r (/srv/app.min.js:1:39)", SCRIPTS],
  ["trace", TRACE, MAPPINGS], ["logcat", logcat("FATAL EXCEPTION: main\nProcess: com.example, PID: 4711\n" + TRACE), MAPPINGS], ["trace, windows line ends", TRACE.replaceAll("\n", "\r\n"), MAPPINGS],
  ["a trace in a log", `INFO  started\n2026-11-28 12:00:00 ERROR [main] c.e.Main - oops\n${TRACE}INFO  ended\n`, MAPPINGS],
  ["UTF-16", Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(TRACE, "utf16le")]), MAPPINGS],
  ["nothing known", "hello\nworld\n", {}], ["an event", JSON.stringify({ platform: "native", exception: { values: [{ stacktrace: { frames: [{ instruction_addr: "0x401010" }, { instruction_addr: "0x401000" }] } }] },
    debug_meta: { images: [{ type: "elf", code_id: "00".repeat(20), image_addr: "0x400000", image_size: 16384 }] } }), {}],
  ["a profile", JSON.stringify(PROFILE), SYMBOLS], ["a profile in lines", JSON.stringify(PROFILE, null, 2).replaceAll("\n", "\r\n"), SYMBOLS], ["a profile, packed", gzipSync(JSON.stringify(PROFILE)), SYMBOLS],
  ["samples", SAMPLES, SAMPLE_SYMBOLS], ["a request", JSON.stringify({ stacktraces: [{ frames: [{ instruction_addr: "0x1000" }] }], modules: [{ type: "elf", image_addr: "0x1000" }] }), {}],
];

function filesBelow(folder) {
  return readdirSync(folder, { recursive: true }).sort().map((name) => path.join(folder, name)).filter((file) => statSync(file).isFile() && !/(^|\/)(repro\.sh|expected\.txt)$/.test(file));
}

const PROGRAMS = /\.(py|c|cc|s|asm|ld|lds|o|yml|sh|md)$/; // what makes inputs

/** What the command says: {text}, {answer}, or {} of what it does not read. */
function command(symloom, file, places, mapping) {
  const text = (bytes) => new TextDecoder(bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : "utf-8").decode(bytes);
  const run = (...more) => {
    const { status, stdout, stderr } = spawnSync(symloom, ["symbolicate", "--no-network", "--no-scrape", ...more], { maxBuffer: 1 << 28 });
    return { status, stdout: text(stdout), stderr: text(stderr) };
  };
  let { status, stdout, stderr } = run(file, "--symbols", places);
  if (status === 3 && /neither a minidump|looks like a Java/.test(stderr)) ({ status, stdout, stderr } = run(file, "--mapping", mapping));
  if (status !== 0) return { refused: stderr };
  return /^\{/.test(stdout) ? { answer: JSON.parse(stdout), text: stdout } : { text: stdout };
}

/** What POST /symbolicate-text answers for the text with these files. */
async function answered(url, text, files) {
  const form = new FormData();
  form.append("text", new Blob([text]), "text"); // strings get other line ends
  for (const [name, data] of files) form.append("artifact", new Blob([data]), name);
  const response = await fetch(`${url}/symbolicate-text`, { method: "POST", body: form });
  assert.equal(response.status, 200);
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await response.arrayBuffer());
}

/** Every text of test/texts.py by command, API and page. Returns what differs, and how many the page has shown. What the page takes for a file of another kind, such as a report
 * of Apple's, or for nothing, is compared by command and API alone. */
export async function compareTexts(page, options, tools) {
  const differ = [];
  let shown = 0;
  for (const { name, text, names, folder, mappings, is_case } of options.texts) {
    const given = path.join(options.work, "text.in"), files = readdirSync(folder).map((file) => [file, readFileSync(path.join(folder, file))]);
    writeFileSync(given, text);
    const words = [...mappings.flatMap((file) => ["--mapping", path.join(folder, file)]), ...(is_case ? ["--type", "text", "--format", "text"] : [])];
    const { stdout } = spawnSync(options.symloom, ["symbolicate", given, "--symbols", folder, ...words], { encoding: "utf8", maxBuffer: 1 << 28 });
    try {
      assert.deepEqual(names.filter((n) => !stdout.includes(n)), [], "names that the command does not find");
      assert.equal(await answered(options.url, text, files), stdout, "the API");
      const found = await tools.take(page, [["text.log", text], ...files]);
      assert.ok(found.answer?.formats || is_case, `the page takes it for ${found.kind}: ${found.problem}`);
      if (found.answer?.formats) {
        assert.equal(found.text, stdout.replace(/^\uFEFF/, ""), "the page"); // browsers read texts without their mark
        shown++;
      }
    } catch (error) {
      differ.push(`${name}: ${error.message}`);
    }
  }
  return { differ, shown };
}

const counts = (answer) => (answer.stacktraces ?? answer.results?.flatMap((r) => r.stacks.map((frames) => ({ frames }))) ?? []).map((t) => t.frames.length);

/** Every input, by `tools` of page.mjs, which drop files on a page and symbolicate. Returns what differs, and how many came back with names. */
export async function compareInputs(page, options, tools) {
  const work = path.join(options.work, "inputs"), empty = path.join(work, "empty"), nothing = path.join(work, "nothing.txt");
  mkdirSync(empty, { recursive: true });
  writeFileSync(nothing, "com.example.Nothing -> zzz.zz:\n");
  const inputs = OWN.map(([name, text, files]) => {
    const folder = path.join(work, name);
    mkdirSync(folder);
    for (const file in files) writeFileSync(path.join(folder, file), files[file]);
    const given = path.join(work, `${name}.in`);
    writeFileSync(given, text);
    return { name, given, folder, files: Object.entries(files), mapping: files["mapping.txt"] ? path.join(folder, "mapping.txt") : nothing };
  });
  if (options.cases) for (const given of filesBelow(options.cases).filter((file) => !PROGRAMS.test(file))) inputs.push({ name: path.relative(options.cases, given), given, folder: empty, files: [], mapping: nothing });
  const differ = [];
  let seen = 0, named = 0;
  for (const { name, given, folder, files, mapping } of inputs) {
    const expected = command(options.symloom, given, folder, mapping);
    const found = await tools.take(page, [["input", readFileSync(given)], ...files]);
    seen++;
    try {
      if (expected.refused !== undefined) { // the page also reads addresses with their modules
        assert.ok(!found.kind || found.kind === "native" || found.problem, `the page reads ${found.kind}, the command says: ${expected.refused}`);
      } else if ((expected.answer?.meta && expected.answer.threads) || found.named !== undefined) {
        assert.deepEqual([found.problem, found.named], [undefined, expected.text], "the file with names");
        named += Object.keys(files).length > 0 && found.named !== readFileSync(given, "utf8");
      } else if (expected.answer) {
        assert.equal(found.problem, undefined);
        assert.deepEqual(counts(found.answer), counts(expected.answer), "frames");
      } else if (found.kind === "js" || found.kind === "jvm") {
        assert.equal(found.text, expected.text);
      } else { // a text without a frame goes through the command as it is
        assert.equal(expected.text.trim(), readFileSync(given, "utf8").trim(), `the page reads ${found.kind ?? "nothing"}`);
      }
    } catch (error) {
      differ.push(`${name}: ${error.message}`);
    }
  }
  return { seen, named, differ };
}
