# hwnas on another machine, which here is this one behind an sshd on a loopback port.
load helpers

STILL=${HWNAS%/*}/tests/cli/still_runner
# What the machine behind sshd measures is a function of the network alone.
SEARCH=(search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --strategy nsga2 --objectives accuracy,latency.p50
    --parallel 4 --ties 0 --confirm 0 --estimate off --json)


setup_file() {
    local sshd=/usr/sbin/sshd port
    [ -x $sshd ] || skip "sshd is not installed (Debian's openssh-server)"
    export BOARD=$BATS_FILE_TMPDIR/board
    mkdir "$BOARD"
    [ "$(id -u)" != 0 ] || mkdir -p /run/sshd
    for key in host other user stranger; do
        ssh-keygen -q -t ed25519 -N '' -f "$BOARD/$key"
    done
    cp "$BOARD/user.pub" "$BOARD/authorized_keys"
    port=$(/usr/bin/python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
    cat >"$BOARD/sshd_config" <<END
Port $port
ListenAddress 127.0.0.1
HostKey $BOARD/host
AuthorizedKeysFile $BOARD/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PidFile none
MaxStartups 100
SetEnv STILL_BY_NETWORK=1 STILL_BY_SIZE=1
AcceptEnv STILL_MACHINE STILL_SPANS STILL_WAITS
END
    cat >"$BOARD/ssh_config" <<END
Host twin
    SetEnv STILL_MACHINE=twin STILL_SPANS=$BOARD/spans STILL_WAITS=0.1
Host third
    SetEnv STILL_MACHINE=third STILL_SPANS=$BOARD/spans STILL_WAITS=0.1
Host odd
    SetEnv STILL_MACHINE=odd
Host *
    HostName 127.0.0.1
    Port $port
    User $(id -un)
    IdentityFile $BOARD/user
    IdentitiesOnly yes
    UserKnownHostsFile $BOARD/known_hosts
    HostKeyAlias board
    StrictHostKeyChecking yes
END
    echo "board $(cut -d ' ' -f 1,2 "$BOARD/host.pub")" >"$BOARD/known_hosts"
    $sshd -D -f "$BOARD/sshd_config" -E "$BOARD/sshd.log" 3>&- &
    echo $! >"$BOARD/sshd.pid"
    printf '#!/bin/sh\nexec ssh -F %s "$@"\n' "'$BOARD/ssh_config'" >"$BOARD/ssh"
    chmod +x "$BOARD/ssh"
    export HWNAS_SSH=$BOARD/ssh
    local i
    for ((i = 0; i < 600; i++)); do
        "$HWNAS_SSH" board true 2>"$BOARD/first" && break
        sleep 0.1
    done
    ((i < 600)) || { cat "$BOARD/first" "$BOARD/sshd.log"; false; }
    export STILL_BY_NETWORK=1 STILL_BY_SIZE=1
    undisturbed "$HWNAS" "${SEARCH[@]}" --device null --trials 40 --study "$BOARD/here.db" >"$BOARD/here.json"
}

teardown_file() {
    [ ! -e "$BOARD/sshd.pid" ] || kill "$(<"$BOARD/sshd.pid")"
}

# on PROGRAM COMMAND...: the other machine has this hwnas.
on() {
    HWNAS_SSH_PROGRAM=$1 "${@:2}"
}

@test "a search there is the search here; the study says where" {
    on "$STILL" ends 0 "${SEARCH[@]}" --device ssh:board/null --trials 40 --study s.db
    [ "$(json out "[[t['arch'], t['objectives']['latency.p50']['value']] for t in d['front']]")" = \
        "$(json "$BOARD/here.json" "[[t['arch'], t['objectives']['latency.p50']['value']] for t in d['front']]")" ]
    is out "d['trials'] == d['finished'] == 40 and d['failed'] == $(json "$BOARD/here.json" "d['failed']")"
    # The same machine without ssh between is another device.
    HWNAS_RUNNER=$STILL refuses 2 "" "${SEARCH[@]}" --device null --trials 50 --study s.db --resume
}

@test "a search over this machine and another: one link for all, and a value of each" {
    local before
    cat >job.yaml <<END
space: nas_bench_macro
accuracy: nas_bench_macro_cifar10
devices: [{name: here, device: "null"}, {name: board, device: "ssh:board/null"}]
objectives: [accuracy, latency.p50 on here, latency.p50 on board]
strategy: nsga2
measure: {estimate: off}
budget: {trials: 20}
END
    before=$(grep -c 'Accepted publickey' "$BOARD/sshd.log")
    HWNAS_RUNNER=$STILL on "$STILL" ends 0 search job.yaml --ties 0 --confirm 0 --json --study both.db
    [ "$(grep -c 'Accepted publickey' "$BOARD/sshd.log")" = $((before + 1)) ]
    is out "d['trials'] == 20 and len(d['front']) > 1"
    is out "all(t['objectives']['latency.p50 on here']['value'] == t['objectives']['latency.p50 on board']['value']
        for t in d['front'])"
    ends 0 study show both.db --json
    is out "', over ssh, machine ' in d['devices']['board']['name'] and 'ssh' not in d['devices']['here']['name']"
}

# fronts_are FILE.db FILE.json: a front of the search's JSON has each trial that no other one matches, by accuracy and by the latencies
# that the front is of, where latencies match whose intervals overlap; and none that another one beats by whole intervals, where
# a disturbed measurement beats no undisturbed one.
fronts_are() {
    "$HWNAS" study export "$1" --format jsonl >trials.jsonl
    /usr/bin/python3 - "$1" "$2" <<'END'
import json, sqlite3, sys
trials = {}
unstable = {t["trial"] for t in map(json.loads, open("trials.jsonl")) if '"unstable": true' in json.dumps(t)}
for trial, metric, *value in sqlite3.connect(sys.argv[1]).execute("SELECT trial, metric, value, low, high FROM value"):
    trials.setdefault(trial, {})[metric] = value
names = ["here", "ort", "pi"]
d = json.load(open(sys.argv[2]))
fronts = [([name], front) for name, front in d["fronts"].items()] if "fronts" in d else [(names, d)]
assert len(fronts) in (1, 3) and len(trials) >= 8, (len(fronts), len(trials)) # some fail on the still machine
for of, front in fronts:
    # Each is (value, low, high); less is better, also of accuracy here.
    rows = {t: [[-v["accuracy"][0]] * 3] + [v["latency.p50 on " + n] for n in of] for t, v in trials.items()}
    assert all(0 < low <= value <= high for row in rows.values() for value, low, high in row[1:]), rows
    matched, beaten = ({t for t, row in rows.items() if any(
        o != t and all(y[i] <= x[j] for x, y in zip(row, other)) and (j == 2 or o not in unstable or t in unstable)
        for o, other in rows.items())} for i, j in ((1, 2), (2, 1)))
    got = {t["trial"] for t in front["front"]}
    assert set(rows) - matched <= got <= set(rows) - beaten and len(got) > 1, (of, got, matched, beaten)
END
}

@test "a search over this processor, ONNX Runtime and another machine: one front for all, and one for each" {
    local fronts
    alone
    find_ort
    "$HWNAS" devices ort >/dev/null 2>&1 || skip "there is no ONNX Runtime here"
    for fronts in together each; do
        cat >job.yaml <<END
space: nas_bench_macro
accuracy: nas_bench_macro_cifar10
devices: [{name: here, device: cpu}, ort, {name: pi, device: "ssh:board/null"}]
objectives: [accuracy, latency.p50]
fronts: $fronts
strategy: nsga2
threads: 1
measure: {estimate: off, seconds: 0.02, verify: none}
budget: {trials: 12}
END
        on "$STILL" ends 0 search job.yaml --ties 0 --confirm 0 --json --study $fronts.db
        fronts_are $fronts.db out
        ends 0 study show $fronts.db --json
        is out "'over ssh, machine' in d['devices']['pi']['name'] and 'ONNX Runtime' in d['devices']['ort']['library']"
        is out "'oneDNN' in d['devices']['here']['library'] and 'ssh' not in d['devices']['here']['name'] + d['devices']['ort']['name']"
    done
    # What was measured on three devices is no study of two of them.
    sed -i 's/ort, //; s/trials: 12/trials: 14/' job.yaml
    on "$STILL" refuses 2 "" search job.yaml --study each.db --resume
}

@test "two machines in a list are two devices, each with a name" {
    on "$STILL" ends 0 "${SEARCH[@]}" --devices '["ssh:twin/null", "ssh:third/null", "null"]' --trials 4 --study two.db
    is out "sorted(d['devices']) == ['null', 'ssh-third-null', 'ssh-twin-null']"
    is out "d['front'] and all('latency.p50 on ' + n in t['objectives'] for t in d['front'] for n in d['devices'])"
    on "$STILL" refuses 2 "two devices are called 'ssh-twin-null'" \
        "${SEARCH[@]}" --devices '["ssh:twin/null", "ssh:twin/null"]' --trials 4 --study x.db
    refuses 2 "devices must be a list*write \[cpu, ort\]" "${SEARCH[@]}" --devices cpu,ort --trials 4 --study x.db
    refuses 2 "is not a name of a device*devices: \[cpu, ort\]" "${SEARCH[@]}" --device cpu,ort --trials 4 --study x.db
}

@test "what is lacking on the other machine is said of that machine" {
    on "$HWNAS" refuses 2 "on 'board': there is no device 'npu'" devices ssh:board/npu
    # What is started by another program is no device of the hwnas there.
    refuses 2 "behind ssh hwnas runs its own devices alone, not 'torch'*ssh:board/ort" devices ssh:board/torch
    refuses 2 "not 'ssh:board'" devices ssh:board/ssh:board
}

# values FILE.db: each trial with its values.
values() {
    /usr/bin/python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for row in db.execute("SELECT number, code, status, violation FROM trial ORDER BY number"): print(row)
for row in db.execute("SELECT * FROM value ORDER BY trial, position"): print(row)' "$1"
}

@test "several boards of one kind: they measure at the same time, and the study is that of one" {
    rm -f "$BOARD/spans"
    on "$STILL" ends 0 "${SEARCH[@]}" --device ssh:twin+third/null --trials 40 --study s.db
    values s.db >several
    values "$BOARD/here.db" | cmp - several
    # A board began while the other one was at work.
    /usr/bin/python3 - "$BOARD/spans" <<'END'
import sys
busy, together, seen = set(), 0, set()
for line in open(sys.argv[1]).read().split():
    (busy.add if line[0] == "+" else busy.discard)(line[1:])
    seen.add(line[1:])
    together += len(busy) == 2
print(seen, together)
assert seen == {"twin", "third"} and together > 2  # one after the other: 0
END
    ends 0 study show s.db --json
    is out "', over ssh, 2 machines ' in str(d['devices'])"
    # The order does not matter; another set of machines does.
    on "$STILL" ends 0 "${SEARCH[@]}" --device ssh:twin+third/null --trials 44 --study s.db --resume
    on "$STILL" refuses 2 "" "${SEARCH[@]}" --device ssh:twin/null --trials 50 --study s.db --resume
}

# leaving END THEN: ./leaving stands for ssh. The link to `third` ends by END when that board has measured something; those
# after the first are made by THEN, where $n counts them.
leaving() {
    cat >leaving <<END
#!/bin/sh
case " \$* " in *" third "*) ;; *) exec '$BOARD/ssh' "\$@" ;; esac
echo >>'$PWD/links'
n=\$(wc -l <'$PWD/links')
refused() {
    echo 'ssh: connect to host third: Connection refused' >&2
    exit 255
}
[ \$n = 1 ] || { $2; }
exec 3<&0 # a shell gives what runs beside it nothing to read
'$BOARD/ssh' "\$@" <&3 &
until [ "\$(grep -c third '$BOARD/spans')" -ge 4 ]; do sleep 0.05; done 2>/dev/null
echo gone >>'$BOARD/spans'
$1
exit 255
END
    chmod +x leaving
    rm -f links "$BOARD/spans"
}

@test "several boards: one that cannot be reached any more leaves the search to the others" {
    leaving 'kill -9 $!' refused
    HWNAS_SSH=$PWD/leaving on "$STILL" ends 0 "${SEARCH[@]}" --device ssh:twin+third/null --trials 40 --study s.db --verbose
    values s.db >several
    values "$BOARD/here.db" | cmp - several
    says err "the link to 'third' was lost"
    says err "the other boards go on"
    sed '1,/gone/d' "$BOARD/spans" | grep -q +twin
    [ "$(wc -l <links)" -gt 1 ]
}

# together: how often both boards were at work at the same time after the link was cut.
together() {
    /usr/bin/python3 - "$BOARD/spans" <<'END'
import sys
busy, n = set(), 0
for line in open(sys.argv[1]).read().split("gone")[1].split():
    if line[0] in "+-":
        (busy.add if line[0] == "+" else busy.discard)(line[1:])
        n += line[0] == "+" and len(busy) == 2
print(n)
END
}

@test "several boards: one that comes back measures with the others again" {
    leaving 'kill -9 $!' "[ \$n -gt 3 ] || refused; exec '$BOARD/ssh' \"\$@\""
    HWNAS_SSH=$PWD/leaving on "$STILL" ends 0 "${SEARCH[@]}" --device ssh:twin+third/null --trials 60 --study s.db --verbose
    is out "d['trials'] == d['finished'] == 60"
    says err "'ssh:third/null' is back"
    (($(together) > 4))
}

@test "several boards: while the way to one is silent the others measure" {
    leaving 'kill -STOP $!; sleep 100' "echo calls >>'$BOARD/spans'; sleep 3; echo called >>'$BOARD/spans'; exec '$BOARD/ssh' \"\$@\""
    HWNAS_SSH=$PWD/leaving on "$STILL" ends 0 "${SEARCH[@]}" --device ssh:twin+third/null --trials 60 --study s.db --timeout 1 --verbose
    is out "d['trials'] == d['finished'] == 60"
    (($(sed '1,/calls/d; /called/,$d' "$BOARD/spans" | grep -c +twin) > 2))
}

@test "another machine behind the same name in the middle of a search: nothing of it is taken" {
    elsewhere moved
    leaving 'kill -9 $!' "exec '$PWD/moved' \"\$@\""
    sed -i s/third/twin/g leaving
    HWNAS_SSH=$PWD/leaving on "$STILL" refuses 1 "another machine than before answers as 'ssh:twin/null': it was a still machine, over ssh, machine twin" \
        "${SEARCH[@]}" --device ssh:twin/null --trials 40 --study s.db
    says err "it is a still machine, over ssh, machine moved"
    says err "--resume"
    ! grep -q +moved "$BOARD/spans"
    on "$STILL" ends 0 "${SEARCH[@]}" --device ssh:twin/null --trials 40 --study s.db --resume
    values s.db >resumed
    values "$BOARD/here.db" | cmp - resumed
}

@test "several boards: another machine behind the name of one leaves the search to the others" {
    elsewhere moved
    sed -i s/STILL_MACHINE=third/STILL_MACHINE=moved/ moved_config
    leaving 'kill -9 $!' "exec '$PWD/moved' \"\$@\""
    HWNAS_SSH=$PWD/leaving on "$STILL" ends 0 "${SEARCH[@]}" --device ssh:twin+third/null --trials 40 --study s.db --verbose
    [ "$(grep -c "another machine than before answers as 'ssh:third/null'" err)" = 1 ]
    ! grep -q +moved "$BOARD/spans"
    values s.db >several
    values "$BOARD/here.db" | cmp - several
}

@test "several boards: what was estimated is measured by all of them, too" {
    rm -f "$BOARD/spans"
    on "$STILL" ends 0 search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --strategy nsga2 --ties 0 --confirm 0 \
        --objectives accuracy,latency.p50 --device ssh:twin+third/null --trials 150 --study s.db --json
    is out "d['trials'] == d['finished'] == 150 and d['remeasured'] > 3"
    is out "'estimated' not in str(d['front'])"
    [ "$(cut -c 2- "$BOARD/spans" | sort -u | tr '\n' ' ')" = "third twin " ]
}

@test "networks that have a runner each, or other threads than the one before, are measured all the same" {
    on "$STILL" ends 0 "${SEARCH[@]}" --device ssh:board/null --memory 1024 --trials 5 --study limited.db
    is out "d['trials'] == d['finished'] == 5"
    on "$STILL" ends 0 "${SEARCH[@]}" --device ssh:board/null --threads '{values: [1, 2]}' --trials 10 --study threads.db
    is out "d['trials'] == d['finished'] == 10"
    values threads.db | cut -d "'" -f 2 >codes
    grep -q threads=1 codes && grep -q threads=2 codes
}

@test "several boards: others than of one kind, one twice, or where one is needed" {
    printf '#!/bin/sh\n[ "$STILL_MACHINE" = odd ] && exec %s "$@"\nexec %s "$@"\n' "'$HWNAS'" "'$STILL'" >mixed
    chmod +x mixed
    on "$PWD/mixed" refuses 2 "'ssh:twin/null' and 'ssh:odd/null' are not of one kind: a still machine, over ssh" \
        "${SEARCH[@]}" --device ssh:twin+odd/null --trials 4 --study s.db
    on "$STILL" refuses 2 "'ssh:twin/null' and 'ssh:twin/null' are the same machine" \
        "${SEARCH[@]}" --device ssh:twin+twin/null --trials 4 --study s.db
    refuses 2 "names no machine" "${SEARCH[@]}" --device ssh:twin+/null --trials 4 --study s.db
    refuses 2 "names several boards, which only a search takes" devices ssh:twin+third
}

# elsewhere NAME: `twin` is another machine of the same kind, for the program ./NAME that connects.
elsewhere() {
    sed s/STILL_MACHINE=twin/STILL_MACHINE=moved/ "$BOARD/ssh_config" >"$1_config"
    printf '#!/bin/sh\nexec ssh -F %s "$@"\n' "'$PWD/$1_config'" >"$1"
    chmod +x "$1"
}

@test "a baseline across a link: the same machine is judged, another one behind the same name is told" {
    elsewhere moved
    on "$STILL" ends 0 profile mnist_mlp --device ssh:twin/null --threads 1 --save base.json
    on "$STILL" ends 0 compare --baseline base.json --json
    is out "d['doubt'] is None and [r['verdict'] for r in d['rows']] != ['slower']"
    HWNAS_SSH=$PWD/moved on "$STILL" ends 0 compare --baseline base.json --json
    is out "\"device: recorded 'a still machine, over ssh, machine twin', now 'a still machine, over ssh, machine moved'\" in d['doubt']"
}

@test "another machine behind the same name: no study goes on, nothing is taken over, nothing learnt serves it" {
    local job=(search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --strategy nsga2 --ties 0 --confirm 0
        --objectives accuracy,latency.p50 --device ssh:twin/null --json)
    elsewhere moved
    on "$STILL" ends 0 "${job[@]}" --trials 40 --study s.db
    HWNAS_SSH=$PWD/moved on "$STILL" refuses 2 "" "${job[@]}" --trials 50 --study s.db --resume
    on "$STILL" ends 0 "${job[@]}" --trials 30 --warm-start s.db --study same.db
    is out "d['warm'] > 0"
    HWNAS_SSH=$PWD/moved on "$STILL" ends 0 "${job[@]}" --trials 30 --warm-start s.db --study other.db
    is out "d['warm'] == 0"
    /usr/bin/python3 - "$XDG_CACHE_HOME"/hwnas/latency-*.db <<'END'
import sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute("SELECT name, count(*) FROM observation JOIN machine ON machine.id = machine GROUP BY name")
names = sorted(name.split("; ")[1] for name, n in rows if n)
assert names == ["a still machine, over ssh, machine moved", "a still machine, over ssh, machine twin"], names
END
}

@test "devices and profile: the other machine says who it is" {
    on "$HWNAS" ends 0 devices ssh:board --json
    is out "len(d['devices']) == 1 and d['devices'][0]['name'] == 'ssh:board' and d['devices'][0]['works']"
    is out "', over ssh, machine ' in d['devices'][0]['description'] and 'oneDNN' in d['devices'][0]['library']"
    is out "'f32' in d['devices'][0]['native'] + d['devices'][0]['emulated']"
    "$HWNAS" devices null --json >here
    is out "d['priority']['realtime'] == $(json here "d['priority']['realtime']")"
    on "$HWNAS" ends 0 profile mnist_mlp --device ssh:board --threads 1 --seconds 0.05 --json
    is out "d['rows'][0]['p50_seconds'] > 0 and d['rows'][0]['device'] == 'ssh:board'"
    is out "'over ssh' in d['devices'][0]['name']"
}

@test "devices: whether the other machine measures with real-time priority" {
    [ "$(id -u)" = 0 ] || skip "only root can take the right away"
    printf '#!/bin/sh\nexec setpriv --bounding-set=-sys_nice prlimit --rtprio=0 %s "$@"\n' "'$HWNAS'" >refused
    chmod +x refused
    on "$PWD/refused" ends 0 devices ssh:board --json
    is out "not d['priority']['realtime'] and 'there' in d['priority']['message'] and 'setcap' in d['priority']['hint']"
    on "$PWD/refused" ends 0 devices ssh:board
    says out "priority normal: the kernel there refuses real-time priority"
    # One that does not say, as it is older, is not one that was refused.
    cat >older.py <<'END'
import json, struct, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
while head := child.stdout.read(16):
    magic, kind, n = struct.unpack("<4sIQ", head)
    data = child.stdout.read(n)
    if kind == 5 and "info" in (answer := json.loads(data)):
        answer["info"].pop("priority", None)
        answer["info"]["abilities"] = [a for a in answer["info"]["abilities"] if a != "realtime"]
        data = json.dumps(answer).encode()
    sys.stdout.buffer.write(struct.pack("<4sIQ", magic, kind, len(data)) + data)
    sys.stdout.buffer.flush()
END
    printf '#!/bin/sh\nexec /usr/bin/python3 %s %s "$@"\n' "'$PWD/older.py'" "'$HWNAS'" >older
    chmod +x older
    on "$PWD/older" ends 0 devices ssh:board --json
    is out "'priority' not in d"
    # Boards of which one lacks it are of one kind all the same.
    printf '#!/bin/sh\n[ "$STILL_MACHINE" = twin ] || exec %s "$@"\nexec setpriv --bounding-set=-sys_nice prlimit --rtprio=0 %s "$@"\n' \
        "'$STILL'" "'$STILL'" >one
    chmod +x one
    on "$PWD/one" ends 0 "${SEARCH[@]}" --device ssh:twin+third/null --trials 8 --study s.db
}

@test "links that are cut at any moment: no trial lost or doubled, the same front" {
    local n=12
    [ -z "${HWNAS_LONG:-}" ] || n=100
    HWNAS_SSH_PROGRAM=$STILL /usr/bin/python3 "$HWNAS_SRC/tests/cli/cut_links.py" "$HWNAS" "$BOARD/ssh" ssh:board/null $n >&3
}

@test "links of two boards that are cut at any moment: the same" {
    local n=8
    [ -z "${HWNAS_LONG:-}" ] || n=100
    HWNAS_SSH_PROGRAM=$STILL /usr/bin/python3 "$HWNAS_SRC/tests/cli/cut_links.py" "$HWNAS" "$BOARD/ssh" ssh:twin+third/null $n >&3
}

@test "a network that fails once the link is no longer silent leaves the next one its second chance" {
    cat >ssh <<'END'
#!/usr/bin/python3
# Stands for ssh and a board: silent over the first network, which it cannot do when it is asked again; then silent over the second.
import json, struct, sys, time
source, sink = sys.stdin.buffer, sys.stdout.buffer
ways = [["silent"], ["unsupported", "silent"]]
with open("links", "a") as links:
    links.write("link\n")
with open("links") as links:
    n = len(links.readlines())
ways = ways[n - 1] if n <= len(ways) else []

def read():
    head = source.read(16)
    if len(head) < 16:
        sys.exit()
    kind, length = struct.unpack("<4sIQ", head)[1:]
    return kind, source.read(length)

def write(kind, **members):
    text = json.dumps(members).encode()
    sink.write(struct.pack("<4sIQ", b"hwn1", kind, len(text)) + text)
    sink.flush()

read()
write(5, status="ok", info={"protocol": 1, "name": "a board", "threads": 1, "native": ["f32"], "machine": "board"})
while True:
    kind, payload = read()
    if kind != 3:
        continue
    way = ways.pop(0) if ways else "ok"
    while way == "silent":
        time.sleep(1)
    if way == "ok":
        write(7, seconds=[1e-3 + 1e-6 * (i % 3) for i in range(40)])
    write(5, status=way, message="the board cannot do this network")
END
    chmod +x ssh
    HWNAS_SSH=$PWD/ssh ends 0 search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --objectives accuracy,latency.p50 \
        --device ssh:board --estimate off --ties 0 --confirm 0 --verify none --timeout 1 --trials 4 --study s.db --json
    [ "$(wc -l <links)" = 3 ]
    is out "d['trials'] == d['finished'] == 4 and d['failed'] == 1"
}

@test "a search that died with several networks on the way goes on as if it had not" {
    local n died=0
    for n in 31 52 75 90; do
        rm -f s.db*
        HWNAS=${HWNAS%/*}/tests/cli/mortal MORTAL_DIES=$n on "$STILL" ends 137 "${SEARCH[@]}" --device ssh:board/null \
            --trials 40 --study s.db
        on "$STILL" ends 0 "${SEARCH[@]}" --device ssh:board/null --trials 40 --study s.db --resume
        values s.db >resumed
        values "$BOARD/here.db" | cmp - resumed
        died=$((died + 1))
    done
    [ $died = 4 ]
}

@test "nothing there, another version, another program: one clear message each" {
    on /no/such/hwnas refuses 1 "there is no program '/no/such/hwnas' on 'board'" devices ssh:board
    says err "HWNAS_SSH_PROGRAM"
    printf '#!/bin/sh\necho "hwnas: hwnas has no command: runner" >&2\nexit 2\n' >old
    printf '#!/bin/sh\necho Welcome, dear user of this machine\n' >greets
    chmod +x old greets
    on "$PWD/old" refuses 1 "ended with status 2 as it was started: hwnas: hwnas has no command" devices ssh:board
    on "$PWD/greets" refuses 1 "'board' wrote something that is no frame of a runner" devices ssh:board
    says err "must print nothing"
    cat >next.py <<END
#!/usr/bin/python3
import json, struct, sys
source, sink = sys.stdin.buffer, sys.stdout.buffer
n = struct.unpack("<4sIQ", source.read(16))[2]
source.read(n)
text = json.dumps({"status": "ok", "info": {"protocol": 2, "name": "a board", "version": "9.9"}}).encode()
sink.write(struct.pack("<4sIQ", b"hwn1", 5, len(text)) + text)
sink.flush()
source.read()
END
    chmod +x next.py
    on "$PWD/next.py" refuses 1 "of board speaks version 2 of the protocol: it is hwnas 9.9, and this hwnas version 1" devices ssh:board
}

@test "a changed host key, a wrong user, nobody there: one clear message each" {
    echo "board $(cut -d ' ' -f 1,2 "$BOARD/other.pub")" >known_hosts
    printf '#!/bin/sh\nexec ssh -F %s -oUserKnownHostsFile=%s "$@"\n' "'$BOARD/ssh_config'" "'$PWD/known_hosts'" >changed
    printf '#!/bin/sh\nexec ssh -F %s -oIdentityFile=%s "$@"\n' "'$BOARD/strange_config'" "'$BOARD/stranger'" >stranger
    sed /IdentityFile/d "$BOARD/ssh_config" >"$BOARD/strange_config"
    printf '#!/bin/sh\nexec ssh -F %s -p 1 "$@"\n' "'$BOARD/ssh_config'" >nobody
    chmod +x changed stranger nobody
    HWNAS_SSH=$PWD/changed refuses 1 "the host key of 'board' is not known here, or has changed" devices ssh:board
    HWNAS_SSH=$PWD/stranger refuses 1 "'board' does not let you in without a password" devices ssh:board
    says err "ssh-copy-id board"
    refuses 1 "'no-such-user@board' does not let you in without a password" devices ssh:no-such-user@board
    says err "is the user's name right"
    grep -q 'Invalid user no-such-user' "$BOARD/sshd.log"
    HWNAS_SSH=$PWD/nobody refuses 1 "cannot reach 'board'" devices ssh:board
    says err "Connection refused"
    HWNAS_SSH=/no/such/ssh refuses 1 "cannot start the runner '/no/such/ssh'" devices ssh:board
    says err "openssh-client"
}

# pack FILE PROGRAM: a runner as scripts/build-runner packs one, whose program is that one.
pack() {
    mkdir -p packed/lib
    printf '#!/bin/sh\n[ "$1" != version ] || { echo "hwnas 0, a runner"; exit; }\nexec %s "$@"\n' "$2" >packed/hwnas
    chmod +x packed/hwnas
    tar czf "$1" -C packed .
}

@test "runner install: a runner goes there whole, or what is there stays" {
    local home=$PWD/home at=$PWD/home/.local/lib
    mkdir home
    /usr/bin/python3 - "$PWD/there" "$home" <<'END'
import os, sys
open(sys.argv[1], "w").write(f"""#!/bin/sh
# Stands for ssh; what it starts there has another home, and no hwnas in the PATH.
for last; do :; done
exec '{os.environ["BOARD"]}/ssh' -- board "HOME='{sys.argv[2]}' PATH=/usr/bin:/bin; export HOME PATH; $last"
""")
END
    chmod +x there
    export HWNAS_SSH=$PWD/there
    unset HWNAS_SSH_PROGRAM
    refuses 1 "there is no program 'hwnas' on 'board'" devices ssh:board
    says err "hwnas runner install ssh:board"
    refuses 2 "there is no runner for $(uname -m), which 'board' is" runner install ssh:board
    says err "scripts/build-runner $(uname -m)"

    pack good.tar.gz "'$STILL'"
    ends 0 runner install ssh:board --file good.tar.gz --json
    is out "d['runner'] == 'hwnas 0, a runner' and ', over ssh, machine ' in d['name']"
    [ "$(ls "$at")" = hwnas-runner ]
    ends 0 profile mnist_mlp --device ssh:board/null --json
    is out "d['rows'][0]['p50_seconds'] > 0"

    # One that does not start, and half a file: nothing is changed there, and nothing is left.
    cksum "$at/hwnas-runner/hwnas" >before
    printf '#!/bin/sh\nexit 3\n' >packed/hwnas
    tar czf dead.tar.gz -C packed .
    refuses 1 "cannot install the runner on 'board'" runner install ssh:board --file dead.tar.gz
    head -c 100 good.tar.gz >half.tar.gz
    refuses 1 "cannot install the runner on 'board'" runner install ssh:board --file half.tar.gz
    cksum "$at/hwnas-runner/hwnas" | cmp - before
    [ "$(ls "$at")" = hwnas-runner ]

    # A newer one takes its place.
    pack newer.tar.gz "'$STILL'"
    echo new >packed/new
    tar czf newer.tar.gz -C packed .
    ends 0 runner install ssh:board --file newer.tar.gz
    says out "installed  hwnas 0, a runner on board"
    [ -e "$at/hwnas-runner/new" ]
    [ "$(ls "$at")" = hwnas-runner ]
    refuses 2 "'cpu' is no other machine" runner install cpu
    refuses 2 "no-such-file" runner install ssh:board --file no-such-file
}

@test "what ssh would take for an option is no machine" {
    local name
    for name in "" -oProxyCommand=true "a b" 'a;b' /null user@ user@/null @board; do
        refuses 2 "names no machine" devices "ssh:$name"
    done
}

@test "a network that crashes the runner there fails as one that does here" {
    printf '#!/bin/sh\nHWNAS_RUNNER_FAULT=crash exec %s "$@"\n' "'$HWNAS'" >crashes
    chmod +x crashes
    on "$PWD/crashes" ends 1 profile mnist_mlp --device ssh:board/null --json
    is out "'died of SIGSEGV while compiling' in d['rows'][0]['message']"
}

@test "compare: this machine beside another, which runs one copy at a time" {
    on "$HWNAS" ends 0 compare mnist_mlp --device ref,ssh:board/ref --threads 1 --batch 1 --seconds 0.05
    says out "winner     ref, batch 1"
    says out "runner-up  ssh:board/ref, batch 1, 1 thread, 1 stream, f32"
}

# documented: the commands of docs/devices.md, one a line; and its job, in job.yaml.
documented() {
    awk '/^```/ { is_block = !is_block; next }
        is_block { print >"job.yaml"; next }
        is_open || /^    [^ ]/ { sub(/^ */, ""); is_open = sub(/\\$/, ""); printf is_open ? "%s" : "%s\n", $0 }' "$HWNAS_SRC/docs/devices.md"
}

# From nothing to a search, as the page says it. Less is measured: a search ends after three networks, and a small one is profiled.
@test "docs/devices.md: its commands lead to searches on a board, a server, ONNX Runtime and a runner of one's own" {
    local command program n=0
    find_ort
    mkdir bin home
    ln -s "$HWNAS_SRC/examples" examples
    ln -s /usr/bin/python3 bin/python3
    for program in benchmark_app trtexec; do
        ln -s "$HWNAS_SRC/tests/peers/standin/benchmark.py" bin/$program
    done
    cat >bin/hwnas <<END
#!/bin/sh
case \$1 in
search) set -- "\$@" --trials 3 --seconds 0.02 --ties 0 --confirm 0 --verify none ;;
profile | compare) set -- "\$@" --seconds 0.02 ;;
runner) set -- "\$@" --file runner.tar.gz ;; # the one for the kind of this machine
esac
exec '$HWNAS' "\$@"
END
    # Stands for ssh: all machines are the one behind sshd, with another home each.
    cat >bin/reach <<END
#!/bin/sh
for last; do host=\$word; word=\$last; done
exec '$BOARD/ssh' -- board "STILL_MACHINE=\$host HOME='$PWD/home' PATH=/usr/bin:/bin; export STILL_MACHINE HOME PATH; \$last"
END
    chmod +x bin/*
    pack runner.tar.gz "'$HWNAS'"
    export HWNAS_SSH=$PWD/bin/reach STANDIN_CONVOLVES=1 PYTHONPATH=$HWNAS_SRC/tests/peers/standin PATH=$PWD/bin:$PATH
    unset HWNAS_SSH_PROGRAM
    documented >commands
    "$HWNAS" devices ort --json >ort.json || true
    while read -r command; do
        program=
        case $command in
        *torch-cuda*) continue ;; # torch.bats has a stand-in for the GPU
        ssh-copy-id* | sudo\ * | scripts/build-runner*) continue ;; # packages.bats builds that runner
        *ort* | *torch*) json ort.json "d['devices'][0]['works']" | grep -q True || continue ;;&
        *torch*) has_module torch || continue ;;&
        *python3*) ;;
        *pi1+pi2+pi3*) program=$STILL command=${command/pi3/pi3\/null} ;; # of one kind, and three
        esac
        echo "$command"
        (unset PYTHONPATH; [[ $command != *python3* ]] || export PYTHONPATH=$HWNAS_SRC/tests/peers/standin
            [ -z "$program" ] || export HWNAS_SSH_PROGRAM=$program
            eval "${command/mobilenet_v2/mnist_cnn} --json" >out 2>err </dev/null) || { cat out err; false; }
        [[ $command != "hwnas search"* ]] || is out "d['finished'] == 3 and d['failed'] == 0 and len(d['front']) >= 1"
        n=$((n + 1))
    done < <(sed -E 's/ +#.*//; s/(latency <= [0-9]+) ms/\1000 ms/' commands) # limits that a busy machine keeps as well
    echo "$n commands"
    ((n >= 9))
    sed -i -E 's/(latency <= [0-9]+) ms/\1000 ms/' job.yaml
    grep -q '000 ms' job.yaml
    ! json ort.json "d['devices'][0]['works']" | grep -q True || {
        ends 0 search job.yaml --trials 3 --seconds 0.02 --ties 0 --confirm 0 --verify none --json
        is out "d['finished'] == 3 and d['failed'] == 0 and len(d['front']) >= 1"
    }
}
