"""What runs the service elsewhere: compose, Kubernetes, Prometheus, and the steps of the image in a root directory."""
import json, os, re, shutil, subprocess
from ops import ROOT, inside, run

DEPLOY = os.path.join(ROOT, "deploy")
IMAGE_MIB = 110


def test_compose_file_is_valid_and_needs_its_secrets(work, shared):
    secrets = {**os.environ, "REDIS_PASSWORD": "a", "S3_SECRET": "b"}
    run("docker-compose", "-f", os.path.join(DEPLOY, "compose.yml"), "config", "-q", env=secrets)
    missing = {key: value for key, value in os.environ.items() if key not in ("REDIS_PASSWORD", "S3_SECRET")}
    run("docker-compose", "-f", os.path.join(DEPLOY, "compose.yml"), "config", "-q", env=missing, status=1)


def test_shipped_configurations_have_no_warnings(work, shared):
    """Those that are shipped are taken, without a warning but for directories that are not here."""
    from ops import SYMLOOM
    secrets = {**os.environ, "REDIS_PASSWORD": "a", "S3_SECRET": "b"}
    for path in ("compose-config.yml", "kubernetes/config.yml", "systemd/config.yml", "../doc/container.yml"):
        text = open(os.path.join(DEPLOY, path)).read()
        copy = os.path.join(work, "config.yml")
        with open(copy, "w") as f:
            f.write(re.sub(r"(/data|/var/\w+/symloom)\b", lambda m: work + "/" + m[1].replace("/", "_"), text))
        os.chmod(copy, 0o600)
        run(SYMLOOM, "config", "check", "--strict", copy, env=secrets)


def test_kubernetes_manifests_have_the_right_types(work, shared):
    """The manifests have the types that Kubernetes gives them."""
    package = {"name": "manifests", "private": True, "dependencies": {"kubernetes-types": "1.30.0", "typescript": "5.5.4", "yaml": "2.5.0"}}
    with open(os.path.join(work, "package.json"), "w") as f:
        json.dump(package, f)
    run("npm", "install", "--silent", "--no-audit", "--no-fund", cwd=work)
    convert = ("const yaml = require('yaml'), fs = require('fs');"
               "console.log(JSON.stringify(yaml.parseAllDocuments(fs.readFileSync(process.argv[1], 'utf8')).map(d => d.toJS())))")
    documents = json.loads(run("node", "-e", convert, os.path.join(DEPLOY, "kubernetes/symloom.yml"), cwd=work))
    modules = {"v1": "core/v1", "apps/v1": "apps/v1", "policy/v1": "policy/v1", "networking.k8s.io/v1": "networking/v1"}
    lines = []
    for i, document in enumerate(documents):
        module = modules[document["apiVersion"]]
        lines.append(f"import {{ {document['kind']} as K{i} }} from 'kubernetes-types/{module}';\n"
                     f"export const d{i}: K{i} = {json.dumps(document, indent=1)};\n")
    assert len(documents) == 5, documents
    source = os.path.join(work, "manifests.ts")
    with open(source, "w") as f:
        f.writelines(lines)
    check = ("npx", "tsc", "--noEmit", "--strict", "--skipLibCheck", "--moduleResolution", "node", source)
    run(*check, cwd=work)
    with open(source, "w") as f:  # and a wrong one is told
        f.writelines(lines)
        f.write(lines[0].split("\n")[0].replace("K0", "Wrong") + "\nexport const wrong: Wrong = {\"spec\": {\"port\": 1}};\n")
    run(*check, cwd=work, status=2)


def test_prometheus_configuration_is_valid(work, shared):
    run("promtool", "check", "config", "prometheus.yml", cwd=os.path.join(DEPLOY, "prometheus"))


def test_completion_scripts_parse_in_their_shells(work, shared):
    """The shells themselves find nothing wrong with them."""
    from ops import SYMLOOM
    for shell in ("bash", "zsh", "fish"):
        path = os.path.join(work, shell)
        with open(path, "w") as f:
            f.write(run(SYMLOOM, "completion", shell))
        run(shell, "-n", path)
    offered = run("fish", "-c", f"source {work}/fish; complete -C 'symloom lookup --output-style '")
    assert {"gnu", "llvm", "json", "table"} <= set(offered.split()), offered
    for words in ("symloom --col", "symloom lookup --col", "symloom sort --col"):
        assert run("fish", "-c", f"source {work}/fish; complete -C '{words}'").startswith("--color"), words
    sourced = f"autoload -Uz compinit; compinit -D; source {work}/zsh; "
    completer = run("zsh", "-f", "-c", sourced + "print $_comps[symloom]")
    assert completer == "_symloom\n", completer
    asked = "_arguments() { print -rl -- $@; state=argument; words=(lookup -e x); }; "  # what it tells the shell's own function
    told = run("zsh", "-f", "-c", sourced + asked + "_symloom")
    for word in ("--color=[", "--cache-dir=[", "--output-style=["):
        assert told.count(word) == (1 if word == "--output-style=[" else 2), f"{word}: {told}"


def dockerfile():
    with open(os.path.join(ROOT, "Dockerfile")) as f:
        return f.read()


def final_stage():
    return re.sub(r"\\\n\s*", "", re.split(r"FROM debian:12-slim@\S+", dockerfile())[1])


def check_debug_file(work):
    """The file of the stage symloom-debug, made as there, names what the program names."""
    from ops import SYMLOOM
    debug = os.path.join(work, "symloom.debug")
    command = re.search(r"&& (objcopy .*) build/symloom /symloom\.debug$", dockerfile(), re.M)[1]
    assert "FROM scratch AS symloom-debug\nCOPY --from=build /symloom.debug /\n" in dockerfile()
    run(*command.split(), SYMLOOM, debug)
    address = re.search(r"^ *([0-9a-f]+) +\S+ +loop_run$", run(SYMLOOM, "inspect", "--symbols", SYMLOOM), re.M)[1]
    named = run(SYMLOOM, "lookup", "-f", "-e", debug, "0x" + address)
    assert re.match(r"loop_run\n\S+/service/core/loop\.c:\d+", named) and named == run(SYMLOOM, "lookup", "-f", "-e", SYMLOOM, "0x" + address), named


def test_image_steps_give_a_working_read_only_root(work, shared):
    """The steps of the image, without Docker: packages, files, the program as its user on a disk that is only read; its size."""
    from ops import SYMLOOM
    root, stage = shared.root(), final_stage()
    command = re.search(r"^RUN (apt-get .*)$", stage, re.M)[1]
    run("chroot", root, "sh", "-c", command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    version = re.search(r"^RUN (printf .*?) >/version.json$", re.sub(r"\\\n\s*", "", dockerfile()), re.M)[1]
    os.makedirs(os.path.join(work, "build"))
    os.symlink(os.path.abspath(SYMLOOM), os.path.join(work, "build/symloom"))
    told = json.loads(run("sh", "-c", version, cwd=work, env={**os.environ, "COMMIT": "abc", "SOURCE_DATE_EPOCH": "7"}))
    assert told == {"source": "symloom", "version": run(SYMLOOM, "version").split()[1], "commit": "abc", "build": "7"}, told
    assert "COPY --from=build /symloom /version.json /usr/bin/\n" in stage
    run("strip", "-o", os.path.join(root, "usr/bin/symloom"), SYMLOOM)
    check_debug_file(work)
    os.chmod(os.path.join(root, "usr/bin/symloom"), 0o755)
    os.makedirs(os.path.join(root, "etc/symloom"), exist_ok=True)
    shutil.copy(os.path.join(ROOT, "doc/container.yml"), os.path.join(root, "etc/symloom/config.yml"))
    os.chmod(os.path.join(root, "etc/symloom/config.yml"), 0o644)
    assert "not found" not in run("chroot", root, "ldd", "/usr/bin/symloom")
    for name in ("/usr/bin/symloom", "/bin/symbolicator"):
        run("chroot", "--userspec=65532:65532", root, name, "config", "check", "/etc/symloom/config.yml")
    for slim in ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/lintian", "var/cache/apt", "var/lib/apt/lists", "var/log"):
        shutil.rmtree(os.path.join(root, slim), ignore_errors=True)  # as the slim variant has it
    size = int(run("du", "-sxm", "--apparent-size", root).split()[0])
    program = os.path.getsize(os.path.join(root, "usr/bin/symloom")) >> 20
    print(f"image: {size} MiB, the program {program} MiB")
    assert size <= IMAGE_MIB, f"{size} MiB"
    assert program <= 12, f"{program} MiB"
