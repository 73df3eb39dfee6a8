"""Names of bitcode builds and C# lines of Unity builds: files beside the debug file that change what it says."""
import json, os, re, shutil, subprocess, tempfile

from harness import Service, Upstream, equal, frames, http_source, request, wait_until

SOURCE = """
int first(int) __asm__("__hidden#0_");
int second(int) __asm__("__hidden#1_");
int first(int x) { return x + 1; }
int second(int x)
{
    return first(x) * 2;
}
int main(int argc, char **argv) { return second(argc); }
"""
ORIGINAL = "c8374b6d-6e96-34d8-ae38-efaa5fec424f"
PLIST = f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict><key>DBGOriginalUUID</key><string>{ORIGINAL.upper()}</string></dict></plist>
"""
NAMES = "BCSymbolMap Version: 2.0\n-[Message init]\n_Z6secondi\n"


class Hidden:
    """A program whose functions have numbers for names."""

    def __init__(self, work):
        home = tempfile.mkdtemp(dir=work)
        with open(os.path.join(home, "a.cpp"), "w") as f:
            f.write(SOURCE)

        def run(*command):
            return subprocess.run(command, cwd=home, check=True, capture_output=True, text=True).stdout

        run("clang-14", "-x", "c", "-g", "-O0", "-fno-pie", "-no-pie", "-Wl,--build-id", "-o", "a", "a.cpp")
        with open(os.path.join(home, "a"), "rb") as f:
            self.file = f.read()
        self.path = os.path.join(home, "a.cpp")
        self.build_id = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", "a")).group(1)
        raw = bytes.fromhex(self.build_id[:32])
        self.debug_id = (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]).hex()
        self.second = next(int(line.split()[0], 16) for line in run("nm", "a").splitlines() if "__hidden#1_" in line)

    def routes(self, **more):
        def at(identity, what):
            return f"/{identity[:2]}/{identity[2:]}/{what}"

        places = {"executable": at(self.build_id, "executable"), "uuidmap": at(self.debug_id, "uuidmap"),
                  "bcsymbolmap": at(ORIGINAL.replace("-", ""), "bcsymbolmap"), "il2cpp": at(self.build_id, "il2cpp")}
        return {places[what]: data if isinstance(data, (bytes, int)) else data.encode()
                for what, data in {"executable": self.file, **more}.items()}

    def request(self, *sources):
        module = {"type": "elf", "code_id": self.build_id, "debug_id": self.debug_id, "image_addr": "0x400000"}
        frame = {"instruction_addr": hex(self.second), "adjust_instruction_addr": False}
        return request(module, [frame], sources=list(sources), options={"dif_candidates": True})


def source(up, **keys):
    return http_source(up.url, layout={"type": "unified"}, **keys)


def place(answer):
    frame = frames(answer)[0]
    return frame["symbol"], frame["function"], frame["lineno"], frame["filename"]


def test_bcsymbolmaps_restore_hidden_names(work, objects):
    program = Hidden(work)
    with Upstream(program.routes(uuidmap=PLIST, bcsymbolmap=NAMES)) as up, Service(work) as s:
        answer = s.symbolicate(program.request(source(up)))
        equal(place(answer), ("_Z6secondi", "_Z6secondi", 6, "a.cpp"))  # a name of C is not demangled
        locations = [c["location"].rsplit("/", 1)[1] for c in answer["modules"][0]["candidates"]]
        assert "uuidmap" not in locations and "bcsymbolmap" not in locations, locations
        hits = dict(up.hits)
        equal(s.symbolicate(program.request(source(up))), answer)
        equal(up.hits, hits, "the second time from the cache")


def test_hidden_names_stay_without_a_bcsymbolmap(work, objects):
    program = Hidden(work)
    cases = [{}, {"uuidmap": PLIST}, {"uuidmap": "no plist", "bcsymbolmap": NAMES}, {"uuidmap": PLIST, "bcsymbolmap": 403},
             {"uuidmap": PLIST, "bcsymbolmap": "BCSymbolMap Vers"}]
    for more in cases:
        with Upstream(program.routes(**more)) as up, Service(work) as s:
            answer = s.symbolicate(program.request(source(up)))
            equal((place(answer)[0], answer["modules"][0]["debug_status"]), ("__hidden#1_", "found"))


def test_a_map_that_appears_makes_another_symcache(work, objects):
    program = Hidden(work)
    routes = program.routes(uuidmap=PLIST)
    with Upstream(routes) as up:
        body = program.request(source(up))
        with Service(work) as s:
            equal(place(s.symbolicate(body))[0], "__hidden#1_")
        routes.update(program.routes(bcsymbolmap=NAMES))
        shutil.rmtree(os.path.join(s.cache, "auxdifs"))  # what was missing has expired
        with Service(work, cache_dir=s.cache) as again:
            equal(place(again.symbolicate(body))[0], "_Z6secondi")
        equal(max(count for path, count in up.hits.items() if path.endswith("executable")), 1, "the program is kept")


def test_missing_mappings_are_looked_for_again_in_the_background(work, objects):
    """Public misses last for a day; a request uses what there is, and what appeared is found in the background."""
    program = Hidden(work)
    lines = json.dumps({program.path: {"C:\\Game\\Game.cs": {"5": 42}}, "__debug-id__": {program.debug_id: {}}})
    for without, all_of_it, expected in [(dict(uuidmap=PLIST, bcsymbolmap=500), dict(bcsymbolmap=NAMES), "_Z6secondi"),
                                         (dict(), dict(uuidmap=PLIST, bcsymbolmap=NAMES), "_Z6secondi"),
                                         (dict(il2cpp=500), dict(il2cpp=lines), 42)]:
        routes = program.routes(**without)
        with Upstream(routes) as up, Service(work, {"caches": {"upgrade_fallback_after": "1s"}}) as s:
            body = program.request(source(up, is_public=True))
            assert expected not in place(s.symbolicate(body))
            routes.update(program.routes(**all_of_it))
            wait_until("what appeared to be used", lambda: expected in place(s.symbolicate(body)))


def test_il2cpp_line_mappings_give_csharp_lines(work, objects):
    program = Hidden(work)
    lines = json.dumps({program.path: {"C:\\Game\\Game.cs": {"5": 42}}, "__debug-id__": {program.debug_id: {}}})
    with Upstream(program.routes(il2cpp=lines, uuidmap=PLIST, bcsymbolmap=NAMES)) as up, Service(work) as s:
        answer = s.symbolicate(program.request(source(up)))
        equal(place(answer), ("_Z6secondi", "_Z6secondi", 42, "Game.cs"))
        equal((frames(answer)[0]["abs_path"], frames(answer)[0]["lang"]), ("C:\\Game\\Game.cs", "c"))
    with Upstream(program.routes(il2cpp=lines[:-1])) as up, Service(work) as s:
        equal(place(s.symbolicate(program.request(source(up))))[2:], (6, "a.cpp"))


def test_private_maps_of_public_objects_stay_private(work, objects):
    program = Hidden(work)
    with Upstream(program.routes()) as public, Upstream(program.routes(uuidmap=PLIST, bcsymbolmap=NAMES)) as private, \
            Service(work) as s:
        both = program.request(source(public, id="public", is_public=True), source(private, id="private"))
        equal(place(s.symbolicate(both, "?scope=mine"))[0], "_Z6secondi")
        alone = program.request(source(public, id="public", is_public=True))
        equal(place(s.symbolicate(alone, "?scope=other"))[0], "__hidden#1_")
