# Programs that are built with the installed headers, libhwnas.so and pkg-config, and with nothing of
# the tree.
bats_require_minimum_version 1.5.0

setup_file() {
    export ROOT=$BATS_FILE_TMPDIR/root BUILD=${HWNAS%/*}
    env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -C "$BUILD" install DESTDIR="$ROOT" \
        >"$BATS_FILE_TMPDIR/install.log" 2>&1 || { tail -20 "$BATS_FILE_TMPDIR/install.log"; return 1; }
    local pc
    pc=$(find "$ROOT" -name hwnas.pc)
    LIBRARY=$(dirname "$(dirname "$pc")")
    export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$ROOT LD_LIBRARY_PATH=$LIBRARY LIBRARY
    export INCLUDE
    INCLUDE=$(dirname "$(find "$ROOT" -name hwnas.h)")
    cp -r "$HWNAS_SRC/examples/c" "$BATS_FILE_TMPDIR/c"
    build "$BATS_FILE_TMPDIR/search" main.c device.c strategy.c predictor.c
}

setup() {
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    cd "$BATS_TEST_TMPDIR" || exit
    unset HWNAS_RUNNER
}

# build PROGRAM SOURCE...: of the examples, unless a source has a path
build() {
    local program=$1 sources=() s
    shift
    for s; do
        [[ $s == */* ]] && sources+=("$s") || sources+=("$BATS_FILE_TMPDIR/c/$s")
    done
    # shellcheck disable=SC2046
    "${CC:-cc}" -std=gnu11 -Wall -Wextra -Werror -I"$BATS_FILE_TMPDIR/c" "${sources[@]}" \
        $(pkg-config --cflags --libs hwnas) -lm -o "$program"
}

@test "each installed header compiles alone, in C and in C++" {
    local header n=0
    for header in "$INCLUDE"/hwnas.h "$INCLUDE"/hwnas/*.h; do
        printf '#include <%s>\nextern int nothing;\n' "${header#"$INCLUDE"/}" >one.c
        cat one.c
        cc -std=c11 -pedantic -Wall -Wextra -Werror -I"$INCLUDE" -fsyntax-only one.c
        ! command -v g++ >/dev/null ||
            g++ -x c++ -Wall -Wextra -Werror -I"$INCLUDE" -fsyntax-only one.c
        n=$((n + 1))
    done
    [ $n -eq 8 ]
}

@test "libhwnas.so exports the functions of the installed headers, and nothing else" {
    local header
    for header in "$INCLUDE"/hwnas.h "$INCLUDE"/hwnas/*.h; do
        echo "#include <${header#"$INCLUDE"/}>"
    done >all.c
    # What the compiler, which knows nothing of our macro, takes for a declaration of theirs.
    cc -I"$INCLUDE" -aux-info declared.txt -fsyntax-only all.c
    grep -F "$INCLUDE/" declared.txt |
        awk 'match($0, /hwnas_[a-z0-9_]+ \(/) { print substr($0, RSTART, RLENGTH - 2) }' | sort -u >declared
    nm -D --defined-only "$LIBRARY"/libhwnas.so | awk '{print $NF}' | sort >exported
    [ "$(wc -l <declared)" -gt 50 ]
    diff declared exported
}

@test "the version of the headers is that of the library and of pkg-config" {
    cat >version.c <<'END'
#include <hwnas.h>
#include <stdio.h>
#if HWNAS_VERSION_NUMBER < 100
#error
#endif
int main(void)
{
    puts(hwnas_version());
    return hwnas_version_number() != HWNAS_VERSION_NUMBER;
}
END
    build ./version ./version.c
    [ "$(./version)" = "$(pkg-config --modversion hwnas)" ]
}

write_job() {
    cp "$HWNAS_SRC/tests/embed/tiny.yaml" .
    cat >job.yaml <<'END'
space: tiny.yaml
accuracy: "size:1.5"
device: naive
objectives: [accuracy, latency.p50]
strategy: climb
budget: {trials: 24}
measure: {seconds: 0.02}
study: job.db
END
}

@test "a search with a device, a strategy and a predictor of another program" {
    write_job
    "$BATS_FILE_TMPDIR/search" job.yaml >study.json 2>err || { cat err; return 1; }
    python3 - <<'END'
import json, math, subprocess, os
study = json.load(open("study.json"))
assert study["finished"] == 24 and study["failed"] == 0, study["failures"]
winner = study["winner"]
assert winner["objectives"]["latency.p50"]["source"] == "measured", winner
assert study["device"]["library"] == "naive 1", study["device"]
assert study["job"]["strategy"] == "climb", study["job"]
# The predictor is ours, and the network is what the program of hwnas says.
shown = json.loads(subprocess.check_output(
    [os.environ["HWNAS"], "space", "show", "tiny.yaml", "--arch", winner["arch"], "--json"]))
accuracy = winner["objectives"]["accuracy"]["value"]
assert winner["objectives"]["accuracy"]["unit"] == "score", "it only ranks"
assert abs(accuracy - 1.5 * math.log(shown["params"])) < 1e-6, (accuracy, shown["params"])
# The result of the device was compared with the reference.
assert winner["verified"]["error"] < winner["verified"]["tolerance"], winner
END
    "$HWNAS" study show job.db >/dev/null # another program reads what it left
}

@test "two searches with one seed propose the same networks" {
    local n
    for n in 1 2; do
        mkdir $n
        (cd $n && write_job && sed -i 's/naive/null/; s/latency.p50/params/' job.yaml &&
            "$BATS_FILE_TMPDIR/search" job.yaml >study.json 2>err) || { cat $n/err; return 1; }
        "$HWNAS" study show $n/job.db --json | python3 -c '
import json, sys
print([(t["arch"]) for t in json.load(sys.stdin)["front"]])' >$n/front
    done
    diff 1/front 2/front
    [ -s 1/front ]
}

@test "what cannot be registered is refused" {
    build ./refused "$HWNAS_SRC/tests/embed/refused.c" device.c strategy.c predictor.c
    run ./refused
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"there is a device 'naive' already"* ]]
    [[ $output == *"there is a device 'cpu' already"* ]]
    [[ $output == *"version 6 of the interface, this library has 5"* ]]
    [[ $output == *"there is a strategy 'auto' already"* ]]
    [[ $output == *"there is a kind of predictor 'table' already"* ]]
}

@test "a wrong argument of what is registered is told as our own are" {
    write_job
    run "$BATS_FILE_TMPDIR/search" job.yaml <<<'' # works so far
    sed -i 's/size:1.5/size:heavy/; s/job.db/other.db/' job.yaml
    run "$BATS_FILE_TMPDIR/search" job.yaml
    [ "$status" -eq 2 ]
    [[ $output == *"'heavy' is not a weight"*"hint: write size:1.5"* ]]
    [ ! -e other.db ]
}

@test "the examples of docs/library.md compile and run" {
    awk '/^```c$/ { file = sprintf("page%d.c", ++n); next } /^```/ { file = "" } file { print > file }' \
        "$HWNAS_SRC/docs/library.md"
    local n=0
    mkdir tree tree/examples # the job looks for its table in ../tests
    ln -s "$HWNAS_SRC/tests" tree/tests
    mv page*.c tree/examples
    cd tree/examples
    cp "$HWNAS_SRC"/examples/replay-nb-macro.yaml .
    export HWNAS_RUNNER=$HWNAS # the installed one is not where it was configured for
    for page in page*.c; do
        echo "$page"
        build "./${page%.c}" "./$page"
        "./${page%.c}" || { cat "$page"; return 1; }
        n=$((n + 1))
    done
    [ $n -eq 3 ]
}
