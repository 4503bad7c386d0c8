#!/usr/bin/env bats
# The benchmarks of spaces, searches and predictors.
load helpers

@test "every benchmark of the folder has a test" {
    # A script, or a program that prints figures itself.
    for file in $(find "$here" -maxdepth 1 -type f -executable) $(grep -l '"figure.h"' "$here"/*.c); do
        name=${file##*/}
        grep -q "^@test \"${name%.c}\"" "$BATS_TEST_DIRNAME"/*.bats || { echo "$name has none"; return 1; }
    done
}

@test "space" { measures benchmarks/space --quick; }
@test "search" { measures "$here/search" --quick --seeds 1 --runs "$BATS_TEST_TMPDIR/runs"; }
@test "problems" { measures "$here/problems" --quick --work "$BATS_TEST_TMPDIR/problems"; }
@test "regret" { measures "$here/regret" --quick; }
@test "search_ceiling" { measures "$here/search_ceiling" --quick; }
@test "transfer" { measures "$here/transfer" --quick; }
@test "warm_start" { measures "$here/warm_start" --quick --trials 40; }
@test "cluster" { measures "$here/cluster" --quick; }
@test "limits_hold" { measures "$here/limits_hold" --quick; }
@test "predictors" { measures "$here/predictors" --quick --only nb201 --seeds 1 --out "$BATS_TEST_TMPDIR"; }
@test "extrapolation" {
    measures "$here/extrapolation" --quick --only gpt_m --size 100 --out "$BATS_TEST_TMPDIR/extrapolation.csv"
}

@test "curves" { measures benchmarks/curves --quick "$HWNAS_SRC/tests/data/fashion_curves.csv"; }
@test "optimism" { measures "$here/optimism" --quick --work "$BATS_TEST_TMPDIR/optimism"; }
@test "proxies" { measures "$here/proxies" --quick; }
@test "suggest" { measures "$here/suggest" --quick; }
