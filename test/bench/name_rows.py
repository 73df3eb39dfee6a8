"""What the demangler of our own gains over LLVM's."""
import os, re, subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def main(tool, work, row):
    names = os.path.join(work, "names")
    with open(os.path.join(HERE, "../unit/demangle/rust.c")) as f:
        compiled = f.read().partition("static void compiled(")[2]
    with open(names, "w") as f:
        f.writelines(name + "\n" for name in re.findall(r'\{"(_R\w+)",', compiled))
    ours, theirs = map(float, subprocess.run([tool, names], capture_output=True, text=True, check=True).stdout.split())
    row("names of Rust (v0), LLVM's demangler", ours, theirs, "us", "")
