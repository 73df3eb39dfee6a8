#!/bin/sh
# Everything CI checks. Suites run side by side: what waits for services beside what computes. Each prints its output when it has
# ended. Prints "N passed, N failed" alone on its last line; status 0 when nothing failed.
set -u
cd "$(dirname "$0")/.." || exit 2
build=build-test release=build
out=$build/results
symloom=$build/service/cli/symloom
corpus=../shared/conformance

# ---- counting: every check and every suite adds a line "PASSED FAILED" to $out/counts ----
say() { # FILE - prints it in one piece
    flock $out/printing cat "$1"
}

suite() { # NAME COMMAND.. - a runner whose last line is "N passed, N failed"; its numbers are added
    name=$1 log=$out/suite-$(echo "$1" | tr -c 'a-zA-Z0-9\n' _) began=$(date +%s)
    shift
    echo "==> $name" >"$log"
    "$@" >>"$log" 2>&1
    printf '%5d s  %s\n' $(($(date +%s) - began)) "$name" >>$out/seconds
    say "$log"
    sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log" >"$log.counts"
    grep -q '^[1-9]' "$log.counts" || echo "0 1" >"$log.counts" # a runner that ends early, or has nothing to run
    cat "$log.counts" >>$out/counts
}

check() { # NAME COMMAND.. - one check, counted
    name=$1 log=$(mktemp $out/check-XXXXXX)
    shift
    if "$@" >"$log" 2>&1; then
        echo "ok      $name" >>"$log"
        echo "1 0" >>$out/counts
    else
        echo "FAILED  $name" >>"$log"
        echo "0 1" >>$out/counts
    fi
    say "$log"
    grep -q '^ok' "$log"
}

finish() {
    awk '{passed += $1; failed += $2} END {printf "%d passed, %d failed\n", passed, failed; exit failed > 0 || passed == 0}' $out/counts
    exit
}

# ---- builds ----
mkdir -p $build
# Two runs would write into the same files, and count each other's results.
exec 9>$build/running
flock --nonblock 9 || { echo "another run of the tests uses $build" >&2; echo "0 passed, 1 failed"; exit 1; }
rm -rf $out
mkdir $out
: >$out/counts
export GOCACHE="$PWD/$build/go" # each Go program would compile the runtime again

werror=false
[ -z "${CI:-}" ] || werror=true
configure() { # little optimisation and a fast linker: the build takes longer than the tests
    [ -f $build/build.ninja ] || CC_LD=lld CXX_LD=lld meson setup $build -Doptimization=g -Ddebug=true -Db_sanitize=address,undefined \
        -Dc_link_args=-Wl,--build-id=sha1 -Dcpp_link_args=-Wl,--build-id=sha1 -Db_lundef=false -Dwerror=$werror
}
echo "==> building with sanitizers in $build"
check "configuration" configure || finish
check "build" ninja -C $build --quiet || finish

# ---- suites ----
unit_tests() {
    meson test -C $build --no-rebuild --print-errorlogs
    awk '/^Ok: /{passed = $2} /^(Fail|Unexpected Pass|Timeout): /{failed += $NF} END {printf "%d passed, %d failed\n", passed, failed}' \
        $build/meson-logs/testlog.txt
}

# Commands are short: under sanitizers most of their time is the start of processes. Their readers are under sanitizers in the unit,
# fuzz and HTTP tests; `./x soak chance` runs the commands so too.
commands=$release/service/cli/symloom
[ "${SYMLOOM_TEST_EFFORT:-}" != all ] || commands=$symloom

python_tests() { # FOLDER PROGRAM ARGUMENT.. - its run.py
    folder=$1 program=$2
    shift 2
    /usr/bin/python3 test/"$folder"/run.py --jobs "$(nproc)" --times $build/times.json --symloom "$program" "$@"
}

http_tests() {
    export SYMLOOM_TEST_READERS=$out/readers
    # shellcheck disable=SC2046
    python_tests http $symloom "$@" $([ -d $corpus ] && echo --corpus $corpus)
}

conformance() {
    [ -d $corpus ] || return 0
    # shellcheck disable=SC2046
    suite "conformance" $corpus/run.py --symloom $symloom $(cat test/conformance.txt)
    suite "files of the corpus" /usr/bin/python3 test/acceptance.py --symloom $symloom $corpus
}

agrees() { # NAME ARGUMENT.. - a comparison with another tool
    name=$1
    shift
    check "agrees on $name" test/differential/compare.py --symloom $commands "$@"
}

differential() {
    work=$(mktemp -d)
    echo "==> against llvm-symbolizer"
    check "fixtures" sh test/differential/fixtures.sh "$work"
    # Version 19 reads no .zdebug sections, 14 joins relative compilation directories to themselves.
    for file in "$work"/*.elf; do
        peer=19
        [ "${file##*/}" != gcc-zdebug.elf ] || peer=14
        agrees "${file##*/}" --llvm-symbolizer llvm-symbolizer-$peer --count 2000 "$file"
    done
    small=$work/small machines=$work/machines formats=$work/formats
    mkdir "$small" "$machines" "$formats" "$work/unwind"
    check "small programs" sh test/differential/small.sh "$small"
    agrees "every byte of small ELF files" --every --least 100 "$small"/*.elf
    agrees "every byte of small files of other formats" --llvm-symbolizer llvm-symbolizer-14 --every --least 100 \
        "$small"/*.exe "$small"/*.dwarf "$small"/*.wasm "$small"/pdb/*.pdb
    agrees "every byte of Go's functions" --every --of 'main[.]' --least 100 "$small"/go/*.elf
    check "objects of other machines" sh test/differential/machines.sh "$machines"
    agrees "objects of other machines" --every --least 100 "$machines"/*.o
    check "fixtures of other formats" sh test/differential/formats.sh "$formats" $commands
    check "symloom's own symbols as text" $commands dump-syms --inlines $commands -o "$formats/symloom.sym"
    for file in "$formats"/*.exe "$formats"/*.dwarf "$formats"/*.wasm "$formats"/*.sym "$formats"/pdb/*.pdb; do
        agrees "${file##*/}" --llvm-symbolizer llvm-symbolizer-14 --count 1500 --least 99 "$file"
    done
    echo "==> unwind tables against readelf and the tools of LLVM"
    check "unwind fixtures" sh test/differential/unwind_fixtures.sh "$work/unwind"
    for kind in elf pe pdb macho; do
        check "unwind tables agree on $kind" test/differential/unwind.py --symloom $commands "$work"/unwind/*.$kind
    done
    check "unwind tables agree on the program" test/differential/unwind.py --symloom $commands $symloom
    echo "==> against eu-addr2line"
    for name in gcc-2-O0 gcc-4-Os gcc-5-O2 gcc-lto gcc-split5 clang-aranges rust-names-O2; do
        agrees "positions of $name" --peer elfutils --count 2000 "$work/$name.elf"
    done
    libc=$(find /usr/lib/debug/.build-id -name '*.debug' -size +2M | head -1)
    for file in $symloom $libc; do
        agrees "${file##*/}" --count 10000 "$file"
    done
    rm -rf "$work"
}

is_formatted() {
    find lib service test \( -name '*.c' -o -name '*.h' -o -name '*.cc' -o -name '*.hh' \) -exec clang-format-14 --dry-run -Werror {} +
}

house() {
    echo "==> the house"
    check "protections of the release build" test/check_hardening.sh $release/service/cli/symloom
    check "include arrows" /usr/bin/python3 test/check_arrows.py
    check "struct tags that a debugger can tell apart" /usr/bin/python3 test/check_names.py
    check "metrics are bumped as what they are" /usr/bin/python3 test/check_metrics.py
    check "keys of the configuration" /usr/bin/python3 test/check_keys.py $build
    check "their reference" /usr/bin/python3 test/check_reference.py $symloom
    check "messages, alerts and keys that the documents explain" /usr/bin/python3 test/check_documents.py
    check "version, changelog and release" /usr/bin/python3 test/check_release.py $release/service/cli/symloom $release
    check "tests that FAULTS.md and PROMISES.md name" /usr/bin/python3 test/check_shown.py
    check "subjects of commits" /usr/bin/python3 test/check_commits.py
    check "format" is_formatted
    check "clang-tidy" test/check_tidy.sh $build
}

computing() {
    suite "unit tests and fuzz corpora" unit_tests
    check "release build" ninja -C $release --quiet service/cli/symloom test/cost/readers
    house
    suite "cost" /usr/bin/python3 test/cost/run.py --symloom $release/service/cli/symloom --readers $release/test/cost/readers
    differential
}

waiting() {
    suite "HTTP tests" http_tests --only together
    suite "commands" python_tests cli $commands
    suite "documents" python_tests docs $commands
    conformance
}

[ -f $release/build.ninja ] || meson setup $release --buildtype=release -Ddebug=true -Dtests=false >$out/release 2>&1
computing &
waiting
wait
suite "HTTP tests that run alone" http_tests --only alone
check "readers in workers" /usr/bin/python3 test/http/readers.py $out/readers
echo "==> how long the suites took"
cat $out/seconds
/usr/bin/python3 test/slowest.py $build 10
finish
