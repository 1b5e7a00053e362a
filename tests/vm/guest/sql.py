#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In a guest: events that the kernel makes of pairs of others, as SQL says, compared with what the
recording's own events say; and that they are gone afterwards."""

import json
import os
import pathlib
import re
import time

from common import (INSTANCES, TRACEFS, check, lines_of, of_a_guest, put_back, record, settings, some_files,
                    text_of, without_name)
from harness import NOBODY, as_nobody, interrupt, settled

WAKEUP = ("SELECT start.pid, end.next_comm AS comm, (end.TIMESTAMP_USECS - start.TIMESTAMP_USECS) AS lat "
          "FROM sched_waking AS start JOIN sched_switch AS end ON start.pid = end.next_pid")
RUN = ("SELECT start.pid, start.lat AS waited, TIMESTAMP_DELTA_USECS AS ran "
       "FROM wakeup AS start JOIN sched_switch AS end ON start.pid = end.prev_pid")
OPENED = ("--kprobe", "p:opened vfs_open path=%di", "--kprobe", "r:was_opened vfs_open ret=$retval:s32")
OPEN = ("SELECT start.common_pid AS who, end.ret, start.path, (end.TIMESTAMP - start.TIMESTAMP) AS ns "
        "FROM opened AS start JOIN was_opened AS end ON start.common_pid = end.common_pid")
# The second name is that of newer kernels, such as 7.2.
OPENS = ("do_filp_open", "do_file_open")
FAILED = ("SELECT start.common_pid AS who, start.dfd, end.ret FROM asked AS start JOIN got AS end "
          "ON start.common_pid = end.common_pid WHERE start.dfd = -100 && end.ret >= -4095 && end.ret < -2")


def synthetic_events():
    return (TRACEFS / "synthetic_events").read_text()


def nothing_is_left():
    until = time.monotonic() + 30
    while (left := synthetic_events()) and time.monotonic() < until:
        time.sleep(0.1)
    check(not left, f"synthetic events are left: {left}")


def ping_pong(rounds=60):
    """Two tasks of one CPU that wake each other, so that their events have one order."""
    a, b = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        for _ in range(rounds):
            os.read(a[0], 1)
            os.write(b[1], b"x")
        os._exit(0)
    for _ in range(rounds):
        os.write(a[1], b"x")
        os.read(b[0], 1)
        time.sleep(0.001)
    os.waitpid(child, 0)
    for fd in a + b:
        os.close(fd)


def two_of_cpu_0():
    """ping_pong() in a process that never ran elsewhere."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {0})
    child = os.fork()
    if not child:
        ping_pong()
        os._exit(0)
    os.sched_setaffinity(0, before)
    os.waitpid(child, 0)


def microseconds(line):
    seconds, part = line["time"].split(".")
    return int(seconds) * 1000000 + int(part)


def wakeups_by_hand(text, wanted, wanted_comm=lambda comm: True):
    """The same join on the recording's own events: the kernel takes each start once, the latest."""
    began, found = {}, []
    for line in lines_of(text):
        waking = re.match(r"sched_waking: comm=.* pid=(\d+) prio=(\d+) ", line["text"])
        switch = re.search(r"^sched_switch: .* next_comm=(.*) next_pid=(\d+) ", line["text"])
        if waking and wanted(int(waking[2])):
            began[int(waking[1])] = microseconds(line)
        if switch and int(switch[2]) in began and wanted_comm(switch[1]):
            pid = int(switch[2])
            found.append((pid, switch[1], microseconds(line) - began.pop(pid)))
    return found


def wakeups_of(text, name="wakeup"):
    return [(int(pid), comm, int(lat)) for pid, comm, lat in
            re.findall(rf": {name}: pid=(\d+) comm=(.*) lat=(\d+)$", text, re.M)]


def of_pids(found, pids):
    return [f for f in found if f[0] in pids]


def tasks_of_cpu_0(text):
    """Tasks all of whose wakeups and switches are CPU 0's: the order of their events is certain."""
    cpus = {}
    for line in lines_of(text):
        found = re.search(r"sched_waking: .* pid=(\d+) |sched_switch: .* next_pid=(\d+) ", line["text"])
        if found:
            cpus.setdefault(int(found[1] or found[2]), set()).add(int(line["cpu"]))
    return {pid for pid, where in cpus.items() if where == {0}}


def equals_brute_force(test):
    record(test, "-e", "sched:sched_waking", "-e", "sched:sched_switch", "--sql", WAKEUP, "--as", "wakeup", "-b",
           "16M", "-o", "out.txt", during=two_of_cpu_0)
    text = text_of(test)
    check("LOST" not in text, "events were lost")
    # The mark lets the histograms go on.
    text = text[text.index("trace_event_clock_sync"):].split("\n", 1)[1]
    pids = tasks_of_cpu_0(text)
    by_hand, by_kernel = wakeups_by_hand(text, lambda prio: True), wakeups_of(text)
    for pid in sorted(pids):
        a, b = of_pids(by_hand, {pid}), of_pids(by_kernel, {pid})
        # A task that was woken just before the histograms went on has no start there.
        check(b in (a, a[1:]), f"task {pid}: the kernel has {b}\nby hand {a}")
    count = len(of_pids(by_kernel, pids))
    check(count >= 100, f"only {count} wakeups of tasks of CPU 0 among {len(by_kernel)}")
    check(max(lat for _, _, lat in by_kernel) < 100_000_000, "a time of another clock")
    check(abs(len(by_hand) - len(by_kernel)) <= len(by_hand) // 50 + 2,
          f"{len(by_kernel)} wakeups, by hand {len(by_hand)}")
    nothing_is_left()


def filtered(test):
    """Filters of both events, without the events themselves."""
    record(test, "--sql", WAKEUP + ' WHERE start.prio < 140 && end.next_comm ~ "pyt*"', "--as", "wakeup",
           "--sql", WAKEUP + " WHERE start.prio > 999", "--as", "none", "-o", "out.txt",
           during=two_of_cpu_0)
    text = text_of(test)
    check(len(wakeups_of(text)) >= 100, f"too few wakeups in\n{text[-1500:]}")
    check({comm[:3] for _, comm, _ in wakeups_of(text)} == {"pyt"}, "another task's wakeup")
    check("sched_switch" not in text and "sched_waking" not in text, "the events themselves are recorded")
    nothing_is_left()


def opens():
    """Files and directories that can't be opened, for other reasons, and one that can."""
    here = os.open(".", os.O_RDONLY)
    for i in range(40):
        for path, flags, where in (("/none", os.O_RDONLY, None), ("/proc", os.O_WRONLY, None),
                                   ("/proc", os.O_RDONLY, None), ("none", os.O_WRONLY, here),
                                   ("/proc/self/comm/x", os.O_RDONLY, None)):
            try:
                os.close(os.open(path, flags, dir_fd=where))
            except OSError:
                pass
    os.close(here)


def failed_opens_by_hand(text):
    """Those of paths that begin at the current directory, but for -ENOENT."""
    began, found = {}, []
    for line in lines_of(text):
        asked = re.match(r"asked: \(.*\) dfd=(-?\d+)$", line["text"])
        got = re.match(r"got: \(.*\) ret=(-?\d+)$", line["text"])
        if asked and int(asked[1]) == -100:
            began[line["pid"]] = int(asked[1])
        if got and -4095 <= int(got[1]) < -2 and line["pid"] in began:
            found.append((int(line["pid"]), began.pop(line["pid"]), int(got[1])))
    return found


def negative_numbers(test):
    symbols = {line.split()[2] for line in pathlib.Path("/proc/kallsyms").read_text().splitlines()}
    name = next(n for n in OPENS if n in symbols)
    record(test, "--kprobe", f"p:asked {name} dfd=%di:s32", "--kprobe", f"r:got {name} ret=$retval:s64", "--sql",
           FAILED, "--as", "failed", "-b", "16M", "-o", "out.txt", during=opens)
    text = text_of(test)
    check("LOST" not in text, "events were lost")
    text = text[text.index("trace_event_clock_sync"):].split("\n", 1)[1]
    made = [tuple(map(int, of)) for of in re.findall(r": failed: who=(\d+) dfd=(-?\d+) ret=(-?\d+)$", text, re.M)]
    by_hand = failed_opens_by_hand(text)
    check(made == by_hand, f"the kernel has {made}\nby hand {by_hand}")
    check({ret for _, _, ret in made} >= {-20, -21} and len(made) >= 80, f"too few opens that failed: {made}")
    nothing_is_left()


def with_a_name(name):
    """two_of_cpu_0() of tasks that are called so."""
    before = pathlib.Path("/proc/self/comm").read_text().rstrip("\n")
    pathlib.Path("/proc/self/comm").write_text(name)
    try:
        two_of_cpu_0()
    finally:
        pathlib.Path("/proc/self/comm").write_text(before)


def texts_in_single_quotes(test):
    record(test, "-e", "sched:sched_waking", "-e", "sched:sched_switch", "--sql",
           WAKEUP + " WHERE end.next_comm = 'it''s > -1' && start.prio > -1", "--as", "wakeup", "-b", "16M", "-o",
           "out.txt", during=lambda: [with_a_name("it's > -1"), with_a_name("its > -1")])
    text = text_of(test)
    check("LOST" not in text, "events were lost")
    text = text[text.index("trace_event_clock_sync"):].split("\n", 1)[1]
    pids = tasks_of_cpu_0(text)
    by_hand = of_pids(wakeups_by_hand(text, lambda prio: True, lambda comm: comm == "it's > -1"), pids)
    by_kernel = of_pids(wakeups_of(text), pids)
    check(by_hand == by_kernel, f"the kernel has {by_kernel}\nby hand {by_hand}")
    check(len(by_kernel) >= 100 and "next_comm=its > -1 " in text, f"only {len(by_kernel)} wakeups")
    nothing_is_left()


def without_a_mount(test):
    """The private daemon has a mount that is attached nowhere, libtracefs one of its own."""
    hidden = ["unshare", "-m", "sh", "-c", f'umount {TRACEFS} && exec "$@"', "sh"]
    done = test.run("record", "-t", "2s", "--sql", WAKEUP, "--as", "wakeup", "-o", "out.txt", wrap=hidden)
    check(done.status == 0 and wakeups_of(text_of(test)), f"{done}")
    nothing_is_left()


def in_every_format(test):
    record(test, "--sql", WAKEUP, "--as", "wakeup", "-o", "out.traced", during=two_of_cpu_0)
    for name in ("out.json", "out.txt", "out.pftrace", "out.dat"):
        done = test.run("convert", "out.traced", name)
        check(done.status == 0, f"convert to {name}: {done}")
        data = (test.dir / name).read_bytes()
        check(b"wakeup" in data and b"lat" in data, f"{name} has no event")
        check(not re.search(rb"sql_[0-9a-f]{8}_", data), f"{name} has the kernel's name")
    trace = json.loads((test.dir / "out.json").read_text())
    check(WAKEUP in json.dumps(trace["otherData"]), "the head lacks the request")
    done = test.run("report", "counts", "out.traced")
    check(done.status == 0 and "wakeup" in done.out, f"report: {done}")


def the_kernels_text(test):
    """With both events recorded. Where an event is only matched, the ring has a discarded one, whose
    time the kernel's own reader does not add: docs/text-fidelity.md."""
    done = test.run("start", "--ring", "-b", "16M", "--name", test.name, "-e", "sched:sched_waking", "-e",
                    "sched:sched_switch", "--sql", WAKEUP, "--as", "wakeup")
    check(done.status == 0, f"start: {done}")
    two_of_cpu_0()
    instance = next(i for i in test.instances() if not i.endswith("-tasks"))
    kernels = re.sub(r"sql_[0-9a-f]{8}_", "", (INSTANCES / instance / "trace").read_text())
    done = test.run("stop", test.name, "-o", "out.txt")
    check(done.status == 0, f"stop: {done}")
    wanted, ours = ([without_name(line) for line in text.splitlines() if ": wakeup: " in line]
                    for text in (kernels, text_of(test)))
    check(len(wanted) >= 100, f"only {len(wanted)} events in\n{kernels[-1500:]}")
    check(ours[:len(wanted)] == wanted,
          next((f"{a}\nand the kernel says\n{b}" for a, b in zip(ours + ["nothing"], wanted) if a != b), ""))
    nothing_is_left()


def of_probes(test):
    # By default the text hashes the pointer that the probe prints as a hexadecimal number.
    record(test, *OPENED, "--sql", OPEN, "--as", "open_time", "--raw-addresses", "-o", "out.txt")
    text = text_of(test)
    opened = re.findall(r"-(\d+) .*: opened: .* path=(0x[0-9a-f]+)$", text, re.M)
    made = re.findall(r": open_time: who=(\d+) ret=(-?\d+) path=(\d+) ns=(\d+)$", text, re.M)
    check(len(made) >= 20, f"too few events in\n{text[-1500:]}")
    known = {(pid, int(path, 16)) for pid, path in opened}
    unknown = [m for m in made if (m[0], int(m[2])) not in known]
    lines = [line for line in text.splitlines() if "opened" in line and any(f"-{who} " in line for who, *_ in unknown)]
    check(not unknown, f"calls that nobody made: {unknown}\n" + "\n".join(lines[:20]))
    check(all(int(ns) < 10**10 for *_, ns in made), "a time of another clock")
    nothing_is_left()


def chained(test):
    record(test, "-e", "sched:sched_switch", "--sql", WAKEUP, "--as", "wakeup", "--sql", RUN, "--as", "run", "-o",
           "out.txt", during=two_of_cpu_0)
    text = text_of(test)
    runs = re.findall(r": run: pid=(\d+) waited=(\d+) ran=(\d+)$", text, re.M)
    check(len(runs) >= 100, f"too few runs in\n{text[-1500:]}")
    waits = {(pid, lat) for pid, _, lat in wakeups_of(text)}
    check(all((int(pid), int(waited)) in waits for pid, waited, _ in runs), "a run without its wakeup")
    nothing_is_left()


def two_at_once(test):
    """Two events of one name: each recording has its own only."""
    done = test.run("start", "--name", "first", "-e", "sched:sched_switch", "--sql",
                    WAKEUP + " WHERE start.prio > 999", "--as", "wakeup")
    check(done.status == 0, f"start: {done}")
    done = test.run("record", "-t", "100ms", "-e", "*:*wakeup*", "-e", "synthetic", "-o", "glob.txt")
    check(done.status == 1 and "synthetic" in done.err, f"a glob finds the other's: {done}")
    second = f"{test.name}-second"
    process = test.start("record", "--name", second, "--sql", WAKEUP, "--as", "wakeup", "-o", "out.txt")
    test.wait_for_recording(second)
    two_of_cpu_0()
    interrupt(process)
    done = test.finish(process)
    check(done.status == 0, f"record: {done}")
    check(len(wakeups_of(text_of(test))) >= 100, "the second has no events")
    settled("the second's event is gone", lambda: synthetic_events().count("\n") <= 1)
    check(synthetic_events().count("\n") == 1, f"the first's event is gone: {synthetic_events()}")
    done = test.run("stop", "first", "-o", "first.txt")
    check(done.status == 0, f"stop: {done}")
    check(not wakeups_of(text_of(test, "first.txt")), "the first has events of the second")
    nothing_is_left()


def kill_and_start_again(test):
    test.daemon.process.kill()
    test.daemon.process.wait()
    test.daemon.log.close()
    test.daemon = type(test.daemon)(test)
    check(test.run("status").status == 0, "the next daemon does not answer")
    nothing_is_left()


def killed(test):
    """The next start removes the event, its triggers and the instance of a killed recorder."""
    before = settings()
    done = test.run("start", "--name", "x", *OPENED, "--sql", WAKEUP, "--as", "wakeup", "--sql", RUN, "--as", "run",
                    "--sql", OPEN)
    check(done.status == 0, f"start: {done}")
    check(synthetic_events().count("\n") == 3, f"the kernel has {synthetic_events()}")
    kill_and_start_again(test)
    put_back(before)
    check(not [i for i in INSTANCES.iterdir() if i.name.endswith("-x")], "an instance is left")


def refusals(test):
    no_type = OPEN.replace("start.path", "start.common_flags AS path")
    for arguments, words in (
            (["--sql", "SELECT x FROM y"], ["event not found\n.*SELECT x FROM y\n +\\^\n"]),
            (["--sql", WAKEUP.replace("start.pid,", "start.pip,")], ["Field 'pip' not part of event", r"\^"]),
            (["--sql", WAKEUP + ' WHERE start.prio = "a"'], ["the kernel refuses the trigger", 'prio == "a"']),
            (["--sql", WAKEUP, "--as", 'a"b'], ["not a valid name"]),
            (["--sql", WAKEUP, "--as", "x" * 10000], ["not a valid name"]),
            (["--sql", WAKEUP, "--as", "é"], ["not a valid name"]),
            (["--sql", WAKEUP, "--as", "x", "--sql", WAKEUP, "--as", "x"], ["two events by SQL are called 'x'"]),
            (["--sql", "S" * 10000], ["more than 4000 bytes"]),
            (["--sql", "(" * 3900], ["syntax error", r"\^"]),
            (["--sql", WAKEUP + " WHERE start.prio = é"], ["not ASCII", r"\^"]),
            (["--sql", WAKEUP + """ WHERE start.comm = 'a "b'"""], [r"double quote\n.*\^", "write \\? in its place"]),
            (["--sql", WAKEUP + " WHERE start.prio > - 1"], [r"syntax error\n.*\^"]),
            (["--sql", WAKEUP + " WHERE start.prio > -1e3"], [r"no number of the kernel's\n.*\^", "decimal or 0x"]),
            (["--sql", "SELECT start.STACKTRACE AS s," + WAKEUP[len("SELECT"):]],
             [r"have no stacks\n.*\^", "--trigger 'EVENT: stacktrace"]),
            (["--sql", "SELECT end.next_pid FROM sched_waking AS start JOIN sched_switch AS end ON start.pid = "
              "end.next_pid"], ["selects nothing of the first event"]),
            (["--sql", "SELECT pid FROM sched_waking"], ["JOIN"]),
            (["--top-level", "--sql", WAKEUP], ["cannot be combined with --top-level"]),
            (["--cpus", "0", "--sql", WAKEUP], ["cannot be combined with --cpus"]),
            ([*OPENED, "--sql", no_type + ", start.path = end.ret"], ["not compatible", r"\^"])):
        before = settings()
        done = test.run("record", "-t", "100ms", *arguments, "-o", "out.txt")
        check(done.status == 1, f"{arguments}: {done}")
        for word in words:
            check(re.search(word, done.err, re.S), f"{arguments}: no {word} in {done}")
        check(len(done.err) < 3000, f"{len(done.err)} bytes of message")
        put_back(before)
        nothing_is_left()
        check(not (test.dir / "out.txt").exists(), "a file was written")
        check(not test.instances(), f"{arguments} left an instance behind")


def a_user(test):
    """Who may use the daemon may make events of open fields, and of no addresses."""
    test.daemon.socket.parent.chmod(0o755)
    test.daemon.socket.chmod(0o666)
    os.chown(test.dir, NOBODY, NOBODY)
    done = test.run("record", "-t", "1s", "--sql", WAKEUP, "--as", "wakeup", "-o", "out.txt", wrap=as_nobody(),
                    timeout=120)
    check(done.status == 0 and wakeups_of(text_of(test)), f"record: {done}")
    for sql in ("SELECT start.len FROM net_dev_queue AS start JOIN net_dev_xmit AS end ON start.skbaddr = end.skbaddr",
                "SELECT start.skbaddr, end.len FROM net_dev_queue AS start JOIN net_dev_xmit AS end ON start.len = "
                "end.len",
                "SELECT start.len FROM net_dev_queue AS start JOIN net_dev_xmit AS end ON start.len = end.len "
                "WHERE start.skbaddr > 5"):
        done = test.run("record", "-t", "1s", "--sql", sql, "-o", "no.txt", wrap=as_nobody())
        check(done.status == 1 and re.search("only root may (use|compare) 'skbaddr'", done.err), f"{sql}: {done}")
    nothing_is_left()


def doctor(test):
    done = test.run("doctor")
    check("histograms and synthetic events" in done.out, f"{done}")
    some_files()


def main():
    test = of_a_guest("sql")
    test.case("equal to brute force", equals_brute_force, daemon=True)
    test.case("filters", filtered, daemon=True)
    test.case("negative numbers", negative_numbers, daemon=True)
    test.case("texts in single quotes", texts_in_single_quotes, daemon=True)
    test.case("in every format", in_every_format, daemon=True)
    test.case("the kernel's text", the_kernels_text, daemon=True)
    test.case("of probes", of_probes, daemon=True)
    test.case("chained", chained, daemon=True)
    test.case("two recordings' of one name", two_at_once, daemon=True)
    test.case("killed", killed, daemon=True)
    test.case("refusals", refusals, daemon=True)
    test.case("a user", a_user, daemon=True)
    test.case("a private daemon", equals_brute_force)
    test.case("no tracefs is mounted", without_a_mount)
    test.case("doctor", doctor)
    test.end()


if __name__ == "__main__":
    main()
