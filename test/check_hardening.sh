#!/bin/sh
# The protections that a release build has, read off the program: position-independent, all relocations done and read-only
# before main, no executable stack, checked string functions, guarded frames, landing pads, probed stacks.
# usage: check_hardening.sh PROGRAM     Prints what is missing; status 1 if anything is.
set -u
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
readelf -Wlhd "$program" >"$work/headers" || exit 2
readelf -Ws --dyn-syms "$program" >"$work/symbols"
objdump -d --no-show-raw-insn "$program" >"$work/code" || exit 2

bad=0
want() { # WHAT FILE PATTERN
    grep -qE -e "$3" "$work/$2" || { echo "missing: $1"; bad=1; }
}
want "position-independent program" headers 'Flags:.*PIE'
want "relocations at start" headers 'Flags:.*NOW'
want "read-only relocations" headers 'GNU_RELRO'
want "stack without code" headers 'GNU_STACK.* RW +0x'
want "checked string functions" symbols '__(snprintf|memcpy|printf|fprintf)_chk'
want "guarded frames" symbols '__stack_chk_fail'
if [ "$(uname -m)" = x86_64 ]; then
    grep -A1 '<main>:$' "$work/code" >"$work/main"
    want "landing pads" main 'endbr64'
    want "probed stacks" code 'or[lq] +\$0x0,(0x[0-9a-f]+)?\(%rsp\)'
fi
[ $bad = 1 ] || echo "$program: all protections"
exit $bad
