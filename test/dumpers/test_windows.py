"""Dumps that MiniDumpWriteDump of Wine's dbghelp writes, of programs that mingw made."""
import os, struct, subprocess

from harness import Service, Upstream, equal
from test_crash_files import form, send
from test_processors import FUNCTIONS, OPTIMISED, expect_calls

WINE, SERVER = "/usr/lib/wine/wine64", "/usr/lib/wine/wineserver64"
HANDLER = r"""
#include <windows.h>
#include <dbghelp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static volatile struct { const char *function; uint64_t line; } calls[64];
static volatile int depth_of_calls;
#define CALL() (calls[depth_of_calls].function = __func__, calls[depth_of_calls++].line = __LINE__)

static LONG WINAPI on_crash(EXCEPTION_POINTERS *exception)
{
    MINIDUMP_EXCEPTION_INFORMATION of = {GetCurrentThreadId(), exception, FALSE};
    HANDLE dump = CreateFileA("crash.dmp", GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL);
    BOOL written = MiniDumpWriteDump(GetCurrentProcess(), GetCurrentProcessId(), dump, MiniDumpNormal, &of, NULL, NULL);
    FILE *notes = fopen("notes", "w");
    for (int i = depth_of_calls; i-- > 0;)
        fprintf(notes, "%s %d\n", calls[i].function, (int)calls[i].line);
    fclose(notes);
    CloseHandle(dump);
    ExitProcess(written ? 7 : 8);
}
__attribute__((constructor)) static void watch(void) { SetUnhandledExceptionFilter(on_crash); }
"""
REASONS = {"pointer": "EXCEPTION_ACCESS_VIOLATION_WRITE / 0x45", "trap": "EXCEPTION_ILLEGAL_INSTRUCTION", "room": "EXCEPTION_ACCESS_VIOLATION_WRITE"}


def code_id(path):
    """Time stamp and size of the image as symbol servers have them (PE format, COFF header and optional header)."""
    with open(path, "rb") as f:
        data = f.read(1024)
    at, = struct.unpack_from("<I", data, 0x3C)
    return "%08X%x" % (struct.unpack_from("<I", data, at + 8)[0], struct.unpack_from("<I", data, at + 24 + 56)[0])


def environment(work):
    return {**os.environ, "WINEPREFIX": os.path.join(work, "prefix"), "WINEDEBUG": "-all", "DISPLAY": "", "HOME": work}


def crash(work, program, kind):
    """The dump, and the calls that the program noted, the innermost first."""
    done = subprocess.run([WINE, program, kind], cwd=work, env=environment(work), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600)
    equal(done.returncode, 7, "Wine ended the program otherwise")
    with open(os.path.join(work, "crash.dmp"), "rb") as f:
        dump = f.read()
    with open(os.path.join(work, "notes")) as f:
        return dump, [(name, int(line)) for name, line in map(str.split, f)]


def compiled(work, flags):
    with open(os.path.join(work, "crash.c"), "w") as f:
        f.write(HANDLER + FUNCTIONS)
    subprocess.run(["x86_64-w64-mingw32-gcc", "-g", "-w", "-fno-optimize-sibling-calls", *flags, "-o", "crash.exe", "crash.c", "-ldbghelp"],
                   cwd=work, check=True)
    return os.path.join(work, "crash.exe")


def test_x86_64_windows_crashes_are_walked(work, args):
    for flags in (("-O1", "-fomit-frame-pointer"), ("-O1", "-fno-omit-frame-pointer"), OPTIMISED):
        program = compiled(work, flags)
        with open(program, "rb") as f:
            routes = {f"/crash.exe/{code_id(program)}/crash.exe": f.read()}
        with Upstream(routes) as up, Service(work) as s:
            sources = [{"id": "test", "type": "http", "url": up.url, "layout": {"type": "symstore"}}]
            for kind, reason in REASONS.items():
                dump, calls = crash(work, program, kind)
                status, answer = send(s, "/minidump", form(upload_file_minidump=dump, sources=sources))
                equal(status, 200, answer)
                assert answer["crash_reason"].startswith(reason), answer["crash_reason"]
                equal([answer["system_info"][key] for key in ("os_name", "cpu_arch")], ["Windows", "x86_64"])
                thread, = [t for t in answer["stacktraces"] if t.get("is_requesting")]
                expect_calls(thread["frames"], "crash.exe", calls, f"{kind} {flags}")
    subprocess.run([SERVER, "-k"], env=environment(work))
