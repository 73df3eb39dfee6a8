#!/bin/sh
# Everything CI checks. Prints "N passed, N failed" alone on its last line; status 0 when nothing failed.
set -u
cd "$(dirname "$0")/.." || exit 2
passed=0 failed=0
build=build-test

suite() { # NAME COMMAND.. - a runner whose last line is "N passed, N failed"; its numbers are added
    name=$1
    shift
    echo "==> $name"
    "$@" 2>&1 | tee $build/suite.log
    ok=$(sed -n '$s/^\([0-9]*\) passed, [0-9]* failed$/\1/p' $build/suite.log)
    bad=$(sed -n '$s/^[0-9]* passed, \([0-9]*\) failed$/\1/p' $build/suite.log)
    passed=$((passed + ${ok:-0}))
    failed=$((failed + ${bad:-1}))
    [ "${ok:-0}" -gt 0 ] || failed=$((failed + 1))
}

check() { # NAME COMMAND.. - one check, counted
    name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $name"
    fi
}

finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
    exit
}

werror=false
[ -z "${CI:-}" ] || werror=true
echo "==> building with sanitizers in $build"
[ -f $build/build.ninja ] ||
    meson setup $build -Dbuildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false -Dwerror=$werror \
        || { failed=1; finish; }
# Two runs would write into the same files, and count each other's results.
exec 9>$build/running
flock --nonblock 9 || { echo "another run of the tests uses $build" >&2; failed=1; finish; }
check "build" ninja -C $build --quiet
[ "$failed" = 0 ] || finish

echo "==> unit tests and fuzz corpora"
meson test -C $build --no-rebuild --print-errorlogs >$build/tests.log 2>&1
cat $build/tests.log
ok=$(sed -n 's/^Ok: *//p' $build/tests.log)
bad=$(awk '/^(Fail|Unexpected Pass|Timeout): /{n += $NF} END {print n + 0}' $build/tests.log)
passed=$((passed + ${ok:-0}))
failed=$((failed + bad))
[ "${ok:-0}" -gt 0 ] || failed=$((failed + 1))

symloom=$build/service/cli/symloom
suite "commands" /usr/bin/python3 test/cli/run.py --jobs "$(nproc)" --symloom $symloom
corpus=../shared/conformance
# shellcheck disable=SC2046
suite "HTTP tests" /usr/bin/python3 test/http/run.py --jobs "$(nproc)" --symloom $symloom $([ -d $corpus ] && echo --corpus $corpus)
check "what reads files for the cost tests" ninja -C build --quiet test/cost/readers
suite "cost" /usr/bin/python3 test/cost/run.py --symloom build/symloom --readers build/test/cost/readers
if [ -d $corpus ]; then
    # shellcheck disable=SC2046
    suite "conformance" $corpus/run.py --symloom $symloom $(cat test/conformance.txt)
    suite "files of the corpus" /usr/bin/python3 test/acceptance.py --symloom $symloom $corpus
fi

echo "==> against llvm-symbolizer"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check "fixtures" sh test/differential/fixtures.sh "$work"
# Version 19 reads no .zdebug sections, 14 joins relative compilation directories to themselves.
for file in "$work"/*.elf; do
    peer=19
    [ "${file##*/}" != gcc-zdebug.elf ] || peer=14
    check "agrees on ${file##*/}" test/differential/compare.py --symloom $symloom --llvm-symbolizer llvm-symbolizer-$peer --count 2000 "$file"
done
small=$work/small
mkdir "$small"
check "small programs" sh test/differential/small.sh "$small"
check "agrees on every byte of small ELF files" test/differential/compare.py --symloom $symloom --every --least 100 "$small"/*.elf
check "agrees on every byte of small files of other formats" test/differential/compare.py --symloom $symloom \
    --llvm-symbolizer llvm-symbolizer-14 --every --least 100 "$small"/*.exe "$small"/*.dwarf "$small"/*.wasm "$small"/pdb/*.pdb
check "agrees on every byte of Go's functions" test/differential/compare.py --symloom $symloom --every --of 'main[.]' --least 100 "$small"/go/*.elf
machines=$work/machines
mkdir "$machines"
check "objects of other machines" sh test/differential/machines.sh "$machines"
check "agrees on objects of other machines" test/differential/compare.py --symloom $symloom --every --least 100 "$machines"/*.o
formats=$work/formats
mkdir "$formats"
check "fixtures of other formats" sh test/differential/formats.sh "$formats" $symloom
check "symloom's own symbols as text" $symloom dump-syms --inlines $symloom -o "$formats/symloom.sym"
for file in "$formats"/*.exe "$formats"/*.dwarf "$formats"/*.wasm "$formats"/*.sym "$formats"/pdb/*.pdb; do
    check "agrees on ${file##*/}" test/differential/compare.py --symloom $symloom --llvm-symbolizer llvm-symbolizer-14 --count 1500 --least 99 "$file"
done
echo "==> unwind tables against readelf and the tools of LLVM"
mkdir "$work/unwind"
check "unwind fixtures" sh test/differential/unwind_fixtures.sh "$work/unwind"
for kind in elf pe pdb macho; do
    check "unwind tables agree on $kind" test/differential/unwind.py --symloom $symloom "$work"/unwind/*.$kind
done
check "unwind tables agree on the program" test/differential/unwind.py --symloom $symloom $symloom
echo "==> against eu-addr2line"
for name in gcc-2-O0 gcc-4-Os gcc-5-O2 gcc-lto gcc-split5 clang-aranges rust-names-O2; do
    check "positions agree on $name" test/differential/compare.py --symloom $symloom --peer elfutils --count 2000 "$work/$name.elf"
done
libc=$(find /usr/lib/debug/.build-id -name '*.debug' -size +2M | head -1)
for file in $symloom $libc; do
    check "agrees on ${file##*/}" test/differential/compare.py --symloom $symloom --count 10000 "$file"
done

echo "==> the house"
release=build
[ -f $release/build.ninja ] || meson setup $release --buildtype=release -Ddebug=true -Dtests=false >$build/release.log 2>&1
check "release build" ninja -C $release --quiet service/cli/symloom
check "protections of the release build" test/check_hardening.sh $release/service/cli/symloom
check "include arrows" test/check_arrows.sh
check "names that a backtrace can tell apart" /usr/bin/python3 test/check_names.py
check "metrics are bumped as what they are" /usr/bin/python3 test/check_metrics.py
check "keys of the configuration" /usr/bin/python3 test/check_keys.py $build
check "their reference" /usr/bin/python3 test/check_reference.py $symloom
check "tests that FAULTS.md and PROMISES.md name" /usr/bin/python3 test/check_shown.py
formatted() {
    find lib service test \( -name '*.c' -o -name '*.h' -o -name '*.cc' -o -name '*.hh' \) -exec clang-format-14 --dry-run -Werror {} +
}
check "format" formatted
finish
