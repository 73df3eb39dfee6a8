"""The debuginfod server against elfutils': requests for a small file that both have at hand."""
import os, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "test", "http"), os.path.join(ROOT, "test", "http", "debuginfod")]
import harness
from http_rows import requests_per_second, side_by_side
from split_program import Client, Program, directory

CONNECTIONS = 4


def small_file(work, row):
    """A debug file of 6 KB, and one of its sections."""
    t = Program(work)
    source = directory(work, t)
    with harness.Service(work, {"sources": [source], "logging": {"access": "off"}}) as s, harness.debuginfod(work, source["path"]) as url:
        harness.wait_until("a scan", lambda: Client(work, url.rstrip("/")).find("debuginfo", t.id))
        for kind, must in (("debuginfo", ">= 5"), ("section/.debug_line", ">= 1")):
            assert s.request("GET", t.path(kind))[0] == 200
            ours, theirs = side_by_side(lambda: requests_per_second(f"http://127.0.0.1:{s.port}{t.path(kind)}", None, work, CONNECTIONS),
                                        lambda: requests_per_second(url.rstrip("/") + t.path(kind), None, work, CONNECTIONS))
            row(f"{kind.split('/')[0]} of {len(t.debug)} bytes, requests/s, debuginfod", ours, theirs, "1/s", must)


def main(symloom, row):
    harness.SYMLOOM = symloom
    with tempfile.TemporaryDirectory(prefix="symloom-bench-") as work:
        small_file(work, row)
