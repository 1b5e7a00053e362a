#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Flight recorders that take a snapshot when a condition is met: what fires and what does not, who
runs the hook, what is kept, and that nothing is left."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from harness import INSTANCES, NOBODY, Daemon, Test, check, need, settled
from report_sched import DELAYS, check_rounds, report
from stream import exporter_of

GROUP = 23456
ROUNDS = 50
BUSY_MS = 5
LIMIT_NS = 4_000_000
ALL = ("--at-most", "1000/1s", "--keep", "1000")


def member():
    """A user who is not root, in the group that may use the socket."""
    return ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--groups", str(GROUP)]


def followers(test):
    """The processes of tracectl that follow our daemon's sessions: (pid, uid)."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if ((path / "comm").read_text().strip() == "tracectl-watch" and
                    str(test.daemon.socket).encode() in (path / "cmdline").read_bytes()):
                found.append((int(path.name), path.stat().st_uid))
        except OSError:
            pass
    return found


def nothing_is_left(test):
    settled("the follower ends", lambda: not followers(test))
    settled("all sessions end", lambda: not json.loads(test.run("status", "--json").out)["sessions"])
    test.check_no_instances()
    settled("the spool is empty", lambda: not list(test.daemon.spool.iterdir()))


def start(test, *arguments, wrap=(), folder="out"):
    r = test.run("start", "--name", test.name, "--ring", "-e", "sched", "-o", folder, *arguments, wrap=wrap)
    check(r.status == 0 and r.out.strip() == test.name, r)
    return test.dir / folder


def log(test, folder):
    return (folder / f"{test.name}.log").read_text()


def fired(test, folder):
    """(condition, rest) of each line about a firing."""
    return re.findall(r"Z trigger: (.*?): (.*)", log(test, folder))


def snapshots(folder):
    return sorted(p for p in folder.iterdir() if p.name.endswith((".json", ".txt")))


def wait_for(test, folder, count=1):
    settled(f"{count} snapshots", lambda: log(test, folder).count(" wrote ") >= count)


def end(test, verb="cancel"):
    r = test.run(verb, test.name)
    check(r.status == 0, r)
    nothing_is_left(test)


def delays(test):
    """Each injected delay fires, and nothing else does; each has a mark in a snapshot."""
    (test.dir / "delays.py").write_text(DELAYS)
    folder = start(test, "--on", "sched.delay > 4ms for comm=delayed", "--on", "sched.delay > 4ms for comm=undelayed",
                   "--on", "sched.delay > 1h", "--format", "txt", "-b", "16M", *ALL)
    r = test.run("status", test.name)
    check("sched; on sched.delay > 4ms for comm=delayed; on " in r.out, r)
    beside = test.start("record", "-q", "--name", test.name + "-beside", "-e", "sched", "-b", "16M", "-o", "x.traced",
                        "--clock", "mono", "--", sys.executable, str(test.dir / "delays.py"), str(BUSY_MS), str(ROUNDS))
    r = test.finish(beside)
    check(r.status == 0, r)
    said = r.out
    r = test.run("report", "timehist", "--json", "x.traced")
    whole = json.loads(r.out)
    need(not whole["lost"], "the recording beside lost events")
    rows = sorted((row for row in report(test, "timehist", "x.traced")["rows"] if row["task"] == "delayed"),
                  key=lambda row: row["at_ns"])
    # Before the first round the task had another name.
    early = 0
    while rows and rows[0]["waker"] != "delayer":
        early += (rows.pop(0)["delay_ns"] or 0) > LIMIT_NS
    wanted = [row for row in rows if (row["delay_ns"] or 0) > LIMIT_NS]
    check_rounds(test, "x.traced", wanted[0]["tid"], said,
                 [(row["at_ns"] - row["run_ns"] - row["delay_ns"], row["at_ns"] - row["run_ns"]) for row in wanted])
    settled("all delays fire", lambda: len(fired(test, folder)) >= len(wanted))
    wait_for(test, folder)
    # A firing that is known late is in an earlier snapshot, and no other one follows.
    settled("the last snapshot", lambda: all(", in " in line for line in log(test, folder).rsplit(" wrote ", 1)[1].splitlines()
                                             if "Z trigger: " in line))
    found = fired(test, folder)
    check({condition for condition, _ in found} == {"sched.delay > 4ms for comm=delayed"}, found)
    # It may have had its name already.
    check(len(wanted) <= len(found) <= len(wanted) + early, f"{len(found)} of {len(wanted)} fired: {log(test, folder)}")
    for _, what in found:
        tid, value = re.match(r"delayed \((\d+)\) on CPU \d+, ([\d.]+) ms at [\d.]+(?:, in \S+)?$", what).groups()
        check(float(value) > LIMIT_NS / 10**6 and int(tid) in {row["tid"] for row in wanted}, what)
    check(all(re.fullmatch(re.escape(test.name) + r"-\d{8}T\d{6}\.\d{3}Z-sched\.delay\.txt", p.name)
              for p in snapshots(folder)), snapshots(folder))
    text = "".join(p.read_text(errors="replace") for p in snapshots(folder))
    for condition, what in found:
        check(", in " in what or f"trigger: {condition}: {what}\n" in text, f"no mark: {what}")
    end(test)


def frequent(test):
    """A snapshot has the event that it is named by. A firing that is known later than the snapshot that has its event is
    no reason for another one."""
    names = ("sched_process_fork", "sched_process_exec", "sched_process_exit")
    folder = start(test, *(word for name in names for word in ("--on", f"event sched:{name}")), "-b", "4M",
                   "--format", "txt", "--after", "1ms", *ALL)
    until = time.monotonic() + 8
    while time.monotonic() < until:
        subprocess.run(["/bin/true"], check=True)
        time.sleep(0.05)
    wait_for(test, folder, 3)
    end(test)
    texts = {path.name: path.read_text(errors="replace") for path in snapshots(folder)}
    named, late, after = None, 0, False
    for line in log(test, folder).splitlines():
        if found := re.search(r"Z trigger: event sched:\w+: (\w+: .*) \(\d+\) on CPU \d+ at [\d.]+(?:, in (\S+))?$", line):
            # The two sessions read the clock one after the other.
            has = [name for name, text in texts.items() if f": {found[1]}\n" in text]
            if found[2]:
                late += 1
                check(has and has[0] <= found[2], f"{has} have: {line}")
            elif not named:
                named = has, line
        elif "the snapshot begins after what met the condition" in line:
            # The event was the last one in the snapshot before: a session's clock told its time a moment later.
            after = True
        elif found := re.search(r" wrote .*/(\S+)$", line):
            check((found[1] in named[0]) != after, f"{found[1]} is named by: {named}")
            named, after = None, False
    check(late, "nothing is known late")
    check("--merge-clock" not in log(test, folder), log(test, folder))


def allow_hooks(test, script):
    """A daemon that allows a hook."""
    hooks = test.dir / "hooks"
    hooks.mkdir(mode=0o755)
    (hooks / "note").write_text("#!/bin/sh\n" + script)
    (hooks / "note").chmod(0o755)
    conf = test.dir / "daemon" / "hooks.conf"
    conf.write_text(f"[daemon]\nspare = no\nhooks = {hooks}\n")
    test.daemon.stop()
    test.daemon = Daemon(test, "--config", conf)
    return hooks


def user(test):
    """The follower, the files and the hook are the user's, who is not root."""
    allow_hooks(test, 'echo "$(id -u) $(id -G) $TRACED_SESSION $TRACED_CONDITION" >"$1.hook"\n'
                      'test "$TRACED_FILE" = "$1" && test -s "$1" && echo whole >>"$1.hook"\n')
    test.daemon.socket.parent.chmod(0o755)
    os.chown(test.daemon.socket, 0, GROUP)
    test.daemon.socket.chmod(0o660)
    os.chown(test.dir, NOBODY, NOBODY)
    condition = 'event sched:sched_process_exit if comm == "trigger-me"'
    folder = start(test, "--on", condition, "--hook", "note", "--after", "100ms", wrap=member())
    check([uid for _, uid in followers(test)] == [NOBODY], followers(test))
    fire_exit(test)
    wait_for(test, folder)
    snapshot, = snapshots(folder)
    hook = pathlib.Path(f"{snapshot}.hook")
    settled("the hook", lambda: hook.exists() and hook.read_text().count("\n") == 2)
    check(hook.read_text() == f"{NOBODY} {NOBODY} {GROUP} {test.name} {condition}\nwhole\n", hook.read_text())
    for path in (folder, snapshot, hook, folder / f"{test.name}.log"):
        check(path.stat().st_uid == NOBODY, f"{path} is not theirs")
    check("sched_process_exit-" not in snapshot.name and snapshot.name.endswith("Z-event-sched_process_exit.json"),
          snapshot.name)
    found = fired(test, folder)
    check([c for c, _ in found] == [condition], log(test, folder))
    # Marked where it happened, and again in the kernel's text when that was known.
    trace = json.loads(snapshot.read_text())
    marks = [e["ts"] for e in trace["traceEvents"] if e["name"] == f"trigger: {condition}: {found[0][1]}"]
    exits = re.findall(r"trigger-me-\d+ .* (\d+\.\d+): sched_process_exit: comm=trigger-me ", trace["systemTraceEvents"])
    check(len(exits) == 1, [l for l in trace["systemTraceEvents"].splitlines() if "sched_process_exit" in l][:9])
    check(any(abs(ts - float(exits[0]) * 1e6) < 1000 for ts in marks), f"{marks}: not at {exits}")
    check(f"|trigger: {condition}: " in trace["systemTraceEvents"],
          [l for l in trace["systemTraceEvents"].splitlines() if "trigger:" in l])
    r = test.run("cancel", test.name, wrap=member())
    check(r.status == 0, r)
    nothing_is_left(test)


def fire_exit(test):
    """Ends a process of a name, and others."""
    (test.dir / "exits.py").write_text(
        "import os\nfor name in ('other', 'trigger-me', 'trigger-not'):\n"
        "    if not os.fork():\n        open('/proc/self/comm', 'w').write(name)\n        os._exit(0)\n    os.wait()\n")
    subprocess.run([sys.executable, test.dir / "exits.py"], check=True)


def slow_hook(test):
    """One hook at a time. One that runs when the session ends may finish."""
    allow_hooks(test, 'echo "$1"; while ! test -e "$(dirname "$1")/go"; do sleep 0.05; done; echo >"$1.done"; exit 7\n')
    folder = start(test, "--on", 'event sched:sched_process_exit if comm == "trigger-me"', "--hook", "note",
                   "--after", "1ms", *ALL)
    for count in (1, 2):
        fire_exit(test)
        wait_for(test, folder, count)
    settled("the second is refused", lambda: "the one before still runs" in log(test, folder))
    r = test.run("cancel", test.name)
    check(r.status == 0, r)
    settled("the session has ended", lambda: " has ended" in log(test, folder))
    first = snapshots(folder)[0]
    check(f"{first}\n" in log(test, folder), "what it prints is not in the log")
    check(len(followers(test)) == 1 and not list(folder.glob("*.done")), "the hook has ended")
    (folder / "go").write_text("")
    nothing_is_left(test)
    check(list(folder.glob("*.done")) == [folder / (first.name + ".done")], list(folder.iterdir()))
    check("the hook ended with exit status 7" in log(test, folder), log(test, folder))


def left_behind(test):
    """What a hook leaves running is part of it: while that runs, no other one starts."""
    allow_hooks(test, '(setsid sh -c "while ! test -e $(dirname "$1")/go; do sleep 0.05; done" &)\n')
    folder = start(test, "--on", 'event sched:sched_process_exit if comm == "trigger-me"', "--hook", "note",
                   "--after", "1ms", *ALL)
    for count in (1, 2):
        fire_exit(test)
        wait_for(test, folder, count)
    settled("the second is refused", lambda: "the one before still runs" in log(test, folder))
    check(test.run("cancel", test.name).status == 0, "cancel")
    (folder / "go").write_text("")
    nothing_is_left(test)


def slices(test):
    folder = start(test, "--on", 'mark "long frame" > 5s', "--on", "softirq.max > 1us", "--after", "100ms", *ALL)
    # Two commands may take seconds. Marks of the session are for its conditions, too.
    for pause, session in ((0, ()), (5.2, ()), (5.2, ("--name", test.name))):
        for verb in ("--begin", "--end"):
            r = test.run("mark", verb, "long frame", *session)
            check(r.status == 0, r)
            time.sleep(pause if verb == "--begin" else 0)
    settled("both fire", lambda: len({c for c, _ in fired(test, folder)}) == 2)
    settled("both marks fire", lambda: sum(c.startswith("mark") for c, _ in fired(test, folder)) == 2)
    found = [what for c, what in fired(test, folder) if c.startswith("mark")]
    check(all(re.match(r"long frame \(\d+\), \d", what) for what in found), found)
    wait_for(test, folder)
    end(test)


def interrupts(test):
    """Each handler that the recording beside has, and that ran longer, fires. A disk's interrupts are common."""
    folder = start(test, "--on", "irq.max > 1us", "--after", "100ms", *ALL)
    r = test.run("record", "-q", "--name", test.name + "-beside", "-e", "irq:irq_handler_entry", "-e", "irq:irq_handler_exit",
                 "--clock", "boot", "-o", "x.txt", "--", "sh", "-c",
                 "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i >f; sync f; sleep 0.1; done")
    check(r.status == 0, r)
    begun, wanted = {}, []
    for cpu, s, us, edge, rest in re.findall(r"\[(\d+)\] \S+ +(\d+)\.(\d{6}): irq_handler_(entry|exit): (.*)",
                                            (test.dir / "x.txt").read_text()):
        ts = int(s) * 10**6 + int(us)
        if edge == "entry":
            begun[cpu] = ts, rest.partition("name=")[2]
        elif cpu in begun:
            since, name = begun.pop(cpu)
            # The text has whole microseconds.
            if ts - since > 2:
                wanted.append((ts, int(cpu), name))
    need(wanted, "no interrupt of this machine took longer")
    known = []

    def all_fire():
        known[:] = [(int(us), int(cpu), name) for name, cpu, us in
                    ((name, cpu, at.replace(".", "")) for c, what in fired(test, folder)
                     for name, cpu, at in re.findall(r"^(.*) on CPU (\d+), [\d.]+ ms at ([\d.]+\d)", what))]
        return len(known) >= 100 or all(any(abs(us - ts) <= 1 and (on, called) == (cpu, name) for us, on, called in known)
                                        for ts, cpu, name in wanted)

    settled("all fire", all_fire)
    end(test)


def limits(test):
    """--at-most, --keep, --max-size and --before."""
    other = test.dir / "out"
    other.mkdir()
    keep = [other / "notes.json", other / f"{test.name}-2026.json"]
    for path in keep:
        path.write_text("[]")
    folder = start(test, "--on", 'event sched:sched_process_exit if comm == "trigger-me"', "--after", "1ms",
                   "--on", "mark other > 1us", "--at-most", "3/1h", "--keep", "2", "--before", "1h", "--max-size", "1G")
    for count in range(1, 4):
        fire_exit(test)
        wait_for(test, folder, count)
    fire_exit(test)
    settled("two are kept", lambda: len(snapshots(folder)) == 4)
    check(set(keep) < set(snapshots(folder)), "another's file was removed")
    check("spans only" in log(test, folder), log(test, folder))
    # The fourth was one too many.
    time.sleep(3)
    check(log(test, folder).count(" wrote ") == 3, log(test, folder))
    # Another condition has its own limit.
    for verb in ("--begin", "--end"):
        check(test.run("mark", verb, "other").status == 0, verb)
    wait_for(test, folder, 4)
    check("without a snapshot (--at-most): 1\n" in log(test, folder), log(test, folder))
    end(test)
    # The log counts firings behind the last snapshot at its end. Those that the follower does not know by then are lost.
    for pause in (3, 10, 30):
        folder = start(test, "--on", 'event sched:sched_process_exit if comm == "trigger-me"', "--after", "1ms", "--at-most", "1/1h",
                       folder=f"after{pause}")
        fire_exit(test)
        wait_for(test, folder)
        fire_exit(test)
        fire_exit(test)
        time.sleep(pause)
        end(test)
        if "without a snapshot (--at-most): 2\n" in log(test, folder):
            break
    check("without a snapshot (--at-most): 2\n" in log(test, folder), log(test, folder))
    folder = start(test, "--on", 'event sched:sched_process_exit if comm == "trigger-me"', "--after", "1ms",
                   "--max-size", "1K", *ALL)
    fire_exit(test)
    wait_for(test, folder, 5)
    settled("the newest is kept", lambda: len(snapshots(folder)) == 3)
    end(test)


def overrun(name):
    """Events that the kernel has overwritten in the session's instance."""
    return sum(int(re.search(r"overrun: (\d+)", p.read_text())[1])
               for i in INSTANCES.glob(f"traced-*{name}*") if not i.name.endswith("-tasks")
               for p in i.glob("per_cpu/cpu*/stats"))


def small_spool(test):
    conf = test.dir / "daemon" / "small.conf"
    conf.write_text("[daemon]\nspare = no\n[limits]\nspool_max = 1M\n[defaults]\nbuffer_size = 64K\n")
    test.daemon.stop()
    test.daemon = Daemon(test, "--config", conf)


def losses_fire(test, folder, condition):
    """Nobody reads the spool until events are overwritten."""
    exporter = exporter_of(test)
    os.kill(exporter, signal.SIGSTOP)
    load = subprocess.Popen(["dd", "if=/dev/zero", "of=/dev/null", "bs=1"], stderr=subprocess.DEVNULL)
    try:
        settled("events are overwritten", lambda: overrun(f"{test.name}-watch") > 1000)
    finally:
        load.kill()
        load.wait()
        os.kill(exporter, signal.SIGCONT)
    settled("losses fire", lambda: any(c == condition for c, _ in fired(test, folder)))
    found = [what for c, what in fired(test, folder) if c == condition]
    check(re.match(r"\d+ events at ", found[0]), found)


def lost(test):
    """Losses of the events that conditions need fire."""
    small_spool(test)
    folder = start(test, "--on", "event raw_syscalls:sys_enter if id == 99999", "--on", "event raw_syscalls:sys_exit",
                   "--on", "lost > 10", "--after", "100ms", *ALL)
    losses_fire(test, folder, "lost > 10")
    check(not any("99999" in c for c, _ in fired(test, folder)), "the kernel does not filter")
    end(test)


def lost_alone(test):
    """The recorder's events are streamed, as the recorder itself has no losses."""
    small_spool(test)
    folder = start(test, "-e", "raw_syscalls", "-f", "id != 99999", "-b", "64K", "--on", "lost > 0", "--after", "100ms", *ALL)
    sessions = json.loads(test.run("status", "--json").out)["sessions"]
    check(len({s["event_types"] for s in sessions}) == 1 and len(sessions) == 2, sessions)
    losses_fire(test, folder, "lost > 0")
    wait_for(test, folder)
    end(test)


def ends(test):
    """However the session ends, so does the follower; and the other way round."""
    for verb in ("cancel", "stop"):
        start(test, "--on", "sched.delay > 1h", "--on", "lost > 1000000")
        check(len(followers(test)) == 1, followers(test))
        # The second session is shown as a part of the first one.
        check(len(test.run("list").out.splitlines()) == 1, test.run("list"))
        r = test.run("status")
        check("1 session\n" in r.out and not re.search(rf"^{test.name}-watch: ", r.out, re.M) and
              re.search(rf"^  triggers  {test.name}-watch: recording, ", r.out, re.M), r)
        sessions = json.loads(test.run("status", "--json").out)["sessions"]
        check({s["name"]: s.get("part_of") for s in sessions} == {test.name: None, f"{test.name}-watch": test.name},
              sessions)
        for options in ((), ("-o", "y.json")):
            r = test.run("stop", f"{test.name}-watch", *options)
            check(r.status == 1 and "is for conditions of triggers" in r.err and f"tracectl stop {test.name}\n" in r.err, r)
            check(not (test.dir / "y.json").exists() and len(followers(test)) == 1, r)
        # Without a name: the second session does not count.
        r = test.run(verb, *(("-o", "x.json") if verb == "stop" else ()))
        check(r.status == 0, r)
        nothing_is_left(test)
    r = test.run("start", "--name", test.name, "--ring", "--json", "--on", "lost > 0", "-t", "500ms")
    check(json.loads(r.out)["folder"] == str(test.dir / f"{test.name}.triggers"), r)
    settled("the follower ends", lambda: not followers(test))
    end(test)
    start(test, "--on", "sched.delay > 1h")
    os.kill(followers(test)[0][0], 9)
    settled("only the recorder is left", lambda: len(json.loads(test.run("status", "--json").out)["sessions"]) == 1)
    end(test)
    # The exporter's end: the snapshot that waits is written, and the recorder stays.
    folder = start(test, "--on", 'event sched:sched_process_exit if comm == "trigger-me"', "--after", "1h",
                   folder="exporter")
    fire_exit(test)
    settled("it fires", lambda: fired(test, folder))
    os.kill(exporter_of(test), signal.SIGKILL)
    settled("the follower ends", lambda: not followers(test))
    text = log(test, folder)
    check(f" {test.name}-watch has ended" in text and f" {test.name} has ended" not in text, text)
    check(len(snapshots(folder)) == 1 and " wrote " in text, text)
    check(test.name in {s["name"] for s in json.loads(test.run("status", "--json").out)["sessions"]}, text)
    # A failed export leaves its events.
    for path in test.daemon.spool.glob(f"*-{test.name}-watch-*"):
        path.unlink()
    end(test)
    # The daemon's end.
    folder = start(test, "--on", "sched.delay > 1h")
    test.daemon.stop()
    settled("the follower ends", lambda: not followers(test))
    check(" has ended" in log(test, folder), log(test, folder))
    test.daemon = Daemon(test)


def refused(test):
    hooks = allow_hooks(test, "exit 0\n")
    os.mkdir(test.dir / "theirs")
    os.chown(test.dir / "theirs", NOBODY, NOBODY)
    (hooks / "open").write_text("#!/bin/sh\n")
    (hooks / "open").chmod(0o777)
    on = ("--on", "lost > 0")
    for arguments, status, what in (
            (("--on", "sched.dely > 5ms"), 2, r"    sched\.dely > 5ms\n    \^\n  hint: "),
            (("--on", "sched.delay > 5"), 2, r"    sched\.delay > 5\n {18}\^\n  hint: add one: 5ms"),
            (("--on", "event sched:sched_switch if prev_prio < 5", "--on", "sched.delay > 5ms"), 2,
             "two conditions need sched:sched_switch"),
            (("--on", "event sched:no_such_event"), 1, "no_such_event"),
            (("--on", "event sched:sched_switch if nonsense == 1"), 1, "nonsense"),
            ((*on, "--hook", "missing"), 1, "missing: No such file"),
            ((*on, "--hook", "../note"), 1, "not the name of a hook"),
            ((*on, "--hook", "open"), 1, "other users may change"),
            ((*on, "--format", "ctf"), 2, "hint: for example: json"),
            ((*on, "--at-most", "1"), 2, "hint: for example: 1/10m"),
            ((*on, "-o", "/dev/null/x"), 1, "/dev/null/x"),
            ((*on, "-o", "theirs"), 1, "theirs"),
            ((*on, "--format", "watch"), 2, "not written so"),
            (("--after", "1s"), 2, "only with --on")):
        r = test.run("start", "--name", test.name, "--ring", *arguments)
        check(r.status == status and re.search(what, r.err), f"{arguments}: {r}")
        check(not r.out, r)
        check(not (test.dir / f"{test.name}.triggers").exists(), f"{arguments}: a folder is left")
    r = test.run("start", "--name", "n" * 60, "--ring", *on)
    check(r.status == 2 and "longer than 58 characters" in r.err, r)
    # The log would be a pipe, which nobody reads, or another file.
    (test.dir / "precious").write_text("")
    (test.dir / "their file").write_text("")
    os.chown(test.dir / "their file", NOBODY, NOBODY)
    for make in (os.mkfifo, lambda path: os.symlink("../precious", path), lambda path: os.link(test.dir / "precious", path),
                 lambda path: os.rename(test.dir / "their file", path)):
        (test.dir / "out").mkdir(exist_ok=True)
        make(test.dir / "out" / f"{test.name}.log")
        r = test.run("start", "--name", test.name, "--ring", *on, "-o", "out")
        check(r.status == 1 and f"{test.name}.log" in r.err and not r.out, r)
        (test.dir / "out" / f"{test.name}.log").unlink()
    check((test.dir / "precious").read_text() == "", "another file was written")
    # A user's folder is not followed to where the user's link leads.
    (test.dir / "theirs" / "link").symlink_to(test.dir / "out")
    r = test.run("start", "--name", test.name, "--ring", *on, "-o", "theirs/link")
    check(r.status == 1 and "symbolic link" in r.err and not r.out, r)
    nothing_is_left(test)
    r = test.run("start", "--name", test.name, *on)
    check(r.status == 2 and "--on needs --ring" in r.err, r)
    nothing_is_left(test)
    test.daemon.stop()
    test.daemon = Daemon(test)
    r = test.run("start", "--name", test.name, "--ring", *on, "--hook", "note")
    check(r.status == 1 and "traced.conf allows no hooks" in r.err, r)
    nothing_is_left(test)


def waits(test):
    """`wait` ends with the first time that a condition is met, which ends a flight recorder, too."""
    program = test.dir / "happens"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    condition = "event sched:sched_process_exit if comm == 'happens'"
    waiting = test.start("wait", "--on", "irq.max > 1h", "--on", condition, "--after", "10ms")
    test.wait_for_sessions(1)
    time.sleep(1)
    check(waiting.poll() is None, "it did not wait")
    subprocess.run([program], check=True)
    r = test.finish(waiting)
    check(r.status == 0 and r.err.startswith(condition + ": ") and r.out == "", r)
    began = time.monotonic()
    r = test.run("wait", "--on", "irq.max > 1h", "-t", "500ms")
    check(r.status == 4 and "no condition was met" in r.err and time.monotonic() - began < 10, r)
    # Also if that is known after the time.
    r = test.run("wait", "--on", "event sched:sched_switch", "-t", "300ms", "--after", "1ms")
    check(r.status == 0, r)
    for words, status, why in (((), 2, "there is no condition"), (("--on", "lost > 0"), 2, "of a flight recorder"),
                               (("--on", "nonsense"), 2, "--on"), (("--on", "event sched:nonsense"), 1, "nonsense")):
        r = test.run("wait", *words)
        check(r.status == status and why in r.err, f"{words}: {r}")
    r = test.run("wait", "--on", "irq.max > 1h", "--socket", test.dir / "none")
    check(r.status == 1 and "'tracectl record' uses a running daemon, too: " in r.err, r)
    tracectl = (test.tracectl, "--socket", test.daemon.socket)
    record = ("record", "-q", "--ring", "-e", "sched", "-o", "x.txt", "--", *tracectl, "wait", "-q", "--on")
    recording = test.start(*record, condition)
    test.wait_for_sessions(2)
    check("for conditions: " in test.run("list").out, test.run("list"))
    # A command without a name does not mean the session of `wait`.
    check(len(test.run("snapshot", "-o", "y.txt").err.splitlines()) == 1, "snapshot")
    time.sleep(1)
    subprocess.run([program], check=True)
    r = test.finish(recording)
    check(r.status == 0 and "happens" in (test.dir / "x.txt").read_text(), r)
    check(test.run(*record, "irq.max > 1h", "-t", "300ms").status == 4, "the status of wait")
    # A parent that has ended before it looks.
    orphan = ("import os, sys, time\nif os.fork():\n    os._exit(0)\nwhile os.getppid() == os.getsid(0):\n"
              "    time.sleep(0.01)\nos.execv(sys.argv[1], sys.argv[1:])\n")
    with subprocess.Popen([sys.executable, "-c", orphan, *test.arguments("wait", "--on", "irq.max > 1h", "-t", "10s")],
                          start_new_session=True, stderr=subprocess.PIPE) as p:
        said = p.communicate(timeout=60)[1].decode()
    check("the process that started it has ended" in said, said)
    # Its end with the recording.
    recording = test.start(*record, "irq.max > 1h")
    test.wait_for_sessions(2)
    recording.send_signal(signal.SIGTERM)
    test.finish(recording)
    nothing_is_left(test)


def main():
    test = Test("triggers")
    test.case("delays", delays, daemon=True)
    test.case("frequent", frequent, daemon=True)
    test.case("user", user, daemon=True)
    test.case("slow hook", slow_hook, daemon=True)
    test.case("left behind by a hook", left_behind, daemon=True)
    test.case("slices", slices, daemon=True)
    test.case("interrupts", interrupts, daemon=True)
    test.case("limits", limits, daemon=True)
    test.case("lost", lost, daemon=True)
    test.case("lost alone", lost_alone, daemon=True)
    test.case("ends", ends, daemon=True)
    test.case("refused", refused, daemon=True)
    test.case("waits", waits, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
