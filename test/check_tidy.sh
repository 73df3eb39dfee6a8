#!/bin/sh
# What clang-tidy finds in lib and service (.clang-tidy): check_tidy.sh BUILD [--analyze]. Its analyzer, which takes an hour of CPU time,
# runs with --analyze alone (./x tidy). Prints the findings; status 1 if there is one.
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# clang knows gcc's warnings by other names, and has its headers of sanitizers in a package of their own.
sed 's/-Wshadow=local//; s/-Werror//; s/-fsanitize=[a-z,]*//' "$1/compile_commands.json" >"$work/compile_commands.json"
checks=-clang-analyzer-*
[ "${2:-}" != --analyze ] || checks=
find lib service -name '*.c' -print0 |
    xargs -0 -P "$(nproc)" -n 20 clang-tidy-14 -p "$work" --quiet --checks="$checks" 2>"$work/errors" || { cat "$work/errors"; exit 1; }
