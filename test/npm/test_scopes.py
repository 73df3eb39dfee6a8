"""Function scopes of published scripts, range for range and name for name as two other parsers have them."""
import os, subprocess
from harness import npm_path

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ("react-dom@19.3.1 three@0.187.0 typescript@5.9.3 mermaid@11.17.2 monaco-editor@0.57.0 vue@3.5.45 lodash@4.18.1 "
            "d3@7.9.2 rxjs@7.8.2 pdfjs-dist@5.6.205 @swc/core@1.16.22 web-tree-sitter@0.27.1 tree-sitter-javascript@0.25.0")
SCRIPTS = [
    "react-dom/cjs/react-dom-client.development.js",
    "react-dom/cjs/react-dom-client.production.js",
    "three/build/three.core.js",
    "typescript/lib/typescript.js",
    "mermaid/dist/mermaid.min.js",
    "monaco-editor/min/vs/editor-BdtEMBbM.js",
    "vue/dist/vue.global.prod.js",
    "lodash/lodash.js",
    "lodash/lodash.min.js",
    "d3/dist/d3.min.js",
    "rxjs/dist/bundles/rxjs.umd.min.js",
    "pdfjs-dist/build/pdf.worker.min.mjs",
]
# What published scripts have none of.
RARE = r"""#!/usr/bin/env node
({a: b = function n(){}, c = () => 1} = x); [d = () => 1] = y; [e = () => 1];
x = (a = () => 1, {b: c = function(){}} = {}) => async (d = () => 2) => d; async (a = () => 1);
o.p[q(() => 1)].r = class { get s() { return () => 1 } static #t() {} [u(() => 1)]() {} static { v = () => 1 } };
o = {get a() { return () => 1 }, set 'b'(c) {}, async *[d(() => 1)]() {}, 1n() {}, e: {f: {g() {}}}, ...h(() => 1)};
a = () => {}
;[b, c].map(d => d)
for (var f = () => 1, g; ; ) for (const {h = () => 1} of i) for (j in () => 1) label: while (1) break label
var k = `${() => 1}${`${function l() {}}`}`, m = n => o => p ? q => r : s
export default class extends (class T {}) { u = () => 1; constructor(v = () => 1) { super(() => 1) } }
\u0061b.\u{63} = function () {}; x ??= y ||= z &&= () => 1; y = /[/]/.test(() => 1)
"""


def run(command):
    done = subprocess.run(["nice", *command], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, f"{command}: {done.stderr[-500:]}"
    return done.stdout.splitlines()


def compare(modules, scopes, name, path, oracle):
    own = run([scopes, path])
    other = run(["node", "--stack-size=50000", "--max-old-space-size=4096", os.path.join(HERE, "scopes.mjs"), oracle, modules, path])
    different = [f"{a} / {b}" for a, b in zip(own, other) if a != b]
    print(f"        {name}, {oracle}: {len(own)} scopes, {len(other)} there, {len(different)} of them different")
    assert own and len(own) == len(other) and not different, different[:10]


def compare_all(work, share, oracle):
    rare = os.path.join(work, "rare.mjs")
    with open(rare, "w") as f:
        f.write(RARE)
    paths = [npm_path(work, PACKAGES, path) for path in SCRIPTS]
    modules = paths[0][:-len(SCRIPTS[0]) - 1]
    compare(modules, share.scopes, "rare syntax", rare, oracle)
    for name, path in zip(SCRIPTS, paths):
        compare(modules, share.scopes, name, path, oracle)


def test_function_names_equal_tree_sitter(work, share):
    compare_all(work, share, "tree-sitter")


def test_function_names_equal_swc(work, share):
    compare_all(work, share, "swc")
