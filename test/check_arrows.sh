#!/bin/sh
# The arrows of the house, read off the includes. Prints every include that goes the wrong way; status 1 if there is one.
cd "$(dirname "$0")/.." || exit 2
bad=0
deny() { # FOLDER PATTERN
    found=$(grep -rnE "^ *# *include *[<\"]($2)" "$1" --include='*.[ch]' --include='*.cc' 2>/dev/null)
    [ -z "$found" ] || { printf '%s\n' "$found"; bad=1; }
}
deny lib '(uv\.h|curl/|llhttp|hiredis|pthread|sys/socket|json-c|core/|config/|http/|fetch/|origin/|cache/|kinds/|search/|symbfile_store/|transcode/|api/|cli/)'
for folder in table id function demangle pdb ppdb source symbfile object go btf dwarf symcache unwind crash apple minidump jvm js; do deny lib/base "$folder/"; done
deny lib/table '(id|object|function|pdb|ppdb|source|dwarf|symcache|breakpad|symbfile|unwind|demangle)/'
deny lib/id '(object|function|dwarf|symcache|demangle)/'
deny lib/function '(object|dwarf|symcache|demangle)/'
deny lib/source '(object|pdb|dwarf|symcache|demangle)/'
deny lib/ppdb '(object|pdb|dwarf|symcache|demangle)/'
deny lib/pdb '(object|dwarf|symcache|demangle)/'
deny lib/object '(go|btf|dwarf|symcache|demangle|unwind)/'
deny lib/go '(dwarf|symcache|demangle|unwind|symbfile|breakpad|pdb|ppdb)/'
deny lib/btf '(go|dwarf|symcache|demangle|unwind|symbfile|breakpad|pdb|ppdb)/'
deny lib/dwarf 'symcache/'
deny lib/unwind '(function|dwarf|symcache|breakpad|demangle)/'
deny lib/crash '(apple|minidump|dwarf|symcache|breakpad|demangle|unwind|pdb|ppdb)/'
deny lib/minidump '(apple|dwarf|symcache|breakpad|demangle|pdb|ppdb)/'
deny lib/jvm '(object|function|pdb|ppdb|source|dwarf|symcache|breakpad|symbfile|unwind|demangle|crash|apple|minidump)/'
deny lib/js '(object|pdb|ppdb|dwarf|symcache|breakpad|symbfile|unwind|demangle|crash|apple|minidump|jvm)/'
deny lib/disasm '(pdb|ppdb|source|dwarf|symcache|breakpad|symbfile|unwind|demangle|crash|apple|minidump|jvm|js)/'
deny lib/jit '(pdb|ppdb|source|dwarf|symcache|symbfile|unwind|demangle|crash|apple|minidump|jvm|js)/'
deny lib/apple '(minidump|dwarf|symcache|breakpad|demangle|unwind|pdb|ppdb)/'
deny service/core '(tls|redis|http|fetch|objectstore|origin|config|cache|kinds|search|symbfile_store|transcode|api|cli)/'
deny service/tls '(core|redis|http|fetch|objectstore|origin|config|cache|kinds|search|symbfile_store|transcode|api|cli)/'
deny service/redis '(http|fetch|objectstore|origin|config|cache|kinds|search|symbfile_store|transcode|api|cli)/'
deny service/http '(fetch|objectstore|origin|config|cache|kinds|search|symbfile_store|transcode|api|cli)/'
deny service/fetch '(http|objectstore|origin|config|cache|kinds|search|symbfile_store|transcode|api|cli)/'
deny service/objectstore '(http|origin|config|cache|store|kinds|search|symbfile_store|transcode|api|cli)/'
deny service/origin '(http|config|cache|kinds|search|symbfile_store|transcode|api|cli)/'
deny service/cache '(http|kinds|search|symbfile_store|transcode|api|cli)/'
deny service/kinds '(http|store|api|cli)/'
for file in service/kinds/*.[ch]; do # its list of all kinds lies above the folders that have some
    [ "$file" = service/kinds/kinds.c ] || deny "$file" '(search|symbfile_store|transcode)/'
done
deny service/search '(http|store|symbfile_store|transcode|api|cli)/'
deny service/symbfile_store '(http|search|transcode|api|cli)/'
deny service/transcode '(http|store|symbfile_store|api|cli)/'
for folder in search symbfile_store transcode; do deny "service/$folder" 'kinds/kinds\.h'; done
deny service/store '(http|kinds|search|symbfile_store|transcode|api|cli)/'
deny service/symbfile_store 'store/store\.h'
deny service/api 'cli/'
# A folder's private header is its own.
for header in object/impl.h object/elf.h object/macho.h object/pe.h object/breakpad.h object/breakpad_reader.h \
    object/breakpad_scan.h breakpad/impl.h jit/impl.h pdb/impl.h pdb/srcsrv.h ppdb/impl.h ppdb/format.h dwarf/impl.h dwarf/constants.h go/impl.h btf/impl.h symcache/build.h symcache/format.h demangle/llvm.h demangle/microsoft.h demangle/microsoft_tree.h unwind/impl.h unwind/dwarf.h unwind/pe.h unwind/cfi_format.h unwind/walk_impl.h apple/impl.h disasm/impl.h disasm/effects_impl.h minidump/impl.h minidump/facts_impl.h js/read.h js/scope_impl.h js/smformat.h js/smwrite.h js/vlq.h jvm/format.h jvm/members.h jvm/numbers.h \
    config/impl.h http/impl.h fetch/impl.h objectstore/impl.h origin/impl.h cache/impl.h kinds/impl.h search/impl.h symbfile_store/impl.h symbfile_store/bucket.h store/impl.h api/impl.h api/uploads/uploads.h api/symbfile/symbfile.h api/jvm/jvm.h api/js/js.h \
    cli/bundle/bundle.h cli/dump_syms/dump_syms.h cli/inspect/inspect.h cli/inspect/minidump.h cli/lookup/lookup.h cli/push_symbols/push.h cli/sort/sort.h cli/stress/stress.h cli/symbolicate/answer.h cli/symbolicate/artifacts.h cli/symbolicate/dump_json.h cli/symbolicate/dump_print.h cli/symbolicate/print_analysis.h cli/symbolicate/remote.h cli/symbolicate/request.h cli/symbolicate/sentry.h cli/symbolicate/symbolicate.h cli/symbolicate/table.h; do
    found=$(grep -rn "include \"$header\"" lib service --include='*.[ch]' --include='*.cc' | grep -v "^[a-z]*/${header%/*}/")
    [ -z "$found" ] || { printf '%s\n' "$found"; bad=1; }
done
# An API is its own folder's business, but for jobs and native symbolication, which others are built on.
for family in service/api/*/; do
    name=$(basename "$family")
    case $name in jobs | native) continue ;; esac
    found=$(grep -rn "include \"api/$name/" service --include='*.[ch]' | grep -v "^$family")
    [ -z "$found" ] || { printf '%s\n' "$found"; bad=1; }
done
exit $bad
