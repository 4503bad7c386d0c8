# `--device cuda:0:own`: the program with a stand-in for a GPU (tests/gpu/README.md). What only a real one can tell is
# in benchmarks/gpu.
load helpers

setup() {
    [ -e "$HWNAS_MODULES/hwnas-cuda.so" ] || skip "built without CUDA"
    [ -e "$HWNAS_FAKE_GPU/libcuda.so.1" ] || skip "without the stand-in"
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work" || exit
    export LD_LIBRARY_PATH=$HWNAS_FAKE_GPU XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
}

# Networks so small that plain loops run them.
space() {
    cat >tiny.yaml <<'END'
hwnas: 1
name: tiny
input:
  image: [3, 8, 8]
choices:
  width: {values: [4, 6, 8]}
  kernel: {values: [1, 3, 5]}
  depth: {values: [1, 2]}
network:
  - repeat: depth
    do:
      - conv: {out: width, kernel: kernel, pad: kernel // 2}
      - relu
  - global_avg_pool
  - flatten
  - linear: {out: 10}
END
    cat >job.yaml <<'END'
space: tiny.yaml
device: cuda:0:own
objectives: [latency.p50, params]
budget: {trials: 6}
measure: {seconds: 0.05, estimate: off}
END
}

@test "without a driver, or without a GPU, it is said what is missing, and the rest works" {
    export LD_LIBRARY_PATH=
    if ! ldconfig -p | grep -q 'libcuda.so.1'; then
        ends 1 profile mnist_mlp --device cuda:0
        says err "no libcuda.so.1, NVIDIA's driver"
    fi
    export LD_LIBRARY_PATH=$HWNAS_FAKE_GPU FAKE_GPU_FAULT=none
    ends 1 profile mnist_mlp --device cuda:0:own
    says err "sees no GPU"
    unset FAKE_GPU_FAULT
    ends 2 profile mnist_mlp --device cuda:x
    says err "there is no GPU 'cuda:x'"
}

@test "a search: measured values, energy by the GPU's own counter" {
    space
    ends 0 search job.yaml --json
    is out "(d['finished'], d['failed']) == (6, 0) and d['front']"
    is out "d['device']['name'].startswith('fake GPU') and d['device']['isa'] == 'sm_90'"
    is out "all(0 < f['objectives']['latency.p50']['value'] < 1e4 and
        f['objectives']['latency.p50']['source'] == 'measured' for f in d['front'])"
}

@test "out of the GPU's memory: the trial fails and says so, the search goes on" {
    space
    # A fault in each runner's second network; a runner that failed is replaced.
    FAKE_GPU_FAULT=memory:8 ends 0 search job.yaml --verify none --json
    is out "2 <= d['failed'] < d['finished'] == 6 and d['front']"
    /usr/bin/python3 - job.db <<'END'
import sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute("SELECT status, message FROM trial").fetchall()
failed = [message for status, message in rows if message]
assert failed and all("the GPU has no" in m and "MiB" in m for m in failed), rows
END
}

@test "the GPU is lost: the trial fails, and a new runner has it again" {
    space
    # In the first runner alone, and there while it measures.
    printf '#!/bin/sh\n[ -e lost ] || export FAKE_GPU_FAULT=lost:60\ntouch lost\nexec "%s" "$@"\n' \
        "$HWNAS" >runner.sh
    chmod +x runner.sh
    HWNAS_RUNNER=$PWD/runner.sh ends 0 search job.yaml --json
    is out "(d['failed'], d['finished']) == (1, 6) and d['front']"
    FAKE_GPU_FAULT=lost:1 ends 1 profile mnist_mlp --device cuda:0:own
    says err "*illegal memory access*CUDA_ERROR_ILLEGAL_ADDRESS*"
}

@test "a GPU that slows itself down is noticed" {
    FAKE_GPU_SLOWED=1 ends 0 profile mnist_mlp --device cuda:0:own --seconds 0.2 --json
    is out "d['rows'][0]['unstable']"
}

@test "our kernels compute what ONNX's node tests want" {
    /usr/bin/python3 -c 'import onnx.backend.test.case' 2>/dev/null || skip "needs Debian's python3-onnx"
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/onnx_node.py" "$HWNAS" cuda:0:own
}

# The stand-in for cuDNN writes noise where the real one was seen to be wrong.
@test "operands are repeated as numpy repeats them, by plans and by kernels of ours" {
    need onnx
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/repeated.py" "$HWNAS" cuda:0:own f32
    export LD_LIBRARY_PATH=$HWNAS_FAKE_GPU:$HWNAS_FAKE_GPU/cudnn
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/repeated.py" "$HWNAS" cuda:0 f32 f16 bf16
}

@test "profile tells how many plans were kept from before" {
    export LD_LIBRARY_PATH=$HWNAS_FAKE_GPU:$HWNAS_FAKE_GPU/cudnn
    HWNAS_PLANS= ends 0 profile mnist_mlp mnist_mlp --device cuda:0 --dtype tf32 --seconds 0.05
    says out "cached"
    HWNAS_PLANS= ends 0 profile mnist_mlp mnist_mlp --device cuda:0 --dtype tf32 --seconds 0.05 --json
    is out "[(r['cache_lookups'], r['cache_hits']) for r in d['rows']] == [(3, 0), (3, 3)]"
    ends 0 profile mnist_mlp --device cuda:0:own --seconds 0.05 --json
    is out "(d['rows'][0]['cache_lookups'], d['rows'][0]['cache_hits']) == (0, 0)"
}

# What is simulated of time: kernels of 100 us and a launch of 10 us, by the host's clock.
simulate() {
    export FAKE_GPU_SIMULATION="values=${2-0},kernel=100e-6,delay=10e-6,nvml=1e-3,tick=0.05,idle=70,busy=400$1"
    export FAKE_GPU_TRUTH=$PWD/truth
}

@test "latency, energy and layers are those that were simulated" {
    simulate "" -1 # products of the roofline would take minutes
    ends 0 profile mnist_mlp --device cuda:0:own --layers --json # measures the roofline, and leaves its truth
    ends 0 profile mnist_mlp --device cuda:0:own --seconds 0.3 --layers --json
    is out "abs(d['rows'][0]['p50_seconds'] / float(open('truth').read()) - 1) < 0.05"
    is out "abs(d['rows'][0]['layers']['sum_seconds'] / float(open('truth').read()) - 1) < 0.05"
    is out "d['rows'][0]['layers']['roofline']['flops_per_second'] > 0 and d['rows'][0]['layers']['roofline']['cache_bytes'] == 1 << 20"
    is out "{l['bound'] for l in d['rows'][0]['layers']['list'] if 'linear' in l['operators']} <= {'compute', 'cache', 'memory'}"
    is out "abs(d['rows'][0]['energy_joules'] / (400 * float(open('truth').read())) - 1) < 0.1"
    is out "d['rows'][0]['energy_low_joules'] <= d['rows'][0]['energy_joules'] <= d['rows'][0]['energy_high_joules']"
    is out "d['rows'][0]['clock_hertz'] == 1.5e9 and d['rows'][0]['throttled_by'] is None"
}

@test "a search for energy on a GPU has its counter" {
    space
    simulate
    sed -i 's/objectives:.*/objectives: [energy, params]/; s/trials: 6/trials: 2/' job.yaml
    ends 0 search job.yaml --verify none --json
    is out "(d['finished'], d['failed']) == (2, 0)"
    is out "all(f['objectives']['energy']['value'] > 0 and f['objectives']['energy']['source'] == 'measured' for f in d['front'])"
}

@test "copies on a GPU share it: their throughput is never more than the GPU's" {
    [ "$(nproc)" -ge 2 ] || skip "needs two cores"
    simulate
    export FAKE_GPU_SHARED=$PWD/gpu
    # A copy that gets no core for the whole window sees no tick of the counter, and has no energy to tell.
    for _ in 1 2 3 4; do
        ends 0 profile mnist_mlp --device cuda:0:own --threads 1 --streams 2 --seconds 1 --json
        [ "$(json out "d['rows'][0]['energy_joules']")" = None ] || break
        rm gpu
    done
    # Never more than the GPU can do, but for what is enqueued at either end; less where this machine is busy, as copies
    # share it by the host's clock.
    is out "0 < d['rows'][0]['items_per_second'] * float(open('truth').read()) < 1.02"
    is out "d['rows'][0]['energy_joules'] > 0.85 * 400 * float(open('truth').read())"
}

@test "heat and a power limit are told as such" {
    simulate ",heat_until=1e9,heat=0.5"
    ends 0 profile mnist_mlp --device cuda:0:own --seconds 0.2
    says out "heat held the device's clock down"
    simulate ",cap_until=1e9,cap=0.8"
    ends 0 profile mnist_mlp --device cuda:0:own --seconds 0.2
    says out "power held the clock down to 1200 MHz"
}

@test "making plans takes longer than the timeout, and is no hang" {
    space
    export LD_LIBRARY_PATH=$HWNAS_FAKE_GPU:$HWNAS_FAKE_GPU/cudnn FAKE_CUDNN_SECONDS=0.9 HWNAS_PLANS=
    sed -i 's/cuda:0:own/cuda:0/; s/trials: 6/trials: 1/; s/seconds: 0.05/seconds: 0.05, timeout: 2/' job.yaml
    ends 0 search job.yaml --verify none --json
    is out "(d['finished'], d['failed']) == (1, 0)"
}

@test "the first run loads kernels for longer than the timeout, and is no hang" {
    space
    export LD_LIBRARY_PATH=$HWNAS_FAKE_GPU:$HWNAS_FAKE_GPU/cudnn FAKE_CUDNN_LOADS=7
    sed -i 's/cuda:0:own/cuda:0/; s/trials: 6/trials: 1/; s/seconds: 0.05/seconds: 0.05, timeout: 4/' job.yaml
    ends 0 search job.yaml --verify none --json
    is out "(d['finished'], d['failed']) == (1, 0)"
}

@test "a plan that fails when it is run is left out, and the network runs without it" {
    space
    export LD_LIBRARY_PATH=$HWNAS_FAKE_GPU:$HWNAS_FAKE_GPU/cudnn
    sed -i 's/cuda:0:own/cuda:0/; s/trials: 6/trials: 2/' job.yaml
    FAKE_CUDNN_FAULT=run ends 0 search job.yaml --json
    is out "(d['finished'], d['failed']) == (2, 0)"
}

@test "a search on quick plans measures its front without, and goes on from there" {
    space
    simulate
    export LD_LIBRARY_PATH=$HWNAS_FAKE_GPU:$HWNAS_FAKE_GPU/cudnn FAKE_CUDNN_COMPILES=1 HWNAS_PLANS=
    sed -i 's/cuda:0:own/cuda:0:quick/; s/trials: 6/trials: 8/' job.yaml
    ends 0 search job.yaml --verify none --study study.db --json
    is out "d['finished'] == 8 and 'quick plans' in d['device']['library']"
    # Each network of the front, and those that were when it was measured.
    is out "{t['trial'] for t in d['front']} <= {t['trial'] for t in d['thorough']}"
    is out "all(t['device'] == 'cuda:0' and t['value'] < 0.9 * t['first'] for t in d['thorough'])"
    # The front has the new values, as well as the first ones have stayed.
    is out "all(abs(f['objectives']['latency.p50']['value'] * 1e-3 / t['value'] - 1) < 1e-9
        for f in d['front'] for t in d['thorough'] if f['trial'] == t['trial'])"
    is out "not d['confirmed']"
    ends 0 study show study.db
    says out "network* of the front again on cuda:0"
    # Going on measures none of them a second time.
    grep -v ^trials out >first
    ends 0 search job.yaml --verify none --study study.db --resume --json
    ends 0 study show study.db
    diff first <(grep -v ^trials out)
}

# A search on quick plans, whose plans are compiled; the stand-in writes down who makes each.
prepare() {
    [ "$(nproc)" -ge 2 ] || skip "needs two cores"
    space
    sed -i 's/cuda:0:own/cuda:0:quick/; s/trials: 6/trials: 14/; s/estimate: off/estimate: off, verify: none/' job.yaml
    export LD_LIBRARY_PATH=$HWNAS_FAKE_GPU:$HWNAS_FAKE_GPU/cudnn FAKE_CUDNN_COMPILES=1 HWNAS_PLANS= FAKE_GPU_TRACE=$PWD/trace
    # The GPU's time is virtual, so latencies are the same whatever else this machine does.
    export FAKE_GPU_SIMULATION="is_virtual=1,values=0,kernel=100e-6"
    # Cores that others measure on meanwhile would be left alone.
    export HWNAS_CORE_LOCKS=-$BASHPID
}

# What the strategy proposed, and what it was told.
told() {
    /usr/bin/python3 - "$1" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for row in db.execute("SELECT t.number, code, status, value FROM trial t LEFT JOIN value v ON v.trial = t.number"
                      " AND metric = 'latency.p50' ORDER BY t.number"):
    print(*row)
END
}

@test "plans of the next network are made while one is measured" {
    prepare
    # The first network is not done with before three plans are made; where nobody makes them the GPU is lost.
    # The front's networks, in a process of their own, wait for nobody.
    FAKE_GPU_HOLDS=3 FAKE_GPU_HELD=$PWD/held ends 0 search job.yaml --strategy random --json
    is out "(d['finished'], d['failed']) == (14, 0)"
    # Of the quick search no plan is made in the turn of its network, but for the first's; the front has its own.
    [ "$(uniq trace | head -3 | tr '\n' ' ')" = "plan network ahead " ]
    [ "$(sed '/ahead/,$!d' trace | grep -c ahead)" -ge 3 ]
}

@test "a search proposes and measures the same whether plans are made ahead or not" {
    prepare
    for strategy in local-search nsga2; do
        rm -f trace held
        FAKE_GPU_HOLDS=1 FAKE_GPU_HELD=$PWD/held ends 0 search job.yaml --strategy "$strategy" --study "$strategy.db" --json
        grep -q ahead trace
        rm trace
        taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" "$HWNAS" search job.yaml --strategy "$strategy" --study alone.db
        not grep -q ahead trace
        told "$strategy.db" >with
        [ "$(wc -l <with)" = 14 ]
        diff with <(told alone.db)
        rm alone.db*
    done
}

@test "a runner that dies while it makes plans ahead loses nothing" {
    prepare
    FAKE_CUDNN_FAULT=ahead ends 0 search job.yaml --strategy random --json
    is out "(d['finished'], d['failed']) == (14, 0)"
    # When plans take longer than a measurement it dies in the turn of the network that they are for, the last one's too.
    FAKE_CUDNN_SECONDS=0.1 FAKE_CUDNN_FAULT=ahead ends 0 search job.yaml --strategy random --seed 2 --study slow.db --json
    is out "(d['finished'], d['failed']) == (14, 0)"
}

@test "a network that fails because of what is made ahead meanwhile is measured alone" {
    prepare
    # It runs on until a plan has been made, which the GPU does not survive: the network itself ends with an error.
    FAKE_CUDNN_FAULT=harm FAKE_GPU_HOLDS=1 FAKE_GPU_HELD=$PWD/held ends 0 search job.yaml --strategy random --json
    is out "(d['finished'], d['failed']) == (14, 0)"
    grep -q ahead trace
}

@test "a plan that kills the runner, made ahead, costs its own trial alone" {
    prepare
    FAKE_CUDNN_FAULT=five ends 0 search job.yaml --strategy random --json
    told job.db >told
    grep -q kernel=5 told
    not grep -v -e "kernel=5,.* out_of_memory None" -e "kernel=[13],.* ok [0-9]" told
}

@test "a search on quick plans of another machine measures its front there without" {
    space
    simulate
    # What stands for ssh runs the command here, as the other machine's shell would.
    cat >ssh.sh <<'END'
#!/bin/sh
while [ "$1" != -- ]; do shift; done
echo "$2" >>hosts
shift 2
exec sh -c "$*"
END
    chmod +x ssh.sh
    export LD_LIBRARY_PATH=$HWNAS_FAKE_GPU:$HWNAS_FAKE_GPU/cudnn FAKE_CUDNN_COMPILES=1 HWNAS_PLANS=
    export HWNAS_SSH=$PWD/ssh.sh HWNAS_SSH_PROGRAM=$HWNAS
    sed -i 's,cuda:0:own,ssh:far/cuda:0:quick,; s/trials: 6/trials: 8/' job.yaml
    ends 0 search job.yaml --verify none --study study.db --json
    is out "d['finished'] == 8 and 'quick plans' in d['device']['library']"
    is out "{t['trial'] for t in d['front']} <= {t['trial'] for t in d['thorough']}"
    is out "all(t['device'] == 'ssh:far/cuda:0' and t['value'] < 0.9 * t['first'] for t in d['thorough'])"
    [ "$(sort -u hosts)" = far ]
}

@test "all GPUs are listed, and what is not proven of them is said" {
    share_rooflines
    simulate "" -1
    FAKE_GPU_COUNT=3 LD_LIBRARY_PATH=$HWNAS_FAKE_GPU:$HWNAS_FAKE_GPU/cudnn ends 0 devices --json
    is out "([[i['spelling'] for i in x['instances'] if i['works']] for x in d['devices'] if x['name'] == 'cuda'] ==
        [['cuda:0', 'cuda:1', 'cuda:2']])"
    is out "all('real GPU' in x['caveat'] for x in d['devices'] if x['name'].startswith('cuda'))"
}

@test "f32 means no tensor cores, which is told before a search and behind a profile" {
    space
    export LD_LIBRARY_PATH=$HWNAS_FAKE_GPU:$HWNAS_FAKE_GPU/cudnn
    ends 0 profile mnist_mlp --device cuda:0 --seconds 0.05
    says out "! cuda:0: f32 multiplies without tensor cores; --dtype tf32 uses them"
    ends 0 profile mnist_mlp --device cuda:0 --seconds 0.05 --dtype f32,tf32
    not grep "multiplies without" out
    ends 0 profile mnist_mlp --device cuda:0:own --seconds 0.05 # in tf32 they would do the same
    not grep "multiplies without" out
    sed -i 's/cuda:0:own/cuda:0/; s/trials: 6/trials: 1/' job.yaml
    ends 0 search job.yaml --verify none
    says err "cuda:0: f32 multiplies without tensor cores; dtype: tf32 uses them"
    ends 0 search job.yaml --verify none --dtype tf32 --study tf32.db
    not grep "multiplies without" err
}

@test "a driver for an older CUDA than cuDNN's is told, and kernels of ours go by the driver" {
    export LD_LIBRARY_PATH=$HWNAS_FAKE_GPU:$HWNAS_FAKE_GPU/cudnn FAKE_GPU_DRIVER=12040 FAKE_CUDNN_CUDA=13000
    ends 1 profile mnist_mlp --device cuda:0
    says err "this cuDNN was built for CUDA 13, and the driver knows CUDA up to 12.4"
    mkdir twelve
    ln -s "$HWNAS_FAKE_GPU"/libcuda.so.1 "$HWNAS_FAKE_GPU"/libnvidia-ml.so.1 "$HWNAS_FAKE_GPU"/libnvrtc.so.12 twelve
    LD_LIBRARY_PATH=$PWD/twelve ends 0 profile mnist_mlp --device cuda:0:own --seconds 0.05
}

@test "a GPU that is newer than NVRTC computes by what the driver makes of an older one's kernels" {
    export LD_LIBRARY_PATH=$HWNAS_FAKE_GPU HWNAS_PLANS=
    FAKE_GPU_FAULT=newer ends 0 profile mnist_mlp --device cuda:0:own --seconds 0.05 --verify --json
    is out "d['rows'][0]['status'] == 'ok' and d['rows'][0]['verified_error'] < 1e-5"
}

@test "where this machine has something else to do between two networks none is sent ahead" {
    prepare
    printf '%s\n' '#!/bin/sh' 'echo 50' >train
    chmod +x train
    cp job.yaml plain.yaml
    # A training, which would run while the next network is measured.
    sed 's/params\]/accuracy]/' plain.yaml >job.yaml
    echo 'accuracy: command:./train' >>job.yaml
    FAKE_GPU_HOLDS=0 ends 0 search job.yaml --strategy random --json
    is out "(d['finished'], d['failed']) == (14, 0)"
    grep -q network trace
    not grep -q ahead trace
    # A second device, for which the first one's runner makes room.
    rm trace
    sed 's/^device: .*/devices: [{name: gpu, device: "cuda:0:quick"}, {name: other, device: "null"}]/' \
        plain.yaml >job.yaml
    ends 0 search job.yaml --strategy random --study two.db --json
    is out "(d['finished'], d['failed']) == (14, 0)"
    grep -q network trace
    not grep -q ahead trace
}
