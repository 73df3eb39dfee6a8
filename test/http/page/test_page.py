"""The page at /: its files, their headers, and the example that it offers."""
import gzip, json, re, subprocess

import harness
from harness import Service, equal

POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; "
          "base-uri 'none'; frame-ancestors 'none'")
LARGEST = 60 * 1024  # of all, in gzip


def get(service, path, **headers):
    status, answer, body = service.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    return status, answer, gzip.decompress(body) if answer["content-encoding"] == "gzip" else body, len(body)


def assets(service):
    """Every file that the page is made of, found as a browser finds them: path to (headers, text, bytes on the wire)."""
    found, waiting = {}, ["/"]
    while waiting:
        path = waiting.pop()
        status, headers, body, size = get(service, path, Accept_Encoding="gzip, deflate, br, zstd")
        equal(status, 200, path)
        found[path] = headers, body.decode(), size
        for name in re.findall(r"""["'](?:\./|/page/)([\w-]+\.(?:js|css|svg)\?v=\w+)["']""", body.decode()):
            if "/page/" + name not in found and "/page/" + name not in waiting:
                waiting.append("/page/" + name)
    return found


def test_ui_files_are_served_with_type_and_version(work, objects):
    with Service(work) as s:
        files = assets(s)
        assert len(files) > 8, files.keys()
        assert sum(size for _, _, size in files.values()) <= LARGEST
        versions = {path.partition("?")[2] for path in files if path != "/"}
        equal(len(versions), 1)
        types = {"": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
        for path, (headers, text, _) in files.items():
            kind = types[path.partition("?")[0].rpartition(".")[2] if path != "/" else ""]
            equal(headers["content-type"], kind + "; charset=utf-8")
            equal(headers["content-security-policy"], POLICY)
            equal((headers["referrer-policy"], headers["cross-origin-opener-policy"], headers["x-content-type-options"]),
                  ("no-referrer", "same-origin", "nosniff"))
            equal(headers["vary"], "Accept-Encoding")
            equal(headers["cache-control"], "private, no-cache" if path == "/" else "private, max-age=3600")
            assert re.fullmatch(r'"[0-9a-f]{16}-[0-9a-f]+"', headers["etag"]), headers["etag"]
            plain = get(s, path)
            equal((plain[0], plain[1]["etag"], plain[2].decode()), (200, None, text))
            status, again, body, _ = get(s, path, Accept_Encoding="gzip", If_None_Match=f'"x", W/{headers["etag"]}')
            equal((status, body, again["etag"]), (304, b"", headers["etag"]))
            status, head, _ = s.request("HEAD", path, headers={"Accept-Encoding": "gzip"})
            equal((status, head["content-length"]), (200, headers["content-length"]))
        main = next(text for path, (_, text, _) in files.items() if path.startswith("/page/main.js?"))
        assert not re.search(r"^import\b", main, re.M), "a browser finds one script, and none in it that it must ask for then"
        text = "".join(text for _, text, _ in files.values())
        scheme = set(re.findall(r"""(?:src|href|import|from)\s*=?\s*["'](https?:)?//""", text))
        equal(scheme, set())  # nothing from anywhere else
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|\sstyle=|\son\w+=", text)


def test_ui_is_served_only_at_root(work, objects):
    with Service(work) as s:
        for path in ("/page/", "/page/index.html", "/page/nothing.js", "/page/..%2fpage.c", "/page/%2e%2e", "/page/a/b", "/page"):
            equal(s.request("GET", path)[0], 404, path)
        equal(s.request("POST", "/page/main.js", "x")[0], 405)
        status, headers, _ = s.request("POST", "/", "[]")
        equal((status, headers["allow"]), (405, "GET,HEAD"))


def test_ui_can_be_disabled(work, objects):
    with Service(work, {"page": {"enabled": False}}) as s:
        for path in ("/", "/page/main.js", "/page/example.json", "/page/about.json"):
            status, _, body = s.request("GET", path)
            equal((status, body), (404, b""), path)


def test_root_names_the_mozilla_server_when_configured(work, objects):
    words = b"Mozilla Symbolication Server"
    with Service(work) as s:
        assert words not in get(s, "/")[2]
    with Service(work, {"mozilla": {}}) as s:
        status, headers, body, _ = get(s, "/", Accept_Encoding="gzip")
        assert (status, words in body, b"/page/main.js" in body) == (200, True, True)
        equal(s.request("POST", "/", "[]")[0], 400)
    with Service(work, {"mozilla": {}, "page": {"enabled": False}}) as s:
        status, headers, body = s.request("GET", "/")
        assert (status, words in body, headers["content-security-policy"]) == (200, True, POLICY)
        equal((s.request("POST", "/", "[]")[0], s.request("GET", "/page/main.js")[0]), (400, 404))


def test_ui_asks_for_a_key_when_required(work, objects):
    key = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"  # SHA-256 of "password"
    settings = {"auth": {"require": ["page"], "keys": [{"id": "me", "sha256": key, "rights": ["page"]}]}}
    with Service(work, settings) as s:
        status, headers, _ = s.request("GET", "/")
        equal((status, "Basic" in headers["www-authenticate"]), (401, True))
        equal(s.request("GET", "/", headers={"Authorization": "Bearer password"})[0], 200)


def test_ui_shows_the_limits_in_force(work, objects):
    with Service(work, {"max_request_frames": 77, "symbolicate_body_max_bytes": 4096}) as s:
        about = json.loads(s.request("GET", "/page/about.json")[2])
        equal((about["limits"]["max_request_frames"], about["limits"]["symbolicate_body_max_bytes"]), (77, 4096))
        equal(about["sources"], 0)


def test_example_request_is_a_stack_of_the_program_itself(work, objects):
    code_id = re.search(r"code id\s+([0-9a-f]+)", subprocess.run([harness.SYMLOOM, "inspect", harness.SYMLOOM], check=True,
                        capture_output=True, text=True).stdout, re.I).group(1)
    with Service(work) as s:
        example = json.loads(s.request("GET", "/page/example.json")[2])
        own = next(m for m in example["modules"] if m["code_id"] == code_id)
        equal(own["code_file"], "symloom")
        for module in example["modules"]:
            assert "/" not in module["code_file"] and int(module["image_addr"], 16) % 0x100000000 == 0, module
        answer = s.symbolicate(example)
        statuses = {f["status"] for f in answer["stacktraces"][0]["frames"]}
        equal(statuses, {"missing"})  # no source has it
        equal([m["code_id"] for m in answer["modules"]], [m["code_id"] for m in example["modules"]])
        addresses = [int(f["instruction_addr"], 16) - int(own["image_addr"], 16) for f in example["stacktraces"][0]["frames"]]
        inside = [a - 1 for a in addresses if 0 <= a < own["image_size"]]
        names = subprocess.run([harness.SYMLOOM, "lookup", "-e", harness.SYMLOOM, "-a", *map(hex, inside)], check=True,
                               capture_output=True, text=True).stdout
        for name in ("page_example", "answer_example", "loop_run", "main"):
            assert name in names, names
