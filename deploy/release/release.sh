#!/bin/sh
# Makes a release of the commit that is checked out.
#
#   release.sh check                    says why there can be none, with status 1
#   release.sh make PROGRAM BUILD OUT   writes everything into the directory OUT, and the tag; BUILD is where PROGRAM was built
#
# The files are the same each time they are made of the same commit with the same tools. The tag is made last.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=${here%/*/*}

fail() {
    echo "release: $*" >&2
    exit 1
}

commit_of_tag() {
    git -C "$top" rev-parse --quiet --verify "refs/tags/$tag^{commit}" || true
}

version=$(sed -n "2s/^ *version: '\(.*\)',$/\1/p" "$top/meson.build")
[ -n "$version" ] || fail "line 2 of meson.build has no version"
tag=v$version
commit=$(git -C "$top" rev-parse HEAD) || fail "there is no commit"
[ -z "$(git -C "$top" status --porcelain)" ] || fail "there are changes that are not committed: git status"
"$here/changelog.py" check "$version" || fail "CHANGELOG.md is not ready for $version"
tagged=$(commit_of_tag)
[ -z "$tagged" ] || [ "$tagged" = "$commit" ] || fail "$tag is there already, and is another commit: $tagged"

case ${1:-} in
check) exit 0 ;;
make) ;;
*) fail "usage: release.sh check, or release.sh make PROGRAM BUILD-DIRECTORY OUTPUT-DIRECTORY" ;;
esac
program=$(realpath "$2") build=$(realpath "$3")
built=$("$program" version --verbose | sed -n 's/^commit //p')
[ "$("$program" version)" = "symloom $version" ] || fail "$program is $("$program" version), not $version"
[ "${commit#"$built"}" != "$commit" ] || fail "$program was built from commit $built, not $commit"

SOURCE_DATE_EPOCH=$(git -C "$top" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
rm -rf "$4"
mkdir -p "$4"
out=$(cd "$4" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git -C "$top" archive --format=tar --prefix="symloom-$version/" "$commit" | gzip -9n >"$out/symloom-$version.tar.gz"
"$top/deploy/debian/build.sh" "$program" "$work" >/dev/null
mv "$work"/*.deb "$out"
"$here/sbom.py" "$program" "$build" >"$out/symloom-$version.spdx.json"
"$here/changelog.py" notes "$version" >"$out/symloom-$version.md"
(cd "$out" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
[ -n "$tagged" ] || git -C "$top" tag --annotate "$tag" --message "symloom $version" "$commit"
ls "$out" | sed "s|^|$out/|"
