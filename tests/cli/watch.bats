# The page of a study, live.
load helpers

teardown() {
    local pid
    for pid in $WATCH $STUDY; do
        kill "$pid" 2>/dev/null || true
    done
}

# begin_watch OPTION...: its address in $ADDRESS, and without the token in $HOST.
begin_watch() {
    rm -f address
    "$HWNAS" watch "$@" >address 2>watch.err 3>&- &
    WATCH=$!
    until [ -s address ] || ! kill -0 $WATCH 2>/dev/null; do sleep 0.1; done
    ADDRESS=$(head -n 1 address)
    HOST=${ADDRESS%/*/}
    [[ $ADDRESS =~ ^http://127\.0\.0\.1:[0-9]+/[0-9a-f]{32}/$ ]] && return
    cat watch.err
    ! grep -q "built without libmicrohttpd" watch.err || skip "built without libmicrohttpd"
    return 1
}

begin_study() { # begin_study FILE
    HWNAS_LIBRARY=${HWNAS%/*}/libhwnas.so.0 PYTHONPATH=$HWNAS_SRC/python \
        /usr/bin/python3 "$HWNAS_SRC/tests/cli/slow_study.py" "$1" "$TABLE" 2>study.err 3>&- &
    STUDY=$!
}

# get METHOD PATH [ETAG]: prints the status, the headers in small letters, and the body.
get() {
    /usr/bin/python3 - "$HOST" "$@" <<'END'
import http.client, sys
host, method, path, *tag = sys.argv[1:]
connection = http.client.HTTPConnection(host[len("http://"):], timeout=60)
connection.request(method, path, headers={"If-None-Match": tag[0]} if tag else {})
answer = connection.getresponse()
print(answer.status)
for name, value in answer.getheaders():
    print(f"{name.lower()}: {value}")
print()
sys.stdout.write(answer.read().decode())
END
}

path() { # path NAME: below the token
    echo "/${ADDRESS#"$HOST/"}$1"
}

# finished N: waits until the data have so many trials.
finished() {
    local i
    for ((i = 0; i < 600; i++)); do
        get GET "$(path data)" >data
        if grep -q '^{' data; then
            sed -n '/^{/p' data >data.json
            [ "$(json data.json 'd["study"]["finished"]')" -lt "$1" ] || return 0
        fi
        sleep 0.1
    done
    cat data watch.err study.err
    return 1
}

@test "watch: who does not know the address gets nothing, and nobody can change anything" {
    begin_study s.db
    begin_watch s.db
    finished 5
    local wrong
    for wrong in / /data /favicon.ico "/00000000000000000000000000000000/" "$(path '' | tr 0-9a-f 1-9a-f0)" \
        "$(path '' | cut -c1-20)" "/$(path data)" "/$(path data)/.." "/%2e%2e/$(path '')"; do
        get GET "$wrong" >got
        [ "$(head -n 1 got)" = 403 ] || { echo "$wrong"; cat got; false; }
        not grep -q "$(path '' | tr -d /)" got
    done
    get GET "$(path ../../etc/passwd)" >got
    [ "$(head -n 1 got)" = 404 ]
    for wrong in POST PUT DELETE OPTIONS PATCH TRACE; do
        get $wrong "$(path data)" >got
        [ "$(head -n 1 got)" = 405 ]
        says got "allow: GET, HEAD"
    done
    get GET "$(path '')" >got
    [ "$(head -n 1 got)" = 200 ]
    says got "content-type: text/html"
    says got "referrer-policy: no-referrer"
    says got "cache-control: no-store"
    says got "connect-src 'self'"
    get HEAD "$(path '')" >got
    [ "$(head -n 1 got)" = 200 ]
    # Nobody else than this machine is served.
    ! command -v ss >/dev/null || [ "$(ss -ltnH "sport = ${HOST##*:}" | awk '{ print $4 }')" = "${HOST#http://}" ]
}

@test "watch: the data are those of the report, and what is known is not sent again" {
    begin_study s.db
    begin_watch s.db
    finished 5
    "$HWNAS" report s.db --json >report.json
    /usr/bin/python3 - <<'END'
import json
live, report = json.load(open("data.json")), json.load(open("report.json"))
assert live["trials"]["arch"] == report["trials"]["arch"]
assert live["study"]["job"] == report["study"]["job"] and live.keys() == report.keys()
END
    local tag
    tag=$(sed -n 's/^etag: //p' data)
    says data "hwnas-study: running"
    get GET "$(path data)" "$tag" >got
    [ "$(head -n 1 got)" = 304 ]
    says got "hwnas-study: running"
    touch go
    finished 10
    get GET "$(path data)" "$tag" >got
    [ "$(head -n 1 got)" = 200 ]
}

@test "watch: it ends with the search, --stay does not" {
    begin_study s.db
    begin_watch s.db
    finished 5
    local first=$WATCH
    "$HWNAS" watch s.db --stay >stay 2>stay.err 3>&- &
    local stays=$!
    until [ -s stay ]; do sleep 0.1; done
    while kill -0 $STUDY 2>/dev/null; do touch go; sleep 0.2; done
    timeout 60 tail --pid="$first" -f /dev/null
    wait "$first"
    says watch.err "the search has ended"
    ADDRESS=$(head -n 1 stay)
    HOST=${ADDRESS%/*/}
    finished 20
    says data "hwnas-study: ended"
    kill -INT $stays
    wait $stays
    # Of a study that is over there is nothing to watch.
    refuses 2 "s.db: no search works on this study*hwnas report*--stay" watch s.db
}

@test "watch: a search that is killed is told, and a study may appear later" {
    begin_watch later.db
    says watch.err "later.db is not there yet"
    get GET "$(path data)" >got
    [ "$(head -n 1 got)" = 204 ]
    begin_study later.db
    finished 5
    kill -9 $STUDY
    until grep -q "hwnas-study: stopped" data; do get GET "$(path data)" >data; done
    timeout 60 tail --pid=$WATCH -f /dev/null
    wait $WATCH
    says watch.err "the search was stopped"
}

@test "watch: a port that is taken, and one that is none" {
    begin_watch none.db
    ends 1 watch none.db --port "${HOST##*:}"
    says err "port ${HOST##*:}: Address already in use*hint: without --port"
    refuses 2 "70000 is no port" watch none.db --port 70000
    kill -TERM $WATCH
    wait $WATCH
}

@test "watch: many clients at a time, slow and rude ones among them" {
    begin_study s.db
    begin_watch s.db
    finished 5
    /usr/bin/python3 - "${HOST##*:}" "$(path data)" <<'END'
import http.client, socket, sys, threading
port, path = int(sys.argv[1]), sys.argv[2]
rude = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
for i, s in enumerate(rude):
    s.sendall([b"", b"GET", b"\0" * 500, b"GET / HTTP/1.1\r\nX: " + b"y" * 100000, b"GET %s HTTP/9\r\n\r\n" % path.encode()][i % 5])
answers = []
def ask():
    for _ in range(5):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request("GET", path)
        answer = connection.getresponse()
        answers.append((answer.status, len(answer.read())))
threads = [threading.Thread(target=ask) for _ in range(40)]
[t.start() for t in threads]
[t.join() for t in threads]
assert len(answers) == 200 and len(set(answers)) == 1 and answers[0][0] == 200, set(answers)
END
    kill -0 $WATCH
}

@test "watch: a page that is open shows a trial soon after it is finished" {
    command -v chromium >/dev/null || skip "needs chromium: scripts/install-deps --check"
    begin_study s.db
    begin_watch s.db
    finished 5
    /usr/bin/python3 "$HWNAS_SRC/tests/cli/browse.py" "$ADDRESS" --go go '
        const words = () => document.querySelector("#front h2").innerText;
        await until(() => document.querySelector("#front h2"));
        const before = words();
        document.querySelector("[data-filter=kind]").value = "all";
        document.querySelector("[data-filter=kind]").dispatchEvent(new Event("change", {bubbles: true}));
        await go();
        await until(() => words() !== before);
        return {before, after: words(), state: document.querySelector(".follow").dataset.state,
                kind: document.querySelector("[data-filter=kind]").value,
                rows: document.querySelectorAll("#trials tbody tr").length};' >seen
    cat seen
    is seen "d['errors'] == []"
    is seen "'of 5 trials' in d['result']['before'] and 'of 10 trials' in d['result']['after']"
    is seen "d['result']['state'] == 'running' and d['result']['kind'] == 'all' and d['result']['rows'] == 10"
}

@test "watch: names of a hostile study run no script" {
    command -v chromium >/dev/null || skip "needs chromium: scripts/install-deps --check"
    local evil='</script><script>window.owned=1</script><img src=x onerror="window.owned=2">'
    begin_study 'a<b>.db'
    until [ -e 'a<b>.db' ]; do sleep 0.1; done
    begin_watch 'a<b>.db'
    finished 5
    kill -9 $STUDY
    timeout 60 tail --pid=$WATCH -f /dev/null
    /usr/bin/python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE trial SET code = ?, message = ?, status = ? WHERE number = 3", (sys.argv[2], sys.argv[2], "crashed"))
db.commit()' 'a<b>.db' "$evil"
    begin_watch 'a<b>.db' --stay
    finished 1
    /usr/bin/python3 "$HWNAS_SRC/tests/cli/browse.py" "$ADDRESS" --go go '
        await until(() => document.querySelector("#front h2"));
        document.querySelector("[data-filter=kind]").value = "failed";
        document.querySelector("[data-filter=kind]").dispatchEvent(new Event("change", {bubbles: true}));
        await drawn();
        return {owned: window.owned || 0, images: document.images.length, text: document.body.innerText};' >seen
    is seen "d['errors'] == [] and d['result']['owned'] == 0 and d['result']['images'] == 0 and '<img src=x' in d['result']['text']"
}
