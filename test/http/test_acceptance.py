"""Examples of the sources' chapter that no other test has: rows of candidates, hits counted, nothing asked twice."""
import os, threading

from harness import Service, Upstream, equal, frames, http_source, request, wait_until

PLACEHOLDER = "No object files listed on this source"
NATIVE = {"type": "native"}


def rows(answer):
    return [(c["location"], c["download"]["status"], c.get("debug", {}).get("status")) for c in answer["modules"][0]["candidates"]]


def ask(service, module, source, **keys):
    options = {"dif_candidates": True, **keys.pop("options", {})}
    return service.symbolicate(request(module, [0x10], sources=[source], options=options, **keys))


MACHO = {"type": "macho", "debug_id": "502fc0a5-1ec1-3e47-9998-684fa139dca7", "code_file": "App", "debug_file": "App",
         "image_addr": "0x10000000", "image_size": 4096}


def test_files_of_another_type_are_never_asked_for(work, objects):
    with Upstream({}) as up, Service(work) as s:
        module = {**MACHO, "type": "pe", "code_id": "5ab380779000"}
        source = http_source(up.url, layout=NATIVE, filters={"filetypes": ["mach_code"]})
        answer = ask(s, module, source)
        equal(set(rows(answer)), {(PLACEHOLDER, "notfound", None)})
        equal(up.hits, {})


def test_http_status_of_a_source_maps_to_module_status(work, objects):
    """What each status comes to, by kind of source."""
    path = "/502F/C0A5/1EC1/3E47/9998/684FA139DCA7.app"
    for status, expected, debug in ((400, "notfound", "missing"), (404, "notfound", "missing"),
                                    (500, "error", "fetching_failed")):
        with Upstream({path: status}) as up, Service(work) as s:
            source = http_source(up.url, layout=NATIVE, filters={"filetypes": ["mach_code"]})
            answer = ask(s, MACHO, source)
            equal(answer["modules"][0]["debug_status"], debug, status)
            equal([r for r in rows(answer) if r[0] != PLACEHOLDER], [(up.url + path[1:], expected, None)])
        with Upstream({"/index": status}) as up, Service(work) as s:
            answer = ask(s, MACHO, {"id": "sentry:project", "type": "sentry", "url": up.url + "index", "token": "t"})
            equal(answer["modules"][0]["debug_status"], "missing", f"sentry {status}")
            equal(set(rows(answer)), {(PLACEHOLDER, "notfound", None)})


def test_failures_survive_restarts(work, objects):
    """The second process on the same directory asks nobody; but a host that had too much to do, which says nothing of the file."""
    path = f"/{objects.build_id}/executable"
    cases = [(500, 3, "download failed: 500 Internal Server Error"), (404, 1, None), (403, 1, "403 Forbidden"),
             (429, 3, "download failed: 429 Too Many Requests")]
    for status, hits, details in cases:
        cache = os.path.join(work, f"cache-{status}")
        with Upstream({path: (lambda h: h.reply(429, headers=[("Retry-After", "0")])) if status == 429 else status}) as up:
            source = http_source(up.url, filters={"filetypes": ["elf_code"]})
            for turn in range(2):
                with Service(work, cache_dir=cache) as s:
                    answer = ask(s, objects.module(), source)
                    found = [c for c in answer["modules"][0]["candidates"] if c["location"] != PLACEHOLDER]
                    equal(found[0]["download"].get("details"), details, (status, turn))
            equal(up.hits[path], hits * 2 if status == 429 else hits, status)


def test_twenty_requests_share_one_download(work, objects):
    """The plain and the compressed name, once each."""
    gate = threading.Event()
    base = "/wkernel32.pdb/FF9F9F7841DB88F0CDEDA9E1E9BFF3B51/wkernel32.pd"

    def slow(h):
        gate.wait(60)
        h.reply(404)

    with Upstream({base + "b": slow, base + "_": slow}) as up, Service(work) as s:
        module = {"type": "pe", "debug_id": "ff9f9f78-41db-88f0-cded-a9e1e9bff3b5-1", "debug_file": "C:\\x\\wkernel32.pdb",
                  "image_addr": "0x10000000", "image_size": 4096}
        source = http_source(up.url, layout={"type": "symstore"}, filters={"filetypes": ["pdb"]})
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(ask(s, module, source))) for _ in range(20)]
        for t in threads:
            t.start()
        wait_until("both downloads", lambda: len(up.hits) == 2)
        gate.set()
        for t in threads:
            t.join()
        equal(len(answers), 20)
        equal(up.hits, {base + "b": 1, base + "_": 1})


def test_macho_module_lists_all_its_candidates(work, objects):
    with Upstream({}) as up, Service(work) as s:
        answer = ask(s, MACHO, http_source(up.url, layout=NATIVE), options={"apply_source_context": True})
        names = [r[0].removeprefix(up.url) for r in rows(answer)]
        expected = ["502F/C0A5/1EC1/3E47/9998/684FA139DCA7", "502F/C0A5/1EC1/3E47/9998/684FA139DCA7.app",
                    "502F/C0A5/1EC1/3E47/9998/684FA139DCA7.src.zip"]
        equal([n for n in names if n in expected], expected)
        equal(names, sorted(names))


def test_redirects_show_the_first_address(work, objects):
    path = f"/{objects.build_id}/executable"
    with Upstream({path: lambda h: h.reply(302, headers=[("Location", "/elsewhere")]), "/elsewhere": objects.full}) as up, \
            Service(work) as s:
        answer = ask(s, objects.module(), http_source(up.url, filters={"filetypes": ["elf_code"]}))
        equal((up.url + path[1:], "ok", "ok") in rows(answer), True, rows(answer))
