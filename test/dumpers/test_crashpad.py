"""Dumps that Crashpad writes: of Chromium, and of programs that note themselves where they are."""
import glob, os, subprocess, time

import dumps
from harness import Service, Upstream, equal
from servers import wait_until
from test_crash_files import form, send, served
from test_processors import CRASHES, FUNCTIONS, OPTIMISED, expect_calls

CHROMIUM, HANDLER = "/usr/lib/chromium/chromium-headless-shell", "/usr/lib/chromium/chrome_crashpad_handler"

# Beside writing down what dumps.HANDLER does, the crashing process has Crashpad's handler look at it, which is told where the
# signal's information lies (struct ExceptionInformation of Crashpad, util/linux/exception_information.h).
BY_CRASHPAD = r"""
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void (*note)(int, siginfo_t *, void *) = on_crash;

static void on_crash_too(int number, siginfo_t *info, void *context)
{
    static struct __attribute__((packed)) { uint64_t info, context; int32_t thread; } where;
    static char option[64], database[512];
    where.info = (uintptr_t)info;
    where.context = (uintptr_t)context;
    where.thread = syscall(SYS_gettid);
    snprintf(option, sizeof option, "--trace-parent-with-exception=0x%llx", (unsigned long long)(uintptr_t)&where);
    snprintf(database, sizeof database, "--database=%s", getenv("CRASH_DATABASE"));
    pid_t child = fork();
    if (!child) {
        execl(getenv("CRASH_HANDLER"), "handler", database, option, "--no-periodic-tasks", "--annotation=channel=tests", NULL);
        _exit(9);
    }
    prctl(PR_SET_PTRACER, child, 0, 0, 0);
    waitpid(child, NULL, 0);
    note(number, info, context);
}

__attribute__((constructor(65535))) static void watch_too(void)
{
    struct sigaction action;
    for (const int *s = (const int[]){SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGTRAP, 0}; *s; s++) {
        sigaction(*s, NULL, &action);
        action.sa_sigaction = on_crash_too;
        sigaction(*s, &action, NULL);
    }
}
"""


def only_dump(database):
    paths = glob.glob(os.path.join(database, "*", "*.dmp"))
    equal(len(paths), 1, paths)
    with open(paths[0], "rb") as f:
        return f.read()


def test_x86_64_crashes_written_by_crashpad_are_walked(work, args):
    for i, flags in enumerate((("-O1", "-fomit-frame-pointer"), OPTIMISED)):
        source, program = os.path.join(work, "crash.c"), os.path.join(work, "crash")
        with open(source, "w") as f:
            f.write(dumps.HANDLER + BY_CRASHPAD + FUNCTIONS)
        subprocess.run(["gcc", "-g", "-w", "-fno-optimize-sibling-calls", "-Wl,--build-id=sha1", *flags, "-o", program, source], check=True)
        for kind, reason in CRASHES.items():
            database = os.path.join(work, f"database-{i}-{kind}")
            os.environ.update(CRASH_DATABASE=database, CRASH_HANDLER=HANDLER)
            crash = dumps.Crash(program, work, kind)
            with Upstream(served(crash.modules)) as up, Service(work, {"minidump": {"details": True}}) as s:
                sources = [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "debuginfod"}}]
                status, answer = send(s, "/minidump", form(upload_file_minidump=only_dump(database), sources=sources))
                equal(status, 200, answer)
                assert answer["crash_reason"].startswith(reason), answer["crash_reason"]
                thread, = [t for t in answer["stacktraces"] if t.get("is_requesting")]
                expect_calls(thread["frames"], program, crash.calls, f"{kind} {flags}")
                assert {"name": "channel", "value": "tests"} in answer["details"]["annotations"], answer["details"]


def descendants(pid):
    """Command lines by process id."""
    found, waiting = {}, [pid]
    while waiting:
        listed = subprocess.run(["ps", "--ppid", str(waiting.pop()), "-o", "pid=,args="], capture_output=True, text=True).stdout
        for line in listed.splitlines():
            child, command = line.split(None, 1)
            found[int(child)] = command
            waiting.append(int(child))
    return found


def renderer_of(process):
    return next((pid for pid, command in descendants(process.pid).items() if "--type=renderer" in command), None)


def test_chromium_renderer_crash_is_walked(work, args):
    """There are no symbols of it here: the reader, the walker and the tables of the C library are tried."""
    database = os.path.join(work, "dumps")
    options = ["--no-sandbox", "--disable-gpu", "--enable-crash-reporter", f"--crash-dumps-dir={database}",
               f"--user-data-dir={os.path.join(work, 'user')}", "--remote-debugging-port=0", "about:blank"]
    browser = subprocess.Popen([CHROMIUM, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until("a renderer", lambda: renderer_of(browser))
        time.sleep(1)  # it waits for work then
        os.kill(renderer_of(browser), 11)
        wait_until("its dump", lambda: glob.glob(os.path.join(database, "pending", "*.dmp")))
    finally:
        rest = descendants(browser.pid)
        browser.kill()
        browser.wait()
        for pid in rest:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
    libc = "/lib/x86_64-linux-gnu/libc.so.6"
    with Upstream(served([libc])) as up, Service(work, {"minidump": {"details": True}}) as s:
        sources = [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "debuginfod"}}]
        status, answer = send(s, "/minidump", form(upload_file_minidump=only_dump(database), sources=sources))
        equal((status, answer["status"], answer["crashed"]), (200, "completed", True))
        assert answer["crash_reason"].startswith("SIGSEGV"), answer["crash_reason"]
        thread, = [t for t in answer["stacktraces"] if t.get("is_requesting")]
        trusts = {f.get("trust") for t in answer["stacktraces"] for f in t["frames"]}
        assert "context" in trusts and "cfi" in trusts and len(thread["frames"]) > 5, answer["stacktraces"]
        assert len(answer["stacktraces"]) > 3 and all(t.get("thread_name") for t in answer["stacktraces"])
        assert {"name": "prod", "value": "Chrome_Headless"} in answer["details"]["annotations"], answer["details"]
        modules = {os.path.basename(m["code_file"]): m for m in answer["modules"]}
        equal(modules["libc.so.6"]["unwind_status"], "found")
        equal(modules["libc.so.6"]["code_id"], dumps.build_id(libc))
        equal(modules["chromium-headless-shell"]["code_id"], dumps.build_id(CHROMIUM))
