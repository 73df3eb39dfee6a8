#!/usr/bin/env python3
"""Symbolicates addresses of the program itself through its own HTTP API, and prints the stack.

usage: own_stack.py SYMLOOM URL

SYMLOOM is the program, whose debug information a source of the service at URL must hold.
"""
import json, re, subprocess, sys, urllib.request

WANTED = ("sl_symcache_lookup", "native_symbolicate", "native_handle", "loop_run", "command_run", "main")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def request(symloom):
    about = output(symloom, "inspect", symloom)
    code_id = re.search(r"code id\s+([0-9a-f]+)", about, re.I).group(1)
    debug_id = re.search(r"debug id\s+([0-9a-f-]+)", about, re.I).group(1)
    symbols = {}
    for line in output(symloom, "inspect", "--symbols", symloom).splitlines():
        parts = line.split()
        if len(parts) >= 3 and parts[2] in WANTED:
            symbols[parts[2]] = (int(parts[0], 16), int(parts[1], 16))
    base = 0x555500000000
    # A return address lies behind a call, somewhere in the middle of its function.
    addresses = [base + symbols[name][0] + symbols[name][1] // 2 for name in WANTED if name in symbols]
    return {
        "stacktraces": [{"frames": [{"instruction_addr": hex(address)} for address in addresses]}],
        "modules": [{"type": "elf", "code_id": code_id, "debug_id": debug_id, "code_file": "symloom",
                     "image_addr": hex(base), "image_size": 0x10000000}],
    }


def main():
    symloom, url = sys.argv[1:]
    body = json.dumps(request(symloom)).encode()
    post = urllib.request.Request(f"{url}/symbolicate", body, {"Content-Type": "application/json"})
    answer = json.load(urllib.request.urlopen(post, timeout=120))
    frames = answer["stacktraces"][0]["frames"]
    for frame in frames:
        place = f'{frame["filename"]}:{frame["lineno"]}' if "filename" in frame else "?"
        print(f'{frame["original_index"]:3}  {frame["instruction_addr"]}  {frame.get("function", frame["status"])}  {place}')
    if not frames or any(frame["status"] != "symbolicated" or not frame.get("lineno") for frame in frames):
        sys.exit("a frame was not symbolicated")


if __name__ == "__main__":
    main()
