#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The scheduler's reports: compared with what the kernel's text says, and with programs whose delays
are known."""

import bisect
import collections
import csv
import io
import json
import os
import re
import statistics
import subprocess
import sys

from harness import Skipped, Test, check, need

US = 1000
BUSY_MS = 5
ROUNDS = 40
# Between the writer's clock and the scheduler's events; a virtual machine adds some.
NOISE_US = 50

LINE = re.compile(r"\s*(.{1,16})-(\d+)\s+(?:\([^)]*\)\s+)?\[(\d+)\]\s+\S+\s+(\d+)\.(\d+): (\w+): (.*)")
STACK_CPU = re.compile(r"\[(\d+)\]\s+\S+\s+[\d.]+: <stack trace>")
SWITCH = re.compile(r"prev_comm=.* prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) ==> next_comm=.* next_pid=(\d+) ")
WAKE = re.compile(r"comm=.* pid=(\d+) prio=")


def events(path):
    """(ns, cpu, name, details) of the text's lines; times are whole microseconds."""
    for line in path.read_text(errors="replace").splitlines():
        found = LINE.match(line)
        if found:
            _, _, cpu, seconds, micro, name, details = found.groups()
            yield int(seconds) * 10**9 + int(micro) * US, int(cpu), name, details


class Oracle:
    """Whole runs and waits by tid, of a recording without losses."""

    def __init__(self):
        self.runs = collections.defaultdict(list)
        self.waits = collections.defaultdict(list)
        self.odd = set()  # tids of which the kernel left out a switch
        self.current = {}  # by cpu: (tid, since)
        self.waiting = {}  # by tid: since
        self.running = set()
        self.on_cpus = collections.defaultdict(collections.Counter)  # by CPU and tid: ns; 0: idle
        self.all_waits = []
        self.last = {}  # by tid: the CPU on which it ran last
        self.migrations = collections.Counter()

    def switch(self, ns, cpu, prev, state, following):
        if cpu in self.current:
            tid, since = self.current[cpu]
            if tid != prev:
                self.odd |= {tid, prev}
            else:
                self.on_cpus[cpu][prev] += ns - since
            if tid == prev != 0:
                self.runs[prev].append(ns - since)
        if prev:
            self.running.discard(prev)
            self.last[prev] = cpu
            if state.rstrip("+") == "R":
                self.waiting[prev] = ns
            else:
                self.waiting.pop(prev, None)
        if following:
            since = self.waiting.pop(following, None)
            if since is not None:
                self.waits[following].append(ns - since)
                self.all_waits.append(ns - since)
                self.migrations[following] += self.last.get(following, cpu) != cpu
            self.last[following] = cpu
            self.running.add(following)
        self.current[cpu] = (following, ns)

    def wake(self, ns, tid):
        if tid not in self.running:
            self.waiting.setdefault(tid, ns)

    def read(self, path):
        for ns, cpu, name, details in events(path):
            if name == "sched_switch":
                prev, state, following = SWITCH.match(details).groups()
                self.switch(ns, cpu, int(prev), state, int(following))
            elif name in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
                self.wake(ns, int(WAKE.match(details)[1]))
            elif name == "sched_process_exec":
                pid, old = map(int, re.search(r" pid=(\d+) old_pid=(\d+)", details).groups())
                if pid != old:
                    self.odd |= {pid, old}
        return self


def report(test, name, path, *arguments):
    r = test.run("report", name, "--json", *arguments, path)
    check(r.status == 0, r)
    return json.loads(r.out)["reports"][0]


def near(found, wanted, count, what):
    """Both edges of an interval are cut to microseconds in the text."""
    check(abs(found - wanted) <= US * max(count, 1), f"{what}: {found}, {wanted} in the text")


def compare(test, path):
    """sched, timehist and runq against the text."""
    r = test.run("convert", "-q", path, "x.txt")
    check(r.status == 0, r)
    oracle = Oracle().read(test.dir / "x.txt")
    lives = collections.Counter(row["tid"] for row in report(test, "sched", path)["rows"])
    compared = 0
    for row in report(test, "sched", path)["rows"]:
        tid = row["tid"]
        # A tid of several tasks has several rows.
        if tid in oracle.odd or lives[tid] > 1 or row["cut"]:
            continue
        check(row["runs"] == len(oracle.runs[tid]), f"{row}: {len(oracle.runs[tid])} runs in the text")
        check(row["migrations"] == oracle.migrations[tid], f"{row}: {oracle.migrations[tid]} migrations")
        near(row["runtime_ns"], sum(oracle.runs[tid]), row["runs"], f"runtime of {tid}")
        check(row["delay"]["count"] == len(oracle.waits[tid]), f"{row}: {len(oracle.waits[tid])} waits")
        near(row["delay"]["sum_ns"], sum(oracle.waits[tid]), len(oracle.waits[tid]), f"delay of {tid}")
        compared += 1
    compare_page(test, path, oracle)
    rows = collections.defaultdict(list)
    for row in report(test, "timehist", path)["rows"]:
        rows[row["tid"]].append(row)
    for tid, runs in oracle.runs.items():
        if tid not in oracle.odd and lives[tid] == 1:
            check(len(rows[tid]) == len(runs), f"timehist of {tid}: {len(rows[tid])}, {len(runs)}")
            for row, run in zip(rows[tid], runs, strict=True):
                near(row["run_ns"], run, 1, f"timehist of {tid}")
    return compared


def compare_page(test, path, oracle):
    """cpus and delays, if the kernel left out no switch."""
    if oracle.odd:
        return
    rows = {row["cpu"]: row for row in report(test, "cpus", path)["rows"]}
    check(set(rows) >= set(oracle.on_cpus), f"{set(rows)}, {set(oracle.on_cpus)} in the text")
    for cpu, on_cpu in oracle.on_cpus.items():
        row, busy = rows[cpu], sum(ns for tid, ns in on_cpu.items() if tid)
        near(row["known_ns"] - row["idle_ns"], busy, row["runs"], f"{row}: busy")
        near(row["idle_ns"], on_cpu[0], row["runs"] + 1, f"{row}: idle")
        near(row["most_time_ns"], max((ns for tid, ns in on_cpu.items() if tid), default=0), row["runs"], f"{row}: most")
        check(abs(row["busy_permille"] - 1000 * busy / (busy + on_cpu[0])) < 5, row)
    # A CPU is as busy, whoever is looked at.
    r = test.run("report", "cpus", "--json", "--thread", next(tid for tid in oracle.runs if tid), path)
    check({row["cpu"]: row for row in json.loads(r.out)["reports"][0]["rows"]} == rows, r)
    delays = [row["delay_ns"] for row in report(test, "delays", path)["rows"]]
    check(len(delays) == min(1000, len(oracle.all_waits)), f"{len(delays)} of {len(oracle.all_waits)} waits")
    for found, wanted in zip(delays, sorted(oracle.all_waits, reverse=True)):
        near(found, wanted, 1, "a delay")


def record(test, *command):
    """A recording without losses; what the command wrote."""
    for _ in range(3):
        r = test.run("record", "-q", "--name", test.name, "--clock", "mono", "-e", "sched", "-o", "x.traced", "--", *command)
        check(r.status == 0, r)
        if json.loads(test.run("report", "sched", "--json", "x.traced").out)["lost"] == 0:
            return r.out
    raise Skipped("each recording lost events")


def live(test):
    record(test, "sh", "-c", "for i in $(seq 30); do /bin/true | /bin/cat; done")
    compared = compare(test, "x.traced")
    check(compared > 20, f"{compared} tasks were compared")
    delays = report(test, "sched", "x.traced")["rows"]
    buckets = report(test, "runq", "x.traced")["rows"]
    check(sum(b["count"] for b in buckets) == sum(row["delay"]["count"] for row in delays), "runq")
    waits = sum(row["delay"]["sum_ns"] for row in delays)
    blamed = sum(row["time_ns"] for row in report(test, "blame", "x.traced")["rows"])
    check(blamed == waits, f"blame: {blamed}, {waits} waited")


def fixtures(test):
    compared = 0
    for path in sorted((test.source / "tests/data").glob("*/mixed.traced.gz")):
        r = test.run("report", "timehist", "--json", path)
        if r.status == 0 and not json.loads(r.out)["lost"]:
            compared += compare(test, path)
    check(compared > 0, "no recording of tests/data was compared")


# A reader that another process's write wakes, and that has to wait until the writer sleeps.
DELAYS = """
import os, sys, time
cpu, busy, rounds = min(os.sched_getaffinity(0)), int(sys.argv[1]) / 1000, int(sys.argv[2])
os.sched_setaffinity(0, [cpu])
def name(text):
    open("/proc/self/comm", "w").write(text)
readable, writable = os.pipe()
if not os.fork():
    name("delayed")
    # Before all usual tasks of a busy machine, but after the writer.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    os.close(writable)
    ran = []
    while os.read(readable, 1):
        ran.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    print(*ran, flush=True)
    os._exit(0)
os.close(readable)
name("delayer")
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
begins, wakes, ends = [], [], []
for _ in range(rounds):
    time.sleep(0.02)
    begins.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    os.write(writable, b"x")
    wakes.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    while time.clock_gettime_ns(time.CLOCK_MONOTONIC) < begins[-1] + busy * 10**9:
        pass
    ends.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
os.close(writable)
os.wait()
for times in begins, wakes, ends:
    print(*times)
"""


def shown_rounds(path, tid, times):
    """Of DELAYS: the rounds that the recording's own events show, as (woken, switched in). The reader slept before; it was
    woken, and came to its CPU, when the two say so. A busy kernel leaves out switches: nobody knows of a delay without one."""
    ran, begins, wakes, ends = times
    asleep = woken = None
    found = {}
    for ns, _, name, details in events(path):
        if name == "sched_switch":
            prev, state, following = SWITCH.match(details).groups()
            if tid in (int(prev), int(following)):
                i = bisect.bisect(begins, (woken or 0) + US) - 1
                if (int(following) == tid and woken and woken - asleep > 10_000 * US and i >= 0 and
                        woken <= wakes[i] + US and ends[i] - US <= ns <= ran[i] + US):
                    found[i] = woken, ns
                asleep, woken = (ns if int(prev) == tid and not state.startswith("R") else None), None
        elif name in ("sched_waking", "sched_wakeup") and asleep and int(WAKE.match(details)[1]) == tid:
            woken = woken or ns
    return found


def check_rounds(test, path, tid, said, delays):
    """Each round that the events show is among the delays (begin, end). Returns how many there are."""
    r = test.run("convert", "-q", path, "rounds.txt")
    check(r.status == 0, r)
    rounds = shown_rounds(test.dir / "rounds.txt", tid, [[int(ns) for ns in line.split()] for line in said.splitlines()])
    missing = {i: times for i, times in rounds.items()
               if not any(abs(begin - times[0]) <= US and abs(end - times[1]) <= US for begin, end in delays)}
    check(rounds and not missing, f"of {len(rounds)} rounds, these are no delay: {missing}")
    print(f"  the recording's events show {len(rounds)} rounds")
    return len(rounds)


def time_of(path, tids, waits):
    """How long these ran on the CPUs, and in the delays, of timehist's rows."""
    total, since = 0, {}
    for ns, cpu, name, details in events(path):
        if name != "sched_switch":
            continue
        prev, _, following = SWITCH.match(details).groups()
        begin = since.pop(cpu, None)
        if begin is not None and int(prev) in tids:
            for row in waits:
                end = row["at_ns"] - row["run_ns"]
                if row["cpu"] == cpu and row["delay_ns"]:
                    total += max(0, min(ns, end) - max(begin, end - row["delay_ns"]))
        if int(following) in tids:
            since[cpu] = ns
    return total


def delayed(test):
    """A SCHED_FIFO busy loop delays a sleeper on the same CPU, and is blamed."""
    (test.dir / "delays.py").write_text(DELAYS)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError:
        need(False, "this user can't have SCHED_FIFO")
    said = record(test, sys.executable, str(test.dir / "delays.py"), str(BUSY_MS), str(ROUNDS))
    ran, begins, wakes, ends = ([int(ns) for ns in line.split()] for line in said.splitlines())
    # The delayer sleeps between two rounds. Before the first it has made the task, too.
    all_runs = [row for row in report(test, "timehist", "x.traced")["rows"] if row["task"] == "delayed"]
    runs = [row for row in all_runs if row["waker"] == "delayer" and (row["wait_ns"] or 0) > 10_000 * US]
    spans = [(row["at_ns"] - row["run_ns"] - row["delay_ns"], row["at_ns"] - row["run_ns"]) for row in runs]
    shown = check_rounds(test, "x.traced", runs[0]["tid"], said, spans)
    # Each delay begins and ends where the two saw it on the clock of the trace, however busy the machine is.
    for row in runs:
        end = row["at_ns"] - row["run_ns"]
        begin = end - row["delay_ns"]
        i = bisect.bisect(begins, begin) - 1
        check(begins[i] <= begin <= wakes[i] and ends[i] <= end <= ran[i], f"{begin} to {end}: "
              f"{begins[i]}, {wakes[i]}, {ends[i]}, {ran[i]}")
    # Others that hold up the writer make single delays longer, which are true.
    delay = statistics.median(row["delay_ns"] for row in runs)
    check(abs(delay - BUSY_MS * 1000 * US) < NOISE_US * US, f"the median delay is {delay} ns")
    rows = [row for row in report(test, "delays", "x.traced")["rows"] if row["task"] == "delayed" and row["delay_ns"] > 4000 * US]
    check(len(rows) >= shown and sum(row["most"] == "delayer" and row["waker"] == "delayer" for row in rows) > len(rows) * 0.7, rows)
    rows = report(test, "blame", "x.traced", "--by", "comm")["rows"]
    share = [row["share_permille"] for row in rows if (row["waiter"], row["runner"]) == ("delayed", "delayer")]
    # On a busy machine it waits for others, too.
    delayers = {row["tid"] for row in report(test, "sched", "x.traced")["rows"] if row["task"] == "delayer"}
    wanted = 1000 * time_of(test.dir / "rounds.txt", delayers, all_runs) / sum(row["delay_ns"] or 0 for row in all_runs)
    check(wanted > 500 and len(share) == 1 and abs(share[0] - wanted) < 10, f"{share}, {wanted:.0f} in the text")
    rows = [row for row in report(test, "offcpu", "x.traced", "--by", "comm")["rows"]
            if (row["comm"], row["waker"], row["state"]) == ("delayed", "delayer", "S")]
    check(len(rows) == 1 and rows[0]["count"] >= shown, rows)
    # The writer sleeps 20 ms and works 5 ms; the reader sleeps for what remains of that, unless others run.
    longest = max(row["wait_ns"] for row in runs)
    check(10_000 * US < rows[0]["total_ns"] / rows[0]["count"] and
          (rows[0]["total_ns"] - longest) / rows[0]["count"] < 25_000 * US, rows)


def choices(test):
    record(test, "sh", "-c", "for i in $(seq 10); do /bin/true; done")
    for name, by in (("runq", "cpu"), ("runq", "thread"), ("runq", "comm"), ("offcpu", "process"),
                     ("blame", "thread"), ("blame", "process")):
        check(report(test, name, "x.traced", "--by", by)["rows"], f"{name} by {by}")
    rows = report(test, "timehist", "x.traced", "--min", "20us")["rows"]
    check(all(row["delay_ns"] is not None and row["delay_ns"] >= 20 * US for row in rows), rows)
    rows = report(test, "timehist", "x.traced", "--sort", "run", "--top", "3")["rows"]
    check(len(rows) == 3 and rows[0]["run_ns"] >= rows[1]["run_ns"] >= rows[2]["run_ns"], rows)
    r = test.run("report", "runq", "x.traced")
    check(re.search(r" #+\n", r.out), r)


def rows_of_text(text):
    """The rows of timehist for people: (at, cpu, tid), which have no spaces, and where the columns end."""
    row = re.compile(r" *(\d+\.\d{6}) +(\d+)  .{15,}? +(\d+) +(?:-|[\d.]+ \w+) +(?:-|[\d.]+ \w+) +[\d.]+ \w+  (\w)")
    found = [row.match(line) for line in text.splitlines()[2:]]
    return [(m[1], int(m[2]), int(m[3])) for m in found if m], {m.end(4) for m in found if m}


def written(test):
    """Rows that are written as they come are the same in all forms, and those that a table keeps."""
    record(test, "sh", "-c", "for i in $(seq 30); do /bin/true | /bin/cat; done")
    rows = report(test, "timehist", "x.traced")["rows"]
    wanted = [(f"{row['at_ns'] // 10**9}.{row['at_ns'] % 10**9 // 1000:06}", row["cpu"], row["tid"]) for row in rows]
    r = test.run("report", "timehist", "x.traced")
    found, ends = rows_of_text(r.out)
    check(r.status == 0 and found == wanted and len(wanted) > 60, r)
    check(len(ends) == 1, f"not aligned: {ends}")
    r = test.run("report", "timehist", "--csv", "x.traced")
    *table, totals = csv.DictReader(io.StringIO(r.out))
    check([(row["at_ns"], row["tid"], row["run_ns"]) for row in table]
          == [(str(row["at_ns"]), str(row["tid"]), str(row["run_ns"])) for row in rows], r)
    # Behind another table, and sorted, they are kept.
    r = test.run("report", "runq,timehist", "--json", "x.traced")
    check(json.loads(r.out)["reports"][1]["rows"] == rows, r)
    by_run = sorted(rows, key=lambda row: -row["run_ns"])
    check(report(test, "timehist", "x.traced", "--sort", "run")["rows"] == by_run, "sorted")
    for arguments, kept in (([], rows), (["--sort", "run"], by_run)):
        table = report(test, "timehist", "x.traced", "--top", "5", *arguments)
        check(table["rows"] == kept[:5] and f"5 of {len(rows)} rows are shown" in table["notes"], table)
    r = test.run("report", "timehist", "--sort", "walk", "x.traced")
    check(r.status == 1 and "has no column 'walk'" in r.err and r.out == "", r)


def stack_text(stack):
    return " < ".join(stack[:32]) + (" ..." if len(stack) > 32 else "")


def text_stacks(path):
    """The stacks that follow a switch of their task, innermost function first."""
    stacks, switched, stack = set(), {}, None
    for line in path.read_text(errors="replace").splitlines():
        found = LINE.match(line)
        if stack is not None and line.startswith(" => "):
            stack.append(line.removeprefix(" => "))
            continue
        if stack:
            stacks.add(stack_text(stack))
        stack = None
        # Events of other CPUs may stand between.
        if "<stack trace>" in line:
            stack = [] if switched.get(STACK_CPU.search(line)[1]) else None
        if found:
            switched[found[3]] = "sched_switch" in line and "prev_pid=0 " not in line
    return stacks | ({stack_text(stack)} if stack else set())


def stacks(test):
    r = test.run("record", "-q", "--name", test.name, "-b", "16M", "-e", "sched", "-O", "stacktrace", "-o", "x.traced",
                 "--", "sh", "-c", f"for i in $(seq {ROUNDS}); do sleep 0.002; done")
    check(r.status == 0, r)
    r = test.run("convert", "-q", "x.traced", "x.txt")
    check(r.status == 0, r)
    known = text_stacks(test.dir / "x.txt")
    rows = report(test, "offcpu", "x.traced", "--by", "stack")["rows"]
    named = [row for row in rows if row["count"] and row["stack"] not in ("?", "(others)")]
    check(named and all(row["stack"] in known for row in named), f"{[r['stack'] for r in named]} {known}")
    slept = sum(row["count"] for row in named if "nanosleep" in row["stack"] and row["total_ns"] > 1_000_000)
    # A busy kernel leaves out switches.
    check(slept > ROUNDS / 2, f"{slept} sleeps: {named}")
    whole = sum(row["count"] for row in rows)
    check(whole == sum(row["count"] for row in report(test, "offcpu", "x.traced")["rows"]), f"{whole}")
    r = test.run("report", "offcpu", "--by", "stack", "x.traced")
    check(r.status == 0 and max(map(len, r.out.splitlines())) > 100, r)


def limited(test):
    """A recording that lacks events of some tasks, CPUs or switches: nothing is told of what they leave unknown."""
    busy = subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"])
    try:
        r = test.run("record", "-q", "--name", test.name, "-e", "sched", "-t", "300ms", "-P", busy.pid, "-o", "p.traced")
        check(r.status == 0, r)
        r = test.run("record", "-q", "--name", test.name, "-F", "-e", "sched", "-o", "f.traced", "--", "sh", "-c",
                     "for i in $(seq 20); do /bin/true; done")
        check(r.status == 0, r)
        for arguments, path in ((["--cpus", "0"], "c.traced"), (["-f", "prev_pid > 0"], "s.traced")):
            events = ["-e", "sched:sched_wak*", "-e", "sched:sched_switch", *arguments]
            r = test.run("record", "-q", "--name", test.name, "-t", "300ms", *events, "-o", path)
            check(r.status == 0, r)
    finally:
        busy.kill()
        busy.wait()
    # Nobody knows when a CPU was idle.
    r = test.run("report", "p.traced")
    check(r.status == 0 and "\nsched\n" in r.out and "\ncpus\n" not in r.out, r)
    table = report(test, "sched", "p.traced")
    check([row["tid"] for row in table["rows"]] == [busy.pid] and table["rows"][0]["runtime_ns"], table)
    check("only some tasks were recorded: the others are left out" in table["notes"], table)
    names = {row["task"] for row in report(test, "timehist", "f.traced")["rows"]}
    check("true" in names and names <= {"sh", "true", "seq", "tracectl"}, names)
    for path in ("c.traced", "s.traced"):
        table = report(test, "sched", path)
        check(table["rows"] and not any(row["delay"]["count"] for row in table["rows"]), table)
        check(any(row["cut"] for row in table["rows"]) and any("cut" in note for note in table["notes"]), table)
        check(any(row["runtime_ns"] for row in table["rows"]) == (path == "c.traced"), table)
    rows = report(test, "sched", "c.traced", "--by", "cpu")["rows"]
    check([row["cpu"] for row in rows] == [0], rows)


def main():
    test = Test("report_sched")
    test.case("live", live)
    test.case("fixtures", fixtures)
    test.case("delayed", delayed)
    test.case("choices", choices)
    test.case("written", written)
    test.case("stacks", stacks)
    test.case("limited", limited)
    test.end()


if __name__ == "__main__":
    main()
