#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tracectl top: its page in a terminal of tmux, with keys and resizing."""

import json
import re
import shutil
import struct
import subprocess
import time

from harness import Test, check, need, settled
from top import BURNER, CALLER, Load


class Terminal:
    """tracectl top in a terminal of a tmux of its own."""

    def __init__(self, test, *arguments, width=80, height=24):
        self.test = test
        self.socket = test.dir / "tmux"
        command = " ".join(f"'{word}'" for word in test.arguments("top", "--name", test.name, *arguments))
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height), f"{command} 2>err; echo $? >status",
                  env=test.environment(TERM="xterm"))

    def tmux(self, *arguments, env=None):
        return subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *arguments], cwd=self.test.dir, env=env,
                              capture_output=True, text=True, check=True).stdout

    def lines(self):
        return self.tmux("capture-pane", "-p").split("\n")[:-1]

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def await_line(self, number, pattern):
        settled(f"'{pattern}' in line {number} of:\n" + "\n".join(self.lines()),
                lambda: re.search(pattern, (self.lines() + [""] * 50)[number]))

    def resize(self, width, height):
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    def end(self):
        """The exit status, and what it printed on standard error."""
        settled("it ends", (self.test.dir / "status").exists)
        settled("the terminal ends", lambda: not self.is_running())
        return int((self.test.dir / "status").read_text()), (self.test.dir / "err").read_text()

    def is_running(self):
        return subprocess.run(["tmux", "-S", self.socket, "has-session"], capture_output=True, check=False).returncode == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, check=False)


def need_terminal(test):
    need(shutil.which("tmux"), "tmux is not installed")
    options = json.loads((test.build / "meson-info/intro-dependencies.json").read_text("utf-8"))
    need(any(o["name"] == "ncursesw" for o in options), "built without ncurses")


def page(test):
    need_terminal(test)
    with Load(test, burner=BURNER, caller=CALLER), Terminal(test) as t:
        t.await_line(0, r"events/s, .* lost.*, in ")
        t.await_line(1, r"cost: recorder [\d.]+ %, decoder [\d.]+ %, terminal [\d.]+ % of a CPU")
        t.await_line(2, r"\[1 sched\]")
        t.await_line(3, r"task +tid +>runtime .*delay-p99 +delay-max")
        t.await_line(23, "q quit")
        settled("the burner", lambda: any(line.startswith("burner ") for line in t.lines()))
        check(max(map(len, t.lines())) <= 80, "too wide")
        t.keys(">")
        t.await_line(3, ">runs")
        t.keys("Left", "Left")
        t.await_line(3, ">tid")
        t.keys("3")
        t.await_line(2, r"\[3 syscalls\]")
        t.await_line(3, "call .*>total")
        t.keys("/", "OPENAT", "Enter")
        t.await_line(2, "filter: OPENAT")
        t.await_line(4, "^openat")
        settled("only these rows", lambda: all("openat" in line for line in t.lines()[4:22] if line))
        t.keys("Escape")
        settled("other rows", lambda: t.lines()[5])
        t.keys("f")
        t.await_line(0, "^FROZEN")
        frozen = t.lines()
        time.sleep(2.5)
        check(t.lines()[4:22] == frozen[4:22], "it is not frozen")
        t.keys("d")
        t.await_line(2, "last second")
        t.keys("d")
        t.await_line(2, "decayed")
        t.keys("f")
        settled("it goes on", lambda: t.lines()[4:22] != frozen[4:22])
        t.keys("q")
        status, err = t.end()
        check(status == 0 and "error" not in err, f"{status}, {err}")


def resizing(test):
    need_terminal(test)
    with Terminal(test) as t:
        t.await_line(3, ">runtime")
        t.resize(140, 40)
        t.await_line(3, "delay-avg")
        t.await_line(39, "q quit")
        t.resize(30, 10)
        t.await_line(9, "q quit")
        check(max(map(len, t.lines())) <= 30, t.lines())
        for width, height in ((1, 1), (200, 2), (5, 5), (80, 24)):
            t.resize(width, height)
            time.sleep(0.2)
        t.await_line(23, "q quit")
        t.await_line(3, ">runtime")
        t.keys("C-c")
        check(t.end()[0] == 0, "its status")


def terminal_goes(test):
    """A window that is closed ends it, and its recording."""
    need_terminal(test)
    with Terminal(test) as t:
        t.await_line(3, ">runtime")
        check(test.instances(), "it does not record")
    settled("its recording ends", lambda: not test.instances())


def has_gap(path):
    """Whether a part is missing between two whole chunks: a header of zeros is there."""
    data = path.read_bytes()
    at = 8
    while at + 24 <= len(data):
        magic, _, _, length = struct.unpack_from("<4sHHI", data, at)
        if magic != b"CHNK":
            return data[at:at + 28] == bytes(24) + b"CHNK"
        at += 24 + (length + 7) // 8 * 8
    return False


def snapshot(test):
    """The file has what was just shown, and opens."""
    need_terminal(test)
    # Without system calls, ten seconds are fewer bytes than are kept.
    with Load(test, burner=BURNER, caller=CALLER), Terminal(test, "-e", "sched:sched_sw*", "-e", "sched:sched_wak*") as t:
        t.await_line(3, ">runtime")
        # Longer than what is kept.
        time.sleep(14)
        t.keys("s")
        t.await_line(23, r"wrote top-\d+-\d+\.traced")
        t.keys("s")
        t.await_line(23, r"wrote top-\d+-\d+-2\.traced")
        t.keys("q")
        check(t.end()[0] == 0, "its status")
    files = [name for name in test.files() if name.startswith("top-")]
    check(len(files) == 2, test.files())
    for name in files:
        r = test.run("report", "sched", "--json", name)
        check(r.status == 3 and "INCOMPLETE" in r.err, r)
        document = json.loads(r.out)
        check(document["span_ns"] > 9e9, document["span_ns"])
        check(has_gap(test.dir / name), "all is in it")
        names = {row["task"] for row in document["reports"][0]["rows"]}
        check({"burner", "caller"} <= names, names)
        for to in ("x.json", "x.html"):
            r = test.run("convert", name, to)
            check(r.status == 3 and "INCOMPLETE" in r.err, r)
            check("burner" in (test.dir / to).read_text(), f"{to} has no task")


def main():
    test = Test("top_page")
    test.case("page", page)
    test.case("resizing", resizing)
    test.case("terminal goes", terminal_goes)
    test.case("snapshot", snapshot)
    test.end()


if __name__ == "__main__":
    main()
