#!/usr/bin/env bash
# Checks the rule of the stairs: a room of src/ may include itself and the rooms
# above it in src/layers.txt, nothing else. Speaks TAP, one case a room.
set -eu -o pipefail
cd "$(dirname "$0")/.."

mapfile -t rooms < <(grep -v '^#' src/layers.txt)
echo "1..$((${#rooms[@]} + 1))"
n=0
allowed=
for room in "${rooms[@]}"; do
    n=$((n + 1))
    allowed="$allowed${allowed:+|}$room"
    # Includes with a slash name a room; those with angle brackets are other people's.
    wrong=$(grep -rnE '^ *# *include "[a-z_]+/' "src/$room" --include='*.[ch]' |
        grep -vE "include \"($allowed)/" || true)
    if [ "$wrong" ]; then
        echo "not ok $n - $room looks only up the stairs"
        sed 's/^/# /' <<<"$wrong"
    else
        echo "ok $n - $room looks only up the stairs"
    fi
done
unlisted=$(find src -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | grep -vxE "$allowed" || true)
[ "$unlisted" ] && printf 'not ' && sed 's/^/# not in layers.txt: /' <<<"$unlisted" >&2
echo "ok $((n + 1)) - every room is listed"
