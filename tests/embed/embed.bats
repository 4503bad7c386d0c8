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

@test "configure leaves version.h alone, which all of the library includes, when it says the same" {
    local before
    before=$(stat -c %y "$BUILD/include/hwnas/version.h")
    (cd "$BUILD" && ./config.status -q include/hwnas/stamp-version)
    [ "$(stat -c %y "$BUILD/include/hwnas/version.h")" = "$before" ]
    cmp "$BUILD/include/hwnas/stamp-version" "$BUILD/include/hwnas/version.h"
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
    [ $n -eq 20 ]
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
    nm -D --defined-only "$LIBRARY"/libhwnas.so | awk '$2 == "T" {print $NF}' | sort >all
    [ "$(wc -l <declared)" -gt 50 ]
    diff <(sed 's/$/@@HWNAS_0/' declared) <(grep -v '@@HWNAS_PRIVATE$' all)
    # What is private is what the modules and the runners use.
    { find "$ROOT" -name hwnas-cuda.so -exec nm -D -u {} + && grep -ohE 'library\.hwnas_[a-z0-9_]+' "$HWNAS_SRC"/runners/*.py; } |
        grep -oE '\bhwnas_[a-z0-9_]+' | sort -u >used
    comm -23 used declared | diff - <(sed -n 's/@@HWNAS_PRIVATE$//p' all)
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

# DESTDIR is not where the installation was configured to be: it is a moved one.
@test "a moved installation finds its program, its data and its modules" {
    cat >moved.c <<'END'
#include <hwnas.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    hwnas_network *network;
    hwnas_measurer *measurer;
    hwnas_result *result;
    hwnas_device *device;
    hwnas_device_info info;
    hwnas_measurer_options options = HWNAS_MEASURER_OPTIONS_INIT;
    options.threads = 1;
    options.seconds = 0.01;
    options.interval = 1;
    if (hwnas_network_open(&network, "only_here", NULL, NULL) != HWNAS_OK ||
        hwnas_measurer_open(&measurer, &options) != HWNAS_OK ||
        hwnas_measurer_measure(&result, measurer, network) != HWNAS_OK ||
        (argc > 1 && hwnas_device_open(&device, argv[1], NULL) != HWNAS_OK)) {
        fprintf(stderr, "%s\n", hwnas_last_error()->message);
        return 1;
    }
    printf("%g\n", hwnas_result_find(result, "latency.p50")->value);
    hwnas_result_free(result);
    hwnas_measurer_close(measurer);
    hwnas_network_close(network);
    if (argc < 2)
        return 0;
    hwnas_device_describe(&info, device);
    puts(info.name);
    hwnas_device_close(device);
    return 0;
}
END
    build ./moved ./moved.c
    cp -r "$ROOT" root
    local library=${LIBRARY/#"$ROOT"/$PWD/root} program zoo device=()
    program=$(find "$PWD/root" -name hwnas -type f -perm -u+x)
    zoo=$(find "$PWD/root" -name zoo)
    [ -z "$(find root -name hwnas-cuda.so)" ] || device=(cuda-dry:h200)
    mv "$zoo/mnist_mlp.yaml" "$zoo/only_here.yaml"
    mv "$program" "$program.moved"
    printf '#!/bin/sh\necho "$0" "$1" >>%q\nexec "$0.moved" "$@"\n' "$PWD/runs" >"$program"
    chmod +x "$program"
    unset HWNAS_MODULES HWNAS_PATH
    LD_LIBRARY_PATH=$library ./moved "${device[@]}" >out
    cat out
    [ "$(wc -l <out)" -eq $((1 + ${#device[@]})) ]
    [ "$(cat runs)" = "$program runner" ]
    "$program" space check only_here | grep -F "$zoo"
    # Python opens libraries so that nobody sees their functions; a module sees them all the same.
    [ ${#device[@]} -eq 0 ] || LD_LIBRARY_PATH=$library python3 - <<'END'
import ctypes
library = ctypes.CDLL("libhwnas.so.0")
device = ctypes.c_void_p()
assert library.hwnas_device_open(ctypes.byref(device), b"cuda-dry:h200", None) == 0
END
}

@test "a moved installation has Python's library, which finds its own" {
    [ -x /usr/bin/python3 ] || skip "there is no /usr/bin/python3"
    cp -r "$ROOT" root
    unset HWNAS_LIBRARY HWNAS_PATH LD_LIBRARY_PATH
    PYTHONPATH=$(dirname "$(find "$PWD/root" -name hwnas.py)") /usr/bin/python3 - "$PWD/root/" <<'END'
import sys, hwnas
assert hwnas.__file__.startswith(sys.argv[1]) and hwnas._lib._name.startswith(sys.argv[1]), hwnas._lib._name
assert hwnas.Network("mnist_mlp").measure(seconds=0.02, interval=1, timeout=600).p50 > 0
END
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
    local abi
    abi=$(awk '$2 == "HWNAS_DEVICE_ABI" { print $3 }' "$HWNAS_SRC"/include/hwnas*.h "$HWNAS_SRC"/include/hwnas/*.h)
    [[ $output == *"version $((abi + 1)) of the interface, this library has $abi"* ]]
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

# board CODE.onnx: the published latency, in seconds; board2 is killed with its program at the 20th network.
write_board() {
    cat >board <<END
#!/bin/sh
[ -s "\$1" ] || exit 1
code=\${1%.onnx}
awk -F, -v code="\$code" '\$1 == code { printf "%.17g\n", \$8 / 1000 }' "$HWNAS_SRC/tests/data/nas_bench_201.csv"
END
    cat >board2 <<'END'
#!/bin/sh
echo >>count
[ "$(wc -l <count)" -ne 20 ] || kill -9 $PPID $(ps -o ppid= -p $PPID)
exec ./board "$1"
END
    chmod +x board board2
    cat >replay.yaml <<END
space: nas_bench_201
accuracy: table:$HWNAS_SRC/tests/data/nas_bench_201.csv#c100_test_top1_pct
device: replay:$HWNAS_SRC/tests/data/nas_bench_201.csv#raspi4_ms
objectives: [accuracy, latency.p50]
constraints: latency.p50 <= 60 ms
strategy: bayesian
budget: {trials: 40}
END
    sed 's/^device: .*/device: external/' replay.yaml >asked.yaml
}

# The trials up to the first network that another one's values were taken over for are those of the search.
@test "a program asks for networks, runs them elsewhere and tells; killed meanwhile, it goes on" {
    write_board
    build ./ask_tell ask_tell.c
    cp asked.yaml killed.yaml
    "$HWNAS" search replay.yaml --quiet >/dev/null
    ./ask_tell asked.yaml nas_bench_201 ./board >front
    [ "$(wc -l <front)" -gt 3 ]
    run ./ask_tell killed.yaml nas_bench_201 ./board2
    [ "$status" -eq 137 ]
    ./ask_tell killed.yaml nas_bench_201 ./board2 >killed
    diff front killed
    python3 - <<'END'
import sqlite3
def trials(path):
    return sqlite3.connect(path).execute(
        "SELECT code, digest, value FROM trial JOIN value ON trial = number AND metric = 'latency.p50'"
        " ORDER BY finish_order").fetchall()
search, asked, killed = trials("replay.db"), trials("asked.db"), trials("killed.db")
assert asked == killed and len(asked) == 40, (len(asked), len(killed))
seen = set()
for n, (code, digest, value) in enumerate(asked):
    if digest in seen:
        break
    seen.add(digest)
    assert search[n][0] == code and abs(search[n][2] - value) < 1e-15, (n, search[n], asked[n])
assert n > 10, n
END
    "$HWNAS" study show asked.db | grep -F "device      external"
    run "$HWNAS" search asked.yaml --resume
    [ "$status" -eq 2 ]
    [[ $output == *"a search cannot run networks on the device 'external'"* ]]
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
    for page in page*.c; do
        echo "$page"
        build "./${page%.c}" "./$page"
        "./${page%.c}" || { cat "$page"; return 1; }
        n=$((n + 1))
    done
    [ $n -eq 3 ]
}
