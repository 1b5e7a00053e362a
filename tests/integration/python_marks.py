#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Python binding: every call in the JSON, and a program that nobody records."""

import json
import subprocess
import sys

from harness import Test, check

PROGRAM = '''
import threading
import traced

@traced.function
def load(path):
    with traced.scope("parse", path=path):
        traced.counter("queue", length=3, depth=1.5)

class Odd:
    def __str__(self):
        raise ValueError

holds_itself = []
holds_itself.append(holds_itself)

traced.process_name("app")
traced.thread_name("main thread")
load("/etc/motd")
began = traced.now()
traced.begin("step", "app,io", none=None, yes=True, small=-(1 << 63), big=(1 << 64) - 1, huge=1 << 64, half=0.5,
             text="a\\udcff\\0\\u00e4", data=b"raw", nested={"list": [1, None]}, odd=Odd(), endless=holds_itself)
traced.instant("here", scope="process")
traced.instant("high \\ud800 surrogate", "\\ud801", **{"key\\ud802": "\\ud803"})
traced.instant(Odd(), Odd())
traced.instant("no category", "")
traced.flow_start("hand over", 7)
traced.end(done=1)
traced.complete("whole", began, why="late")
traced.async_begin("request", 9, url="/")

def take():
    with traced.scope("take"):
        traced.flow_end("hand over", 7)
    traced.async_end("request", 9)

thread = threading.Thread(target=take)
thread.start()
thread.join()
try:
    with traced.scope("raises"):
        raise KeyError
except KeyError:
    pass
print("recorded:", traced.enabled(), "dropped:", traced.dropped())
'''

REFUSED = '''
import traced
try:
    @traced.function
    async def suspended():
        pass
except TypeError as error:
    print(error)
'''


def run_env(test):
    return test.environment(TRACED_MARKS=str(test.daemon.socket.parent), PYTHONPATH=str(test.source / "python"),
                            LD_LIBRARY_PATH=str(test.build / "libtraced"))


def python(test, program):
    path = test.dir / "app.py"
    path.write_text(program)
    return subprocess.run([sys.executable, path], env=run_env(test), capture_output=True, text=True, timeout=60)


def every_call_is_in_the_json(test):
    (test.dir / "app.py").write_text(PROGRAM)
    result = test.run("record", "--name", test.name, "-o", "x.json", "-e", "sched:sched_switch", "--",
                      sys.executable, "app.py", env=run_env(test))
    check(result.status == 0 and "recorded: True dropped: 0" in result.out, f"{result}")
    events = json.loads((test.dir / "x.json").read_text())["traceEvents"]
    pid = next(e["pid"] for e in events if e.get("name") == "load")
    mine = [e for e in events if e["pid"] == pid]
    named = {e["name"]: e for e in mine if e["ph"] not in "EM"}
    check({e["args"]["name"] for e in mine if e["ph"] == "M" and "name" in e["args"]} >= {"app", "main thread"}, mine)
    main = [(e["ph"], e.get("name")) for e in mine if e["tid"] == pid and e["ph"] in "BEC"]
    check(main == [("B", "load"), ("B", "parse"), ("C", "queue"), ("E", "parse"), ("E", "load"),
                   ("B", "step"), ("E", "step"), ("B", "raises"), ("E", "raises")], main)
    check(named["parse"]["args"] == {"path": "/etc/motd"} and named["parse"]["cat"] == "python", named["parse"])
    check(named["queue"]["args"] == {"length": 3, "depth": 1.5}, named["queue"])
    check(named["step"]["cat"] == "app,io" and named["step"]["args"] == {
        "none": None, "yes": True, "small": -(1 << 63), "big": (1 << 64) - 1, "huge": str(1 << 64), "half": 0.5,
        "text": "a\ufffd\0\u00e4", "data": "raw", "nested": {"list": [1, None]}, "odd": "<ValueError>",
        "endless": "<ValueError>"}, named["step"])
    check(next(e for e in mine if e["ph"] == "E" and "args" in e)["args"] == {"done": 1}, "the end's argument")
    check(named["high ? surrogate"]["args"] == {"key?": "?"}, named["high ? surrogate"])
    check("<ValueError>" in named, sorted(named))
    check(named["no category"]["cat"] == "default", named["no category"])
    check(named["here"]["ph"] == "i" and named["here"]["s"] == "p", named["here"])
    check(named["whole"]["ts"] <= named["step"]["ts"] and named["whole"]["dur"] > 0, named["whole"])
    flows = [e for e in mine if e.get("name") == "hand over"]
    check([(e["ph"], e["id"], e.get("bp")) for e in flows] == [("s", "0x7", None), ("f", "0x7", "e")], flows)
    check(flows[0]["tid"] == pid != flows[1]["tid"], flows)
    check([e["ph"] for e in mine if e.get("id") == "0x9"] == ["b", "e"], "the operation")


def nobody_records(test):
    done = python(test, PROGRAM)
    check(done.returncode == 0 and done.stdout == "recorded: False dropped: 0\n" and not done.stderr, done)


def what_can_be_suspended_is_refused(test):
    done = python(test, REFUSED)
    check(done.returncode == 0 and "suspended can be suspended" in done.stdout, done)


def main():
    test = Test("python_marks")
    test.case("every call is in the JSON", every_call_is_in_the_json, daemon=True)
    test.case("nobody records", nobody_records, daemon=True)
    test.case("a coroutine is refused", what_can_be_suspended_is_refused, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
