"""Stacks of programs that the tools of npm have bundled and minified: what Node throws, made readable, is what the program threw
before. Its frames go through its own modules and those of two libraries."""
import os, re, subprocess
import harness
from harness import npm_path

PACKAGES = ("esbuild@0.25.12 @esbuild/linux-x64@0.25.12 terser@5.44.1 rollup@4.53.3 webpack@5.103.0 webpack-cli@6.0.1 @swc/core@1.15.3 "
            "google-closure-compiler@20251111.0.0 lodash-es@4.17.21 d3-array@3.2.4")
PROGRAM = {
    "main.js": """import { order } from './shop/ordered.js';

function openShop(stock) {
  return order(stock, 2);
}

openShop([{ name: 'lamp', left: 3 }, { name: 'öre', left: 0 }]);
""",
    "shop/ordered.js": """import forEach from '../lib/lodash-es/forEach.js';
import { checkStock } from './stock.js';

export class Clerk {
  constructor(wanted) {
    this.wanted = wanted;
  }

  serve(stock) {
    forEach(stock, (item) => {
      checkStock([item], this.wanted);
    });
  }
}

export function order(stock, wanted) {
  const clerk = new Clerk(wanted);
  return clerk.serve(stock);
}
""",
    "shop/stock.js": """import sum from '../lib/d3-array/src/sum.js';

const größe = (item) => {
  if (!item.left) throw new Error('🪑 sold out: ' + item.name);
  return item.left;
};

export function checkStock(items, wanted) {
  return sum(items, größe) >= wanted;
}
""",
}
ESBUILD = ["node_modules/@esbuild/linux-x64/bin/esbuild"]


def node(tool):
    return ["node", "node_modules/" + tool]


# Each makes out.js and out.js.map of main.js; commands run one after the other in the program's directory.
TOOLS = {
    "esbuild": [ESBUILD + ["main.js", "--bundle", "--minify", "--sourcemap", "--charset=utf8", "--outfile=out.js"]],
    "rollup and terser": [node("rollup/dist/bin/rollup") + ["main.js", "-f", "iife", "-m", "-o", "between.js"],
                          node("terser/bin/terser") + ["between.js", "-c", "-m", "--source-map", "content=between.js.map,url=out.js.map,includeSources",
                                                       "-o", "out.js"]],
    "webpack": [node("webpack/bin/webpack.js") + ["./main.js", "-o", ".", "--output-filename", "out.js", "--mode", "production",
                                                  "--devtool", "source-map", "--target", "node"]],
    "esbuild, and esbuild again": [ESBUILD + ["main.js", "--bundle", "--sourcemap", "--outfile=between.js"],
                                   ESBUILD + ["between.js", "--minify", "--sourcemap", "--outfile=out.js"]],
    "esbuild and swc": [ESBUILD + ["main.js", "--bundle", "--sourcemap=inline", "--outfile=between.js"],
                        ["node", "-e", "const swc = require('./node_modules/@swc/core'), fs = require('fs');"
                         "const r = swc.transformSync(fs.readFileSync('between.js', 'utf8'), {filename: 'between.js', sourceMaps: true, inputSourceMap: true,"
                         "minify: true, isModule: false, jsc: {target: 'es2022', minify: {compress: true, mangle: {topLevel: true}}}});"
                         "fs.writeFileSync('out.js', r.code); fs.writeFileSync('out.js.map', r.map)"]],
    "closure compiler": [["node_modules/google-closure-compiler-linux/compiler", "--js", "main.js", "shop/*.js", "lib/lodash-es/*.js", "lib/d3-array/src/*.js",
                          "--entry_point", "main.js", "--dependency_mode", "PRUNE", "--module_resolution", "NODE", "-O", "SIMPLE", "--warning_level", "QUIET",
                          "--create_source_map", "out.js.map", "--js_output_file", "out.js"]],
}
FRAME = re.compile(r"^\s+at (?:(?:async )?(?:new )?(\S+) )?(?:\[as \S+\] )?\(?(\S+?):(\d+):(\d+)\)?$", re.M)


def frames(stack):
    """(last part of the function's name, file, line) of the program's own frames, the innermost first."""
    found = []
    for function, path, line, _ in FRAME.findall(stack):
        if not path.startswith("node:") and "node_modules/" not in path:
            found.append(((function or "").split(".")[-1], os.path.basename(path), int(line)))
    return found


def thrown(program, directory):
    done = subprocess.run(["node", program], cwd=directory, capture_output=True, text=True)
    assert "sold out" in done.stderr, done.stdout + done.stderr
    return done.stderr


def write_program(directory, modules, line_end):
    for name, text in PROGRAM.items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", newline="") as f:
            f.write(text.replace("\n", line_end))
    subprocess.run(["mkdir", "-p", "lib"], cwd=directory, check=True)
    for library in ("lodash-es", "d3-array", "internmap"):
        subprocess.run(["cp", "-r", os.path.join(modules, library), os.path.join(directory, "lib", library)], check=True)
    with open(os.path.join(directory, "package.json"), "w") as f:
        f.write('{"type": "module"}')
    os.symlink(modules, os.path.join(directory, "node_modules"))


def made_readable(directory, built, tool, line_end):
    write_program(directory, built, line_end)
    truth = frames(thrown("main.js", directory))
    for command in TOOLS[tool]:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}: {done.stdout[-1500:]} {done.stderr[-1500:]}"
    minified = os.path.join(directory, "minified")
    os.mkdir(minified)
    for name in ("out.js", "out.js.map"):
        os.rename(os.path.join(directory, name), os.path.join(minified, name))
    stack = thrown("out.js", minified)
    readable = subprocess.run([harness.SYMLOOM, "symbolicate", "-", "--symbols", minified], input=stack, capture_output=True, text=True)
    assert readable.returncode == 0, readable.stderr
    return truth, frames(readable.stdout), stack + readable.stdout


def check_tool(work, tool, places, line_end="\n"):
    """At least so many frames are at a place of the truth. What a minifier merges, it maps to a place beside: `places` are what the
    maps of these versions have."""
    modules = npm_path(work, PACKAGES, "esbuild/package.json")[:-len("esbuild/package.json") - 1]
    truth, got, text = made_readable(os.path.join(work, tool.replace(" ", "-")), modules, tool, line_end)
    where = [frame[1:] for frame in truth]
    right = [frame for frame in got if frame[1:] in where]
    named = sum(frame in truth for frame in right)
    print(f"        {tool}: {len(truth)} frames were thrown, {len(got)} by the minified program; {len(right)} at a place of the truth, "
          f"{named} of them with its name")
    assert got and got[0][1:] == where[0] and len(right) >= places, text


def test_esbuild_stacks_are_mapped(work, share):
    check_tool(work, "esbuild", 10)


def test_rollup_and_terser_stacks_are_mapped(work, share):
    check_tool(work, "rollup and terser", 7)


def test_webpack_stacks_are_mapped(work, share):
    check_tool(work, "webpack", 7)


def test_chained_source_maps_are_mapped(work, share):
    check_tool(work, "esbuild, and esbuild again", 10)


def test_swc_stacks_are_mapped(work, share):
    check_tool(work, "esbuild and swc", 5)


def test_closure_compiler_stacks_are_mapped(work, share):
    check_tool(work, "closure compiler", 10)


def test_crlf_files_are_mapped(work, share):
    for tool, places in (("esbuild", 10), ("rollup and terser", 7), ("webpack", 7), ("esbuild and swc", 5), ("closure compiler", 10)):
        check_tool(work, tool, places, "\r\n")
