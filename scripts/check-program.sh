#!/usr/bin/env bash
# Checks that the program stands on the public library alone, as any other program does: what src/cli/ includes, and
# what its objects, in the directory that this is called in, refer to. Speaks TAP.
set -eu -o pipefail
build=$PWD
cd "$(dirname "$0")/.."

# The system's, jansson and libmicrohttpd.
standard='arpa/inet assert ctype errno fcntl float getopt inttypes jansson limits math microhttpd netinet/in pthread signal stdarg stdbool stddef stdint stdio stdlib string sys/ioctl sys/mman sys/prctl sys/random sys/resource sys/socket sys/stat sys/wait time unistd'

tell() { # tell NUMBER WHAT: nothing is in standard input
    local wrong
    wrong=$(cat)
    [ -z "$wrong" ] || printf 'not '
    echo "ok $1 - $2"
    [ -z "$wrong" ] || sed 's/^/# /' <<<"$wrong"
}

echo 1..2
grep -HnoE '^ *# *include .*' src/cli/*.[ch] |
    grep -vE ':[0-9]+: *# *include ("cli/[a-z_]+\.h"|<hwnas(/[a-z]+)?\.h>|<('"${standard// /|}"')\.h>)' |
    tell 1 'the program includes the public headers' || true
# What they refer to, without what they define themselves and what the library exports.
nm -u "$build"/src/cli/*.o | grep -oE '\bhwnas_[a-z0-9_]+' | sort -u |
    comm -23 - <(nm --defined-only "$build"/src/cli/*.o | grep -oE '\bhwnas_[a-z0-9_]+' | sort -u) |
    comm -23 - <(sort -u "$build/src/hwnas.sym") |
    tell 2 'the program calls what the library exports'
