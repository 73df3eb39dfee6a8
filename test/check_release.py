#!/usr/bin/env python3
"""What ./x release does that costs little: the version is one, the changelog can be read, what cannot be released is refused, and the
SBOM of a program is in its form.

usage: check_release.py SYMLOOM BUILD-DIRECTORY

Prints what is wrong; status 1 if there is anything. test/ops/test_release.py makes a whole release.
"""
import json, os, re, shutil, subprocess, sys, tempfile
import spdx

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CHANGELOG = os.path.join(ROOT, "deploy/release/changelog.py")
GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com",
       "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"}
LINES_OF_DEBIAN = re.compile(r"symloom \(\d+\.\d+\.\d+\) unstable; urgency=medium|  \[ \w+ \]|  \* \S.*|    \S.*|"
                             r" -- .+ <\S+>  \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000|")


def read(path):
    with open(path) as f:
        return f.read()


class Repository:
    """One of its own, with what release.sh looks at."""

    def __init__(self, path):
        self.path = path
        os.makedirs(os.path.join(path, "deploy"))
        shutil.copytree(os.path.join(ROOT, "deploy/release"), os.path.join(path, "deploy/release"), ignore=shutil.ignore_patterns("__*"))
        shutil.copy(os.path.join(ROOT, ".gitignore"), path)
        for name in ("meson.build", "CHANGELOG.md"):
            shutil.copy(os.path.join(ROOT, name), path)
        self.git("init", "-q")
        self.commit()

    def git(self, *command):
        subprocess.run(["git", "-C", self.path, *command], env={**os.environ, **GIT}, check=True, capture_output=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "test: commit")

    def edit(self, name, old, new, commit=True):
        path = os.path.join(self.path, name)
        text = read(path)
        assert old in text, f"{old!r} is not in {name}"
        with open(path, "w") as f:
            f.write(text.replace(old, new, 1))
        if commit:
            self.commit()

    def refusal(self):
        done = subprocess.run([os.path.join(self.path, "deploy/release/release.sh"), "check"], capture_output=True, text=True,
                              env={**os.environ, **GIT})
        return done.stderr.strip() if done.returncode else ""


def refusals(work, version):
    """What is wrong with what release.sh says of repositories."""
    def expect(what, wanted, repository):
        said = repository.refusal()
        if bool(said) != bool(wanted) or wanted not in said:
            yield f"release.sh, {what}: {said!r} in place of {wanted!r}"
    repository = Repository(os.path.join(work, "r"))
    released = read(os.path.join(ROOT, "CHANGELOG.md")).find("\n## [Unreleased]\n\n## ") >= 0
    if not released:  # changes that wait for the next version: the copy here has none
        repository.edit("CHANGELOG.md", "## [Unreleased]", "## [Unreleased]\n\n## [999.0.0] - 2999-01-01")
        repository.edit("meson.build", f"version: '{version}'", "version: '999.0.0'")
        version = "999.0.0"
    yield from expect("a clean commit", "", repository)
    repository.edit("meson.build", "project(", "project( ", commit=False)
    yield from expect("a change", "not committed", repository)
    repository.git("checkout", "-q", ".")
    repository.git("tag", "v" + version)
    yield from expect("a tag of this commit", "", repository)
    repository.edit("CHANGELOG.md", "## [Unreleased]\n", "## [Unreleased]\n\n### Added\n- Something.\n")
    yield from expect("changes without a version", "below [Unreleased]", repository)
    repository.edit("CHANGELOG.md", "### Added\n- Something.\n", "")
    yield from expect("a tag of another commit", "is another commit", repository)
    repository.edit("meson.build", f"version: '{version}'", "version: '1000.0.0'")
    yield from expect("a version that the changelog lacks", f"the newest version is {version}", repository)
    repository.edit("CHANGELOG.md", "## [Unreleased]", "## Unreleased")
    yield from expect("a heading without brackets", "a version is '## [X.Y.Z]", repository)


def main():
    program, build = sys.argv[1:]
    version = re.search(r"^  version: '(.*)',$", read(os.path.join(ROOT, "meson.build")), re.M)[1]
    said = subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout
    wrong = [] if said == f"symloom {version}\n" else [f"{program} says {said!r}, meson.build {version}"]
    newest = re.search(r"^## \[(\d.*?)\]", read(os.path.join(ROOT, "CHANGELOG.md")), re.M)[1]
    wrong += [] if newest == version else [f"CHANGELOG.md's newest version is {newest}, meson.build's {version}"]
    debian = subprocess.run([CHANGELOG, "debian", version], capture_output=True, text=True)
    wrong += [debian.stderr.strip()] if debian.returncode else []
    wrong += [f"the changelog of Debian: {line!r}" for line in debian.stdout.splitlines() if not LINES_OF_DEBIAN.fullmatch(line)]
    with tempfile.TemporaryDirectory() as work:
        wrong += refusals(work, version)
    made = subprocess.run([os.path.join(ROOT, "deploy/release/sbom.py"), program, build], capture_output=True, text=True)
    if made.returncode:
        wrong.append(f"sbom.py: {made.stderr[-2000:]}")
    else:
        document = json.loads(made.stdout)
        wrong += spdx.problems(document)
        names = {package["name"] for package in document["packages"]}
        wrong += [f"the SBOM lacks {name}" for name in ("libarchive-dev", "llvm-19-dev", "node-llhttp", "libuv1", "libcurl4", "libc6")
                  if name not in names]
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
