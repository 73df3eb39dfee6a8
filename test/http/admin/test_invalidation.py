"""What was uploaded replaces what is cached: told by operators' requests and by the command."""
import base64, hashlib, json, os, subprocess

import harness
import test_context as context
from faults import Redis
from harness import Service, Upstream, equal, http_source, wait_until

KEY = "0123456789abcdef"
AUTH = {"keys": [{"id": "op", "sha256": hashlib.sha256(KEY.encode()).hexdigest(), "rights": ["admin"]},
                 {"id": "other", "sha256": hashlib.sha256(b"weak").hexdigest(), "rights": ["metrics"]}]}
BEARER = {"Authorization": f"Bearer {KEY}"}


def source(up):
    return http_source(up.url, id="store", filters={"filetypes": ["elf_code"]})


def status(service, objects):
    return service.symbolicate(harness.request(objects.module(), [objects.address("plain")]))["modules"][0]["debug_status"]


def invalidate(service, query, headers=BEARER, expect=204):
    got, _, body = service.request("DELETE", "/admin/cache" + query, headers=headers)
    equal(got, expect, body)
    return body


def command(service, *words):
    config = os.path.join(service.work, "config.yml")
    return subprocess.run([harness.SYMLOOM, "cache", *words, "-c", config], capture_output=True, text=True, timeout=60)


def test_negative_cache_is_invalidated_after_an_upload(work, objects):
    path = f"/{objects.build_id}/executable"
    with Upstream({}) as up, Service(work, {"sources": [source(up)], "auth": AUTH}) as s:
        location = up.url + path[1:]
        ways = (lambda: invalidate(s, f"?source=store&location={location}"),
                lambda: invalidate(s, "?source=store"),
                lambda: equal(command(s, "invalidate", "--source", "store", "--location", location).returncode, 0),
                lambda: equal(command(s, "invalidate", "--source", "store").returncode, 0))
        for tell in ways:
            up.routes.clear()
            equal(status(s, objects), "missing")
            up.routes[path] = objects.full
            equal(status(s, objects), "missing")
            tell()
            wait_until("the upload to be found", lambda: status(s, objects) == "found")
            up.routes.clear()
            equal(status(s, objects), "found")
            tell()
            wait_until("its removal to be noticed", lambda: status(s, objects) == "missing")
        invalidate(s, f"?source=elsewhere&location={location}")
        up.routes[path] = objects.full
        equal(status(s, objects), "missing")


def test_open_bundles_are_closed_on_invalidation(work, objects):
    """Source text out of a bundle that was open; another bundle stays as it is."""
    def bundle(text):
        return context.bundle({"files/s": ({"path": context.full_path(objects)}, text)})

    with Upstream({}) as up:
        native = {**http_source(up.url, id="store"), "layout": {"type": "native"}}
        with Service(work, {"sources": [native], "auth": AUTH}) as s:
            stem = f"/{objects.build_id[:2]}/{objects.build_id[2:]}"
            line = lambda: harness.frames(s.symbolicate(harness.request(objects.module(), [context.address(objects)])))[0].get("context_line")
            location = up.url + stem[1:] + ".src.zip"
            ways = (lambda: invalidate(s, f"?source=store&location={location}"),
                    lambda: invalidate(s, "?source=store"),
                    lambda: equal(command(s, "invalidate", "--source", "store", "--location", location).returncode, 0))
            for n, tell in enumerate(ways):
                up.routes.update({stem + ".debug": objects.debug, stem + ".src.zip": bundle(b"old %d\n" % n * 99)})
                tell()
                wait_until("the bundle", lambda: line() == f"old {n}")
                up.routes[stem + ".src.zip"] = bundle(b"new %d\n" % n * 99)
                equal(line(), f"old {n}")
                hits = up.hits.get(stem + ".src.zip")
                invalidate(s, "?source=elsewhere")
                equal((line(), up.hits.get(stem + ".src.zip")), (f"old {n}", hits))
                tell()
                wait_until("the new text", lambda: line() == f"new {n}")


def test_module_invalidation_covers_paths_of_its_debug_id(work, objects):
    """What only the debug id is known of: paths that it leads to."""
    breakpad = {"id": "store", "type": "http", "filters": {"filetypes": ["breakpad"]}}
    with Upstream({}) as up, Service(work, {"sources": [{**breakpad, "url": up.url, "layout": {"type": "native"}}],
                                            "auth": AUTH}) as s:
        module = {"type": "pe", "debug_id": "3249d99d-0c40-4931-8610-f4e4fb0b6936-1", "debug_file": "C:\\x\\crash.pdb",
                  "code_file": "C:\\x\\crash.exe", "image_addr": "0x10000000", "image_size": 4096}
        asked = lambda: s.symbolicate(harness.request(module, [0]))["modules"][0]["debug_status"]
        equal(asked(), "missing")
        up.routes["/crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.sym"] = \
            b"MODULE windows x86 3249D99D0C4049318610F4E4FB0B69361 crash.pdb\nFUNC 0 10 0 main\n0 10 1 0\nFILE 0 a.c\n"
        equal(asked(), "missing")
        invalidate(s, "?source=store&debug_file=other.pdb&debug_id=3249d99d-0c40-4931-8610-f4e4fb0b6936-1")
        equal(asked(), "missing")
        invalidate(s, "?source=store&debug_file=crash.pdb&debug_id=3249d99d-0c40-4931-8610-f4e4fb0b6936-1")
        equal(asked(), "found")


def test_invalidation_needs_the_admin_right(work, objects):
    with Service(work, {"auth": {"keys": []}}) as s:
        invalidate(s, "?source=a", expect=404)
        equal(s.request("GET", "/admin/cache")[0], 405)
    with Service(work, {"auth": AUTH}) as s:
        pair = base64.b64encode(f"op:{KEY}".encode()).decode()
        for header in ({"Authorization": f"Bearer op:{KEY}"}, {"Authorization": f"Basic {pair}"},
                       {"Authorization": f"apikey {pair}"}, {"X-Api-Key": KEY}):
            invalidate(s, "?source=a", header)
        for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Bearer other:{KEY}"}, {"X-Api-Key": "x"},
                       {"Authorization": "Basic !!"}, {"Authorization": "Digest x"}):
            equal(invalidate(s, "?source=a", header, 401), b'{"detail":"authentication required"}')
        equal(invalidate(s, "?source=a", {"X-Api-Key": "weak"}, 403), b'{"detail":"not allowed"}')
        for query in ("", "?location=x", "?source=a&debug_file=x", "?source=a&debug_id=x", "?source=a&source=b",
                      "?source=a&location=x&debug_file=f&debug_id=3249d99d-0c40-4931-8610-f4e4fb0b6936",
                      "?source=none&debug_file=f&debug_id=3249d99d-0c40-4931-8610-f4e4fb0b6936"):
            invalidate(s, query, expect=400)
        equal(KEY in s.logged(), False)
        equal(command(s, "invalidate").returncode, 2)
        equal(command(s, "forget", "--source", "a").returncode, 2)


def test_cleanup_shares_one_size_limit_over_all_kinds(work, objects):
    """`symloom cleanup` looks at all kinds together: what is cheap to get again goes first, whatever else there is."""
    cache = os.path.join(work, "cache")
    for kind, age in (("symcaches", 5000), ("objects", 3000)):
        for i in range(4):
            path = os.path.join(cache, kind, "v1010" if kind == "symcaches" else "v2", "00", f"{i:02x}", "x" * 60)
            os.makedirs(os.path.dirname(path))
            with open(path, "wb") as f:
                f.write(b"SLSC" + bytes(1 << 20))
            then = os.stat(path).st_mtime - age
            os.utime(path, (then, then))
    with Service(work, {"caches": {"max_size": "6MiB"}}) as s:
        config = os.path.join(s.work, "config.yml")
        out = subprocess.run([harness.SYMLOOM, "cleanup", "-c", config, "--cache-dir", cache, "--json"], capture_output=True,
                             text=True, timeout=60)
        equal(out.returncode, 0, out.stderr)
    left = {k["kind"]: (k["files"], k["removed"]) for k in json.loads(out.stdout)["kinds"]}
    equal(left["objects"], (1, 3))
    equal(left["symcaches"], (4, 0))


def test_invalidation_reaches_other_nodes_through_redis(work, objects):
    """Nodes with directories of their own and a Redis in common; also one that was away meanwhile."""
    path = f"/{objects.build_id}/executable"
    with Redis(work) as redis, Upstream({}) as up:
        config = {"sources": [source(up)], "auth": AUTH, "shared_cache": {"redis": {"url": redis.url}}}
        away = os.path.join(work, "away")
        with Service(work, config, cache_dir=away) as c:
            equal(status(c, objects), "missing")
        with Service(work, config) as a, Service(work, config) as b:
            equal([status(n, objects) for n in (a, b)], ["missing", "missing"])
            up.routes[path] = objects.full
            equal([status(n, objects) for n in (a, b)], ["missing", "missing"])
            invalidate(a, f"?source=store&location={up.url}{path[1:]}")
            equal(status(a, objects), "found")
            wait_until("the other node to hear", lambda: status(b, objects) == "found")
            with Service(work, config, cache_dir=away) as c:
                wait_until("the one that was away to hear", lambda: status(c, objects) == "found")
            up.routes.clear()
            redis.ask("FLUSHALL")
            invalidate(b, "?source=store")
            wait_until("it in both", lambda: [status(n, objects) for n in (a, b)] == ["missing", "missing"])
            redis.ask("SET symloom:invalidate nonsense-that-is-no-record")
            up.routes[path] = objects.full
            redis.ask("DEL symloom:invalidate")
            invalidate(a, "?source=store")
            wait_until("it in both again", lambda: [status(n, objects) for n in (a, b)] == ["found", "found"])


def forget_shared_entries(redis):
    for key in redis.ask("KEYS symloom:*").split("\r\n")[2::2]:
        if not key.startswith("symloom:invalidate"):
            redis.ask("DEL", key)


def test_invalidation_that_fills_the_log_reaches_other_nodes(work, objects):
    """A log that is too long is renamed, also while a node has not read its end, or is away."""
    path = f"/{objects.build_id}/executable"
    with Redis(work) as redis, Upstream({}) as up:
        config = {"sources": [source(up)], "auth": AUTH, "shared_cache": {"redis": {"url": redis.url}}}
        away = os.path.join(work, "away")
        with Service(work, config, cache_dir=away) as c:
            equal(status(c, objects), "missing")
        with Service(work, config) as a, Service(work, config) as b:
            equal([status(n, objects) for n in (a, b)], ["missing", "missing"])
            up.routes[path] = objects.full
            invalidate(a, "?source=store")
            wait_until("both nodes to read the log", lambda: [status(n, objects) for n in (a, b)] == ["found", "found"])
            up.routes.clear()
            forget_shared_entries(redis)
            filler = "source_id: other\n" * 60000
            redis.ask("APPEND", "symloom:invalidate", f"{'0' * 16} 1 {len(filler)}\n{filler}\n")
            rest = "x" * ((1 << 20) - int(redis.ask("STRLEN symloom:invalidate")[1:].split("\r")[0]) - 60)
            redis.ask("APPEND", "symloom:invalidate", f"{'0' * 16} 1 {len(rest)}\n{rest}\n")
            invalidate(a, "?source=store")
            equal(redis.ask("EXISTS symloom:invalidate")[:2], ":0")
            wait_until("both nodes to invalidate", lambda: [status(n, objects) for n in (a, b)] == ["missing", "missing"])
            up.routes[path] = objects.full
            invalidate(b, "?source=store")
            wait_until("both nodes to read the new log", lambda: [status(n, objects) for n in (a, b)] == ["found", "found"])
            with Service(work, config, cache_dir=away) as c:
                wait_until("the node that was away to read both logs", lambda: status(c, objects) == "found")


def test_commands_run_by_root_keep_the_owner_of_the_cache(work, objects):
    """Whoever runs them, what lies below cache_dir is its owner's."""
    owner, cache = 65534, os.path.join(work, "cache")
    parent = work
    while os.stat(parent).st_mode & 0o5 != 0o5:  # or the owner could not enter
        os.chmod(parent, 0o755)
        parent = os.path.dirname(parent)
    if os.geteuid() != 0 or not os.stat("/").st_mode & 1:  # nobody else can be there
        owner = os.geteuid()
    os.mkdir(cache, 0o700)
    os.chown(cache, owner, owner)
    with open(os.path.join(work, "config.yml"), "w") as f:
        json.dump({"cache_dir": cache, "sources": [http_source("http://127.0.0.1:9/", id="store")]}, f)
    for words in (["cache", "invalidate", "--source", "store"], ["cache", "quarantine", "--clear"], ["cleanup"]):
        done = subprocess.run([harness.SYMLOOM, *words, "-c", os.path.join(work, "config.yml")], capture_output=True, text=True, timeout=60)
        equal(done.returncode, 0, done.stderr)
    found = [os.path.join(top, name) for top, folders, files in os.walk(cache) for name in folders + files]
    assert found and {os.lstat(path).st_uid for path in found} == {owner}, found


def test_commands_that_no_service_can_see_fail(work, objects):
    """Where no service could hear of it."""
    def tell(config, *words):
        with open(os.path.join(work, "config.yml"), "w") as f:
            json.dump(config, f)
        done = subprocess.run([harness.SYMLOOM, "cache", *words, "-c", os.path.join(work, "config.yml")], capture_output=True, text=True,
                              timeout=60, env={**os.environ, "SYMLOOM_CACHE_DIR": ""} if "cache_dir" not in config else None)
        return done.returncode, done.stderr
    status, said = tell({}, "invalidate", "--source", "a")
    assert status == 1 and "neither cache_dir nor shared_cache.redis" in said, said
    equal(tell({}, "quarantine")[0], 1)
    nowhere = os.path.join(work, "nowhere")
    status, said = tell({"cache_dir": nowhere}, "invalidate", "--source", "a")
    assert status == 1 and nowhere in said and not os.path.exists(nowhere), said
    os.mkdir(nowhere)
    redis = {"shared_cache": {"redis": {"url": "redis://127.0.0.1:9"}}}
    status, said = tell({"cache_dir": nowhere, **redis}, "invalidate", "--source", "a")
    assert status == 1 and "cannot notify Redis" in said, said
    status, said = tell({"cache_dir": nowhere}, "invalidate", "--source", "mistyped")
    assert status == 0 and "the configuration has no source 'mistyped'" in said, said
