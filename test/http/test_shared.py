"""The layer behind the disk, as several machines use it: each service below has a directory of its own."""
import contextlib, http.client, json, os, subprocess, tempfile, threading, time
from urllib.parse import parse_qsl, quote, urlsplit

import cloud, harness
from faults import Redis, World, check_directory, metric
from harness import Service, equal, from_npm, serving, wait_until


def put(service, backend, cache):
    return metric(service, f'symloom_shared_ops_total{{backend="{backend}",cache="{cache}",op="put",result="written"}}')


def compare_machines(work, objects, shared, backend, count=6):
    """One machine computes, the next one has it from the shared layer. Returns the second one's configuration."""
    config = {"shared_cache": shared}
    with World(objects, count) as world:
        with Service(work, config) as first:
            equal(world.ask(first, world.modules), count)
            for cache in ("symcaches", "object_meta"):
                wait_until("uploads", lambda: put(first, backend, cache) == count)
        hits = dict(world.up.hits)
        with Service(work, config) as second:
            equal(world.ask(second, world.modules), count)
            equal(world.up.hits, hits, "downloads of the second machine")
            equal(metric(second, 'symloom_conversions_total{cache="symcaches",result="ok"}'), 0, "conversions")
            equal(metric(second, 'symloom_cache_lookups_total{cache="symcaches",layer="shared",result="ok"}'), count)
            equal(metric(second, f'symloom_shared_up{{backend="{backend}"}}'), 1)
            check_directory(second.cache)


def test_machines_share_entries_through_a_directory(work, objects):
    bucket = os.path.join(work, "bucket")
    compare_machines(work, objects, {"filesystem": {"path": bucket}}, "filesystem")
    equal(check_directory(bucket), 18, "plain entries, no side files")
    equal([d for d, _, f in os.walk(bucket) if d.endswith(".tmp") and f], [])


def test_machines_share_entries_through_redis(work, objects):
    with Redis(work) as redis:
        compare_machines(work, objects, {"redis": {"url": redis.url, "namespace": "ns"}}, "redis")
        keys = redis.ask("KEYS *")
        equal(keys.count("ns:symcaches/v1010/"), 6)
        equal(keys.count("ns:objects/v2/"), 6)  # alone, Redis takes what fits


def test_misses_are_shared_through_redis(work, objects):
    """A cold machine does not repeat downloads that fail."""
    with Redis(work) as redis, World(objects, 3) as world:
        world.up.routes.clear()
        config = {"shared_cache": {"redis": {"url": redis.url}}}
        with Service(work, config) as first:
            world.ask(first, world.modules, allowed=("missing",))
            wait_until("misses in Redis", lambda: redis.size() == 6)
        hits = dict(world.up.hits)
        equal(sum(hits.values()), 3)
        with Service(work, config) as second:
            world.ask(second, world.modules, allowed=("missing",))
        equal(world.up.hits, hits)


class Bucket:
    """s3rver behind a gate that checks signatures by AWS's own library and knows conditional writes. `mode`: what the gate
    does instead; `stored`: (path, size, content encoding) of what was written."""

    def __init__(self, work):
        self.work, self.mode, self.stored, self.refused, self.gate = work, None, [], 0, threading.Event()

    def signature_is_right(self, handler):
        from botocore.auth import S3SigV4QueryAuth  # Debian: python3-botocore
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
        path, _, query = handler.path.partition("?")
        values = dict(parse_qsl(query))
        key, _, region, service, _ = values["X-Amz-Credential"].split("/")
        auth = S3SigV4QueryAuth(Credentials(key, "S3RVER", values.get("X-Amz-Security-Token")), service, region)
        unsigned = "&".join(pair for pair in query.split("&") if not pair.startswith("X-Amz-Signature="))
        checked = AWSRequest(handler.command, f"http://{handler.headers['Host']}{path}?{unsigned}")
        checked.context["timestamp"] = values["X-Amz-Date"]
        text = auth.string_to_sign(checked, auth.canonical_request(checked))
        return auth.signature(text, checked) == values["X-Amz-Signature"]

    def ask(self, method, path, body=None, headers={}):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data, answer.getheaders()

    def route(self, handler):
        path = handler.path.partition("?")[0]
        if self.mode == "silent":
            self.gate.wait(60)
            return handler.reply(503)
        if self.mode == "unable" and handler.headers.get("If-None-Match"):
            return handler.reply(501, "<Error><Code>NotImplemented</Code></Error>")
        if isinstance(self.mode, tuple):
            return handler.reply(*self.mode)
        if not self.signature_is_right(handler):
            self.refused += 1
            return handler.reply(403, "<Error><Code>SignatureDoesNotMatch</Code></Error>")
        if handler.command == "PUT":
            if handler.headers.get("If-None-Match") == "*" and self.ask("GET", path)[0] == 200:
                return handler.reply(412, "<Error><Code>PreconditionFailed</Code></Error>")
            self.stored.append((path, len(handler.body), handler.headers.get("Content-Encoding")))
        kept = {k: v for k, v in handler.headers.items() if k.lower() in ("content-encoding", "content-type")}
        status, data, headers = self.ask(handler.command, path, handler.body or None, kept)
        handler.reply(status, data, [(k, v) for k, v in headers if k.lower() in ("content-encoding", "etag")])

    def __enter__(self):
        self.port = harness.free_port()
        self.stack = contextlib.ExitStack()
        command = ["node", cloud.s3rver_script(self.work), "-d", tempfile.mkdtemp(dir=self.work), "-a", "127.0.0.1", "-p",
                   str(self.port), "--silent", "--no-vhost-buckets", "--configure-bucket", "cache"]
        self.stack.enter_context(serving(command, self.port))
        self.web = self.stack.enter_context(cloud.Web(self.route))
        self.config = {"s3": {"bucket": "cache", "endpoint": self.web.url, "access_key": "S3RVER",
                              "secret_key": "S3RVER", "prefix": "some/where"}}
        return self

    def __exit__(self, *args):
        self.gate.set()
        return self.stack.__exit__(*args)


@from_npm
def test_machines_share_entries_through_s3(work, objects):
    with Bucket(work) as bucket:
        compare_machines(work, objects, bucket.config, "s3")
        equal(bucket.refused, 0, "wrong signatures")
        equal(len(bucket.stored), 18)
        equal({e for _, _, e in bucket.stored}, {"zstd"})
        for path, size, _ in bucket.stored:
            equal(path.startswith("/cache/some/where/"), True, path)
            if "/objects/" in path:
                equal(size < len(objects.full) / 2, True, "compressed size")


@from_npm
def test_s3_first_write_wins(work, objects):
    """Two machines that have computed the same: one writes. And a bucket that knows no conditions is looked at first."""
    with Bucket(work) as bucket, World(objects, 2) as world:
        bucket.mode = (404, "<Error><Code>NoSuchKey</Code></Error>")
        with Service(work, {"shared_cache": bucket.config}) as a, Service(work, {"shared_cache": bucket.config}) as b:
            bucket.mode = None
            equal(world.ask(a, world.modules[:1]), 1)
            wait_until("uploads", lambda: len(bucket.stored) == 3)
        bucket.mode = "unable"
        with Service(work, {"shared_cache": bucket.config}) as c:
            equal(world.ask(c, world.modules[1:]), 1)
            wait_until("uploads", lambda: len(bucket.stored) == 6)


@from_npm
def test_s3_without_rights_is_disabled_with_an_error(work, objects):
    """A bucket that refuses everything costs nothing but the asking."""
    with Bucket(work) as bucket, World(objects, 4) as world:
        bucket.mode = (403, "<Error><Code>InvalidAccessKeyId</Code></Error>")
        with Service(work, {"shared_cache": bucket.config}) as s:
            equal(world.ask(s, world.modules), 4)
            wait_until("errors", lambda: "cannot write to the bucket" in s.logged() or "cannot read" in s.logged())


@from_npm
def test_silent_s3_is_disabled_until_it_answers(work, objects):
    """Half a second once, and then it is left alone until it answers again."""
    with Bucket(work) as bucket, World(objects, 8) as world, Service(work, {"shared_cache": bucket.config}) as s:
        bucket.mode = "silent"
        begin = time.monotonic()
        equal(world.ask(s, world.modules[:1]), 1)
        equal(world.ask(s, world.modules[1:7]), 6)
        took = time.monotonic() - begin
        if took > 4:
            raise AssertionError(f"it took {took:.1f} s")
        equal(metric(s, 'symloom_shared_up{backend="s3"}'), 0)
        bucket.mode = None
        bucket.gate.set()
        wait_until("the bucket in use", lambda: metric(s, 'symloom_shared_up{backend="s3"}') == 1)
        equal(world.ask(s, world.modules[7:]), 1)
        wait_until("uploads", lambda: len(bucket.stored) == 3)


@from_npm
def test_machines_share_entries_through_gcs(work, objects):
    """Google as far as a cache needs it: tokens for assertions whose signature is right, conditional uploads."""
    from test_stores import Google
    stored, plainly = {}, []

    class Storage(Google):
        def route(self, h):
            if h.headers.get("Host") != "storage.googleapis.com":
                return super().route(h)
            if h.headers.get("Authorization") not in self.tokens:
                return h.reply(401, "no")
            url, query = urlsplit(h.path), dict(parse_qsl(urlsplit(h.path).query))
            if h.command == "POST":
                equal((url.path, query["uploadType"], query["contentEncoding"], query["ifGenerationMatch"]),
                      ("/upload/storage/v1/b/cache/o", "media", "zstd", "0"))
                name = "/storage/v1/b/cache/o/" + quote(query["name"], safe="")
                if name in stored:
                    return h.reply(412, "{}")
                # What older versions wrote has no encoding.
                stored[name] = subprocess.run(["zstd", "-dc"], input=h.body, stdout=subprocess.PIPE,
                                              check=True).stdout if plainly else h.body
                return h.reply(200, "{}")
            equal(query, {"alt": "media"})
            if url.path not in stored:
                return h.reply(404, "No such object")
            h.reply(200, stored[url.path], [] if plainly else [("Content-Encoding", "zstd")])

    google = Storage(work, {})
    account = os.path.join(work, "account.json")
    with open(account, "w") as f:
        json.dump({"type": "service_account", "client_email": "robot@example.org", "private_key": google.pem}, f)
    with cloud.Cloud(work, google.route) as fake, fake.environment():
        compare_machines(work, objects, {"gcs": {"bucket": "cache", "service_account_path": account}}, "gcs")
        equal(len(stored), 18)
        equal(google.claims[0]["scope"], "https://www.googleapis.com/auth/devstorage.read_write")
        equal(google.claims[0]["iss"], "robot@example.org")
        equal(len(google.tokens), 2, "one token for each machine")
        stored.clear()
        plainly.append(True)
        compare_machines(work, objects, {"gcs": {"bucket": "cache", "service_account_path": account}}, "gcs")


def test_gcs_uses_the_metadata_server_without_a_key(work, objects):
    """Without a key the machine's metadata server gives the tokens: each is asked for once and used until shortly before
    its end."""
    stored, asked, tokens, life, lost = {}, [], [], [3600], []

    def machine(h):
        asked.append((h.command, h.path, h.headers.get("Metadata-Flavor"), h.headers.get("X-Forwarded-For")))
        if life[0] is None:
            return h.reply(503, "starting")
        tokens.append(f"Bearer machine-{len(tokens)}")
        h.reply(200, json.dumps({"access_token": tokens[-1][7:], "expires_in": life[0], "token_type": "Bearer"}))

    def storage(h):
        if h.headers.get("Authorization") not in tokens:
            return h.reply(401, "no")
        if h.command == "POST":
            stored["/storage/v1/b/cache/o/" + quote(dict(parse_qsl(urlsplit(h.path).query))["name"], safe="")] = h.body
            return h.reply(200, "{}")
        path = urlsplit(h.path).path
        coding = [] if lost else [("Content-Encoding", "zstd")]
        h.reply(200, stored[path], coding) if path in stored else h.reply(404, "none")

    config = {"gcs": {"bucket": "cache"}}
    token_metric = lambda s, result: metric(s, f'symloom_source_token_total{{kind="shared_gcs",result="{result}"}}')
    with cloud.Cloud(work, storage) as fake, cloud.Web(machine) as web, fake.environment(), \
            cloud.environment(GCE_METADATA_HOST=f"127.0.0.1:{web.port}"):
        compare_machines(work, objects, config, "gcs")
        equal(len(stored), 18)
        path = "/computeMetadata/v1/instance/service-accounts/default/token"
        equal(asked, [("GET", path, "Google", None)] * 2, "one token for each machine")

        # Entries whose encoding the server has forgotten are read all the same; pieces of them are not taken for contents.
        stored.clear()
        with World(objects, 6) as world:
            with Service(work, {"shared_cache": config}) as s:
                equal(world.ask(s, world.modules), 6)
                wait_until("uploads", lambda: len(stored) == 18)
            lost.append(True)
            for cut, hits in ((False, 6), (True, 0)):
                if cut:
                    stored.update({name: data[:len(data) // 2] for name, data in stored.items()})
                with Service(work, {"shared_cache": config}) as s:
                    equal(world.ask(s, world.modules), 6)
                    equal(metric(s, 'symloom_cache_lookups_total{cache="symcaches",layer="shared",result="ok"}'), hits)
        lost.clear()
        stored.clear()

        # A token near its end is replaced; one that ends in less than a minute is of no use.
        life[0], before = 30, len(asked)
        with World(objects, 3) as world, Service(work, {"shared_cache": config}) as s:
            equal(world.ask(s, world.modules), 3)
            equal(metric(s, 'symloom_shared_ops_total{backend="gcs",cache="symcaches",op="get",result="hit"}'), 0)
            equal(len(asked) > before, True)
            life[0] = 3600
            wait_until("the back end's come-back", lambda: (world.ask(s, world.modules), token_metric(s, "ok") >= 2)[1])

        # A metadata server that fails delays nobody for long, and when it is back so is the layer.
        life[0] = None
        with World(objects, 2) as world, Service(work, {"shared_cache": config}) as s:
            begin = time.monotonic()
            equal(world.ask(s, world.modules), 2)
            equal(time.monotonic() - begin < 20, True)
            equal(token_metric(s, "error") >= 1, True)
            equal("machine-" in s.logged(), False)
            life[0] = 3600
            equal(world.ask(s, world.modules), 2)


@from_npm
def test_redis_is_asked_before_a_bucket(work, objects):
    with Redis(work) as redis, Bucket(work) as bucket, World(objects, 3) as world:
        config = {"shared_cache": {"redis": {"url": redis.url}, **bucket.config}}
        with Service(work, config) as first:
            equal(world.ask(first, world.modules), 3)
            wait_until("uploads", lambda: len(bucket.stored) == 9 and redis.size() == 6)  # objects only in the bucket
        redis.ask("FLUSHALL")
        hits = dict(world.up.hits)
        with Service(work, config) as second:
            equal(world.ask(second, world.modules), 3)
            wait_until("entries in Redis", lambda: redis.size() == 6)
            equal(metric(second, 'symloom_shared_ops_total{backend="s3",cache="symcaches",op="get",result="hit"}'), 3)
        equal(world.up.hits, hits)


def test_invalid_shared_cache_configurations_are_refused(work, objects):
    for shared, expected in (
            ({"s3": {"bucket": "b", "access_key": "a", "secret_key": "s"}, "filesystem": {"path": "/x"}}, "only one of"),
            ({"max_concurrent_uploads": 3}, "set one of"),
            ({"redis": {"url": "http://h"}}, "not the URL of a Redis server"),
            ({"s3": {"access_key": "a", "secret_key": "s"}}, "bucket"),
            ({"s3": {"bucket": "b"}}, "access_key"),
            ({"route": {"objects": "nowhere"}, "redis": {"url": "redis://h"}}, "is not one of both redis bucket")):
        try:
            Service(work, {"shared_cache": shared}).stop()
        except AssertionError as e:
            equal(expected in str(e), True, f"{expected!r} in {e}")
        else:
            raise AssertionError(f"{shared} was accepted")


def test_failures_are_not_shared_with_other_machines(work, objects):
    """What one machine could not reach is no answer about the file: another one, with the same Redis, has it."""
    mount = os.path.join(work, "mount")
    source = {"id": "local", "type": "filesystem", "path": mount, "layout": {"type": "debuginfod"}}
    with Redis(work) as redis, World(objects, 2) as world:
        config = {"shared_cache": {"redis": {"url": redis.url}}, "sources": [source]}
        body = world.body(world.modules)
        del body["sources"]
        for why in ("directory of the symbol source: No such file or directory", "is empty; is it mounted?"):
            with Service(work, config) as first:
                answer = first.symbolicate({**body, "options": {"dif_candidates": True}})
                equal(answer["modules"][0]["debug_status"], "fetching_failed")
                assert any(why in c["download"].get("details", "") for c in answer["modules"][0]["candidates"]), answer["modules"]
                status = json.loads(first.request("GET", "/status")[2])
                assert why in status["sources"][0]["last_error"], status["sources"]
            os.makedirs(mount, exist_ok=True)
        for path, data in world.up.routes.items():
            place = mount + path
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as f:
                f.write(data)
        with Service(work, config) as second:
            equal([m["debug_status"] for m in second.symbolicate(body)["modules"]], ["found", "found"])
