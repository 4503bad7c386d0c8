# The table of latencies as users meet it: calibrate, its cache, and searches that it spares measurements.
load helpers

CACHE=hwnas/latency-2.db

networks() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["table"]["networks"])' "$1"
}

@test "calibrate fills the cache, and goes on with it" {
    ends 0 calibrate nas_bench_macro --device null --minutes 0.02 --json
    is out "d['measured'] >= 1 and d['table']['networks'] <= d['measured']"
    [ -s "$XDG_CACHE_HOME/$CACHE" ]
    local before
    before=$(networks out)
    ends 0 calibrate nas_bench_macro --device null --minutes 0.01 --seed 1 --json
    [ "$(networks out)" -ge "$before" ]
    ends 0 calibrate nas_bench_macro --device null --minutes 0.01 --seed 2
    says out 'the table has'
}

@test "interrupted, calibrate keeps and prints what it has, with exit code 130" {
    "$HWNAS" calibrate nas_bench_macro --device null --minutes 5 --json >out 2>err &
    local pid=$! code=0
    for _ in $(seq 300); do [ -s "$XDG_CACHE_HOME/$CACHE" ] && break; sleep 0.1; done
    sleep 0.5
    kill -INT $pid
    wait $pid || code=$?
    [ $code -eq 130 ]
    says err 'interrupted; what was measured is in the table'
    is out "d['failed'] == 0"
    is out "(d['held_out']['within_5'] is None) == (d['held_out']['networks'] == 0)"
    local before
    before=$(networks out)
    ends 0 calibrate nas_bench_macro --device null --minutes 0.005 --json
    [ "$(networks out)" -ge "$before" ]
}

@test "two at once share the cache, and nothing of either is lost" {
    "$HWNAS" calibrate nas_bench_macro --device null --minutes 0.02 --json >a 2>a.err &
    "$HWNAS" calibrate nas_bench_macro --device null --minutes 0.02 --seed 5 --json >b 2>b.err
    wait
    [ ! -s a.err ] && [ ! -s b.err ]
    ends 0 calibrate nas_bench_macro --device null --minutes 0.005 --json
    [ "$(networks out)" -gt $(($(networks a) + $(networks b) - 1)) ]
}

@test "a cache that is damaged or cut short is put aside and said so" {
    ends 0 calibrate nas_bench_macro --device null --minutes 0.01
    local file=$XDG_CACHE_HOME/$CACHE size
    size=$(stat -c %s "$file")
    truncate -s $((size / 2)) "$file"
    ends 0 calibrate nas_bench_macro --device null --minutes 0.01
    says err 'note: *latency-2.db is damaged, cut short'
    [ "$(stat -c %s "$file".damaged-*[0-9])" -eq $((size / 2)) ]
    ends 0 calibrate nas_bench_macro --device null --minutes 0.01
    [ ! -s err ]
}

@test "without a place for a cache it goes on" {
    XDG_CACHE_HOME=/proc/none ends 0 calibrate nas_bench_macro --device null --minutes 0.01
    says err 'going on without the shared table'
}

@test "what calibrate cannot do" {
    refuses 2 "nowhere" calibrate nowhere
    refuses 2 "--minutes" calibrate nas_bench_macro --minutes 0
    refuses 2 "no precision 'f31'" calibrate nas_bench_macro --dtype f31
    refuses 2 "no device 'cup'" calibrate nas_bench_macro --device cup
}

@test "a front is measured, whatever was estimated" {
    ends 0 search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --device null \
        --objectives 'accuracy, latency' --strategy random --trials 120 --seconds 0.02 --study s.db --json
    is out "all(r['objectives']['latency.p50']['source'] == 'measured' for r in d['front'])"
    is out "d['finished'] == 120 and 0 <= d['estimated'] < 110"
    ends 0 search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --device null --estimate off \
        --objectives 'accuracy, latency' --strategy random --trials 40 --seconds 0.02 --study t.db --json
    is out "d['estimated'] == 0"
    refuses 2 "estimate is auto, bold or off, not 'maybe'" search --space nas_bench_macro --device null \
        --objectives latency --estimate maybe
}
