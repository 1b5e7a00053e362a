# SPDX-License-Identifier: LGPL-2.1-or-later
"""Chromium without a screen, driven over a pair of pipes by its own protocol (Chrome DevTools
Protocol): as much as a test needs to open a page, ask it, type, click and take its picture."""

import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from harness import Test, skip

# Ends when a page of ours shows its trace: "", or what failed.
LOADED = """new Promise((done) => {
    const look = () => {
        const v = window.traceViewer;
        if (document.readyState === 'complete' && (!v || v.ready || v.failed)) done(v ? v.failed || '' : 'no viewer');
        else setTimeout(look, 20);
    };
    look();
})"""
PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")


def program():
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    def __init__(self, width=1400, height=900):
        self.profile = tempfile.TemporaryDirectory(prefix="traced-browser-", ignore_cleanup_errors=True)
        # Chromium reads commands from descriptor 3, and answers on 4.
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        command = [program(), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                   "--hide-scrollbars", "--no-first-run", "--disable-extensions", "--disable-background-networking",
                   "--force-device-scale-factor=1", f"--user-data-dir={self.profile.name}",
                   f"--window-size={width},{height}", "about:blank"]

        def arrange():
            high = [os.dup(fd) for fd in (theirs_in, theirs_out)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(command, close_fds=False, preexec_fn=arrange, start_new_session=True,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.out = os.fdopen(ours_out, "wb", buffering=0)
        self.input = os.fdopen(ours_in, "rb")
        self.id = 0
        self.said = []  # of the page: errors, and refusals of its policy
        self.buffer = b""
        try:
            self.attach(width, height)
        except BaseException:
            self.close()
            raise

    def attach(self, width, height):
        # The package chromium accepts a size for new windows only.
        target = self.call("Target.createTarget", url="about:blank", width=width, height=height, newWindow=True)["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Performance.enable", timeDomain="threadTicks")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def receive(self):
        while b"\0" not in self.buffer:
            piece = self.input.read1(1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.id += 1
        message = {"id": self.id, "method": method, "params": parameters}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        self.out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.id:
                break
            self.note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def note(self, event):
        method, about = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.said.append(about["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("warning", "error"):
            self.said.append(about["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not about["request"]["url"].startswith(("file:", "data:", "about:")):
            self.said.append(f"request of {about['request']['url']}")

    def ask(self, expression):
        """An expression's value; waits if it is a promise."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def open(self, path, frame=True):
        """Opens a page of ours in the window's size, and waits until it shows its trace; a page
        learns of a new size with a frame."""
        self.said = []
        self.call("Page.navigate", url=f"file://{path}")
        failed = self.ask(LOADED)
        if failed:
            raise RuntimeError(f"{path}: {failed}")
        if frame:
            self.frame()

    def cpu_seconds(self):
        """CPU time of all of its processes, so far."""
        page, self.session = self.session, None
        processes = self.call("SystemInfo.getProcessInfo")["processInfo"]
        self.session = page
        return sum(process["cpuTime"] for process in processes)

    def main_thread(self):
        """Seconds of CPU time of the page's main thread: in scripts, and in total."""
        metrics = {one["name"]: one["value"] for one in self.call("Performance.getMetrics")["metrics"]}
        return metrics["ScriptDuration"], metrics["TaskDuration"]

    def frames(self, action, count=120):
        """Performs an action before each of several frames. Returns milliseconds of CPU time per
        frame, in scripts, on the main thread and in all processes, and the frames per second."""
        before = (*self.main_thread(), self.cpu_seconds())
        rate = self.ask(f"""new Promise((done) => {{ let n = 0; const times = [];
            const tick = (t) => {{ times.push(t); {action};
                if (n++ < {count}) requestAnimationFrame(tick); else done({count}e3 / (times.at(-1) - times[0])); }};
            requestAnimationFrame(tick); }})""")
        after = (*self.main_thread(), self.cpu_seconds())
        return (*((a - b) / count * 1000 for a, b in zip(after, before)), rate)

    def frame(self):
        self.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])
        self.frame()

    def resize(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.frame()
        self.frame()

    def leave(self):
        """Goes to an empty page."""
        self.call("Page.navigate", url="about:blank")

    def download_to(self, folder):
        self.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def picture(self, path):
        self.frame()
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **more)

    def click(self, x, y):
        for kind in ("Moved", "Pressed", "Released"):
            self.mouse(kind, x, y, button="none" if kind == "Moved" else "left", clickCount=1)

    def drag(self, x0, y0, x1, y1):
        self.mouse("Moved", x0, y0)
        self.mouse("Pressed", x0, y0, button="left", buttons=1, clickCount=1)
        for i in range(1, 5):
            self.mouse("Moved", x0 + (x1 - x0) * i / 4, y0 + (y1 - y0) * i / 4, button="left", buttons=1)
        self.mouse("Released", x1, y1, button="left", clickCount=1)

    def key(self, key, text=None, up=True, shift=False, down=True):
        more = {"modifiers": 8} if shift else {}
        # The browser itself closes dialogs, by the code.
        if key == "Escape":
            more["windowsVirtualKeyCode"] = 27
        # And presses buttons by the text.
        if key == "Enter":
            text = "\r"
        if down:
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **({"text": text} if text else {}), **more)
        if up:
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **more)

    def clipboard(self):
        self.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        return self.ask("navigator.clipboard.readText()")

    def type(self, text):
        self.call("Input.insertText", text=text)

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.out.close()
        self.input.close()
        self.profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def run_cases(name, cases, start=Browser):
    """Runs cases in one browser; each gets the test and the browser."""
    if start is Browser and program() is None:
        skip("needs chromium-headless-shell (scripts/deps test)")
    test = Test(name, root=False)
    # The programs' part is small, and is covered by another test.
    if test.is_sanitized():
        skip("is run without a sanitizer")
    with start() as browser:
        for case in cases:
            test.case(re.sub("_", " ", case.__name__), case, browser)
    test.end()
