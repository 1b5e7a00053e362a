#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The reports workqueue, timer, power, noise, functions and marks, computed once more from the text of the same
recording. The text has microseconds, the reports nanoseconds."""

import collections
import gzip
import json
import pathlib
import re

from harness import Test, check, need, top_level
from wakers import Wakers

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
LINE = re.compile(r"^ *(.*)-(\d+) +\[(\d+)\] \S+ +(\d+)\.(\d{6}): (\w+): ?(.*)$")
US = 1000
MARKS_TRIES = 6

Event = collections.namedtuple("Event", "tid cpu ts name details")


def events_of(test, file):
    r = test.run("convert", "-q", file, "x.txt")
    check(r.status == 0, r)
    return events_of_text((test.dir / "x.txt").read_text(errors="replace"))


def events_of_text(text):
    found = []
    for line in text.splitlines():
        if match := LINE.match(line):
            _, tid, cpu, s, us, name, details = match.groups()
            found.append(Event(int(tid), int(cpu), (int(s) * 1_000_000 + int(us)) * US, name, details))
    return found


def field(event, name):
    match = re.search(rf"\b{name}[= ](\S+)", event.details)
    return match.group(1) if match else None


def function(event):
    """A function of a module has that in brackets behind it."""
    return re.search(r"function[= ](\S+(?: \[\w+\])?)", event.details).group(1)


def report(test, name, file, *options, lost=False):
    r = test.run("report", name, "--json", *options, file)
    check(r.status == 0, r)
    document = json.loads(r.out)
    check(lost or document["lost"] == 0, f"{file}: {document['lost']} events were lost")
    return document["reports"][0]["rows"]


def check_times(what, row, key, wanted):
    """A histogram and its values, which the text rounds to a microsecond."""
    found = row[key]
    check(found["count"] == len(wanted), f"{what}.{key}: {found['count']} for {len(wanted)}")
    if wanted:
        off = abs(found["sum_ns"] - sum(wanted))
        check(off <= US * len(wanted), f"{what}.{key}: the sum is {off} ns off")
        check(abs(found["max_ns"] - max(wanted)) <= US, f"{what}.{key}: max {found['max_ns']} for {max(wanted)}")


def check_workqueue(test, file, events):
    queued, running, wanted = {}, {}, collections.defaultdict(lambda: collections.defaultdict(list))
    for e in events:
        if e.name == "workqueue_queue_work":
            queued[field(e, "struct")] = e.ts
        elif e.name == "workqueue_execute_start":
            work = field(e, "struct").rstrip(":")
            running[e.tid] = work, function(e), e.ts
            if work in queued:
                wanted[function(e)]["delay"].append(e.ts - queued.pop(work))
        elif e.name == "workqueue_execute_end" and e.tid in running:
            work, name, ts = running.pop(e.tid)
            check(field(e, "struct").rstrip(":") == work, f"{e} ends {work}")
            wanted[name]["run"].append(e.ts - ts)
    rows = {row["function"]: row for row in report(test, "workqueue", file)}
    check({name for name, row in rows.items() if row["count"]} == set(wanted), f"{sorted(rows)} {sorted(wanted)}")
    for name, times in wanted.items():
        for key in ("delay", "run"):
            check_times(name, rows[name], key, times[key])
        check(rows[name]["cut"] == 0, rows[name])
    return len(wanted)


def check_timer(test, file, events):
    wanted = collections.defaultdict(lambda: collections.defaultdict(list))
    armed, running, cancelled = {}, {}, {}
    for e in events:
        kind = "hrtimer" if e.name.startswith("hrtimer") else "timer"
        timer = kind, field(e, kind)
        if e.name in ("timer_start", "hrtimer_start"):
            armed[timer] = e
            cancelled.pop(timer, None)
            wanted[function(e), kind]["starts"].append(e)
        elif e.name in ("timer_expire_entry", "hrtimer_expire_entry"):
            row = wanted[function(e), kind]
            row["count"].append(e)
            running[e.cpu, timer] = e
            cancelled.pop(timer, None)
            if kind == "hrtimer" and timer in armed:
                row["late"].append(int(field(e, "now")) - int(field(armed[timer], "softexpires")))
            elif kind == "timer":
                row["jiffies"].append(int(field(e, "now")) - int(field(e, "baseclk")))
            armed.pop(timer, None)
        elif e.name in ("timer_expire_exit", "hrtimer_expire_exit") and (e.cpu, timer) in running:
            entry = running.pop((e.cpu, timer))
            wanted[function(entry), kind]["run"].append(e.ts - entry.ts)
    rows = {(row["function"], row["kind"]): row for row in report(test, "timer", file)}
    for key, lists in wanted.items():
        row = rows[key]
        check(row["starts"] == len(lists["starts"]) and row["count"] == len(lists["count"]), f"{row} {key}")
        check(row["late_jiffies"] == max(lists["jiffies"], default=0), f"{row} {key}")
        check_times(key, row, "run", lists["run"])
        check(row["late"]["count"] == len(lists["late"]) and row["late"]["sum_ns"] == sum(lists["late"]), f"{row} {key}")
        check(row["cut"] == 0, row)
    return len(wanted)


def check_power(test, file, events):
    idle, frequency, wanted = {}, {}, collections.defaultdict(list)
    for e in events:
        if e.name not in ("cpu_idle", "cpu_frequency"):
            continue
        cpu, state = int(field(e, "cpu_id")), int(field(e, "state"))
        states = idle if e.name == "cpu_idle" else frequency
        if cpu in states and (states is frequency or state == 0xffffffff):
            wanted[cpu, e.name[4:], states[cpu][0]].append(e.ts - states[cpu][1])
        states.pop(cpu, None)
        if states is frequency or state != 0xffffffff:
            states[cpu] = state, e.ts
    rows = report(test, "power", file)
    states = {(row["cpu"], row["what"], row["state"]): row for row in rows if row["what"] != "wake-up"}
    check(set(wanted) <= set(states), f"{sorted(wanted)} {sorted(states)}")
    for key, times in wanted.items():
        check_times(key, states[key], "time", times)
    wakers = Wakers()
    for e in events:
        wakers.event(e)
    wakers.finish()
    rows = {(row["cpu"], row["source"]): row for row in rows if row["what"] == "wake-up"}
    check(set(rows) == set(wakers.times) | set(wakers.open), f"{set(wakers.times)} {set(rows)}")
    for key, row in rows.items():
        check_times(key, row, "time", [end.ts - begin.ts for begin, end in wakers.times[key]])
        check(row["open"] == wakers.open[key] and row["cut"] == 0, row)
    return len(wanted)


def is_interrupt(name):
    return name.endswith(("_entry", "_exit")) and name.rsplit("_", 1)[0] in (
        "irq_handler", "softirq", "local_timer", "spurious_apic", "error_apic", "x86_platform_ipi", "irq_work",
        "reschedule", "call_function", "call_function_single", "threshold_apic", "deferred_error_apic", "thermal_apic")


def check_noise_of_cpu(cpu, events, row):
    """All intervals of the CPU first; then what each has within it."""
    intervals, stack, runs, since, runs_now = [], [], [], None, None
    for e in events:
        if e.name == "sched_switch":
            prev = int(field(e, "prev_pid"))
            stack = []
            # Some virtual machines do not trace every switch from the idle task.
            if prev and prev == runs_now:
                runs.append((since, e.ts, prev))
            since, runs_now = e.ts, int(field(e, "next_pid"))
        elif e.name.endswith("_entry"):
            stack.append((e.name.rsplit("_", 1)[0], e.ts))
        elif stack:
            name, ts = stack.pop()
            check(name == e.name.rsplit("_", 1)[0], f"{e} ends {name}")
            intervals.append((ts, e.ts, name, len(stack)))
    def within(begin, end, level):
        return sum(b - a for a, b, _, depth in intervals if depth == level and a >= begin and b <= end)
    net = {"irq": [], "softirq": []}
    for a, b, name, depth in intervals:
        net["softirq" if name == "softirq" else "irq"].append(b - a - within(a, b, depth + 1))
    for key, times in net.items():
        check(row[key + "s"] == len(times), f"CPU {cpu}: {row} for {len(times)} {key}s")
        check(abs(row[key + "_ns"] - sum(times)) <= 2 * US * len(times), f"CPU {cpu}: {row} for {sum(times)} of {key}")
    tasks = collections.defaultdict(list)
    for a, b, tid in runs:
        tasks[tid].append(b - a - within(a, b, 0))
    sums = sorted(sum(times) for times in tasks.values())
    slack = 2 * US * (len(intervals) + len(runs))
    check(abs(row["thread_ns"] - sum(sums[:-1])) <= slack, f"CPU {cpu}: {row} for {sums}")
    span = events[-1].ts - events[0].ts
    check(abs(row["runtime_ns"] - span) <= US, f"CPU {cpu}: {row} for {span}")
    check(row["noise_ns"] == row["irq_ns"] + row["softirq_ns"] + row["thread_ns"], row)


def check_noise(test, file, events):
    rows = {row["cpu"]: row for row in report(test, "noise", file)}
    for cpu, row in rows.items():
        mine = [e for e in events if e.cpu == cpu and (e.name == "sched_switch" or is_interrupt(e.name))]
        check_noise_of_cpu(cpu, mine, row)
    return len(rows)


CHECKS = {"workqueue": check_workqueue, "timer": check_timer, "power": check_power, "noise": check_noise}


def of_a_live_recording(test):
    r = test.run("record", "-q", "--name", test.name, "-b", "16M", "-e", "workqueue", "-e", "timer", "-e", "power",
                 "-e", "irq", "-e", "irq_vectors", "-e", "sched:sched_switch", "-o", "x.traced", "--", "sh", "-c",
                 "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.05; sync; done")
    check(r.status == 0, r)
    events = events_of(test, "x.traced")
    for name, compare in CHECKS.items():
        found = compare(test, "x.traced", events)
        # A virtual machine may have no idle states.
        check(found > 0 or name == "power", f"{name}: nothing to compare")


SAMPLE = re.compile(r"^.*-\d+ +\[(\d+)\] \S+ +\d+\.\d{6}: (\d+) +(\d+) +\d+\.\d+ +(\d+) +\d+ ", re.M)


def osnoise(test):
    """The tracer's events have their durations, and its samples the sums, both as numbers in the text."""
    sources = set()
    for file in sorted(DATA.glob("*/osnoise.traced.gz")):
        wanted = collections.defaultdict(collections.Counter)
        for e in events_of(test, file):
            kind, _, what = e.name.partition("_")
            if what == "noise":
                ns = int(re.search(r"duration (\d+) ns", e.details)[1])
                wanted[e.cpu].update({kind + "s": 1, kind + "_ns": ns})
                sources.add(kind)
        for cpu, runtime, noise, most in SAMPLE.findall((test.dir / "x.txt").read_text()):
            row = wanted[int(cpu)]
            row.update(runtime_ns=int(runtime) * US, noise_ns=int(noise) * US)
            row["max_ns"] = max(row["max_ns"], int(most) * US)
        rows = {row["cpu"]: row for row in report(test, "noise", file)}
        check(set(rows) == set(wanted), f"{file}: {set(rows)}, not {set(wanted)}")
        for cpu, row in rows.items():
            for name in ("runtime_ns", "noise_ns", "max_ns", *(f"{kind}{part}" for kind in ("nmi", "irq", "softirq", "thread")
                                                              for part in ("s", "_ns"))):
                check(row[name] == wanted[cpu][name], f"{file}: {name} is not {wanted[cpu][name]}: {row}")
            share = 1000 - 1000 * row["noise_ns"] / row["runtime_ns"]
            check(abs(row["available_permille"] - share) <= 1, f"{row}: {share}")
    check({"nmi", "irq", "thread"} <= sources, sources)


# Numbers of asm/unistd.h: each architecture has its own.
CALLS = {
    "arm64": {"openat": 56, "close": 57, "read": 63, "write": 64, "execve": 221, "clone": 220, "wait4": 260, "mmap": 222},
    "x86_64": {"openat": 257, "close": 3, "read": 0, "write": 1, "execve": 59, "clone": 56, "wait4": 61, "mmap": 9},
}


def calls(test):
    """Names of system calls are the recorded machine's, not this one's."""
    seen = set()
    for file in sorted(DATA.glob("*/reports.traced.gz")):
        architecture = "arm64" if "arm64" in file.parent.name else "x86_64"
        events = events_of(test, file)
        rows = {row["call"]: row for row in report(test, "syscalls", file)}
        check(not any(name.startswith("syscall_") for name in rows), sorted(rows))
        for name, number in CALLS[architecture].items():
            exits = [re.match(r"NR \d+ = (-?\d+)", e.details)[1] for e in events
                     if e.name == "sys_exit" and e.details.startswith(f"NR {number} =")]
            row = rows.get(name, {"calls": 0, "errors": 0, "open": 0})
            # Some began before the recording.
            check(len(exits) - row["open"] <= row["calls"] <= len(exits), f"{file}: {row}, and {len(exits)} calls of {name}")
            check(row["errors"] <= sum(-4096 < int(value) < 0 for value in exits), f"{file}: {row} {exits}")
            seen |= {(architecture, name)} if exits else set()
        # Its end has no number.
        ends = sum(e.name == "sys_exit" and e.details.startswith("NR -1 =") for e in events)
        check(ends and rows["rt_sigreturn"]["calls"] == ends and not rows["rt_sigreturn"]["open"], f"{file}: {rows['rt_sigreturn']}")
    check(all(sum(a == architecture for a, _ in seen) >= 6 for architecture in CALLS), seen)


def irq_threads(test):
    """With PREEMPT_RT, devices' interrupts have threads: their runs and wake-ups are those of the scheduler's events."""
    threads = set()
    for file in sorted(DATA.glob("*-rt/reports.traced.gz")):
        runs, raises = collections.defaultdict(list), collections.defaultdict(list)
        names, since, woken = {}, {}, {}
        for e in events_of(test, file):
            if e.name == "sched_switch":
                prev, following = int(field(e, "prev_pid")), int(field(e, "next_pid"))
                if prev in since:
                    runs[names.get(prev)].append(e.ts - since.pop(prev))
                names[following] = re.search(r"next_comm=(.*) next_pid", e.details)[1]
                since[following] = e.ts
                if following in woken:
                    raises[names[following]].append(e.ts - woken.pop(following))
            elif e.name == "sched_waking":
                tid = int(field(e, "pid"))
                if tid not in since:
                    woken.setdefault(tid, e.ts)
        wanted = {name for name in runs if name and name.startswith("irq/")}
        rows = {row["name"]: row for row in report(test, "irq", file) if row["kind"] == "thread"}
        check(set(rows) == wanted, f"{file}: {set(rows)}, not {wanted}")
        for name, row in rows.items():
            check_times(name, row, "time", runs[name])
            check_times(name, row, "raise", raises[name])
            check(row["cut"] == 0, row)
            threads.add((file.parent.name, name))
    check(threads, "no interrupt has a thread")


def of_fixtures(test):
    compared = collections.Counter()
    for file in sorted(DATA.glob("*/mixed.traced.gz")):
        events = events_of(test, file)
        for name in ("workqueue", "timer", "power"):
            compared[name] += CHECKS[name](test, file, events)
    for file in sorted(DATA.glob("*/reports.traced.gz")):
        if "arm64" not in file.parent.name:
            compared["power"] += check_power(test, file, events_of(test, file))
    for file in sorted(DATA.glob("*/frequencies.traced.gz")):
        events = events_of(test, file)
        check_power(test, file, events)
        compared["frequency"] += len({(field(e, "cpu_id"), field(e, "state")) for e in events if e.name == "cpu_frequency"})
    check(min(compared.values()) > 3 and compared["frequency"], compared)


TREE = re.compile(r"^ *(\d+)\) +(?:[$@*#!+] )? *([\d.]+ us)? *\|  ( *)(.*)$")
TASKS = re.compile(r"^ *(\d+)\) +(\S+) +=> +(\S+) *$")


def calls_of(text):
    """Durations in ns of each function, and their self times, of the kernel's text; its lines have CPUs."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    task, calls, stacks = {}, collections.defaultdict(list), collections.defaultdict(list)
    for line in lines:
        if match := TASKS.match(line):
            task.setdefault(match.group(1), match.group(2))
    for line in lines:
        if match := TASKS.match(line):
            task[match.group(1)] = match.group(3)
            continue
        match = TREE.match(line)
        if not match or match.group(4).startswith("/*"):
            continue
        cpu, duration, indent, what = match.groups()
        owner = task.get(cpu, cpu)
        stack = stacks[owner if not owner.endswith("-0") else (owner, cpu)]
        if what.startswith("}"):
            name, within = stack.pop()
            check(len(stack) * 2 == len(indent), line)
        elif what.endswith("{"):
            stack.append([what.split("(")[0], 0])
            continue
        else:
            name, within = what.split("(")[0], 0
        ns = round(float(duration.split()[0]) * 1000)
        calls[name].append((ns, ns - within))
        if stack:
            stack[-1][1] += ns
    return calls


def functions(test):
    """The text's durations have nanoseconds up to 10 ms, tens of them up to 100 ms."""
    for file in sorted(DATA.glob("*/graph.traced.gz")):
        calls = calls_of(gzip.open(file.with_name("graph.txt.gz"), "rt").read())
        check(all(ns < 100_000_000 for times in calls.values() for ns, _ in times), f"{file}: longer calls")
        slack = 10 * sum(ns >= 10_000_000 for times in calls.values() for ns, _ in times)
        rows = {row["function"].split(" [")[0]: row for row in report(test, "functions", file)}
        check(set(rows) == set(calls), f"{file}: {set(rows) ^ set(calls)}")
        for name, times in calls.items():
            row = rows[name]
            check(row["count"] == len(times), f"{file}: {row} {times}")
            check(abs(row["total_ns"] - sum(ns for ns, _ in times)) <= slack, f"{file}: {row} {times}")
            check(abs(row["self_ns"] - sum(ns for _, ns in times)) <= slack, f"{file}: {row} {times}")
            check(row["cut"] == 0, row)


MARKED = """
import os, time
marker = os.open("/sys/kernel/tracing/trace_marker", os.O_WRONLY)
def mark(text):
    os.write(marker, text.encode())
for i in range(20):
    mark(f"B|{os.getpid()}|outer")
    mark(f"B|{os.getpid()}|sleep")
    time.sleep(0.004)
    mark("E")
    mark(f"B|{os.getpid()}|spin")
    until = time.thread_time() + 0.004
    while time.thread_time() < until:
        pass
    mark("E")
    mark("E")
"""


def marks_wanted(events, tid):
    """Slices of the thread, each with what the switches and wake-ups say of every moment in it."""
    changes, slices, stack = [], [], []
    for e in events:
        if e.name == "sched_switch" and field(e, "prev_pid") == str(tid):
            changes.append((e.ts, "runnable" if field(e, "prev_state").startswith("R") else "blocked"))
        elif e.name == "sched_switch" and field(e, "next_pid") == str(tid):
            changes.append((e.ts, "running"))
        elif e.name in ("sched_waking", "sched_wakeup") and re.search(rf"\bpid={tid}\b", e.details):
            if changes and changes[-1][1] == "blocked":
                changes.append((e.ts, "runnable"))
        elif e.tid == tid and e.name == "tracing_mark_write":
            if e.details.startswith("B|"):
                stack.append((e.details.split("|")[2], e.ts))
            else:
                slices.append((*stack.pop(), e.ts))
    wanted = collections.defaultdict(lambda: collections.Counter())
    for name, begin, end in slices:
        before = [state for ts, state in changes if ts <= begin]
        state, at = before[-1] if before else "running", begin
        for ts, following in [c for c in changes if begin < c[0] < end] + [(end, None)]:
            wanted[name][state] += ts - at
            state, at = following, ts
        wanted[name]["count"] += 1
        wanted[name]["changes"] += 2 + sum(begin < ts < end for ts, _ in changes)
    return wanted


def marked(test):
    """Slices of a thread on the first CPU: others leave out more switches. Returns what is wanted, and the rows."""
    with top_level():
        r = test.run("record", "-q", "--name", test.name, "--top-level", "-e", "sched", "-o", "x.traced",
                     "--", "taskset", "-c", "0", "/usr/bin/python3", "marked.py")
        need("somebody else" not in r.err and "another program" not in r.err, "the top-level buffer is in use")
    check(r.status == 0, r)
    events = events_of(test, "x.traced")
    tid = next(e.tid for e in events if e.name == "tracing_mark_write" and "|outer" in e.details)
    rows = {row["slice"]: row for row in report(test, "marks", "x.traced")}
    wanted = marks_wanted(events, tid)
    check(set(rows) == set(wanted) == {"outer", "sleep", "spin"}, f"{rows} {wanted}")
    check(all(row["count"] + row["cut"] == 20 and not row["open"] for row in rows.values()), rows)
    return wanted, rows


def marks(test):
    """A busy kernel leaves out switches, and slices are then cut: one of several recordings has all."""
    (test.dir / "marked.py").write_text(MARKED)
    for _ in range(MARKS_TRIES):
        wanted, rows = marked(test)
        check(all(row["cut"] < 10 for row in rows.values()), rows)
        if not any(row["cut"] for row in rows.values()):
            break
    else:
        need(False, "this kernel left out switches in each recording")
    for name, times in wanted.items():
        row = rows[name]
        check(row["count"] == times["count"], row)
        for key in ("running", "runnable", "blocked"):
            check(abs(row[key + "_ns"] - times[key]) <= US * times["changes"], f"{row} {times} {key}")
        check(row["running_ns"] + row["runnable_ns"] + row["blocked_ns"] == row["total_ns"], row)
    check(rows["sleep"]["blocked_ns"] > 20 * 3_000_000 and rows["spin"]["running_ns"] > 20 * 1_000_000, rows)
    check(rows["outer"]["self_ns"] == rows["outer"]["total_ns"] - rows["sleep"]["total_ns"] - rows["spin"]["total_ns"],
          rows["outer"])


def main():
    test = Test("report_kernel")
    test.case("fixtures", of_fixtures)
    test.case("osnoise", osnoise)
    test.case("system calls of architectures", calls)
    test.case("threads of interrupts", irq_threads)
    test.case("functions", functions)
    test.case("a live recording", of_a_live_recording)
    test.case("marks", marks)
    test.end()


if __name__ == "__main__":
    main()
