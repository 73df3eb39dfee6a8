"""The functions of published scripts, and of one of 20 MB made of them: beside acorn, which npm brings."""
import os, re, subprocess, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "http"))
from harness import npm_path

PACKAGES = "acorn@8.15.0 typescript@5.9.3 three@0.187.0 d3@7.9.2 vue@3.5.45"
SCRIPTS = ["typescript/lib/typescript.js", "three/build/three.core.js", "d3/dist/d3.min.js", "vue/dist/vue.global.prod.js"]
LARGE = 20_000_000
ACORN = """
const acorn = require(process.argv[1] + "/acorn"), fs = require("fs");
for (const path of process.argv.slice(2)) {
    const text = fs.readFileSync(path, "utf8");
    let best = Infinity;
    for (let i = 0; i < 4; i++) {
        const begin = process.cpuUsage();
        acorn.parse(text, {ecmaVersion: "latest", sourceType: path.includes("three") ? "module" : "script"});
        best = Math.min(best, process.cpuUsage(begin).user);
    }
    console.log(best / 1e6);
}
"""


def made_large(path, script):
    with open(script) as f:
        text = f.read()
    with open(path, "w") as f:
        f.write("\n".join("{" + text + "}" for _ in range(LARGE // len(text) + 1)))
    return path


def main(bench, work, row):
    paths = [npm_path(os.path.join(work, "own"), PACKAGES, script) for script in SCRIPTS]
    large = made_large(os.path.join(work, "large.js"), paths[2])
    told = subprocess.run([bench, "--time", *paths, large], capture_output=True, text=True, check=True).stdout.splitlines()
    speeds = [float(re.search(r" ([0-9.]+) MB/s", line)[1]) for line in told]
    modules = paths[0][:-len(SCRIPTS[0]) - 1]
    peers = subprocess.run(["node", "-e", ACORN, modules, *paths], capture_output=True, text=True, check=True).stdout.split()
    for script, path, speed, seconds in zip(SCRIPTS, paths, speeds, map(float, peers)):
        size = os.path.getsize(path) / 1e6
        row(f"functions of {os.path.basename(script)}, {speed:.0f} MB/s, acorn", 1000 * size / speed, 1000 * seconds, "ms", "<= 0.1, >= 100 MB/s")
    print("functions of a large script:", told[-1].split(": ", 1)[1], "(must <= 2 bytes held)")
