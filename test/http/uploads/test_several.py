"""Uploads to a service of several processes, and to nodes that know each other."""
import gzip, os

from harness import Service, equal, free_port
from pushing import SYM, TOKENS, XPC, get, stored, upload
from test_single_files import announce, place
from test_uploads import P, P_SYM, ask_native, ask_v5

PIECE = 256 * 1024


def service(work, store, **config):
    mozilla = {"tokens": TOKENS, "sources": [], "store": {"filesystem": {"path": store}}}
    return Service(work, {"mozilla": mozilla, **config})


def put(s, path, data, **fields):
    return s.request("PUT", path, data, {k.replace("_", "-"): v for k, v in fields.items()})


def send_in_pieces(turns, path, data):
    """A piece to each of the services in turn, and the question how much there is to the next."""
    for begin in range(0, len(data), PIECE):
        piece = data[begin:begin + PIECE]
        end = begin + len(piece) - 1
        status, headers, _ = put(next(turns), path, piece, Content_Range=f"bytes {begin}-{end}/{len(data)}")
        if end + 1 < len(data):
            equal((status, headers["Range"]), (308, f"bytes=0-{end}"))
            status, headers, _ = put(next(turns), path, b"", Content_Range="bytes */*")
            equal((status, headers["Range"]), (308, f"bytes=0-{end}"))
    equal(status, 200)


def forever(*services):
    while True:
        yield from services


def test_processes_of_one_service_share_uploads(work, objects):
    """Every connection may end at another process."""
    store, flag = os.path.join(work, "store"), os.urandom(6 * PIECE + 5)
    with service(work, store, bind=f"127.0.0.1:{free_port()}", http={"processes": 2}) as s:
        for _ in range(8):
            equal((ask_v5(s), ask_native(s)), ((False, None), ("missing", None)))
        upload(s, {P: P_SYM})
        for _ in range(8):
            equal((ask_v5(s), ask_native(s)), ((True, "testproj::main"), ("found", "testproj::main")))
        one, two = (place(f["action"]) for f in announce(s, [(XPC, SYM), ("flag/deadbeef/flag.jpeg", flag)])["files"])
        for wrong in (b"", b"x"):
            for _ in range(4):
                equal(put(s, one, wrong)[0], 400)
        equal(put(s, one, gzip.compress(SYM))[0], 200)
        equal(get(s, XPC)[2], SYM)
        send_in_pieces(forever(s), two, flag)
        for path in ("0" * 32, "zz", one.rpartition("/")[2][:-1], one.rpartition("/")[2][:-1] + "x"):
            for _ in range(4):
                equal(put(s, "/upload/v2/session/" + path, b"x")[0], 404)
    with open(os.path.join(store, "v1/flag/DEADBEEF/flag.jpeg"), "rb") as f:
        assert f.read() == flag


def test_peer_nodes_share_uploads(work, objects):
    store, flag = os.path.join(work, "store"), os.urandom(3 * PIECE)
    ports = [free_port(), free_port()]
    urls = [f"http://127.0.0.1:{port}" for port in ports]

    def node(number):
        cluster = {"node_id": number, "peers": {1 - number: urls[1 - number]}}
        return service(work, store, bind=f"127.0.0.1:{ports[number]}", cluster=cluster)

    with node(0) as one:
        with node(1) as two:
            path = place(announce(one, [("flag/deadbeef/flag.jpeg", flag)])["files"][0]["action"])
            send_in_pieces(forever(two, one), path, flag)
            equal([n for n in stored(work) if n.startswith("v1/")], ["v1/flag/DEADBEEF/flag.jpeg"])
            lost = place(announce(two, [(XPC, SYM)])["files"][0]["action"])
        equal(put(one, lost, gzip.compress(SYM))[0], 503, "its owner may come back")
