"""Uploads of keys with scopes: whose they are, who may read and delete them, and whom they answer."""
import base64, hashlib, json, os

from cloud import S3
from faults import Redis
from harness import Service, equal, frames, wait_until
from test_symbfile import EMPTY, ID, RANGES

RIGHTS = ["symbolicate", "symbols:read", "symbols:write", "symbols:delete", "downloads"]
SCOPES = {"a": ["a"], "b": ["b"], "ab": ["b", "a"], "odd": ["../a", "x" * 200], "all": None, "none": []}
OTHER = RANGES.replace(b"d_inline", b"e_inline")
BUILD_ID = "aabbccddeeff00112233445566778899aabbccdd"


def keys(secret=lambda name: "secret-" + name):
    return [{"id": name, "sha256": hashlib.sha256(secret(name).encode()).hexdigest(), "rights": RIGHTS,
             **({} if scopes is None else {"scopes": scopes})} for name, scopes in SCOPES.items()]


def service(work, **more):
    symbfile = {"store_min_free": 0, **more.pop("symbfile", {})}
    return Service(work, {"auth": {"keys": keys(), "require": ["symbolicate", "symbols"]}, "symbfile": symbfile, **more})


def send(s, who, method, path, body=None, **headers):
    text = base64.b64encode(f"{who}:secret-{who}".encode()).decode()
    status, _, data = s.request(method, path, body, {"Authorization": "APIKey " + text, **headers})
    return status, json.loads(data)


def upload(s, who, body=RANGES, query="", kind="ranges", **headers):
    return send(s, who, "POST", f"/api/symbols-{kind}{query}", body, FileID=ID, **headers)[0]


def info(s, who, query=""):
    return send(s, who, "GET", f"/api/symbols/{ID}{query}")[0]


def delete(s, who, query=""):
    return send(s, who, "DELETE", f"/api/symbols/{ID}{query}")[0]


def asked(s, who, scope, **module):
    """Status of the module, and its innermost function."""
    body = {"modules": [{"type": "elf", "image_addr": "0x0", "file_id": ID, **module}],
            "stacktraces": [{"frames": [{"instruction_addr": "0x654", "addr_mode": "rel:0"}]}]}
    query = f"?scope={scope}" if scope else ""
    status, answer = send(s, who, "POST", "/symbolicate" + query, json.dumps(body), **{"Content-Type": "application/json"})
    equal(status, 200, answer)
    return answer["modules"][0]["debug_status"], frames(answer, 0)[0].get("function")


GOT, GOT_OTHER, NONE = ("found", "d_inline"), ("found", "e_inline"), ("missing", None)


def check_scopes(s):
    equal(upload(s, "a", BuildID=BUILD_ID), 200)
    by_id = dict(file_id=None, code_id=BUILD_ID)
    for module in {}, by_id:
        equal([asked(s, "a", "a", **module), asked(s, "b", "b", **module), asked(s, "all", None, **module),
               asked(s, "all", "a", **module)], [GOT, NONE, NONE, GOT])
    equal([info(s, who) for who in ("a", "b", "ab", "all")], [200, 404, 200, 404])
    equal([info(s, "all", "?scope=a"), info(s, "b", "?scope=a"), delete(s, "b", "?scope=a")], [200, 403, 403])
    equal([upload(s, "b", query="?scope=a"), upload(s, "none"), info(s, "none")], [403, 403, 403])
    equal([delete(s, "b"), delete(s, "all"), asked(s, "a", "a")], [404, 404, GOT])
    # Another scope's upload of the same executable, also as the rest of a set that is on its way.
    equal(upload(s, "b", OTHER, FilePart="0", FileParts="2"), 200)
    equal(upload(s, "a", EMPTY, FilePart="1", FileParts="2"), 200)
    equal(asked(s, "b", "b"), NONE)
    equal(upload(s, "b", EMPTY, FilePart="1", FileParts="2"), 200)
    equal([asked(s, "a", "a"), asked(s, "b", "b")], [GOT, GOT_OTHER])
    # A key with two scopes uploads for the first one.
    equal([delete(s, "ab"), info(s, "a"), info(s, "b")], [200, 404, 404])
    equal(upload(s, "ab", query="?scope=a"), 200)
    equal([asked(s, "a", "a"), asked(s, "b", "b")], [GOT, NONE])
    equal(delete(s, "a"), 200)
    # Everybody's answer whoever has none of its own, and are nobody's to delete who has a scope.
    equal(upload(s, "all", OTHER), 200)
    equal(upload(s, "a"), 200)
    equal([asked(s, "a", "a"), asked(s, "b", "b"), asked(s, "all", None)], [GOT, GOT_OTHER, GOT_OTHER])
    equal([info(s, "b"), delete(s, "b"), delete(s, "a"), delete(s, "a"), asked(s, "a", "a")],
          [200, 403, 200, 403, GOT_OTHER])
    equal(delete(s, "all"), 200)
    equal([asked(s, who, who) for who in ("a", "b")], [NONE, NONE])
    # Names that are none of a directory.
    equal(upload(s, "odd"), 200)
    equal([asked(s, "odd", "../a"), asked(s, "odd", "x" * 200), asked(s, "a", "a")], [GOT, NONE, NONE])
    equal([delete(s, "a"), delete(s, "odd")], [404, 200])


def test_scopes_are_kept_apart_in_a_directory(work, objects):
    with service(work) as s:
        check_scopes(s)


def test_scopes_are_kept_apart_in_a_bucket(work, objects):
    with S3() as s3:
        store = {"s3": {"bucket": "symbols", "endpoint": s3.url, "access_key": "AK", "secret_key": "secret"}}
        with service(work, symbfile={"store": store}) as s:
            check_scopes(s)


def test_cached_uploads_of_a_scope_stay_in_it(work, objects):
    """On another node, which has the uploads and what the first node made of them in the shared cache."""
    place = os.path.join(work, "shared")
    os.mkdir(place)
    with Redis(work) as redis:
        config = {"symbfile": {"store": {"filesystem": {"path": place}}}, "shared_cache": {"redis": {"url": redis.url}}}
        with service(work, **config) as one, service(work, **config) as two:
            equal(upload(one, "a"), 200)
            equal([asked(one, "a", "a"), asked(one, "b", "b")], [GOT, NONE])
            wait_until("the other node", lambda: asked(two, "a", "a") == GOT)
            equal([asked(two, "b", "b"), asked(two, "all", None)], [NONE, NONE])
            equal(delete(two, "a"), 200)
            wait_until("the first node", lambda: asked(one, "a", "a") == NONE)


def test_shared_scope_setting_opens_uploads_to_all(work, objects):
    with service(work, uploads={"scope": "shared"}) as s:
        equal(upload(s, "a"), 200)
        equal([asked(s, "a", "a"), asked(s, "b", "b"), asked(s, "all", None), info(s, "b"), delete(s, "b")],
              [GOT, GOT, GOT, 200, 200])


def test_uploads_made_without_scopes_stay_shared(work, objects):
    """Also those of a key that has scopes now."""
    cache = os.path.join(work, "cache")
    with Service(work, {"symbfile": {"store_min_free": 0}, "auth": {"require": []}}, cache_dir=cache) as s:
        equal(s.request("POST", "/api/symbols-ranges", RANGES, {"FileID": ID})[0], 200)
    with service(work, cache_dir=cache) as s:
        equal([asked(s, "a", "a"), asked(s, "b", "b"), asked(s, "all", None), info(s, "a"), delete(s, "a"), delete(s, "all")],
              [GOT, GOT, GOT, 200, 403, 200])
