"""Mozilla's symbolication API, versions 4 and 5: answers, what is wrong with bodies, browsers, and stores that do not answer."""
import contextlib, gzip, json

from harness import Service, Upstream, equal, http_source
from servers import free_port

P = ("testproj", "D48F191186D67E69DF025AD71FB91E1F0")
I = ("testproj", "0905AE80CEE75A33E3CAB61C274274DE0")
N = ("ntdll.pdb", "F86EB934B42FBB79B2595AA25907695C1")
X = ("xul.pdb", "44E4EC8C2F41492B9369D6B9A059577C2")
W = ("wntdll.pdb", "D74F79EB1F8D4A45ABCD2F476CCABACC2")
MAIN, HELPER = "/home/willkg/projects/testproj/src/main.rs", "/home/willkg/projects/testproj/src/helper.rs"
FILES = {
    P: f"""MODULE Linux x86_64 {P[1]} testproj
FILE 0 {MAIN}
FUNC 5380 44 0 testproj::main
5380 9 1 0
5389 36 2 0
53bf 5 3 0
""",
    I: f"""MODULE Linux x86_64 {I[1]} testproj
INFO CODE_ID 80AE0509E7CE335AE3CAB61C274274DE96049B64
FILE 0 {MAIN}
FILE 1 /rustc/e092d0b6b43f2de967af0887873151bb1c0b18d3/library/core/src/fmt/mod.rs
FILE 2 {HELPER}
INLINE_ORIGIN 0 testproj::helper::middle
INLINE_ORIGIN 1 testproj::helper::inner
INLINE_ORIGIN 2 core::fmt::Arguments::new_v1
FUNC 7a40 85 0 testproj::main
INLINE 0 4 0 0 7a40 7d
INLINE 1 2 2 1 7a40 49
INLINE 2 7 2 2 7a40 3a
INLINE 1 3 2 2 7a89 31
7a40 7 3 0
7a47 33 392 1
7a7a f 7 2
7a89 31 392 1
7aba 3 3 2
7abd 8 5 0
7a82 5 5 2
""",
    N: f"""MODULE windows x86_64 {N[1]} ntdll.pdb
INFO CODE_ID 0532197720E000 ntdll.dll
FUNC 1008 106 0 LdrpGetModuleName
PUBLIC 1120 0 LdrQueryNextListEntry
PUBLIC 1140 0 LdrQueryModuleInfoFromLdrEntry
FUNC 1260 4a 0 LdrpReadMemory
""",
    X: f"""
MODULE windows x86 {X[1]} xul.pdb
INFO CODE_ID 54AF957E1B34000 xul.dll

FILE 1 c:/program files (x86)/windows kits/8.0/include/shared/sal.h
FUNC 0 junkline
FUNC 26791a 592 4 XREMain::XRE_mainRun()
FUNC b2e3f7 2b4 4 XREMain::XRE_mainRun()
""",
    W: f"""MODULE windows x86 {W[1]} wntdll.pdb

PUBLIC 10070 10 KiUserCallbackExceptionHandler
PUBLIC 100dc c KiUserCallbackDispatcher
PUBLIC 10124 8 KiUserExceptionDispatcher
PUBLIC 10174 0 KiRaiseUserExceptionDispatcher
PUBLIC junk
""",
}


def place(module):
    name = module[0][:-4] if module[0].endswith(".pdb") else module[0]
    return f"/{module[0]}/{module[1]}/{name}.sym"


@contextlib.contextmanager
def serving(work, config=None, **changed):
    files = {place(m): text.encode() for m, text in FILES.items()}
    with Upstream({**files, **changed}) as up:
        mozilla = {"sources": [up.url], **(config or {}).get("mozilla", {})}
        with Service(work, {**(config or {}), "mozilla": mozilla}) as s:
            s.upstream = up
            yield s


def job(modules, stacks):
    return {"memoryMap": [list(m) for m in modules], "stacks": stacks}


def ask(s, body, version=5, status=200, headers=None):
    data = body if isinstance(body, (str, bytes)) else json.dumps(body)
    answered, got, text = s.request("POST", f"/symbolicate/v{version}" if version else "/", data, headers or {})
    equal(answered, status, text)
    equal(got["Content-Type"], "application/json")
    return json.loads(text) if status == 200 else text


def frames(s, modules, stack):
    result = ask(s, {"jobs": [job(modules, [stack])]})["results"][0]
    return result["stacks"][0], result["found_modules"]


def test_frames_get_function_file_and_line(work, objects):
    with serving(work) as s:
        equal(frames(s, [P], [[0, 21376]]),
              ([{"frame": 0, "module": "testproj", "module_offset": "0x5380", "function": "testproj::main",
                 "function_offset": "0x0", "file": MAIN, "line": 1}], {"/".join(P): True}))
        equal(ask(s, {**job([P], [[[0, 21376]]]), "version": 4}, 4),
              {"symbolicatedStacks": [["testproj::main (in testproj)"]], "knownModules": [True]})
        (frame,), _ = frames(s, [I], [[0, 31354]])
        equal((frame["function"], frame["function_offset"], frame["file"], frame["line"], frame["inlines"]),
              ("testproj::main", "0x3a", MAIN, 4, [{"function": "testproj::helper::inner", "file": HELPER, "line": 7},
                                                    {"function": "testproj::helper::middle", "file": HELPER, "line": 2}]))
        equal(ask(s, job([I], [[[0, 31296]]]), 4), {"symbolicatedStacks": [["testproj::main (in testproj)"]], "knownModules": [True]})
        (frame,), found = frames(s, [N], [[0, 4104]])
        equal(({k: frame.get(k) for k in ("function", "function_offset", "file", "line")}, found),
              ({"function": "LdrpGetModuleName", "function_offset": "0x0", "file": None, "line": None}, {"/".join(N): True}))
        equal(frame["module"], "ntdll.dll")


def test_missing_and_malformed_modules_are_told_apart(work, objects):
    with serving(work, **{place(P): 404, place(W): b"this is junk", place(N): FILES[P].encode()}) as s:
        body = job([P, ("libc.so", "12345")], [[[0, 1000], [0, 1020]]])
        equal(frames(s, [P, ("libc.so", "12345")], [[0, 1000], [0, 1020]]),
              ([{"frame": 0, "module": "testproj", "module_offset": "0x3e8"}, {"frame": 1, "module": "testproj", "module_offset": "0x3fc"}],
               {"/".join(P): False, "libc.so/12345": None}))
        equal(ask(s, body, 4), {"symbolicatedStacks": [["0x3e8 (in testproj)", "0x3fc (in testproj)"]], "knownModules": [False, None]})
        equal(frames(s, [W], [[0, 1]])[1], {"/".join(W): False}, "junk")
        equal(frames(s, [("a.so", "abcde")], [[0, 1]])[1], {"a.so/abcde": False}, "no id")
        none = [("", ""), ("foo.pdb", ""), ("", W[1])]
        got, found = frames(s, none, [[0, 11723767], [1, 65802]])
        equal(([f["module"] for f in got], found), (["<unknown>", "foo.pdb"], {"/": None, "foo.pdb/": None, f"/{W[1]}": None}))
        equal(frames(s, [("abc.so", "")], [[-1, 1000], [0, -1]])[0],
              [{"frame": 0, "module": "<unknown>", "module_offset": "0x3e8"}, {"frame": 1, "module": "abc.so", "module_offset": "-0x1"}])


def test_records_with_m_are_read_and_wrong_ids_refused(work, objects):
    """Records with an `m`; a file of another id in a module's place."""
    marked = {X: FILES[X].replace("FUNC b2e3f7", "FUNC m b2e3f7"), W: FILES[W].replace("PUBLIC 100dc", "PUBLIC m 100dc")}
    zeros = (P[0], "0" * 33)
    with serving(work, **{place(m): text.encode() for m, text in marked.items()}, **{place(zeros): FILES[P].encode()}) as s:
        equal(ask(s, job([X, W], [[[0, 11723767], [1, 65802]]]), 4),
              {"symbolicatedStacks": [["XREMain::XRE_mainRun() (in xul.pdb)", "KiUserCallbackDispatcher (in wntdll.pdb)"]],
               "knownModules": [True, True]})
        equal(frames(s, [zeros], [[0, 21376]]),
              ([{"frame": 0, "module": "testproj", "module_offset": "0x5380"}], {"/".join(zeros): False}))


def test_extensions_add_function_size_and_module_errors(work, objects):
    """What samply tells beside: sizes of functions, and why modules have no symbols."""
    modules, offsets = [P, I, N, W, X], [21377, 31354, 4104, 65802, 0x268000]
    all_of_them = {"mozilla": {"v5_extensions": ["function_size", "module_errors"]}}
    with serving(work, all_of_them) as s:
        got, _ = frames(s, modules, [[m, offset] for m, offset in enumerate(offsets)] + [[0, 1], [0, -1]])
        equal([f.get("function_size") for f in got], ["0x44", "0x85", "0x106", "0x48", "0x592", None, None])
        equal(list(ask(s, {"jobs": [job(modules, [[[0, 21377]]])]})["results"][0]), ["stacks", "found_modules"])
    files = {place(W): b"this is junk", place(N): FILES[P].encode(), place(X): 404}
    bad = ("a.so", "abcde")
    for config, told in ((all_of_them, True), ({"mozilla": {"compat": "profiler"}}, True), ({}, False),
                         ({"mozilla": {"compat": "profiler", "v5_extensions": []}}, False)):
        with serving(work, config, **files) as s:
            body = {"jobs": [job([P, W, N, X, bad, I, ("", ""), W], [[[i, 21376] for i in range(5)]])]}
            (got, *_), = [r["stacks"][0] for r in ask(s, body)["results"]]
            errors = ask(s, body)["results"][0].get("module_errors")
            equal(("function_size" in got, errors is not None), (told, told), config)
            equal({name: [e["name"] for e in list_] for name, list_ in (errors or {}).items()},
                  {"/".join(m): [kind] for m, kind in ((W, "BreakpadParsing"), (N, "UnmatchedDebugId"), (X, "NoCandidatePathForDebugFile"),
                                                       (bad, "InvalidBreakpadId"))} if told else {})


def test_jobs_share_their_modules(work, objects):
    with serving(work) as s:
        answer = ask(s, {"jobs": [job([P, X], [[[1, 11723767]]]), job([(P[0], P[1].lower()), X], [[[0, 21377]], []])]})
        equal([r["found_modules"] for r in answer["results"]],
              [{"/".join(P): True, "/".join(X): True}, {f"{P[0]}/{P[1].lower()}": True, "/".join(X): True}])
        equal([[[f.get("function") for f in stack] for stack in r["stacks"]] for r in answer["results"]],
              [[["XREMain::XRE_mainRun()"]], [["testproj::main"], []]])
        equal((s.upstream.hits[place(P)], s.upstream.hits[place(X)]), (1, 1))
        equal(ask(s, {"jobs": []}), {"results": []})
        got, _ = frames(s, [W, X], [[0, 65648], [1, 11723767], [0, 65907]])
        equal([f["module"] for f in got], ["wntdll.pdb", "xul.dll", "wntdll.pdb"])
        equal([(f["function"], f["function_offset"]) for f in got],
              [("KiUserCallbackExceptionHandler", "0x0"), ("XREMain::XRE_mainRun()", "0x0"), ("KiUserExceptionDispatcher", "0x4f")])


def test_version_field_selects_v4_or_v5(work, objects):
    with serving(work) as s:
        stack = [[0, 11723767], [1, 65802]]
        short = {"symbolicatedStacks": [["XREMain::XRE_mainRun() (in xul.pdb)", "KiUserCallbackDispatcher (in wntdll.pdb)"]],
                 "knownModules": [True, True]}
        for version, body, is_short in ((4, job([X, W], [stack]), True), (0, job([X, W], [stack]), True),
                                        (0, {**job([X, W], [stack]), "version": 5}, False), (0, {"jobs": [job([X, W], [stack])]}, False),
                                        (4, {"jobs": [], **job([X, W], [stack])}, True), (5, job([X, W], [stack]), False)):
            answer = ask(s, body, version)
            equal(answer if is_short else list(answer), short if is_short else ["results"])
        equal(ask(s, job([X, W], [[[-1, 11723767], [1, 65802]]]), 4),
              {"symbolicatedStacks": [["0xb2e3f7 (in <unknown>)", "KiUserCallbackDispatcher (in wntdll.pdb)"]], "knownModules": [None, True]})
        equal(ask(s, '{"memoryMap": [["%s", "%s"]], "stacks": [[[0, 1.00000]]]}' % P, 4),
              {"symbolicatedStacks": [["1.00000"]], "knownModules": [True]})
        equal(ask(s, job([W], [[[0, 55802]]]), 4)["symbolicatedStacks"], [["0xd9fa (in wntdll.pdb)"]])
    with serving(work, {"mozilla": {"root_alias": False, "non_integer_offsets": "reject", "v4_require_version": True}}) as s:
        ask(s, job([P], [[[0, 1]]]), 0, 405)
        ask(s, job([P], [[[0, 1]]]), 4, 400)
        equal(ask(s, {**job([P], [[[0, 1.5]]]), "version": 4}, 4, 400),
              b'{"title": "job 0 has invalid stacks: stack 0 frame 0 has an invalid module_offset"}')


def title(text):
    return b'{"title": "' + text.encode() + b'"}'


def test_address_between_functions_gets_the_nearest(work, objects):
    for config, near in (({}, ("XREMain::XRE_mainRun()", "0x6e6")), ({"lookup": "exact"}, (None, None)), ({"compat": "eliot"}, (None, None))):
        with serving(work, {"mozilla": config}) as s:
            (got,), _ = frames(s, [X], [[0, 0x268000]])
            equal((got.get("function"), got.get("function_offset")), near, config)
            equal([k for k in ("file", "line", "inlines") if k in got], [])


def test_invalid_bodies_report_the_fault(work, objects):
    with serving(work) as s:
        for body in ("", "data=wrongtype", b"\xff", "[1", '{"jobs": NaN}'):
            equal(ask(s, body, 5, 400), title("Payload is not valid JSON"))
        for version in (4, 5):
            for body in ({}, {"modules": [["xul.so", "ABCDE"]]}):
                equal(ask(s, body, version, 400), title("job 0 is invalid: no stacks specified"))
            equal(ask(s, {"stacks": []}, version, 400), title("job 0 is invalid: no memoryMap specified"))
            for body in ("[]", "1", '"x"', "null"):
                equal(ask(s, body, version, 400), title("job 0 is invalid"))
        equal(ask(s, {"jobs": [job([P], [[[0, 1]]]), {"modules": []}]}, 5, 400), title("job 1 is invalid: no stacks specified"))
        equal(ask(s, {"jobs": {}}, 5, 400), title("jobs must be a list"))
        equal(ask(s, {"jobs": [job([P], [[[0, 1]]])] * 11}, 5, 400), title("please limit number of jobs in a single request to <= 10"))
        lacks, name, bad_id = ("does not have a debug_filename and debug_id", "has an invalid debug_filename", "has an invalid debug_id")
        for modules, wrong in ((123, "modules must be a list"), (["abc"], f"module index 0 {lacks}"),
                               ([["abc", "abc"], ["abc"]], f"module index 1 {lacks}"), ([["(", "ABC"]], f"module index 0 {name}"),
                               ([["[abc.so", "ABC"]], f"module index 0 {name}"), ([["a" * 1025, "ABC"]], f"module index 0 {name}"),
                               ([["abc.so", "xyz"]], f"module index 0 {bad_id}"), ([["abc.so", "  abc"]], f"module index 0 {bad_id}"),
                               ([["abc.so", "ABC\n"]], f"module index 0 {bad_id}"), ([["abc.so", 1]], f"module index 0 {bad_id}")):
            equal(ask(s, {"stacks": "after the modules", "memoryMap": modules}, 5, 400), title(f"job 0 has invalid modules: {wrong}"))
        at = "stack 0 frame 0"
        for stacks, wrong in (([], "no stacks specified"), ("abc", "stacks must be a list of lists"), (["abc"], "stack 0 is not a list"),
                              ([[0]], f"{at} is not a list of two items"), ([[["abc", 0]]], f"{at} has an invalid module_index"),
                              ([[[True, 0]]], f"{at} has an invalid module_index"), ([[[0.5, 0]]], f"{at} has an invalid module_index"),
                              ([[[-2, 0]]], f"{at} has a module_index that isn't in modules"),
                              ([[[100, 0]]], f"{at} has a module_index that isn't in modules"),
                              ([[[2**70, 0]]], f"{at} has a module_index that isn't in modules"),
                              ([[[0, "abc"]]], f"{at} has an invalid module_offset"), ([[[0, -2]]], f"{at} has an invalid module_offset"),
                              ([[], [[0, 1], [0, 2**64]]], "stack 1 frame 1 has an invalid module_offset")):
            equal(ask(s, job([("a.so", "AB")], stacks), 5, 400), title(f"job 0 has invalid stacks: {wrong}"))
        good = [("", ""), ("<unknown>", "0" * 33), ("libstdc++.so.6", "BF1B638ACD2AAFFD554335BB9E8A04DD0"),
                ("{e824f0e4-72f7-4295-8879-d8ff4bf348d2}.xpi", "00"), ("Font Awesome 5 Free-Solid-900.otf", "00"),
                ("libgallium-24.2.8-1~bpo12+rpt1.so", "686E"), ("qipcap.dll", "5F8599C48000")]
        equal(set(ask(s, job(good, [[]]))["results"][0]["found_modules"].values()), {None})
        ask(s, {"stacks": [[]], "memoryMap": []})
        equal(ask(s, '{"memoryMap": 1, "memoryMap": [], "stacks": [[]]}')["results"], [{"stacks": [[]], "found_modules": {}}])
    with serving(work, {"mozilla": {"compat": "profiler", "error_key": "both", "max_body_size": "1 KiB"}}) as s:
        equal(list(ask(s, job([("[kernel.kallsyms]", "00")], [[]]))["results"][0]["found_modules"]), ["[kernel.kallsyms]/00"])
        equal(json.loads(ask(s, "{}", 5, 400)), {k: "job 0 is invalid: no stacks specified" for k in ("title", "error")})
        equal(json.loads(ask(s, " " * 1025, 5, 413))["title"], "Payload is too large")


def test_content_types_and_encodings_are_accepted(work, objects):
    with serving(work) as s:
        body = json.dumps(job([P], [[[0, 21376]]])).encode()
        for headers in ({"Content-Type": "text/plain;charset=utf-8"}, {"Content-Type": "application/x-www-form-urlencoded"}):
            equal(list(ask(s, body, headers=headers)), ["results"])
        equal(list(ask(s, gzip.compress(body), headers={"Content-Encoding": "gzip"})), ["results"])
        equal(list(ask(s, b"\xef\xbb\xbf" + body)), ["results"])


def test_cors_headers_are_sent_to_browsers(work, objects):
    exposed = "accept, accept-encoding, authorization, content-type, dnt, origin, user-agent, x-csrftoken, x-requested-with"
    with serving(work) as s:
        origin = {"Origin": "http://example.com"}
        status, got, _ = s.request("OPTIONS", "/symbolicate/v5", None, {**origin, "Access-Control-Request-Method": "POST"})
        equal((status, got["Access-Control-Allow-Origin"], got["Access-Control-Allow-Methods"], got["Access-Control-Allow-Headers"],
               got["Access-Control-Expose-Headers"], got["Access-Control-Max-Age"], got["Allow"]),
              (200, "*", "POST", "*", exposed, "86400", None))
        status, got, _ = s.request("OPTIONS", "/symbolicate/v4")
        equal((status, got["Allow"], got["Access-Control-Allow-Origin"]), (200, "POST", None))
        for method, path, body, expected in (("POST", "/symbolicate/v5", "{}", 400), ("GET", "/symbolicate/v5", None, 405),
                                             ("POST", "/symbolicate/v5", '{"jobs": []}', 200), ("POST", "/symbolicate/v6", "{}", 404)):
            status, got, text = s.request(method, path, body, origin)
            equal((status, got["Access-Control-Allow-Origin"], got["Access-Control-Expose-Headers"]), (expected, "*", exposed), path)
            equal(s.request(method, path, body)[1]["Access-Control-Allow-Origin"], None)
            if status != 200:
                equal((list(json.loads(text)), got["Vary"]), (["title"], "Accept"))
        status, got, text = s.request("GET", "/symbolicate/v5")
        equal((text, got["Allow"]), (title("405 Method Not Allowed"), "POST, OPTIONS"))


def test_transport_errors_key_selects_503_or_not_found(work, objects):
    body = job([X], [[[0, 11723767]]])
    nobody = http_source(f"http://127.0.0.1:{free_port()}", layout={"type": "native"}, filters={"filetypes": ["breakpad"]})
    for errors, status in (("503", 503), ("not_found", 200)):
        with Service(work, {"sources": [nobody], "mozilla": {"sources": [], "transport_errors": errors}}) as s:
            answered, got, text = s.request("POST", "/symbolicate/v5", json.dumps(body))
            equal(answered, status, text)
            if status == 503:
                equal((json.loads(text), got["Retry-After"]),
                      ({"title": "503 Service Unavailable", "description": "symbol storage is temporarily unavailable"}, "5"))
            else:
                equal(json.loads(text)["results"][0]["found_modules"], {"/".join(X): False})


def test_module_name_follows_the_configuration(work, objects):
    body, names = job([X], [[[0, 11723767], [0, -1], [0, 1]]]), lambda answer: [f["module"] for f in answer["results"][0]["stacks"][0]]
    for config, five, four in (({}, "xul.dll", "xul.pdb"), ({"module_name": "debug_file"}, "xul.pdb", "xul.pdb"),
                               ({"compat": "documented"}, "xul.pdb", "xul.pdb"), ({"module_name": "code_file"}, "xul.dll", "xul.dll")):
        blanks = FILES[X].replace("xul.dll", "xul dll.exe").encode()
        with serving(work, {"mozilla": config}) as s:
            equal(names(ask(s, body)), [five] * 3)
            equal(ask(s, {**body, "version": 4}, 4)["symbolicatedStacks"][0][0], f"XREMain::XRE_mainRun() (in {four})")
    with serving(work, **{place(X): blanks}) as s:
        equal(names(ask(s, body)), ["xul dll.exe"] * 3)


def test_stores_are_asked_in_their_order(work, objects):
    other = {place(X): FILES[X].replace("XREMain", "Other").encode(), place(P): FILES[P].encode()}
    wrong = {place(X): FILES[P].encode(), place(W): b"", place(N): FILES[N].encode()}
    body = job([X, P, W, N], [[[0, 11723767], [1, 21376], [2, 65802], [3, 4104]]])
    with Upstream(wrong) as a, Upstream(other) as b, Upstream({place(m): t.encode() for m, t in FILES.items()}) as c:
        with Service(work, {"mozilla": {"sources": [a.url, b.url + "/", c.url]}}) as s:
            result = ask(s, body)["results"][0]
            equal([f.get("function") for f in result["stacks"][0]],
                  ["Other::XRE_mainRun()", "testproj::main", "KiUserCallbackDispatcher", "LdrpGetModuleName"])
            equal([u.hits.get(place(m)) for m in (X, P, W, N) for u in (a, b, c)], [1, 1, None, 1, 1, None, 1, 1, 1, 1, None, None])
            ask(s, body)
            equal(sum(sum(u.hits.values()) for u in (a, b, c)), 8)


def test_fallback_sources_serve_what_stores_lack(work, objects):
    elf = (b"/fallback" + place(X).encode()).decode()
    with Upstream({elf: FILES[X].encode()}) as up:
        source = {"id": "other", **http_source(up.url + "fallback", layout={"type": "native"}, filters={"filetypes": ["breakpad"]})}
        for fallback, found in ((..., True), ("all", True), ([source["id"]], True), (["uploads"], False), ([], False)):
            mozilla = {"sources": [up.url], "fallback_sources": fallback}
            with Service(work, {"sources": [source], "mozilla": {k: v for k, v in mozilla.items() if v is not ...}}) as s:
                equal(ask(s, job([X], [[[0, 11723767]]]))["results"][0]["found_modules"], {"/".join(X): found}, fallback)


def test_debug_header_adds_timings_and_cache_state(work, objects):
    body = job([X, W], [[[0, 11723767], [1, 65802], [1, 65900]]])
    with serving(work, **{place(N): 404}) as s:
        debug = ask(s, body, 4, headers={"Debug": "true"})["debug"]
        x, w = "/".join(X), "/".join(W)
        equal((debug["stacks"], debug["modules"]), ({"count": 3, "real": 3}, {"count": 2, "stacks_per_module": {x: 1, w: 1}}))
        equal({k: debug["cache_lookups"][k] for k in ("count", "hits", "size")}, {"count": 2, "hits": 0, "size": 0})
        downloads = debug["downloads"]
        equal((downloads["count"], downloads["failed"], downloads["size"]), (2, 0, len(FILES[X]) + len(FILES[W])))
        equal(downloads["size_per_module"], {x: len(FILES[X]), w: len(FILES[W])})
        equal([list(debug[a][b]) for a, b in (("downloads", "time_per_module"), ("downloads", "fail_time_per_module"),
                                              ("parse_sym", "time_per_module"), ("parse_sym", "fail_time_per_module"),
                                              ("save_symcache", "time_per_module"))], [[x, w], [], [x, w], [], [x, w]])
        equal(all(isinstance(t, float) for t in (debug["time"], downloads["time"], debug["parse_sym"]["time"])), True)
        debug = ask(s, {"jobs": [body, job([N, ("", "")], [[[0, 1], [-1, 1], [1, 2]], [[0, 3]]])]}, headers={"Debug": "yes"})["debug"]
        equal((debug["stacks"], debug["modules"]), ({"count": 7, "real": 6}, {"count": 3, "stacks_per_module": {x: 1, w: 1, "/".join(N): 2}}))
        equal((debug["cache_lookups"]["count"], debug["cache_lookups"]["hits"], debug["cache_lookups"]["size"] > 0), (3, 2, True))
        equal((debug["downloads"]["count"], debug["downloads"]["failed"], list(debug["downloads"]["fail_time_per_module"])),
              (0, 1, ["/".join(N)]))
        for off in ("", "0", "False", "no", "OFF"):
            equal("debug" in ask(s, body, headers={"Debug": off}), False)
    with serving(work, **{place(W): b""}) as s:  # an empty file is a download, and no symbols
        for count in (2, 0):
            answer = ask(s, job([X, W], [[[0, 11723767], [1, 65802]]]), 4, headers={"Debug": "true"})
            equal((answer["knownModules"], answer["symbolicatedStacks"][0][1], answer["debug"]["downloads"]["count"]),
                  ([True, False], "0x1010a (in wntdll.pdb)", count))


def test_routes_exist_only_with_the_mozilla_section(work, objects):
    with Service(work, {"page": {"enabled": False}}) as s:
        for method, path in (("POST", "/symbolicate/v5"), ("POST", "/symbolicate/v4"), ("POST", "/"), ("OPTIONS", "/symbolicate/v5"),
                             ("POST", "/symbolicate/v6"), ("GET", "/symbolicate/v5")):
            status, got, text = s.request(method, path, "{}" if method == "POST" else None)
            equal((status, text), (404, b""), path)
