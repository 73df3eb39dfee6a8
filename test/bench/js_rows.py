"""POST /symbolicate-js: what a request costs of the processor with everything in the cache, and what a crowd of first requests makes."""
import json, os, random, sys, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "http", "js"))
import artifacts, harness

FILES, FRAMES, FUNCTIONS, REQUESTS, CROWD = 5, 50, 4000, 300, 500


def script(seed):
    """A bundle on one line, of functions that were three lines each; and its map."""
    rng, text, mappings, names, lines = random.Random(seed), [], [], [], []
    total = column = source_line = source_column = 0
    for i in range(FUNCTIONS):
        name = f"compute{i}Of{seed}"
        names.append(name)
        lines += [f"function {name}(first, second) {{", f"  return first * {rng.randrange(1000)} + second;", "}"]
        body = f"function f{i}(a,b){{return a*{rng.randrange(1000)}+b}}"
        for at, line, wanted, named in ((0, 0, 0, False), (9, 0, 9, True), (body.index("return"), 1, 2, False)):
            here = total + at
            mappings.append(artifacts.vlq(here - column) + artifacts.vlq(0) + artifacts.vlq(3 * i + line - source_line) + artifacts.vlq(wanted - source_column) +
                            (artifacts.vlq(1 if i else 0) if named else ""))
            column, source_line, source_column = here, 3 * i + line, wanted
        text.append(body)
        total += len(body)
    minified = "".join(text) + f"\n//# sourceMappingURL={seed}.js.map\n"
    return minified, json.dumps({"version": 3, "sources": [f"src/{seed}.js"], "sourcesContent": ["\n".join(lines)], "names": names,
                                 "mappings": ",".join(mappings)})


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(symloom, work, row):
    harness.SYMLOOM = symloom
    files, frames = {}, []
    for seed in range(FILES):
        files[f"/{seed}.js"], files[f"/{seed}.js.map"] = script(seed)
        size = len(files[f"/{seed}.js"])
        frames += [artifacts.frame(f"http://example.com/{seed}.js", 1, random.Random(i).randrange(size - 40)) for i in range(FRAMES // FILES)]
    told = [artifacts.told(path[1:], "~" + path) for path in files]
    with artifacts.Sentry(told, files) as up, harness.Service(work, {"logging": {"access": "off"}}) as s:
        body = json.dumps(artifacts.asked(up, frames))
        answer = artifacts.symbolicate(s, body)
        found = [f["function"] for f in answer["stacktraces"][0]["frames"] if f["data"]["symbolicated"]]
        assert len(found) == FRAMES and found[0].startswith("compute"), found
        before = processor_seconds(s.process.pid)
        for _ in range(REQUESTS):
            assert s.post("/symbolicate-js", body)[0] == 200
        row("50 frames in 5 scripts, cached, of the processor", 1000 * (processor_seconds(s.process.pid) - before) / REQUESTS, 1, "ms",
            "<= 1")
    gate, script_path = threading.Event(), next(iter(files))

    def slow(handler):
        gate.wait(60)
        handler.reply(200, files[script_path].encode())

    with artifacts.Sentry(told, {**files, script_path: slow}) as up, harness.Service(work, {"max_concurrent_requests": 600}) as s:
        begin = time.monotonic()
        answers = artifacts.crowd(s, artifacts.asked(up, frames[:1]), CROWD, gate)
        assert len(answers) == 1, answers
        print(f"{CROWD} first requests for one script: {up.hits[script_path]} download, {artifacts.conversions(s)[0]} conversion (must 1, 1), "
              f"{time.monotonic() - begin:.2f} s")
