#!/usr/bin/env python3
"""What hostile files cost: time and memory for each MB, and the instructions of doubled input."""
import argparse
import os
import re
import resource
import subprocess
import tempfile

import objects

CPU_LIMIT = 30


def arguments(command, file):
    return [part.replace("{file}", file) for part in command]


def measured(symloom, command, file):
    """CPU seconds, MB of peak memory, exit status, what was said."""
    with open(os.devnull, "w") as null:
        process = subprocess.Popen([symloom] + arguments(command, file), stdout=null, stderr=subprocess.PIPE,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT)))
        error = process.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status), error.strip()[-90:]


def instructions(symloom, command, file):
    out = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", symloom] + arguments(command, file),
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE).stderr.decode(errors="replace")
    return int(re.search(r"Collected : (\d+)", out)[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--symloom", required=True)
    parser.add_argument("--size", type=int, default=1 << 20)
    parser.add_argument("--callgrind", type=int, default=0, help="also count instructions at this size and its double")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as directory:
        for name, (make, command) in objects.GENERATORS.items():
            if args.names and not any(wanted in name for wanted in args.names):
                continue

            def written(size):
                file = os.path.join(directory, "f")
                with open(file, "wb") as out:
                    out.write(make(size))
                return file

            file = written(args.size)
            mb = max(1, os.path.getsize(file) / 1e6)
            cpu, memory, status, error = measured(args.symloom, command, file)
            row = f"{name:32} {os.path.getsize(file) / 1e6:5.2f} MB {cpu / mb:7.2f} s/MB {memory / mb:6.0f} MB/MB  exit {status}"
            wrong = cpu > mb or memory > 200 * mb or status < 0
            if args.callgrind:
                counts = [instructions(args.symloom, command, written(size)) for size in (args.callgrind, 2 * args.callgrind)]
                row += f"  {counts[0] / 1e6:.0f} -> {counts[1] / 1e6:.0f} M, {counts[1] / counts[0]:.2f}"
                wrong = wrong or counts[1] > 2.3 * counts[0]
            bad += wrong
            print(row, "BAD" if wrong else "", error, flush=True)
    raise SystemExit(bad > 0)


if __name__ == "__main__":
    main()
