"""Which readers of files ran in workers while the HTTP tests ran: services of the tests add what their metrics tell to a file.

usage: readers.py FILE

Fails if a reader of the service never ran in a worker: no test would notice what the workers' filter of system calls keeps it from.
"""
import os, re, sys

VARIABLE = "SYMLOOM_TEST_READERS"  # the file


def counts(service):
    """By (reader, place)."""
    text = service.request("GET", "/metrics")[2].decode()
    return {(reader, place): int(n) for reader, place, n in
            re.findall(r'^symloom_files_read_total\{reader="(\w+)",place="(\w+)"\} (\d+)', text, re.M)}


def record(service):
    if path := os.environ.get(VARIABLE):
        with open(path, "a") as f:  # in one piece, as tests run at the same time
            f.write("".join(f"{reader} {n}\n" for (reader, place), n in counts(service).items() if place == "worker"))


def main(path):
    most = {}
    with open(path) as f:
        for line in f:
            reader, n = line.split()
            most[reader] = max(most.get(reader, 0), int(n))
    idle = sorted(reader for reader, n in most.items() if n == 0)
    print(f"{len(most)} readers, never run in a worker: {', '.join(idle) or 'none'}")
    return not most or bool(idle)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
