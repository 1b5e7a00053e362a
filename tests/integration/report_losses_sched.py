#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The reports of the scheduler's spans under losses, computed once more from the text, as in report_losses.py: of recordings
of several kernels, and exactly of made ones."""

import collections
import csv
import io
import itertools
import json
import re

from harness import Test, check
from report_kernel import US
from report_losses import ROUNDS, SWITCH, Text, lossy, recordings, report
from report_losses_made import END, SEEDS, made

WAKES = {"sched_waking", "sched_wakeup", "sched_wakeup_new"}
IDLE = 0
# Reports whose rows can't have cut and open.
TOTALS = {"timehist": "run", "delays": "wait", "runq": "wait", "blame": "wait"}


class Life:
    """What is known of a task: its state since an event; None: nothing."""

    def __init__(self):
        self.state = self.since = None
        self.preempted = self.woken = False
        self.sure = True

    def enter(self, state, e, sure=True):
        self.state, self.since, self.sure = state, e, sure


class Scheduler:
    """Spans of all tasks, by the rules of docs/report.md."""

    def __init__(self, text):
        self.text = text
        self.lives = collections.defaultdict(Life)
        self.current = {}  # by CPU: the task, and the switch that began its run
        self.spans = collections.defaultdict(list)  # by (tid, kind): times
        self.cut, self.open = collections.Counter(), collections.Counter()  # by (tid, kind)
        self.waits = []  # whole ones: tid, begin, end, and whether the task was preempted
        self.has_waking = any(e.name == "sched_waking" for e in text.events)
        for e in text.events:
            if e.name == "sched_switch":
                self.switch(e)
            elif e.name in WAKES:
                self.wake(e, self.lives[int(re.search(r" pid=(\d+) prio=", e.details)[1])],
                          int(re.search(r" pid=(\d+) prio=", e.details)[1]))
            elif e.name == "sched_process_exec":
                self.exec(e)
        self.finish()

    def finish(self):
        for cpu, (tid, since) in self.current.items():
            if tid and not self.text.is_whole(since.at, END, cpu):
                self.cut[tid, "run"] += 1
            elif tid and self.lives[tid].state == "run" and self.lives[tid].cpu == cpu:
                self.open[tid, "run"] += 1
        for tid, life in self.lives.items():
            if life.state in ("wait", "sleep"):
                whole = life.sure and self.text.is_whole(life.since.at, END)
                (self.open if whole else self.cut)[tid, life.state] += 1

    def whole(self, life, e):
        return life.sure and self.text.is_whole(life.since.at if life.since else -1, e.at)

    def end(self, tid, kind, life, e):
        if not self.whole(life, e):
            self.cut[tid, kind] += 1
        elif not life.since:
            self.open[tid, kind] += 1
        else:
            self.spans[tid, kind].append(e.ts - life.since.ts)
            if kind == "wait":
                self.waits.append((tid, life.since, e, life.preempted))

    def end_run(self, e, prev):
        """Only what its CPU lost matters to a run. A kernel that leaves out a switch loses it, too."""
        before, since = self.current.get(e.cpu, (None, None))
        if since is None:
            if prev:
                (self.open if self.text.is_whole(-1, e.at, e.cpu) else self.cut)[prev, "run"] += 1
        elif self.text.is_whole(since.at, e.at, e.cpu) and before == prev:
            if prev:
                self.spans[prev, "run"].append(e.ts - since.ts)
        else:
            for tid in {before, prev} - {0}:
                self.cut[tid, "run"] += 1
            # Nobody knows what it did since.
            if before and before != prev and self.lives[before].state == "run" and self.lives[before].cpu == e.cpu:
                self.lives[before].enter(None, None, sure=False)

    def switch(self, e):
        prev, state, following = SWITCH.search(e.details).groups()
        prev, following, state = int(prev), int(following), state.rstrip("+")
        if prev and self.lives[prev].state in ("wait", "sleep"):
            self.cut[prev, self.lives[prev].state] += 1
        self.end_run(e, prev)
        if prev:
            life = self.lives[prev]
            life.preempted = state == "R"
            life.enter("wait" if state == "R" else "sleep", e)
            if state in ("X", "Z"):
                del self.lives[prev]
        if following:
            self.run(e, following, self.lives[following])
        self.current[e.cpu] = following, e

    def lose_runs(self, e, life):
        """A task whose CPU lost events in its run may have left it."""
        if life.state == "run" and not self.text.is_whole(life.since.at, e.at, life.cpu) and self.gap_ended(life, e):
            life.enter(None, None, sure=False)

    def gap_ended(self, life, e):
        return any(on == life.cpu and life.since.at < after <= e.at for on, _, after in self.text.gaps)

    def run(self, e, tid, life):
        self.lose_runs(e, life)
        if life.state == "run":
            self.cut[tid, "wait"] += 1
        elif life.state == "sleep":
            if not self.whole(life, e):
                self.cut[tid, "sleep"] += 1
                self.cut[tid, "wait"] += 1
        else:
            self.end(tid, "wait", life, e)
        life.enter("run", e)
        life.cpu = e.cpu

    def wake(self, e, life, tid):
        self.lose_runs(e, life)
        if e.name == "sched_wakeup_new" and (life.state or life.since):
            life = self.lives[tid] = Life()
        if life.state == "run":
            return
        if life.state == "wait" and self.whole(life, e) and (e.name != "sched_waking" or life.preempted or not life.woken):
            return
        late = e.name == "sched_wakeup" and self.has_waking and not self.whole(life, e)
        if e.name != "sched_wakeup_new" and not (late and life.state == "wait"):
            if life.state == "wait":
                self.cut[tid, "wait"] += 1
            else:
                self.end(tid, "sleep", life, e)
        life.preempted, life.woken = False, e.name == "sched_waking"
        life.enter("wait", e, sure=not late)

    def exec(self, e):
        pid, old = map(int, re.search(r" pid=(\d+) old_pid=(\d+)", e.details).groups())
        if pid == old or old not in self.lives:
            return
        self.lives[pid] = Life()
        self.lives[pid].enter("run", e)
        self.lives[pid].cpu = e.cpu
        del self.lives[old]
        if self.current.get(e.cpu, (None,))[0] == old:
            self.current[e.cpu] = pid, self.current[e.cpu][1]


def by_tid(rows, value):
    found = collections.Counter()
    for row in rows:
        found[row["tid"]] += value(row)
    return found


def same(found, wanted, what):
    for key in set(found) | set(wanted):
        check(found[key] == wanted[key], f"{what} of {key}: {found[key]}, not {wanted[key]}")


def within(found, wanted, slack, what):
    check(abs(found - wanted) <= slack, f"{what}: {found}, not {wanted}")


def check_sched(s, tables, slack):
    rows = tables["sched"]["rows"]
    for kind, count, total in (("run", "runs", lambda row: row["runtime_ns"]), ("wait", None, lambda row: row["delay"]["sum_ns"])):
        counts = by_tid(rows, lambda row, c=count: row[c] if c else row["delay"]["count"])
        sums = by_tid(rows, total)
        for tid in set(counts) | {tid for tid, k in s.spans if k == kind}:
            wanted = s.spans[tid, kind]
            check(counts[tid] == len(wanted), f"{kind} of {tid}: {counts[tid]}, not {len(wanted)}")
            within(sums[tid], sum(wanted), slack * len(wanted), f"{kind} of {tid}")
    for name, counts in (("cut", s.cut), ("open", s.open)):
        wanted = collections.Counter()
        for (tid, kind), n in counts.items():
            wanted[tid] += n * (kind != "sleep")
        same(by_tid(rows, lambda row, name=name: row[name]), wanted, name)
    check_beside(s, tables, slack)
    return sum(row["cut"] for row in rows)


def check_beside(s, tables, slack):
    """Reports of the same spans."""
    rows = tables["offcpu"]["rows"]
    for key, wanted in (("count", {t: len(v) for (t, k), v in s.spans.items() if k == "sleep"}),
                        ("cut", {t: n for (t, k), n in s.cut.items() if k == "sleep"}),
                        ("open", {t: n for (t, k), n in s.open.items() if k == "sleep"})):
        same(by_tid(rows, lambda row, key=key: row[key]), collections.Counter(wanted), f"offcpu: {key}")
    waits = [ns for (_, kind), spans in s.spans.items() if kind == "wait" for ns in spans]
    check(sum(row["count"] for row in tables["runq"]["rows"]) == len(waits), f"runq: {len(waits)} waits")
    within(sum(row["time_ns"] for row in tables["blame"]["rows"]), sum(waits), slack * len(waits), "blame")
    runs = [ns for (_, kind), spans in s.spans.items() if kind == "run" for ns in spans]
    check(len(tables["timehist"]["rows"]) == len(runs), f"timehist: {len(runs)} runs")
    for name, kind in TOTALS.items():
        wanted = {what: sum(n for (_, k), n in counts.items() if k == kind) for what, counts in (("cut", s.cut), ("open", s.open))}
        check(tables[name]["totals"] == wanted, f"{name}: {tables[name]['totals']}, not {wanted}")


def cpu_of(text, cpu):
    """What a CPU's row has, and its whole runs: tid, begin and end. An idle time is a run of nobody."""
    row, runs, current = collections.Counter(), [], None
    for e in text.events:
        if e.cpu == cpu and e.name == "sched_process_exec" and current:
            pid, old = map(int, re.search(r" pid=(\d+) old_pid=(\d+)", e.details).groups())
            current = (pid, current[1]) if current[0] == old else current
        if e.cpu != cpu or e.name != "sched_switch":
            continue
        prev, _, following = SWITCH.search(e.details).groups()
        prev, (before, since) = int(prev), current or (None, None)
        if not since:
            row["open" if text.is_whole(-1, e.at, cpu) else "cut"] += 1
        elif prev == before and text.is_whole(since.at, e.at, cpu):
            runs.append((prev, since.ts, e.ts))
        else:
            row["cut"] += len({before, prev})
        current = int(following), e
    if current:
        row["open" if text.is_whole(current[1].at, END, cpu) else "cut"] += 1
    return row, runs


def most_of(runs, begin=0, end=END):
    times = collections.Counter()
    for tid, since, until in runs:
        if tid != IDLE:
            times[tid] += max(0, min(until, end) - max(since, begin))
    return times, max(times.values(), default=0)


def check_cpus(s, tables, slack):
    text, rows = s.text, tables["cpus"]["rows"]
    cpus = {e.cpu for e in text.events if e.name == "sched_switch"}
    check({row["cpu"] for row in rows} == cpus, f"{rows}: not {cpus}")
    for row in rows:
        wanted, runs = cpu_of(text, row["cpu"])
        off = slack * (len(runs) + 1)
        for name in ("cut", "open"):
            check(row[name] == wanted[name], f"{row}: {name} is not {wanted[name]}")
        check(row["runs"] == sum(tid != IDLE for tid, *_ in runs), row)
        idle, known = (sum(end - begin for tid, begin, end in runs if all_of or tid == IDLE) for all_of in (False, True))
        within(row["idle_ns"], idle, off, f"{row}: idle")
        within(row["known_ns"], known, off, f"{row}: known")
        times, longest = most_of(runs)
        within(row["most_time_ns"], longest, off, f"{row}: most")
        within(row["most_time_ns"], times[row["most_tid"]], off, f"{row}: the time of {row['most_tid']}")
        within(row["busy_permille"], round((known - idle) * 1000 / known) if known else 0, 1, row)
    return sum(row["cut"] for row in rows)


def check_delays(s, tables, slack):
    """All waits, as there are less than a thousand."""
    text, rows = s.text, tables["delays"]["rows"]
    runs = {cpu: cpu_of(text, cpu)[1] for cpu in {e.cpu for e in text.events}}
    check(len(s.waits) <= 1000, f"{len(s.waits)} waits")
    # Several waits may end at the same microsecond, but not of one task.
    wanted = {(e.ts // US, tid): (begin, e, preempted) for tid, begin, e, preempted in s.waits}
    found = {((row["at_ns"] + US // 2) // US, row["tid"]): row for row in rows}
    check(set(found) == set(wanted) and len(rows) == len(s.waits), f"{set(found) ^ set(wanted)}")
    for key, row in found.items():
        begin, e, preempted = wanted[key]
        check(row["cpu"] == e.cpu and (row["waker"] == "(preempted)") == preempted, f"{row}: {begin}, {e}")
        within(row["delay_ns"], e.ts - begin.ts, slack, row)
        inside = [run for run in runs[e.cpu] if run[1] < e.ts and run[2] > begin.ts]
        times, longest = most_of(inside, begin.ts, e.ts)
        off = slack * (len(inside) + 1)
        within(row["most_time_ns"], longest, off, f"{row}: most")
        if row["most_time_ns"]:
            within(row["most_time_ns"], times[row["most_tid"]], off, f"{row}: the time of {row['most_tid']}")
    return sum(n for (_, kind), n in s.cut.items() if kind == "wait")


CHECKS = {"sched": check_sched, "cpus": check_cpus, "delays": check_delays}
# The rows of the first one come as the recording is read.
REPORTS = ["timehist", *sorted({*CHECKS, *TOTALS, "offcpu"} - {"timehist"})]


def compare(test, path, text_path, slack):
    """How many intervals are cut, by the check."""
    text = Text(text_path)
    check(text.gaps, "no loss")
    r = test.run("report", *REPORTS, "--json", path)
    check(r.status in (0, 3), r)
    tables = {table["name"]: table for table in json.loads(r.out)["reports"]}
    s = Scheduler(text)
    return collections.Counter({name: compare_one(s, tables, slack) for name, compare_one in CHECKS.items()})


def of_recordings(test):
    cut, kernels = collections.Counter(), recordings(test, "mixed") + recordings(test, "reports")
    for source, seed in itertools.product(kernels, range(ROUNDS)):
        try:
            cut += compare(test, *lossy(test, source, seed), US)
        except Exception as e:
            raise type(e)(f"{source.parent.name}, round {seed}: {e}") from e
    print(f"  {len(kernels)} kernels, cut are {dict(cut)}")
    check(len(kernels) >= 4 and all(cut[name] for name in CHECKS), f"{kernels}: {cut}")


def of_made(test):
    cut = collections.Counter()
    for seed in range(SEEDS):
        try:
            cut += compare(test, *made(test, seed), 0)
        except Exception as e:
            raise type(e)(f"seed {seed}: {e}") from e
    print(f"  cut are {dict(cut)}")
    check(all(cut[name] > SEEDS for name in CHECKS), f"{cut}")


def forms(test):
    """In each form, reports without columns for it have the sums of cut and open."""
    sums = collections.defaultdict(collections.Counter)
    names = []
    for seed in range(2):
        path, _ = made(test, seed)
        for name in TOTALS:
            totals = report(test, name, path)["totals"]
            check(totals["cut"] and totals["open"], totals)
            sums[name].update(totals)
            text = test.run("report", name, path).out
            check(f": cut {totals['cut']}, open {totals['open']}\n" in text, text)
            *rows, last = csv.DictReader(io.StringIO(test.run("report", name, "--csv", path).out))
            check({k: v for k, v in last.items() if v} == {k: str(n) for k, n in totals.items()}, last)
            check(rows and not any(row["cut"] or row["open"] for row in rows), f"{name}: {rows[:1]}")
        names.append(test.dir / f"{seed}.json")
        names[-1].write_text(test.run("report", "runq", "blame", "--json", path).out)
    for order in itertools.permutations(names):
        merged = json.loads(test.run("report", "--json", "--merge", *order).out)["reports"]
        for table in merged:
            check(table["totals"] == sums[table["name"]], f"{table['name']}: {table['totals']}")
            check(table["notes"] == [], f"{table['name']}: {table['notes']}")
        text = test.run("report", "--merge", *order).out
        for name in ("runq", "blame"):
            check(f"\ncut {sums[name]['cut']}, open {sums[name]['open']}\n" in text, text)
        check(text.count("cut ") == 2, text)
    # A table may have no row.
    last = list(csv.DictReader(io.StringIO(test.run("report", "timehist", "--csv", "--min", "1h", path).out)))
    check([row["cut"] for row in last] == [str(report(test, "timehist", path)["totals"]["cut"])], last)


def main():
    test = Test("report_losses_sched", root=False)
    test.case("of recordings", of_recordings)
    test.case("exactly", of_made)
    test.case("cut and open in each form", forms)
    test.end()


if __name__ == "__main__":
    main()
