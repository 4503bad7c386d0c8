#!/bin/sh
# A runner for hwnas in shell: it has a benchmark program run each network, and reads the latency
# that the program prints.
#
#     hwnas profile mobilenet_v2 --device 'runner:sh printed_numbers.sh benchmark_app'
#
# The word behind it names one of the functions below: OpenVINO's benchmark_app, TensorRT's trtexec, or
# a program on a phone that adb reaches. Change one, or add yours: it gets the ONNX file and the
# seconds that it may take, and prints latencies in milliseconds, one a line: the more, the better the
# interval. docs/runner-protocol.md tells the protocol.
set -u

use_benchmark_app() { # FILE SECONDS
    for _ in 1 2 3 4 5 6; do # it prints one median each time; an interval needs six
        benchmark_app -m "$1" -t "$(awk "BEGIN {print int($2 / 6) + 1}")" -hint latency -api sync
    done | sed -n 's/^\[ INFO \] *Median: *\([0-9.]*\) ms.*/\1/p'
}

use_trtexec() { # it writes the times of all runs
    trtexec --onnx="$1" --duration="$(awk "BEGIN {print int($2) + 1}")" --exportTimes="$work/times.json" >&2 &&
        grep -o '"latencyMs" *: *[0-9.]*' "$work/times.json" | sed 's/.* //'
}

use_adb() { # the program there is yours; it prints a line for each run
    adb push "$1" /data/local/tmp/network.onnx >&2 &&
        adb shell "/data/local/tmp/benchmark --model=/data/local/tmp/network.onnx --seconds=$2" |
        sed -n 's/^latency_ms: *\([0-9.]*\).*/\1/p'
}

program=${1:-benchmark_app}
command -v "use_$program" >/dev/null || { echo "there is no function use_$program" >&2; exit 2; }
name="$program on $(uname -n)"

work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT

# Bytes of a number, the lowest first.
little_endian() { # NUMBER BYTES
    number=$1 left=$2
    while [ "$left" -gt 0 ]; do
        printf "\\$(printf %03o $((number % 256)))"
        number=$((number / 256)) left=$((left - 1))
    done
}

send() { # TYPE PAYLOAD, which has ASCII letters alone
    printf hwn1
    little_endian "$1" 4
    little_endian ${#2} 8
    printf %s "$2"
}

# Sets kind, and writes the payload to a file; false: the search has ended.
receive() { # FILE
    dd bs=1 count=16 2>/dev/null >"$work/head"
    # shellcheck disable=SC2046
    set -- "$1" $(od -An -v -tu1 "$work/head")
    [ $# = 17 ] || return 1
    kind=$6
    head -c $((${10} + 256 * (${11} + 256 * (${12} + 256 * ${13})))) >"$1"
}

number() { # KEY: the number of that name in the request
    sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" "$work/request"
}

fail() { # STATUS MESSAGE
    send 5 "{\"status\": \"$1\", \"message\": \"$2\"}"
}

measure() {
    send 4 measuring
    "use_$program" "$work/network.onnx" "$(number max_seconds)" >"$work/times" </dev/null ||
        { fail unsupported "the benchmark cannot run this network"; return; }
    seconds=$(LC_ALL=C awk '$1 > 0 {printf "%s%.9g", n++ ? ", " : "", $1 / 1000}' "$work/times")
    [ "$seconds" ] || { fail unsupported "the benchmark has printed no latency"; return; }
    send 7 "{\"seconds\": [$seconds]}"
    send 5 '{"status": "ok"}'
}

while receive "$work/request"; do
    case $kind in
    1) send 5 "{\"status\": \"ok\", \"info\": {\"protocol\": 1, \"name\": \"$name\", \"native\": [\"f32\"]}}" ;;
    2) receive "$work/network.onnx" && measure ;;
    esac # 8, STOP, needs no answer
done
