"""That the configurations in the documents are ones the program accepts."""
import os, re, subprocess

import harness, pages


def check(block, page, work):
    text = "\n".join(block.lines) + "\n"
    path = os.path.join(work, f"{os.path.basename(page)}-{block.line}.yml")
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o600)
    environment = {**os.environ, **{name: "x" for name in re.findall(r"\$\{(\w+)\}", text)}}
    run = subprocess.run([harness.SYMLOOM, "config", "check", path], capture_output=True, text=True, env=environment,
                         timeout=harness.DEADLINE)
    lines = (run.stdout + run.stderr).splitlines()
    wrong = [line for line in lines if "error: " in line and not line.endswith("No such file or directory")]  # files of another machine
    assert lines, f"{page}:{block.line}: nothing was checked"
    return "\n".join([f"{page}:{block.line}:", *wrong]) if wrong else None


def test_program_accepts_the_documented_configurations(work, shared):
    wrong = [check(block, page, work) for page in pages.PAGES for block in pages.blocks(page)
             if block.language == "yaml" and not block.reason]
    assert wrong, "no configurations"
    assert not any(wrong), "\n".join(filter(None, wrong))
