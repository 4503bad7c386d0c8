#!/usr/bin/env bats
# Searches of published tables: where these hold a part of a space, proposals stay among their rows.
load helpers

setup() {
    cd "$BATS_TEST_TMPDIR" || exit
    D=$HWNAS_SRC/tests/data
}

# archs STUDY: the code of each trial.
archs() {
    python3 -c 'import sqlite3, sys
print(*[row[0] for row in sqlite3.connect(sys.argv[1]).execute("SELECT code FROM trial")], sep="\n")' "$1"
}

# search SPACE ACCURACY DEVICE OBJECTIVE2 [OPTION...]
search() {
    local space=$1 accuracy=$2 device=$3 second=$4
    shift 4
    ends 0 search --space "$space" --accuracy "$accuracy" --device "$device" --objectives "accuracy,$second" \
        --confirm 0 --ties 0 --json "$@"
}

@test "a search of a part of a space fails no trial, and says among how many networks it stays" {
    local strategy
    search accel_nasbench "table:$D/accel_nasbench.csv#val_top1_pct" \
        "replay:$D/accel_nasbench.csv#vck190_latency_ms" latency --trials 40 --study bayesian.db
    is out 'd["finished"] == 40 and d["failed"] == 0 and d["among"] == 4099'
    for strategy in random nsga2 local-search; do
        search accel_nasbench "table:$D/accel_nasbench.csv#val_top1_pct" \
            "replay:$D/accel_nasbench.csv#vck190_latency_ms" latency --trials 40 --strategy $strategy --study $strategy.db
        is out 'd["finished"] == 40 and d["failed"] == 0 and d["among"] == 4099'
    done
    ends 0 search --space accel_nasbench --accuracy "table:$D/accel_nasbench.csv#val_top1_pct" --trials 40 \
        --device "replay:$D/accel_nasbench.csv#vck190_latency_ms" --objectives accuracy,latency --dry-run
    grep -q '^space  *accel_nasbench: 4099 encodings' out
    grep -q "^among  *4099 networks that the job's tables have values of" out
    grep -q '^a trial  *about .*; the smallest network .*; the largest .*; a random one ' out
    ends 0 study show bayesian.db
    grep -q "^among  *4099 networks" out
}

@test "every table that ships is searched by replay" {
    search ofa_mobilenet_v3 "table:$D/ofa_mobilenet_v3_accuracy.csv#imagenet_top1_pct" \
        "replay:$D/ofa_mobilenet_v3.csv#macs_count" macs --trials 15 --study ofa.db
    is out 'd["failed"] == 0 and d["among"] == 2162'
    search gpt_s "table:$D/gpt_s.csv#negative_perplexity" "replay:$D/gpt_s.csv#a100_ms" latency --trials 15 --study gpt.db
    is out 'd["failed"] == 0 and d["among"] == 1000'
}

@test "a table whose whole space it is restricts nothing" {
    search nas_bench_macro "table:$D/nas_bench_macro.csv#acc_top1_pct_mean" \
        "replay:$D/nas_bench_macro.csv#params_count" params --trials 15 --study whole.db
    is out 'd["failed"] == 0 and d["among"] is None'
}

@test "a search continues among the same rows, and one that was begun without goes on without" {
    accel() {
        search accel_nasbench "table:$D/accel_nasbench.csv#val_top1_pct" \
            "replay:$D/accel_nasbench.csv#vck190_latency_ms" latency --strategy nsga2 "$@"
    }
    accel --trials 40 --study whole.db
    accel --trials 15 --study parts.db
    accel --trials 40 --study parts.db --resume
    [ "$(archs whole.db)" = "$(archs parts.db)" ]
    python3 - <<'END'
import json, sqlite3
db = sqlite3.connect("parts.db")
(text,), = db.execute("SELECT value FROM fact WHERE key = 'strategy'")
fact = json.loads(text)
assert fact.pop("among") == 4099
db.execute("UPDATE fact SET value = ? WHERE key = 'strategy'", (json.dumps(fact),))
db.commit()
END
    accel --trials 60 --study parts.db --resume
    is out 'd["among"] is None and d["failed"] > 0'
}

# two_tables: good.csv, and slow.csv whose columns are called otherwise than the space's choices.
two_tables() {
    python3 - "$D/transnas_micro.csv" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))[::40]
with open("slow.csv", "w") as slow, open("good.csv", "w") as good:
    print("cell,took_ms", file=slow)
    print("cell,top1_pct", file=good)
    for row in rows:
        print(f"{row['arch']},{1 + int(row['macs_count']) / 1e9}", file=slow)
        print(f"{row['arch']},{50 + int(row['params_count']) / 1e6}", file=good)
END
}

@test "tables whose columns have other names are known by their contents, and read from everywhere" {
    mkdir here
    (cd here && two_tables)
    cat >here/job.yaml <<'END'
{space: transnas_micro, accuracy: 'table:good.csv?op=cell#top1_pct', device: 'replay:slow.csv?op=cell#took_ms',
 objectives: [accuracy, latency], budget: {trials: 5}}
END
    ends 0 search here/job.yaml --study s.db
    mv here there
    ends 0 search there/job.yaml --study s.db --resume --trials 10
    # An older study, which has the paths as the job wrote them.
    python3 - <<'END'
import json, sqlite3
db = sqlite3.connect("s.db")
(text,), = db.execute("SELECT value FROM fact WHERE key = 'fingerprint'")
fact = json.loads(text)
assert ".csv" not in text and fact["devices"][0]["device"] == fact["device"], text
fact["accuracy"] = "table:good.csv?op=cell#top1_pct"
fact["device"] = fact["devices"][0]["device"] = "replay:slow.csv?op=cell#took_ms"
db.execute("UPDATE fact SET value = ? WHERE key = 'fingerprint'", (json.dumps(fact),))
db.commit()
END
    cp s.db there/older.db
    cd there
    # It merges with one of today.
    ends 0 search job.yaml --study today.db --seed 2
    ends 0 study merge today.db older.db --out both.db
    ends 0 search job.yaml --study older.db --resume --trials 15
    sed -i '5s/$/1/' slow.csv
    refuses 2 "older.db: the device has other contents since this study was made" \
        search job.yaml --study older.db --resume --trials 20
}

@test "a study is not continued when its tables have fewer of its networks" {
    two_tables
    search transnas_micro 'table:good.csv?op=cell#top1_pct' 'replay:slow.csv?op=cell#took_ms' latency --trials 5 --study s.db
    sed -i '$d' slow.csv
    # Of the file of an older study nothing but its path is known.
    python3 - <<'END'
import json, sqlite3
db = sqlite3.connect("s.db")
(text,), = db.execute("SELECT value FROM fact WHERE key = 'fingerprint'")
fact = json.loads(text)
fact["device"] = fact["devices"][0]["device"] = "replay:slow.csv?op=cell#took_ms"
db.execute("UPDATE fact SET value = ? WHERE key = 'fingerprint'", (json.dumps(fact),))
db.commit()
END
    refuses 2 "s.db: this study is limited to the 18 networks that its tables had; they now have 17" \
        search --space transnas_micro --accuracy 'table:good.csv?op=cell#top1_pct' --device 'replay:slow.csv?op=cell#took_ms' \
        --objectives accuracy,latency --confirm 0 --ties 0 --trials 8 --study s.db --resume
}

@test "tables in common, columns of other names, rows of other spaces" {
    # Every other network has a latency, and the first hundred an accuracy; the second half is of no network.
    python3 - "$D/transnas_micro.csv" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
with open("slow.csv", "w") as file:
    print("cell,took_ms", file=file)
    for row in rows[::2]:
        print(f"{row['arch']},{1 + int(row['macs_count']) / 1e9}", file=file)
    for row in rows[::2]:
        print(f"9{row['arch'][1:]},1", file=file)
with open("good.csv", "w") as file:
    print("arch,top1_pct", file=file)
    for i, row in enumerate(rows):
        print(f"{row['arch']},{50 + int(row['params_count']) / 1e6 if i < 100 else ''}", file=file)
END
    search transnas_micro table:good.csv#top1_pct 'replay:slow.csv?op=cell#took_ms' latency --trials 100 --study both.db
    is out 'd["among"] == 50 and d["finished"] == 50 and d["failed"] == 0'
    sed -n '1p;/^9/p' slow.csv >none.csv
    refuses 2 "none of the table's 356 rows is of the space 'transnas_micro'" search --space transnas_micro \
        --accuracy table:good.csv#top1_pct --device 'replay:none.csv?op=cell#took_ms' --objectives accuracy,latency
    sed -n '1p;200,300p' good.csv | sed 's/,$/,1/' >other.csv
    sed -n '1,90p' slow.csv >few.csv
    refuses 2 'is left to search' search --space transnas_micro --accuracy table:other.csv#top1_pct \
        --device 'replay:few.csv?op=cell#took_ms' --objectives accuracy,latency
    refuses 2 "no column says which architecture a row is" search --space accel_nasbench \
        --accuracy accel_nasbench_imagenet --device 'replay:slow.csv#took_ms' --objectives accuracy,latency
}

@test "several rows of a network count as their mean, and a line says where they differ" {
    printf '%s\n' code,acc,x_ms 00000000,70,1 00000001,90,2 00000000,80,1 00000001,70,4 >seeds.csv
    ends 0 search --space nas_bench_macro --accuracy table:seeds.csv#acc --device replay:seeds.csv#x_ms --objectives accuracy,latency \
        --trials 9 --study s.db --json
    is out 'd["finished"] == 2'
    is out 'sorted((t["arch"], t["objectives"]["accuracy"]["value"],
        t["objectives"]["latency.p50"]["value"]) for t in d["front"]) == [("00000000", 75, 1), ("00000001", 80, 3)]'
    [ "$(grep -c "^hwnas: note: .*seeds.csv:4: the network of .*seeds.csv:2 again, with another 'acc', and so have others; the mean of all rows of a network counts" err)" -eq 1 ]
    [ "$(grep -c "^hwnas: note: .*seeds.csv:5: the network of .*seeds.csv:3 again, with another 'x_ms'; the mean of all rows of a network counts" err)" -eq 1 ]
    # Rows that say the same are no news.
    printf '%s\n' code,acc 00000000,70 00000001,90 00000000,70 >same.csv
    ends 0 predictor score table:same.csv#acc nas_bench_macro same.csv
    ! grep again err
}

@test "a table with semicolons or tabs is read as one with commas" {
    printf '%s\n' 'code;acc' '00000000;70,5' '00000001;90,25' >european.csv
    ends 0 predictor score table:european.csv#acc nas_bench_macro european.csv
    says out '*90.25*'
    tr ';' '\t' <european.csv >tabs.tsv
    ends 0 predictor score table:tabs.tsv#acc nas_bench_macro tabs.tsv
    says out '*90.25*'
}
