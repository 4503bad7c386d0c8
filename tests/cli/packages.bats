# What is installed by a package or unpacked from a tarball. Both take minutes, so they are made by `make check-long`.
load helpers

@test "the Debian package is built with what install-deps installs" {
    local name
    sed -n '/^Build-Depends:/,/^[A-Z].*:/p' "$HWNAS_SRC/debian/control" | tr ',' '\n' | sed -E 's/Build-Depends: *//; s/^ *//; s/ .*//' >wanted
    # debhelper brings the first of them.
    for name in $(sed -n '/^build_packages=(/,/)/p' "$HWNAS_SRC/scripts/install-deps" | tr -d '()' | sed 's/build_packages=//') libdnnl-dev; do
        case $name in gcc | make | autoconf | automake | libtool) continue ;; esac
        grep -qx "$name" wanted || { echo "debian/control lacks $name" && false; }
    done
}

@test "the Debian packages: lintian, and installed, run and purged in a copy of the root" {
    [ "${HWNAS_LONG:-}" ] || skip "takes minutes: make check-long"
    [ "$(id -u)" = 0 ] || skip "needs root"
    command -v dpkg-buildpackage dh lintian >/dev/null || skip "needs build-essential, debhelper and lintian"
    "$HWNAS_SRC/scripts/package" --test >said 2>&1 || { tail -n 40 said && false; }
    grep -q '^package: installed, run and purged: .*/hwnas_' said
}

@test "the tarball runs from wherever it is unpacked, with its own data and libraries" {
    local folder file
    [ "${HWNAS_LONG:-}" ] || skip "takes minutes: make check-long"
    command -v patchelf >/dev/null || skip "needs patchelf"
    file=$("$HWNAS_SRC/scripts/tarball" | tail -n 1)
    for folder in here "over there"; do
        mkdir "$folder"
        tar xzf "$HWNAS_SRC/$file" -C "$folder" --strip-components=1
        # Nothing of the machine but the C library and its loader.
        env -i ldd "$folder/bin/hwnas" | awk '$2 == "=>" { $1 = $2 = ""; print }' | sed 's/^ *//; s/ (0x.*//' |
            { ! grep -vE "^$PWD/$folder/(bin/\.\./)?lib/|/lib(c|m|dl|pthread|rt|resolv)\.so\.[0-9]+$"; }
        env -i HOME="$PWD" "$folder/bin/hwnas" space check nas_bench_201 | grep -F "$PWD/$folder/share/hwnas/search_spaces/"
        env -i HOME="$PWD" "$folder/bin/hwnas" profile mnist_mlp --seconds 0.05 --json >out
        is out "d['rows'][0]['p50_seconds'] > 0"
        grep -q '^The C library of the machine: glibc 2\.[0-9]* or newer$' "$folder/NEEDS"
        rm -rf "${folder:?}"
    done
}
