#!/usr/bin/env python3
"""Looks at the page with a browser: Chromium, driven by npm's puppeteer-core, with axe-core for what people with aids need.

usage: run.py --symloom PATH [--npm DIR] [--corpus DIR] [--screenshot PATH] [PATTERN ...]

--npm: where the packages are installed, or are to be (build/page-npm). --corpus: the conformance corpus, whose crash files are
given to the page (../shared/conformance, if it is there). --screenshot: where to leave the picture that README.md shows,
doc/page.png. With SYMLOOM_SLOW in the environment times are told and not judged, for machines that are busy with other things.
The last line is "N passed, N failed".
"""
import json, os, re, shutil, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "http")]
import harness, runner, texts

ROOT = os.path.dirname(os.path.dirname(HERE))
CORPUS = os.path.join(os.path.dirname(ROOT), "shared", "conformance")
PACKAGES = "puppeteer-core@24", "axe-core@4"


def install(directory):
    os.makedirs(directory, exist_ok=True)
    if all(os.path.isdir(os.path.join(directory, "node_modules", p.partition("@")[0])) for p in PACKAGES):
        return
    command = ["npm", "install", "--prefix", directory, "--no-audit", "--no-fund", "--silent", "--ignore-scripts", *PACKAGES]
    if os.path.exists(harness.SYSTEM_CERTIFICATES):
        command += ["--cafile", harness.SYSTEM_CERTIFICATES]
    subprocess.run(command, check=True, timeout=600)


def own_symbols(work, symloom):
    """A directory with the program's symbols and sources."""
    about = subprocess.run([symloom, "inspect", symloom], check=True, capture_output=True, text=True).stdout
    code_id = re.search(r"code id\s+([0-9a-f]+)", about, re.I).group(1)
    own = os.path.join(work, "symbols", code_id[:2], code_id[2:])
    os.makedirs(own)
    shutil.copy(symloom, os.path.join(own, "executable"))
    subprocess.run([symloom, "bundle", symloom, "-o", os.path.join(own, "sourcebundle")], check=True, capture_output=True)
    return os.path.join(work, "symbols")


def made_texts(work):
    """The texts of test/texts.py in files: [{name, text, names, folder, mappings, is_case}]."""
    os.makedirs(os.path.join(work, "made"))
    made = []
    own = texts.build(os.path.join(work, "made"))
    cases = [text for text in texts.of_cases() if text.text.encode(errors="ignore").decode() == text.text]
    for i, text in enumerate([*own, *cases]):
        folder = os.path.join(work, "made", str(i))
        os.mkdir(folder)
        for name, data in text.files.items():
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data if isinstance(data, bytes) else data.encode())
        made.append({"name": text.name, "text": text.text, "names": text.names, "folder": folder, "mappings": text.mappings, "is_case": text in cases})
    return made


def made_core(work):
    """{core, folder}: a core file of a program, and a directory with the program and its debug file."""
    folder = os.path.join(work, "core")
    os.mkdir(folder)
    program = texts.Program(folder, "shop", (".c", texts.SOURCE), ["gcc", "-g", "-O1", "-fno-optimize-sibling-calls", "-Wl,--build-id=sha1"])
    texts.run("gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "run crash", "-ex", f"generate-core-file {work}/core.711", program.path)
    return {"core": os.path.join(work, "core.711"), "folder": folder}


def main():
    parser = runner.arguments()
    parser.add_argument("--npm", type=os.path.abspath, default=os.path.join(ROOT, "build", "page-npm"))
    parser.add_argument("--corpus", type=os.path.abspath, default=CORPUS if os.path.isdir(CORPUS) else None)
    parser.add_argument("--screenshot", type=os.path.abspath)
    args = parser.parse_args()
    harness.SYMLOOM = args.symloom
    install(args.npm)
    work = tempfile.mkdtemp(prefix="symloom-page-")
    try:
        sources = [{"id": "self", "type": "filesystem", "path": own_symbols(work, args.symloom), "layout": {"type": "unified"}}]
        if args.corpus:
            symbols = os.path.join(args.corpus, "fixtures", "symbols")
            sources.append({"id": "corpus", "type": "filesystem", "path": symbols, "layout": {"type": "native"}})
        settings = {"sources": sources, "mozilla": {"sources": ["http://127.0.0.1:1/"], "transport_errors": "not_found"}}
        with harness.Service(work, settings) as service, harness.Service(work) as bare:
            options = {"url": f"http://127.0.0.1:{service.port}", "bare": f"http://127.0.0.1:{bare.port}", "npm": args.npm, "work": work, "root": ROOT,
                       "texts": made_texts(work), "core": made_core(work), "patterns": args.patterns, "symloom": args.symloom, "cases": texts.CASES if os.path.isdir(texts.CASES) else None,
                       "corpus": args.corpus and os.path.join(args.corpus, "fixtures"), "screenshot": args.screenshot}
            return subprocess.run(["node", os.path.join(HERE, "page.mjs"), json.dumps(options)]).returncode
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
