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
    return None if run.returncode == 0 else f"{page}:{block.line}: {run.stdout}{run.stderr}"


def test_program_accepts_them(work, shared):
    wrong = [check(block, page, work) for page in pages.PAGES for block in pages.blocks(page)
             if block.language == "yaml" and not block.reason]
    assert wrong, "no configurations"
    assert not any(wrong), "\n".join(filter(None, wrong))
