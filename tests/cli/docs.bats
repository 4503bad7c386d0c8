# What the pages say is so: their examples are run.

# Every ```yaml block of a page that begins with "hwnas: 1", as FOLDER/NUMBER.yaml.
extract() {
    awk -v folder="$2" '
        /^```/ { inside = 0; if (file) close(file); file = "" }
        inside && !file { if ($0 !~ /^hwnas: 1/) { inside = 0; next }
                          file = sprintf("%s/%02d.yaml", folder, ++n) }
        inside { print > file }
        /^```yaml$/ { inside = 1 }' "$1"
}

setup_file() {
    export EXAMPLES=$BATS_FILE_TMPDIR/examples
    mkdir "$EXAMPLES"
    extract "$HWNAS_SRC/docs/search-spaces.md" "$EXAMPLES"
}

@test "every example of docs/search-spaces.md is a good space" {
    local file n=0
    for file in "$EXAMPLES"/*.yaml; do
        echo "$file: $(sed -n 2p "$file")"
        "$HWNAS" space check "$file"
        n=$((n + 1))
    done
    [ $n -eq 8 ]
}

@test "the pictures of docs/predictors.md show what its tables say" {
    local picture
    "$HWNAS_SRC/scripts/draw-predictors" "$BATS_TEST_TMPDIR"
    for picture in tau interval; do
        grep -qF "(predictors-$picture.svg)" "$HWNAS_SRC/docs/predictors.md"
        cmp "$BATS_TEST_TMPDIR/predictors-$picture.svg" "$HWNAS_SRC/docs/predictors-$picture.svg"
    done
    /usr/bin/python3 - "$BATS_TEST_TMPDIR/predictors-tau.svg" <<'END' # a line for each row, its points in the order of the numbers
import sys, xml.etree.ElementTree as tree
lines = [e.get("points").split() for e in tree.parse(sys.argv[1]).iter() if e.tag.endswith("polyline")]
assert len(lines) == 5 and all(len(points) == 5 for points in lines)
for points in lines:
    heights = [float(p.split(",")[1]) for p in points]
    assert heights == sorted(heights, reverse=True) and 40 <= heights[-1] < heights[0] <= 290
END
}

@test "the counts and codes of docs/search-spaces.md are right" {
    run "$HWNAS" space count "$EXAMPLES/02.yaml"
    [[ $output == *"encodings  288"* ]]
    "$HWNAS" space show "$EXAMPLES/02.yaml" --arch channels=16,kernel=355,depth=132,act=relu
    run "$HWNAS" space count nas_bench_macro
    [[ $output == *6561*3969* ]]
    run "$HWNAS" space count accel_nasbench
    [[ $output == *104485552128* ]]
}

@test "every statement of the language is in docs/search-spaces.md" {
    local word
    for word in residual: when: let: if: then: else: switch: cases: for: do: repeat: index: each_of: \
        values: choices: templates: network: input: about: \
        settings: output: as: from: constraints:; do
        grep -qE "^[^#]*\b$word" "$EXAMPLES"/*.yaml || { echo "no example of $word" && false; }
    done
}

@test "every key of a job and every metric is in docs/searching.md" {
    local word page=$HWNAS_SRC/docs/searching.md
    cd "$BATS_TEST_TMPDIR"
    # The program names them when one is wrong.
    echo 'nonsense: 1' >job.yaml
    run "$HWNAS" search job.yaml
    for word in $(sed -n 's/.*keys are //p' <<<"$output" | tr -d ,); do
        grep -q "\`$word\`" "$page" || { echo "no key $word" && false; }
    done
    run "$HWNAS" search --space nas_bench_macro --objectives zzzzzzzz
    for word in $(sed -n 's/.*there are //p' <<<"$output" | tr -d ,); do
        word=${word/latency./.}
        grep -q "\`$word\`\|\`latency$word\`" "$page" || { echo "no metric $word" && false; }
    done
}

@test "the jobs of examples/ and of docs/searching.md can be run" {
    local file
    cd "$BATS_TEST_TMPDIR"
    for file in "$HWNAS_SRC"/examples/*.yaml; do
        case $file in
        */prices.yaml) ;;
        */llm.yaml) "$HWNAS" search "$file" --device null --dry-run ;; # the largest GPTs take minutes
        *) "$HWNAS" search "$file" --seconds 0.01 --dry-run ;;
        esac
    done
    awk '/^```yaml$/ && !n++ { inside = 1; next } /^```/ { inside = 0 } inside' \
        "$HWNAS_SRC/docs/searching.md" >job.yaml
    "$HWNAS" search job.yaml --device null --dry-run
}

@test "the jobs of examples/claims/ can be run, and docs/claims.md has what recorded profiles say" {
    local file
    cd "$BATS_TEST_TMPDIR"
    for file in "$HWNAS_SRC"/examples/claims/*.yaml; do
        "$HWNAS" search "$file" --device null --dtype f32 --dry-run
    done
    cd "$HWNAS_SRC"
    "$HWNAS" compare efficientnet_b0 --percentile p50 --price examples/prices.yaml \
        --profile examples/profiles/epyc-2c.json,examples/profiles/v100-published.json |
        sed -n '/^efficientnet_b0/,/^ *costs /{/./p}' >"$BATS_TEST_TMPDIR/said"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/said")" -ge 10 ]
    diff "$BATS_TEST_TMPDIR/said" <(sed -n '/^    efficientnet_b0$/,/^ *costs /{s/^    //;/./p}' docs/claims.md)
}

@test "the environment variables of docs/environment.md are those that src/ reads or sets" {
    local word n=0
    for word in $(grep -oE '`HWNAS_[A-Z_]+`' "$HWNAS_SRC/docs/environment.md" | tr -d '`' | sort -u); do
        grep -rqE "\"$word[\"=]" "$HWNAS_SRC/src" || { echo "nobody reads or sets $word" && false; }
    done
    for word in $(grep -rhoE 'getenv\("[A-Z_]+"\)' "$HWNAS_SRC/src" | cut -d '"' -f 2 | sort -u); do
        grep -q "\`$word\`" "$HWNAS_SRC/docs/environment.md" || { echo "no variable $word" && false; }
        n=$((n + 1))
    done
    [ $n -ge 10 ]
}
