"""Opens a page in headless Chromium, runs a script in it, and prints what it returned as JSON.

    browse.py PAGE SCRIPT [--size WIDTHxHEIGHT] [--screenshot FILE] [--dark]

The script is the body of an asynchronous function; before the page's own scripts `before` is run, if it is there:
lines above a line "---". Printed is {"result": ..., "errors": [...], "requests": [...]}: what scripts and the policy of the
page complained of, and the addresses that the browser asked for.
"""
import argparse, html, json, os, re, shutil, subprocess, sys, tempfile

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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("script")
    parser.add_argument("--size", default="1300x900")
    parser.add_argument("--screenshot")
    parser.add_argument("--dark", action="store_true")
    args = parser.parse_args()
    page = open(args.page, encoding="utf-8").read()
    before, _, script = args.script.rpartition("\n---\n")
    nonce = re.search(r"'nonce-(\w+)'", page)
    element = '<script nonce="%s">%%s</script>' % (nonce.group(1) if nonce else "")
    # Replaced by functions, as a text may have backslashes.
    page = re.sub(r"<head>", lambda m: m.group(0) + element % (WATCH + before), page, count=1)
    page = re.sub(r"</body>\s*</html>\s*$", lambda m: element % (RUN % script) + m.group(0), page)
    with tempfile.TemporaryDirectory() as room:
        path, log = os.path.join(room, "page.html"), os.path.join(room, "net.json")
        open(path, "w", encoding="utf-8").write(page)
        command = [shutil.which("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                   "--disable-background-networking",
                   "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--disable-component-update", "--no-first-run",
                   "--user-data-dir=" + os.path.join(room, "profile"), "--log-net-log=" + log,
                   "--window-size=" + args.size.replace("x", ","), "--virtual-time-budget=10000"]
        command += ["--blink-settings=preferredColorScheme=0"] if args.dark else []
        command += ["--screenshot=" + os.path.abspath(args.screenshot)] if args.screenshot else ["--dump-dom"]
        done = subprocess.run(command + ["file://" + path], capture_output=True, text=True, timeout=200)
        # Of its own requests the browser says that they have no origin; that of a file is "null".
        requests = re.findall(r'"initiator":"null".*"url":"(?!file:|data:)([^"]*)"', open(log).read())
    if args.screenshot:
        return
    found = re.search(r'<pre id="browse-result">(.*?)</pre>', done.stdout, re.S)
    if not found:
        sys.exit("the page gave no result:\n" + done.stdout[-2000:] + done.stderr[-2000:])
    print(json.dumps({**json.loads(html.unescape(found.group(1))), "requests": requests}))


main()
