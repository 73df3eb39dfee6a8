#!/bin/sh
# The packages of Debian: build.sh PROGRAM OUTPUT-DIRECTORY
# Prints the paths of symloom-dbgsym_<version>_<architecture>.deb, the debug information of the program, and of
# symloom_<version>_<architecture>.deb. Everything in them is made of the program and of the files beside this one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
deploy=${here%/*}
program=$(realpath "$1")
mkdir -p "$2"
out=$(cd "$2" && pwd)
version=$("$program" version | sed 's/^symloom //')
arch=$(dpkg --print-architecture)
root=$out/root
symbols=$out/symbols
epoch=${SOURCE_DATE_EPOCH:-$(stat -c %Y "$program")}
export SOURCE_DATE_EPOCH="$epoch"
umask 022
rm -rf "$root" "$symbols"
mkdir -p "$root/DEBIAN" "$root/etc/symloom" "$root/usr/bin" "$root/usr/lib/sysusers.d" "$root/lib/systemd/system" \
    "$root/usr/share/man/man1" "$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions" \
    "$root/usr/share/fish/vendor_completions.d" "$root/usr/share/doc/symloom" "$root/usr/share/lintian/overrides"

strip --remove-section=.comment --remove-section=.note -o "$root/usr/bin/symloom" "$program"
chmod 0755 "$root/usr/bin/symloom"
ln -s symloom "$root/usr/bin/symbolicator" # deployments call it as /bin/symbolicator
install -m 644 "$deploy/systemd/symloom.service" "$deploy/systemd/symloom.socket" "$root/lib/systemd/system/"
install -m 644 "$deploy/systemd/sysusers.conf" "$root/usr/lib/sysusers.d/symloom.conf"
install -m 644 "$deploy/systemd/config.yml" "$root/etc/symloom/config.yml"
"$program" man --all "$root/usr/share/man/man1"
gzip -9n "$root"/usr/share/man/man1/*.1
ln -s symloom.1.gz "$root/usr/share/man/man1/symbolicator.1.gz"
"$program" completion bash >"$root/usr/share/bash-completion/completions/symloom"
"$program" completion zsh >"$root/usr/share/zsh/vendor-completions/_symloom"
"$program" completion fish >"$root/usr/share/fish/vendor_completions.d/symloom.fish"
install -m 644 "$here/copyright" "$root/usr/share/doc/symloom/copyright"
install -m 644 "$deploy"/../doc/*.md "$root/usr/share/doc/symloom/"
install -m 644 "$here/lintian-overrides" "$root/usr/share/lintian/overrides/symloom"
"$deploy/release/changelog.py" debian "$version" | gzip -9n >"$root/usr/share/doc/symloom/changelog.gz"

echo /etc/symloom/config.yml >"$root/DEBIAN/conffiles"
for script in postinst prerm postrm; do install -m 755 "$here/$script" "$root/DEBIAN/$script"; done
# dpkg-shlibdeps wants a source package around it
mkdir -p "$out/shlibs/debian"
printf 'Source: symloom\n\nPackage: symloom\nArchitecture: any\n' >"$out/shlibs/debian/control"
depends=$(cd "$out/shlibs" && dpkg-shlibdeps -O "$root/usr/bin/symloom" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
depends="$depends, libcurl4 (>= 7.87)" # loaded when it is needed: service/fetch/libcurl.c
size=$(du -sk --exclude=DEBIAN "$root" | cut -f1)
sed -e "s/@VERSION@/$version/; s/@ARCH@/$arch/; s/@SIZE@/$size/; s/@DEPENDS@/$depends/" "$here/control" >"$root/DEBIAN/control"

# Programs find it by the build id of the stripped one, as in the -dbgsym packages of Debian: dh_strip(1)
build_id=$(readelf -n "$program" | sed -n 's/^ *Build ID: //p')
[ -n "$build_id" ] || { echo "$program has no build id: link it with --build-id" >&2; exit 1; }
rest=${build_id#??}
debug=$symbols/usr/lib/debug/.build-id/${build_id%"$rest"}/$rest.debug
mkdir -p "$symbols/DEBIAN" "${debug%/*}" "$symbols/usr/share/doc"
objcopy --only-keep-debug --compress-debug-sections "$program" "$debug"
chmod 0644 "$debug"
ln -s symloom "$symbols/usr/share/doc/symloom-dbgsym"
size=$(du -sk --exclude=DEBIAN "$symbols" | cut -f1)
sed -e "s/@VERSION@/$version/; s/@ARCH@/$arch/; s/@SIZE@/$size/; s/@BUILD_ID@/$build_id/" "$here/control-dbgsym" \
    >"$symbols/DEBIAN/control"

pack() { # ROOT NAME: prints the path of the package
    (cd "$1" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$1/DEBIAN/md5sums"
    find "$1" -newermt "@$epoch" -exec touch -hd "@$epoch" {} +
    dpkg-deb --root-owner-group -Zxz --build "$1" "$out/$2_${version}_$arch.deb" >/dev/null
    echo "$out/$2_${version}_$arch.deb"
}
pack "$symbols" symloom-dbgsym
pack "$root" symloom
