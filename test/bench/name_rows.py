"""What the demanglers of our own gain over LLVM's."""
import os, re, subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def main(tool, work, row):
    cpp, rust = (os.path.join(work, name) for name in ("names.cpp", "names.rust"))
    library = subprocess.run(["llvm-config-19", "--libdir"], capture_output=True, text=True, check=True).stdout.strip()
    table = subprocess.run(["nm", "-D", "--defined-only", os.path.join(library, "libLLVM.so.1")], capture_output=True, text=True,
                           check=True).stdout
    with open(cpp, "w") as f:
        f.writelines(name + "\n" for name in re.findall(r" [TW] (_Z\w+)", table))
    with open(os.path.join(HERE, "../unit/demangle/rust.c")) as f:
        compiled = f.read().partition("static void compiled(")[2]
    with open(rust, "w") as f:
        f.writelines(name + "\n" for name in re.findall(r'\{"(_R\w+)",', compiled))
    run = subprocess.run([tool, cpp, rust], capture_output=True, text=True, check=True)
    ours, theirs, rust_ours, rust_theirs = map(float, run.stdout.split())
    row("names of C++ for profilers, LLVM's demangler", ours, theirs, "us", "")
    row("names of Rust (v0), LLVM's demangler", rust_ours, rust_theirs, "us", "")
