"""Stores in buckets of S3 and of Google, and several nodes over one."""
import gzip, hashlib, json, os, time, urllib.request
from urllib.parse import quote, unquote

import cloud
from cloud import S3, Google, google_account
from faults import Redis
from harness import Service, equal, free_port, wait_until
from pushing import SAMPLE, SYM, TOKENS, TRY, XPC, get, is_record, server, upload
from test_crashes import X, X_SYM, ask_minidump
from test_uploads import P, P_SYM, ask_native, ask_v5

LATE = 5  # seconds that a loaded machine may add


def node(work, s3, **more):
    store = {"s3": {"bucket": "symbols", "endpoint": s3.url, "prefix": "here", "access_key": "AK", "secret_key": "secret"},
             **more.pop("store", {})}
    return Service(work, {"mozilla": {"tokens": TOKENS, "sources": [], "store": store}, **more})


def test_uploads_are_kept_in_an_s3_bucket(work, objects):
    with S3() as s3, node(work, s3) as s:
        equal((ask_v5(s), ask_native(s)), ((False, None), ("missing", None)))
        equal(upload(s, {**SAMPLE, P: P_SYM})[0], 201)
        names = ["codeinfo/testproj/D48F191186D67E69DF025AD71FB91E1F0", "codeinfo/xpcshell.dbg/A7D6F1BB18CD4CB48",
                 "codeinfo/xpcshell/80AE0509E7CE", "v1/flag/DEADBEEF/flag.jpeg", "v1/" + P, "v1/" + XPC]
        equal(sorted(n for n in s3.objects if not is_record(n)), ["here/" + n for n in names])
        data, fields = s3.objects["here/v1/" + XPC]
        equal(gzip.decompress(data), SYM)
        equal({k.lower(): v for k, v in fields.items() if k != "ETag"},
              {"content-type": "text/plain", "content-encoding": "gzip", "cache-control": "no-transform",
               "x-amz-meta-original_size": str(len(SYM)), "x-amz-meta-original_md5_hash": hashlib.md5(SYM).hexdigest()})
        equal((ask_v5(s), ask_native(s)), ((True, "testproj::main"), ("found", "testproj::main")))
        equal(sorted(upload(s, {**SAMPLE, P: P_SYM})[1]["upload"]["skipped_keys"]), ["flag/deadbeef/flag.jpeg", P, XPC])
        fields.pop("x-amz-meta-original_size")  # as another service has stored it
        equal(upload(s, {XPC: SYM})[1]["upload"]["skipped_keys"], [XPC] if len(data) == len(s3.objects["here/v1/" + XPC][0]) else [])
        status, headers, body = get(s, XPC)
        equal((status, body), (302, b""))
        place = headers["Location"]
        assert place.startswith(s3.url + "/symbols/here/v1/xpcshell.dbg/") and "X-Amz-Expires=3600" in place, place
        status, headers, _ = get(s, XPC, method="HEAD")
        equal((status, headers["Access-Control-Allow-Origin"]), (200, "*"))
        status, headers, _ = get(s, "xpcshell/80AE0509E7CE/xpcshell.sym")
        equal((status, headers["Location"]), (302, "/" + XPC))
        equal([get(s, p)[0] for p in ("try/" + XPC, "a/AB/a.sym")], [302, 404])
        equal(s3.wrong, [])
        s3.broken = True
        equal(upload(s, {"a/AB/a.sym": b"x"}), (500, {"error": "Internal Server Error"}))
    with S3() as s3, node(work, s3, store={"serve": "direct"}) as s:
        upload(s, SAMPLE, TRY)
        equal([get(s, p)[::2] for p in (XPC + "?try", "try/" + XPC)], [(200, SYM)] * 2)
    with S3() as s3, node(work, s3, store={"public_url": "https://symbols.example.com/x/"}) as s:
        upload(s, {"a b/ab/a b.sym": b"x"})
        for method, status in ("GET", 302), ("HEAD", 200):
            answer = get(s, "a%20b/AB/a%20b.sym", method=method)
            equal((answer[0], answer[1]["Location"], answer[2]), (status, "https://symbols.example.com/x/v1/a%20b/AB/a%20b.sym", b""))


def test_buckets_share_container_credentials(work, objects):
    """The container's credentials are those of all buckets: asked for once by those that are written to, and once by sources."""
    route = lambda h: h.reply(200, json.dumps({"AccessKeyId": "AK", "SecretAccessKey": "secret", "Token": "to/ken",
                                               "Expiration": "2099-01-01T00:00:00Z"}))
    with S3() as s3, cloud.Web(route) as keys, cloud.environment(AWS_CONTAINER_CREDENTIALS_FULL_URI=keys.url + "/role"):
        place = {"bucket": "symbols", "endpoint": s3.url, "aws_credentials_provider": "container"}
        config = {"mozilla": {"tokens": TOKENS, "sources": [], "store": {"s3": place}},
                  "shared_cache": {"s3": {**place, "prefix": "cache"}}, "symbfile": {"store": {"s3": place}}}
        with Service(work, config) as s:
            equal(upload(s, {XPC: SYM, P: P_SYM})[0], 201)
            equal((ask_v5(s), ask_native(s)), ((True, "testproj::main"), ("found", "testproj::main")))
            place = get(s, XPC)[1]["Location"]
            assert "X-Amz-Security-Token=to%2Fken" in place, place
            equal(gzip.decompress(urllib.request.urlopen(place).read()), SYM)
            wait_until("the shared cache", lambda: any(name.startswith("cache/") for name in s3.objects))
            equal((s3.wrong, [path for _, _, path in keys.seen]), ([], ["/role"] * 2))


def test_downloads_redirect_to_the_first_store_that_has_the_file(work, objects):
    """Who downloads what is not here is sent to the first other store that has it."""
    there = "a b/AB/a b.sym"
    statuses = {"/one": lambda name: 404, "/two": lambda name: 200 if name == there else 403, "/three": lambda name: 302}
    seen = []

    def answer(h):
        place, _, name = unquote(h.path).removeprefix("/").partition("/")
        seen.append((h.command, place))
        h.reply(statuses["/" + place](name), "", [("Location", "http://elsewhere.test/")])

    with cloud.Web(answer) as web:
        gone = f"http://127.0.0.1:{free_port()}/"
        with server(work, {"extra": [web.url + "/one/", web.url + "/two"]}) as s:
            upload(s, {XPC: SYM})
            for method, status in ("GET", 302), ("HEAD", 200):
                found = get(s, quote(there), method=method)
                equal((found[0], found[1]["Location"]), (status, f"{web.url}/two/{quote(there)}"))
            equal(get(s, XPC)[2], SYM)
            equal(seen, [("HEAD", "one"), ("HEAD", "two")] * 2)
            equal(get(s, "b/AB/b.sym")[::2], (404, b"Symbol Not Found"))
            equal(get(s, "xpcshell/80AE0509E7CE/xpcshell.sym")[0], 302)
        with server(work, {"extra": [gone, web.url + "/three"]}) as s:
            equal(get(s, "b/AB/b.sym")[1]["Location"], web.url + "/three/b/AB/b.sym")
        with server(work, {"extra": [gone, web.url + "/one"]}) as s:
            equal(get(s, "b/AB/b.sym")[0], 503, "it may be there")


def test_nodes_over_one_bucket_see_uploads_within_a_second(work, objects):
    """What one is told the other knows within a second, also when it had nothing, or something else."""
    with Redis(work) as redis, S3() as s3:
        shared = {"shared_cache": {"redis": {"url": redis.url}}}
        with node(work, s3, **shared) as one, node(work, s3, **shared) as two:
            for s in one, two:
                equal((ask_v5(s), ask_native(s)), ((False, None), ("missing", None)))
                equal(ask_minidump(s)[0], (None, "context"))
            upload(one, {P: P_SYM, X: X_SYM})
            begin = time.monotonic()
            equal((ask_v5(one), ask_native(one)), ((True, "testproj::main"), ("found", "testproj::main")))
            equal(ask_minidump(one)[:2], [("inner", "context"), ("outer", "cfi")])
            wait_until("the other node", lambda: ask_v5(two) == (True, "testproj::main"))
            told = time.monotonic() - begin
            equal(ask_native(two), ("found", "testproj::main"))
            equal(ask_minidump(two)[:2], [("inner", "context"), ("outer", "cfi")])
            assert told < 1 + LATE, f"the other node knew after {told:.1f} s"
            upload(two, {P: P_SYM.replace(b"::main", b"::other")})
            equal((ask_v5(two), ask_native(two)), ((True, "testproj::other"), ("found", "testproj::other")))
            wait_until("the first node", lambda: ask_v5(one) == (True, "testproj::other"))
            equal(ask_native(one), ("found", "testproj::other"))


def test_uploads_are_kept_in_a_gcs_bucket(work, objects):
    google = Google()
    with cloud.Cloud(work, google) as web:
        with web.environment():
            store = {"gcs": {"bucket": "symbols", "service_account_path": google_account(work)}, "serve": "direct"}
            with Service(work, {"mozilla": {"tokens": TOKENS, "sources": [], "store": store}}) as s:
                equal(upload(s, {**SAMPLE, P: P_SYM})[0], 201)
                data, said = google.objects["v1/" + P]
                equal((gzip.decompress(data), said),
                      (P_SYM, {"contentType": "text/plain", "cacheControl": "no-transform", "contentEncoding": "gzip",
                               "metadata": {"original_size": str(len(P_SYM)), "original_md5_hash": hashlib.md5(P_SYM).hexdigest()}}))
                equal(len(upload(s, {**SAMPLE, P: P_SYM})[1]["upload"]["skipped_keys"]), 3)
                equal(get(s, XPC)[::2], (200, SYM))
                equal((ask_v5(s), ask_native(s)), ((True, "testproj::main"), ("found", "testproj::main")))
