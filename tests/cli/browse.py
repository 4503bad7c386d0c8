"""Opens a page in headless Chromium, runs a script in it, and prints what it returned as JSON.

    browse.py PAGE SCRIPT [--size WIDTHxHEIGHT] [--screenshot FILE] [--dark] [--go FILE]

PAGE is a file, or the address of a server on this machine. SCRIPT is the body of an asynchronous function, begun when all
of the page is there and its charts are drawn. It may await

    later(MILLISECONDS)   some time
    until(TEST)           that TEST() is true; an error after a minute
    drawn()               that all of the page is there again and its charts are drawn
    go()                  that FILE, which this makes, has changed the `data` of the server

Lines above a line "---" are run before the page's own scripts. Printed is {"result": ..., "errors": [...], "requests": [...]}:
what scripts and the policy of the page complained of, and the addresses that the page asked for besides its own.

The browser is led through a pipe by the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/), in real
time: a busy machine may show no frame for seconds, and a test has to wait for what it looks at.
"""
import argparse, base64, fcntl, json, os, shutil, subprocess, sys, tempfile, time, urllib.parse, urllib.request

PATIENCE = 60
WATCH = """
var browseErrors = [];
addEventListener("error", (e) => browseErrors.push(String(e.message)));
addEventListener("unhandledrejection", (e) => browseErrors.push(String(e.reason)));
document.addEventListener("securitypolicyviolation", (e) => browseErrors.push("policy: " + e.violatedDirective + " " + e.blockedURI));
"""
RUN = """
(async () => {
    const later = (ms) => new Promise((done) => setTimeout(done, ms || 50));
    const until = async (test) => {
        for (const end = Date.now() + 1000 * %(patience)d; !test(); await later(20))
            if (Date.now() > end)
                throw new Error("it never came true: " + test);
    };
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const drawn = async () => {
        const plots = () => typeof uPlot === "function" ? [...document.querySelectorAll(".plot")] : [];
        await frame();
        await frame();
        await until(() => document.getElementById("page").hasChildNodes() && !document.querySelector("[aria-busy]") &&
                          plots().every((plot) => plot.clientWidth === 0 || plot.querySelector("canvas")));
        await frame();
    };
    const go = () => new Promise((done) => { window.browseGone = done; browseGo(""); });
    let result = null;
    try {
        await drawn();
        result = await (async () => { %(script)s })();
    } catch (e) {
        browseErrors.push(String(e.stack));
    }
    return {result, errors: browseErrors};
})()
"""


class Browser:
    def __init__(self, room, size, go):
        self.go, self.events, self.buffer, self.number = go, [], b"", 0
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4, which may be some of these.
        high_in, high_out = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (theirs_in, theirs_out))

        def place():
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)
        self.child = subprocess.Popen(
            [shutil.which("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--user-data-dir=" + os.path.join(room, "profile"),
             "--window-size=" + size.replace("x", ","), "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(os.path.join(room, "log"), "w"),
            preexec_fn=place, pass_fds=(3, 4))
        for fd in (theirs_in, theirs_out, high_in, high_out):
            os.close(fd)
        self.reader, self.writer, self.session = ours_in, ours_out, None

    def send(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        return self.number

    def receive(self):
        while b"\0" not in self.buffer:
            more = os.read(self.reader, 1 << 16)
            if not more:
                raise EOFError("the browser ended")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        number = self.send(method, **params)
        while True:
            message = self.receive()
            if message.get("id") == number:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']['message']}")
                return message["result"]
            self.events.append(message)
            if message.get("method") == "Runtime.bindingCalled":
                self.go()
                self.send("Runtime.evaluate", expression="browseGone()")

    def wait(self, event):
        while not any(m.get("method") == event for m in self.events):
            self.events.append(self.receive())

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.child.wait(PATIENCE)
        except (EOFError, OSError, subprocess.TimeoutExpired):
            self.child.kill()
            self.child.wait()


def change(address, go):
    """Makes the file that whoever serves `address` waits for, and returns when its data are others."""
    def tag():
        return urllib.request.urlopen(address.rstrip("/") + "/data", timeout=100).headers["ETag"]
    before = tag()
    open(go, "w").close()
    while tag() == before:
        time.sleep(0.1)


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
    address = args.page if args.page.startswith("http://") else "file://" + os.path.abspath(args.page)
    with tempfile.TemporaryDirectory() as room:
        browser = Browser(room, args.size, lambda: change(address, args.go))
        try:
            target = browser.call("Target.createTarget", url="about:blank")["targetId"]
            browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Network", "Runtime"):
                browser.call(domain + ".enable")
            browser.call("Runtime.addBinding", name="browseGo")
            if args.dark:
                browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
            browser.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH + before)
            browser.call("Page.navigate", url=urllib.parse.quote(address, safe=":/"))
            browser.wait("Page.loadEventFired")
            said = browser.call("Runtime.evaluate", expression=RUN % {"script": script, "patience": PATIENCE},
                                awaitPromise=True, returnByValue=True)
            if "exceptionDetails" in said:
                sys.exit(json.dumps(said["exceptionDetails"], indent=2))
            if args.screenshot:
                with open(args.screenshot, "wb") as picture:
                    picture.write(base64.b64decode(browser.call("Page.captureScreenshot")["data"]))
        except EOFError as e:
            sys.exit(f"{e}:\n" + open(os.path.join(room, "log")).read()[-2000:])
        finally:
            browser.close()
    asked = [e["params"]["request"]["url"] for e in browser.events if e.get("method") == "Network.requestWillBeSent"]
    requests = [url for url in asked if not url.startswith(("file:", "data:", address))]
    print(json.dumps({**said["result"]["value"], "requests": requests}))


main()
