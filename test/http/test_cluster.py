"""Several nodes: polls find the node that has the job."""
import json, threading

import faults, harness
from harness import Service, Upstream, equal, http_source, request, wait_until

UNKNOWN = "00000000-0000-4000-8000-000000000000"


class Gate:
    """A source that answers once it is opened."""

    def __init__(self, objects):
        self.open = threading.Event()
        self.routes = {path: self.held(body) for path, body in objects.layout().items()}

    def held(self, body):
        def route(handler):
            self.open.wait(60)
            handler.reply(200, body)
        return route


def nodes(work, count, **more):
    """Configurations of nodes that know each other, and their addresses."""
    ports = [harness.free_port() for _ in range(count)]
    peers = {str(i + 1): f"http://127.0.0.1:{port}/" for i, port in enumerate(ports)}
    return [{"bind": f"127.0.0.1:{port}", "cluster": {"node_id": i + 1, "peers": peers}, **more} for i, port in enumerate(ports)]


def poll(service, job, query="", headers=None):
    status, _, body = service.request("GET", f"/requests/{job}{query}", headers=headers)
    return status, json.loads(body) if body else None


def begin(service, objects, upstream, address="plain"):
    body = request(objects.module(), [objects.address(address)],
                   sources=[http_source(upstream.url, filters={"filetypes": ["elf_code"]})])
    answer = service.symbolicate(body, "?timeout=0")
    equal(answer["status"], "pending")
    return answer["request_id"]


def test_job_ids_begin_with_the_node_id(work, objects):
    gate = Gate(objects)
    with Upstream(gate.routes) as upstream, Service(work, {"cluster": {"node_id": 0xABC}}) as s:
        job = begin(s, objects, upstream)
        equal(job[:4], "0abc")
        equal(job[14], "4")  # in form of version 4
        gate.open.set()
        equal(poll(s, job, "?timeout=30")[1]["status"], "completed")


def test_poll_is_forwarded_to_the_owner(work, objects):
    gate = Gate(objects)
    one, two = nodes(work, 2)
    with Upstream(gate.routes) as upstream, Service(work, one) as a, Service(work, two) as b:
        job = begin(a, objects, upstream)
        status, answer = poll(b, job, "?timeout=0")
        equal((status, answer["status"], answer["request_id"]), (200, "pending", job))
        equal(poll(b, job.replace("-", "").upper(), "?timeout=0")[1]["request_id"], job)
        waiting = threading.Thread(target=lambda: answers.append(poll(b, job)))
        answers = []
        waiting.start()
        gate.open.set()
        waiting.join(60)
        equal(answers[0][1]["status"], "completed")
        equal(poll(a, job)[1], answers[0][1])
        equal(poll(b, job, headers={"X-Symloom-Forwarded": "1"})[0], 404)  # never twice
        equal(poll(b, "0001" + UNKNOWN[4:])[0], 404)  # its owner does not know it
        equal(poll(b, UNKNOWN)[0], 404)
        equal(poll(b, "nonsense")[0], 404)


def test_poll_of_an_unreachable_owner_is_not_found(work, objects):
    one, two = nodes(work, 2)
    with Service(work, two) as b:
        status, _, body = b.request("GET", "/requests/0001" + UNKNOWN[4:])
        equal((status, body), (404, b""))


def test_forwarded_polls_need_a_key(work, objects):
    gate = Gate(objects)
    keys = {"require": ["symbolicate"], "keys": [{"id": "k", "sha256": "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b",
                                                 "rights": ["symbolicate"]}]}
    one, two = nodes(work, 2, auth=keys)
    with Upstream(gate.routes) as upstream, Service(work, one) as a, Service(work, two) as b:
        body = request(objects.module(), [objects.address("plain")],
                       sources=[http_source(upstream.url, filters={"filetypes": ["elf_code"]})])
        proof = {"X-Api-Key": "secret"}
        status, _, answer = a.post("/symbolicate?timeout=0", body, proof)
        equal(status, 200, answer)
        job = json.loads(answer)["request_id"]
        equal(poll(b, job, "?timeout=0")[0], 401)
        equal(poll(b, job, "?timeout=0", proof)[1]["status"], "pending")
        gate.open.set()
        equal(poll(b, job, "?timeout=30", proof)[1]["status"], "completed")


def test_invalid_node_ids_and_peers_are_refused(work, objects):
    for cluster, what in (({"node_id": 65536}, "cluster.node_id"), ({"peers": {"x": "http://a"}}, "cluster.peers.x"),
                          ({"peers": {"65536": "http://a"}}, "cluster.peers.65536"), ({"peers": {"01": "http://a"}}, "cluster.peers.01"),
                          ({"peers": {"1": "ftp://a"}}, "cluster.peers.1"),
                          ({"node_id": 1, "peers": {"3": "http://a"}}, "cluster.node_id: its 4 processes use node ids 1 to 4, which overlap node 3"),
                          ({"node_id": 3, "peers": {"1": "http://a"}}, "cluster.peers.1: its 4 processes"),
                          ({"peers": {"1": "http://a", "4": "http://b"}}, "cluster.peers.1: its 4 processes"),
                          ({"node_id": 65533}, "cluster.node_id: with 4 processes, node ids would exceed 65535")):
        try:
            Service(work, {"cluster": cluster, "http": {"processes": 4}, "bind": "127.0.0.1:1"}).stop()
            raise RuntimeError(f"{cluster} was taken")
        except AssertionError as error:
            assert what in str(error), error


def shared(server, node, **more):
    return {"cluster": {"node_id": node, "results": "redis"}, "shared_cache": {"redis": {"url": server.url, **more}}}


def held(server, job):
    """What Redis has of a job, if it is one short line."""
    lines = server.ask(f"GET symloom:job:{job}").split("\r\n")
    return lines[1] if lines[0] == "$2" else lines[0]


def test_finished_results_are_shared_through_redis(work, objects):
    gate = Gate(objects)
    with faults.Redis(work) as server, Upstream(gate.routes) as upstream, Service(work, shared(server, 1)) as a, \
            Service(work, shared(server, 2)) as b, Service(work, shared(server, 3)) as c:
        job = begin(a, objects, upstream)
        equal(held(server, job), "P1")
        assert 20 < int(server.ask(f"TTL symloom:job:{job}")[1:].split()[0]) <= 30
        equal(poll(b, job, "?timeout=0")[1]["status"], "pending")
        answers = []
        waiting = [threading.Thread(target=lambda: answers.append(poll(b, job))) for _ in range(3)]
        for one in waiting:
            one.start()
        gate.open.set()
        for one in waiting:
            one.join(60)
        mine = poll(a, job)[1]
        equal([one[1] for one in answers], [mine] * 3)
        a.stop()  # what it has done is not lost with it
        equal(poll(c, job)[1], mine)
        equal(poll(b, UNKNOWN)[0], 404)
        server.ask(f"SET symloom:job:{UNKNOWN} Rnoframe")
        equal(poll(b, UNKNOWN)[0], 404)


def test_large_results_stay_on_their_node(work, objects):
    gate = Gate(objects)
    ports = [harness.free_port() for _ in range(2)]
    peers = {str(i + 1): f"http://127.0.0.1:{port}" for i, port in enumerate(ports)}
    with faults.Redis(work) as server, Upstream(gate.routes) as upstream:
        config = [shared(server, i + 1, max_value_size=64) for i in range(2)]
        for i, one in enumerate(config):
            one["bind"] = f"127.0.0.1:{ports[i]}"
            one["cluster"]["peers"] = peers
        with Service(work, config[0]) as a, Service(work, config[1]) as b:
            job = begin(a, objects, upstream)
            gate.open.set()
            mine = poll(a, job)[1]
            wait_until("its place", lambda: held(server, job) == "L1")
            equal(poll(b, job)[1], mine)


def test_unreachable_redis_acts_as_disabled(work, objects):
    gate = Gate(objects)
    with faults.Redis(work) as server:
        with Upstream(gate.routes) as upstream, Service(work, shared(server, 1)) as a, Service(work, shared(server, 2)) as b:
            first = begin(a, objects, upstream)
            server.stop()
            second = begin(a, objects, upstream)
            gate.open.set()
            equal(poll(a, first)[1]["status"], "completed")
            equal(poll(a, second)[1]["status"], "completed")
            equal(poll(b, first)[0], 404)
