"""The protocol's examples one by one, each with nothing cached unless it says so; and what else a request may be."""
import concurrent.futures

from harness import equal
from test_mssymcache import GOOD, NAME, Server, program, runs

FILE = (200, "3.2.0", b"of ntdll.pdb")


def ask(work, version, transcoder="3.2.0", cached=False, path=None, **fields):
    """The first answer of a new server, and how often its transcoder ran for it."""
    with Server(work, [program(work, GOOD, transcoder)]) as s:
        if cached:
            equal(s.answer("3.1.0"), FILE)
        before = runs(work)
        found = s.answer(version, path, **fields)
        return found, runs(work) - before


def test_each_row_of_the_version_table_holds(work, objects):
    equal(ask(work, "3.1.0"), (FILE, 1))
    equal(ask(work, "4.0.0"), (FILE, 1), "of another major version: held")
    equal(ask(work, "3.2.0", "4.0.0"), ((404, None, b""), 0))
    equal(ask(work, "3.5.0", cached=True), (FILE, 0))
    for exceeds, expected in ("3.2.0", (304, None, b"")), ("3.1.0", FILE):
        equal(ask(work, "3.5.0", cached=True, If_Version_Exceeds=exceeds), (expected, 0))
    equal(ask(work, "3.5.0", If_Version_Exceeds="3.2.0"), ((304, None, b""), 0))
    for cached in False, True:
        found, count = ask(work, "3.5.0", cached=cached, If_Version_Exceeds="3.5.0")
        equal((found[0], count), (400, 0))
        equal(ask(work, "2.9.0", cached=cached), ((404, None, b""), 0))
    with Server(work, [program(work, GOOD)]) as s:
        equal(s.answer("3.2.0", f"/..%2fx.pdb/{s.guid}/1")[0], 400)
        equal(s.answer("3.2.0"), (404, "1", b""))
        equal(s.wait("3.2.0"), FILE)
    for name in "Accept-Retry-After", "Allow-Retry-After":
        with Server(work, [program(work, GOOD)]) as s:
            equal(s.answer("3.1.0", **{name.replace("-", "_"): "TRUE"}), (404, "1", b""))
            equal(s.wait("3.1.0"), FILE)
    with Server(work, [program(work, GOOD)]) as s:
        nobody = f"/{NAME}/{32 * 'A'}/1"
        equal(s.answer("3.2.0", nobody)[:2], (404, "1"))
        equal(s.wait("3.2.0", nobody), (404, None, b""))
        asked = sum(s.up.hits.values())
        equal((s.answer("3.2.0", nobody), sum(s.up.hits.values())), ((404, None, b""), asked))
    with Server(work, [program(work, "sleep 0.2; " + GOOD)]) as s, concurrent.futures.ThreadPoolExecutor(2) as pool:
        before = runs(work)
        equal(list(pool.map(lambda _: s.answer("3.1.0"), range(2))), [FILE] * 2)
        equal((runs(work) - before, max(s.up.hits.values())), (1, 1))


def test_higher_age_is_accepted_and_repeated_header_refused(work, objects):
    with Server(work, [program(work, 'out=$(echo "$out" | sed "s,${id%1}1/,${id%1}0/,"); mkdir -p "$(dirname "$out")"; ' + GOOD)]) as s:
        s.up.routes[f"/{NAME}/{s.guid}0/{NAME}"] = s.pdb
        equal(s.answer("3.1.0", f"/{NAME}/{s.guid}/0"), FILE, "an age that is higher than the one asked for")
        connection = s.service.connection()
        connection.putrequest("GET", f"/v3.5.0{s.path}")
        for value in "3.1.0", "3.2.0":
            connection.putheader("If-Version-Exceeds", value)
        connection.endheaders()
        answer = connection.getresponse()
        equal((answer.status, answer.read()), (400, b"Only one If-Version-Exceeds header is permitted."))
        connection.close()
