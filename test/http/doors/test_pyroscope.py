"""Pyroscope's service for debug information: its exchanges in JSON and in protobuf."""
import json, os, subprocess

from harness import equal, from_npm, npm_path
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


SCHEMA = """syntax = "proto3";
package debuginfo.v1alpha1;
message Time { int64 seconds = 1; int32 nanos = 2; }
enum Type { TYPE_UNSPECIFIED = 0; TYPE_EXECUTABLE_FULL = 1; TYPE_EXECUTABLE_NO_TEXT = 2; }
message File { string gnu_build_id = 1; string go_build_id = 2; string otel_file_id = 3; string name = 4; Type type = 5; }
message Ask { File file = 1; }
message Decision { bool should_initiate_upload = 1; string reason = 2; }
message Id { string gnu_build_id = 1; }
message Empty { }
enum State { STATE_UPLOADING = 0; STATE_UPLOADED = 1; }
message Object { File file = 1; State state = 2; int64 size_bytes = 5; }
message Objects { repeated Object object = 1; }
service DebuginfoService {
  rpc ShouldInitiateUpload(Ask) returns (Decision);
  rpc UploadFinished(Id) returns (Empty);
  rpc ListDebuginfo(Empty) returns (Objects);
  rpc DeleteDebuginfo(Id) returns (Empty);
}
"""

CLIENT = """import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { createClient, ConnectError, Code } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
const [schema, url, token, id, path, binary] = process.argv.slice(2);
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(schema)));
const transport = createConnectTransport({ baseUrl: url, httpVersion: "1.1", useBinaryFormat: binary == "1" });
const client = createClient(registry.getService("debuginfo.v1alpha1.DebuginfoService"), transport);
const headers = { Authorization: token };
const code = async call => call.then(() => "ok", e => Code[ConnectError.from(e).code]);
const file = { gnuBuildId: id, name: "shapes", type: 2 };
const said = [await code(client.listDebuginfo({})), await code(client.uploadFinished({ gnuBuildId: id }, { headers }))];
said.push((await client.shouldInitiateUpload({ file }, { headers })).shouldInitiateUpload);
const sent = await fetch(url + "/debuginfo.v1alpha1.DebuginfoService/Upload/" + id, { method: "POST", headers, body: readFileSync(path) });
said.push(sent.status, await code(client.uploadFinished({ gnuBuildId: id }, { headers })));
said.push((await client.shouldInitiateUpload({ file }, { headers })).reason);
const { object } = await client.listDebuginfo({}, { headers });
said.push(object.length, object[0].file.gnuBuildId, object[0].state, Number(object[0].sizeBytes));
if (binary == "1") said.push(await code(client.deleteDebuginfo({ gnuBuildId: id }, { headers })));
console.log(JSON.stringify(said));
"""


@from_npm
def test_a_connect_client_uploads_in_both_encodings(work, objects):
    node_modules = os.path.dirname(npm_path(work, "@connectrpc/connect-node@2 @connectrpc/connect@2 @bufbuild/protobuf@2", "@bufbuild"))
    schema, client, debug = (os.path.join(work, name) for name in ("schema.proto", "client.mjs", "shapes.debug"))
    for path, data in ((schema, SCHEMA.encode()), (client, CLIENT.encode()), (debug, objects.debug)):
        with open(path, "wb") as f:
            f.write(data)
    os.symlink(node_modules, os.path.join(work, "node_modules"))
    subprocess.run(["protoc-c", f"--proto_path={work}", f"--descriptor_set_out={schema}.bin", schema], check=True)
    with server(work) as s:
        for binary in "01":
            command = ["node", client, schema + ".bin", f"http://127.0.0.1:{s.port}", AUTH["Authorization"], objects.build_id, debug, binary]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            equal(done.returncode, 0, done.stderr)
            said = json.loads(done.stdout)
            if binary == "0":
                equal((said[:5], "known already" in said[5]), (["Unauthenticated", "NotFound", True, 200, "ok"], True), said)
                equal(said[6:], [1, objects.build_id, 1, len(objects.debug)])
                equal(call(s, "DeleteDebuginfo", {"gnuBuildId": objects.build_id}), (200, {}))
            else:
                equal(said[4:5] + said[6:], ["ok", 1, objects.build_id, 1, len(objects.debug), "ok"], said)
        equal(found_lines(s, objects)[0], "missing")
