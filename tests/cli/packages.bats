# What is installed by a package or unpacked from a tarball. Both take minutes, so they are made by `make check-long`.
load helpers

@test "the Debian package is built with what install-deps installs" {
    local name
    sed -n '/^Build-Depends:/,/^[A-Z].*:/p' "$HWNAS_SRC/debian/control" | tr ',' '\n' | sed -E 's/Build-Depends: *//; s/^ *//; s/ .*//' >wanted
    # debhelper brings the first of them.
    sed -n '/^build_packages=(/,/)/p' "$HWNAS_SRC/scripts/install-deps" | tr -d '()' | sed 's/build_packages=//' >installed
    sed -n 's/^declare -A least=//p' "$HWNAS_SRC/scripts/install-deps" | grep -o '\[lib[a-z-]*' | tr -d '[' >newer
    [ "$(wc -l <newer)" -ge 2 ]
    for name in $(cat installed newer); do
        case $name in gcc | make | autoconf | automake) continue ;; esac
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

@test "the runner for 64-bit Arm boards: cross-built, installed through ssh's stand-in, and right under qemu" {
    local at=$PWD/home/.local/lib/hwnas-runner
    [ "${HWNAS_LONG:-}" ] || skip "takes minutes and fetches 27 MB: make check-long"
    command -v aarch64-linux-gnu-gcc qemu-aarch64-static >/dev/null || skip "needs gcc-aarch64-linux-gnu and qemu-user-static"
    "$HWNAS_SRC/scripts/build-runner" aarch64 >said 2>&1 || { tail -n 40 said && false; }
    # All that it loads is in it, by the names under which it is asked for.
    mkdir packed
    tar xzf "$HWNAS_SRC/runners/hwnas-runner-aarch64.tar.gz" -C packed
    for file in packed/lib/*; do
        aarch64-linux-gnu-readelf -h "$file" | grep -q 'Machine: *AArch64'
        aarch64-linux-gnu-readelf -d "$file" | sed -nE 's/.*NEEDED.*\[(.*)\]/\1/p' | while read -r name; do [ -e "packed/lib/$name" ]; done
    done
    # Here its loader is started by qemu, as the processor of a Raspberry Pi 4.
    mv packed/lib/ld-linux-aarch64.so.1 packed/lib/loader
    printf '#!/bin/sh\nexec qemu-aarch64-static -cpu cortex-a72 "${0%%/*}/loader" "$@"\n' >packed/lib/ld-linux-aarch64.so.1
    chmod +x packed/lib/ld-linux-aarch64.so.1
    tar czf emulated.tar.gz -C packed .
    mkdir home
    printf '#!/bin/sh\nfor last; do :; done\nHOME=%s exec sh -c "$last"\n' "'$PWD/home'" >ssh
    chmod +x ssh
    export HWNAS_SSH=$PWD/ssh
    ends 0 runner install ssh:pi --file emulated.tar.gz --json
    is out "d['isa'] == 'ASIMD' and d['library'].startswith('oneDNN 3.') and d['runner'] == 'hwnas $("$HWNAS" version --json | /usr/bin/python3 -c 'import json, sys
print(json.load(sys.stdin)["hwnas"])'), a runner'"
    # The results, against plain C there; the times are qemu's, and mean nothing.
    ends 0 profile mnist_mlp mnist_cnn cifar10_cnn lstm_text_generation resnet32_cifar --device ssh:pi \
        --threads 1 --verify --seconds 0.05 --json
    is out "all(r['status'] == 'ok' and r['verified_error'] < 1e-5 for r in d['rows'])"
    # A precision that is not known to be right there is refused.
    ends 1 profile mnist_mlp --device ssh:pi --dtype s8 --json
    is out "'s8 is switched off on Arm' in d['rows'][0]['message']"
}
