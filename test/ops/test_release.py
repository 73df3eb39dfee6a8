"""./x release in a clone of the repository: everything that it makes, and that it makes the same again."""
import gzip, hashlib, json, os, re, subprocess, tarfile
import runner, spdx
from ops import ROOT, run

LICENCES = "/usr/share/nodejs/spdx-license-ids/index.json"  # of node-spdx-license-ids


def git(path, *command):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    return run("git", "-C", path, *identity, *command)


def clone(work):
    """The last commit; changes that the changelog has no version for get one. And the version."""
    path = os.path.join(work, "clone")
    run("git", "clone", "--quiet", ROOT, path)
    name = os.path.join(path, "CHANGELOG.md")
    with open(name) as f:
        text = f.read()
    version = re.search(r"^## \[(\d.*?)\]", text, re.M)[1]
    if re.search(r"^## \[Unreleased\]\s+(?!## \[)\S", text, re.M):
        with open(name, "w") as f:
            f.write(text.replace("## [Unreleased]", "## [Unreleased]\n\n## [999.0.0] - 2999-01-01"))
        run("sed", "-i", f"2s/{version}/999.0.0/", os.path.join(path, "meson.build"))
        git(path, "commit", "--quiet", "-am", "test: release")
        version = "999.0.0"
    return path, version


def digests(path):
    return {name: hashlib.sha256(open(os.path.join(path, name), "rb").read()).hexdigest() for name in os.listdir(path)}


@runner.limit(3000)
def test_release_is_reproducible(work, shared):
    top, version = clone(work)
    env = {**os.environ, "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"}
    done = subprocess.run([os.path.join(top, "x"), "release"], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    out = os.path.join(top, "build/release")
    arch = run("dpkg", "--print-architecture").strip()
    debs = [f"{name}_{version}_{arch}.deb" for name in ("symloom", "symloom-dbgsym")]
    first = digests(out)
    assert set(first) == {"SHA256SUMS", f"symloom-{version}.md", f"symloom-{version}.spdx.json", f"symloom-{version}.tar.gz", *debs}, first
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=out)
    check_tag(top, version)
    check_sources(top, os.path.join(out, f"symloom-{version}.tar.gz"), version)
    check_package(os.path.join(out, debs[0]), version, work)
    check_sbom(os.path.join(out, f"symloom-{version}.spdx.json"), version)
    run(os.path.join(top, "deploy/release/release.sh"), "make", os.path.join(top, "build/symloom"), os.path.join(top, "build"), out, env=env)
    assert digests(out) == first, "the second release differs from the first"
    check_refusal(top)


def check_tag(top, version):
    assert git(top, "cat-file", "-t", f"v{version}").strip() == "tag", "it is not annotated"
    assert git(top, "rev-parse", f"v{version}^{{commit}}") == git(top, "rev-parse", "HEAD")


def check_sources(top, path, version):
    with tarfile.open(path) as tar:
        files = {name.partition("/")[2] for name in tar.getnames() if not tar.getmember(name).isdir()}
    assert files == set(git(top, "ls-files").split()), f"the archive of {version} is not what is in the repository"


def check_package(package, version, work):
    root = os.path.join(work, "root")
    run("dpkg-deb", "-x", package, root)
    with gzip.open(os.path.join(root, "usr/share/doc/symloom/changelog.gz"), "rt") as f:
        assert f.readline() == f"symloom ({version}) unstable; urgency=medium\n"
    assert run(os.path.join(root, "usr/bin/symloom"), "version") == f"symloom {version}\n"


def check_sbom(path, version):
    with open(path) as f:
        document = json.load(f)
    with open(LICENCES) as f:
        wrong = spdx.problems(document, set(json.load(f)))
    assert not wrong, wrong
    packages = {package["name"]: package for package in document["packages"]}
    assert packages["symloom"]["versionInfo"] == version
    for name in ("libuv1", "libssl3", "libarchive-dev", "llvm-19-dev", "libstdc++-12-dev", "node-llhttp"):
        assert packages[name]["versionInfo"] == run("dpkg-query", "-W", "-f", "${Version}", name), name


def check_refusal(top):
    with open(os.path.join(top, "README.md"), "a") as f:
        f.write("\n")
    done = subprocess.run([os.path.join(top, "x"), "release"], capture_output=True, text=True)
    assert done.returncode == 1 and "not committed" in done.stderr, done.stderr
