"""Sources in S3 and GCS buckets, of Sentry projects, symbol stores with an index, pointers and checksums."""
import base64, json, os, re, subprocess, tempfile, threading, time
from urllib.parse import parse_qs, parse_qsl, urlsplit

from cloud import Cloud, Web, environment, openssl, s3
from harness import Service, Upstream, equal, frames, from_npm, request, wait_until

PLACEHOLDER = "No object files listed on this source"


def candidates(answer):
    return [(c["source"], c["location"], c["download"]["status"], c["download"].get("details"))
            for c in answer["modules"][0].get("candidates", [])]


def ask(service, module, sources, addresses=(0,), **keys):
    """(debug_status, candidates)"""
    answer = service.symbolicate(request(module, list(addresses), sources=sources, options={"dif_candidates": True}, **keys))
    return answer["modules"][0]["debug_status"], candidates(answer)


def s3_source(region, **keys):
    return {"id": "bucket", "type": "s3", "bucket": "symbols", "region": region, "access_key": "S3RVER",
            "secret_key": "S3RVER", "layout": {"type": "debuginfod"}, "filters": {"filetypes": ["elf_code"]}, **keys}


# ---- S3 ----
@from_npm
def test_s3_source_is_read_with_signed_requests(work, objects):
    key = f"{objects.build_id}/executable"
    strange = "a b+~/\u00e9"
    with s3(work, {key: objects.full, f"pre/fix/{key}": objects.full, f"{strange}/{key}": objects.full}) as url, Service(work) as s:
        here = ["us-east-1", url]
        rows = [
            ({}, "found", f"s3://symbols/{key}", "ok", None),
            ({"prefix": "/pre/fix/"}, "found", f"s3://symbols/pre/fix/{key}", "ok", None),
            ({"prefix": strange}, "found", f"s3://symbols/a%20b+~/%C3%A9/{key}", "ok", None),
            ({"session_token": "a/b+c="}, "found", f"s3://symbols/{key}", "ok", None),
            ({"prefix": "not here"}, "missing", f"s3://symbols/not%20here/{key}", "notfound", None),
            ({"bucket": "unknown"}, "missing", f"s3://unknown/{key}", "notfound", None),
            ({"secret_key": "wrong"}, "fetching_failed", f"s3://symbols/{key}", "noperm", "SignatureDoesNotMatch: "),
            ({"access_key": "nobody"}, "fetching_failed", f"s3://symbols/{key}", "noperm", "InvalidAccessKeyId: "),
        ]
        for i, (changes, status, location, download, details) in enumerate(rows):
            debug_status, found = ask(s, objects.module(), [s3_source(here, id=f"s{i}", **changes)])
            equal((debug_status, found[1][:3]), (status, (f"s{i}", location, download)), changes)
            if details:
                assert found[1][3].startswith(details), found
        assert "X-Amz" not in s.logged() and "wrong" not in s.logged(), s.logged()


def test_s3_error_answers_map_to_statuses(work, objects):
    xml = '<?xml version="1.0"?><Error><Code>{}</Code><Message>{}</Message><Detail><Code>inner</Code></Detail></Error>'
    empty_key = ("AuthorizationQueryParametersError", "Error parsing the X-Amz-Credential parameter; a non-empty Access Key "
                 "(AKID) must be provided in the credential.")
    rows = [  # status, body; module status, download status, details, requests
        (400, xml.format(*empty_key), "fetching_failed", "noperm", ": ".join(empty_key), 1),
        (400, xml.format("AuthorizationHeaderMalformed", "m"), "fetching_failed", "noperm",
         "AuthorizationHeaderMalformed: m", 1),
        (403, xml.format("AccessDenied", ""), "fetching_failed", "noperm", "AccessDenied", 1),
        (500, xml.format("SignatureDoesNotMatch", "m"), "fetching_failed", "noperm", "SignatureDoesNotMatch: m", 1),
        (400, xml.format("InvalidAccessKeyId", "m"), "fetching_failed", "noperm", "InvalidAccessKeyId: m", 1),
        (500, xml.format("NoSuchBucket", "m"), "missing", "notfound", None, 1),
        (400, xml.format("NoSuchKey", "m"), "missing", "notfound", None, 1),
        (403, xml.format("NotFound", "m"), "missing", "notfound", None, 1),
        (401, xml.format("Other", "m"), "fetching_failed", "noperm", "Other: m", 1),
        (403, "", "fetching_failed", "noperm", "403 Forbidden", 1),
        (404, xml.format("Other", "m"), "missing", "notfound", None, 1),
        (404, "no xml", "missing", "notfound", None, 1),
        (400, xml.format("Other", "m"), "fetching_failed", "error", "download failed: Other: m", 3),
        (503, xml.format("SlowDown", ""), "fetching_failed", "error", "download failed: SlowDown", 3),
        (400, xml.format("", "words"), "fetching_failed", "error", "download failed: 400 Bad Request: words", 3),
        (400, "<Error><Code>cut", "fetching_failed", "error", "download failed: 400 Bad Request", 3),
        (400, '<!DOCTYPE a [<!ENTITY b "c">]><a><Code>&b;</Code></a>', "fetching_failed", "error",
         "download failed: 400 Bad Request", 3),
    ]
    now = {}
    with Cloud(work, lambda h: h.reply(*now["answer"])) as cloud, cloud.environment(), Service(work) as s:
        for i, (status, body, debug_status, download, details, attempts) in enumerate(rows):
            now["answer"] = (status, body)
            del cloud.seen[:]
            got = ask(s, objects.module(), [s3_source("us-east-1", id=f"r{i}", access_key="")])
            equal(got, (debug_status, [(f"r{i}", PLACEHOLDER, "notfound", None),
                                       (f"r{i}", f"s3://symbols/{objects.build_id}/executable", download, details)]), (status, body))
            equal(len(cloud.seen), attempts, (status, body))
        now["answer"] = (200, objects.full)
        for region, bucket, host, path in [("us-east-1", "symbols", "symbols.s3.us-east-1.amazonaws.com", "/"),
                                           ("us-east-1", "with.dots", "s3.us-east-1.amazonaws.com", "/with.dots/"),
                                           ("us-east-1", "Upper", "s3.us-east-1.amazonaws.com", "/Upper/"),
                                           ("eu-west-1", "a-b", "a-b.s3.eu-west-1.amazonaws.com", "/")]:
            source = s3_source(region, id=f"{bucket}", bucket=bucket, prefix="a b+", session_token="to/ken")
            equal(ask(s, objects.module(), [source])[0], "found")
            method, seen_host, seen_path = cloud.seen[-1]
            url = urlsplit(seen_path)
            equal((method, seen_host, url.path), ("GET", host, f"{path}a%20b%2B/{objects.build_id}/executable"))
            query = dict(parse_qsl(url.query))
            equal(set(query), {"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-Security-Token",
                               "X-Amz-SignedHeaders", "X-Amz-Signature", "x-id"})
            equal((query["X-Amz-Expires"], query["x-id"], query["X-Amz-SignedHeaders"]), ("900", "GetObject", "host"))
            equal(query["X-Amz-Security-Token"], "to/ken")
            day = query["X-Amz-Date"][:8]
            equal(query["X-Amz-Credential"], f"S3RVER/{day}/{region}/s3/aws4_request")
        for region in ("evil.test/#", "", "a b"):
            equal(ask(s, objects.module(), [s3_source(region, id=f"bad{region}")])[1][1][3], "download failed: the region name of the S3 bucket is invalid")


ANSWER = {"AccessKeyId": "S3RVER", "SecretAccessKey": "S3RVER", "Expiration": "2099-01-01T00:00:00Z"}


def ambient(work, objects, provider, route, **variables):
    """Two buckets' worth of downloads with the keys of a provider; returns what was asked of it."""
    key = f"{objects.build_id}/executable"
    with s3(work, {key: objects.full, f"b/{key}": objects.full}) as url, Web(route) as keys:
        variables = {k: v.replace("KEYS", keys.url) for k, v in variables.items()}
        source = lambda **more: s3_source(["us-east-1", url], aws_credentials_provider=provider, access_key="no", **more)
        with environment(**variables), Service(work, {"sources": [source(), source(id="other", prefix="b")]}) as s:
            answer = s.symbolicate(request(objects.module(), [0], options={"dif_candidates": True}))
            equal([c[2] for c in candidates(answer) if c[1] != PLACEHOLDER], ["ok", "ok"], candidates(answer))
            status, _, body = s.post("/symbolicate", request(objects.module(), [0], sources=[source()]))
            equal(status, 422, body)
            assert b"allow_ambient_credentials_in_requests" in body, body
            return keys.seen


@from_npm
def test_s3_uses_container_credentials(work, objects):
    def route(h):
        equal(h.headers.get("Authorization"), "secret token")
        h.reply(200, json.dumps({**ANSWER, "Token": ""}))

    token = os.path.join(work, "token")
    with open(token, "w") as f:
        f.write("secret token\n")
    seen = ambient(work, objects, "container", route, AWS_CONTAINER_CREDENTIALS_FULL_URI="KEYS/role?x=1",
                   AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=token)
    equal([(m, p) for m, _, p in seen], [("GET", "/role?x=1")])


@from_npm
def test_s3_uses_instance_credentials(work, objects):
    def route(h):
        if h.command == "PUT":
            equal(h.headers.get("X-aws-ec2-metadata-token-ttl-seconds"), "21600")
            return h.reply(200, "session")
        equal(h.headers.get("X-aws-ec2-metadata-token"), "session")
        h.reply(200, "role/1\n" if h.path.endswith("credentials/") else json.dumps({"Code": "Success", **ANSWER}))

    seen = ambient(work, objects, "instance", route, AWS_EC2_METADATA_SERVICE_ENDPOINT="KEYS/")
    equal([(m, p) for m, _, p in seen],
          [("PUT", "/latest/api/token"), ("GET", "/latest/meta-data/iam/security-credentials/"),
           ("GET", "/latest/meta-data/iam/security-credentials/role%2F1")])


@from_npm
def test_s3_uses_web_identity_credentials(work, objects):
    forms = []

    def route(h):
        forms.append(dict(parse_qsl(h.body.decode())))
        fields = "".join(f"<{k}>{v}</{k}>" for k, v in ANSWER.items())
        h.reply(200, f"<AssumeRoleWithWebIdentityResponse xmlns='https://sts.amazonaws.com/doc/2011-06-15/'>"
                     f"<AssumeRoleWithWebIdentityResult><Credentials>{fields}</Credentials>"
                     f"</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>")

    token = os.path.join(work, "token")
    with open(token, "w") as f:
        f.write("jwt+token")
    seen = ambient(work, objects, "web_identity", route, AWS_ENDPOINT_URL_STS="KEYS/", AWS_WEB_IDENTITY_TOKEN_FILE=token,
                   AWS_ROLE_ARN="arn:aws:iam::1:role/r")
    equal([(m, p) for m, _, p in seen], [("POST", "/")])
    equal(forms, [{"Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": "arn:aws:iam::1:role/r",
                   "RoleSessionName": "symloom", "WebIdentityToken": "jwt+token"}])


def test_missing_s3_credentials_report_the_reason(work, objects):
    source = s3_source(["us-east-1", "http://127.0.0.1:1"])
    with Web(lambda h: h.reply(200, "{}")) as keys:
        rows = [("container", {}, "download failed: no container credentials: "
                 "neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor AWS_CONTAINER_CREDENTIALS_FULL_URI is set"),
                ("container", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": keys.url},
                 "download failed: no container credentials: the response of AWS contains no credentials"),
                ("web_identity", {}, "download failed: no web identity credentials: AWS_ROLE_ARN and "
                 "AWS_WEB_IDENTITY_TOKEN_FILE are not set")]
        for provider, variables, details in rows:
            config = {"sources": [{**source, "aws_credentials_provider": provider}]}
            with environment(**variables), Service(work, config) as s:
                answer = s.symbolicate(request(objects.module(), [0], options={"dif_candidates": True}))
                equal(candidates(answer)[1][2:], ("error", details))


# ---- GCS ----
def decode(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class Google:
    """Takes assertions for tokens, once their signature has been verified with the public key, and serves a bucket."""

    def __init__(self, work, files):
        self.files, self.tokens, self.claims, self.refusal = files, [], [], None
        self.key = os.path.join(work, "key.pem")
        self.public = os.path.join(work, "public.pem")
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.key)
        openssl("pkey", "-in", self.key, "-pubout", "-out", self.public)
        self.work = work
        with open(self.key) as f:
            self.pem = f.read()

    def route(self, h):
        host = h.headers.get("Host")
        if (host, h.command, h.path) == ("www.googleapis.com", "POST", "/oauth2/v4/token"):
            return self.exchange(h)
        equal((host, h.command), ("storage.googleapis.com", "GET"))
        if h.headers.get("Authorization") not in self.tokens:
            return h.reply(401, "no")
        answer = self.files.get(h.path, 404)
        h.reply(answer) if isinstance(answer, int) else h.reply(200, answer)

    def exchange(self, h):
        form = dict(parse_qsl(h.body.decode()))
        equal(form["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer")
        if self.refusal:
            return h.reply(*self.refusal)
        header, claims, signature = form["assertion"].split(".")
        path = os.path.join(self.work, "signature")
        with open(path, "wb") as f:
            f.write(decode(signature))
        openssl("dgst", "-sha256", "-verify", self.public, "-signature", path, input=f"{header}.{claims}".encode())
        equal(decode(header), b'{"typ":"JWT","alg":"RS256"}')
        self.claims.append(json.loads(decode(claims)))
        self.tokens.append(f"Bearer token-{len(self.tokens)}")
        h.reply(200, json.dumps({"access_token": self.tokens[-1][7:], "expires_in": 3600, "token_type": "Bearer"}))


def gcs_source(**keys):
    return {"id": "bucket", "type": "gcs", "bucket": "symbols", "layout": {"type": "debuginfod"},
            "filters": {"filetypes": ["elf_code"]}, **keys}


def test_gcs_source_is_read_with_tokens(work, objects):
    path = lambda prefix: f"/storage/v1/b/symbols/o/{prefix}{objects.build_id}%2Fexecutable?alt=media"
    google = Google(work, {path(""): objects.full, path("a%20b%2Fc%2F"): objects.full, path("no%2F"): 403, path("bad%2F"): 500})
    email = "robot@example.org"
    bare = "".join(line for line in google.pem.splitlines() if "-----" not in line)
    pkcs1 = openssl("rsa", "-in", google.key, "-traditional").decode()
    keys = {"private_key": google.pem, "client_email": email}
    rows = [
        ({**keys}, "found", "", "ok", None),
        ({**keys, "prefix": "/a b/c/"}, "found", "a%20b/c/", "ok", None),
        ({**keys, "prefix": "none"}, "missing", "none/", "notfound", None),
        ({**keys, "prefix": "no"}, "fetching_failed", "no/", "noperm", "403 Forbidden"),
        ({**keys, "prefix": "bad"}, "fetching_failed", "bad/", "error", "download failed: 500 Internal Server Error"),
        ({"private_key": google.pem.replace("\n", "\\n"), "client_email": email}, "found", "", "ok", None),
        ({"private_key": pkcs1, "client_email": email}, "found", "", "ok", None),
        ({"private_key": bare, "client_email": email}, "found", "", "ok", None),
        ({"bearer_token": "token-0"}, "found", "", "ok", None),
        ({"bearer_token": "stale"}, "fetching_failed", "", "noperm", "401 Unauthorized"),
        ({**keys, "bearer_token": "stale"}, "found", "", "ok", None),
        ({"private_key": "", "client_email": email}, "fetching_failed", "", "error", "download failed: failed encoding JWT"),
        ({"private_key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "client_email": email},
         "fetching_failed", "", "error", "download failed: failed encoding JWT"),
    ]
    with Cloud(work, google.route) as cloud, cloud.environment(), Service(work) as s:
        for i, (changes, status, prefix, download, details) in enumerate(rows):
            got = ask(s, objects.module(), [gcs_source(id=f"r{i}", **changes)])
            location = f"gs://symbols/{prefix}{objects.build_id}/executable"
            equal(got, (status, [(f"r{i}", PLACEHOLDER, "notfound", None), (f"r{i}", location, download, details)]), i)
        equal(len(google.claims), 3)  # one for each spelling of the key: escaped line ends are the same
        for claims in google.claims:
            equal((claims["iss"], claims["scope"], claims["aud"], claims["exp"] - claims["iat"]),
                  (email, "https://www.googleapis.com/auth/devstorage.read_only",
                   "https://www.googleapis.com/oauth2/v4/token", 58 * 60 + 30))
            assert abs(claims["iat"] - time.time()) < 60, claims
        for refusal, details in [((400, json.dumps({"error": "invalid_grant", "error_description": "Invalid JWT."})), ": Invalid JWT."),
                                 ((500, ""), ""), ((200, "{}"), ""), ((200, "what?"), "")]:
            google.refusal = refusal
            name = f"{refusal[0]}{refusal[1]}@example.org"
            got = ask(s, objects.module(), [gcs_source(id=name, private_key=google.pem, client_email=name)])
            equal(got[1][1][2:], ("error", "download failed: failed to send authentication request" + details))
        assert "token-0" not in s.logged() and "PRIVATE" not in s.logged()


def test_metrics_label_unconfigured_sources_as_custom(work, objects):
    """Clients name sources without end: their series is `custom`, but that of built-in ones. Answers and logs have the id."""
    with Upstream(objects.layout()) as up, \
            Service(work, {"sources": [{**store_source(up.url), "id": "mine", "layout": {"type": "debuginfod"}}]}) as s:
        named = [{"id": i, "type": "http", "url": up.url + i, "layout": {"type": "debuginfod"}} for i in ("a-b", "sentry:x", "mine")]
        s.symbolicate(request(objects.module(), [0]))
        s.symbolicate(request(objects.module(), [0], sources=named))
        text = s.request("GET", "/metrics")[2].decode()
        labels = set(re.findall(r'symloom_downloads_total\{source="([^"]*)"', text))
        equal(labels, {"mine", "custom", "sentry:x"})
        equal("a-b" in text, False)


def test_refused_sources_keep_placeholder_and_row(work, objects):
    """No permission anywhere: each source has its placeholder, of the look-up for sources, and then its row."""
    module = {"type": "macho", "debug_id": "502fc0a5-1ec1-3e47-9998-684fa139dca7", "code_file": "App", "debug_file": "App",
              "image_addr": "0x10000000", "image_size": 4096}
    app = "502F/C0A5/1EC1/3E47/9998/684FA139DCA7.app"
    text = ("AuthorizationQueryParametersError: Error parsing the X-Amz-Credential parameter; a non-empty Access Key (AKID) "
            "must be provided in the credential.")
    xml = "<Error><Code>{}</Code><Message>{}</Message></Error>".format(*text.split(": ", 1))
    filters = {"filetypes": ["mach_code"]}
    with Cloud(work, lambda h: h.reply(400, xml)) as cloud, cloud.environment(), Service(work) as s, Upstream({f"/{app}": 403}) as up:
        status, found = ask(s, module, [
            {"id": "forbidden", "type": "http", "url": up.url, "filters": filters},
            {"id": "invalid-s3", "type": "s3", "bucket": "symbolicator-test", "region": "us-east-1", "filters": filters},
            {"id": "invalid-gcs", "type": "gcs", "bucket": "honk", "private_key": "", "client_email": "", "filters": filters}])
        equal(found, [
            ("forbidden", PLACEHOLDER, "notfound", None),
            ("forbidden", up.url + app, "noperm", "403 Forbidden"),
            ("invalid-gcs", PLACEHOLDER, "notfound", None),
            ("invalid-gcs", "gs://honk/" + app, "error", "download failed: failed encoding JWT"),
            ("invalid-s3", PLACEHOLDER, "notfound", None),
            ("invalid-s3", "s3://symbolicator-test/" + app, "noperm", text)])
        equal(status, "fetching_failed")


# ---- Sentry ----
class Sentry:
    """`/files/dsyms/`: with `id` a redirect to the file on another host, else the list of files."""

    def __init__(self, listed, files):
        self.listed, self.files, self.headers = listed, files, []
        self.storage = Web(self.store)

    def store(self, h):
        equal((h.headers.get("Authorization"), h.headers.get("Cookie")), (None, None))
        data = self.files.get(h.path.rpartition("/")[2])
        h.reply(200, data) if data else h.reply(404)

    def route(self, h):
        url = urlsplit(h.path)
        self.headers.append({k: h.headers.get(k) for k in ("Authorization", "Cookie", "Accept-Encoding", "Range")})
        if url.path != "/files/dsyms/":
            return h.reply(404)
        query = parse_qs(url.query)
        if "id" in query:
            h.reply(302, headers=[("Location", f"{self.storage.url}/files/{query['id'][0]}")])
        elif isinstance(self.listed, tuple):
            h.reply(*self.listed)
        else:
            h.reply(200, json.dumps(self.listed))


def sentry_source(url, query="", **keys):
    return {"id": "sentry:project", "type": "sentry", "url": f"{url}/files/dsyms/{query}", "token": "sntrys-secret", **keys}


def test_sentry_source_lists_and_downloads_files(work, objects):
    listed = [{"id": "1", "symbolType": "elf", "objectName": "x"}, {"id": 2, "symbolType": "elf"},
              {"id": "3", "symbolType": "some_new_type"}, {"id": "4", "symbolType": "macho"},
              {"id": "5", "symbolType": "proguard"}, "what", {"id": "6", "symbolType": "elf"}]
    sentry = Sentry(listed, {"1": objects.stripped, "6": objects.full, "4": objects.full})
    with sentry.storage, Web(sentry.route) as web, Service(work, {"connect_to_reserved_ips": False}) as s:
        source = sentry_source(web.url, "?_last_upload=17")
        uri = "sentry://project_debug_file/"
        everything = [("sentry:project", uri + i, "ok", None) for i in "146"]
        answer = s.symbolicate(request(objects.module(), [objects.address("plain")], sources=[source],
                                       options={"dif_candidates": True}))
        equal((answer["modules"][0]["debug_status"], candidates(answer)), ("found", everything))
        equal(frames(answer)[0]["function"], "plain")
        index = f"/files/dsyms/?_last_upload=17&debug_id={objects.debug_id}&code_id={objects.build_id}"
        paths = [p for _, _, p in web.seen]
        equal(paths[0], index)
        uuidmaps = f"/files/dsyms/?_last_upload=17&debug_id={objects.debug_id}"
        equal(sorted(paths[1:]), [uuidmaps] + [f"/files/dsyms/?_last_upload=17&id={i}" for i in "146"])
        equal(sentry.headers[0], {"Authorization": "Bearer sntrys-secret", "Cookie": None, "Accept-Encoding": "identity",
                                  "Range": None})
        equal({h["Authorization"] for h in sentry.headers}, {"Bearer sntrys-secret"})
        equal(ask(s, objects.module(), [source])[0], "found")
        equal(len(web.seen), 5)  # all of it is remembered
        cookies = sentry_source(web.url, id="sentry:other", token=..., cookies="session=1; a=b")
        cookies = {k: v for k, v in cookies.items() if v is not ...}
        equal(ask(s, objects.module(), [cookies])[0], "found")
        equal(sentry.headers[5]["Cookie"], "session=1; a=b")
        equal(web.seen[5][2], index.replace("_last_upload=17&", ""))
        for query, module in [(f"?debug_id={objects.debug_id}", objects.module(code_id=None)),
                              (f"?code_id={objects.build_id}", objects.module(debug_id=None))]:
            del web.seen[:]
            equal(ask(s, module, [sentry_source(web.url)])[0], "found")
            equal(web.seen[0][2], "/files/dsyms/" + query)
        del web.seen[:]
        equal(ask(s, objects.module(code_id=None, debug_id=None), [source]),
              ("missing", [("sentry:project", PLACEHOLDER, "notfound", None)]))
        equal(web.seen, [])
        assert "sntrys-secret" not in s.logged()


def test_sentry_failures_leave_the_placeholder(work, objects):
    """They leave the placeholder, whatever they are, and do not disturb other sources."""
    rows = [((400, ""), 3), ((401, ""), 3), ((403, ""), 3), ((404, ""), 3), ((500, ""), 3), ((200, "{}"), 1), ((200, "nonsense"), 1),
            ((200, "[]"), 1)]
    sentry = Sentry(None, {})
    with sentry.storage, Web(sentry.route) as web, Upstream(objects.layout()) as up, Service(work) as s:
        for i, (answer, attempts) in enumerate(rows):
            sentry.listed = answer
            del web.seen[:]
            source = sentry_source(web.url, id=f"sentry:{i}", token=f"t{i}")
            placeholder = (f"sentry:{i}", PLACEHOLDER, "notfound", None)
            equal(ask(s, objects.module(), [source])[1], [placeholder], answer)
            equal(len(web.seen) <= 2 * attempts and len(web.seen) % attempts, 0, answer)  # once for each look-up
            other = {"id": "other", "type": "http", "url": up.url, "layout": {"type": "debuginfod"}}
            status, found = ask(s, objects.module(), [source, other])
            equal((status, placeholder in found), ("found", True))
        wait_until("the log", lambda: "source=sentry:2" in s.logged())
        for i, logged in [(1, True), (2, True), (0, False), (3, False), (4, False)]:
            lines = [l for l in s.logged().splitlines() if "rejects the configured credentials" in l and f"source=sentry:{i} " in l + " "]
            equal(len(lines), int(logged), (i, lines))
            equal([l for l in lines if "ERROR" not in l], [])
        sentry.listed = [{"id": "gone", "symbolType": "elf"}]
        equal(ask(s, objects.module(), [sentry_source(web.url, id="sentry:gone")]),
              ("missing", [("sentry:gone", "sentry://project_debug_file/gone", "notfound", None)]))


def test_sentry_lookups_carry_the_trace_headers(work, objects):
    """Look-ups are a part of the request's trace; downloads, which go elsewhere, are not told of it."""
    told = {"sentry-trace": "771a43a4192642f0b136d5159a501700-1234567890abcdef-1", "baggage": "sentry-release=1.0,other=%2Fx"}
    for propagate in (None, False):
        heard, sentry = [], Sentry([{"id": "1", "symbolType": "elf"}], {"1": objects.full})

        def route(h):
            heard.append((h.path.endswith("?id=1"), {name: h.headers.get(name) for name in told}))
            sentry.route(h)

        with sentry.storage, Web(route) as web, Service(work, {} if propagate is None else {"propagate_traces": propagate}) as s:
            body = request(objects.module(), [objects.address("plain")], sources=[sentry_source(web.url)])
            equal(json.loads(s.post("/symbolicate", body, told)[2])["modules"][0]["debug_status"], "found")
            looks, nothing = [h for is_file, h in heard if not is_file], dict.fromkeys(told)
            equal([looks, [h for is_file, h in heard if is_file]], [[told if propagate is None else nothing] * len(looks), [nothing]])
            assert looks
            equal(json.loads(s.post("/symbolicate", {**body, "modules": [objects.module(code_id=None)]}, {"baggage": "caf\xe9"})[2])["status"],
                  "completed")


def test_sentry_index_is_not_cached_without_cache_dir(work, objects):
    """Without a directory nothing is remembered."""
    sentry = Sentry([{"id": "1", "symbolType": "elf"}], {"1": objects.full})
    with sentry.storage, Web(sentry.route) as web, Service(work, {"cache_dir": None}) as s:
        index = lambda: len([p for _, _, p in web.seen if not re.search("[?&]id=1", p)])
        ask(s, objects.module(), [sentry_source(web.url)])
        before = index()
        ask(s, objects.module(), [sentry_source(web.url)])
        assert index() > before, (before, index())


def test_sentry_sources_are_limited_to_allowed_hosts(work, objects):
    sentry = Sentry([{"id": "1", "symbolType": "elf"}], {"1": objects.full})
    with sentry.storage, Web(sentry.route) as web, Service(work, {"sentry_source_hosts": ["sentry.test", "*.example.org"]}) as s:
        status, _, body = s.post("/symbolicate", request(objects.module(), [0], sources=[sentry_source(web.url)]))
        equal(status, 422)
        assert b"sentry_source_hosts" in body, body
    config = {"allow_internal_sentry_sources_in_requests": False, "connect_to_reserved_ips": False}
    with sentry.storage, Web(sentry.route) as web, Service(work, config) as s:
        equal(ask(s, objects.module(), [sentry_source(web.url)])[1], [("sentry:project", PLACEHOLDER, "notfound", None)])
        equal(web.seen, [])


def test_concurrent_modules_share_one_sentry_lookup(work, objects):
    """By many modules of many requests at the same time."""
    gate, sentry = threading.Event(), Sentry([{"id": "1", "symbolType": "elf"}], {"1": objects.full})

    def route(h):
        if not re.search("[?&]id=1", h.path):
            gate.wait(60)
        sentry.route(h)

    with sentry.storage, Web(route) as web, Service(work) as s:
        body = request(objects.module(), [0], sources=[sentry_source(web.url)])
        ids = [s.symbolicate(body, "?timeout=0")["request_id"] for _ in range(20)]
        wait_until("the first request", lambda: web.seen)
        gate.set()
        for i in ids:
            status, _, answer = s.request("GET", f"/requests/{i}?timeout=30")
            equal((status, json.loads(answer)["modules"][0]["debug_status"]), (200, "found"))
        equal(len(web.seen), 3)  # the index, the file, and the index of the UUID maps


# ---- symbol stores ----
def pe_module(name, code_id=None, debug_id=None, debug_file=None):
    return {"type": "pe", "code_id": code_id, "code_file": f"C:\\x\\{name}", "debug_id": debug_id, "debug_file": debug_file,
            "image_addr": "0x10000000", "image_size": 4096}


CRASH = pe_module("crash.exe", "5ab380779000", "3249d99d-0c40-4931-8610-f4e4fb0b6936-1", "C:\\x\\crash.pdb")
CRASH_PDB = "crash.pdb/3249D99D0C4049318610F4E4FB0B69361/crash.pdb"
ADMIN = "/000Admin/"


def store_source(url, **keys):
    return {"id": "store", "type": "http", "url": url, "layout": {"type": "symstore"}, "has_index": True, **keys}


def store(objects):
    return {ADMIN + "lastid.txt": b" 2\r\n",
            ADMIN + "0000000001": b'"crash.exe\\5AB380779000",some more data\r\nno line\r\n"crash.pdb\\3249D99D0C4049318610F4E4FB0B69361",\r\n',
            ADMIN + "0000000002": b'"kernel32.dll\\590285E9e0000",\n"Mixed.DLL\\590285e9E0000","x"\n',
            "/" + CRASH_PDB: objects.full,
            "/Mixed.DLL/590285e9E0000/Mixed.DLL": objects.full}


def test_symstore_index_selects_files_to_ask_for(work, objects):
    routes = store(objects)
    with Upstream(routes) as up, Service(work) as s:
        def rows(module):
            return [c[1:3] for c in ask(s, module, [store_source(up.url)])[1]]

        equal(rows(CRASH), [(up.url + "crash.exe/5AB380779000/crash.exe", "notfound"), (up.url + CRASH_PDB, "ok")])
        equal(rows(pe_module("kernel32.dll", "590285e9e0000")),
              [(PLACEHOLDER, "notfound"), (up.url + "kernel32.dll/590285E9e0000/kernel32.dll", "notfound")])
        equal(rows(pe_module("ntdll.dll", "590285e9e0000")), [(PLACEHOLDER, "notfound")])
        # in another case than asked for: as the index has it
        equal(rows(pe_module("mixed.dll", "590285e9e0000")),
              [(PLACEHOLDER, "notfound"), (up.url + "Mixed.DLL/590285e9E0000/Mixed.DLL", "ok")])
        equal(up.hits, {ADMIN + "lastid.txt": 1, ADMIN + "0000000001": 1, ADMIN + "0000000002": 1,
                        "/crash.exe/5AB380779000/crash.exe": 1, "/" + CRASH_PDB: 1,
                        "/kernel32.dll/590285E9e0000/kernel32.dll": 1, "/Mixed.DLL/590285e9E0000/Mixed.DLL": 1})


def test_grown_symstore_index_costs_only_new_segments(work, objects):
    """Segments stay on disk over a restart, and a longer index costs its new segments."""
    routes = store(objects)
    with Upstream(routes) as up:
        source = store_source(up.url)
        with Service(work) as s:
            ask(s, CRASH, [source])
            cache = s.cache
        routes[ADMIN + "lastid.txt"] = b"3"
        routes[ADMIN + "0000000003"] = b'"ntdll.dll\\590285E9e0000",\n'
        up.hits.clear()
        with Service(work, cache_dir=cache) as s:
            equal([c[2] for c in ask(s, pe_module("ntdll.dll", "590285e9e0000"), [source])[1]], ["notfound", "notfound"])
            equal(ask(s, CRASH, [source])[1][1][1:3], (up.url + CRASH_PDB, "ok"))
        equal({k: v for k, v in up.hits.items() if k.startswith(ADMIN)}, {ADMIN + "lastid.txt": 1, ADMIN + "0000000003": 1})
        # One of the new ones cannot be had: nothing is known of the source.
        routes[ADMIN + "lastid.txt"] = b"4"
        with Service(work, cache_dir=cache) as s:
            equal(ask(s, CRASH, [source])[1], [("store", PLACEHOLDER, "notfound", None)])
            wait_until("the log", lambda: "Failed to download symstore index segment 4" in s.logged())


def test_unusable_symstore_index_is_logged_and_ignored(work, objects):
    for last, logged in [(404, "cannot download the index of a symbol source"), (b"", "Invalid Symstore Id: no number"), (b"x", "Invalid Symstore Id: invalid digit"),
                         (b"1" * 21, "Invalid Symstore Id (too big)"), (b"1" * 5000, "Invalid Symstore Id (too big)"),
                         (b"10001", "Invalid Symstore Id: 10001, too large"), (b"-1", "Invalid Symstore Id: invalid digit"),
                         (b"99999999999", "Invalid Symstore Id: number too large")]:
        with Upstream({**store(objects), ADMIN + "lastid.txt": last}) as up, Service(work) as s:
            for _ in range(2):
                equal(ask(s, CRASH, [store_source(up.url)]), ("missing", [("store", PLACEHOLDER, "notfound", None)]), last)
            equal(list(up.hits), [ADMIN + "lastid.txt"])
            wait_until(logged, lambda: logged in s.logged())
            # another layout has no index
            found = ask(s, CRASH, [store_source(up.url, id="ssqp", layout={"type": "ssqp"})])[1]
            equal(len([c for c in found if c[1] != PLACEHOLDER]) > 2, True)


def test_symstore_indexes_are_kept_apart_by_scope(work, objects):
    """Two tenants give their sources the same id."""
    mine, yours = store(objects), {**store(objects), ADMIN + "lastid.txt": b"0"}
    with Upstream(mine) as a, Upstream(yours) as b, Service(work) as s:
        for scope, url, rows in [("1", a.url, 2), ("2", b.url, 1), ("1", b.url, 1), ("2", a.url, 2)]:
            equal(len(ask(s, CRASH, [store_source(url)], scope=scope)[1]), rows, (scope, url))


def test_nuget_is_asked_only_with_a_checksum(work, objects):
    """NuGet's server wants the checksum; without one it is not asked."""
    seen = []

    def route(h):
        seen.append(h.headers.get("SymbolChecksum"))
        h.reply(200, objects.full)

    path = "/TimeZoneConverter.pdb/4E2CA887825E46F3968F25B41AE1B5F3ffffffff/TimeZoneConverter.pdb"
    module = {"type": "pe_dotnet", "debug_id": "4e2ca887-825e-46f3-968f-25b41ae1b5f3-9e6d3fcc", "debug_file": "./TimeZoneConverter.pdb"}
    with Upstream({path: route}) as up, Service(work) as s:
        source = {"id": "nuget", "type": "http", "url": up.url, "layout": {"type": "symstore"},
                  "filters": {"filetypes": ["portablepdb"], "requires_checksum": True}}
        equal(ask(s, module, [source]), ("missing", [("nuget", PLACEHOLDER, "notfound", None)]))
        equal(up.hits, {})
        checksum = "SHA256:87a8a1a4a7dcd;SHA1:00"
        found = ask(s, {**module, "debug_checksum": checksum}, [source])[1]
        equal([c[1] for c in found], [up.url.rstrip("/") + path])
        equal(set(seen), {checksum})


def test_file_ptr_is_followed_within_the_roots(work, objects):
    share = os.path.join(work, "share")
    os.makedirs(os.path.join(share, "sub"))
    for name in ("there", "sub/there"):
        with open(os.path.join(share, name), "wb") as f:
            f.write(objects.full)
    os.symlink("/etc/hostname", os.path.join(share, "out"))
    pdb = "/" + CRASH_PDB
    pointer = pdb.replace("crash.pdb", "file.ptr").replace("file.ptr/", "crash.pdb/", 1)
    config = {"file_ptr": {"roots": [share], "unc_map": {"\\\\srv\\sym": share}}}
    pe = {"/crash.exe/5AB380779000/file.ptr": b"MSG: not here"}
    with Upstream({}) as up, Upstream({"/real": objects.full, "/second": b"PATH:" + b"http://127.0.0.1:1/"}) as there, \
            Service(work, config) as s:
        rows = [
            (f"PATH:{there.url}real\r\n", "ok"), (f"PATH:{share}/there", "ok"), (f"PATH:{share}/sub/there\0\n", "ok"),
            ("PATH:\\\\srv\\sym\\there", "ok"), ("PATH:\\\\SRV\\Sym\\sub\\there", "ok"), ("PATH:\\\\srv\\symbols\\there", "notfound"),
            ("PATH:\\\\srv\\sym\\..\\..\\etc\\hostname", "notfound"), (f"PATH:{share}/out", "notfound"),
            ("PATH:/etc/hostname", "notfound"), ("PATH:", "notfound"), ("path:" + share + "/there", "notfound"),
            ("MSG: moved", "notfound"), ("", "notfound"), (f"PATH:{share}/absent", "notfound"), ("PATH:ftp://x/y", "notfound"),
            (f"PATH:{there.url}absent", "notfound"), (f"PATH:{there.url}second", "malformed"), ("PATH:" + "x" * 5000, "malformed"),
        ]
        for i, (text, status) in enumerate(rows):
            up.routes = {pointer: text.encode(), **pe}
            up.hits.clear()
            source = store_source(up.url, id=f"p{i}", has_index=False, file_ptr=True, filters={"filetypes": ["pdb", "pe"]})
            found = {c[1]: c[2] for c in ask(s, CRASH, [source])[1]}
            equal(found[up.url + pointer[1:]], status, text)
            equal(found[up.url + "crash.exe/5AB380779000/file.ptr"], "notfound")
            equal(len(found), 7, found)
        # the file itself is there: nobody asks for the pointer
        up.routes = {pointer: b"PATH:/x", pdb: objects.full, **pe}
        up.hits.clear()
        source = store_source(up.url, id="direct", has_index=False, file_ptr=True, filters={"filetypes": ["pdb"]})
        found = [c[1:3] for c in ask(s, CRASH, [source])[1]]
        equal(found, [(PLACEHOLDER, "notfound"), (up.url + pdb[1:-1] + "_", "notfound"), (up.url + pdb[1:], "ok")])
        equal(pointer in up.hits, False)
        # and nobody does where the source does not say so
        up.routes = {pointer: f"PATH:{share}/there".encode()}
        found = ask(s, CRASH, [store_source(up.url, id="plain", has_index=False, filters={"filetypes": ["pdb"]})])[1]
        equal([c[1] for c in found if "file.ptr" in c[1]], [])
    with Upstream({pointer: f"PATH:{share}/there".encode()}) as up, Service(work) as s:  # no roots
        source = store_source(up.url, has_index=False, file_ptr=True, filters={"filetypes": ["pdb"]})
        equal({c[2] for c in ask(s, CRASH, [source])[1]}, {"notfound"})
