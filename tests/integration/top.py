#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tracectl top: lines in a pipe. top_page.py has its page."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from harness import PATIENCE_S, Result, Test, as_nobody, check, in_namespace, need, settled

# A task that runs all the time, and one that makes many short system calls.
BURNER = "while :; do :; done"
CALLER = "while :; do read -r x </dev/null; done"


class Load:
    """Tasks with names of their own."""

    def __init__(self, test, **programs):
        self.processes = []
        for name, program in programs.items():
            shell = test.dir / name
            shutil.copy("/bin/dash", shell)
            self.processes.append(subprocess.Popen([shell, "-c", program], stdin=subprocess.DEVNULL))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


HEAD = re.compile(r"\d\d:\d\d:\d\d  ")


def windows(text):
    """The parts of --batch: for each window its first line, and its tables' rows by the first column."""
    parts = []
    for line in text.splitlines():
        if HEAD.match(line):
            parts.append((line, {}))
            rows = names = None
        elif not line:
            rows = None
        elif rows is None:
            rows = parts[-1][1].setdefault(line, {})
            names = None
        elif names is None:
            names = line.split()
        elif " rows are shown" not in line and ": delays are " not in line:
            # Columns are two spaces apart; a value and its unit one.
            cells = re.split(r"\s{2,}", line.strip())
            rows[cells[0]] = dict(zip(names, cells, strict=False))
    return parts


def seconds(text):
    number, unit = text.split()
    return float(number) * {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]


def batch(test):
    """Each window has the busy task, whose run goes on for seconds, and the calls of the other one."""
    with Load(test, burner=BURNER, caller=CALLER):
        r = test.run("top", "-q", "--batch", "--name", test.name, "-t", "7s", "--top", "1000")
    check(r.status == 0 and r.err == "", r)
    parts = windows(r.out)
    check(len(parts) >= 3, r)
    runtimes = [seconds(tables["sched"]["burner"]["runtime"]) for _, tables in parts if "burner" in tables.get("sched", {})]
    # Other tests may keep the CPUs busy, too.
    check(len(runtimes) >= len(parts) // 2 and sum(runtimes) > 0.1, runtimes)
    spans = [seconds(re.search(r", in ([\d.]+ \w+);", head)[1]) for head, _ in parts]
    # One that comes late makes the next one shorter.
    check(spans[0] > 0.8 and sum(spans[:-1]) > 0.8 * len(spans[:-1]), spans)
    unknown = 0
    for n, (head, tables) in enumerate(parts):
        cost = re.search(r"[\d,]+ events/s, (none|[\d,]+) lost.*; cost: (not known yet|recorder ([\d.]+) %, decoder ([\d.]+) %, "
                         r"terminal ([\d.]+) %)", head)
        check(cost and (n or cost[2] == "not known yet"), head)
        unknown += cost[2] == "not known yet"
        # The last page comes soon after the one before.
        check(all(float(share) <= 101 for share in cost.groups()[2:] if share), head)
    # The daemon may say it late.
    check(unknown < len(parts), r)
    # Events that come late are in the next window.
    counted = ["sched:sched_switch" in tables.get("counts", {}) for _, tables in parts[:-1]]
    check(sum(counted) >= len(counted) // 2, r)
    check(any("openat" in tables.get("syscalls", {}) for _, tables in parts), r)
    check({name for _, tables in parts for name in tables} == {"sched", "irq", "syscalls", "counts"}, r)
    check(test.files() == ["burner", "caller"], f"left {test.files()}")


def chosen(test):
    """Only that table, of that event; without a daemon and by one that listens, for another user's sake."""
    with Load(test, burner=BURNER):
        r = test.run("top", "-q", "--batch", "--name", test.name, "-t", "2s", "--by", "comm", "--sort", "delay",
                     "-e", "sched", "sched")
    check(r.status == 0, r)
    for _, tables in windows(r.out):
        check(set(tables) <= {"sched"} and all("comm" in row for row in tables.get("sched", {}).values()), tables)


def private_first(test):
    """Root's needs no daemon, even if one listens: here nobody would answer at its socket."""
    folder = test.build_option("run_dir")
    listen = f"import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.bind('{folder}/traced.sock'); s.listen()\n"
    listen += "s.set_inheritable(True); os.execv(sys.argv[1], sys.argv[1:])"
    command = [test.tracectl, "top", "-q", "--batch", "-t", "2s", "-e", "sched", "sched"]
    r = subprocess.run([*in_namespace(f"mount -t tmpfs nodev /run && mkdir -p {folder}"), sys.executable, "-c", listen, *command],
                       cwd=test.dir, env=test.environment(), capture_output=True, timeout=PATIENCE_S, check=False)
    r = Result(r.returncode, r.stdout, r.stderr)
    check(r.status == 0 and r.err == "" and "events/s" in r.out, r)


def without_a_program(test):
    """Where the program traced is not found, root's uses a daemon that listens."""
    sbin = pathlib.Path(test.build_option("prefix"), test.build_option("sbindir"), "traced")
    need(not sbin.exists(), f"{sbin} is installed")
    folder = test.build_option("run_dir")
    alone = test.dir / "alone" / "tracectl"
    alone.parent.mkdir()
    shutil.copy(test.tracectl, alone)
    prepare = f"mount -t tmpfs nodev /run && mkdir -p {folder}"
    env = test.environment()
    env.pop("TRACED_DAEMON")
    for more, status, words in ((f" && ln -s {test.daemon.socket} {folder}/traced.sock", 0, b""),
                                ("", 1, b"the program traced was not found")):
        r = subprocess.run([*in_namespace(prepare + more), alone, "top", "--batch", "-t", "2s", "-e", "sched", "sched"],
                           cwd=test.dir, env=env, capture_output=True, timeout=PATIENCE_S, check=False)
        check(r.returncode == status and words in r.stderr and (b"events/s" in r.stdout) == (status == 0), r)


def ends(test):
    """Ctrl-C ends it in order, and so does a reader that leaves."""
    process = test.start("top", "-q", "--batch", "--name", test.name)
    first = process.stdout.readline()
    check(b"events/s" in first, first)
    process.send_signal(signal.SIGINT)
    r = test.finish(process)
    check(r.status == 0 and r.err == "", r)
    # No rate of an event alone, and none of a time that nobody looked at.
    never = ("--batch", "--name", test.name, "-e", "sched:sched_process_hang")
    r = test.run("top", "-q", *never, "-t", "3s")
    check(r.status == 0 and re.match(r"[0-9:]+  1 event, none lost; cost", r.out) and "events/s" not in r.out, r)
    process = test.start("top", *never)
    settled("it records", lambda: test.is_on(test.name))
    process.send_signal(signal.SIGINT)
    r = test.finish(process)
    check(r.status == 0 and r.out == "" and "it ended before its first table" in r.err, r)
    process = test.start("top", "-q", "--batch", "--name", test.name)
    process.stdout.readline()
    process.stdout.close()
    process.wait(PATIENCE_S)
    process.stderr.close()
    with open("/dev/full", "wb") as full:
        r = subprocess.run(test.arguments("top", "-q", "--batch", "--name", test.name, "-t", "5s"), cwd=test.dir,
                           env=test.environment(), stdout=full, stderr=subprocess.PIPE, check=False)
    check(r.returncode == 1 and r.stderr.count(b"No space left") == 1 and b"reader" not in r.stderr, r)


def of_a_session(test):
    """Another's recording from now on, and that stays whole."""
    name = f"{test.name}-other"
    r = test.run("start", "-q", "--name", name, "-e", "sched")
    check(r.status == 0, r)
    subprocess.run([shutil.copy("/bin/true", test.dir / "before-top")], check=True)
    for _ in range(2):
        began = time.monotonic()
        with Load(test, burner=BURNER):
            r = test.run("top", "-q", "--batch", "--session", name, "-t", "8s", "--top", "1000")
        took = time.monotonic() - began
        check(r.status == 0 and r.err == "", r)
        parts = windows(r.out)
        check(len(parts) >= 2, r)
        rows = [set(tables.get("sched", {})) for _, tables in parts]
        check(sum("burner" in names for names in rows) >= len(parts) // 2, rows)
        check(not any("before-top" in names for names in rows), rows)
        check(all("syscalls" not in tables for _, tables in parts), [list(tables) for _, tables in parts])
        spans = [seconds(re.search(r", in ([\d.]+ \w+);", head)[1]) for head, _ in parts]
        # One that comes late makes the next one shorter.
        check(spans[0] > 0.8 and sum(spans[:-1]) > 0.8 * len(spans[:-1]) and sum(spans) < took + 0.5, f"{took} s: {spans}")
    # The first window is whole only after more than a second, and later on a busy machine.
    for time_ in ("10ms", "500ms", "1500ms", "2s"):
        for _ in range(5):
            with Load(test, burner=BURNER):
                r = test.run("top", "--batch", "--session", name, "-t", time_, "--top", "1000")
            has = any("burner" in tables.get("sched", {}) for _, tables in windows(r.out))
            check(r.status == 0 and bool(r.out) == (not r.err) and "came within -t" in (r.err or "came within -t"), f"{time_}: {r}")
            if has or time_ not in ("1500ms", "2s"):
                break
        else:
            check(False, f"{time_}: {r}")
    check(name in test.run("list").out, "the session ended")
    # A follower that is not read does not matter.
    process = test.start("top", "-q", "--batch", "--session", name)
    process.stdout.readline()
    process.send_signal(signal.SIGSTOP)
    try:
        r = test.run("report", "sched", "--session", name, "--json", "--by", "comm")
        check(r.status == 0 and r.err == "", r)
        check("before-top" in {row["comm"] for row in json.loads(r.out)["reports"][0]["rows"]}, r)
        r = test.run("stop", "-q", name, "-o", "all.traced")
        check(r.status == 0 and r.err == "", r)
    finally:
        process.send_signal(signal.SIGCONT)
    r = test.finish(process)
    check(r.status == 0 and r.err == "", r)
    r = test.run("report", "sched", "--json", "--by", "comm", "all.traced")
    check(r.status == 0 and r.err == "", r)
    rows = {row["comm"]: row["runs"] for row in json.loads(r.out)["reports"][0]["rows"]}
    check("burner" in rows and "before-top" in rows, rows)


def of_a_quiet_session(test):
    """Its rings are looked at more and more rarely: after nine seconds, the next time is six later or more. Meanwhile, another
    one is shown."""
    name = f"{test.name}-quiet"
    r = test.run("start", "-q", "--name", name, "-e", "printk:console")
    check(r.status == 0, r)
    until = time.monotonic() + 9.5
    of_a_session(test)
    # A busy machine may take longer, but not each time.
    for _ in range(3):
        time.sleep(max(0, until - time.monotonic()))
        began = time.monotonic()
        process = test.start("top", "-q", "--batch", "--session", name)
        first, took = process.stdout.readline(), time.monotonic() - began
        process.send_signal(signal.SIGINT)
        r = test.finish(process)
        check(r.status == 0 and b" event" in first, f"{took} s: {first} {r}")
        if took < 5:
            break
        until = time.monotonic() + 9.5
    check(took < 5, f"{took} s")
    check(test.run("cancel", name).status == 0, "cancel")


def session_refusals(test):
    name = f"{test.name}-ring"
    check(test.run("start", "-q", "--ring", "--name", name, "-e", "sched").status == 0, "start")
    for arguments, status, says in (
            (["--session", name], 1, f'session "{name}" is a flight recorder: following it would take its events out of the ring\n'
             f"  hint: tracectl report --session {name} shows what the ring has, and empties it; "
             "tracectl top without --session records events of its own"),
            (["--session", "none-such"], 1, "there is no session"),
            (["--session", name, "-e", "irq"], 2, "exclude each other"),
            (["--session", name, "-b", "1M"], 2, "--session and --buffer exclude each other"),
            (["--session", name, "--max-cpu", "2%"], 2, "--session and --max-cpu exclude each other")):
        r = test.run("top", "-q", "--batch", *arguments)
        check(r.status == status and says in r.err and not r.out, f"{arguments}: {r}")
    test.daemon.socket.parent.chmod(0o755)
    test.daemon.socket.chmod(0o666)
    check(test.run("start", "-q", "--name", f"{name}-root", "-e", "sched").status == 0, "start")
    r = test.run("top", "-q", "--batch", "--session", f"{name}-root", wrap=as_nobody())
    check(r.status == 1 and "is another user's" in r.err and not r.out, r)
    test.dir.chmod(0o1777)
    r = test.run("report", "sched", "--session", f"{name}-root", wrap=as_nobody())
    check(r.status == 1 and "is another user's" in r.err and not r.out, r)
    check(test.run("cancel", "-q", f"{name}-root").status == 0, "cancel")
    process = test.start("record", "-q", "--stream", "--name", f"{name}-stream", "-e", "sched", "-o", "x.json")
    settled("it records", lambda: test.run("mark", "x", "--name", f"{name}-stream").status == 0)
    for command in (["top", "--batch"], ["report", "sched"]):
        r = test.run(*command, "--session", f"{name}-stream")
        check(r.status == 1 and "is being written while it records" in r.err and not r.out, r)
    process.send_signal(signal.SIGINT)
    check(test.finish(process).status == 0, "the stream")
    check(test.run("cancel", "-q", name).status == 0, "cancel")


def session_cancelled(test):
    """Its owner and a watcher are told."""
    name = f"{test.name}-gone"
    owner = test.start("record", "-q", "--name", name, "-e", "sched", "-o", "x.json")
    test.wait_for_recording(name)
    watcher = test.start("top", "--batch", "--session", name)
    watcher.stdout.readline()
    check(test.run("cancel", "-q", name).status == 0, "cancel")
    r = test.finish(watcher)
    check(r.status == 0 and f"session {name} has ended" in r.err, r)
    r = test.finish(owner)
    check(r.status == 1 and r.err == f"tracectl: {name}: cancelled: nothing was written\n", r)
    check(test.files() == [], test.files())


def after_load(test, *arguments):
    """Windows of a task that has ended: from the first one with a task that began later. How late a window comes depends on
    the machine's load, and so does how many of them a task is in."""
    process = test.start("top", "-q", "--batch", "--name", test.name, "-e", "sched", "--top", "1000", *arguments, "sched")
    text = process.stdout.readline().decode()
    with Load(test, burner=BURNER):
        time.sleep(1.5)
    with Load(test, later=BURNER):
        parts, first = [], None
        while first is None or len(parts) < first + 5:
            line = process.stdout.readline().decode()
            check(line, f"it ended: {text}")
            text += line
            # With the head of a window, those before it are complete.
            if not HEAD.match(line):
                continue
            parts = windows(text)
            first = next((i for i, (_, tables) in enumerate(parts[:-1]) if "later" in tables.get("sched", {})), None)
    process.send_signal(signal.SIGINT)
    r = test.finish(process)
    check(r.status == 0 and r.err == "", r)
    tasks = [tables.get("sched", {}) for _, tables in parts[:-1]]
    return any("burner" in rows for rows in tasks[:first + 1]), [rows.get("burner") for rows in tasks[first:first + 4]]


def decay(test):
    """A task that worked a moment ago is still seen, with less each second."""
    was_seen, rows = after_load(test)
    # It may have ended in the window in which the other one began.
    check(was_seen and rows[1:] == [None] * 3, rows)
    _, rows = after_load(test, "--decay")
    check(all(rows), rows)
    runtimes = [seconds(row["runtime"]) for row in rows]
    check(all(b < a for a, b in zip(runtimes, runtimes[1:])) and runtimes[-1] > 0, runtimes)
    # The largest delay stays.
    check(len({row["delay-max"] for row in rows}) == 1, rows)


def children_of(pid):
    return subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True,
                          check=False).stdout.split()


def decoder_of(process):
    decoders = [pid for child in children_of(process.pid) for pid in children_of(child)
                if open(f"/proc/{pid}/comm", encoding="utf-8").read() == "tracectl-decode\n"]
    check(len(decoders) == 1, decoders)
    return int(decoders[0])


def decoder_dies(test):
    """Root's decoder is another user's process. If it is killed, top says so, and leaves nothing."""
    spool = test.daemon.spool if test.daemon else test.top / "spool"
    before = os.listdir(spool)
    process = test.start("top", "-q", "--batch", "--name", test.name)
    process.stdout.readline()
    decoder = decoder_of(process)
    status = open(f"/proc/{decoder}/status", encoding="utf-8").read()
    check(re.search(r"^Uid:(\t[1-9]\d*){4}$", status, re.M), status)
    # The daemon notices it, too, and may tell top first.
    process.send_signal(signal.SIGSTOP)
    os.kill(decoder, signal.SIGKILL)
    time.sleep(0.5)
    process.send_signal(signal.SIGCONT)
    r = test.finish(process)
    check(r.status == 1 and "was killed" in r.err, r)
    settled("the recording is discarded", lambda: os.listdir(spool) == before)


def decoder_stalls(test):
    """A private daemon writes into memory what the decoder reads: that has a bound, and later all goes on."""
    process = test.start("top", "-q", "--batch", "--name", test.name, "-e", "raw_syscalls", "syscalls")
    process.stdout.readline()
    check(os.listdir(test.top / "spool") == [], "there is a spool")
    decoder = decoder_of(process)
    files = [f"/proc/{decoder}/fd/{fd}" for fd in os.listdir(f"/proc/{decoder}/fd")]
    file = next(file for file in files if "memfd:tracectl-top" in os.readlink(file))
    os.kill(decoder, signal.SIGSTOP)
    with Load(test, caller="exec dd if=/dev/zero of=/dev/null bs=1"):
        settled("it is full", lambda: os.stat(file).st_blocks * 512 > 256 << 20, seconds=120)
        time.sleep(2)
        bytes_then = os.stat(file).st_blocks * 512
    os.kill(decoder, signal.SIGCONT)
    check(bytes_then < 320 << 20, bytes_then)
    # The first window after the pause has the loss.
    line = b""
    while not re.search(rb"events/s, [\d,]+ lost", line):
        line = process.stdout.readline()
        check(line, "it ended")
    settled("space is freed", lambda: os.stat(file).st_blocks * 512 < 192 << 20)
    process.send_signal(signal.SIGINT)
    r = test.finish(process)
    check(r.status == 0, r)


def dies(test):
    """If it is killed, its decoder and its recording go, too."""
    process = test.start("top", "-q", "--batch", "--name", test.name)
    process.stdout.readline()
    children = children_of(process.pid)
    check(children, "it has no decoder")
    process.kill()
    process.wait()
    process.stdout.close()
    process.stderr.close()
    settled("its processes end", lambda: not any(os.path.exists(f"/proc/{pid}") for pid in children))
    settled("its instances go", lambda: not test.instances())


def refusals(test):
    for arguments, status, says in (
            (["nothing"], 2, "top has no table 'nothing'"),
            (["sched,counts"], 2, "and counts, with spaces between them"),
            (["timehist"], 2, "top has no table 'timehist'"),
            (["sched", "--by", "color"], 2, "it is made by"),
            (["--by", "color"], 2, "they are made by thread, comm, process, cpu, irq, call\n"),
            (["-t", "3s", "--sort", "color"], 1, "no table has a column 'color'"),
            (["-e", "nosuch:event", "-t", "1s"], 1, "nosuch:event")):
        r = test.run("top", "-q", "--batch", "--name", test.name, *arguments)
        check(r.status == status and says in r.err and not r.out, f"{arguments}: {r}")


def main():
    test = Test("top")
    test.case("batch", batch)
    test.case("chosen", chosen)
    test.case("chosen, with a daemon", chosen, daemon=True)
    test.case("private first", private_first)
    test.case("without a program", without_a_program, daemon=True)
    test.case("ends", ends)
    test.case("dies", dies)
    test.case("decoder dies", decoder_dies)
    test.case("decoder dies, with a daemon", decoder_dies, daemon=True)
    test.case("decoder stalls", decoder_stalls)
    test.case("ends, with a daemon", ends, daemon=True)
    test.case("batch, with a daemon", batch, daemon=True)
    test.case("refusals", refusals)
    test.case("decay", decay)
    test.case("of a session, and of a quiet one", of_a_quiet_session, daemon=True)
    test.case("session refusals", session_refusals, daemon=True)
    test.case("session cancelled", session_cancelled, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
