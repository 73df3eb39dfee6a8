"""Proxies of the environment, under the names that users of curl and of other programs give them."""
import contextlib, os

from harness import Service, Upstream, equal, frames, http_source, request

NAMES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "REQUEST_METHOD")


@contextlib.contextmanager
def environment(**names):
    before = {n: os.environ.pop(n) for n in NAMES if n in os.environ}
    os.environ.update(names)
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]
        os.environ.update(before)


def test_proxy_variables_of_the_environment_are_used(work, objects):
    """The proxy knows the host of the source, which nobody else does; it listens on a reserved address, as the operator says."""
    url = "http://symbols.example.com/"
    executable = f"{url}{objects.build_id}/executable"
    source = http_source(url, filters={"filetypes": ["elf_code"]})
    for names, asked in (({"http_proxy": 1}, True), ({"HTTP_PROXY": 1}, True), ({"all_proxy": 1}, True), ({"ALL_PROXY": 1}, True),
                         ({"HTTP_PROXY": 1, "NO_PROXY": "example.com"}, False), ({"HTTP_PROXY": 1, "no_proxy": "*"}, False),
                         ({"HTTP_PROXY": 1, "REQUEST_METHOD": "GET"}, False), ({"HTTP_PROXY": 1, "http_proxy": ""}, False), ({"HTTPS_PROXY": 1}, False)):
        with Upstream({executable: objects.full}) as proxy:
            with environment(**{n: proxy.url if v == 1 else v for n, v in names.items()}):
                with Service(work, {"sources": [source], "connect_to_reserved_ips": False, "connect_timeout": "1s"}) as s:
                    answer = s.symbolicate(request(objects.module(), [objects.address("plain")]))
                    equal((frames(answer)[0]["status"] == "symbolicated", proxy.hits), (asked, {executable: 1} if asked else {}), names)
                    equal("ignoring HTTP_PROXY" in s.logged(), "REQUEST_METHOD" in names, names)
