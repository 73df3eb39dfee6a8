// The page as people use it. Each test gets a browser page of its own, which must end without an error, a violation of the
// policy, or a request to anywhere else.
import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import assert from "node:assert/strict";
import { compareInputs, compareTexts } from "./inputs.mjs";

const options = JSON.parse(process.argv[2]);
const require = createRequire(path.join(options.npm, "node_modules", "x.js"));
const puppeteer = require("puppeteer-core").default ?? require("puppeteer-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const HOSTILE = `<script>hacked=1</script><img src=x onerror=hacked=1>"'&`;
const WIDE = { width: 1180, height: 900 };

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
  userDataDir: mkdtempSync(path.join(options.work, "chromium-")),
});

async function open(hash = "") {
  const context = await browser.createBrowserContext(), page = await context.newPage(), wrong = [];
  page.on("pageerror", (e) => wrong.push(`error: ${e.message}`));
  page.on("console", (m) => { if (m.type() === "error" && !/status of 4\d\d/.test(m.text())) wrong.push(`console: ${m.text()}`); });
  page.on("request", (r) => { if (!r.url().startsWith(options.url) && !r.url().startsWith(options.bare) && !r.url().startsWith("blob:")) wrong.push(`request: ${r.url()}`); });
  await page.evaluateOnNewDocument(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (e) => window.violations.push(`${e.violatedDirective} ${e.blockedURI}`));
  });
  await page.setViewport(WIDE);
  await page.goto(options.url + "/" + hash, { waitUntil: "load" });
  await page.waitForSelector("html.on");
  page.end = async () => {
    wrong.push(...await page.evaluate(() => window.violations.map((v) => "policy: " + v)));
    await context.close();
    assert.deepEqual(wrong, []);
  };
  return page;
}

const fixture = (name) => readFileSync(path.join(options.corpus, name));
const textOf = (page, selector) => page.$eval(selector, (e) => e.textContent);

/** What a drop of files does. */
async function drop(page, ...files) {
  await page.evaluate((list) => {
    const data = new DataTransfer();
    for (const [name, base64] of list) data.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name));
    for (const type of ["dragenter", "dragover", "drop"]) document.body.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
  }, files.map(([name, data]) => [name, Buffer.from(data).toString("base64")]));
}

async function paste(page, text) {
  await page.$eval("#text", (e, t) => { e.value = t; e.dispatchEvent(new Event("input", { bubbles: true })); }, text);
}

async function recognised(page, kind) {
  await page.waitForFunction((k) => document.getElementById("kind").value === k, { timeout: 10000 }, kind)
    .catch(async () => assert.equal(await page.$eval("#kind", (e) => e.value), kind));
}

async function symbolicate(page) {
  await page.click("#send");
  await shown(page);
}

async function shown(page) {
  await page.waitForFunction(() => !document.getElementById("result").hidden || document.querySelector("#progress .bad"), { timeout: 60000 });
  assert.equal(await page.evaluate(() => document.querySelector("#progress .bad")?.textContent), undefined);
}

const names = (page) => page.$$eval("#result .frame .fn", (all) => all.map((e) => e.textContent));

async function accessible(page, what) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.map((v) =>
    `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join("; ")}`)));
  assert.deepEqual(found, [], what);
}

async function noSideways(page, what) {
  const [wide, view] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(wide <= view, `${what}: ${wide} px are shown in ${view}`);
}

async function example(page, name) {
  await page.select("#example", name);
  await shown(page);
}

// ---- answers made by hand ----

const NATIVE = { stacktraces: [{ frames: [{ instruction_addr: "0x1000" }] }], modules: [{ type: "elf", image_addr: "0x1000" }] };

/** The next request is answered with this. */
async function answerWith(page, answer) {
  await page.setRequestInterception(true);
  page.on("request", (r) => {
    if (r.isInterceptResolutionHandled()) return;
    if ((r.method() === "POST" && !r.url().includes("/page/read")) || /\/status$/.test(r.url())) r.respond({ status: 200, contentType: "application/json", body: JSON.stringify(answer) });
    else r.continue();
  });
}

const hostileFrame = (i, status) => ({
  status, original_index: i, instruction_addr: "0x1000", package: HOSTILE, lang: HOSTILE, symbol: HOSTILE, function: HOSTILE + i, filename: HOSTILE, abs_path: "javascript:" + HOSTILE,
  lineno: 7, pre_context: [HOSTILE], context_line: HOSTILE, post_context: [HOSTILE], source_link: "javascript:hacked=1", trust: HOSTILE,
});
const HOSTILE_ANSWER = {
  status: "completed", timestamp: 0, signal: HOSTILE, system_info: { os_name: HOSTILE, os_version: HOSTILE, os_build: HOSTILE, cpu_arch: HOSTILE, device_model: HOSTILE }, crashed: true,
  crash_reason: HOSTILE, crash_details: HOSTILE, assertion: HOSTILE,
  stacktraces: [{ thread_id: HOSTILE, thread_name: HOSTILE, is_requesting: true, registers: { [HOSTILE]: HOSTILE },
    frames: ["symbolicated", "missing", "missing_symbol", "malformed", "unknown_image", HOSTILE].map((status, i) => hostileFrame(i, status)) }],
  modules: [{ debug_status: HOSTILE, unwind_status: HOSTILE, features: { [HOSTILE]: true }, arch: HOSTILE, type: HOSTILE, code_id: HOSTILE, code_file: HOSTILE, debug_id: HOSTILE, debug_file: HOSTILE,
    image_addr: "0x1000", image_size: 4096, candidates: [{ source: HOSTILE, location: "javascript:" + HOSTILE, download: { status: HOSTILE, details: HOSTILE }, debug: { status: "error", details: HOSTILE } },
      { source: HOSTILE, location: "https://example.com/" + HOSTILE, download: { status: "ok" } }] }],
};
const HOSTILE_JS = { status: "completed", stacktraces: [{ frames: [{ function: HOSTILE, filename: HOSTILE, module: HOSTILE, abs_path: HOSTILE, lineno: 1, colno: 2, context_line: HOSTILE, data: { symbolicated: false } }] }],
  raw_stacktraces: [{ frames: [{ abs_path: HOSTILE, lineno: 1 }] }], errors: [{ abs_path: HOSTILE, type: HOSTILE }, { abs_path: HOSTILE, type: "missing_source_content", source: HOSTILE, sourcemap: HOSTILE }],
  scraping_attempts: [{ url: HOSTILE, status: "failure", reason: HOSTILE, details: HOSTILE }] };
const HOSTILE_JVM = { status: "completed", exceptions: [], classes: { [HOSTILE]: HOSTILE }, errors: [{ uuid: HOSTILE, type: HOSTILE, detail: HOSTILE }, { artifact: HOSTILE, type: "invalid" }],
  stacktraces: [{ exception: { type: HOSTILE, module: HOSTILE }, frames: [{ function: HOSTILE, module: HOSTILE, filename: HOSTILE, abs_path: HOSTILE, lineno: 1, index: 0, signature: HOSTILE }] }] };
const HOSTILE_MOZILLA = { results: [{ stacks: [[{ frame: 0, module: HOSTILE, module_offset: HOSTILE, function: HOSTILE, file: HOSTILE, line: 1, inlines: [{ function: HOSTILE, file: HOSTILE, line: 2 }] }]], found_modules: { [HOSTILE]: true } }] };

function manyFrames(count) {
  const frames = Array.from({ length: count }, (_, i) => ({ status: i % 7 ? "symbolicated" : "missing", original_index: i, instruction_addr: "0x" + (0x1000 + i).toString(16), package: "/usr/lib/libshop.so",
    function: i % 7 ? `shop::order::check_stock_${i}` : undefined, filename: "order.cc", abs_path: "/src/shop/order.cc", lineno: i, context_line: "    check(stock);", pre_context: ["{"], post_context: ["}"], trust: "cfi" }));
  return { status: "completed", stacktraces: [{ thread_id: 1, is_requesting: true, frames }], modules: [{ debug_status: "found", features: {}, arch: "x86_64", type: "elf", code_file: "/usr/lib/libshop.so", image_addr: "0x1000", image_size: 1e6 }] };
}

const JS_STACK = `TypeError: Cannot read properties of undefined
    at r (https://shop.example/app.min.js:1:39)
    at async Promise.all (index 0)
    at https://shop.example/app.min.js:1:77
`;
const FIREFOX_STACK = "r@https://shop.example/app.min.js:1:39\n@https://shop.example/app.min.js:1:88\n";
const JVM_STACK = `Exception in thread "main" java.lang.IllegalStateException: no stock
\tat a.b.c(SourceFile:1)
\tat java.base/java.lang.Thread.run(Thread.java:833)
Caused by: a.e: sold out
\t... 2 more
`;
const IPS = JSON.stringify({ app_name: "shop", bug_type: "309", incident_id: "1" }) + "\n" + JSON.stringify({ cpuType: "ARM-64", procName: "shop", faultingThread: 0,
  exception: { type: "EXC_BAD_ACCESS", signal: "SIGSEGV" }, threads: [{ id: 1, triggered: true, frames: [{ imageOffset: 16, imageIndex: 0 }] }],
  usedImages: [{ base: 4294967296, size: 16384, uuid: "11111111-2222-3333-4444-555555555555", name: "shop", path: "/Applications/shop", arch: "arm64" }] }, null, 2);
const JS_EVENT = { platform: "javascript", release: "1", exception: { values: [{ type: "Error", value: "sold out", stacktrace: { frames: [{ function: "r", abs_path: "https://shop.example/app.min.js", lineno: 1, colno: 39 }] } }] } };
const JVM_EVENT = { platform: "java", exception: { values: [{ type: "X", module: "a", value: "v", stacktrace: { frames: [{ function: "c", module: "a.b", lineno: 1 }] } }] }, debug_meta: { images: [{ type: "proguard", uuid: "246fb328-fc4e-406a-87ff-fc35f6149d8f" }] } };
const NATIVE_EVENT = { platform: "native", exception: { values: [{ type: "SIGSEGV", thread_id: 3, stacktrace: { frames: [{ instruction_addr: "0x401010" }, { instruction_addr: "0x401000" }] } }] },
  debug_meta: { images: [{ type: "elf", code_id: "00".repeat(20), image_addr: "0x400000", image_size: 4096 * 4, code_file: "/usr/bin/shop" }] } };
const ADDRESSES = "shop 0123456789abcdef0123456789abcdef01234567 0x400000 0x500000\n0x401000\nshop+0x1234\nlibc.so.6+0x20\n";
const MAPPING = "com.example.Shop -> a.b:\n    1:1:void com.example.Stock.check(int):7:7 -> c\n    1:1:void order(java.util.List):20 -> c\n";
const MOZILLA = { jobs: [{ memoryMap: [["xul.pdb", "44E4EC8C2F41492B9369D6B9A059577C2"]], stacks: [[[0, 11723767]]] }] };

/** What becomes of these files: {kind}, and of what was read {answer, text} or the {problem}. */
async function take(page, files) {
  await page.goto("about:blank");
  await page.goto(options.url, { waitUntil: "load" });
  await page.waitForSelector("html.on");
  await page.$eval("#recognised", (e) => { e.textContent = "waiting"; });
  await drop(page, ...files);
  await page.waitForFunction(() => document.getElementById("recognised").textContent !== "waiting", { timeout: 60000 });
  const kind = await page.$eval("#kind", (e) => e.value);
  if (!kind) return {};
  let answer;
  const hear = async (response) => { if (/\/(symbolicate|minidump|applecrashreport|requests)/.test(response.url())) answer = response.json().catch(() => null); };
  page.on("response", hear);
  await page.click("#send");
  await page.waitForFunction(() => !document.getElementById("result").hidden || document.querySelector("#progress .bad"), { timeout: 60000 });
  page.off("response", hear);
  const problem = await page.evaluate(() => document.querySelector("#progress .bad")?.textContent);
  if (problem !== undefined) return { kind, problem };
  await page.evaluate(() => { navigator.clipboard.writeText = async (t) => { window.copied = t; }; });
  await page.click("#result .head button");
  return { kind, answer: await answer, text: await page.evaluate(() => window.copied), named: await savedWithNames(page) };
}

/** What the page offers to save as the symbolicated file; undefined: it does not. */
async function savedWithNames(page) {
  const buttons = await page.$$("#result .head button");
  const labels = await Promise.all(buttons.map((b) => b.evaluate((e) => e.textContent))), at = labels.findIndex((l) => l.startsWith("Download symbolicated"));
  if (at < 0) return undefined;
  await page.evaluate(() => {
    const make = URL.createObjectURL;
    window.saved = undefined;
    URL.createObjectURL = (blob) => { blob.text().then((t) => { window.saved = t; }); return make(blob); };
  });
  await buttons[at].click();
  await page.waitForFunction(() => window.saved !== undefined || document.querySelector("#progress .bad"), { timeout: 60000 });
  return page.evaluate(() => window.saved ?? document.querySelector("#progress .bad").textContent);
}

// ---- tests ----

const tests = {
  async examples_work_without_symbols_from_anywhere(page) {
    await example(page, "native");
    const found = await names(page);
    for (const name of ["page_example", "answer_example", "loop_run", "main"]) assert.ok(found.includes(name), `${name} in ${found}`);
    assert.ok(await page.$("#result .frame.inlined"), "an inlined call");
    assert.match(await textOf(page, "#result .source .hit"), /backtrace\(|dl_iterate_phdr/);
    await page.click("#result .frame.failed summary");
    await page.waitForSelector("#result .frame.failed .why");
    assert.match(await textOf(page, "#result .frame.failed .why"), /No symbols found for lib.*\.Searched:.*self/);
    await example(page, "js");
    await page.waitForFunction(() => document.querySelector("#result .fn")?.textContent === "checkStock");
    assert.match(await textOf(page, "#result .source .hit"), /sold out/);
    await example(page, "jvm");
    await page.waitForFunction(() => document.querySelector("#result .fn")?.textContent === "com.example.Stock.check");
    assert.deepEqual(await names(page), ["com.example.Stock.check", "com.example.Shop.order", "com.example.Shop.main", "com.example.SoldOut.of"]);
    assert.match(await textOf(page, "#result .facts"), /2 stacks/);
    assert.deepEqual(await page.$$eval("#result .frame > .no", (all) => all.map((e) => e.textContent)), ["0", "0", "1", "0"], "each stack is counted from its top");
  },

  async every_kind_of_input_is_recognised(page) {
    const kinds = [[JS_STACK, "js"], [FIREFOX_STACK, "js"], [JVM_STACK, "jvm"], [IPS, "apple"], [JS_EVENT, "js"], [JVM_EVENT, "jvm"], [NATIVE_EVENT, "native"], [ADDRESSES, "native"], [MOZILLA, "mozilla"],
      [NATIVE, "native"], [{ stacktraces: [{ frames: [{ abs_path: "a.js", lineno: 1 }] }] }, "js"], [{ stacktraces: [{ frames: [{ module: "a", function: "b", index: 0 }] }] }, "jvm"],
      ["Incident Identifier: 1\nProcess: shop [1]\n", "apple"], ["Analysis of sampling shop (pid 1) every 1 millisecond\n", "apple"],
      ["W/google-breakpad( 1): -----BEGIN BREAKPAD MICRODUMP-----\n", "minidump"], ["hello", ""], ["", ""], ["{", ""], ["[1,2]", ""], ["null", ""]];
    for (const [given, kind] of kinds) {
      const text = typeof given === "string" ? given : JSON.stringify(given);
      await paste(page, text);
      await recognised(page, kind);
      await page.evaluate(() => { document.getElementById("text").value = ""; });
      if (!text) continue;
      await drop(page, ["crash", text]);
      await recognised(page, kind);
      if (kind === "apple") {
        await page.waitForSelector("#file:not([hidden]) button");
        await page.click("#file button");
      }
    }
    await drop(page, ["a.dmp", "MDMP\x93\xa7"]);
    await recognised(page, "minidump");
    await page.select("#kind", "apple");
    assert.equal(await page.$eval("#kind", (e) => e.value), "apple");
  },

  async stacks_and_events_are_answered(page) {
    const lines = async (given, ...files) => {
      if (files.length) await drop(page, ...files);
      await paste(page, typeof given === "string" ? given : JSON.stringify(given));
      await symbolicate(page);
      return names(page);
    };
    assert.deepEqual(await lines(ADDRESSES), ["shop +0x1000", "shop +0x1233", "libc.so.6 +0x1f"]); // the calls before the return addresses
    assert.deepEqual(await lines(NATIVE_EVENT), ["shop +0x1000", "shop +0x1010"]);
    assert.match(await textOf(page, "#result .thread summary"), /SIGSEGV/);
    assert.deepEqual(await lines(JVM_STACK, ["mapping.txt", MAPPING]), ["com.example.Stock.check", "com.example.Shop.order", "java.lang.Thread.run"]);
    assert.match(await textOf(page, "#result h2"), /java.lang.IllegalStateException: no stock/);
    assert.equal((await lines(JVM_EVENT))[0], "com.example.Stock.check");
    assert.deepEqual(await lines(IPS), ["shop +0x10"]);
    assert.match(await textOf(page, "#result h2"), /EXC_BAD_ACCESS/);
    assert.deepEqual(await lines(MOZILLA), ["xul.pdb +0xb2e3f7"]);
  },

  async inputs_give_the_answers_of_the_command(page) {
    const { seen, named, differ } = await compareInputs(page, options, { take });
    assert.ok(!differ.length, differ.join("\n"));
    assert.ok(named >= 4, `${named} files came back with names`);
    console.log(`        ${seen} inputs, ${named} came back with names`);
  },

  async texts_are_the_same_by_command_api_and_page(page) {
    const { differ, shown } = await compareTexts(page, options, { take });
    assert.ok(!differ.length, differ.join("\n"));
    console.log(`        ${shown} of ${options.texts.length} texts were shown by the page`);
  },

  async core_files_come_with_their_symbols(page) {
    const core = readFileSync(options.core.core), files = ["shop", "shop.debug"].map((name) => [name, readFileSync(path.join(options.core.folder, name))]);
    for (const [name, data] of [["core.711", core], ["core.gz", gzipSync(core)], ["core.711.xz", execFileSync("xz", ["-c0"], { input: core, maxBuffer: 1 << 28 })]]) {
      const found = await take(page, [[name, data], ...files]);
      assert.deepEqual([found.kind, found.problem], ["core", undefined], name);
      const shown = await names(page);
      assert.deepEqual(shown.slice(0, 6), ["element", "use", "depth", "depth", "depth", "main"], `${name}: ${shown}`);
    }
  },

  async stack_text_is_shown_unchanged(page) {
    const JAVA = "java.lang.RuntimeException: x\n\tat a.b.c(Unknown Source:3)\n\tat java.lang.reflect.Method.invoke(Native Method)\n\t... 5 more\nCaused by: a.e: y\n\tat a.e.a(SourceFile:3)\n";
    const ASAN = "==4711==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010\nREAD of size 4 at 0x602000000010 thread T0\n    #0 0x401106  (/srv/shapes+0x1106) (BuildId: " + "ab".repeat(20) + ")\n    #1 0x401112  (/srv/shapes+0x1112)\n\nfreed by thread T0 here:\n    #0 0x7f01  (libasan.so.8+0x20)\n";
    const shownOf = async (text) => {
      const found = await take(page, [["stack.txt", text]]);
      return { ...found, titles: await page.$$eval("#result .thread:not(.modules) > summary > span:first-of-type", (all) => all.map((e) => e.textContent)), notes: await page.$$eval("#result .note", (all) => all.map((e) => e.textContent)) };
    };
    let found = await shownOf(JAVA);
    assert.deepEqual([found.text, found.titles, found.notes], [JAVA, ["java.lang.RuntimeException: x", "Caused by: a.e: y"], ["... 5 more"]]);
    found = await shownOf(JS_STACK);
    assert.deepEqual([found.text, found.titles, found.notes], [JS_STACK, ["TypeError: Cannot read properties of undefined"], ["at async Promise.all (index 0)"]]);
    found = await shownOf(ASAN);
    assert.deepEqual([found.kind, found.text, found.titles.length, found.titles[0]], ["native", ASAN, 2, "==4711==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010"]);
    assert.deepEqual(found.answer.stacktraces.map((t) => t.frames.length), [2, 1]);
  },

  async stacks_with_names_keep_them(page) {
    const ASAN = `==1==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010 at pc 0x56031ba021a7
    #0 0x56031ba021a6 in inner<int>(int*) /src/crash.cc:3:5
    #1 0x56031ba020b0 in _start (/src/crash+0x10b0)

0x602000000010 is located 0 bytes inside of 16-byte region [0x602000000010,0x602000000020)
freed by thread T0 here:
    #0 0x7f6f6dab76a8 in __interceptor_free ../../asan_malloc_linux.cpp:52

Shadow bytes around the buggy address:
  0x0c047fff7fb0: 00 00 00 00
=>0x0c047fff8000: fa fa[fd]fd
`;
    const GDB = `Program received signal SIGSEGV, Segmentation fault.
0x0000555555555149 in ?? ()
#0  inner (p=0x0) at crash.c:3
#1  0x0000555555555154 in middle (p=p@entry=0x0) at crash.c:4
#2  0x00007ffff7df824a in raise () from /lib/libc.so.6
`;
    const frames = () => page.$$eval("#result .frame", (all) => all.map((e) => [e.querySelector(".fn").textContent, e.querySelector(".at")?.textContent, e.querySelector(".tag")?.textContent]));
    let found = await take(page, [["asan.txt", ASAN]]);
    assert.deepEqual([found.kind, found.text], ["native", ASAN]);
    assert.deepEqual(await page.$$eval("#result > .thread:not(.modules) > summary > span:first-of-type", (all) => all.map((e) => e.textContent)), [ASAN.split("\n")[0], "freed by thread T0 here:"]);
    assert.deepEqual(await frames(), [["inner<int>(int*)", "crash.cc:3", "not symbolicated"], ["crash +0x10b0", null, "no symbols"], ["__interceptor_free", "asan_malloc_linux.cpp:52", "not symbolicated"]]);
    found = await take(page, [["gdb.txt", GDB]]);
    assert.deepEqual([found.kind, found.text, await textOf(page, "#result h2")], ["native", GDB, "Program received signal SIGSEGV, Segmentation fault."]);
    assert.deepEqual((await frames()).map(([name]) => name), ["0x555555555149", "middle", "raise"]);
    for (const [text, what] of [["goroutine 1 [running]:\nmain.main()\n\t/src/p.go:3 +0x16\n", "a Go stack trace"], ["Traceback (most recent call last):\n  File \"a.py\", line 1\n", "a Python traceback"]]) {
      found = await take(page, [["stack.txt", text]]);
      assert.deepEqual([found.kind, await textOf(page, "#recognised")], [undefined, `This looks like ${what}, which is already symbolicated.`]);
      await page.click("#send");
      assert.match(await textOf(page, "#recognised"), /^This looks like .* choose the type\.$/);
    }
  },

  async unsupported_files_are_named(page) {
    const pprof = Buffer.from("H\xfc\x18\n\x04\x08\x01\x10\x02\n\x04\x08\x03\x10\x04", "latin1");
    for (const [name, data, told] of [["empty.txt", "", "empty.txt is empty."], ["cpu.pb.gz", gzipSync(pprof), "This looks like a pprof profile, which is not supported."],
      ["picture.png", "\x89PNG\r\n\x1a\n\0\0\0", "picture.png: unknown format; choose the type."]]) {
      await take(page, [[name, data]]);
      assert.equal(await textOf(page, "#recognised"), told);
    }
  },

  async dropped_symbols_and_a_second_crash_are_used(page) {
    if (!options.corpus) return;
    const bare = fixture("windows.dmp"), pdb = fixture("symbols/crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.pdb");
    await page.goto(options.bare, { waitUntil: "load" });
    await page.waitForSelector("html.on");
    await drop(page, ["crash.pdb", pdb], ["windows.dmp", bare], ["again.dmp", bare]);
    await recognised(page, "minidump");
    await page.click("#send");
    await page.waitForFunction(() => document.querySelectorAll("#earlier .earlier").length === 1 && !document.getElementById("result").hidden, { timeout: 60000 });
    assert.ok((await names(page)).includes("main"), "by the PDB beside it");
    assert.match(await textOf(page, "#earlier .earlier h2"), /EXCEPTION_ACCESS_VIOLATION/);
    await page.click(".earlier > button");
    assert.equal(await page.$eval("#earlier", (e) => e.hidden), true);
  },

  async crash_files_can_be_dropped_or_pasted(page) {
    if (!options.corpus) return;
    for (const [name, kind, found, title] of [["windows.dmp", "minidump", "main", /EXCEPTION_ACCESS_VIOLATION/], ["macos.dmp", "minidump", null, /EXC_|Crash|SIG/],
      ["apple_crash_report.txt", "apple", null, /SIG|EXC_/]]) {
      await drop(page, [name, fixture(name)]);
      await recognised(page, kind);
      await symbolicate(page);
      assert.match(await textOf(page, "#result h2"), title);
      if (found) assert.ok((await names(page)).includes(found), `${found} in ${await names(page)}`);
      assert.ok(await page.$eval("#result > .thread", (e) => e.open && e.classList.contains("crashed")), "the crashed thread comes first");
      await page.click("#file button");
    }
    await paste(page, fixture("apple_crash_report.txt").toString());
    await recognised(page, "apple");
    await symbolicate(page);
    const scripts = ["app.js", "app.js.map"].map((f) => [f, fixture(`sourcemaps/e2e_multiple_smref_scraped/${f}`)]);
    await drop(page, ...scripts);
    await paste(page, "Error: x\n    at f (https://shop.example/app.js:1:50)\n");
    await symbolicate(page);
  },

  async presets_are_sent_as_sources(page) {
    const sent = [];
    page.on("request", (r) => { if (r.method() === "POST" && !r.url().includes("/page/read")) sent.push(JSON.parse(r.postData())); });
    await answerWith(page, { status: "completed", stacktraces: [], modules: [] });
    await paste(page, JSON.stringify(NATIVE));
    await symbolicate(page);
    for (const box of await page.$$("#presets input")) await box.click();
    await symbolicate(page);
    assert.equal(sent[0].sources, undefined);
    assert.deepEqual(sent[1].sources.map((s) => [s.id, s.layout.type]), [["microsoft", "ssqp"], ["electron", "native"], ["ubuntu", "debuginfod"], ["mozilla", "native"]]);
    assert.deepEqual(sent.map((s) => s.options), [{ dif_candidates: true }, { dif_candidates: true, configured_sources: true }]);
  },

  async ticked_presets_are_added_to_the_configured_sources(page) {
    const sent = [];
    page.on("request", (r) => { if (r.url().includes("/symbolicate?")) sent.push(JSON.parse(r.postData())); });
    await page.click("#presets input[value=microsoft]");
    await example(page, "native");
    assert.deepEqual([sent[0].sources.map((s) => s.id), sent[0].options.configured_sources], [["microsoft"], true]);
    assert.ok((await names(page)).includes("loop_run"), "what our own source has");
  },

  async result_can_be_copied_and_shown_as_a_command(page) {
    await example(page, "jvm");
    await page.evaluate(() => { navigator.clipboard.writeText = async (t) => { window.copied = t; }; });
    const buttons = await page.$$("#result .head button");
    await buttons[0].click();
    assert.match(await page.evaluate(() => window.copied), /^java\.lang\.IllegalStateException: no stock\n {4}at com\.example\.Stock\.check\(Stock\.java:7\)\n[^]*\nCaused by: com\.example\.SoldOut: sold out\n/);
    await buttons[2].click();
    assert.match(await textOf(page, "#result .curl"), /^curl -s -H 'Accept: application\/json' http:\S+\/symbolicate-text [^]*-F 'artifact=@mapping.txt'$/);
    assert.equal(await page.$eval("#result .head button[aria-expanded]", (e) => e.getAttribute("aria-expanded")), "true");
  },

  async module_view_finds_symbols_of_one_module(page) {
    await page.goto(options.url + "/#module");
    await page.type("#m-code", "00".repeat(20));
    await page.type("#m-code-file", "libshop.so");
    await page.click("#module .primary");
    await page.waitForSelector("#m-result:not([hidden])");
    assert.match(await textOf(page, "#m-result"), /No usable symbols.*not found.*Searched locations.*self/);
    await accessible(page, "one module");
    await page.type("#m-debug", "xyz");
    await page.click("#module .primary");
    await page.waitForFunction(() => /^xyz is not a debug id/.test(document.getElementById("m-progress").textContent));
    await page.$eval("#m-debug", (e) => { e.value = ""; });
    const example = await (await fetch(options.url + "/page/example.json")).json();
    await page.$eval("#m-code", (e) => { e.value = ""; });
    await page.type("#m-code", example.modules[0].code_id);
    await page.click("#module .primary");
    await page.waitForFunction(() => /Symbols found/.test(document.getElementById("m-result").textContent));
  },

  async pending_jobs_are_polled(page) {
    const held = createServer((request, response) => setTimeout(() => response.writeHead(404).end(), 7000));
    await new Promise((done) => held.listen(0, "127.0.0.1", done));
    const polls = [];
    page.on("request", (r) => { if (r.url().includes("/requests/")) polls.push(r.url()); });
    const source = { id: "slow", type: "http", url: `http://127.0.0.1:${held.address().port}/`, layout: { type: "debuginfod" } };
    const modules = [{ type: "elf", image_addr: "0x1000", image_size: 4096, code_id: "ab".repeat(20) }];
    await paste(page, JSON.stringify({ ...NATIVE, modules, sources: [source] }));
    await recognised(page, "native");
    await symbolicate(page);
    held.close();
    assert.ok(polls.length > 0);
    assert.match(await textOf(page, "#result"), /1 frame/);
  },

  async status_view_shows_the_state_of_the_service(page) {
    await page.goto(options.url + "/#status");
    await page.waitForFunction(() => /ready/.test(document.getElementById("status-body").textContent));
    assert.match(await textOf(page, "#status-body"), /Sources.*self.*Caches.*symcaches/);
  },

  async status_view_plots_history_and_failing_sources(page) {
    const points = Array.from({ length: 120 }, (_, i) => ({ t: new Date(i * 60000).toISOString(), requests: 50 + i, errors: i % 9, lookups: i > 60 && i < 80 ? 0 : 100, computed: i > 60 && i < 80 ? 0 : 30, p50_ms: i > 60 && i < 80 ? null : 3, p99_ms: 40 + (i % 30) }));
    await answerWith(page, { version: "1", commit: "abc", node: "1234", state: "ready", uptime_seconds: 4000, jobs: { running: 1, limit: 200, finished_1h: 9, failed_1h: 0 }, pool: { threads: 2, busy: 1, queued: 0 },
      memory: { resident: 1e8, budget_used: 1e6, budget: 1e9 }, disk: { free: 1e10, size: 1e11 }, caches: [{ name: "symcaches", memory_bytes: 1e6, disk_bytes: 1e7, disk_files: 12, lookups_1h: 100, computed_1h: 7 }],
      shared: [{ backend: "redis", up: false, last_error: HOSTILE }], sources: [{ id: HOSTILE, type: "http", layout: "native", last_success: null, last_error: HOSTILE, last_error_at: "2026-01-01T00:00:00Z", blocked_until: null, ok_1h: 1, not_found_1h: 2, failed_1h: 3 }],
      history: { step_seconds: 60, points } });
    await page.goto(options.url + "/#status");
    await page.waitForSelector("#status-body svg polyline");
    assert.match(await textOf(page, "#status-body"), /symcaches.*93 %.*failing|failing.*symcaches.*93 %/);
    const plots = await page.$$eval("#status-body .plot", (all) => all.map((p) => [p.querySelectorAll("polyline").length, p.querySelector(".highest").textContent, p.querySelector(".first").textContent]));
    assert.deepEqual(plots.map(([lines]) => lines), [2, 3, 2], "with gaps where nothing was asked");
    assert.deepEqual(plots.map(([, top]) => top), ["169", "69 ms", "100 %"]);
    const cached = (await page.$$("#status-body .plot svg"))[2];
    const box = await cached.boundingBox();
    for (const [share, wanted] of [[0.5, /: cache hits 70 %$/], [70 / 119, /: cache hits –$/]]) {
      await page.mouse.move(box.x + box.width * share, box.y + 5);
      assert.match(await page.$$eval("#status-body .readout", (all) => all[2].textContent), wanted);
    }
    assert.equal(await page.evaluate(() => typeof window.hacked), "undefined");
    await accessible(page, "status");
    await page.setViewport({ width: 320, height: 700 });
    await noSideways(page, "status");
  },

  async hostile_names_are_shown_as_text(page) {
    for (const [given, answer] of [[NATIVE, HOSTILE_ANSWER], [IPS, HOSTILE_ANSWER], [JS_EVENT, HOSTILE_JS], [JVM_EVENT, HOSTILE_JVM], [MOZILLA, HOSTILE_MOZILLA]]) {
      const one = await open();
      await answerWith(one, answer);
      await paste(one, typeof given === "string" ? given : JSON.stringify(given));
      await symbolicate(one);
      await one.evaluate(async () => { for (let i = 0; i < 3; i++) { for (const d of document.querySelectorAll("#result details")) d.open = true; await new Promise((r) => setTimeout(r, 50)); } });
      assert.ok((await textOf(one, "#result")).includes(HOSTILE));
      const found = await one.evaluate(() => ({ hacked: typeof window.hacked, nodes: document.querySelectorAll("#result script, #result img").length,
        links: [...document.querySelectorAll("#result a")].filter((a) => !/^https?:$/.test(a.protocol) || a.rel !== "noopener noreferrer").length }));
      assert.deepEqual(found, { hacked: "undefined", nodes: 0, links: 0 });
      await one.end();
    }
  },

  async refusals_show_the_reason(page) {
    await paste(page, "{");
    await page.click("#send");
    await page.waitForFunction(() => /Choose the type/.test(document.getElementById("recognised").textContent));
    await page.select("#kind", "native");
    await paste(page, JSON.stringify({ stacktraces: 3 }));
    await page.select("#kind", "native");
    await page.click("#send");
    await page.waitForSelector("#progress .bad");
    assert.match(await textOf(page, "#progress"), /returned an error: 422/);
    await drop(page, ["a.dmp", "MDMP nothing"]);
    await recognised(page, "minidump");
    await page.click("#send");
    await page.waitForFunction(() => /Cannot read the input: Missing minidump header/.test(document.getElementById("progress").textContent));
  },

  async page_works_with_the_keyboard_alone(page) {
    const seen = [];
    const focus = () => page.evaluate(() => {
      const e = document.activeElement, style = getComputedStyle(e);
      return { id: e.id, tag: e.tagName, text: e.textContent.trim().slice(0, 30), ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 };
    });
    const until = async (wanted) => {
      for (let i = 0; i < 40; i++) {
        await page.keyboard.press("Tab");
        const now = await focus();
        seen.push(now);
        if (now.tag !== "BODY") assert.ok(now.ring, `focus is seen on ${JSON.stringify(now)}`);
        if (wanted(now)) return now;
      }
      throw new Error(`not reached: ${seen.map((s) => s.id || s.text).join(", ")}`);
    };
    await until((e) => e.text === "Skip to content");
    await until((e) => e.text === "API");
    await until((e) => e.id === "text");
    await page.keyboard.sendCharacter(JVM_STACK);
    await until((e) => e.id === "choose");
    await until((e) => e.id === "send");
    await page.keyboard.press("Enter");
    await shown(page);
    assert.equal((await focus()).id, "result");
    await until((e) => e.text === "Copy as text");
    await until((e) => e.text === "Show as curl");
    await page.keyboard.press("Space");
    assert.equal(await page.$eval("#result .curl", (e) => e.hidden), false);
    await until((e) => e.tag === "SUMMARY");
    assert.equal(await page.$eval("#result .thread", (e) => e.open), true);
    await page.keyboard.press("Enter");
    assert.equal(await page.$eval("#result .thread", (e) => e.open), false);
  },

  async page_is_accessible_in_light_and_dark(page) {
    for (const scheme of ["light", "dark"]) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number).reduce((a, b) => a + b));
      assert.ok(scheme === "dark" ? paper < 150 : paper > 600, `${scheme}: ${paper}`);
      await page.goto(options.url + "/#symbolicate");
      await accessible(page, `${scheme}, empty`);
      await example(page, "native");
      await page.evaluate(() => { for (const d of document.querySelectorAll("#result details, fieldset details")) d.open = true; });
      await page.evaluate(() => new Promise((r) => setTimeout(r, 100)));
      await page.evaluate(() => { for (const d of document.querySelectorAll("#result details")) d.open = true; });
      await accessible(page, `${scheme}, the example`);
      await example(page, "js");
      await accessible(page, `${scheme}, JavaScript`);
      for (const view of ["module", "status", "api"]) {
        await page.goto(`${options.url}/#${view}`);
        await page.evaluate(() => new Promise((r) => setTimeout(r, 100)));
        await accessible(page, `${scheme}, ${view}`);
      }
    }
  },

  async dropped_files_show_no_focus_ring_and_tables_scroll(page) {
    await page.goto(options.url + "/#status");
    await page.waitForSelector("#status-body table");
    await page.setViewport({ width: 320, height: 700 });
    const scrolls = await page.$$eval("#status-body .scroll", (all) => all.map((e) => e.scrollWidth > e.clientWidth));
    assert.ok(scrolls.length && scrolls.every(Boolean), "tables scroll, and their words stay whole");
    await page.keyboard.press("Tab"); // from now on focus is shown
    await drop(page, ["crash", JVM_STACK]);
    await recognised(page, "jvm");
    assert.equal(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), "none");
  },

  async narrow_and_zoomed_views_do_not_scroll_sideways(page) {
    for (const [what, view] of [["320 px", { width: 320, height: 640, deviceScaleFactor: 2, isMobile: true }], ["zoomed to 200 %", { width: 640, height: 450, deviceScaleFactor: 2 }]]) {
      await page.setViewport(view);
      await page.goto(options.url + "/#symbolicate");
      await example(page, "native");
      await page.evaluate(() => { for (const d of document.querySelectorAll("details")) d.open = true; });
      await page.evaluate(() => new Promise((r) => setTimeout(r, 100)));
      await noSideways(page, what);
      await example(page, "js");
      await noSideways(page, what + ", JavaScript");
      for (const hash of ["module", "status", "api"]) {
        await page.goto(`${options.url}/#${hash}`);
        await noSideways(page, `${what}, ${hash}`);
      }
    }
  },

  async commands_are_shown_without_scripts(page) {
    await page.setJavaScriptEnabled(false);
    await page.goto(options.url + "/");
    const text = await page.$eval("body", (e) => e.innerText);
    assert.match(text, /JavaScript is disabled/);
    assert.match(text, /curl -s http:\/\/localhost:3021\/minidump/);
    assert.ok(!/Symbolicate a crash/.test(text));
    await page.setJavaScriptEnabled(true);
    await page.goto(options.url + "/");
  },

  async form_is_shown_before_its_script_loads() {
    const context = await browser.createBrowserContext(), one = await context.newPage();
    await one.setRequestInterception(true);
    one.on("request", (r) => (r.url().includes("/page/main.js") ? r.abort() : r.continue())); // it never comes
    await one.goto(options.url + "/", { waitUntil: "load" });
    const shown = await one.evaluate(() => [document.documentElement.className, ...["#crash", "nav", "#view-api"].map((s) => document.querySelector(s).offsetHeight > 0)]);
    assert.deepEqual(shown, ["", true, true, false], "the form and the navigation, and not what is for pages without scripts");
    await context.close();
  },

  async ten_thousand_frames_are_shown_quickly(page) {
    await answerWith(page, manyFrames(10000));
    await paste(page, JSON.stringify(NATIVE));
    const first = await page.evaluate(async () => {
      const version = new URL(document.querySelector("script").src).search;
      const [{ showResult }, { readAnswer }] = await Promise.all([import("/page/stack.js" + version), import("/page/answers.js" + version)]);
      const answer = await (await fetch("/symbolicate", { method: "POST", body: "{}" })).json();
      const began = performance.now(), place = document.getElementById("result");
      const model = readAnswer("native", answer, { body: {} }), read = performance.now() - began;
      showResult(place, model, answer, "");
      const made = performance.now() - began;
      place.scrollIntoView();
      await new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)));
      const shown = performance.now() - began;
      while (place.querySelectorAll(".frame").length < 10000) await new Promise((r) => setTimeout(r, 5));
      const all = performance.now() - began;
      let worst = 0;
      for (let y = 0; y < 40; y++) {
        const at = performance.now();
        scrollTo(0, y * 12000);
        await new Promise((r) => requestAnimationFrame(r));
        worst = Math.max(worst, performance.now() - at);
      }
      return { read, made, shown, all, worst };
    });
    console.log(`        10,000 frames: read in ${first.read.toFixed(0)} ms, made after ${first.made.toFixed(0)} ms, seen after ${first.shown.toFixed(0)} ms, all there after ${first.all.toFixed(0)} ms, the slowest of 40 jumps ${first.worst.toFixed(0)} ms`);
    if (!process.env.SYMLOOM_SLOW) assert.ok(first.shown < 300, `seen after ${first.shown} ms`);
  },

  async page_loads_quickly() {
    const times = [], context = await browser.createBrowserContext(), one = await context.newPage();
    await one.setCacheEnabled(false);
    for (let i = 0; i < 20; i++) {
      await one.goto("about:blank");
      await one.goto(options.url + "/", { waitUntil: "load" });
      times.push(await one.evaluate(() => performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd));
    }
    await context.close();
    times.sort((a, b) => a - b);
    console.log(`        DOMContentLoaded, 20 times with an empty cache: median ${times[10].toFixed(0)} ms, worst ${times[19].toFixed(0)} ms`);
    if (!process.env.SYMLOOM_SLOW) assert.ok(times[10] < 100, `median ${times[10]} ms`);
  },
};

/** The picture of README.md: the example, with the folder of the build called /src/symloom. */
async function screenshot() {
  const page = await open();
  await page.setViewport({ width: 1040, height: 940 });
  await example(page, "native");
  await page.evaluate((root) => {
    for (const e of document.querySelectorAll("#result dd")) e.textContent = e.textContent.replace(root, "/src/symloom");
    document.activeElement.blur();
    document.getElementById("result").scrollIntoView();
  }, options.root);
  await page.screenshot({ path: options.screenshot });
  await page.end();
}

let passed = 0, failed = 0;
const wanted = (name) => !options.patterns.length || options.patterns.some((p) => name.includes(p));
for (const [name, test] of Object.entries(tests).filter(([n]) => wanted(n))) {
  const began = Date.now();
  try {
    const page = await open();
    await test(page);
    await page.end();
    passed++;
    console.log(`ok      ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed++;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
}
if (options.screenshot) await screenshot();
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed || !passed ? 1 : 0);
