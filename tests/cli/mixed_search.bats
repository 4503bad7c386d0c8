# A search whose networks have a precision for each layer: dtype: {per: layer, values: [f32, s8]}.
load helpers

NET="--space nas_bench_macro --accuracy nas_bench_macro_cifar10"
LIMIT=2

# search_mixed ARGUMENT...: such a search on cpu.
search_mixed() {
    ends 0 search $NET --device cpu --objectives accuracy,latency --seconds 0.05 --estimate off --confirm 0 --ties 0 --study s.db \
        --dtype '{per: layer, values: [f32, s8]}' --max-error $LIMIT "$@"
}

@test "each trial keeps its choice, within the limit; the winner's file has it, and computes so in ONNX Runtime" {
    search_mixed --trials 3 --onnx best.onnx
    says out "*, mixed
*layers      trial *layers in s8, the others in f32, largest difference from f32 * of the largest output on random inputs (limit $LIMIT %)*"
    says err "*best.onnx*is in s8 (QDQ) in * of * layers*"
    "$HWNAS" study trials s.db --json >trials
    is trials 'len(d["trials"]) == 3 and all(
        m["max_error"] == 0.02 and 0 <= m["mixed_error"] <= 0.02 and m["floats"] == "f32" and set(m["layers"]) <= set("sf") and
        len(m["layers"]) == m["n_layers"] and m["layers"].count("s") == m["layers_in_s8"]
        for t in d["trials"] for m in t["measurement"]["mix"].values())'
    is trials 'all(t["objectives"]["accuracy"]["source"] == "predicted-int8" and "--dtype mixed --max-error 2" in t["measurement"]["command"] for t in d["trials"])'
    ends 0 study show s.db --json
    is out 'd["job"]["dtype"] == "mixed" and d["job"]["max-error"] == 2 and d["verified"]["networks"] == len(d["front"])'
    cp out front
    # What is written later is the same file.
    ends 0 export s.db --format onnx --out later.onnx
    cmp best.onnx later.onnx
    need onnx numpy
    /usr/bin/python3 - <<'END'
import json, onnx
graph = onnx.load("best.onnx").graph
by_output = {o: n for n in graph.node for o in n.output}
in_bytes = "".join("s" if n.input[1] in by_output and by_output[n.input[1]].op_type == "DequantizeLinear" else "f"
                   for n in graph.node if n.op_type in ("Conv", "Gemm", "MatMul"))
front = json.load(open("front"))
[winner] = [t for t in front["front"] if t["trial"] == front["winner"]["trial"]]
assert in_bytes == winner["measurement"]["mix"]["cpu"]["layers"], (in_bytes, winner)
END
    local peer=$HWNAS_SRC/tests/peers/ort_run.mjs
    node "$peer" version >/dev/null 2>&1 || skip "ONNX Runtime is not installed"
    # Of other random inputs than those that chose, so not by the limit exactly.
    ends 0 export --space nas_bench_macro --arch "$(json front '[t["arch"] for t in d["front"] if t["trial"] == d["winner"]["trial"]][0]')" \
        --format onnx --out f32.onnx
    node "$peer" input f32.onnx in.bin
    node "$peer" run f32.onnx in.bin f32.bin
    node "$peer" run best.onnx in.bin mixed.bin
    /usr/bin/python3 - <<'END'
import numpy as np
a, b = np.fromfile("f32.bin", "f4"), np.fromfile("mixed.bin", "f4")
error = abs(a - b).max() / abs(a).max()
assert 0 < error < 0.06, error
END
}

@test "the dry run knows it, a search is continued with it, and not with another limit" {
    search_mixed --trials 2 --dry-run
    says out "*dtype mixed, largest error 2 %*"
    search_mixed --trials 2
    "$HWNAS" study trials s.db --json >before
    search_mixed --trials 3 --resume
    "$HWNAS" study trials s.db --json >after
    is after 'len(d["trials"]) == 3 and "mix" in d["trials"][2]["measurement"]'
    is after "[t['measurement']['mix'] for t in d['trials'][:2]] == $(json before '[t["measurement"]["mix"] for t in d["trials"]]')"
    refuses 2 "*max-error: this study was made with 2*not 3*" search $NET --device cpu --objectives accuracy,latency --study s.db --resume --trials 4 \
        --dtype mixed --max-error 3
    refuses 2 "*dtype: this study was made with*" search $NET --device cpu --objectives accuracy,latency --study s.db --resume --trials 4 --dtype s8
}

@test "beside whole precisions it is one more value, and one network measured for each" {
    ends 0 search $NET --device cpu --objectives accuracy,latency --seconds 0.05 --study c.db --trials 6 --strategy random \
        --dtype '{values: [f32, mixed]}'
    "$HWNAS" study trials c.db --json >trials
    is trials '{t["dtype"] for t in d["trials"]} == {"f32", "mixed"}'
    is trials 'all(("mix" in t["measurement"]) == (t["dtype"] == "mixed") for t in d["trials"] if "measurement" in t and "samples" in t["measurement"])'
    is trials 'all((t["objectives"]["accuracy"]["source"] == "predicted-int8") == (t["dtype"] == "mixed") for t in d["trials"])'
    ends 0 explain c.db
    # Its choices are taken over with its measurements, but for what was stopped early or is in doubt.
    ends 0 search $NET --device cpu --objectives accuracy,latency --seconds 0.05 --study w.db --trials 1 --strategy random --verify none \
        --dtype '{values: [f32, mixed]}' --warm-start c.db
    "$HWNAS" study trials w.db --json >warm
    is warm "{t['arch']: t['measurement'].get('mix') for t in d['trials'] if t['dtype'] == 'mixed' and 'measurement' in t}.items() >=
        $(json trials '{t["arch"]: t["measurement"].get("mix") for t in d["trials"] if t["dtype"] == "mixed" and t["measurement"]["stop"] != "above" and not t["measurement"]["cause"]}').items()"
}

@test "floats in bf16 where the processor has them" {
    search_mixed --trials 1 --dtype '{per: layer, values: [f32, bf16, s8]}'
    says out "*, mixed-bf16*the others in *f*"
    "$HWNAS" study trials s.db --json >trials
    is trials 'd["trials"][0]["measurement"]["mix"]["cpu"]["floats"] in ("f32", "bf16")'
}

@test "a choice tries less as the time of the search ends, and says so" {
    ends 0 search --space resnet50 --device cpu --threads 1 --objectives latency --seconds 3 --minutes 0.05 --estimate off --confirm 0 --ties 0 \
        --verify none --study s.db --dtype mixed
    says out "*the others in f32*; few choices were tried, as the time was nearly over
*"
    "$HWNAS" study trials s.db --json >trials
    is trials 'd["trials"][0]["measurement"]["mix"]["cpu"]["cut_short"] is True'
}

@test "a limit is kept as it was written" {
    search_mixed --trials 1 --max-error 0.23
    "$HWNAS" study show s.db --json >shown
    is shown 'd["job"]["max-error"] == 0.23'
    search_mixed --trials 2 --max-error 0.23 --resume
}

# dense SETTING...: two.yaml, a small space of three layers, whose input has `new` rows.
dense() {
    printf '%s\n' 'hwnas: 1' 'name: two' 'settings:' "$@" 'input: {x: [new, 256]}' 'choices: {width: {values: [256, 384, 512]}}' \
        'network: [{repeat: 3, do: [{linear: {out: width}}, relu]}]' >two.yaml
}

@test "each phase has layers of its own, in its file, and the network of the settings has those of its phase" {
    dense '  phase: {values: [prefill, decode]}' '  new: "phase == prefill ? 64 : 1"' 'phases: {prefill: {phase: prefill}, decode: {phase: decode}}'
    ends 0 search --space two.yaml --device cpu --threads 1 --objectives prefill.latency,decode.latency --trials 1 --seconds 0.05 --confirm 0 \
        --ties 0 --verify none --estimate off --study p.db --dtype mixed --max-error 10 --onnx best.onnx
    "$HWNAS" study trials p.db --json >trials
    local prefill decode
    prefill=$(json trials 'd["trials"][0]["measurement"]["mix"]["prefill"]["layers_in_s8"]')
    decode=$(json trials 'd["trials"][0]["measurement"]["mix"]["decode"]["layers_in_s8"]')
    says err "wrote best.onnx, which is in s8 (QDQ) in $prefill of 3 layers*"
    says err "wrote best-decode.onnx, which is in s8 (QDQ) in $decode of 3 layers*"
    ends 0 export p.db --format onnx --out later.onnx
    cmp best.onnx later.onnx
}

@test "layers are chosen beside a device elsewhere, whose runner stays" {
    dense '  new: 64'
    printf '#!/bin/sh\necho start >>"%s/starts"\nfor last; do :; done\nexec sh -c "$last"\n' "$PWD" >ssh
    chmod +x ssh
    printf '%s\n' 'space: two.yaml' "devices: [{name: far, device: 'ssh:far/null', dtype: f32}, {name: here, device: cpu, dtype: mixed}]" \
        'objectives: [latency on far, latency on here]' 'threads: 1' 'budget: {trials: 2}' >job.yaml
    HWNAS_SSH=$PWD/ssh HWNAS_SSH_PROGRAM=$HWNAS ends 0 search job.yaml --seconds 0.05 --confirm 0 --ties 0 --verify none --estimate off
    [ "$(cat starts)" = start ]
}

# images NAME SEED: random images as nas_bench_macro takes them.
images() {
    need numpy
    /usr/bin/python3 -c "import numpy as np; np.save('$1', np.random.default_rng($2).uniform(0, 4, (24, 3, 32, 32)).astype('f4'))"
}

@test "samples of the user's choose: the error is theirs, the file has their ranges, and the study knows them" {
    images x.npy 1
    search_mixed --trials 1 --data 'x.npy#scale=1/2,mean=0.5:1:1.5,calibrate=16' --onnx best.onnx
    says out "*layers      trial 0: *largest difference from f32 * on 16 samples of x.npy (limit $LIMIT %)*"
    says err "*the weights of * are random: *best.onnx*is in s8 (QDQ) in * with ranges of the samples that chose them*"
    "$HWNAS" study trials s.db --json >trials
    is trials '[m["choice_samples"] for m in d["trials"][0]["measurement"]["mix"].values()] == [16]'
    is trials '"x.npy --scale 0.5 --mean=0.5,1,1.5 --calibrate 16 --max-error 2" in d["trials"][0]["measurement"]["command"]'
    ends 0 export s.db --format onnx --out later.onnx
    cmp best.onnx later.onnx
    # The same error, of the file, on the same samples, by another command.
    ends 0 export --space nas_bench_macro --arch "$(json trials 'd["trials"][0]["arch"]')" --format onnx --out f32.onnx
    local range='--scale 0.5 --mean 0.5,1,1.5'
    ends 0 run f32.onnx --input x.npy $range --output f32.npy
    ends 0 run best.onnx --input x.npy $range --output mixed.npy
    /usr/bin/python3 - <<'END'
import json, numpy as np
a, b = np.load("f32.npy")[:16], np.load("mixed.npy")[:16]
mix = json.load(open("trials"))["trials"][0]["measurement"]["mix"]["cpu"]
error = abs(a - b).max() / abs(a).max()
assert abs(error - mix["mixed_error"]) <= 0.1 * mix["mixed_error"], (error, mix) # both 0 where no layer gained time
END
    # A study is of contents, wherever they lie.
    mv x.npy moved.npy
    images x.npy 2
    local again="$NET --device cpu --objectives accuracy,latency --study s.db --resume --trials 2 --dtype mixed --max-error $LIMIT --seconds 0.05"
    refuses 2 "*the data has other contents since this study was made*" search $again --data 'x.npy#scale=1/2,mean=0.5:1:1.5,calibrate=16'
    refuses 2 "*data: this study was made with *x.npy*not *moved.npy*" search $again --data 'moved.npy#scale=1/2,mean=0.5:1:1.5'
    refuses 2 "*data: this study was made with *x.npy*not the default*" search $again
    ends 0 search $again --data 'moved.npy#mean=0.5:1:1.5,scale=0.5,calibrate=16'
    says out "*on 16 samples of moved.npy*"
    # What other samples chose is measured again.
    ends 0 search $NET --device cpu --objectives accuracy,latency --study w.db --trials 1 --dtype mixed --max-error $LIMIT --seconds 0.05 \
        --data x.npy --warm-start s.db
    "$HWNAS" study trials w.db --json >warm
    is warm 'all(m["choice_samples"] == 24 for t in d["trials"] for m in t["measurement"]["mix"].values())'
    rm moved.npy
    refuses 2 "*moved.npy: cannot open*put them where they were*" export s.db --format onnx --out gone.onnx
}

@test "with the weights of a model accuracy judges, and the trial tells what it is on samples held out" {
    need numpy
    local data="$HWNAS_SRC/tests/data/fashion_images.gz#labels=$HWNAS_SRC/tests/data/fashion_labels.gz,scale=1/255,mean=0.286,std=0.353"
    ends 0 space derive "$HWNAS_SRC/tests/data/fashion_tiny.onnx" --out net.yaml
    local search="search --space net.yaml --device cpu --objectives macs,latency --trials 1 --seconds 0.05 --estimate off --confirm 0
        --ties 0 --dtype mixed"
    ends 0 $search --study s.db --data "$data" --max-loss 2
    says out "*top1 on 128 samples held out: mixed * %*, f32 * %; at most 2 points below f32 on those that chose*"
    "$HWNAS" study trials s.db --json >trials
    ends 0 export --space net.yaml --arch "$(json trials 'd["trials"][0]["arch"]')" --format onnx --out f32.onnx
    /usr/bin/python3 - "$HWNAS_SRC/tests/data" <<'END'
import gzip, sys, numpy as np
x, y = (np.frombuffer(gzip.open(f"{sys.argv[1]}/fashion_{n}.gz").read(), np.uint8, offset=o) for n, o in (("images", 16), ("labels", 8)))
np.savez("odd.npz", x=((x.reshape(-1, 1, 28, 28)[1::2] / 255 - 0.286) / 0.353).astype("f4"), y=y[1::2].astype("i8"))
END
    ends 0 evaluate f32.onnx --data odd.npz --json
    is trials "[(m['f32_accuracy'], m['choice_samples'], m['held_out_samples'], m['accuracy_metric'], m['max_loss'], m['max_error'])
        for m in d['trials'][0]['measurement']['mix'].values()] == [($(json out 'd["values"]["top1"]["value"]'), 128, 128, 'top1', 2, None)]"
    "$HWNAS" study show s.db --json >shown
    is shown 'd["job"]["max-loss"] == 2 and "max-error" not in d["job"] and "fashion_images.gz#labels=" in d["job"]["data"]'
    refuses 2 "*max-loss: this study was made with 2.0, not 3.0*" $search --study s.db --resume --data "$data" --max-loss 3
    refuses 2 "*--data:1:1: labels go with max-loss*" $search --study t.db --data "$data"
    refuses 2 "*--max-loss:1:1: max-loss needs data*" $search --study t.db --max-loss 1
    refuses 2 "*--data:1:1: *max-loss needs labels*" $search --study t.db --data "${data/labels=*labels.gz,/}" --max-loss 1
    refuses 2 "*--data:1:1: *a label is (28, 28): these do not fit*" $search --study t.db --max-loss 1 --data "${data/fashion_labels/fashion_images}"
    [ ! -e t.db ]
}

@test "with no error allowed all layers stay" {
    search_mixed --trials 1 --max-error 0
    says out "*layers      trial 0: 0 of * layers in s8*difference from f32 0.00 % of*"
}

@test "what cannot be is told before anything runs" {
    local search="search $NET --objectives accuracy,latency --trials 1"
    refuses 2 "*max-error goes with dtype: mixed*" $search --device cpu --max-error 3
    refuses 2 "*on the device cpu alone, not on 'ref'*" $search --device ref --dtype mixed
    refuses 2 "*no mixture of precisions has these*per: layer, values: \[f32, s8\]*" $search --device cpu --dtype '{per: layer, values: [f32, f16]}'
    refuses 2 "*no mixture of precisions has these*" $search --device cpu --dtype '{per: layer, values: [s8, mixed]}'
    refuses 2 "*per is not 'channel'*per: layer*" $search --device cpu --dtype '{per: channel, values: [f32, s8]}'
    refuses 2 "*batch is not of each layer*" $search --device cpu --batch '{per: layer, values: [1, 8]}'
    refuses 2 "*max-error*" $search --device cpu --dtype mixed --max-error -1
    refuses 2 "*no precision 'mixt'*" $search --device cpu --dtype mixt
    refuses 2 "*--data:1:1: data goes with dtype: mixed*" $search --device cpu --data x.npy
    refuses 2 "*max-loss needs trained weights*hint: *space derive*" $search --device cpu --dtype mixed --data x.npy --max-loss 1
    printf '%s\n' 'space: nas_bench_macro' 'device: cpu' 'objectives: [params, latency]' 'dtype: mixed' 'data: absent.npz' >job.yaml
    refuses 2 "*job.yaml:5:7: absent.npz: cannot open*" search job.yaml
    refuses 2 "*--data:1:1: samples have no option 'scael'*did you mean 'scale'*" search job.yaml --data 'x.npy#scael=2'
    refuses 2 "*samples are in a file, which '#scale=2' does not name*" search job.yaml --data '#scale=2'
    refuses 2 "*--data:1:1: */tests/data/fashion_images.gz: *" search job.yaml --data "$HWNAS_SRC/tests/data/fashion_images.gz"
    [ ! -e nas_bench_macro.db ]
}
