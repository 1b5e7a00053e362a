#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The reports noise, block, marks and counts under losses, as report_losses.py has the others. Recordings of tests/data have
few requests to disks and slices, none has softirqs that a switch interrupts. So recordings are made here, too: two CPUs, a few
threads, and times of whole microseconds, as the text has them."""

import collections
import json
import random
import re
import struct
import subprocess

from harness import Test, check
from report_kernel import US, field, is_interrupt
from report_losses import CHECKS, SUBBUFS, SWITCH, Stream, Text, lose, of_report, report

FORMAT = 3
SEEDS, EVENTS = 6, 4000
TIDS = range(11, 16)
CPUS = 2
PRINT, SWITCHES, WAKING, INSERT, ISSUE, REQUEUE, COMPLETE = 5, 101, 300, 400, 401, 402, 403
ENTRY, EXIT = {"irq": 303, "softirq": 404}, {"irq": 304, "softirq": 405}
DATA = 16  # bytes of a sub-buffer's header
END = 1 << 62
NOWHERE = str((1 << 64) - 1)  # a sector

COMMON = """\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

"""
REQUEST = """\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:unsigned int bytes;\toffset:12;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:int error;\toffset:24;\tsize:4;\tsigned:1;
\tfield:char rwbs[8];\toffset:28;\tsize:8;\tsigned:0;
"""
REQUEST_PRINT = ('"%d,%d %s %u () %llu [%d]", ((unsigned int) ((REC->dev) >> 20)), '
                 '((unsigned int) ((REC->dev) & ((1U << 20) - 1))), REC->rwbs, REC->bytes, '
                 '(unsigned long long)REC->sector, REC->error')


VECTOR, VECTOR_PRINT = "\tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n", '"vec=%u [action=MADE]", REC->vec'
FORMATS = {INSERT: "block_rq_insert", ISSUE: "block_rq_issue", REQUEUE: "block_rq_requeue", COMPLETE: "block_rq_complete",
           ENTRY["softirq"]: "softirq_entry", EXIT["softirq"]: "softirq_exit"}


def format_of(number, name):
    system, fields, text = ("block", REQUEST, REQUEST_PRINT) if name.startswith("block") else ("irq", VECTOR, VECTOR_PRINT)
    text = f"name: {name}\nID: {number}\nformat:\n{COMMON}{fields}\nprint fmt: {text}\n"
    return [FORMAT, 0, 0, bytearray(system.encode() + b"\0" + text.encode())]


class Machine:
    """Two CPUs whose threads run, sleep, make slices, and send requests to disks. Some of this began before."""

    def __init__(self, rng, size):
        self.rng, self.size, self.ts = rng, size, 100_000_000_000
        self.pages = [[] for _ in range(CPUS)]
        self.page, self.last = [bytearray() for _ in range(CPUS)], [0] * CPUS
        self.current = [TIDS[0], 0]
        self.runnable, self.asleep = [TIDS[1]], list(TIDS[2:])
        self.depth = {tid: rng.randrange(3) for tid in TIDS}
        self.cookies = {1, 2}
        self.inside = [[], ["irq"]]  # by CPU: interrupts that go on
        self.soft = {}  # threads that were switched out in a softirq, which they end on the same CPU
        self.requests = {sector: rng.choice(("new", "queued", "issued")) for sector in range(0, 64, 8)}

    def put(self, cpu, number, data):
        record = struct.pack("<HBBi", number, 0, 0, self.current[cpu]) + data
        record += bytes(-len(record) % 4)
        if len(self.page[cpu]) + 4 + len(record) > self.size:
            self.finish(cpu)
        if not self.page[cpu]:
            self.page[cpu] = bytearray(struct.pack("<QQ", self.ts, 0))
            self.last[cpu] = self.ts
        self.page[cpu] += struct.pack("<I", (self.ts - self.last[cpu]) << 5 | len(record) // 4) + record
        self.last[cpu] = self.ts

    def finish(self, cpu):
        page, self.page[cpu] = self.page[cpu], bytearray()
        struct.pack_into("<Q", page, 8, len(page) - DATA)
        self.pages[cpu].append(page + bytes(self.size - len(page)))

    def switch(self, cpu):
        prev, rng = self.current[cpu], self.rng
        following = rng.choice([tid for tid in self.runnable if self.soft.get(tid, cpu) == cpu] or [0])
        if prev == following:
            return
        if following:
            self.runnable.remove(following)
        sleeps = rng.random() < 0.6
        comm = b"made".ljust(16, b"\0")
        self.put(cpu, SWITCHES, comm + struct.pack("<iiI", prev, 120, 1 if prev and sleeps else 0) + comm +
                 struct.pack("<ii", following, 120))
        if prev:
            (self.asleep if sleeps else self.runnable).append(prev)
            if self.inside[cpu]:
                self.soft[prev] = cpu
        self.current[cpu] = following
        self.inside[cpu] = ["softirq"] if self.soft.pop(following, None) is not None else []

    def enter(self, cpu):
        self.inside[cpu].append("irq" if self.inside[cpu] else self.rng.choice(list(ENTRY)))
        kind = self.inside[cpu][-1]
        self.put(cpu, ENTRY[kind], struct.pack("<I", 3) + (struct.pack("<I", 16 | 5 << 16) + b"made\0" if kind == "irq" else b""))

    def leave(self, cpu):
        self.put(cpu, EXIT[self.inside[cpu].pop()], struct.pack("<II", 3, 1))

    def actions(self, cpu):
        inside, thread = self.inside[cpu], self.current[cpu] != 0
        if inside[-1:] == ["irq"]:
            return self.leave, self.leave, self.wake
        if inside:
            # With PREEMPT_RT a thread may be switched out.
            return self.leave, self.enter, self.wake, self.switch if thread else self.leave
        return (self.request, self.switch, self.wake, self.enter) + (self.mark,) * 3 * thread

    def wake(self, cpu):
        """A thread that runs goes on: it was about to sleep."""
        awake = [tid for tid in self.current if tid]
        pool = self.asleep if self.asleep and self.rng.random() < 0.8 else awake
        if not pool:
            return
        tid = self.rng.choice(pool)
        self.put(cpu, WAKING, b"made".ljust(16, b"\0") + struct.pack("<iiI", tid, 120, cpu))
        if tid in self.asleep:
            self.asleep.remove(tid)
            self.runnable.append(tid)

    def say(self, cpu, text):
        self.put(cpu, PRINT, struct.pack("<Q", 0) + text.encode() + b"\n\0")

    def mark(self, cpu):
        tid, rng = self.current[cpu], self.rng
        if rng.random() < 0.3:
            cookie = rng.randrange(4)
            self.say(cpu, f"{'F' if cookie in self.cookies else 'S'}|7|across|{cookie}")
            self.cookies ^= {cookie}
        elif self.depth[tid] and rng.random() < 0.5:
            self.depth[tid] -= 1
            self.say(cpu, "E")
        elif self.depth[tid] < 5:
            self.depth[tid] += 1
            self.say(cpu, f"B|7|slice {rng.randrange(4)}")

    def request(self, cpu):
        sector = self.rng.choice(list(self.requests))
        state = self.requests[sector]
        number, state = {"new": (INSERT, "queued"), "queued": (ISSUE, "issued"),
                         "issued": self.rng.choice(((COMPLETE, "new"), (COMPLETE, "new"), (REQUEUE, "queued")))}[state]
        self.requests[sector] = state
        self.put(cpu, number, struct.pack("<IIQi8s", 8 << 20 | sector % 3, 512 + sector, sector,
                                          -5 if number == COMPLETE and self.rng.random() < 0.2 else 0,
                                          b"WS" if sector % 16 else b"R"))

    def run(self, events):
        for _ in range(events):
            self.ts += self.rng.randrange(1, 4) * US
            cpu = self.rng.randrange(CPUS)
            self.rng.choice(self.actions(cpu))(cpu)
        for cpu in range(CPUS):
            self.finish(cpu)


def made(test, seed):
    path = test.dir / "made.traced"
    subprocess.run([test.build / "tests/unit/generate", "sched", "1", path], check=True)
    stream = Stream(path.read_bytes())
    at = next(i for i, chunk in enumerate(stream.chunks) if chunk[0] == SUBBUFS)
    machine = Machine(random.Random(seed), stream.size)
    machine.run(EVENTS)
    stream.chunks[at:at + 1] = [
        *(format_of(*of) for of in FORMATS.items()),
        *([SUBBUFS, 0, cpu, bytearray(8) + b"".join(pages)] for cpu, pages in enumerate(machine.pages))]
    return lose(test, stream, random.Random(seed))


class Sums:
    """What a row has, by its key."""

    def __init__(self):
        self.rows = collections.defaultdict(collections.Counter)
        self.times = collections.defaultdict(lambda: collections.defaultdict(list))
        self.edges = collections.Counter()  # times of the text that a sum in the row consists of

    def end(self, key, text, since, at):
        """An interval whose end, or begin, is not there."""
        self.rows[key]["open" if text.is_whole(since, at) else "cut"] += 1

    def compare(self, rows, histograms, slack):
        """slack: by how much the text's times may be wrong, in ns."""
        check(set(rows) == set(self.rows) | set(self.times), f"{sorted(rows)}, not {sorted(self.rows)}")
        for key, row in rows.items():
            for name, wanted in self.rows[key].items():
                edges = 1 if name == "max_at_ns" else self.edges[key] if name.endswith("_ns") else 0
                check(abs(row[name] - wanted) <= slack * edges,
                      f"{key}: {name} is {row[name]}, not {wanted}: {row}")
            for name in histograms:
                times = self.times[key][name]
                found = [row[name][part] for part in ("count", "sum_ns", "max_ns")]
                check(found[0] == len(times) and abs(found[1] - sum(times)) <= slack * len(times)
                      and abs(found[2] - max(times, default=0)) <= slack, f"{key}: {name} is {found}, not {sorted(times)}")
            for name in ("cut", "open"):
                check(row[name] == self.rows[key][name], f"{key}: {name} is {row[name]}, not {self.rows[key][name]}")
        return sum(row["cut"] for row in rows.values()), sum(row["open"] for row in rows.values())


def check_block(text, rows, slack=0):
    """A request is a device and a sector, from its issue on until that has its next event. Only a completion ends it, and a
    requeue puts it back into the queue."""
    sums, queued, issued = Sums(), {}, {}
    for e in text.events:
        if not e.name.startswith("block_rq_"):
            continue
        # The kernel's text has no size of a completion, and in the brackets of others a task.
        device, operation, size, sector, length, error = re.match(
            r"(\S+) (\S+) (?:(\d+) )?\(.*?\) (\d+)(?: \+ (\d+))?(?: \w+,\d+,\d+)? \[(.*)\]", e.details).groups()
        what = e.name.removeprefix("block_rq_")
        # A flush has no place: only its completion says so. What asked for it ends once more.
        before = issued.get((device, sector))
        if length == "0" and what == "complete" and sector != NOWHERE and (not before or before[2]):
            continue
        sector = NOWHERE if length == "0" and sector == "0" else sector
        request, key = (device, sector), (device, operation)
        before = issued.pop(request, None)
        if before and not text.is_whole(before[1].at, e.at):
            sums.rows[before[0]]["cut"] += 1
        elif before and what == "complete":
            ns = e.ts - before[1].ts
            sums.times[key]["time"].append(ns)
            sums.rows[key].update(count=1, bytes=before[2], errors=error != "0")
            # The first of equal ones counts.
            if ns > max(sums.times[key]["time"][:-1], default=-1):
                sums.rows[key]["max_at_ns"] = e.ts
        elif before and what != "requeue":
            sums.rows[before[0]]["open"] += 1
        if what == "complete" and not before:
            sums.end(key, text, -1, e.at)
        elif what == "issue":
            if request in queued and text.is_whole(queued[request].at, e.at):
                sums.times[key]["queue"].append(e.ts - queued[request].ts)
            issued[request] = key, e, int(size)
        queued.pop(request, None)
        if what in ("insert", "requeue"):
            queued[request] = e
    for key, e, _ in issued.values():
        sums.end(key, text, e.at, END)
    return sums.compare({(row["device"], row["operation"]): row for row in rows}, ("queue", "time"), slack)


def states_of(events, tid, begin, end):
    """Time of each state between two marks of a thread: it ran as it made the first one."""
    found, state, since = collections.Counter(running_ns=0, runnable_ns=0, blocked_ns=0), "running_ns", begin.ts
    for e in events[begin.at:end.at]:
        if e.name == "sched_switch":
            prev, how, following = SWITCH.search(e.details).groups()
            left = "runnable_ns" if how.startswith("R") else "blocked_ns"
            now = left if int(prev) == tid else "running_ns" if int(following) == tid else state
        else:
            wakes = state == "blocked_ns" and e.name == "sched_waking" and field(e, "pid") == str(tid)
            now = "runnable_ns" if wakes else state
        if now != state:
            found[state] += e.ts - since
            state, since = now, e.ts
    found[state] += end.ts - since
    return found


def check_marks(text, rows, slack=0):
    sums, stacks, across = Sums(), collections.defaultdict(list), {}

    def add(key, begin, end):
        whole = text.is_whole(begin.at, end.at)
        if whole:
            sums.times[key]["time"].append(end.ts - begin.ts)
            sums.rows[key].update(count=1, total_ns=end.ts - begin.ts)
            sums.edges[key] += 1 + sum(str(e.tid) in (str(x.tid), field(x, "next_pid"), field(x, "pid"))
                                       for x in text.events[begin.at:end.at + 1])
        else:
            sums.rows[key]["cut"] += 1
        return whole

    for e in text.events:
        # The function that a mark comes from, which has no symbol in those that are made.
        if e.name not in ("0", "tracing_mark_write"):
            continue
        kind, _, name, *cookie = (e.details.split("|") + ["", ""])[:4]
        stack = stacks[e.tid]
        if kind == "B":
            stack.append([(name, "thread"), e, 0])
        elif kind == "E" and stack:
            key, begin, within = stack.pop()
            if stack:
                stack[-1][2] += e.ts - begin.ts
            if add(key, begin, e):
                sums.rows[key].update(self_ns=e.ts - begin.ts - within, **states_of(text.events, e.tid, begin, e))
        elif kind in "SF":
            key, begin = (name, "async"), across.pop(cookie[0], None)
            if kind == "F" and begin:
                add(key, begin, e)
            elif kind == "F":
                sums.end(key, text, -1, e.at)
            elif begin:
                sums.end(key, text, begin.at, e.at)
            if kind == "S":
                across[cookie[0]] = e
    for key, begin, _ in [slice for stack in stacks.values() for slice in stack]:
        sums.end(key, text, begin.at, END)
    for begin in across.values():
        sums.end((begin.details.split("|")[2], "async"), text, begin.at, END)
    return sums.compare({(row["slice"], row["kind"]): row for row in rows}, ("time",), slack)


class Interrupts:
    """Interrupts and softirqs of a CPU. Those in which a switch happens count as the thread's time."""

    def __init__(self, text, row):
        self.text, self.row = text, row
        self.begun, self.whole = [], []  # whole: begin, end and time, of those that no other one has in it
        self.net = collections.defaultdict(list)
        self.switched_at = self.seen_at = -1

    def lose(self):
        """Nobody knows which of those that were under way the next ends belong to."""
        self.row["cut"] += sum(begin.at > self.switched_at for _, begin in self.begun)
        self.begun, self.whole = [], []

    def within(self, begin):
        inner = [one for one in self.whole if one[0] > begin.at]
        self.whole = [one for one in self.whole if one[0] < begin.at]
        return sum(ns for _, _, ns in inner)

    def event(self, e):
        kind, _, edge = e.name.rpartition("_")
        what = kind, field(e, "irq") or field(e, "vec"), e.tid
        if edge == "entry":
            self.begun.append((what, e))
        elif found := [i for i, (of, _) in enumerate(self.begun) if of == what]:
            begin = self.begun.pop(found[-1])[1]
            if begin.at > self.switched_at:
                ns = e.ts - begin.ts
                self.net["softirq" if kind == "softirq" else "irq"].append(ns - self.within(begin))
                self.whole.append((begin.at, e.at, ns))
        else:
            self.row["cut" if not self.text.is_whole(-1, e.at, e.cpu) else "open"] += 1


def noise_of(text, cpu):
    """What a CPU's row has, and the whole runs by task."""
    row, runs, running, last = collections.Counter(), collections.defaultdict(list), None, None
    interrupts = Interrupts(text, row)
    for e in text.events:
        if e.cpu != cpu or not (e.name in ("sched_switch", "sched_process_exec") or is_interrupt(e.name)):
            continue
        whole = last is None or text.is_whole(last.at, e.at, cpu)
        if not whole:
            interrupts.lose()
        if e.name == "sched_process_exec":
            pid, old = field(e, "pid"), field(e, "old_pid")
            running = (int(pid), running[1]) if running and running[0] == int(old) else running
            continue
        if whole and last:
            row["runtime_ns"] += e.ts - last.ts
        last = e
        if is_interrupt(e.name):
            interrupts.event(e)
            continue
        prev, _, following = SWITCH.search(e.details).groups()
        prev, (before, since) = int(prev), running or (None, None)
        if not since:
            row["cut" if not text.is_whole(-1, e.at, cpu) else "open"] += prev != 0
        elif prev == before and text.is_whole(since.at, e.at, cpu):
            if prev:
                runs[prev].append(e.ts - since.ts - interrupts.within(since))
        else:
            row["cut"] += len({before, prev} - {0})
        interrupts.whole, interrupts.switched_at = [], e.at
        running = int(following), e
    if running and running[0]:
        row["open" if text.is_whole(running[1].at, END, cpu) else "cut"] += 1
    if last and not text.is_whole(last.at, END, cpu):
        interrupts.lose()
    row["open"] += sum(begin.at > interrupts.switched_at for _, begin in interrupts.begun)
    return row, interrupts.net, runs


def check_noise(text, rows, slack=2 * US):
    """The text of other kernels has microseconds."""
    for row in rows:
        wanted, net, runs = noise_of(text, row["cpu"])
        sums = sorted((sum(times), times) for times in runs.values())
        net["thread"] = [ns for _, times in sums[:-1] for ns in times]
        for kind in ("irq", "softirq", "thread"):
            times, off = net[kind], slack * (1 + sum(map(len, net.values())) + len(runs))
            if row[kind + "_ns"] is None:
                continue
            check(abs(row[kind + "_ns"] - sum(times)) <= off, f"{row}: {kind} {sum(times)}")
            tie = kind == "thread" and len(sums) > 1 and sums[-1][0] - sums[-2][0] <= off
            check(row[kind + "s"] == len(times) or tie, f"{row}: {len(times)} of {kind}")
        check(row["noise_ns"] == sum(row[kind + "_ns"] or 0 for kind in ("irq", "softirq", "thread")), row)
        longest = max((ns for times in net.values() for ns in times), default=0)
        check(abs(row["max_ns"] - longest) <= off, f"{row}: the longest is {longest}")
        check(abs(row["runtime_ns"] - wanted["runtime_ns"]) <= slack * (1 + len(text.gaps)), f"{row}: {wanted}")
        for name in ("cut", "open"):
            check(row[name] == wanted[name], f"{row}: {name} is not {wanted[name]}")
    return sum(row["cut"] for row in rows), sum(row["open"] for row in rows)


CHECKS["noise"] = lambda text, rows: check_noise(text, rows)[0]
CHECKS["block"] = lambda text, rows: check_block(text, rows, US)[0]
CHECKS["marks"] = lambda text, rows: check_marks(text, rows, US)[0]


def of_made(test, name, compare):
    found = collections.Counter()
    for seed in range(SEEDS):
        path, text_path = made(test, seed)
        text = Text(text_path)
        check(text.gaps, "no loss")
        try:
            cut, left = compare(text, report(test, name, path)["rows"])
        except Exception as e:
            raise type(e)(f"seed {seed}: {e}") from e
        found.update(cut=cut, open=left)
    print(f"  {name}: {dict(found)}")
    check(min(found.values()) > SEEDS, found)


LOST = ("events were lost, and nobody knows which: rows have the recorded ones only; "
        "the recording's message, and \"lost\" in JSON, say how many")


def counts(test):
    """Rows are what was recorded, and a note says that this is not all."""
    path, text_path = made(test, 0)
    table = report(test, "counts", path)
    found = {row["event"].partition(":")[2].replace("print", "0"): row["count"] for row in table["rows"]}
    check(found == collections.Counter(e.name for e in Text(text_path).events), found)
    check(table["notes"] == [LOST], table["notes"])
    for kind, is_lost in (("losses", True), ("numbers", False)):
        subprocess.run([test.build / "tests/unit/generate", kind, "5000", path], check=True)
        document = json.loads(test.run("report", "counts", "--json", path).out)
        check((document["lost"] > 0) == is_lost and document["reports"][0]["notes"] == [LOST] * is_lost, document)
        check((LOST in test.run("report", "counts", path).out) == is_lost, kind)


def uncounted(test):
    """Gaps whose events nobody counted are losses, too."""
    path, text_path = made(test, 0)
    gaps = len(Text(text_path).gaps)
    said = f"lost at {gaps} places (count unknown)"
    r = test.run("report", path)
    check(r.out.splitlines()[0].endswith(f" events, {said}"), r.out[:200])
    check(f"events were {said}" in r.err, r)
    r = test.run("convert", path, "out.txt")
    check(f"events were {said}" in r.err and "none lost" not in r.err, r)
    check(test.run("report", "--fail-on-loss", path).status == 3, "a loss is no failure")
    r = test.run("report", "sched", "--json", path)
    check(json.loads(r.out)["gaps"] == gaps, r)
    (test.dir / "one.json").write_text(r.out)
    r = test.run("report", "--fail-on-loss", "--merge", "one.json", "one.json")
    check(r.status == 3 and f"lost in the recordings at {2 * gaps} places (count unknown)" in r.err, r)
    # A part before them has all of its events.
    r = test.run("report", "--fail-on-loss", "--to", "+20us", path)
    check(r.status == 0 and ", none lost" in r.out, r)


def per_second(test):
    path, _ = made(test, 0)
    document = json.loads(test.run("report", "counts", "--json", path).out)
    rows = document["reports"][0]["rows"]
    exact = [row["count"] * 1e9 / document["span_ns"] for row in rows]
    check(any(rate % 1 > 0.5 for rate in exact), exact)
    check([row["per_second"] for row in rows] == [int(rate + 0.5) for rate in exact], rows)


def nothing_chosen(test):
    """A part without an event is no empty table."""
    path, _ = made(test, 0)
    for part, what in ((("-e", "nosuch"), "events nosuch"), (("--comm", "nobody"), "name nobody"), (("--cpus", "77"), "CPUs 77"),
                       (("--filter", "sched_switch: prev_prio == 7"), "filter sched_switch: prev_prio == 7")):
        for name in (("counts",), ("timehist", "--csv"), ("sched", "--json"), ()):
            r = test.run("report", *name, *part, path)
            check(r.status == 1 and not r.out and f"not one event of the recording is in that part ({what})" in r.err, r)
    check(test.run("report", "counts", "-e", "sched_switch", path).status == 0, "events that are there")


def main():
    test = Test("report_losses_made", root=False)
    test.case("noise of recordings", of_report, "noise", 1)
    test.case("noise, exactly", of_made, "noise", lambda text, rows: check_noise(text, rows, 0))
    test.case("block", of_made, "block", check_block)
    test.case("block of recordings", of_report, "block", 8)
    test.case("marks", of_made, "marks", check_marks)
    test.case("marks of recordings", of_report, "marks", 8)
    test.case("counts", counts)
    test.case("losses that nobody counted", uncounted)
    test.case("events per second", per_second)
    test.case("a part without events", nothing_chosen)
    test.end()


if __name__ == "__main__":
    main()
