#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The report critpath. Each row is looked up among the spans that the kernel's text tells, the rows of a level follow
each other without a gap, and a chain of processes whose work is known shows as that."""

import collections
import json
import re
import sys

from harness import Skipped, Test, check

US = 1000
ROUNDS = 20
BUSY_MS = 3
TRIES = 10
FIXTURE_TASKS = 12

LINE = re.compile(r"\s*(.{1,16})-(\d+)\s+(?:\([^)]*\)\s+)?\[(\d+)\]\s+(\S+)\s+(\d+)\.(\d+): (\w+): (.*)")
SWITCH = re.compile(r"prev_comm=.* prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) ==> next_comm=.* next_pid=(\d+) ")
WAKE = re.compile(r"comm=.* pid=(\d+) prio=")

Span = collections.namedtuple("Span", "what begin end waker by_interrupt state")


class Oracle:
    """The spans of each thread, of a recording without losses. Where the kernel left out a switch they are wrong, and
    the report says that it does not know."""

    def __init__(self):
        self.spans = collections.defaultdict(list)
        self.state = {}  # by tid: (what, since, letter)
        self.runs = collections.defaultdict(list)  # by tid: begins

    def end(self, tid, ns, waker=None, by_interrupt=False):
        what, since, letter = self.state.get(tid, (None, 0, ""))
        if what:
            self.spans[tid].append(Span(what, since, ns, waker, by_interrupt, letter))

    def switch(self, ns, prev, state, following):
        letter = state.rstrip("+")
        if prev:
            self.end(prev, ns)
            self.state[prev] = ("wait", ns, "") if letter == "R" else ("sleep", ns, letter)
        if following:
            self.end(following, ns)
            self.state[following] = ("run", ns, "")
            self.runs[following].append(ns)

    def wake(self, ns, waker, tid, by_interrupt):
        if self.state.get(tid, ("",))[0] not in ("run", "wait"):
            self.end(tid, ns, waker, by_interrupt)
            self.state[tid] = ("wait", ns, "")

    def read(self, path):
        for line in path.read_text(errors="replace").splitlines():
            found = LINE.match(line)
            if not found:
                continue
            _, pid, _, flags, seconds, micro, name, details = found.groups()
            ns = int(seconds) * 10**9 + int(micro) * US
            if name == "sched_switch":
                prev, state, following = SWITCH.match(details).groups()
                self.switch(ns, int(prev), state, int(following))
            elif name in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
                self.wake(ns, int(pid), int(WAKE.match(details)[1]), flags[2] in "hHsZz")
        return self

    def find(self, row):
        """The thread's spans of that kind that end when the row does."""
        return [s for s in self.spans[row["tid"]] if s.what == row["what"] and abs(s.end - row["at_ns"]) <= US]


def critpath(test, path, task):
    r = test.run("report", "critpath", "--json", "--task", task, path)
    check(r.status == 0, r)
    return json.loads(r.out)["reports"][0]


def check_row(oracle, row, bottom):
    """bottom: the begin of the sleep that the row's level explains."""
    begin = row["at_ns"] - row["time_ns"]
    found = oracle.find(row)
    if row["what"] == "run" and not found:
        # A waker's run went on after the wake-up.
        begins = [ns for ns in oracle.runs[row["tid"]] if ns <= row["at_ns"] + US]
        check(begins and abs(max(begins[-1], bottom) - begin) <= 2 * US, f"{row}: it ran from {begins[-1:]}")
        return
    good = [s for s in found if abs(max(s.begin, bottom) - begin) <= 2 * US]
    check(good, f"{row}, back to {bottom}: the text has {found}")
    if row["what"] == "sleep":
        check(any(s.state == row["state"] for s in good), f"{row}: {good}")
        check(any((row["waker"] == "(interrupt)") == s.by_interrupt for s in good), f"{row}: {good}")


def check_rows(oracle, table):
    """Returns how many rows of each level were compared."""
    compared = collections.Counter()
    # For each level: the end of its next row, and where its walk ends.
    next_end, bottom = {}, {0: 0}
    for row in table["rows"]:
        level = row["level"]
        if row["time_ns"] is None:
            next_end.pop(level, None)
            bottom.pop(level + 1, None)
            continue
        check(level in bottom, f"level {level} has no sleep above it: {row}")
        check(next_end.get(level, row["at_ns"]) == row["at_ns"], f"a gap before {row}: {next_end}")
        begin = row["at_ns"] - row["time_ns"]
        check(begin >= bottom[level], f"{row} begins before {bottom[level]}")
        check_row(oracle, row, bottom[level])
        compared[level] += 1
        next_end[level] = begin
        for deeper in [x for x in next_end if x > level]:
            del next_end[deeper]
        for deeper in [x for x in bottom if x > level]:
            del bottom[deeper]
        if row["what"] == "sleep":
            bottom[level + 1], next_end[level + 1] = begin, row["at_ns"]
    return compared


# top waits for mid, which waits for leaf, which works.
CHAIN = """
import os, sys, time
busy, rounds = int(sys.argv[1]) * 10**6, int(sys.argv[2])
def name(text):
    open("/proc/self/comm", "w").write(text)
def serve(title, below, work):
    '''A process that answers each byte, after its own work and that of those below.'''
    ask, told, answer, answered = *os.pipe(), *os.pipe()
    if not os.fork():
        name(title)
        os.close(told)
        inner = below() if below else None
        while os.read(ask, 1):
            end = time.monotonic_ns() + work
            while time.monotonic_ns() < end:
                pass
            if inner:
                os.write(inner[0], b"x")
                os.read(inner[1], 1)
            os.write(answered, b"x")
        os._exit(0)
    os.close(ask)
    os.close(answered)
    return told, answer
to, back = serve("mid-proc", lambda: serve("leaf-proc", None, busy), 0)
name("top-proc")
for _ in range(rounds):
    os.write(to, b"x")
    os.read(back, 1)
"""


def record(test, *command):
    for _ in range(3):
        r = test.run("record", "-q", "--name", test.name, "-b", "16M", "-e", "sched", "-o", "x.traced", "--", *command)
        check(r.status == 0, r)
        r = test.run("report", "sched", "--json", "x.traced")
        if json.loads(r.out)["lost"] == 0:
            r = test.run("convert", "-q", "x.traced", "x.txt")
            check(r.status == 0, r)
            return Oracle().read(test.dir / "x.txt")
    raise Skipped("each recording lost events")


def chain(test):
    (test.dir / "chain.py").write_text(CHAIN)
    # A busy kernel leaves out switches: such runs are cut, and not followed.
    for _ in range(TRIES):
        oracle = record(test, sys.executable, str(test.dir / "chain.py"), str(BUSY_MS), str(ROUNDS))
        table = critpath(test, "x.traced", "top-proc")
        compared = check_rows(oracle, table)
        ran = collections.Counter()
        for row in table["rows"]:
            if row["what"] == "run":
                ran[row["level"], row["task"]] += row["time_ns"]
        if ran[2, "leaf-proc"] > ROUNDS / 2 * BUSY_MS * 1000 * US:
            break
    check(ran[2, "leaf-proc"] > ROUNDS / 2 * BUSY_MS * 1000 * US, f"{ran}")
    check(compared[0] > ROUNDS and compared[1] > ROUNDS and compared[2] > ROUNDS / 2, f"{compared}")
    tid = str(next(row["tid"] for row in table["rows"] if row["level"] == 0))
    check(critpath(test, "x.traced", tid)["rows"] == table["rows"], "by tid it differs")


def shell(test):
    # Other shells may run beside this one.
    oracle = record(test, "sh", "-c", "printf own-shell > /proc/$$/comm; for i in $(seq 30); do /bin/true | /bin/cat; done")
    table = critpath(test, "x.traced", "own-shell")
    check(sum(check_rows(oracle, table).values()) > 20, table)
    table = critpath(test, "x.traced", "cat")
    check(any("several threads are named cat" in note for note in table["notes"]), table["notes"])


def fixtures(test):
    """Recordings of other kernels and machines."""
    compared = collections.Counter()
    for path in sorted((test.source / "tests/data").glob("*/mixed.traced.gz")):
        r = test.run("report", "sched", "--json", path)
        if r.status != 0 or json.loads(r.out)["lost"]:
            continue
        tids = [row["tid"] for row in json.loads(r.out)["reports"][0]["rows"]][:FIXTURE_TASKS]
        check(test.run("convert", "-q", path, "x.txt").status == 0, path)
        oracle = Oracle().read(test.dir / "x.txt")
        for tid in tids:
            compared += check_rows(oracle, critpath(test, path, str(tid)))
    check(compared[0] > 100 and compared[1] > 20, f"{compared}")


def refusals(test):
    record(test, "true")
    for arguments, says in ((["critpath"], "is of one thread"), (["sched", "--task", "1"], "only the report critpath"),
                            (["critpath", "--task", ""], "the value is empty")):
        r = test.run("report", *arguments, "x.traced")
        check(r.status == 2 and says in r.err and not r.out, r)
    r = test.run("report", "critpath", "--task", "none-such", "x.traced")
    check(r.status == 1 and "the recording has no thread none-such" in r.err and not r.out, r)
    r = test.run("report", "critpath", "--json", "--task", "true", "x.traced")
    (test.dir / "x.json").write_text(r.out)
    r = test.run("report", "--merge", "x.json")
    check(r.status == 1 and "its report critpath can't be merged" in r.err, r)


def main():
    test = Test("report_critpath")
    test.case("chain", chain)
    test.case("shell", shell)
    test.case("fixtures", fixtures)
    test.case("refusals", refusals)
    test.end()


if __name__ == "__main__":
    main()
