# profile --training --samples: what a whole training takes, by arithmetic that a hand can follow.
load helpers

prices() {
    cat >prices.yaml <<'END'
currency: EUR
devices:
  cpu: {price: 0.36}
END
}

# step ARGUMENT...: a training step of the smallest network of the zoo, measured in no time.
step() {
    ends 0 profile mnist_mlp --training --threads 1 --seconds 0.05 "$@"
}

@test "training costs: steps, hours, their interval and money are those of a computation by hand" {
    prices
    step --batch 7,100 --samples 1000 --epochs 2.5 --price prices.yaml --json --save kept.json
    /usr/bin/python3 - out kept.json <<'END'
import json, math, sys

for path in sys.argv[1:]:
    d = json.load(open(path))
    assert d["plan"] == {"samples": 1000, "epochs": 2.5, "currency": "EUR"}, d["plan"]
    seven, hundred = d["rows"]
    assert seven["train_steps"] == 358  # 143 batches of 7 hold 1000 samples, 2.5 times
    assert hundred["train_steps"] == 25
    for row in d["rows"]:
        for of, from_ in ("", ""), ("low_", "low_"), ("high_", "high_"):
            step = row[f"p50_{from_}seconds"]
            assert (step is None) == (row[f"train_{of}seconds"] is None)
            assert step is None or math.isclose(row[f"train_{of}seconds"], row["train_steps"] * step)
        assert math.isclose(row["train_cost"], row["train_seconds"] / 3600 * 0.36)
    soonest = min(d["rows"], key=lambda r: r["train_seconds"])
    assert [r["train_cheapest"] for r in d["rows"]] == [r is soonest for r in d["rows"]]
END
}

@test "training costs: people read the cheapest batch, and what others take" {
    prices
    step --batch 1,64 --samples 6400 --epochs 3 --price prices.yaml
    says out "6400 samples, 3 epochs:"
    says out " steps "*" hours "*" EUR"
    says out "cheapest: mnist_mlp, cpu: batch "*", 1 thread, f32: "*" h, "*" EUR; batch "*" takes "*" times as long"
    # Without prices hours alone, without samples nothing of it.
    step --batch 1 --samples 1 --json
    is out "d['plan'] == {'samples': 1, 'epochs': 1, 'currency': None} and d['rows'][0]['train_cost'] is None"
    is out "d['rows'][0]['train_steps'] == 1 and d['rows'][0]['train_cheapest']"
    step --batch 1 --json
    is out "d['plan'] is None and d['rows'][0]['train_seconds'] is None and not d['rows'][0]['train_cheapest']"
    step --batch 1
    [[ $(<out) != *cheapest* ]]
    step --batch 1 --samples 10 --csv
    [[ $(head -n 1 out) == *,train_steps_count,train_s,train_low_s,train_high_s,train_cost,train_cheapest,* ]]
}

@test "training costs: the cheapest is of each network on each device, not of all" {
    ends 0 profile mnist_mlp imdb_fasttext --training --batch 8 --threads 1 --seconds 0.05 --samples 100 --json
    is out "[r['train_cheapest'] for r in d['rows']] == [True, True]"
}

@test "training costs: how many threads pay is told of steps, too" {
    [ "$(nproc)" -ge 2 ] || skip "needs two cores"
    ends 0 profile mnist_cnn --training --batch 64 --threads 1,2 --seconds 0.3 --samples 100
    # A disturbed measurement says nothing of threads.
    [[ $(<out) == *"mnist_cnn, cpu, batch 64, f32: "*" pay"* || $(<out) == *" ?"* ]]
}

@test "training costs: what makes no sense is told before anything is measured" {
    prices
    refuses 2 "--samples belongs to --training*--runs" profile mnist_mlp --samples 400
    refuses 2 "--epochs belongs to --training" profile mnist_mlp --epochs 3
    refuses 2 "--price belongs to --training*hwnas compare --price" profile mnist_mlp --price prices.yaml
    refuses 2 "--epochs needs --samples*60000" profile mnist_mlp --training --epochs 3
    refuses 2 "--price needs --samples" profile mnist_mlp --training --price prices.yaml
    refuses 2 "--samples must be more than 0" profile mnist_mlp --training --samples 0
    refuses 2 "--epochs must be more than 0" profile mnist_mlp --training --samples 10 --epochs 0
    refuses 2 "--samples must be a whole number >= 0, not '-5'" profile mnist_mlp --training --samples=-5
    refuses 2 "--epochs must be a number >= 0, not 'ten'" profile mnist_mlp --training --samples 10 --epochs ten
    refuses 2 "at most 1e9 epochs" profile mnist_mlp --training --samples 10 --epochs 1e10
    refuses 2 "a batch of 64 is more than the 50 samples there are" \
        profile mnist_mlp --training --samples 50 --batch 32,64
    refuses 2 "prices.yaml: there is no price for 'torch'*it has prices for cpu" \
        profile mnist_mlp --training --device cpu,torch --samples 50 --price prices.yaml
    sed 's/0.36/-1/' prices.yaml >wrong.yaml
    refuses 2 "wrong.yaml:3:16: a price must be more than 0" \
        profile mnist_mlp --training --samples 50 --price wrong.yaml
    refuses 2 "none.yaml" profile mnist_mlp --training --samples 50 --price none.yaml
}

# ---- Machines side by side ----

# Two machines, one four times as fast and ten times as dear; steps of two optimizers and an inference.
machines() {
    cat >box.json <<'END'
{"format": "hwnas.profile", "version": 1, "date": "2026-01-31T12:00:00Z",
 "device": {"spelling": "cpu", "name": "Some CPU", "library": "", "isa": ""},
 "rows": [
  {"model": "net", "batch": 10, "threads": 1, "status": "ok", "training": "sgd", "p50_seconds": 0.5,
   "p50_low_seconds": 0.4, "p50_high_seconds": 0.6, "items_per_second": 20},
  {"model": "net", "batch": 20, "threads": 2, "status": "ok", "training": "sgd", "p50_seconds": 0.8,
   "items_per_second": 25},
  {"model": "net", "batch": 20, "threads": 2, "status": "ok", "training": "adamw", "p50_seconds": 1.0,
   "items_per_second": 20},
  {"model": "net", "batch": 1000, "threads": 2, "status": "out_of_memory", "training": "sgd", "message": "no memory"},
  {"model": "net", "batch": 1, "threads": 1, "status": "ok", "p50_seconds": 0.01, "items_per_second": 100},
  {"model": "seen", "batch": 1, "threads": 1, "status": "ok", "p50_seconds": 0.01, "items_per_second": 100}]}
END
    cat >fast.json <<'END'
{"format": "hwnas.profile", "version": 1, "source": "published: a page", "date": "2025-06-01",
 "name": "fast", "device": {"spelling": "cuda:0", "name": "Some GPU", "library": "", "isa": ""},
 "rows": [
  {"model": "net", "batch": 40, "threads": 1, "dtype": "bf16", "status": "ok", "training": "sgd", "p50_seconds": 0.4,
   "items_per_second": 100},
  {"model": "more", "batch": 40, "threads": 1, "status": "ok", "training": "sgd", "p50_seconds": 0.4,
   "items_per_second": 100}]}
END
    printf '%s\n' 'currency: EUR' 'devices: {box: {price: 3.6}, fast: {price: 36}}' >prices.yaml
}

@test "training costs: machines side by side, in units of one, are those of a computation by hand" {
    machines
    ends 0 compare net --training --profile fast.json,box.json --base box --price prices.yaml --samples 100 --epochs 36 --json
    is out "d['training'] == 'sgd' and d['base'] == 'box' and d['plan'] == {'samples': 100, 'epochs': 36, 'currency': 'EUR'}"
    cp out priced
    # 180 steps of 0.8 s are 144 s; 360 of 0.5 s are 180; 3 steps of 40 hold 100 samples: 108 of 0.4 s are 43.2.
    is priced "[(c['device'], c['measured']['batch'], c['steps'], round(c['seconds'], 9)) for c in d['networks'][0]['choices'] if not c['flaw']]
        == [('box', 20, 180, 144), ('box', 10, 360, 180), ('fast', 40, 108, 43.2)]"
    is priced "[round(c['cost'], 9) for c in d['networks'][0]['choices'][:3]] == [0.144, 0.18, 0.432]"
    is priced "[round(c['speed_to_base'], 9) for c in d['networks'][0]['choices'][:3]] == [1, 0.8, 4]"
    is priced "[round(c['cost_to_base'], 9) for c in d['networks'][0]['choices'][:3]] == [1, 1.25, 3]"
    is priced "round(d['networks'][0]['choices'][1]['low_seconds'], 9) == 144 and d['networks'][0]['choices'][0]['low_seconds'] is None"
    is priced "d['networks'][0]['winner'] == 0 and d['networks'][0]['runner_up'] == 2 and round(d['networks'][0]['ratio'], 9) == 3"
    is priced "d['networks'][0]['choices'][3]['flaw'] == 'out_of_memory: no memory' and 'machines' not in d['networks'][0]['choices'][0]"
    # Without prices time decides, and without samples a sample's share of it.
    ends 0 compare net --training --profile fast.json,box.json --samples 100 --json
    is out "d['base'] == 'fast' and [c['device'] for c in d['networks'][0]['choices'][:3]] == ['fast', 'box', 'box']"
    ends 0 compare net --training --profile box.json,fast.json --price prices.yaml --json
    is out "d['plan'] is None and d['networks'][0]['choices'][0]['cost'] is None"
    is out "[round(c['cost_per_million'], 6) for c in d['networks'][0]['choices'][:3]] == [40, 50, 100]"
    is out "[round(c['cost_to_base'], 6) for c in d['networks'][0]['choices'][:3]] == [1, 1.25, 2.5]"
    # Steps of another optimizer are others.
    ends 0 compare net --training --optimizer adamw --profile box.json --json
    is out "[c['measured']['p50_seconds'] for c in d['networks'][0]['choices']] == [1.0]"
}

@test "training costs: the comparison can be read, as a table, a CSV and a page" {
    machines
    ends 0 compare --training --profile box.json,fast.json --price prices.yaml --samples 100 --epochs 36
    says out "training steps with sgd; 100 samples, 36 epochs"
    says out " step ms "*" samples/s "*" speed / box "*" hours "*" EUR "*" cost / box"
    says out "winner     box, batch 20, 2 threads, f32: 0.04 h, 0.144 EUR"
    says out "runner-up  fast, batch 40, 1 thread, bf16: 0.012 h, 0.432 EUR; costs 3 times as much"
    says out "no: out_of_memory: no memory"
    # A network that the base has not is told without ratios.
    says out "more"*"'box' has no step of this network that could be the base"
    ends 0 compare net --training --profile box.json --csv
    [[ $(head -n 1 out) == device,source,price_per_hour,flaw,samples_per_s,cost_per_million,steps_count,seconds,* ]]
    ends 0 compare net --training --profile box.json,fast.json --price prices.yaml --samples 100 --json
    cp out choice.json
    ends 0 report choice.json --out page.html
    [ -s page.html ]
}

@test "training costs: measured here beside what is recorded" {
    machines
    sed 's/"net"/"mnist_mlp"/' box.json >mlp.json
    ends 0 compare mnist_mlp --training --device cpu --profile mlp.json --base mlp --batch 8 --threads 1 --seconds 0.05 --json --save here.json
    is out "{c['device'] for c in d['networks'][0]['choices']} == {'cpu', 'mlp'}"
    is here.json "[r['training'] for r in d['rows']] == ['sgd']"
    ends 0 compare mnist_mlp --training --profile here.json --json
    # Nobody trains in batches of one.
    ends 0 compare mnist_mlp --training --threads 1 --seconds 0.05 --json
    is out "[c['measured']['batch'] for c in d['networks'][0]['choices']] == [32]"
}

@test "training costs: a comparison that makes no sense is told before anything is measured" {
    machines
    refuses 2 "--base belongs to --training*--baseline" compare net --profile box.json --base box
    refuses 2 "--samples belongs to --training" compare net --profile box.json --samples 5
    refuses 2 "--load is of requests" compare net --training --profile box.json --load 5/s
    refuses 2 "--latency-target is of requests" compare net --training --profile box.json --latency-target 5ms
    refuses 2 "--percentile is of requests" compare net --training --profile box.json --percentile p50
    refuses 2 "--streams is of requests" compare net --training --profile box.json --streams 2
    refuses 2 "--baseline measures what its file holds" compare --training --baseline box.json
    refuses 2 "no machine is called 'boxx'*did you mean 'box'" compare net --training --profile box.json,fast.json --base boxx
    refuses 2 "box.json: this profile has no training step with sgd of the models that are asked for*--training" \
        compare seen --training --profile box.json
    refuses 2 "fast.json: this profile has no training step with adamw of any model*--optimizer adamw" \
        compare --training --optimizer adamw --profile box.json,fast.json
    printf '%s\n' 'currency: EUR' 'devices: {fast: {price: 1}}' >fast.yaml
    refuses 2 "fast.yaml: there is no price for 'box'" compare net --training --profile box.json --price fast.yaml
    ends 3 compare net --training --profile box.json --samples 5
    says out "winner     none: no setting trains it"
    says out "no: its batch is more than the 5 samples"
}
