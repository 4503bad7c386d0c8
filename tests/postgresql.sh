#!/usr/bin/env bash
# A PostgreSQL server of a test's own: in a folder, on a socket in it, without a network.
#
#   postgresql.sh start DIR     makes DIR and a server in it, and prints the address of its database
#   postgresql.sh restart DIR   as after a crash: it is killed, and started again
#   postgresql.sh stop DIR      ends it, and removes DIR
#
# Exits 77, which is "skipped", where PostgreSQL's server is not installed. The server refuses to run
# as root, so root starts it as `nobody`.
set -eu -o pipefail

tool() { # tool NAME: where Debian has it, in or beside the path
    local found
    for found in /usr/lib/postgresql/*/bin/"$1"; do
        [ ! -x "$found" ] || { echo "$found"; return; }
    done
    command -v "$1" || { echo "postgresql.sh: $1 is not installed (Debian: postgresql)" >&2; exit 77; }
}

as_user=()
[ "$(id -u)" != 0 ] || as_user=(setpriv --reuid=nobody --regid=nogroup --clear-groups --)

is_ready() { "$psql" -X -q -h "$dir" -U hwnas -d postgres -c 'SELECT 1' >/dev/null 2>&1; }

launch() {
    # setsid: it outlives the shell of the test that starts it, and is ended by its number alone.
    (cd "$dir" && exec setsid "${as_user[@]}" "$postgres" -D "$dir/data" -k "$dir" -c listen_addresses= \
        -c fsync=off -c max_connections=60 -c shared_buffers=16MB) >"$dir/log" 2>&1 </dev/null 3>&- 4>&- &
    for _ in $(seq 600); do
        ! is_ready || return 0
        sleep 0.1
    done
    cat "$dir/log" >&2
    exit 1
}

kill_server() { # kill_server SIGNAL
    local pid
    pid=$(head -n 1 "$dir/data/postmaster.pid" 2>/dev/null) || return 0
    kill -s "$1" "$pid" 2>/dev/null || return 0
    while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
}

[ $# = 2 ] || { echo 'usage: postgresql.sh start|restart|stop DIR' >&2; exit 2; }
dir=$2
postgres=$(tool postgres)
psql=$(tool psql)
case $1 in
start)
    initdb=$(tool initdb)
    mkdir -p "$dir"
    [ "$(id -u)" != 0 ] || chown nobody:nogroup "$dir"
    (cd "$dir" && "${as_user[@]}" "$initdb" -D "$dir/data" -A trust -U hwnas -E UTF8 --locale=C --no-sync) >"$dir.init" 2>&1 || {
        cat "$dir.init" >&2
        exit 1
    }
    rm -f "$dir.init"
    launch
    echo "postgresql://hwnas@/postgres?host=$dir"
    ;;
restart)
    kill_server QUIT
    launch
    ;;
stop)
    kill_server QUIT
    rm -rf "$dir"
    ;;
esac
