"""`symloom config check`: what is wrong with a configuration, and what it asks of the machine that is not there."""
import json, os, subprocess
from harness import contains, equal, ok, symloom


def check(work, text, *words, env=None):
    """Status and lines, without the file's name."""
    path = os.path.join(work, "config.yml")
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o644)
    result = symloom("config", "check", *words, path, env=env)
    equal(result.err, "")
    return result.status, [line.removeprefix(path + ":") for line in result.out.splitlines()]


def test_check_tells_what_confines_workers_when_asked(work, files):
    equal(check(work, "max_concurrent_requests: 3"), (0, ["configuration OK"]))
    status, lines = check(work, "max_concurrent_requests: 3", "-v")
    equal((status, len(lines)), (0, 2))
    contains(lines[0], "info: conversion.isolation: files are read by processes that are confined by: seccomp filter, ")
    equal(check(work, "conversion: {isolation: thread}", "-v"), (0, ["configuration OK"]))
    equal(check(work, "conversion: {isolation: fiber}")[0], 1)


def test_unwritable_directories_are_errors_in_check(work, files):
    """As the service would find out when it starts; nothing is left, and nothing made."""
    plain = os.path.join(work, "plain")
    open(plain, "w").close()
    for key, text in (("cache_dir", "cache_dir: {}"), ("symbfile.store_dir", "symbfile: {{store_dir: {}}}"),
                      ("shared_cache.filesystem.path", "shared_cache: {{filesystem: {{path: {}}}}}")):
        for path, why in ((plain + "/x", "Not a directory"), ("/proc/symloom", "No such file or directory")):
            text_of = text.format(path)
            column = text_of.index(path) + 1
            equal(check(work, text_of), (1, [f"1:{column}: error: {key}: cannot write to {path}: {why}"]))
        fine = os.path.join(work, "a/b/c")
        equal(check(work, text.format(fine)), (0, ["configuration OK"]))
    equal(sorted(os.listdir(work)), ["config.yml", "plain"])
    equal(check(work, "cache_dir: /proc/symloom", "--cache-dir", work), (0, ["configuration OK"]))
    equal(check(work, "logging: {file: /proc/symloom/log}"),
          (1, ["1:17: error: logging.file: cannot write to /proc/symloom/log: No such file or directory"]))
    equal(check(work, f"logging: {{file: {work}/log}}"), (0, ["configuration OK"]))


def test_missing_files_are_reported_by_check(work, files):
    missing, plain = os.path.join(work, "missing"), os.path.join(work, "config.yml")
    source = "sources: [{{id: a, type: filesystem, path: {}}}]"
    equal(check(work, source.format(missing)), (0, [f"1:43: warning: sources[0].path: cannot read {missing}: No such file or directory"]))
    equal(check(work, source.format(plain), "--strict"), (1, [f"1:43: warning: sources[0].path: {plain} is not a directory"]))
    equal(check(work, source.format(work)), (0, ["configuration OK"]))
    empty = os.path.join(work, "empty")
    os.mkdir(empty)
    equal(check(work, source.format(empty)), (0, [f"1:43: warning: sources[0].path: {empty}: the directory of the symbol source is empty; is it mounted?"]))
    equal(check(work, f"file_ptr: {{roots: [{missing}]}}"),
          (0, [f"1:19: warning: file_ptr.roots: cannot read {missing}: No such file or directory"]))
    result = symloom("config", "check", missing)
    equal((result.status, result.err), (1, "error: failed loading config\n"
          f"  caused by: failed to open configuration file {missing}: No such file or directory\n"))


def test_service_account_files_are_checked(work, files):
    account = os.path.join(work, "account.json")
    text = f"shared_cache: {{gcs: {{bucket: x, service_account_path: {account}}}}}"
    place = f"1:{text.index(account) + 1}: error: shared_cache.gcs.service_account_path: "
    equal(check(work, text), (1, [f"{place}cannot read the service account {account}: No such file or directory"]))
    key = subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], capture_output=True,
                         text=True, check=True).stdout
    for contents, wrong in (("", f"the service account file {account} is not JSON"),
                            ("{}", f"the service account file {account} has no private_key or client_email"),
                            (json.dumps({"private_key": "x", "client_email": "a@b"}), f"the private_key in {account} is not a valid RSA key"),
                            (json.dumps({"private_key": key, "client_email": "a@b"}), None)):
        with open(account, "w") as f:
            f.write(contents)
        equal(check(work, text), (1, [place + wrong]) if wrong else (0, ["configuration OK"]))


def test_invalid_values_report_the_valid_ones(work, files):
    """Each with what would be right."""
    layouts = "native, symstore, symstore_index2, ssqp, debuginfod, unified, slashsymbols"
    types = ("pe, pdb, portablepdb, mach_debug, mach_code, elf_debug, elf_code, wasm_debug, wasm_code, breakpad, sourcebundle, "
             "uuidmap, bcsymbolmap, il2cpp, proguard")
    groups = "symbolicate mozilla proxy symcache symbols metrics status page admin downloads debuginfod"
    rights = "symbolicate mozilla proxy symcache symbols:read symbols:write symbols:delete metrics status page admin downloads debuginfod"
    http = "sources: [{id: a, type: http, url: 'https://example.com/', "
    for text, line in (
            ("sources: [{id: a, type: http, url: 'ftp://example.com/'}]", "sources[0].url: only http and https can be asked"),
            ("sources: [{id: '', type: http, url: 'https://example.com/'}]", "sources[0].id: the text is empty"),
            ("sources: [{id: a, type: filesystem, path: ''}]", "sources[0].path: the text is empty"),
            ("sources: [{id: a, type: ftp}]",
             "sources[0].type: unknown source type `ftp`, expected one of filesystem, http, s3, gcs, sentry"),
            (http + "layout: {type: foo}}]", f"sources[0].layout.type: unknown value `foo`, expected one of {layouts}"),
            (http + "layout: {casing: foo}}]",
             "sources[0].layout.casing: unknown value `foo`, expected one of default, lowercase, uppercase, insensitive"),
            (http + "filters: {filetypes: [foo]}}]",
             f"sources[0].filters.filetypes: unknown file type `foo`, expected one of {types}"),
            ("sources: [{id: a, type: s3, bucket: b, region: r, aws_credentials_provider: foo}]",
             "sources[0].aws_credentials_provider: unknown value `foo`, expected one of static, container, instance, web_identity"),
            ("auth: {require: [foo]}", f'auth.require: "foo" is not one of {groups}'),
            (f"auth: {{keys: [{{id: a, sha256: {'00' * 32}, rights: [foo]}}]}}",
             f'auth.keys[0].rights: "foo" is not one of {rights}')):
        status, lines = check(work, text)
        equal((status, [part.split(": ", 1)[1] for part in lines][:1]), (1, ["error: " + line]), text)
    for text, line in ((http + "filters: {filetypes: []}}]", "sources[0].filters.filetypes: the list is empty, which excludes nothing"),
                       (http + "filters: {path_patterns: []}}]",
                        "sources[0].filters.path_patterns: the list is empty, which excludes nothing"),
                       (f"auth: {{keys: [{{id: a, sha256: {'00' * 32}, rights: []}}]}}",
                        "auth.keys[0].rights: the list is empty, so the key allows no requests")):
        status, lines = check(work, text)
        equal((status, [part.split(": ", 1)[1] for part in lines]), (0, ["warning: " + line]), text)


def test_references_inside_longer_values_are_warned_of(work, files):
    """Only what is nothing but a reference is replaced."""
    equal(check(work, f"cache_dir: '{work}/${{USER}}'"),
          (0, ["1:12: warning: cache_dir: ${USER} is not replaced: a variable must be the whole value"]))
    status, lines = check(work, "sources: [{id: a, type: http, url: 'https://example.com/', headers: {A: 'Bearer ${TOKEN}'}}]")
    contains(lines[0], "warning: sources[0].headers.A: ${TOKEN} is not replaced")
    for text in ("${HOME}", "a$b", "${", "${}", "a ${x y}"):
        status, lines = check(work, f"sources: [{{id: '{text}', type: http, url: 'https://example.com/'}}]", env={"HOME": "h"})
        equal((status, lines), (0, ["configuration OK"]), text)


def test_readable_file_is_warned_of_only_with_secrets(work, files):
    """A file that everybody can read is a danger only with secrets in it."""
    warned = " warning: shared_cache.redis.password: the file contains secrets and is readable by everyone; restrict it with chmod o-r"
    redis = "shared_cache: {{redis: {{url: 'redis://localhost', password: {}}}}}"
    equal(check(work, redis.format("secret")), (0, [warned]))
    for none in ("null", "", "~", "'[redacted]'", "'${HOME}'"):
        equal(check(work, redis.format(none)), (0, ["configuration OK"]), none)
    equal(check(work, "sentry_dsn: null"), (0, ["configuration OK"]))


def test_container_defaults_need_the_variable(work, files):
    """Beside a configuration file a container is known by the variable alone: a mistyped key never makes /data."""
    path = os.path.join(work, "config.yml")
    with open(path, "w") as f:
        f.write("cache_dri: /tmp/x\n")
    for told, wanted in (("", "cache_dir: null # default"), ("1", 'cache_dir: "/data" # default')):
        shown = ok("config", "show", "-c", path, env={"SYMLOOM_CONTAINER": told})
        contains(shown, "\n" + wanted)


def test_config_show_prints_json_without_secrets(work, files):
    path = os.path.join(work, "config.yml")
    with open(path, "w") as f:
        f.write("max_downloads: 5\nconnect_timeout: 90s\nsentry_dsn: http://key@localhost/1\nmetrics: {custom_tags: {a: 'b c'}}\n"
                "sources:\n  - {id: one, type: http, url: 'http://user:word@localhost/', headers: {X: hidden}}\n")
    text = ok("config", "show", "--json", "-c", path)
    shown = json.loads(text)
    equal(text.count("\n"), 1)
    equal((shown["max_downloads"], shown["connect_timeout"], shown["sentry_dsn"]), (5, "1m 30s", "[redacted]"))
    equal((shown["metrics"]["custom_tags"], shown["sources"][0]["id"], shown["mozilla"]["tokens"] if "mozilla" in shown else []), ({"a": "b c"}, "one", []))
    assert "hidden" not in text and "user" not in text.split(chr(34) + "sources")[1][:99], text


def test_config_check_prints_findings_as_json(work, files):
    path = os.path.join(work, "config.yml")
    with open(path, "w") as f:
        f.write("max_downloads: many\nconect_timeout: 5s\n")
    found = symloom("config", "check", "--json", path)
    equal((found.status, found.err), (1, ""))
    rows = sorted(json.loads(found.out), key=lambda row: row["line"])
    equal([(row["level"], row["file"], row["line"], row["key"]) for row in rows],
          [("error", path, 1, "max_downloads"), ("warning", path, 2, "conect_timeout")])
    contains(rows[1]["message"], "connect_timeout")
    with open(path, "w") as f:
        f.write("max_downloads: 5\n")
    equal(ok("config", "check", "--json", path), "[]\n")
    missing = symloom("config", "check", "--json", os.path.join(work, "nothing"))
    equal((missing.status, missing.out), (1, ""))


def test_several_nodes_without_a_shared_upload_store_are_warned_of(work, files):
    """As soon as there may be several nodes, and somebody who uploads."""
    upload = f"auth: {{keys: [{{id: a, sha256: {'00' * 32}, rights: ['symbols:write']}}]}}\n"
    redis, peers = "shared_cache: {redis: {url: redis://a}}\n", "cluster: {node_id: 5}\n"
    warned = "warning: symbfile.store_dir: with several nodes, symbfile uploads need a shared store, or each node answers from its own uploads only"
    for text, line in (
            (redis + upload, 1), (peers + upload, 1), (redis + "auth: {require: []}\n", 1),
            (redis + upload + f"symbfile: {{store_dir: {work}}}\n", 3),
            (redis, 0), (peers, 0), (upload, 0), (redis + upload + f"symbfile: {{store: {{filesystem: {{path: {work}}}}}}}\n", 0),
            (peers + upload + "symbfile: {store: {s3: {bucket: b, access_key: a, secret_key: s}}}\n", 0)):
        status, lines = check(work, text)
        told = [part for part in lines if warned in part]
        equal((status, [int(part.split(":")[0]) for part in told]), (0, [line] if line else []), (text, lines))
    for text, line in (
            (f"symbfile: {{store: {{filesystem: {{path: {work}}}, s3: {{bucket: b, access_key: a, secret_key: s}}}}}}",
             "error: symbfile.store: set only one of s3, gcs and filesystem"),
            ('store: {s3: {bucket: a}, gcs: {bucket: b}}', "error: store: set only one of s3 and gcs"),
            (f"symbfile: {{store_dir: {work}, store: {{filesystem: {{path: {work}}}}}}}",
             "error: symbfile.store_dir: symbfile.store.filesystem.path is set too; set only one of them")):
        status, lines = check(work, text)
        equal((status, lines[0].split(": ", 1)[1]), (1, line), text)


def test_scopes_without_required_keys_are_warned_of(work, files):
    key = f"auth: {{keys: [{{id: a, sha256: {'00' * 32}, rights: ['symbols:write'], scopes: [a]}}]%s}}\n"
    warned = "1:{}: warning: auth.require: without `symbolicate` in this list, anyone can request any scope and see its uploads"
    for text, column in ((key % "", 14), (key % ", require: [symbols]", None), (key % ", require: [symbols, symbolicate]", 0),
                         (key % "" + "uploads: {scope: shared}", 0), ((key % "").replace(":write", ":read"), 0)):
        status, lines = check(work, text)
        equal((status, [line for line in lines if "auth.require" in line]),
              (0, [warned.format(text.index("require") + 10 if column is None else column)] if column != 0 else []), text)


def test_check_and_run_report_the_same_errors(work, files):
    """What the service does not start with is said by both, with its line and key."""
    missing, path = os.path.join(work, "missing"), os.path.join(work, "run.yml")
    keys = "access_key: a, secret_key: s, "
    env = {name: "" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "GOOGLE_APPLICATION_CREDENTIALS")}
    no_keys = "no credentials: set access_key and secret_key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"
    for text, key, what in (
            ("shared_cache: {s3: {bucket: b}}", "shared_cache.s3", no_keys),
            ("shared_cache: {s3: {endpoint: http://a}}", "shared_cache.s3.bucket", "the bucket's name is missing, although other keys of the bucket are set"),
            (f"shared_cache: {{s3: {{bucket: b, {keys}endpoint: not a url}}}}", "shared_cache.s3.endpoint",
             "not the URL of a server (example: https://s3.example.com)"),
            (f"shared_cache: {{s3: {{bucket: b, {keys}region: a b}}}}", "shared_cache.s3.region",
             "not the name of a region (example: eu-central-1)"),
            (f"shared_cache: {{gcs: {{bucket: b, service_account_path: {missing}}}}}", "shared_cache.gcs.service_account_path",
             f"cannot read the service account {missing}: No such file or directory"),
            (f"shared_cache: {{redis: {{url: redis://a, password: {'p' * 3000}}}}}", "shared_cache.redis.password",
             "the password is too long (at most"),
            (f"shared_cache: {{redis: {{url: redis://a, namespace: {'n' * 300}}}}}", "shared_cache.redis.namespace",
             "the namespace is too long (at most"),
            ("mozilla: {store: {s3: {bucket: b}}}", "mozilla.store.s3", no_keys),
            ("symbfile: {store: {s3: {bucket: b}}}", "symbfile.store.s3", no_keys),
            (f"symbfile: {{store: {{s3: {{bucket: b, {keys}endpoint: not a url}}}}}}", "symbfile.store.s3.endpoint",
             "not the URL of a server (example: https://s3.example.com)"),
            (f"symbfile: {{store: {{gcs: {{bucket: b, service_account_path: {missing}}}}}}}",
             "symbfile.store.gcs.service_account_path", f"cannot read the service account {missing}: No such file or directory"),
            ("store: {s3: {bucket: b}}", "store.s3", no_keys),
            (f"store: {{gcs: {{bucket: b, service_account_path: {missing}}}}}", "store.gcs.service_account_path",
             f"cannot read the service account {missing}: No such file or directory"),
            ("symbfile: {store: {filesystem: {path: /proc/x}}}", "symbfile.store.filesystem.path", "cannot write to /proc/x"),
            (f"mozilla: {{store: {{gcs: {{bucket: b, service_account_path: {missing}}}}}}}", "mozilla.store.gcs.service_account_path",
             f"cannot read the service account {missing}: No such file or directory"),
            ("mozilla: {store: {filesystem: {path: /proc/x}}}", "mozilla.store.filesystem.path", "cannot write to /proc/x"),
            ("cache_dir: /proc/x", "cache_dir", "cannot write to /proc/x: No such file or directory"),
            ("logging: {file: /proc/x/log}", "logging.file", "cannot write to /proc/x/log: No such file or directory"),
            (f"bind_https: 127.0.0.1:0\nserver_config: {{https: {{certificate_path: {missing}, key_path: {missing}}}}}",
             "server_config.https.certificate_path", f"the certificate {missing}: No such file or directory"),
            ("sentry_dsn: http://a", "sentry_dsn", "not a DSN")):
        with open(path, "w") as f:
            f.write(f"bind: 127.0.0.1:0\n{text}\n")
        os.chmod(path, 0o600)
        checked = symloom("config", "check", path, env=env)
        found = [line for line in checked.out.splitlines() if f": error: {key}: {what}" in line]
        equal((checked.status, len(found), found and found[0].startswith(path + ":")), (1, 1, True), (text, checked.out))
        ran = symloom("run", "-c", path, env=env)
        equal((ran.status, found[0] in ran.err.splitlines()), (1, True), (text, ran.err))
        contains(ran.err, "error: failed to start the server")


def test_every_upload_store_is_checked(work, files):
    path = os.path.join(work, "stores.yml")
    with open(path, "w") as f:
        f.write("".join(f"{name}: {{store: {{s3: {{bucket: b, access_key: a, secret_key: s, endpoint: not a url}}}}}}\n"
                        for name in ("mozilla", "symbfile")))
    os.chmod(path, 0o600)
    contains(symloom("config", "check", path).out, "error: mozilla.store.s3.endpoint: ", "error: symbfile.store.s3.endpoint: ")


def test_empty_yaml_files_are_errors(work, files):
    """Of whatever command reads YAML."""
    for i, text in enumerate(("", "\n\n", "# nothing yet\n")):
        path = os.path.join(work, f"empty{i}.yml")
        with open(path, "w") as f:
            f.write(text)
        for words, what in ((("config", "check", path), "config file empty"),
                            (("stress", "-w", path, "-d", "1s", "--server", "http://127.0.0.1:1"), f"{path}: the list 'workloads' is missing"),
                            (("lookup", "--source", path, "--build-id", "1b2f0c", "--no-network", "0x10"),
                             f"{path}: the file is empty; it must contain a source or a list of sources")):
            result = symloom(*words)
            equal(result.status, 1, result.err)
            contains(result.out + result.err, what)


def test_config_show_hides_passwords_in_urls(work, files):
    """Whatever key it belongs to, alone, in a list or in a map."""
    path = os.path.join(work, "config.yml")
    url = "https://user:word@host.example/a?sig=word"
    with open(path, "w") as f:
        f.write(f"mozilla: {{sources: ['{url}'], store: {{extra: ['{url}'], public_url: '{url}'}}}}\ncluster: {{peers: {{2: '{url}'}}}}\n"
                f"sources:\n  - {{id: a, type: http, url: '{url}'}}\n  - {{id: b, type: s3, bucket: c, region: [x, '{url}']}}\n")
    shown = ok("config", "show", "-c", path)
    equal((shown.count("https://host.example/a"), "word" in shown.replace("password", "")), (6, False), shown)
