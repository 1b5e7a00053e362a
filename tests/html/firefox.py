# SPDX-License-Identifier: LGPL-2.1-or-later
"""Firefox without a screen, driven over a socket by its own protocol (Marionette): the part of
browser.Browser that the tests of both browsers need."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from browser import LOADED

PROGRAMS = ("firefox-esr", "firefox")
START_S = 60
SCRIPT_MS = 100000  # a busy machine draws slowly
# WebDriver's names of keys without a letter.
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014",
        "ArrowDown": "\ue015", "Shift": "\ue008", "Control": "\ue009"}
SETTINGS = {"marionette.port": 0, "app.update.enabled": False, "datareporting.policy.dataSubmissionEnabled": False,
            "toolkit.telemetry.reportingpolicy.firstRun": False, "browser.shell.checkDefaultBrowser": False,
            "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False}


def program():
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Firefox:
    def __init__(self, width=1400, height=900):
        self.profile = tempfile.TemporaryDirectory(prefix="traced-browser-", ignore_cleanup_errors=True)
        settings = "".join(f'user_pref("{name}", {json.dumps(value)});\n' for name, value in SETTINGS.items())
        folder = pathlib.Path(self.profile.name)
        (folder / "user.js").write_text(settings, "utf-8")
        command = [program(), "--headless", "--marionette", "--remote-allow-system-access", "--no-remote",
                   "--profile", self.profile.name, "about:blank"]
        self.process = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.profile.name})
        self.socket = None
        try:
            self.connect(folder / "MarionetteActivePort")
            self.fit(width, height)
        except BaseException:
            self.close()
            raise

    def connect(self, port):
        until = time.monotonic() + START_S
        while not (port.exists() and port.read_text("utf-8").strip()):
            if time.monotonic() > until or self.process.poll() is not None:
                raise RuntimeError("Firefox does not start")
            time.sleep(0.05)
        self.socket = socket.create_connection(("127.0.0.1", int(port.read_text("utf-8"))), timeout=120)
        self.input = self.socket.makefile("rb")
        self.id = 0
        self.receive()
        self.call("WebDriver:NewSession", capabilities={"alwaysMatch": {"timeouts": {"script": SCRIPT_MS}}})

    def set(self, name, value):
        """Changes a setting of the browser."""
        kind = "Int" if isinstance(value, int) else "Char"
        self.call("Marionette:SetContext", value="chrome")
        try:
            self.call("WebDriver:ExecuteScript", script=f"Services.prefs.set{kind}Pref(arguments[0], arguments[1])",
                      args=[name, value])
        finally:
            self.call("Marionette:SetContext", value="content")

    def dark(self, on):
        self.set("layout.css.prefers-color-scheme.content-override", 0 if on else 1)
        # The page is another process, which hears of the setting later.
        self.ask(f"""new Promise((done) => {{ const dark = matchMedia("(prefers-color-scheme: dark)");
            const look = () => dark.matches === {"true" if on else "false"} ? done(1) : setTimeout(look, 10); look(); }})""")
        self.frame()

    def download_to(self, folder):
        self.set("browser.download.folderList", 2)
        self.set("browser.download.dir", str(folder))

    def fit(self, width, height):
        """The window's size includes its frame."""
        self.call("WebDriver:SetWindowRect", width=width, height=height)
        inner = self.ask("[innerWidth, innerHeight]")
        self.call("WebDriver:SetWindowRect", width=2 * width - inner[0], height=2 * height - inner[1])

    def receive(self):
        length = b""
        while (c := self.input.read(1)) != b":":
            if not c:
                raise RuntimeError("Firefox has ended")
            length += c
        return json.loads(self.input.read(int(length)))

    def call(self, method, **parameters):
        self.id += 1
        message = json.dumps([0, self.id, method, parameters]).encode()
        self.socket.sendall(str(len(message)).encode() + b":" + message)
        _, _, error, result = self.receive()
        if error:
            raise RuntimeError(f"{method}: {error['message']}")
        return result

    def ask(self, expression):
        """An expression's value; waits if it is a promise."""
        script = ("const done = arguments[arguments.length - 1]; new Promise((resolve) => resolve("
                  f"({expression}))).then((v) => done([v === undefined ? null : v]), (e) => done(String(e)));")
        value = self.call("WebDriver:ExecuteAsyncScript", script=script, args=[], sandbox=None, newSandbox=False)["value"]
        if isinstance(value, str):
            raise RuntimeError(f"{expression}: {value}")
        return value[0]

    @property
    def said(self):
        """Errors: the page shows them."""
        text = self.ask("(document.querySelector('#error') || {}).textContent || ''")
        return [text] if text else []

    def open(self, path):
        self.call("WebDriver:Navigate", url=f"file://{path}")
        failed = self.ask(LOADED)
        if failed:
            raise RuntimeError(f"{path}: {failed}")
        self.frame()

    def frame(self):
        self.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def resize(self, width, height):
        self.fit(width, height)
        self.frame()
        self.frame()

    def leave(self):
        """Goes to an empty page."""
        self.call("WebDriver:Navigate", url="about:blank")

    def act(self, *actions):
        self.call("WebDriver:PerformActions", actions=list(actions))

    def key(self, key, up=True, shift=False, down=True, ctrl=False):
        values = [*([KEYS["Shift"]] if shift else []), *([KEYS["Control"]] if ctrl else []), KEYS.get(key, key)]
        downs = [{"type": "keyDown", "value": value} for value in values] if down else []
        ups = [{"type": "keyUp", "value": value} for value in reversed(values)] if up else []
        self.act({"type": "key", "id": "keys", "actions": [*downs, *ups]})

    def clipboard(self):
        """A page can't read it without a question: it is pasted into the search."""
        self.ask("traceViewer.finder.input.value = '', traceViewer.finder.input.focus(), 0")
        self.key("v", ctrl=True)
        self.frame()
        return self.ask("((input) => { const {value} = input; input.value = ''; input.blur(); return value; })(traceViewer.finder.input)")

    def type(self, text):
        for letter in text:
            self.key(letter)

    def pointer(self, *actions):
        self.act({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": list(actions)})

    @staticmethod
    def move(x, y):
        return {"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0}

    def mouse(self, kind, x, y):
        assert kind == "Moved"
        self.pointer(self.move(x, y))

    def click(self, x, y):
        self.pointer(self.move(x, y), {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0})

    def drag(self, x0, y0, x1, y1):
        moves = [self.move(x0 + (x1 - x0) * i / 4, y0 + (y1 - y0) * i / 4) for i in range(1, 5)]
        self.pointer(self.move(x0, y0), {"type": "pointerDown", "button": 0}, *moves, {"type": "pointerUp", "button": 0})

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        if self.socket:
            self.socket.close()
        self.profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
