"""Each page as somebody reads it who types every command that it shows, in order, in one directory, on a terminal."""
import contextlib, fcntl, functools, mmap, os, re, signal, struct, subprocess, tempfile, termios, threading

import harness, pages
from servers import free_port

HOME_OF_PAGES = "/tmp/demo"  # where pages work; here it is a directory of the test
SERVICE_PORT = "3021"
FAILURES = re.compile(r"^error:|command not found|No such file|Traceback|[Cc]onnection refused", re.M)


def plain(text):
    """Without what is different each time: long hexadecimal numbers, dates, and how wide columns are."""
    text = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID", text)
    text = re.sub(r"\b(0x)?[0-9a-fA-F]{9,}\b", "NUMBER", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*Z?", "DATE", text)
    return "\n".join(re.sub(r"[ \t]+", " ", line).strip() for line in text.rstrip("\n").split("\n")) + "\n"


def pattern(shown):
    """An expression for what a page shows."""
    lines = plain(shown).splitlines()
    return "".join("(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n" for line in lines)


class Ports:
    """Free ports in place of those that a page uses."""

    def __init__(self, text):
        shown = re.findall(r"\b(?:localhost:|127\.0\.0\.1:|http\.server )(\d{4,5})\b", text)
        self.map = {port: str(free_port()) for port in {SERVICE_PORT, *shown}}

    def to_free(self, text):
        for port, free in self.map.items():
            text = re.sub(rf"\b{port}\b", free, text)
        return text

    def to_shown(self, text):
        for port, free in self.map.items():
            text = re.sub(rf"\b{free}\b", port, text)
        return text

    def wait_for(self, command):
        """A command that waits until the server answers which the given one starts."""
        if "symloom run" in command:
            port = re.search(r"--bind \S+?(\d+)\b", command)
            return f"symloom healthcheck --addr 127.0.0.1:{port[1] if port else self.map[SERVICE_PORT]} --timeout 1"
        port = re.search(r"\b(\d{4,5})\b", command)
        return f"curl -so /dev/null 127.0.0.1:{port[1]}" if port else "true"


def script(steps, ports, work):
    """A shell script with marks around what each command prints: number, output, status. What runs in the background has a log."""
    lines = ["status=0"]
    for number, step in enumerate(steps):
        command = ports.to_free(step.command)
        lines.append(f"printf '\\1%s\\2' {number}; (exit $status)")
        if command.rstrip().endswith(" &"):
            started = command.rstrip()[:-2]
            lines += [f">{work}/{number}.log 2>&1 {started} &", "for i in $(seq 600); do "
                      f"{ports.wait_for(started)} >/dev/null 2>&1 && break; sleep 0.1; done; status=$?"]
        else:
            lines.append(f"{command}\nstatus=$?")
        if command.startswith("kill "):
            lines.append("wait 2>/dev/null")
        lines.append("printf '\\3%s' $status")
    return "\n".join([*lines, "printf '\\1end\\2\\3'", "kill $(jobs -p) 2>/dev/null", "wait"])


@functools.cache
def has_sanitizer():
    with open(harness.SYMLOOM, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as program:
        return program.find(b"__asan_init") >= 0


def without_limits(text):
    """Under a sanitizer a transcoder needs a large address space."""
    return text.replace("\nms_symcache:\n", "\nms_symcache:\n  max_memory: 4611686018427387904\n") if has_sanitizer() else text


def place(work):
    """A checkout that has been built, with what pages use of it, and a home directory."""
    checkout, home = os.path.join(work, "checkout"), os.path.join(work, "home")
    for directory in (os.path.join(checkout, "build"), home, os.path.join(work, "tmp")):
        os.makedirs(directory)
    os.symlink(os.path.join(pages.ROOT, "doc"), os.path.join(checkout, "doc"))
    os.symlink(harness.SYMLOOM, os.path.join(checkout, "build/symloom"))
    return checkout, home


def on_terminal(text, work, environment):
    """What a script prints on a terminal of 160 columns."""
    ours, theirs = harness.terminal()
    settings = termios.tcgetattr(theirs)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 50, 160, 0, 0))
    printed = bytearray()

    def read():
        with contextlib.suppress(OSError):  # EIO: nobody writes any more
            while piece := os.read(ours, 65536):
                printed.extend(piece)

    path = os.path.join(work, "script")
    with open(path, "w") as f:
        f.write(text)
    run = subprocess.Popen(["bash", path], cwd=os.path.join(work, "checkout"), env=environment, stdin=subprocess.DEVNULL, stdout=theirs,
                           stderr=theirs, start_new_session=True)
    os.close(theirs)
    reader = threading.Thread(target=read)
    reader.start()
    try:
        run.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        reader.join(10)
        os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed.decode(errors="replace"))


def check(step, following, output, status):
    about = f"{step.where}: {step.command}\n--- printed, status {status}:\n{output}"
    if not (following and following.command.startswith("echo $?")):
        assert status == "0", about
    if step.output is None:
        assert not FAILURES.search(output), about
    else:
        assert re.fullmatch(pattern(step.output), plain(output)), f"{about}\n--- shown:\n{step.output}"


def run_page(page, work):
    steps = list(pages.steps(page))
    checkout, home = place(work)
    demo = os.path.join(work, "demo")
    ports = Ports("\n".join(step.command for step in steps))
    environment = {"PATH": f"{checkout}/build:{os.environ['PATH']}", "HOME": home, "LANG": "C.UTF-8", "NO_COLOR": "1", "TERM": "dumb",
                   "SYMLOOM_BIND": f"127.0.0.1:{ports.map[SERVICE_PORT]}", "TMPDIR": os.path.join(work, "tmp"), "USER": "somebody"}
    text = on_terminal(without_limits(script(steps, ports, work)).replace(HOME_OF_PAGES, demo), work, environment)
    printed = dict(part.split("\2", 1) for part in text.split("\1")[1:])
    for number, step in enumerate(steps):
        output, done, status = printed.get(str(number), "").partition("\3")
        output = re.sub(r"^[^\n]*\r(?=.)", "", output, flags=re.M)  # lines that were written again, as progress is
        assert done, f"{step.where} did not end: {step.command}\n--- the last output:\n{text[-2000:]}"
        check(step, steps[number + 1] if number + 1 < len(steps) else None, ports.to_shown(output).replace(demo, HOME_OF_PAGES),
              re.match(r"\d*", status)[0])
    assert "end" in printed, text[-2000:]
    print(f"        {len(steps)} commands")


def page_test(page):
    def test(work, shared):
        run_page(page, work)
    return test


for _page in pages.PAGES:
    if any(pages.steps(_page)):
        globals()["test_" + _page[:-3].replace("/", "-").lower()] = page_test(_page)
