"""Uploads of symbfiles that several nodes share: in a directory, in buckets of S3 and of Google; and what happens when those do not
answer."""
import json, os

import cloud
from cloud import S3, Google, google_account, s3_server
from faults import Redis
from harness import Service, equal, from_npm, wait_until
from test_symbfile import (CONFIG, EMPTY, FIVE, ID, KEY, PADS, RANGES, ask, found, good, key, names, refused)

OTHER = RANGES.replace(b"d_inline", b"e_inline")
OTHERS = [("e_inline", 23)] + FIVE[1:]


def bucket(s3, **more):
    return {"s3": {"bucket": "symbols", "endpoint": s3.url, "access_key": "AK", "secret_key": "secret", **more}}


def node(work, store, **more):
    symbfile = {"store_min_free": 0, "store": store, **more.pop("symbfile", {})}
    return Service(work, {**CONFIG, "symbfile": symbfile, **more})


def status(s, headers=None, file_id=ID):
    code, _, data = s.request("GET", "/api/symbols/" + file_id, headers={"Authorization": KEY, **(headers or {})})
    return code, json.loads(data)


def debug_status(s, **module):
    return ask(s, [0x654], **module)[0]["modules"][0]["debug_status"]


def knows(s, expected=FIVE):
    wait_until("the other node", lambda: found(s) == expected)


def delete(s):
    return s.request("DELETE", "/api/symbols/" + ID, headers={"Authorization": key("boss:x:y")})[0]


def check_two_nodes(one, two):
    for s in one, two:
        equal(debug_status(s), "missing")
    good(one, RANGES)
    equal(found(one), FIVE)
    knows(two)
    good(two, PADS, kind="returnpads", BuildID="aabbccddeeff00112233445566778899aabbccdd")
    equal(names(ask(two, [(0x658, True)])[1][0]), FIVE)
    wait_until("the pads", lambda: names(ask(one, [(0x658, True)])[1][0]) == FIVE)
    by_build_id = dict(file_id=None, code_id="aabbccddeeff00112233445566778899aabbccdd")
    wait_until("the build id", lambda: debug_status(one, **by_build_id) == "found")
    equal([status(s)[1]["ranges"]["state"] for s in (one, two)], ["published"] * 2)
    equal(status(one), status(two))
    # Parts of one upload: each node gets some of them, and either may get the last.
    for last, (a, b) in (one, (two, one)), (two, (one, two)):
        body = OTHER if last is one else RANGES
        good(a, body[:90], FilePart="0", FileParts="3", UploadID="u")
        good(b, body[90:200], FilePart="1", FileParts="3", UploadID="u")
        equal(names(ask(a, [0x654])[1][0]) in (FIVE, OTHERS), True)
        good(last, body[200:], FilePart="2", FileParts="3", UploadID="u")
        for s in one, two:
            knows(s, OTHERS if last is one else FIVE)
    good(one, OTHER, FilePart="1", FileParts="2")
    good(two, EMPTY, FilePart="0", FileParts="2")
    for s in one, two:
        knows(s, OTHERS)
    # A piece that spoils the set: it is dropped, on both.
    good(one, RANGES[:100], FilePart="0", FileParts="2", UploadID="x")
    refused(two, 400, "1203", RANGES[100:-1], FilePart="1", FileParts="2", UploadID="x")
    knows(one, OTHERS)
    equal(delete(two), 200)
    equal(delete(one), 404)
    for s in one, two:
        wait_until("the removal", lambda: debug_status(s) == "missing")
        equal(status(s)[0], 404)


def test_nodes_share_uploads_through_a_directory(work, objects):
    place = os.path.join(work, "shared")
    os.mkdir(place)
    store = {"filesystem": {"path": place}}
    with node(work, store) as one, node(work, store) as two:
        check_two_nodes(one, two)


def test_nodes_share_uploads_through_a_bucket(work, objects):
    with S3() as s3, node(work, bucket(s3, prefix="pre")) as one, node(work, bucket(s3, prefix="pre")) as two:
        s3.page = 2  # lists go on
        check_two_nodes(one, two)
        equal(s3.wrong, [])
        good(one, RANGES, FilePart="0", FileParts="2")
        equal(delete(two), 200)
        left = [n for n in s3.objects if "/parts/" in n or "/open/" in n or "/ranges-" in n or "/returnpads-" in n]
        equal(left, [])
        for s in one, two:
            equal([f for _, _, files in os.walk(os.path.join(s.cache, "uploads", "tmp")) for f in files], [])


@from_npm
def test_nodes_share_uploads_through_an_s3_server(work, objects):
    with s3_server(work) as url:
        store = {"s3": {"bucket": "symbols", "endpoint": url, "access_key": "S3RVER", "secret_key": "S3RVER"}}
        with node(work, store) as one, node(work, store) as two:
            check_two_nodes(one, two)


def test_nodes_share_uploads_through_a_gcs_bucket(work, objects):
    google = Google()
    google.page = 2
    with cloud.Cloud(work, google) as web, web.environment():
        store = {"gcs": {"bucket": "symbols", "service_account_path": google_account(work)}}
        with node(work, store) as one, node(work, store) as two:
            good(one, RANGES[:90], FilePart="0", FileParts="2")
            good(two, RANGES[90:], FilePart="1", FileParts="2", BuildID="aabbccdd")
            for s in one, two:
                knows(s)
            equal(debug_status(one, file_id=None, code_id="aabbccdd"), "found")
            good(two, OTHER)
            knows(one, OTHERS)
            equal(delete(one), 200)
            wait_until("the removal", lambda: debug_status(two) == "missing")
            equal([n for n in google.objects if "/parts/" in n or "/open/" in n], [])


def test_cost_of_a_part_is_independent_of_their_number(work, objects):
    parts = 60
    with S3() as s3, node(work, bucket(s3)) as one, node(work, bucket(s3)) as two:
        s3.page = 10
        costs = []
        for i in range(parts):
            before = len(s3.seen)
            good((one, two)[i % 2], RANGES if i == 7 else EMPTY, FilePart=str(i), FileParts=str(parts))
            costs.append(len(s3.seen) - before)
        assert max(costs[parts // 2:-1]) <= max(costs[2:parts // 4]) + 1, costs
        equal([found(s) for s in (one, two)][0], FIVE)
        knows(two)


def test_repeated_set_is_not_mixed_with_the_first(work, objects):
    with S3() as s3, node(work, bucket(s3)) as s:
        good(s, RANGES, FilePart="0", FileParts="2")
        good(s, EMPTY, FilePart="1", FileParts="2")
        good(s, EMPTY, FilePart="1", FileParts="2")  # of the same again: nothing is new
        equal(found(s), FIVE)
        good(s, RANGES, FilePart="0", FileParts="2")
        good(s, OTHER, FilePart="0", FileParts="2")  # half of another set
        equal(found(s), FIVE)
        equal(status(s)[1]["ranges"]["state"], "published")
        good(s, RANGES, FilePart="0", FileParts="2")  # no, the first one
        good(s, OTHER, FilePart="0", FileParts="2")   # yes, another
        good(s, EMPTY, FilePart="1", FileParts="2")
        equal(found(s), OTHERS)
        equal(len([n for n in s3.objects if "/parts/" in n]), 2)
        equal([n for n in s3.objects if "/open/" in n], [])


def test_incomplete_sets_are_removed(work, objects):
    with S3() as s3:
        with node(work, bucket(s3)) as s:
            good(s, RANGES, FilePart="0", FileParts="2", UploadID="half")
            good(s, RANGES)
            equal(len([n for n in s3.objects if "/parts/" in n]), 2)
        for name in s3.objects:  # a day ago
            s3.modified[name] = "2020-01-01T00:00:00.000Z"
        s3.objects["symbfiles/open/global/" + ID + "/ranges-1--0"] = (b"", {})  # of the published set, which stays
        s3.modified["symbfiles/open/global/" + ID + "/ranges-1--0"] = "2020-01-01T00:00:00.000Z"
        with node(work, bucket(s3)) as s:
            wait_until("the sweep", lambda: not any("/open/" in n for n in s3.objects))
            equal(len([n for n in s3.objects if "/parts/" in n]), 1)
            equal(found(s), FIVE)


def test_several_nodes_without_a_shared_store_are_warned_of(work, objects):
    cluster = {"cluster": {"node_id": 5}}
    with Service(work, {**CONFIG, **cluster}) as s:
        assert "symbfile.store_dir: with several nodes" in s.logged(), s.logged()
    os.mkdir(os.path.join(work, "shared"))
    with node(work, {"filesystem": {"path": os.path.join(work, "shared")}}, **cluster) as s:
        assert "with several nodes" not in s.logged(), s.logged()


def down(s):
    """Nothing is missing while the store does not answer, and uploads are to be sent again."""
    def told():
        return json.loads(s.request("GET", "/status", headers={"Authorization": key("boss:x:y")})[2])["uploads"]
    wait_until("what is not known", lambda: debug_status(s, file_id="00" * 16) == "fetching_failed")
    wait_until("/status", lambda: not told()["up"])
    assert told()["last_error"], told()
    for method, path, body in ("POST", "/api/symbols-ranges", RANGES), ("GET", "/api/symbols/" + ID, None):
        code, headers, data = s.request(method, path, body, {"Authorization": KEY, "FileID": ID})
        equal((code, json.loads(data)["error"]["Code"], int(headers["Retry-After"]) > 0), (503, "1403", True), data)
    equal(delete(s), 503)


def test_unreachable_bucket_is_no_answer_about_uploads(work, objects):
    with S3() as s3, node(work, bucket(s3)) as s:
        good(s, RANGES)
        equal(found(s), FIVE)
        s3.broken = True
        down(s)
        equal(found(s), FIVE)  # what was found before
        s3.broken = False
        wait_until("the store", lambda: debug_status(s, file_id="00" * 16) == "missing")
        good(s, OTHER)
        equal(found(s), OTHERS)
        for line in "does not respond", "responds again":  # lines are written by a thread of their own
            wait_until(line, lambda: line in s.logged())


def test_bucket_failure_during_a_read_stays_on_its_node(work, objects):
    """Other nodes do not hear of it by the shared cache."""
    with Redis(work) as redis, S3() as s3:
        shared = {"shared_cache": {"redis": {"url": redis.url}}}
        with node(work, bucket(s3), **shared) as one, node(work, bucket(s3), **shared) as two:
            good(one, RANGES)
            whole = dict(s3.objects)
            for name in [n for n in s3.objects if "/parts/" in n]:
                del s3.objects[name]
            equal(debug_status(one), "fetching_failed")
            s3.objects.update(whole)
            wait_until("the upload", lambda: found(one) == FIVE)
            equal(found(two), FIVE)


def test_unmounted_directory_during_a_read_stays_on_its_node(work, objects):
    """Nodes that have it do not hear of it by the shared cache."""
    place, away = os.path.join(work, "shared"), os.path.join(work, "away")
    os.mkdir(place)
    with Redis(work) as redis:
        config = {"shared_cache": {"redis": {"url": redis.url}}}
        with node(work, {"filesystem": {"path": place}}, **config) as one, node(work, {"filesystem": {"path": place}}, **config) as two:
            good(one, RANGES, BuildID="aabbccdd")
            sets = [os.path.join(d, n) for d, names, _ in os.walk(place) for n in names if n.startswith("ranges-")]
            os.rename(sets[0], away)
            os.mkdir(sets[0])
            equal(debug_status(one), "fetching_failed")
            os.rmdir(sets[0])
            os.rename(away, sets[0])
            equal(found(two), FIVE)
            wait_until("the upload", lambda: found(one) == FIVE)


def test_unmounted_store_is_no_answer_and_gets_no_files(work, objects):
    place, away = os.path.join(work, "shared"), os.path.join(work, "away")
    os.mkdir(place)
    with node(work, {"filesystem": {"path": place}}) as s:
        good(s, RANGES)
        equal(found(s), FIVE)
        os.rename(place, away)
        down(s)
        os.mkdir(place)  # what is left where a file system was mounted
        down(s)
        equal(os.listdir(place), [])
        os.rmdir(place)
        os.rename(away, place)
        wait_until("the store", lambda: debug_status(s, file_id="00" * 16) == "missing")
        equal(found(s), FIVE)
        equal(status(s)[0], 200)


def test_malformed_bucket_lists_are_refused(work, objects):
    """Lists without an end, of other names, or none at all."""
    with S3() as s3, node(work, bucket(s3)) as s:
        good(s, RANGES, FilePart="0", FileParts="2")
        row = "<Contents><Key>{}</Key><LastModified>2020</LastModified></Contents>"
        place = f"symbfiles/{ID[:2]}/{ID}/"
        for rows in (row.format(place + "parts/ranges-2--0/0000000001.x"), row.format("b") + row.format("a"), row.format("a" * 3000)):
            s3.listed = lambda query: f"<ListBucketResult><IsTruncated>true</IsTruncated>{rows}</ListBucketResult>"
            equal(status(s)[0], 503)
        for listed in ("", "{}", "<a>", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "<a>" * 40 + "</a>" * 40):
            s3.listed = lambda query: listed
            equal(status(s)[0], 503, listed)
        s3.listed = lambda query: f"<ListBucketResult>{row.format('else/where')}{row.format(place + 'ranges-1-2')}</ListBucketResult>"
        equal(status(s)[0], 404)
        del s3.listed
        good(s, EMPTY, FilePart="1", FileParts="2")
        equal(found(s), FIVE)
        [marker] = [n for n in s3.objects if "/ranges-" in n and "/parts/" not in n]
        good_list = s3.objects[marker]
        for text in b"", b"x\n", good_list[0] * 2, good_list[0].replace(b".s.", b".s"):
            s3.objects[marker] = (text, {})
            equal(status(s)[0], 503, text)
