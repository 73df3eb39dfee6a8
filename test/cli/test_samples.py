"""Reports of samples of Apple's systems: of `sample`, spindump, and of hangs."""
import json

from harness import contains, equal, symloom
from test_crash import dsym, home, symbolicate

BASE = 0x108000000
SHARED = "FDD28505-5456-3C40-A5BA-7890B064DB39"

SAMPLE = """Analysis of sampling app (pid 41328) every 1 millisecond
Process:         app [41328]
Path:            /Apps/app
Load Address:    0x108000000
Identifier:      app
Code Type:       X86-64
Platform:        macOS

Date/Time:       2022-11-02 09:19:12.204 -0700
Launch Time:     2022-11-02 09:18:56.343 -0700
OS Version:      macOS 12.6 (21G115)
Report Version:  7
Analysis Tool:   /usr/bin/sample
----

Call graph:
    9 Thread_955462   DispatchQueue_1: com.apple.main-thread  (serial)
    + 9 start  (in dyld) + 596  [0x180000254]
    +   6 ???  (in app)  load address 0x108000000 + {outer:#x}  [{at_outer:#x}]
    +   ! 5 read  (in libsystem_kernel.dylib) + 8  [0x190000008]
    +   ! 1 -[App stop:]  (in app) + 2,4,...  [0x10a000002,0x10a000004,...]  App.m:3
    +   3 ???  (in <unknown binary>)  [0x500]
    4 Thread_955463: worker
      4 old_name  (in app) + 9  [{at_outer:#x}]  old.c:1

Total number in stack (recursive counted multiple, when >=5):
        6       ???  (in app)  load address 0x108000000 + {outer:#x}  [{at_outer:#x}]

Sort by top of stack, same collapsed (when >= 5):
        ???  (in app)  load address 0x108000000 + {outer:#x}  [{at_outer:#x}]        5

Binary Images:
       0x108000000 -        0x108ffffff +app (0) <{uuid}> /Apps/app
       0x180000000 -        0x18000ffff  dyld (960) <EEA022BB-A6AB-3CD1-8AC1-54CE8CFD3333> /usr/lib/dyld
"""

SPINDUMP = """Date/Time:        2025-12-17 19:00:41.615 -0500
End time:         2025-12-17 19:00:48.846 -0500
OS Version:       macOS 12.7.6 (Build 21H1320)
Architecture:     x86_64h
Report Version:   35.1

Data Source:      Stackshots

Command:          app
Path:             /Apps/app
PID:              27952

Event:            hang
Duration:         7.23s
Steps:            8 (100ms sampling interval)

Hardware model:   MacBookPro12,1
Active cpus:      4

--------------------------------------------------
Timeline format: stacks are sorted chronologically
Use -i and -heavy to re-report with count sorting
--------------------------------------------------


Heaviest stack for the main thread of the target process:
  8  start + 462 (dyld + 596) [0x180000254]
  5  ??? (app + {inner}) [{at_inner:#x}]


Process:          other [7] (suspended)
UUID:             4271DEBC-1FCB-3A2F-8911-75066128352F

  Thread 0x415    Thread name "spool"    8 samples (1-8)    priority 19 (base 19)
  8  ??? (other + {inner}) [{at_inner:#x}] 1-8

  Binary Images:
           {base:#x} -                ???  other  <4271DEBC-1FCB-3A2F-8911-75066128352F>  /usr/libexec/other
   *0xffffff8000210000 - 0xffffff8000c0ffff  kernel (8020) <AAF3C70C-3331-335A-96FB-D338CFE178F0>  /System/Library/Kernels/kernel


Process:          app [27952]
UUID:             {uuid}
Num samples:      8 (1-8)
Note:             Unresponsive for 2 seconds before sampling

  Thread 0x2ca9e    DispatchQueue "com.apple.main-thread"(1)    8 samples (1-8)    priority 47 (base 47)
  <process frontmost, thread QoS user interactive (requested user interactive), IO tier 0>
  8  start + 462 (dyld + 596) [0x180000254] 1-8
    3   ??? (app + {outer}) [{at_outer:#x}] 1-3
     *3   hndl_alltraps + 223 (kernel + 39327) [0xffffff800021999f] 1-3
       *3   ??? (kernel + 1113914) [0xffffff800031ff3a] (blocked by turnstile) 1-3
    5   old + 3 (old.c:9,1 in app + {inner}) [{at_inner:#x}] 4-8
      5   <Kernel mode> 4-8

  Thread 0x2caa0    8 samples (1-8)    priority 31 (base 31)
  8  ??? [0x77] 1-8

  Binary Images:
           {base:#x} -                ???  com.app 1.0 (1)  <{uuid}>  /Apps/app
           0x180000000 -        0x18000ffff  dyld (960)      <EEA022BB-A6AB-3CD1-8AC1-54CE8CFD3333>  /usr/lib/dyld
   *0xffffff8000210000 - 0xffffff8000c0ffff  kernel (8020)   <AAF3C70C-3331-335A-96FB-D338CFE178F0>  /System/Library/Kernels/kernel
"""


def filled(text, work, files):
    """Of `outer`, its second instruction, and one of what is inlined into it."""
    uuid, address = dsym(work, files)
    inner = address + inlined(work, uuid, address)
    return text.format(uuid=uuid, base=BASE, outer=address + 1, at_outer=BASE + address + 1, inner=inner, at_inner=BASE + inner)


def inlined(work, uuid, address):
    """How far behind it the first instruction of `inner` is."""
    frames = [{"instruction_addr": hex(address + i), "adjust_instruction_addr": False} for i in range(64)]
    request = {"modules": [{"type": "macho", "debug_id": uuid, "image_addr": "0x0"}], "stacktraces": [{"frames": frames}]}
    answer = json.loads(symbolicate(work, "--type", "request", "-", input=json.dumps(request)))["stacktraces"][0]["frames"]
    return next(frame["original_index"] for frame in answer if frame.get("function") == "inner")


def lines(text, word):
    return [line.rstrip() for line in text.splitlines() if word in line]


def test_sample_is_written_with_names(work, files):
    text = filled(SAMPLE, work, files)
    result = symloom("symbolicate", "--offline", "--cache-dir", "", "--symbols", "files", "-", input=text, cwd=work, env=home(work))
    equal(result.status, 0, result.err)
    told, before = result.out.splitlines(), text.splitlines()
    equal(len(told), len(before))
    changed = {a: b for a, b in zip(before, told) if a != b}
    equal(len(changed), 4, result.out)
    for a, b in changed.items():
        contains(b, "outer  (in app) + 1  [0x10", "]  t.c:5")
        equal(b[:b.index("outer")], a[:a.index("???") if "???" in a else a.index("old_name")])
    contains(told[before.index("Binary Images:") - 2], "]  t.c:5        5")
    equal(lines(result.out, "old.c"), [])
    contains(result.err, "dyld")


def test_sample_gives_a_stack_for_each_path(work, files):
    answer = json.loads(symbolicate(work, "-f", "json", "-", input=filled(SAMPLE, work, files)))
    equal(answer["crashed"], False)
    equal(answer["crash_reason"], "sampling app (pid 41328) every 1 millisecond")
    equal(answer["system_info"], {"os_name": "macOS", "os_version": "12.6", "os_build": "21G115", "cpu_arch": "x86_64", "device_model": ""})
    equal(answer["timestamp"], 1667405952)
    stacks = [(t["thread_id"], t["thread_name"], [f.get("function") for f in t["frames"]]) for t in answer["stacktraces"]]
    equal(stacks, [(955462, "com.apple.main-thread (5 of 9 samples)", ["read", "outer", "start"]),
                   (955462, "com.apple.main-thread (3 of 9 samples)", [None, "start"]),
                   (955462, "com.apple.main-thread (1 of 9 samples)", ["-[App stop:]", "outer", "start"]),
                   (955463, "worker (4 of 4 samples)", ["outer"])])


def test_spindump_is_written_with_names(work, files):
    text = filled(SPINDUMP, work, files)
    result = symloom("symbolicate", "--offline", "--cache-dir", "", "--symbols", "files", "-", input=text, cwd=work, env=home(work))
    equal(result.status, 0, result.err)
    told, before = result.out.splitlines(), text.splitlines()
    equal(len(told), len(before))
    changed = [(a, b) for a, b in zip(before, told) if a != b]
    equal(len(changed), 3, result.out)
    heaviest, interrupted, named = [b for _, b in changed]
    contains(heaviest, "  5  inner (inlined into mid, outer) (t.c:1 in app + ")
    contains(interrupted, "    3   outer + 1 (t.c:5 in app + ", "] 1-3")
    contains(named, "    5   inner (inlined into mid, outer) (t.c:1 in app + ", "] 4-8")
    equal(lines(result.out, "old"), [])
    contains("\n".join(lines(result.out, "other + ")), "8  ??? (other + ")


def test_spindump_gives_stacks_of_its_process(work, files):
    """They are those of the process that the report is about: another may have anything at the same addresses."""
    answer = json.loads(symbolicate(work, "-f", "json", "-", input=filled(SPINDUMP, work, files)))
    equal((answer["crashed"], answer["crash_reason"]), (False, "hang, 7.23s"))
    equal(answer["crash_details"], "These are the stacks of app [27952], one of 2 processes of the report.")
    equal(answer["system_info"], {"os_name": "macOS", "os_version": "12.7.6", "os_build": "21H1320", "cpu_arch": "x86_64h", "device_model": "MacBookPro12,1"})
    stacks = [(t["thread_id"], t["thread_name"], [f.get("function") for f in t["frames"]]) for t in answer["stacktraces"]]
    equal(stacks, [(0x2ca9e, "com.apple.main-thread (5 of 8 samples)", ["inner", "mid", "outer", "start"]),
                   (0x2ca9e, "com.apple.main-thread (3 of 8 samples)", [None, "hndl_alltraps", "outer", "start"]),
                   (0x2caa0, "8 of 8 samples", [None])])
    equal([m["code_file"] for m in answer["modules"]], ["/Apps/app", "/usr/lib/dyld", "/System/Library/Kernels/kernel"])


def test_json_line_before_a_report_is_accepted(work, files):
    text = '{"app_name":"app","bug_type":"202","os_version":"macOS 12.7.6 (21H1320)"}\n' + filled(SPINDUMP, work, files)
    told = symbolicate(work, "-", input=text)
    contains(told, '{"app_name":"app"', "outer + 1 (t.c:5 in app + ")
    contains(symbolicate(work, "-f", "full", "-", input=text), "Crash:      hang, 7.23s\n", "Thread 182942 com.apple.main-thread (5 of 8 samples)\n")


def test_powerstats_report_is_read_without_threads(work, files):
    text = filled(SPINDUMP, work, files)
    text = text[:text.index("Process:")] + text[text.index("Process:          app"):]
    text = text.replace("Process:          app", "Powerstats for:   app")
    text = "\n".join(line for line in text.splitlines() if not line.startswith("  Thread 0x") and "[0x77]" not in line)
    answer = json.loads(symbolicate(work, "-f", "json", "-", input=text))
    equal([(t.get("thread_id"), t["thread_name"]) for t in answer["stacktraces"]], [(None, "5 of 8 samples"), (None, "3 of 8 samples")])


def test_stackshot_is_symbolicated_by_ids(work, files):
    """Its images have no names, only ids."""
    uuid, address = dsym(work, files)
    process = lambda pid, name, frames: {"pid": pid, "procname": name, "threadById": {"8": {"id": 8, "dispatch_queue_label": "main", "kernelFrames": [[1, 8]], "userFrames": frames}}}
    body = {"build": "iPhone OS 15.0 (19A341)", "product": "iPhone12,1", "frontmostPids": [7], "reason": "hang",
            "processByPid": {"5": process(5, "other", [[0, 1]]), "7": process(7, "app", [[0, address + 1], [2, 77]])},
            "binaryImages": [[uuid, BASE, "P"], [SHARED, 0xffffff8000210000, "T"], ["0", 0, "A"]]}
    text = '{"bug_type":"288","timestamp":"2021-07-01 10:00:00.00 +0000"}\n' + json.dumps(body)
    answer = json.loads(symbolicate(work, "-f", "json", "-", input=text))
    equal((answer["crash_reason"], answer["crash_details"]), ("hang", "These are the stacks of app [7], one of 2 processes of the report."))
    (thread,) = answer["stacktraces"]
    equal((thread["thread_name"], [f.get("function") for f in thread["frames"]]), ("main", [None, "outer", None]))
    equal(json.loads(symbolicate(work, "-f", "json", "-", input=json.dumps(body)))["stacktraces"], answer["stacktraces"])


def test_unsupported_apple_reports_are_named(work, files):
    """An error says what they are."""
    for kind, what in ((298, "jetsam"), (210, "a kernel panic report"), (288, "a stackshot without processes")):
        result = symloom("symbolicate", "-", input=f'{{"bug_type":"{kind}"}}\n{{"largestProcess":"x"}}', env=home(work))
        equal(result.status, 3)
        contains(result.err, f"unsupported apple report type {kind}", "this looks like ", what, "supported are crash reports")
