# Searches by several processes on one study in a file: `search --workers N` and `worker STUDY`. Those on a study in
# PostgreSQL are in postgresql.bats.
load helpers

sql() { /usr/bin/python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
for row in db.execute(sys.argv[2]): print(*row)' "$@"; }

# is_whole STUDY N: trials 0 to N - 1, each asked once and finished once, and nobody's any more.
is_whole() {
    [ "$(sql "$1" "SELECT count(*), min(number), max(number), count(finish_order), max(finish_order) FROM trial")" = \
        "$2 0 $(($2 - 1)) $2 $(($2 - 1))" ]
    [ "$(sql "$1" "SELECT kind, count(*), count(DISTINCT trial) FROM event GROUP BY kind ORDER BY kind" |
        tr '\n' ' ')" = "asked $2 $2 finished $2 $2 " ]
    [ "$(sql "$1" "SELECT count(*) FROM lease")" = 0 ]
}

@test "one worker makes the trials of a search" {
    job "strategy: nsga2" "budget: {trials: 60}" "seed: 5"
    ends 0 search job.yaml --study file.db
    ends 0 search job.yaml --study shared.db --workers 1
    trials file.db | cut -d' ' -f1-7 >a
    trials shared.db | cut -d' ' -f1-7 >b
    [ -s a ]
    cmp a b
}

@test "several workers make each trial once, and a search goes on with them" {
    job "strategy: nsga2" "budget: {trials: 200}"
    ends 0 search job.yaml --workers 4 --json
    is out "d['finished'] == 200 and d['failed'] == 0 and d['ended'] == 'all trials were made'"
    is_whole job.db 200
    [ "$(ls)" = "$(printf '%s\n' err job.db job.yaml out)" ]
    ends 0 search job.yaml --resume --trials 210 --json
    is out "d['finished'] == 210"
}

@test "workers go on with a study whose time was over once its job has no minutes" {
    job "strategy: random" "budget: {trials: 20, minutes: 10}"
    ends 0 search job.yaml --workers 1
    sql job.db "UPDATE fact SET value = '601' WHERE key = 'wall_seconds'"
    job "strategy: random" "budget: {trials: 40, minutes: 10}"
    ends 0 search job.yaml --workers 1 --json
    is out "d['ended'] == 'the time is over' and d['finished'] == 20"
    job "strategy: random" "budget: {trials: 40}"
    ends 0 search job.yaml --workers 1 --json
    is out "d['ended'] == 'all trials were made' and d['finished'] == 40"
    is_whole job.db 40
}

@test "a patience that is no number of seconds is refused" {
    job "budget: {trials: 3}"
    HWNAS_WORKER_PATIENCE=1h refuses 2 "'1h', not a whole number of seconds" search job.yaml --workers 1
    not [ -e job.db ]
    HWNAS_WORKER_PATIENCE=3600 ends 0 search job.yaml --workers 1
    HWNAS_WORKER_PATIENCE=-5 refuses 2 "'-5', not a whole number of seconds" worker job.db
}

@test "a worker needs the study alone, and does what its job and the flags of its search said" {
    mkdir begin join
    cd begin
    cp "$TABLE" table.csv
    job "accuracy: table:table.csv#acc_top1_pct_mean" "device: replay:table.csv#macs_count" "budget: {trials: 500}" \
        "export: {yaml: best.yaml}"
    ends 0 search job.yaml --study ../shared.db --workers 1 --trials 20 --strategy random --seed 7
    rm job.yaml best.yaml
    cd ../join
    refuses 2 'a.db: there is no such study' worker a.db
    ends 0 worker ../shared.db --json
    is out "d['finished'] == 20" # by the flag, not the file
    sql ../shared.db "UPDATE fact SET value = replace(value, '\"trials\":\"20\"', '\"trials\":\"50\"') WHERE key = 'source'"
    ends 0 worker ../shared.db --workers 3 --json
    is out "d['finished'] == 50"
    is_whole ../shared.db 50
    [ "$(ls)" = "$(printf '%s\n' err out)" ] # it exports nothing
    cd ../begin
    ends 0 search --space nas_bench_macro --accuracy table:table.csv#acc_top1_pct_mean --objectives accuracy,macs \
        --strategy random --seed 7 --trials 50 --study alone.db --device replay:table.csv#macs_count
    diff <(sql alone.db "SELECT code FROM trial ORDER BY number") <(sql ../shared.db "SELECT code FROM trial ORDER BY number")
}

# children PROCESS
children() { cat "/proc/$1/task/$1/children"; }

# held_trainer: writes ./train, whose 20th training and those after it wait until the file `go` is there.
held_trainer() {
    printf '%s\n' '#!/bin/sh' 'echo >>calls' 'until [ "$(wc -l <calls)" -lt 20 ] || [ -e go ]; do sleep 0.02; done' 'echo 70' >train
    chmod +x train
}

# n_finished STUDY SEARCH N: waits until the process's study has so many finished trials.
n_finished() {
    until [ -e "$1" ] && [ "$(sql "$1" "SELECT count(*) FROM event WHERE kind = 'finished'" 2>/dev/null)" -ge "$3" ]; do
        kill -0 "$2" || { cat err; return 1; }
        sleep 0.05
    done 2>/dev/null
}

@test "a worker that is killed costs nothing, and those of a search that is killed end" {
    held_trainer
    job "accuracy: command:./train" "strategy: random" "budget: {trials: 60}"
    "$HWNAS" search job.yaml --workers 4 >out 2>err 3>&- &
    local search=$! others other n
    n_finished job.db $search 10
    read -r -a others <<<"$(children $search)"
    [ ${#others[@]} -ge 3 ]
    kill -9 "${others[0]}"
    sql job.db "UPDATE lease SET expires = 0" # as after a minute
    touch go
    wait $search
    says err "was killed"
    is_whole job.db 60

    ends 0 search job.yaml --resume --trials 61
    rm -f go calls train.*.csv
    "$HWNAS" search job.yaml --workers 4 --study long.db >out 2>err 3>&- &
    search=$!
    n_finished long.db $search 10
    read -r -a others <<<"$(children $search)"
    [ ${#others[@]} -ge 3 ]
    kill -9 $search
    wait $search || true
    for other in "${others[@]}"; do
        for ((n = 0; n < 1200; n++)); do
            kill -0 "$other" 2>/dev/null || break
            sleep 0.05
        done
        [ $n -lt 1200 ]
    done
    ends 0 study show long.db
}

@test "workers that are killed at random and cut off lose no trial and double none (worker_storm.py)" {
    local n=1000 workers=4
    [ -z "${HWNAS_LONG:-}" ] || n=5000 workers=8
    /usr/bin/python3 "$HWNAS_SRC/tests/cli/worker_storm.py" "$HWNAS" "$HWNAS_SRC" shared.db $workers $n >&3
}

@test "a search by workers that is interrupted ends all of them, and what was begun is gone on with at once" {
    held_trainer
    job "accuracy: command:./train" "strategy: random" "budget: {trials: 80}"
    "$HWNAS" search job.yaml --workers 3 >out 2>err 3>&- &
    local search=$! code=0
    n_finished job.db $search 5
    kill -TERM $search
    wait $search || code=$?
    touch go
    [ $code = 130 ]
    [ "$(sql job.db "SELECT count(*) FROM lease WHERE expires > 0")" = 0 ]
    ends 0 search job.yaml --workers 3
    is_whole job.db 80
}

@test "trainings are shared: each network is trained once" {
    printf '%s\n' '#!/bin/sh' 'echo "$HWNAS_CODE" >>calls' "grep \"^\$HWNAS_CODE,\" '$TABLE' | cut -d, -f9" >train
    chmod +x train
    job "accuracy: command:./train" "strategy: random" "budget: {trials: 60}"
    ends 0 search job.yaml --workers 4 --json
    is out "d['finished'] == 60 and d['failed'] == 0"
    is out "all(t['objectives']['accuracy']['source'] == 'trained' for t in d['front'])"
    is_whole job.db 60
    [ "$(sort calls | uniq -d)" = "" ]
    [ "$(wc -l <calls)" -gt 40 ]
}

# leaves CODE PATTERN COMMAND...: it is refused by one message, and nothing in this directory is another than before.
leaves() {
    sha256sum -- * >../before
    refuses "$@"
    [ "$(grep -c '^hwnas: ' err)" = 1 ]
    rm -f out err
    sha256sum -- * >../after
    cmp ../before ../after
}

@test "what workers cannot use is told in one message, and stays as it was" {
    local command whole=$BATS_TEST_TMPDIR/whole.db
    job "strategy: random" "budget: {trials: 100}"
    ends 0 search job.yaml --study "$whole" --workers 1 --trials 40
    mkdir case
    mv job.yaml case
    cd case
    for command in "worker shared.db" "worker shared.db --workers 2" "search job.yaml --study shared.db --workers 2"; do
        set -- $command
        cp "$whole" shared.db
        /usr/bin/python3 -c 'import os, sys
size = os.path.getsize("shared.db")
with open("shared.db", "r+b") as file:
    for page in range(4096, size, 4096):
        file.seek(page + 8)
        file.write(b"\xa5" * 2000)'
        leaves 2 'shared.db: the study is damaged' "$@"
        cp "$whole" shared.db
        truncate -s -4096 shared.db
        leaves 2 'shared.db: the study is damaged' "$@"
        cp "$whole" shared.db
        sql shared.db 'PRAGMA user_version = 99'
        leaves 2 'shared.db: the study has format 99, this hwnas knows format*newer version' "$@"
        rm shared.db
        sql shared.db 'CREATE TABLE theirs (a)'
        leaves 2 'shared.db: this is not a study of hwnas*of another program' "$@"
    done
}

@test "workers tell what they may not write, and leave it" {
    [ "$(id -u)" = 0 ] || skip "only root can become somebody else"
    local nobody=$BATS_TEST_TMPDIR/nobody folder=$BATS_TEST_TMPDIR/folder
    printf '%s\n' '#!/bin/sh' "exec setpriv --reuid=nobody --regid=nogroup --clear-groups -- '$HWNAS' \"\$@\"" >"$nobody"
    chmod 755 "$nobody"
    setpriv --reuid=nobody --regid=nogroup --clear-groups -- test -x "$HWNAS" -a -r "$TABLE" || skip "nobody cannot read the build"
    mkdir "$folder"
    job "strategy: random" "budget: {trials: 100}"
    ends 0 search job.yaml --study "$folder/shared.db" --workers 1 --trials 40
    chmod 444 "$folder/shared.db"
    sha256sum "$folder/shared.db" >before
    chmod -R a+rX "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/.."
    HWNAS=$nobody refuses 1 'shared.db: *ermission*' worker "$folder/shared.db"
    HWNAS=$nobody refuses 1 'new.db: *Permission denied' search job.yaml --study "$folder/new.db" --workers 2
    HWNAS=$nobody refuses 1 'shared.db: *ermission*' study vacuum "$folder/shared.db"
    chmod 666 "$folder/shared.db"
    HWNAS=$nobody refuses 1 'shared.db: *' worker "$folder/shared.db" # the folder alone
    sha256sum -c --quiet before
    [ "$(ls "$folder")" = shared.db ]
}

@test "workers refuse what they cannot share" {
    job "budget: {trials: 5}"
    refuses 2 '--workers goes without --resume' search job.yaml --workers 2 --resume
    refuses 2 '--workers is at least 1 and at most' search job.yaml --workers 5000
    refuses 2 '--workers is at least 1' search job.yaml --workers 0
    refuses 2 '--workers is at least 1' worker job.db --workers 0
    job "device: 'null'" "objectives: [accuracy, latency.p50]" "budget: {trials: 5}"
    refuses 1 "job.db: workers share a file on one machine" search job.yaml --workers 2
    printf '%s\n' '#!/bin/sh' 'echo 70' >train
    chmod +x train
    job "accuracy: command:./train" "train-budget: 20" "budget: {trials: 40}"
    refuses 1 'job.yaml:?:?*: workers cannot share a budget of trainings' search job.yaml --workers 2
    [ ! -e job.db ]
    rm job.yaml train
    held_trainer
    job "accuracy: command:./train" "strategy: random" "budget: {trials: 60}"
    "$HWNAS" search job.yaml >/dev/null 2>err 3>&- &
    local searcher=$!
    n_finished job.db $searcher 5
    refuses 1 "in use by process $searcher" worker job.db
    kill -9 $searcher
    wait $searcher || true
}
