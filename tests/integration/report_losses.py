#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reports of recordings of several kernels, from which events were taken at random places, computed once more from the
text of the same recording. No interval with a loss in it counts, and `cut` is exact. Each report's rules are in
docs/report.md."""

import collections
import ctypes
import ctypes.util
import gzip
import json
import random
import re
import struct

from harness import Test, check, need
from report_kernel import US, function, is_interrupt
from wakers import Wakers

ROUNDS = 4
LOSSES = 6
SUBBUFS, HEADER_PAGE = 10, 2
MISSED = 1 << 31
PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31
# System calls that events of their own trace have no colon.
LINE = re.compile(r"^ *(.*)-(\d+) +\[(\d+)\] \S+ +(\d+)\.(\d{6}): (\w+)[:(] ?(.*)$")
SWITCH = re.compile(r"prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) ==> next_comm=.* next_pid=(\d+) ")
LOST = re.compile(r"^CPU:(\d+) \[LOST( \d+)? EVENTS\]$")

# Recordings of tests/data without any event of a report: their kernels, or what was recorded, have none.
ABSENT = {
    "syscalls": {"6.12.107-arm64", "6.12.107-armhf", "6.12.107-s390x", "6.18.44"},
    "workqueue": {"6.18.44"}, "timer": {"6.18.44"}, "power": {"6.12.107-arm64", "6.12.107-armhf", "6.12.107-s390x", "6.18.44"},
    "block": {"6.1.176", "6.12.107", "6.12.107-arm64", "6.12.107-armhf", "6.12.107-s390x", "6.18.44", "7.2.13"},
}
# tests/vm/guest/report_fixtures.py
for of_kernel in ("6.12.117-arm64", "6.12.117-rt", "7.2.13"):
    for of_name in ("workqueue", "timer", *(("power", "block") if "arm64" in of_kernel else ())):
        ABSENT[of_name].add(of_kernel + " of reports")

Event = collections.namedtuple("Event", "at tid cpu ts name details")


class Stream:
    """A capture stream whose sub-buffers can lose events."""

    def __init__(self, data):
        self.chunks = []
        at = 8
        while at + 24 <= len(data):
            kind, flags, length, cpu = struct.unpack_from("<HHII", data, at + 4)
            self.chunks.append([kind, flags, cpu, bytearray(data[at + 24:at + 24 + length])])
            at += 24 + (length + 7) // 8 * 8
        layout = next(payload for kind, _, _, payload in self.chunks if kind == HEADER_PAGE).decode()
        self.offset = {name: int(offset) for name, offset in re.findall(r"(commit|data);\s*offset:(\d+)", layout)}
        self.word = int(re.search(r"commit;\s*offset:\d+;\s*size:(\d+)", layout)[1])
        self.size = self.offset["data"] + int(re.search(r" data;\s*offset:\d+;\s*size:(\d+)", layout)[1])
        first = next(c for c in self.chunks if c[0] == SUBBUFS)[3][8:]
        self.order = "<" if 0 < self.commit(first, "<") & 0x3fffffff <= self.size else ">"
        self.xxh3 = xxh3()

    def commit(self, page, order=None):
        return struct.unpack_from((order or self.order) + ("Q" if self.word == 8 else "I"), page, self.offset["commit"])[0]

    def set_commit(self, page, value):
        struct.pack_into(self.order + ("Q" if self.word == 8 else "I"), page, self.offset["commit"], value)

    def records(self, page):
        """(offset, length, whether it is an event) of each record."""
        at, end = self.offset["data"], self.offset["data"] + (self.commit(page) & 0x7ffffff)
        while at < end:
            head, = struct.unpack_from(self.order + "I", page, at)
            kind = head & 31 if self.order == "<" else head >> 27
            if kind == PADDING and not (head >> 5 if self.order == "<" else head & 0x7ffffff):
                return
            length = 8 if kind >= TIME_EXTEND else 4 + kind * 4
            if kind in (0, PADDING):
                length = 4 + struct.unpack_from(self.order + "I", page, at + 4)[0]
            yield at, length, kind < PADDING
            at += length

    def discard(self, page, at, length):
        head, = struct.unpack_from(self.order + "I", page, at)
        delta = head >> 5 if self.order == "<" else head & 0x7ffffff
        # 1 stands for 0: a discarded event without a time is the end.
        delta = max(delta, 1)
        head = delta << 5 | PADDING if self.order == "<" else PADDING << 27 | delta
        struct.pack_into(self.order + "II", page, at, head, length - 4)

    def split(self, page, rng):
        """Two sub-buffers, between which events are missing; or None."""
        records = list(self.records(page))
        events = [i for i, record in enumerate(records) if record[2]]
        if len(events) < 4:
            return None
        begin = rng.randrange(1, len(events) - 2)
        end = rng.randrange(begin + 1, min(len(events) - 1, begin + 12) + 1)
        before, after = bytearray(page), bytearray(page)
        self.set_commit(before, (self.commit(page) & ~0x7ffffff) | (records[events[begin]][0] - self.offset["data"]))
        self.set_commit(after, (self.commit(page) & 0x7ffffff) | MISSED)
        for at, length, is_event in records[:events[end]]:
            if is_event:
                self.discard(after, at, length)
        return before + after

    def lose(self, rng, count):
        places = [(i, at) for i, (kind, _, _, payload) in enumerate(self.chunks)
                  if kind == SUBBUFS and payload[:8] == bytes(8) for at in range(8, len(payload) - self.size, self.size)]
        places = sorted(rng.sample(places, min(count, len(places))), reverse=True)
        for i, at in places:
            payload = self.chunks[i][3]
            if pages := self.split(payload[at:at + self.size], rng):
                payload[at:at + self.size] = pages

    def write(self, path):
        with path.open("wb") as file:
            file.write(b"\x89traced\n")
            for kind, flags, cpu, payload in self.chunks:
                head = b"CHNK" + struct.pack("<HHII", kind, flags, len(payload), cpu)
                whole = head + bytes(8) + payload
                file.write(head + struct.pack("<Q", self.xxh3(bytes(whole), len(whole))) + payload + bytes(-len(payload) % 8))


def xxh3():
    name = ctypes.util.find_library("xxhash")
    need(name, "libxxhash is missing")
    hash_of = ctypes.CDLL(name).XXH3_64bits
    hash_of.argtypes, hash_of.restype = [ctypes.c_char_p, ctypes.c_size_t], ctypes.c_uint64
    return hash_of


class Text:
    """The events, and the gaps as (CPU, last event before, first event after)."""

    def __init__(self, path):
        self.events, self.gaps, last, lost = [], [], {}, set()
        for line in path.read_text(errors="replace").splitlines():
            if match := LOST.match(line):
                lost.add(int(match[1]))
            elif match := LINE.match(line):
                _, tid, cpu, s, us, name, details = match.groups()
                e = Event(len(self.events), int(tid), int(cpu), (int(s) * 1_000_000 + int(us)) * US, name, details)
                if e.cpu in lost:
                    self.gaps.append((e.cpu, last.get(e.cpu, -1), e.at))
                    lost.remove(e.cpu)
                last[e.cpu] = e.at
                self.events.append(e)

    def is_whole(self, begin, end, cpu=None):
        """Whether no event can be missing between the two, on any CPU or one."""
        return not any(before < end and after > begin for on, before, after in self.gaps if cpu in (None, on))

    def lost_before(self, e):
        return not self.is_whole(-1, e.at)


def field(e, name):
    found = re.search(rf"\b{name}[= ](\S+)", e.details)
    return found.group(1) if found else None


class Wanted:
    """Whole intervals by key and kind, and how many are cut."""

    def __init__(self):
        self.times = collections.defaultdict(lambda: collections.defaultdict(list))
        self.cut = collections.Counter()
        self.keys = set()

    def add(self, key, kind, begin, end, whole):
        self.keys.add(key)
        if whole:
            self.times[key][kind].append(end.ts - begin.ts)
        else:
            self.cut[key] += 1

    def compare(self, rows, kinds):
        """rows: by key. A row that nobody wanted has nothing."""
        for key in set(rows) | self.keys:
            row = rows.get(key)
            check(row is not None, f"no row {key}")
            check(row["cut"] == self.cut[key], f"{key}: {row}, and {self.cut[key]} are cut")
            for kind in kinds:
                wanted, found = self.times[key][kind], row[kind]
                check(found["count"] == len(wanted), f"{key}: {row}, and {len(wanted)} of {kind}")
                check(abs(found["sum_ns"] - sum(wanted)) <= US * len(wanted), f"{key}: {row}, and {sum(wanted)} of {kind}")
        return sum(self.cut.values())


def check_irq(text, rows):
    wanted, begun, raised, ran, seen = Wanted(), {}, {}, {}, {}
    for e in text.events:
        if not is_interrupt(e.name):
            if e.name == "softirq_raise":
                key = e.cpu, field(e, "vec")
                # Raised again, it waits since the first time. Which is the first is known only since it ran.
                if key in ran and text.is_whole(ran[key].at, e.at, e.cpu):
                    raised.setdefault(key, e)
            continue
        kind, _, edge = e.name.rpartition("_")
        if kind == "irq_handler":
            number = "irq", field(e, "irq")
        elif kind == "softirq":
            number = "softirq", re.search(r"action=(\w+)", e.details)[1]
        else:
            number = "vector", kind
        where = e.cpu, number
        if edge == "entry":
            name = f"{number[1]} {e.details.partition('name=')[2]}" if number[0] == "irq" else number[1]
            # The end of the one before it is lost.
            if where in begun and not text.is_whole(begun[where].at, e.at, e.cpu):
                wanted.cut[seen[where]] += 1
            begun[where], seen[where] = e, (name, number[0])
            wanted.keys.add(seen[where])
            if kind == "softirq":
                before, ran[e.cpu, field(e, "vec")] = raised.pop((e.cpu, field(e, "vec")), None), e
                if before and text.is_whole(before.at, e.at, e.cpu):
                    wanted.times[seen[where]]["raise"].append(e.ts - before.ts)
        elif where in begun:
            before = begun.pop(where)
            wanted.add(seen[where], "time", before, e, text.is_whole(before.at, e.at, e.cpu))
        else:
            # An end whose begin is lost; at first, the recording began in it.
            key = seen.setdefault(where, (number[1] if number[0] != "irq" else f"{number[1]} ", number[0]))
            wanted.keys.add(key)
            wanted.cut[key] += not text.is_whole(-1, e.at, e.cpu)
    # Threads of interrupts follow from the scheduler's events: report_losses_sched.py.
    rows = [row for row in rows if row["kind"] != "thread"]
    return wanted.compare({(row["name"], row["kind"]): row for row in rows}, ("time", "raise"))


def check_syscalls(text, rows):
    wanted, begun = collections.Counter(), {}
    for e in text.events:
        if e.name == "sys_enter":
            if (before := begun.get(e.tid)) and not text.is_whole(before[1].at, e.at):
                wanted["cut"] += 1
            begun[e.tid] = re.match(r"NR (-?\d+)", e.details)[1], e
        elif e.name == "sys_exit":
            number, before = begun.pop(e.tid, (None, None))
            # The end of rt_sigreturn has no number.
            same = before and re.match(r"NR (-?\d+)", e.details)[1] in (number, "-1")
            whole = before and text.is_whole(before.at, e.at)
            if whole and same:
                wanted["calls"] += 1
                wanted["total_ns"] += e.ts - before.ts
                continue
            wanted["cut"] += before is not None and not same and not whole
            wanted["cut"] += text.lost_before(e)
    for tid, (_, before) in begun.items():
        wanted["cut"] += not text.is_whole(before.at, len(text.events))
    for key in ("calls", "cut"):
        found = sum(row[key] for row in rows)
        check(found == wanted[key], f"{found} {key}, not {wanted[key]}")
    off = abs(sum(row["total_ns"] for row in rows) - wanted["total_ns"])
    check(off <= US * wanted["calls"], f"the sum is {off} ns off")
    return wanted["cut"]


def check_workqueue(text, rows):
    wanted, queued, running = Wanted(), {}, {}
    has_queue = any(e.name == "workqueue_queue_work" for e in text.events)
    for e in text.events:
        if e.name == "workqueue_queue_work":
            work = field(e, "struct")
            wanted.keys.add(function(e))
            if work in queued:
                wanted.cut[queued[work][0]] += not text.is_whole(queued[work][1].at, e.at)
            queued[work] = function(e), e
        elif e.name == "workqueue_execute_start":
            work, name = field(e, "struct").rstrip(":"), function(e)
            wanted.keys.add(name)
            if work in queued:
                before = queued.pop(work)[1]
                wanted.add(name, "delay", before, e, text.is_whole(before.at, e.at))
            elif has_queue:
                wanted.cut[name] += text.lost_before(e)
            if e.tid in running:
                wanted.cut[running[e.tid][1]] += 1
            running[e.tid] = work, name, e
        elif e.name == "workqueue_execute_end":
            work = field(e, "struct").rstrip(":")
            if e.tid in running and running[e.tid][0] == work:
                _, name, before = running.pop(e.tid)
                wanted.add(name, "run", before, e, text.is_whole(before.at, e.at))
            else:
                name = function(e) if "function" in e.details else "?"
                wanted.keys.add(name)
                wanted.cut[name] += text.lost_before(e)
    for name, before in [*queued.values(), *((name, e) for _, name, e in running.values())]:
        wanted.cut[name] += not text.is_whole(before.at, len(text.events))
    return wanted.compare({row["function"]: row for row in rows}, ("delay", "run"))


def check_timer(text, rows):
    wanted, armed, running, known = Wanted(), {}, collections.defaultdict(list), {}
    starts = {e.name.partition("_")[0] for e in text.events if e.name in ("timer_start", "hrtimer_start")}
    gaps = collections.defaultdict(list)
    for cpu, before, after in text.gaps:
        gaps[cpu].append(after)
    for e in text.events:
        # A loss ends all that runs on its CPU.
        while gaps[e.cpu] and gaps[e.cpu][0] <= e.at:
            gaps[e.cpu].pop(0)
            for _, key, _ in running.pop(e.cpu, ()):
                wanted.cut[key] += 1
        kind = "hrtimer" if e.name.startswith("hrtimer") else "timer"
        timer = kind, field(e, kind)
        if e.name in ("timer_start", "hrtimer_start"):
            armed[timer] = e
            known[timer] = function(e), kind
            wanted.keys.add(known[timer])
        elif e.name in ("timer_expire_entry", "hrtimer_expire_entry"):
            key = known[timer] = function(e), kind
            wanted.keys.add(key)
            start = armed.pop(timer, None)
            if kind == "hrtimer" and start and text.is_whole(start.at, e.at):
                wanted.times[key]["late"].append(int(field(e, "now")) - int(field(start, "softexpires")))
            elif kind == "hrtimer" and kind in starts:
                wanted.cut[key] += text.lost_before(e)
            running[e.cpu].append((timer, key, e))
        elif e.name in ("timer_expire_exit", "hrtimer_expire_exit"):
            while running[e.cpu]:
                of, key, before = running[e.cpu].pop()
                if of == timer:
                    wanted.add(key, "run", before, e, True)
                    break
                wanted.cut[key] += 1
            else:
                key = known.get(timer, ("?", kind))
                wanted.keys.add(key)
                wanted.cut[key] += not text.is_whole(-1, e.at, e.cpu)
    return wanted.compare({(row["function"], row["kind"]): row for row in rows}, ("run", "late"))


def check_power(text, rows):
    wanted, idle, frequency = Wanted(), {}, {}
    # A loss on the CPU cuts an idle time once, and its exit counts nowhere.
    for e in text.events:
        if e.name == "cpu_idle":
            cpu, state = int(field(e, "cpu_id")), int(field(e, "state"))
            before = idle.pop(cpu, None)
            whole = before and text.is_whole(before[1].at, e.at, cpu)
            if before and (not whole or state == 0xffffffff):
                wanted.add((cpu, "idle", before[0]), "time", before[1], e, whole)
            if state != 0xffffffff:
                idle[cpu] = state, e
                wanted.keys.add((cpu, "idle", state))
        elif e.name == "cpu_frequency":
            cpu, state = int(field(e, "cpu_id")), int(field(e, "state"))
            if before := frequency.get(cpu):
                wanted.add((cpu, "frequency", before[0]), "time", before[1], e, text.is_whole(before[1].at, e.at))
            frequency[cpu] = state, e
            wanted.keys.add((cpu, "frequency", state))
    for cpu, (state, before) in idle.items():
        wanted.cut[cpu, "idle", state] += not text.is_whole(before.at, len(text.events), cpu)
    for cpu, (state, before) in frequency.items():
        wanted.cut[cpu, "frequency", state] += not text.is_whole(before.at, len(text.events))
    states = {(row["cpu"], row["what"], row["state"]): row for row in rows if row["what"] != "wake-up"}
    wake_ups = {(row["cpu"], row["source"]): row for row in rows if row["what"] == "wake-up"}
    return wanted.compare(states, ("time",)) + wakers_of(text).compare(wake_ups, ("time",))


def wakers_of(text):
    wanted, wakers, last = Wanted(), Wakers(), {}
    for e in text.events:
        if not text.is_whole(last.get(e.cpu, -1), e.at, e.cpu):
            wakers.lose(e.cpu)
        wakers.event(e)
        last[e.cpu] = e.at
    for cpu, at in last.items():
        if not text.is_whole(at, len(text.events), cpu):
            wakers.lose(cpu)
    wakers.finish()
    for key, pairs in wakers.times.items():
        for begin, end in pairs:
            wanted.add(key, "time", begin, end, True)
    wanted.cut = wakers.cut
    wanted.keys |= set(wakers.cut) | set(wakers.open)
    return wanted


def check_functions(text_path, rows):
    """A call counts if its exit is there: the kernel prints its time then, cut to seven digits."""
    lines = text_path.read_text(errors="replace").splitlines()
    times = [found[1] for line in lines
             if (found := re.match(r"^ *\d+\) +(?:[$@*#!+] )? *([\d.]+) us +\| ", line))]
    check(sum(row["count"] for row in rows) == len(times), f"{len(times)} calls returned")
    least = sum(round(float(t) * 1000) for t in times)
    cut = sum(10 ** (3 - len(t.partition(".")[2])) - 1 for t in times)
    total = sum(row["total_ns"] for row in rows)
    check(least <= total <= least + cut, f"their time differs: {total} ns, in the text {least} to {least + cut} ns")
    check(all(row["self_ns"] <= row["total_ns"] for row in rows), rows)
    return sum(row["cut"] for row in rows)


def report(test, name, path):
    r = test.run("report", name, "--json", path)
    check(r.status in (0, 3), r)
    return json.loads(r.out)["reports"][0]


def lossy(test, source, seed):
    data = source.read_bytes()
    return lose(test, Stream(gzip.decompress(data) if source.suffix == ".gz" else data), random.Random(f"{source.parent.name}/{source.name}{seed}"))


def lose(test, stream, rng):
    stream.lose(rng, LOSSES)
    path = test.dir / "lossy.traced"
    stream.write(path)
    r = test.run("convert", "-q", path, "lossy.txt")
    check(r.status in (0, 3) and "damaged" not in r.err, r)
    return path, test.dir / "lossy.txt"


CHECKS = {"irq": check_irq, "syscalls": check_syscalls, "workqueue": check_workqueue, "timer": check_timer, "power": check_power}


def recordings(test, name):
    data = test.source / "tests/data"
    found = sorted(data.glob(f"*/{name}.traced.gz"))
    return found + ([data / "6.18.44/sched.traced"] if name == "mixed" else [])


def of_report(test, name, rounds=ROUNDS):
    """Recordings that have no event of it are those of ABSENT."""
    cut, kernels = 0, set()
    more = {"power": ("mixed", "reports", "frequencies"), "block": ("mixed", "reports", "marks"), "marks": ("marks",)}
    for source in [file for of in more.get(name, ("mixed", "reports")) for file in recordings(test, of)]:
        of = source.name.partition(".")[0]
        kernel = source.parent.name + (f" of {of}" if of in ("reports", "frequencies", "marks") else "")
        if kernel in ABSENT.get(name, ()):
            rows = test.run("report", name, "--json", source)
            check(rows.status == 1 or not json.loads(rows.out)["reports"][0]["rows"], f"{kernel} has events of {name}")
            continue
        for seed in range(rounds):
            path, text_path = lossy(test, source, seed)
            text = Text(text_path)
            check(text.gaps, f"{source}: no loss")
            rows = report(test, name, path)["rows"]
            try:
                cut += CHECKS[name](text, rows)
            except Exception as e:
                raise type(e)(f"{kernel}, round {seed}: {e}") from e
        kernels.add(source.parent.name)
    print(f"  {name}: {len(kernels)} kernels, {cut} intervals are cut")
    check(len(kernels) >= 4 and cut, f"{kernels}: {cut} cut")


def functions(test):
    cut = 0
    for source in recordings(test, "graph"):
        for seed in range(ROUNDS):
            path, text_path = lossy(test, source, seed)
            cut += check_functions(text_path, report(test, "functions", path)["rows"])
    check(cut, "no call is cut")


def nothing(test):
    """Of tests/data, reports.traced.gz and marks.traced.gz have requests to a disk, and the latter slices of marks."""
    for source in recordings(test, "mixed"):
        for name in ("block", "marks"):
            if name == "block" and source.parent.name not in ABSENT["block"]:
                continue
            r = test.run("report", name, "--json", source)
            rows = json.loads(r.out)["reports"][0]["rows"] if r.status == 0 else []
            check(not any(row["count"] for row in rows), f"{source} has intervals of {name}: compare them")


def main():
    test = Test("report_losses", root=False)
    for name in CHECKS:
        test.case(name, of_report, name)
    test.case("functions", functions)
    test.case("nothing of disks and marks", nothing)
    test.end()


if __name__ == "__main__":
    main()
