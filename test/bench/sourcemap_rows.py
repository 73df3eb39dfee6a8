"""The 13 MB source map of mermaid: to its table, and look-ups in process, beside trace-mapping, source-map and sentry-cli, which npm brings."""
import os, subprocess, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "http"))
from harness import npm_path

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = "@sentry/cli-linux-x64@2.58.2 mermaid@11.17.2 @jridgewell/trace-mapping@0.3.31 source-map@0.8.0"
SENTRY_CLI = "@sentry/cli-linux-x64/bin/sentry-cli"
MAP = "mermaid/dist/mermaid.min.js.map"


def processor_seconds(*command):
    times = []
    for _ in range(5):
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        if status:
            sys.exit(f"failed: {' '.join(command)}")
        times.append(usage.ru_utime + usage.ru_stime)
    return min(times)


def main(bench, work, row):
    path = npm_path(os.path.join(work, "own"), PACKAGES, MAP)
    modules = path[:-len(MAP) - 1]
    seconds, _, memory, look_up, _ = map(float, subprocess.run([bench, path], capture_output=True, text=True, check=True).stdout.split())
    peers = [line.split() for line in subprocess.run(["node", os.path.join(HERE, "sourcemap_peers.mjs"), modules, path], text=True,
                                                     capture_output=True, check=True).stdout.splitlines()]
    for name, parse, decoded, _ in peers:
        row(f"a source map to its table, {name}", 1000 * seconds, float(parse), "ms", "<= 0.3")
        row("  beside the same with a decoded text", 1000 * seconds, float(decoded), "ms", "")
    cli = os.path.join(modules, SENTRY_CLI)
    once = processor_seconds(cli, "sourcemaps", "resolve", "-l", "1", "-c", "1000", path) - processor_seconds(cli, "--version")
    row("  beside one look-up of sentry-cli, start apart", 1000 * seconds, 1000 * once, "ms", "<= 0.3")
    for name, _, _, looked_up in peers:
        row(f"a look-up in a source map, {name}", 1e6 * look_up, float(looked_up), "us", "<= 0.3 us")
    row("  memory of the conversion with the map", memory * 1024 / 1e6, os.path.getsize(path) / 1e6, "MB", "<= 3")
