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
