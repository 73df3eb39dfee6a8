"""Pyroscope's service for debug information: its exchanges in JSON and in protobuf."""
import json

from harness import equal
from test_sentry import AUTH, found_lines, server

METHOD = "/debuginfo.v1alpha1.DebuginfoService/"


def call(s, method, body, headers=AUTH, kind="application/json"):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    status, got, answer = s.request("POST", METHOD + method, data, {"Content-Type": kind, **headers})
    return status, json.loads(answer) if got["Content-Type"] == "application/json" else answer


def field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def file_of(objects, **keys):
    return {"gnuBuildId": objects.build_id, "otelFileId": "0" * 32, "name": "shapes", "type": "TYPE_EXECUTABLE_NO_TEXT", **keys}


def test_debug_information_is_uploaded_by_json(work, objects):
    with server(work) as s:
        file = file_of(objects)
        equal(call(s, "Upload/" + objects.build_id, objects.debug, kind="application/octet-stream")[0], 412)
        status, answer = call(s, "ShouldInitiateUpload", {"file": file})
        equal((status, answer["shouldInitiateUpload"]), (200, True), answer)
        status, answer = call(s, "ShouldInitiateUpload", {"file": file})
        equal((answer["shouldInitiateUpload"], "in progress" in answer["reason"]), (False, True))
        equal(call(s, "ListDebuginfo", {})[1]["object"][0]["state"], "STATE_UPLOADING")
        status, answer = call(s, "UploadFinished", {"gnuBuildId": objects.build_id})
        equal((status, answer["code"], "no file has arrived" in answer["message"]), (400, "failed_precondition", True))
        equal(call(s, "Upload/" + objects.build_id, objects.debug, kind="application/octet-stream"), (200, b""))
        equal(call(s, "UploadFinished", {"gnuBuildId": objects.build_id}), (200, {}))
        status, answer = call(s, "UploadFinished", {"gnuBuildId": objects.build_id})
        equal((status, answer["code"]), (400, "failed_precondition"))
        equal(call(s, "UploadFinished", {"gnuBuildId": "cd" * 20})[0], 404)
        equal(found_lines(s, objects)[0], "found")
        listed = call(s, "ListDebuginfo", {})[1]["object"]
        equal([(o["file"], o["state"], o["sizeBytes"]) for o in listed], [({"goBuildId": "", **file}, "STATE_UPLOADED", str(len(objects.debug)))])
        status, answer = call(s, "ShouldInitiateUpload", {"file": file})
        equal((answer["shouldInitiateUpload"], "known already" in answer["reason"]), (False, True))
        equal(call(s, "DeleteDebuginfo", {"gnuBuildId": objects.build_id}), (200, {}))
        equal(call(s, "ListDebuginfo", {})[1], {"object": []})
        equal(found_lines(s, objects)[0], "missing")
        equal(call(s, "DeleteDebuginfo", {"gnuBuildId": objects.build_id}), (200, {}))  # an unknown id is no error for Pyroscope
        equal(call(s, "DeleteDebuginfo", {})[1]["code"], "invalid_argument")


def test_debug_information_is_uploaded_by_protobuf(work, objects):
    with server(work) as s:
        ask = lambda method, body: call(s, method, body, kind="application/proto")
        file = field(1, objects.build_id.encode()) + field(4, b"shapes") + b"\x28\x01"
        status, answer = ask("ShouldInitiateUpload", field(1, file))
        equal((status, answer[:2]), (200, b"\x08\x01"))
        equal(ask("Upload/" + objects.build_id, objects.full), (200, b""))
        equal(ask("UploadFinished", field(1, objects.build_id.encode())), (200, b""))
        equal(found_lines(s, objects)[0], "found")
        listed = ask("ListDebuginfo", b"")[1]
        size = len(objects.full)
        equal((field(1, objects.build_id.encode()) in listed, b"\x10\x01\x1a" in listed), (True, True))  # 2: uploaded; 3: a time
        equal(listed.endswith(b"\x28" + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14])[:2 + (size >> 14 > 0)]), True)
        equal(ask("ShouldInitiateUpload", field(1, field(4, b"no build id")))[1][:2] == b"\x08\x01", False)
        equal(ask("ShouldInitiateUpload", field(1, field(1, b"no hex")))[1]["code"], "invalid_argument")
        equal(ask("ShouldInitiateUpload", b"\x0a\xff")[1]["code"], "invalid_argument")
        equal(ask("DeleteDebuginfo", field(1, objects.build_id.encode())), (200, b""))


def test_a_refused_file_says_why(work, objects):
    with server(work) as s:
        other = "ab" * 20
        equal(call(s, "ShouldInitiateUpload", {"file": file_of(objects, gnuBuildId=other)})[1]["shouldInitiateUpload"], True)
        equal(call(s, "Upload/" + other, objects.debug, kind="application/octet-stream")[0], 200)
        status, answer = call(s, "UploadFinished", {"gnu_build_id": other})
        equal((status, answer["code"], "not the given ones" in answer["message"]), (400, "invalid_argument", True), answer)
        equal(call(s, "ShouldInitiateUpload", {"file": file_of(objects, gnuBuildId=other)})[1]["shouldInitiateUpload"], True)
        equal(call(s, "UploadFinished", {})[1]["code"], "invalid_argument")
        equal(call(s, "UploadFinished", b"[")[1]["code"], "invalid_argument")
        equal(call(s, "ListDebuginfo", {}, headers={})[1]["code"], "unauthenticated")
        equal(call(s, "ListDebuginfo", {}, headers={"Authorization": "Bearer reader"})[1]["code"], "permission_denied")
        equal(call(s, "ListDebuginfo", b"{}", kind="text/plain")[0], 415)
