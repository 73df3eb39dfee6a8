"""What the tests of Mozilla's symbol server share: stores, tokens, archives and forms."""
import io, json, os, warnings, zipfile

from harness import Service, equal

TOKENS = [
    {"key": "aa11", "email": "a@example.com", "user_id": 7, "permissions": ["upload_symbols"], "expires_at": "2030-01-01"},
    {"key": "bb22", "email": "t@example.com", "permissions": ["upload_try_symbols"], "upload_api": 2},
    {"key": "cc33", "email": "v@example.com", "permissions": ["view_all_uploads"]},
    {"key": "dd44", "email": "o@example.com", "permissions": ["upload_symbols"], "expires_at": "2020-01-01"},
    {"key": "ee55", "email": "i@example.com", "permissions": ["upload_symbols"], "active": False},
]
TOKEN, TRY, VIEWER, EXPIRED, INACTIVE = ({"Auth-Token": t["key"]} for t in TOKENS)
XPC = "xpcshell.dbg/A7D6F1BB18CD4CB48/xpcshell.sym"
SYM = (b"MODULE Linux x86_64 A7D6F1BB18CD4CB48 xpcshell.dbg\nINFO CODE_ID 80AE0509E7CE xpcshell\n"
       b"INFO GENERATOR mozilla/dump_syms 2.3\nFILE 0 a.c\nFUNC 10 20 0 f\n10 20 5 0\n")
SAMPLE = {"build-symbols.txt": b"flag\nxpcshell\n", "flag/deadbeef/flag.jpeg": os.urandom(69183), XPC: SYM}


def server(work, store=None, **config):
    mozilla = {"tokens": TOKENS, "sources": [], "store": {"filesystem": {"path": os.path.join(work, "store")}, **(store or {})}}
    return Service(work, {"mozilla": mozilla, **config})


def pack(members, method=zipfile.ZIP_DEFLATED):
    """An archive of (name, bytes) pairs, in their order, names more than once too."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z, warnings.catch_warnings(action="ignore"):
        for name, data in members.items() if isinstance(members, dict) else members:
            z.writestr(name, data)
    return out.getvalue()


def form(files=(), fields=()):
    parts = b""
    for name, data in files:
        parts += (f'--B\r\nContent-Disposition: form-data; name="{name}"; filename="x"\r\n'
                  "Content-Type: application/zip\r\n\r\n").encode() + data + b"\r\n"
    for name, text in fields:
        parts += f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'.encode()
    return parts + b"--B--\r\n"


def send(s, body, headers=TOKEN, path="/upload/", kind="multipart/form-data; boundary=B"):
    status, _, data = s.request("POST", path, body, {"Content-Type": kind, **headers})
    return status, json.loads(data)


def upload(s, members, headers=TOKEN, name="file.zip", fields=(), **packing):
    data = members if isinstance(members, bytes) else pack(members, **packing)
    return send(s, form([(name, data)], fields), headers)


def refused(s, members, text, status=400, **more):
    equal(upload(s, members, **more), (status, {"error": text}))


def get(s, path, headers=None, method="GET"):
    return s.request(method, "/" + path, headers=headers or {})


def is_record(name):
    """Of what an upload did, which only those look for who ask for it."""
    return "uploads/" in name


def stored(work):
    root = os.path.join(work, "store")
    names = [os.path.relpath(os.path.join(d, f), root) for d, _, files in os.walk(root) for f in files]
    return sorted(n for n in names if not is_record(n))
