# `hwnas space`: what a space is, and what is wrong with one.
load helpers

@test "check: the spaces that ship are good" {
    local space
    for space in "$HWNAS_SRC"/search_spaces/*.yaml; do
        ends 0 space check "$space"
        says out "good"
        ends 0 space check "$(basename "$space" .yaml)"
    done
}

@test "count" {
    ends 0 space count nas_bench_macro --json
    is out "(d['encodings'], d['distinct'], d['distinct_is_exact']) == (6561, 3969, True)"
    ends 0 space count accel_nasbench --json
    is out "(d['encodings'], d['encodings_exact']) == (104485552128, '104485552128')"
    is out "d['distinct'] is None and d['distinct_is_exact'] is False"
    ends 0 space count nas_bench_macro
    says out "6561*3969"
    ends 0 space count accel_nasbench
    says out 104485552128
}

@test "sample: as many as asked, the same for the same seed, and they can be shown" {
    local code
    ends 0 space sample nas_bench_macro --json
    is out "len(d['archs']) == 10"
    ends 0 space sample accel_nasbench -n 4 --seed 3 --json
    mv out first
    ends 0 space sample accel_nasbench -n 4 --seed 3 --json
    cmp out first
    ends 0 space sample accel_nasbench -n 4 --seed 4 --json
    not cmp -s out first
    for code in $(json first "' '.join(a['arch'] for a in d['archs'])"); do
        ends 0 space show accel_nasbench --arch "$code" --json
        is out "[d['params'], d['macs']] in [[a['params'], a['macs']]
            for a in json.load(open('first'))['archs'] if a['arch'] == '$code']"
    done
    ends 0 space sample nas_bench_macro -n 3
    [ "$(wc -l <out)" -eq 3 ]
    ends 0 space sample nas_bench_macro -n 0 --json
    is out "d['archs'] == []"
}

@test "show --dot: Graphviz draws every network that ships" {
    local file name code
    refuses 2 "which?*--arch" space show nas_bench_macro --dot
    refuses 2 "exclude each other" space show nas_bench_macro --arch 22212220 --dot --json
    ends 0 space show nas_bench_macro --arch 22212220 --dot
    says out 'digraph "nas_bench_macro"*n0 ->*output0'
    command -v dot >/dev/null || skip "Graphviz is not installed"
    for file in "$HWNAS_SRC"/search_spaces/*.yaml "$HWNAS_SRC"/search_spaces/zoo/*.yaml; do
        name=$(basename "$file" .yaml)
        ends 0 space sample "$name" -n 1 --json
        code=$(json out "d['archs'][0]['arch']")
        ends 0 space show "$name" ${code:+--arch "$code"} --dot
        dot -Tsvg out >network.svg 2>warnings
        [ ! -s warnings ]
        says network.svg "</svg>"
    done
}

@test "show: choices, and params and MACs as published" {
    local code params macs
    ends 0 space show nas_bench_macro
    says out "op*{0 1 2}"
    ends 0 space show accel_nasbench --json
    is out "[(c['name'], len(c['positions'])) for c in d['choices']] ==
        [('e', 7), ('k', 7), ('l', 7), ('se', 7)]"
    is out "d['choices'][2]['positions'][5] == ['1', '2', '3', '4']"
    while read -r code params macs; do
        ends 0 space show nas_bench_macro --arch "$code" --json
        is out "(d['arch'], d['params'], d['macs']) == ('$code', $params, $macs)"
        is out "sum(l['macs'] for l in d['layers']) == $macs"
        is out "sum(l['params'] for l in d['layers']) == $params"
    done < <(awk -F, 'NR % 600 == 2 { print $1, $4, $5 }' "$TABLE")
    while read -r code params macs; do
        ends 0 space show accel_nasbench --arch "$code" --json
        is out "(d['arch'], d['params'], d['macs']) == ('$code', $params, $macs)"
    done < <(awk -F, 'NR % 400 == 2 { printf "e=%s,k=%s,l=%s,se=%s %s %s\n", $3, $4, $5, $6, $7, $8 }' \
        "$HWNAS_SRC/tests/data/accel_nasbench.csv")
}

# The counts end where their headings do, however wide the other columns are.
@test "show: a network's layers in columns" {
    local space words
    for space in "nas_bench_macro --arch 22212220" resnet152 bert_base; do
        read -ra words <<<"$space"
        set -- "${words[@]}"
        ends 0 space show "$@" --json
        mv out network.json
        ends 0 space show "$@"
        /usr/bin/python3 - <<'END'
import json
lines = open("out").read().split("\n")
layers = json.load(open("network.json"))["layers"]
head, rows = lines[0], lines[1:1 + len(layers)]
assert head.split() == ["layer", "operator", "output", "params", "MMACs"] and lines[1 + len(layers)] == ""
params, macs = head.index("params") + len("params"), len(head)
for row, layer in zip(rows, layers):
    assert row == row.rstrip() and row.split()[:2] == [layer["name"], layer["operator"]], row
    left = row[:head.index("params")].rstrip() if not layer["params"] else row[:params]
    assert not layer["params"] or left.split()[-1] == str(layer["params"]), (row, layer)
    assert not layer["macs"] or row[params:macs].split() == ["%.3f" % (layer["macs"] / 1e6)], (row, layer)
END
    done
}

@test "show: settings as they are, positions that are alike once" {
    ends 0 space show gpt:phase=decode,length=64
    says out "heads *{4 8 12 16} x 24*phase *decode of {prefill decode}*length *64*new *1"
    ends 0 space show gpt:phase=decode,length=64 --json
    is out "[(s['name'], s['value']) for s in d['settings']][:3] ==
        [('phase', 'decode'), ('length', '64'), ('new', '1')]"
    is out "d['choices'][2]['positions'] == [['4', '8', '12', '16']] * 24"
}

@test "show: a network layer by layer, and its batch" {
    ends 0 space show nas_bench_macro --arch 22212220
    says out "1985514*85164544*MiB*digest"
    ends 0 space show nas_bench_macro --arch 22212220 --batch 4 --json
    is out "d['macs'] == 4 * 85164544 and d['params'] == 1985514 and d['input'] == [4, 3, 32, 32]"
    refuses 2 "--batch" space show nas_bench_macro --arch 22212220 --batch 0
}

@test "show: what is not an architecture" {
    refuses 2 "'333'*op*looks like 0" space show nas_bench_macro --arch 333
    refuses 2 "nas_bench_macro" space show nas_bench_macro --arch 0000000
    refuses 2 "nas_bench_macro" space show nas_bench_macro --arch 000000000
    refuses 2 "accel_nasbench" space show accel_nasbench --arch e=1
    refuses 2 "accel_nasbench" space show accel_nasbench --arch 22212220
    refuses 2 "accel_nasbench" space show accel_nasbench \
        --arch e=1666666,k=3353553,l=1223341,se=1111111,x=1
}

# wrong PLACE PATTERN: the space in standard input is refused, at this line and column.
wrong() {
    cat >s.yaml
    refuses 2 "s.yaml:$1: $2" space check s.yaml
}

space_of() { # the statements of its network
    printf 'hwnas: 1\nname: s\ninput: {image: [3, 8, 8]}\nnetwork:\n'
    printf '  - %s\n' "$@"
}

@test "check: each word of a setting is tried" {
    wrong '6:*' "with phase=b: *'out' of 'linear'*-1" <<'EOT'
hwnas: 1
name: s
settings: {phase: {values: [a, b]}, n: 3}
input: {x: [4]}
network:
  - linear: {out: "phase == a ? n : -1"}
EOT
    ends 0 space check gpt:length=4
}

@test "a wrong space: file, line, column, and what was expected" {
    space_of 'conv: {out: 8}' >s.yaml
    ends 0 space check s.yaml
    space_of 'conv: {out: 8, kernl: 3}' | wrong '5:*' "*kernl*kernel"
    space_of 'conv: {out: eight}' | wrong '5:*' "*eight"
    space_of 'conv: {out: [8]}' | wrong '5:*' ""
    space_of 'conv: {out: 0}' | wrong '5:*' "*0"
    space_of 'conv: {out: 8, kernel: 11}' | wrong '5:*' "*11"
    space_of 'convv: {out: 8}' | wrong '5:*' "*convv*conv"
    space_of 'conv: {out: 8, groups: 2}' | wrong '5:*' "*groups"
    space_of 'conv: {out: 1 / 0}' | wrong '5:*' ""
    space_of 'linear: {out: 10' | wrong '*' "*YAML"
    space_of 'switch: op' | wrong '5:*' ""
    { space_of 'a' && printf 'templates:\n  a():\n    - b\n  b():\n    - a\n'; } | wrong '*' "*"
    { printf 'choices: {c: {values: []}}\n' && space_of 'relu'; } | wrong '1:*' ""
    { printf 'choices: {c: {each_of: 0, values: [1]}}\n' && space_of 'relu'; } | wrong '1:*' ""
    { printf 'nmae: s\n' && space_of 'relu'; } | wrong '1:1' "*nmae*name"
    printf 'hwnas: 99\nname: s\ninput: {image: [3, 8, 8]}\nnetwork: [relu]\n' | wrong '1:*' "*99"
    printf 'hwnas: 1\nname: s\ninput: {image: [3, 8, 8]}\n' | wrong '*' "*network"
    printf 'hwnas: 1\nname: s\ninput: {image: [3, -8]}\nnetwork: [relu]\n' | wrong '3:*' ""
}

@test "a space that is not text, too large, or a bomb" {
    : >s.yaml
    refuses 2 "s.yaml" space check s.yaml
    printf '\0\1\2' >s.yaml
    refuses 2 "s.yaml" space check s.yaml
    cp s.yaml net.onnx
    refuses 2 "net.onnx: this is an ONNX model*'hwnas profile' measures" space check net.onnx
    refuses 2 "net.onnx: this is an ONNX model" search net.onnx
    head -c 5000000 /dev/zero | tr '\0' '#' >s.yaml
    refuses 2 "s.yaml: *larger than" space check s.yaml
    {
        printf 'hwnas: 1\nname: s\ninput: {image: [3, 8, 8]}\na: &a0 [relu, relu]\n'
        for i in $(seq 30); do
            printf 'b%d: &a%d [*a%d, *a%d]\n' "$i" "$i" $((i - 1)) $((i - 1))
        done
        printf 'network: *a30\n'
    } | timeout 10 cat >s.yaml
    refuses 2 "s.yaml:" space check s.yaml
    for i in $(seq 3000); do printf '['; done >s.yaml
    refuses 2 "s.yaml" space check s.yaml
    chmod 000 s.yaml
    [ -r s.yaml ] || refuses 1 "s.yaml: *Permission denied" space check s.yaml
}

# chain: 45 choices of which each decides on the next, in chain.yaml.
chain() {
    /usr/bin/python3 - >chain.yaml <<'END'
print("hwnas: 1\nname: chain\ninput: {image: [3, 8, 8]}\nchoices:\n  g0: {values: [0, 1]}")
for i in range(1, 45):
    print(f"  g{i}: {{values: [0, 1], when: g{i - 1} == 1}}")
print("network:\n  - conv: {out: 1 +", " + ".join(f"g{i}" for i in range(45)) + "}")
END
}

# rare CONSTRAINT: four choices of seven values under a constraint, and others, in rare.yaml.
rare() {
    cat >rare.yaml <<END
hwnas: 1
name: rare
input: {image: [3, 8, 8]}
choices:
  a: {each_of: 4, values: [1, 2, 3, 4, 5, 6, 7]}
  c: {each_of: 6, values: [1, 2, 3, 4, 5, 6, 7, 8]}
constraints:
  - a[0] == 1
  - $1
network:
  - for: {k: c}
    do:
      - conv: {out: "k + sum(a)"}
END
}

@test "constraints that few networks meet: counted, sampled, searched, resumed" {
    rare "a[1] == 1 and a[2] == 1 and a[3] == 1"
    ends 0 space check rare.yaml
    says out "262144 encodings"
    ends 0 space sample rare.yaml -n 200 --json
    is out "len(d['archs']) == 200 and all(a['arch'].startswith('a=1111,') for a in d['archs'])"
    printf '%s\n' "space: rare.yaml" "objectives: [macs, params]" "study: s.db" >job.yaml
    local strategy
    for strategy in auto random nsga2 regularized-evolution local-search; do
        rm -f s.db
        [ $strategy != regularized-evolution ] || sed -i 's/, params//' job.yaml
        ends 0 search job.yaml --strategy $strategy --trials 40 -q
        ends 0 search job.yaml --strategy $strategy --trials 60 -q --json --resume
        is out "d['finished'] == 60"
    done
}

@test "conditions in a chain: 46 networks, all of them found" {
    chain
    ends 0 space count chain.yaml --json
    is out "(d['encodings'], d['encodings_is_exact'], d['distinct']) == (46, True, 46)"
    printf '%s\n' "space: chain.yaml" "objectives: [macs]" "study: s.db" >job.yaml
    ends 0 search job.yaml --strategy random --trials 100 -q --json
    is out "d['finished'] == 46"
}

@test "check: the constraint that leaves no network is named, with its place" {
    rare "sum(a) > 22"
    refuses 2 "rare.yaml:9:5: no architecture meets this constraint and those above it*hint: *relax" \
        space check rare.yaml
    rare "sum(c) == 49"
    refuses 2 "rare.yaml:9:5: no architecture meets this constraint*hint" space sample rare.yaml
}
