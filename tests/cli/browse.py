"""Opens a page in headless Chromium, runs a script in it, and prints what it returned as JSON.

    browse.py PAGE SCRIPT [--size WIDTHxHEIGHT] [--screenshot FILE] [--dark] [--go FILE]

PAGE is a file, or the address of a server on this machine, which the browser then asks through a server of ours, as the
script has to get into its page. There fetch("/go") makes FILE, and returns when what PAGE's `data` are has changed.

The script is the body of an asynchronous function; before the page's own scripts `before` is run, if it is there:
lines above a line "---". Printed is {"result": ..., "errors": [...], "requests": [...]}: what scripts and the policy of the
page complained of, and the addresses that the browser asked for.
"""
import argparse, html, http.server, json, os, re, shutil, subprocess, sys, tempfile, threading, time, urllib.request

WATCH = """
const errors = [];
addEventListener("error", (e) => errors.push(String(e.message)));
addEventListener("unhandledrejection", (e) => errors.push(String(e.reason)));
document.addEventListener("securitypolicyviolation", (e) => errors.push("policy: " + e.violatedDirective + " " + e.blockedURI));
"""
RUN = """
addEventListener("load", async () => {
    let result = null;
    const later = (ms) => new Promise((done) => setTimeout(done, ms || 50));
    try {
        await later(200);
        result = await (async () => { %s })();
    } catch (e) {
        errors.push(String(e.stack));
    }
    const out = document.createElement("pre");
    out.id = "browse-result";
    out.textContent = JSON.stringify({result, errors});
    document.body.append(out);
});
"""


def serve(address, instrument, go):
    """A server in front of another one; its address for the same page."""
    host, path = address.rstrip("/").rsplit("/", 1)

    def ask(url, headers):
        try:
            return urllib.request.urlopen(urllib.request.Request(host + url, headers=headers), timeout=100)
        except urllib.error.HTTPError as e:
            return e

    def wait():
        before = ask(f"/{path}/data", {}).headers["ETag"]
        open(go, "w").close()
        while ask(f"/{path}/data", {}).headers["ETag"] == before:
            time.sleep(0.1)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/go":
                wait()
                status, headers, body = 200, {}, b""
            else:
                answer = ask(self.path, {k: v for k, v in self.headers.items() if k.lower() == "if-none-match"})
                status, headers, body = answer.status, dict(answer.headers), answer.read()
                if self.path == f"/{path}/":
                    body = instrument(body.decode()).encode()
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "connection", "date"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/{path}/"


def instrument(page, before, script):
    nonce = re.search(r"'nonce-(\w+)'", page)
    element = '<script nonce="%s">%%s</script>' % (nonce.group(1) if nonce else "")
    # Replaced by functions, as a text may have backslashes.
    page = re.sub(r"<head>", lambda m: m.group(0) + element % (WATCH + before), page, count=1)
    return re.sub(r"</body>\s*</html>\s*$", lambda m: element % (RUN % script) + m.group(0), page)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("script")
    parser.add_argument("--size", default="1300x900")
    parser.add_argument("--screenshot")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--go")
    args = parser.parse_args()
    before, _, script = args.script.rpartition("\n---\n")
    address = None
    if args.page.startswith("http://"):
        address = serve(args.page, lambda page: instrument(page, before, script), args.go)
    with tempfile.TemporaryDirectory() as room:
        path, log = os.path.join(room, "page.html"), os.path.join(room, "net.json")
        if not address:
            with open(args.page, encoding="utf-8") as page, open(path, "w", encoding="utf-8") as changed:
                changed.write(instrument(page.read(), before, script))
            address = "file://" + path
        command = [shutil.which("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                   "--disable-background-networking",
                   "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--disable-component-update", "--no-first-run",
                   "--user-data-dir=" + os.path.join(room, "profile"), "--log-net-log=" + log,
                   "--window-size=" + args.size.replace("x", ","), "--virtual-time-budget=10000"]
        command += ["--blink-settings=preferredColorScheme=0"] if args.dark else []
        command += ["--screenshot=" + os.path.abspath(args.screenshot)] if args.screenshot else ["--dump-dom"]
        done = subprocess.run(command + [address], capture_output=True, text=True, timeout=200)
        # Of its own requests the browser says that they have no origin; that of a file is "null".
        requests = re.findall(r'"initiator":"null".*"url":"(?!file:|data:)([^"]*)"', open(log).read())
    if args.screenshot:
        return
    found = re.search(r'<pre id="browse-result">(.*?)</pre>', done.stdout, re.S)
    if not found:
        sys.exit("the page gave no result:\n" + done.stdout[-2000:] + done.stderr[-2000:])
    print(json.dumps({**json.loads(html.unescape(found.group(1))), "requests": requests}))


main()
