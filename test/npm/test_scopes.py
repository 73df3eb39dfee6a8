"""Function scopes of published scripts, range for range and name for name as two other parsers have them."""
import os, subprocess
from harness import npm_path

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = [
    ("react-dom@19.3.1", "react-dom/cjs/react-dom-client.development.js"),
    ("react-dom@19.3.1", "react-dom/cjs/react-dom-client.production.js"),
    ("three@0.187.0", "three/build/three.core.js"),
    ("typescript@5.9.3", "typescript/lib/typescript.js"),
    ("mermaid@11.17.2", "mermaid/dist/mermaid.min.js"),
    ("monaco-editor@0.57.0", "monaco-editor/min/vs/editor-BdtEMBbM.js"),
    ("vue@3.5.45", "vue/dist/vue.global.prod.js"),
    ("lodash@4.18.1", "lodash/lodash.js"),
    ("lodash@4.18.1", "lodash/lodash.min.js"),
    ("d3@7.9.2", "d3/dist/d3.min.js"),
    ("rxjs@7.8.2", "rxjs/dist/bundles/rxjs.umd.min.js"),
    ("pdfjs-dist@5.6.205", "pdfjs-dist/build/pdf.worker.min.mjs"),
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


def compare_all(work, share, oracle, packages):
    for package, path in packages:
        modules = npm_path(work, package, path)[:-len(path) - 1]
    rare = os.path.join(work, "rare.mjs")
    with open(rare, "w") as f:
        f.write(RARE)
    compare(modules, share.scopes, "rare syntax", rare, oracle)
    for package, path in SCRIPTS:
        compare(modules, share.scopes, path, npm_path(work, package, path), oracle)


def test_tree_sitter(work, share):
    packages = [("web-tree-sitter@0.27.1", "web-tree-sitter/package.json"),
                ("tree-sitter-javascript@0.25.0", "tree-sitter-javascript/tree-sitter-javascript.wasm")]
    compare_all(work, share, "tree-sitter", packages)


def test_swc(work, share):
    compare_all(work, share, "swc", [("@swc/core@1.16.22", "@swc/core/index.js")])
