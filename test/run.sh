#!/bin/sh
# Everything CI checks. Prints "N passed, N failed" alone on its last line; status 0 when nothing failed.
set -u
cd "$(dirname "$0")/.." || exit 2
passed=0 failed=0
build=build-test

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

echo "==> against llvm-symbolizer"
symloom=$build/service/cli/symloom
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check "fixtures" sh test/differential/fixtures.sh "$work"
for file in "$work"/*.elf; do
    check "agrees on ${file##*/}" test/differential/compare.py --symloom $symloom --count 2000 "$file"
done
libc=$(find /usr/lib/debug/.build-id -name '*.debug' -size +2M | head -1)
for file in $symloom $libc; do
    check "agrees on ${file##*/}" test/differential/compare.py --symloom $symloom --count 10000 "$file"
done

echo "==> the house"
check "include arrows" test/check_arrows.sh
check "format" sh -c 'git ls-files "*.c" "*.h" "*.cc" | xargs clang-format-14 --dry-run -Werror 2>&1 | head -40; git ls-files "*.c" "*.h" "*.cc" | xargs clang-format-14 --dry-run -Werror >/dev/null 2>&1'
finish
