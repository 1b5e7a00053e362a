#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The reports irq, syscalls, block and counts, computed once more from the text of the same recording. The text has
microseconds, the reports nanoseconds."""

import collections
import os
import re
import subprocess

from harness import Test, check
from report_kernel import check_times, events_of, field, report

WRITES = 8


def check_irq(test, file, events):
    begun, raised, ran, wanted = {}, {}, set(), collections.defaultdict(lambda: collections.defaultdict(list))
    for e in events:
        if e.name == "irq_handler_entry":
            begun[e.cpu, "irq"] = (f"{field(e, 'irq')} {e.details.partition('name=')[2]}", "irq"), e.ts
        elif e.name == "irq_handler_exit" and (e.cpu, "irq") in begun:
            key, ts = begun.pop((e.cpu, "irq"))
            wanted[key]["time"].append(e.ts - ts)
        elif e.name == "softirq_raise":
            # Before its first run nobody knows whether it was raised already.
            if (e.cpu, field(e, "vec")) in ran:
                raised.setdefault((e.cpu, field(e, "vec")), e.ts)
        elif e.name == "softirq_entry":
            key = re.search(r"action=(\w+)", e.details).group(1), "softirq"
            begun[e.cpu, "softirq"] = key, e.ts
            ran.add((e.cpu, field(e, "vec")))
            if (e.cpu, field(e, "vec")) in raised:
                wanted[key]["raise"].append(e.ts - raised.pop((e.cpu, field(e, "vec"))))
        elif e.name == "softirq_exit" and (e.cpu, "softirq") in begun:
            key, ts = begun.pop((e.cpu, "softirq"))
            wanted[key]["time"].append(e.ts - ts)
    rows = {(row["name"], row["kind"]): row for row in report(test, "irq", file)}
    check({key for key, row in rows.items() if row["count"]} == set(wanted), f"{sorted(rows)} {sorted(wanted)}")
    for key, lists in wanted.items():
        check_times(key, rows[key], "time", lists["time"])
        check_times(key, rows[key], "raise", lists["raise"])
        check(rows[key]["cut"] == 0, rows[key])
    by_cpu = collections.Counter()
    for row in report(test, "irq", file, "--by", "cpu"):
        by_cpu[row["name"], row["kind"]] += row["count"]
    check(by_cpu == collections.Counter({key: row["count"] for key, row in rows.items()}), f"{by_cpu}")


def syscall_times(events):
    """By call's number: durations, and how many failed."""
    begun, wanted = {}, collections.defaultdict(lambda: [[], 0])
    for e in events:
        if e.name == "sys_enter":
            begun[e.tid] = re.match(r"NR (-?\d+)", e.details).group(1), e.ts
        elif e.name == "sys_exit":
            number, _, value = e.details.removeprefix("NR ").partition(" = ")
            before, ts = begun.pop(e.tid, (None, 0))
            # The end of rt_sigreturn has no number, and returns what it restores.
            if number == "-1" and before:
                wanted[before][0].append(e.ts - ts)
            elif before == number:
                wanted[number][0].append(e.ts - ts)
                wanted[number][1] += -4095 <= int(value) < 0
    return wanted


def check_syscalls(test, file, events):
    wanted = syscall_times(events)
    rows = {row["call"]: row for row in report(test, "syscalls", file)}
    known = {"getppid": "getppid", "openat": "openat"} if os.uname().machine == "x86_64" else {}
    numbers = {"getppid": "110", "openat": "257"}
    for name in known:
        times, errors = wanted[numbers[name]]
        check(rows[name]["calls"] == len(times) and rows[name]["errors"] == errors, f"{rows[name]} {len(times)} {errors}")
        check_times(name, rows[name], "time", times)
    check(sum(row["calls"] for row in rows.values()) == sum(len(times) for times, _ in wanted.values()), "calls")
    check(sum(row["errors"] for row in rows.values()) == sum(errors for _, errors in wanted.values()), "errors")
    check(not any(row["cut"] for row in rows.values()), "a call is cut")
    for by in ("thread", "comm", "process"):
        total = sum(row["calls"] for row in report(test, "syscalls", file, "--by", by))
        check(total == sum(row["calls"] for row in rows.values()), by)


def check_block(test, file, events):
    inserted, issued, wanted = {}, {}, collections.defaultdict(lambda: collections.defaultdict(list))
    for e in events:
        if not e.name.startswith("block_rq_"):
            continue
        device, operation, size, sector, sectors = re.match(r"(\S+) (\S+) (\d*) ?\(.*?\) (\d+) \+ (\d+)", e.details).groups()
        # A flush has one sector in its issue and another one in its end: report_losses_made.py has those.
        if sectors == "0":
            continue
        request = device, sector
        if e.name in ("block_rq_insert", "block_rq_requeue"):
            inserted[request] = e.ts
            issued.pop(request, None)
        elif e.name == "block_rq_issue":
            if request in inserted:
                wanted[device, operation]["queue"].append(e.ts - inserted.pop(request))
            issued[request] = (device, operation), e.ts, int(size)
        elif e.name == "block_rq_complete" and request in issued:
            key, ts, size = issued.pop(request)
            wanted[key]["time"].append(e.ts - ts)
            wanted[key]["bytes"].append(size)
    rows = {(row["device"], row["operation"]): row for row in report(test, "block", file)}
    check(wanted, "no request was seen")
    for key, lists in wanted.items():
        check_times(key, rows[key], "queue", lists["queue"])
        check_times(key, rows[key], "time", lists["time"])
        check(rows[key]["bytes"] == sum(lists["bytes"]), f"{rows[key]} {lists['bytes']}")


def check_counts(test, file, events):
    wanted = collections.Counter(e.name for e in events)
    # The text calls prints otherwise.
    found = {row["event"].partition(":")[2].replace("print", "tracing_mark_write"): row["count"] for row in report(test, "counts", file)}
    check(found == wanted, f"{found} {wanted}")


def record(test, *arguments, command):
    r = test.run("record", "-q", "--name", test.name, *arguments, "-b", "16M", "-o", "x.traced", "--", *command)
    check(r.status == 0, r)
    return events_of(test, "x.traced")


def interrupts_and_calls(test):
    events = record(test, "-e", "irq:irq_handler*", "-e", "irq:softirq*", "-e", "raw_syscalls", command=(
        "/usr/bin/python3", "-c", "import os\nfor _ in range(5000): os.getppid()\nfor _ in range(50):\n"
        " try: open('/nonexistent')\n except OSError: pass"))
    check_irq(test, "x.traced", events)
    check_syscalls(test, "x.traced", events)
    check_counts(test, "x.traced", events)


def requests(test):
    target = test.dir / "written"
    events = record(test, "-e", "block:block_rq_*", command=(
        "dd", "if=/dev/zero", f"of={target}", "bs=256k", f"count={WRITES}", "oflag=direct", "status=none"))
    target.unlink()
    if not any(e.name == "block_rq_complete" for e in events):
        test.skip("this folder is on no disk")
    check_block(test, "x.traced", events)


def pairs_of_one_call(test):
    """Where only the events of a call were recorded, its name is theirs."""
    if test.run("events", "syscalls:sys_enter_getppid").out == "":
        test.skip("this kernel has no events of single calls")
    r = test.run("record", "-q", "--name", test.name, "-e", "syscalls:sys_*_getppid", "-o", "x.traced", "--",
                 "/usr/bin/python3", "-c", "import os\nfor _ in range(100): os.getppid()")
    check(r.status == 0, r)
    rows = report(test, "syscalls", "x.traced")
    check([(row["call"], row["calls"] >= 100) for row in rows] == [("getppid", True)], rows)


def lost_calls(test):
    """The ring of each CPU goes back to another time. Before the last of these, a call's times are not known."""
    name = f"{test.name}-ring"
    r = test.run("start", "-q", "--ring", "--name", name, "-b", "64K", "-e", "raw_syscalls")
    check(r.status == 0, r)
    for cpu in os.sched_getaffinity(0):
        subprocess.run(["taskset", "-c", str(cpu), "/usr/bin/python3", "-c",
                        "import os\nfor _ in range(20000): os.getppid()"], check=True)
    r = test.run("stop", "-q", name, "-o", "x.traced")
    check(r.status == 0, r)
    events = events_of(test, "x.traced")
    begins = {}
    for e in events:
        begins.setdefault(e.cpu, e.ts)
    known = [sum(len(times) for times, _ in syscall_times([e for e in events if e.ts >= max(begins.values()) + us * 1000])
                 .values()) for us in (1, 0)]
    rows = report(test, "syscalls", "x.traced", lost=True)
    calls = sum(row["calls"] for row in rows)
    check(0 < known[0] <= calls <= known[1], f"{calls} calls, not {known}")
    check(len(begins) == 1 or any(row["cut"] for row in rows), "no call is cut")


def main():
    test = Test("report_events")
    test.case("interrupts and calls", interrupts_and_calls)
    test.case("requests to disks", requests)
    test.case("pairs of one call", pairs_of_one_call)
    test.case("lost calls", lost_calls, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
