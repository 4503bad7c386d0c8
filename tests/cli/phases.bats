# A language model is judged in both phases, of one trial: each is a network of its own with the same
# choices.
load helpers

setup() {
    cd "$BATS_TEST_TMPDIR" || return
    space=llama:vocabulary=100,prompt=8,context=16
    alone
}

# says TEXT...: the last command did.
says() {
    local text
    for text in "$@"; do
        grep -qF -- "$text" out err || {
            echo "nobody said $text:"
            cat out err
            return 1
        }
    done
}

# Bytes of the cache and MACs by hand: width e, h heads and g groups of 64, the sum f of the inner widths,
# 100 words; 8 tokens are read, or one after 16 (tests/unit/test_sequences.c has the formula).
check_counts() {
    /usr/bin/python3 - "$1" <<'END'
import json, re, sys
trials = json.load(open(sys.argv[1]))["front"]
assert trials
for t in trials:
    code = dict(p.split("=") for p in t["arch"].split(","))
    e, n, h, g = (int(code[k]) for k in ("embed", "layers", "heads", "groups"))
    f = sum(map(int, code["inner"].split(".")[:n]))
    products = n * (2 * e * 64 * h + 2 * e * 64 * g) + 3 * e * f + 100 * e
    m = t["objectives"]
    si = {"M": 1e6, "k": 1e3, "MiB": 2**20, "KiB": 2**10, "ms": 1e-3, "/s": 1}
    value = lambda name: m[name]["value"] * si[m[name]["unit"]]
    assert round(value("memory.cache")) == n * 2 * 16 * 64 * g * 4
    assert round(value("prefill.macs")) == 8 * products + n * 2 * 8 * 8 * 64 * h
    assert round(value("decode.macs")) == products + n * 2 * 17 * 64 * h
    assert value("time-to-first-token") == value("prefill.latency.p50")
    assert abs(value("tokens/s") * value("decode.latency.p50") - 1) < 1e-9
    assert m["decode.latency.p50"]["source"] == m["prefill.latency.p50"]["source"] == "measured"
    assert "latency.p50" not in m
END
}

@test "one trial measures both phases of a network" {
    ends 0 search --space $space --device null --objectives time-to-first-token,tokens/s \
        -c 'memory.cache <= 8 MiB and decode.macs <= 60 M' --trials 6 --study s.db --json
    check_counts out
    ends 0 study show s.db
    says 'first token'
    says 'prefill = null'
    says 'decode = null'
    ends 0 search --space $space --device null --objectives time-to-first-token,tokens/s \
        -c 'memory.cache <= 8 MiB and decode.macs <= 60 M' --trials 8 --study s.db --resume
    ends 2 search --space $space --device null --objectives prefill.latency,tokens/s --trials 8 --study s.db --resume
    says 'another'
}

@test "what is measured is verified in both phases, and its command measures it again" {
    ends 0 search --space $space --device cpu --objectives time-to-first-token,tokens/s \
        -c 'decode.macs <= 20 M' --trials 2 --seconds 0.2 --study s.db
    says 'against ref'
    ends 0 study show s.db --json
    grep -q 'llama:vocabulary=100,prompt=8,context=16,phase=decode' out
    grep -q 'llama:vocabulary=100,prompt=8,context=16,phase=prefill' out
}

@test "the winner is written in each phase that the goals name" {
    local inputs
    # A small one, of 37 MB: it is written twice, and read again.
    ends 0 search --space $space --device null --objectives time-to-first-token,tokens/s -c 'memory.cache <= 8 MiB and decode.macs <= 20 M' \
        --trials 2 --study s.db --onnx best.onnx --pytorch best.py --yaml best.yaml
    says best.onnx best-decode.onnx best.py best-decode.py best.yaml
    # prefill is what the settings say.
    [ "$(echo best*)" = "best-decode.onnx best-decode.py best.onnx best.py best.yaml" ]
    inputs=$(/usr/bin/python3 -c "import onnx; print([i.name for i in onnx.load('best-decode.onnx').graph.input if 'past' in i.name][:2])")
    [[ $inputs == *past_key*past_* ]]
    ends 0 profile best.onnx best-decode.onnx --device null --seconds 0.02 --json
    [ "$(json out "d['rows'][0]['macs'] > 4 * d['rows'][1]['macs']")" = True ]
    ends 2 search --space $space --device null --objectives time-to-first-token,tokens/s --trials 2 --study t.db --onnx two.onnx --yaml two-decode.onnx
    says 'written over the other export'
    # It is seen before the search that a file cannot be written.
    mkdir other-decode.onnx
    ends 1 search --space $space --device null --objectives time-to-first-token,tokens/s --trials 2 --study t.db --onnx other.onnx
    says other-decode.onnx
    [ ! -e t.db ]
}

@test "a phase that the space does not have is refused, with those that it has" {
    ends 2 search --space $space --device null --objectives encode.latency --trials 2
    says 'no phase '\''encode'\'''
    says 'prefill, decode'
    ends 2 search --space nas_bench_201 --device null --objectives tokens/s --trials 2
    says 'no phase '\''decode'\'''
    says 'docs/search-spaces.md'
    ends 2 search --space $space --device "replay:$HWNAS_SRC/tests/data/nas_bench_201_latency.csv#raspi4_ms" \
        --objectives decode.latency --trials 2
    says 'none for its phase '\''decode'\'''
}

@test "phases set settings that there are, to values that these may have" {
    sed 's/{phase: decode}/{phase: decoding}/' "$HWNAS_SRC/search_spaces/llama.yaml" >a.yaml
    ends 2 space check a.yaml
    says 'a.yaml:29:' 'cannot be '\''decoding'\''' 'prefill, decode'
    sed 's/{phase: decode}/{fase: decode}/' "$HWNAS_SRC/search_spaces/llama.yaml" >b.yaml
    ends 2 space check b.yaml
    says 'b.yaml:29:' 'no setting '\''fase'\''' 'did you mean '\''phase'\'''
}

@test "weights of 4 and 8 bits are a choice" {
    ends 0 search --space $space --device cpu --threads 1 --accuracy proxy:log-params \
        --dtype '{values: [f32, w8, w4]}' --objectives accuracy,tokens/s -c 'decode.macs <= 12 M' --strategy random --trials 9 --seconds 0.02 \
        --study s.db --json
    is out "d['failed'] == 0 and d['finished'] == 9"
    ends 0 study export s.db --format csv
    for dtype in f32 w8 w4; do
        grep -q ",dtype=$dtype" out
    done
}
