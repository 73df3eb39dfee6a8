"""Stacks that Chromium throws in minified scripts: made readable they are what it throws in the program as it was written."""
import functools, html, http.server, os, re, subprocess, threading
import test_tools as tools

CHROMIUM = "/usr/lib/chromium/chromium-headless-shell"
PAGE = """<!doctype html><pre id=stack></pre>
<script>addEventListener('error', e => document.getElementById('stack').textContent = e.error.stack)</script>
<script src="%s" %s></script>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def thrown(program, directory):
    """As test_tools.thrown, in a page."""
    with open(os.path.join(directory, "page.html"), "w") as f:
        f.write(PAGE % (program, "type=module" if program == "main.js" else ""))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=directory)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        page = subprocess.run([CHROMIUM, "--no-sandbox", "--disable-gpu", f"--user-data-dir={os.path.join(directory, 'user')}", "--dump-dom",
                               "--virtual-time-budget=10000", f"http://127.0.0.1:{server.server_address[1]}/page.html"],
                              capture_output=True, text=True, timeout=120).stdout
        server.shutdown()
    stack = html.unescape(re.search("<pre id=.?stack.?>(.*?)</pre>", page, re.S)[1]) + "\n"
    assert "sold out" in stack, page
    return stack


def check(work, tool, places):
    kept = tools.thrown
    tools.thrown = thrown
    try:
        tools.check_tool(work, tool, places)
    finally:
        tools.thrown = kept


def test_esbuild_stacks_of_chromium_are_mapped(work, share):
    check(work, "esbuild", 8)


def test_rollup_and_terser_stacks_of_chromium_are_mapped(work, share):
    check(work, "rollup and terser", 5)


def test_closure_compiler_stacks_of_chromium_are_mapped(work, share):
    check(work, "closure compiler", 3)
