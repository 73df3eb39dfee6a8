"""Uploads to Mozilla's symbol server by tokens with a scope: whose they are, who downloads them, and whom they answer."""
import gzip, hashlib, os

from cloud import S3
from harness import Service, equal, wait_until
from pushing import SYM, XPC, get, upload
from test_single_files import announce, place
from test_uploads import P, P_SYM

A, B, ALL = ({"Auth-Token": t} for t in ("aaa1", "bbb2", "ccc3"))
TOKENS = [{"key": "aaa1", "email": "a@example.com", "permissions": ["upload_symbols", "view_all_uploads"], "scope": "a"},
          {"key": "bbb2", "email": "b@example.com", "permissions": ["upload_symbols", "view_all_uploads"], "scope": "../b"},
          {"key": "ccc3", "email": "c@example.com", "permissions": ["upload_symbols", "view_all_uploads"]}]
OTHER = SYM + b"FUNC 30 20 0 other\n"
BY_CODE = "xpcshell/80AE0509E7CE/xpcshell.sym"


def node(work, store=None, **config):
    store = store or {"filesystem": {"path": os.path.join(work, "store")}}
    return Service(work, {"mozilla": {"tokens": TOKENS, "sources": [], "store": {"serve": "direct", **store}}, **config})


def asked(s, scope):
    module = {"type": "elf", "debug_file": "testproj", "debug_id": "d48f1911-86d6-7e69-df02-5ad71fb91e1f", "image_addr": "0x10000"}
    body = {"sources": [], "modules": [module], "stacktraces": [{"frames": [{"instruction_addr": "0x15381"}]}]}
    answer = s.symbolicate(body, f"?scope={scope}" if scope else "")
    return answer["stacktraces"][0]["frames"][0].get("function")


def seen(s, path=XPC):
    return [get(s, path, headers)[0] for headers in (A, B, ALL, {})]


def check_scopes(s):
    equal([asked(s, scope) for scope in ("a", "../b", None)], [None] * 3)
    status, answer = upload(s, {XPC: SYM, P: P_SYM}, A)
    equal((status, answer["upload"]["skipped_keys"]), (201, []))
    equal(seen(s), [200, 404, 404, 404])
    equal(seen(s, BY_CODE), [302, 404, 404, 404])
    equal(seen(s, "api/syminfo/xpcshell/80AE0509E7CE"), [200, 404, 404, 404])
    status, headers, body = get(s, XPC, A)
    equal((body, "private" in headers["Cache-Control"]), (SYM, True))
    equal([asked(s, scope) for scope in ("a", "../b", None)], ["testproj::main", None, None])
    record = f"api/uploads/upload/{answer['upload']['id']}"
    equal([get(s, record, headers)[0] for headers in (A, B, ALL)], [200, 404, 404])
    equal(upload(s, {XPC: SYM}, A)[1]["upload"]["skipped_keys"], [XPC])
    equal(upload(s, {XPC: OTHER}, B)[1]["upload"]["skipped_keys"], [])
    equal([get(s, XPC, headers)[2] for headers in (A, B)], [SYM, OTHER])
    equal(seen(s), [200, 200, 404, 404])
    # Everybody's come behind one's own.
    shared = SYM + b"FUNC 50 20 0 shared\n"
    equal(upload(s, {XPC: shared, "x/AB/x.sym": SYM}, ALL)[1]["upload"]["skipped_keys"], [])
    equal([get(s, XPC, headers)[2] for headers in (A, B, ALL, {})], [SYM, OTHER, shared, shared])
    equal(seen(s, "x/AB/x.sym"), [200] * 4)
    # Single files, by their sessions.
    action = announce(s, [("y/AB/y.sym", SYM)], A)["files"][0]["action"]
    equal(action["type"], "upload")
    equal(s.request("PUT", place(action), gzip.compress(SYM))[0], 200)
    equal(seen(s, "y/AB/y.sym"), [200, 404, 404, 404])
    equal([announce(s, [("y/AB/y.sym", SYM)], headers)["files"][0]["action"]["type"] for headers in (A, B, ALL)],
          ["skip", "upload", "upload"])


def test_token_scopes_are_kept_apart_in_a_directory(work, objects):
    with node(work) as s:
        check_scopes(s)
        equal(sorted(os.listdir(os.path.join(work, "store", "scopes"))), ["a", "~" + hashlib.sha256(b"../b").hexdigest()[:32]])


def test_token_scopes_are_kept_apart_in_a_bucket(work, objects):
    with S3() as s3:
        store = {"s3": {"bucket": "symbols", "endpoint": s3.url, "access_key": "AK", "secret_key": "secret"}}
        with node(work, store) as s:
            check_scopes(s)
        with node(work, {**store, "public_url": "https://symbols.example.com/", "serve": "redirect"}) as s:
            equal(get(s, "x/AB/x.sym", A)[0], 302)
            equal(get(s, XPC, A)[::2], (200, SYM))  # what is not for everybody


def test_shared_scope_setting_opens_uploads_to_all(work, objects):
    with node(work, uploads={"scope": "shared"}) as s:
        equal(upload(s, {XPC: SYM}, A)[0], 201)
        equal(seen(s), [200] * 4)


def test_access_keys_see_uploads_of_their_scopes(work, objects):
    digest = lambda text: hashlib.sha256(text.encode()).hexdigest()
    keys = [{"id": name, "sha256": digest("s" + name), "rights": ["downloads"], "scopes": [name]} for name in ("a", "b")]
    with node(work, auth={"require": ["downloads"], "keys": keys}) as s:
        equal(upload(s, {XPC: SYM}, A)[0], 201)
        equal(upload(s, {"x/AB/x.sym": SYM}, ALL)[0], 201)
        ask = lambda path, name: get(s, path, {"Authorization": f"Bearer {name}:s{name}"})[0]
        equal([ask(XPC, "a"), ask(XPC, "b"), ask("x/AB/x.sym", "b")], [200, 404, 200])


def test_try_uploads_of_a_scope_expire(work, objects):
    token = {"key": "dd11", "email": "t@example.com", "permissions": ["upload_try_symbols"], "scope": "a"}
    path = os.path.join(work, "store")
    config = {"mozilla": {"tokens": [token], "sources": [], "store": {"filesystem": {"path": path}, "try_retention": "1ms"}}}
    with Service(work, config) as s:
        equal(upload(s, {XPC: SYM}, {"Auth-Token": "dd11"})[0], 201)
        wait_until("the end of a try", lambda: not os.path.exists(os.path.join(path, "scopes/a/try/v1/xpcshell.dbg")))
