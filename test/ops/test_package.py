"""The Debian package: complete, clean, and able to be installed, started, removed and purged on a machine that has nothing else."""
import contextlib, grp, itertools, os, re, shutil, signal, socket, subprocess, tempfile
from ops import DEADLINE, ROOT, build_packages, inside, run


def equal(got, wanted):
    assert got == wanted, f"got {got!r}, expected {wanted!r}"


def test_package_lists_all_files(work, shared):
    listing = run("dpkg-deb", "-c", shared.package)
    for path in ("./usr/bin/symloom", "./lib/systemd/system/symloom.service", "./lib/systemd/system/symloom.socket",
                 "./usr/lib/sysusers.d/symloom.conf", "./etc/symloom/config.yml", "./usr/share/man/man1/symloom.1.gz",
                 "./usr/share/man/man1/symloom-lookup.1.gz", "./usr/share/bash-completion/completions/symloom",
                 "./usr/share/zsh/vendor-completions/_symloom", "./usr/share/fish/vendor_completions.d/symloom.fish",
                 "./usr/share/doc/symloom/copyright", "./usr/share/doc/symloom/changelog.gz",
                 "./usr/share/doc/symloom/configuration.md", "./usr/share/doc/symloom/operations.md"):
        assert re.search(rf" {re.escape(path)}$", listing, re.M), f"{path} is not in\n{listing}"
    for link in ("./usr/bin/symbolicator -> symloom", "./usr/share/man/man1/symbolicator.1.gz -> symloom.1.gz"):
        assert re.search(rf" {re.escape(link)}$", listing, re.M), f"{link} is not in\n{listing}"
    equal(run("dpkg-deb", "-f", shared.package, "Package").strip(), "symloom")
    version, architecture = run("dpkg-deb", "-f", shared.package, "Version").strip(), run("dpkg", "--print-architecture").strip()
    equal([os.path.basename(path) for path in shared.packages],
          [f"{name}_{version}_{architecture}.deb" for name in ("symloom-dbgsym", "symloom")])


def test_lintian_reports_nothing(work, shared):
    run("lintian", "--allow-root", "--fail-on", "error,warning", *shared.packages)


def test_package_is_reproducible(work, shared):
    for first, again in zip(shared.packages, build_packages(os.path.join(work, "deb")), strict=True):
        run("cmp", first, again)


def test_systemd_units_are_valid(work, shared):
    """As they are installed, but for where the program is: this machine has none in /usr/bin."""
    from ops import SYMLOOM
    root = os.path.join(work, "root")
    run("dpkg-deb", "-x", shared.package, root)
    units = []
    for name in ("symloom.service", "symloom.socket"):
        with open(os.path.join(root, "lib/systemd/system", name)) as f:
            text = f.read().replace("/usr/bin/symloom", SYMLOOM)
        units.append(os.path.join(work, name))
        with open(units[-1], "w") as f:
            f.write(text)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, timeout=DEADLINE)
    equal([line for line in done.stderr.splitlines() if "symloom" in line], [])
    run("systemd-analyze", "security", "--offline=true", "--threshold=25", units[0])


def test_unix_socket_group_works_without_capabilities(work, shared):
    """Without capabilities the process has to be in the group; in a user namespace, as the unit has it, no group but its own is
    there. What doc/operations.md says of drop-ins makes that way for it."""
    from ops import SYMLOOM
    home = tempfile.mkdtemp()  # which the user may enter
    try:
        os.chmod(home, 0o777)
        program, config, path = (os.path.join(home, name) for name in ("symloom", "config.yml", "socket"))
        shutil.copy(SYMLOOM, program)
        with open(config, "w") as f:
            f.write(f"bind: unix:{path}\nhttp: {{unix_group: www-data}}\n")
        os.chmod(config, 0o644)
        group = grp.getgrnam("www-data").gr_gid
        namespace = ("unshare", "--user", "--map-user=12345", f"--map-group={group}")
        for groups, own, inner, works in (([group], 12345, (), True), ([12346], 12345, (), False),
                                          ([group], 12345, ("unshare", "--user", "--map-user=12345", "--map-group=12345"), False),
                                          ([12346], group, namespace, True)):
            user = ("setpriv", "--reuid=12345", f"--regid={own}", f"--groups={','.join(map(str, groups))}", "--inh-caps=-all",
                    "--bounding-set=-all", "--no-new-privs")
            service = subprocess.Popen([*user, *inner, program, "run", "-c", config], stderr=subprocess.PIPE, text=True)
            try:
                said = "".join(itertools.takewhile(lambda line: "symloom is up" not in line, service.stderr))
                if works:
                    found = os.stat(path)
                    equal((found.st_mode & 0o777, found.st_gid), (0o660, group))
                    service.send_signal(signal.SIGTERM)
                said += service.communicate(timeout=DEADLINE)[1]
                equal((service.returncode, "the process must be a member of the group" in said), (0, False) if works else (1, True))
            finally:
                service.kill()
                service.wait()
    finally:
        shutil.rmtree(home)


def operations():
    with open(os.path.join(ROOT, "doc/operations.md")) as f:
        return f.read()


def test_documented_unit_drop_ins_work(work, shared):
    chapter = re.search(r"\n## Unix sockets\n(.*?)\n## ", operations(), re.S)[1]
    from ops import SYMLOOM
    parts = dict(re.findall(r"^```ini\n\[(\w+)\]\n(.*?)^```$", chapter, re.M | re.S))
    equal(sorted(parts), ["Service", "Socket"])
    root = os.path.join(work, "root")
    run("dpkg-deb", "-x", shared.package, root)
    units = os.path.join(root, "lib/systemd/system")
    for name, section in (("symloom.socket", "Socket"), ("symloom.service", "Service")):
        with open(os.path.join(units, name)) as f:
            text = f.read().replace("/usr/bin/symloom", SYMLOOM)
        with open(os.path.join(units, name), "w") as f:
            f.write(text)
        os.mkdir(os.path.join(units, name + ".d"))
        with open(os.path.join(units, name + ".d", "override.conf"), "w") as f:
            f.write(f"[{section}]\n{parts[section]}")
    env = {**os.environ, "SYSTEMD_UNIT_PATH": units + ":"}
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", "symloom.service", "symloom.socket"], capture_output=True, text=True,
                          timeout=DEADLINE, env=env)
    equal([line for line in done.stderr.splitlines() if "symloom" in line], [])


def install(root, package):
    shutil.copy(package, os.path.join(root, "tmp/symloom.deb"))
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run("chroot", root, "apt-get", "update", "-qq", env=env)
    run("chroot", root, "apt-get", "install", "-y", "-qq", "--no-install-recommends", "/tmp/symloom.deb", env=env)


@contextlib.contextmanager
def started(root):
    """The service in the root directory, as its user, and where it listens."""
    owner = os.stat(root + "/etc/symloom/config.yml").st_gid
    for name in ("cache", "lib"):  # systemd makes them
        os.makedirs(f"{root}/var/{name}/symloom")
        os.chown(f"{root}/var/{name}/symloom", owner, owner)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    service = subprocess.Popen(["chroot", "--userspec=symloom:symloom", root, "/usr/bin/symloom", "run", "-c", "/etc/symloom/config.yml",
                                "--bind", address], stderr=subprocess.PIPE, text=True)
    try:
        for line in service.stderr:
            if "symloom is up" in line:
                break
        yield service, address
    finally:
        service.kill()
        service.wait()


def test_package_installs_starts_and_purges(work, shared):
    root = shared.root()
    install(root, shared.package)
    equal(inside(root, "symloom", "config", "check", "--strict", "-c", "/etc/symloom/config.yml"), "configuration OK\n")
    assert inside(root, "symloom", "version").startswith("symloom ")
    user = re.search(r"^symloom:x:(\d+):(\d+):", inside(root, "cat", "/etc/passwd"), re.M)
    assert user and int(user[1]) < 1000, "no system user"
    equal(os.stat(root + "/etc/symloom/config.yml").st_mode & 0o777, 0o640)
    equal(os.stat(root + "/etc/symloom/config.yml").st_gid, int(user[2]))
    with started(root) as (service, address):
        equal(run("chroot", root, "symloom", "healthcheck", "--addr", address), "OK\n")
        service.send_signal(signal.SIGTERM)
        service.communicate(timeout=DEADLINE)
        equal(service.returncode, 0)
    run("chroot", root, "apt-get", "purge", "-y", "-qq", "symloom")
    left = run("chroot", root, "find", "/", "-xdev", "-name", "*symloom*", "-not", "-path", "/proc/*", "-not", "-path", "/tmp/*",
               "-not", "-path", "/var/lib/systemd/*", "-not", "-path", "/var/cache/apt/*")
    equal(left, "")


def test_documented_steps_name_a_crash_of_the_service(work, shared):
    """With what doc/operations.md says, on a machine that has nothing but the packages: without the one of the debug information lookup says
    what is missing, with it functions and the lines of their calls are named."""
    root = shared.root()
    install(root, shared.package)
    with started(root) as (service, _):
        service.send_signal(signal.SIGSEGV)
        report = service.communicate(timeout=DEADLINE)[1]
        equal(service.returncode, -signal.SIGSEGV)
    with open(os.path.join(root, "report.txt"), "w") as f:
        f.write(report)
    name = re.search(r"^(grep .* report\.txt .*symloom lookup .*)$", operations(), re.M)[1]
    refused = inside(root, "sh", "-c", f"cd / && {name} 2>&1", status=3)
    assert "no debug information: no file with its build id below /usr/lib/debug" in refused, refused
    run("dpkg", f"--root={root}", "--install", shared.packages[0])
    named = inside(root, "sh", "-c", f"cd / && {name}")
    check_named(named)
    # and by the name of the file alone, as somebody has it who took it along
    debug = run("find", os.path.join(root, "usr/lib/debug"), "-name", "*.debug").strip()[len(root):]
    equal(inside(root, "sh", "-c", f"cd / && {name.replace('$(which symloom)', debug)}"), named)


def check_named(text):
    """The loop waits in the call that the source has in the line."""
    for function, path, line in re.findall(r"^(\w+)\n(\S+):(\d+):\d+$", text, re.M):
        if function == "loop_run":
            with open(os.path.join(ROOT, "service/core/loop.c")) as f:
                source = f.read().splitlines()[int(line) - 1]
            assert path.endswith("service/core/loop.c") and "uv_run(" in source, (path, line, source)
            break
    else:
        raise AssertionError(text)
