#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Triggers of the kernel: stacks, events that turn others on, and a trigger that ends a recording."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

from harness import INSTANCES, NOBODY, TRACEFS, Daemon, Test, check, entry_of, need, settled

EXIT = "sched:sched_process_exit"
GROUP = 4244


def begin(test, *arguments):
    process = test.start("record", "--name", f"{test.name}-begun", "-t", "60s", *arguments)
    test.wait_for_recording("begun")
    return process


def run_as(test, comm):
    """A process of that name begins and ends."""
    program = test.dir / comm
    if not program.exists():
        # A guest's other programs are busybox, which asks for its name.
        shutil.copy("/bin/sh", program)
    subprocess.run([program, "-c", ":"], check=True)
    return program


def record(test, *arguments, status=0):
    done = test.run("record", *arguments)
    check(done.status == status, f"{arguments}: {done}")
    return done


def lines(test, name, event):
    return re.findall(rf"^ *(\S.*)-(\d+) +\[\d+\] \S+ +([\d.]+): {event}: (.*)$",
                      (test.dir / name).read_text(errors="replace"), re.M)


def other_data(test, name):
    return json.loads((test.dir / name).read_text())["otherData"]


def until_stopped(test, name):
    def over():
        done = test.run("status", "--json")
        return [s["state"] for s in json.loads(done.out)["sessions"] if s["name"] == name] == ["stopped"]
    settled(f"the trigger ends {name}", over)


def stacks(test):
    record(test, "-t", "1s", "-e", "sched:sched_switch", "--trigger", "stacktrace:3 if prev_state & 1", "-o",
           "x.traced")
    for name in ("x.txt", "x.json", "x.pftrace", "x.dat"):
        done = test.run("convert", "x.traced", name)
        check(done.status == 0, f"{name}: {done}")
    text = (test.dir / "x.txt").read_text(errors="replace")
    found = re.findall(r": <stack trace>\n((?: => .*\n)+)", text)
    check(len(found) == 3, f"{len(found)} stacks, not 3")
    check(all("schedule" in stack for stack in found), f"no names: {found}")
    # The kernel prints the stack behind the event.
    check(len(re.findall(r": <stack trace>$", text, re.M)) == 3, text[:1000])
    check(b"schedule" in (test.dir / "x.pftrace").read_bytes(), "the .pftrace lacks the stacks")
    check(other_data(test, "x.json")["request"]["triggers"] ==
          ["sched:sched_switch: stacktrace:3 if prev_state & 1"], other_data(test, "x.json"))


def one_ends_it(test):
    """The event is in the recording, though it was not asked for, and nothing is after it."""
    process = begin(test, "-e", "sched:sched_process_exec", "--trigger",
                    f'{EXIT}: traceoff if comm == "ends-it"', "-o", "x.traced")
    run_as(test, "other")
    run_as(test, "ends-it")
    time.sleep(0.1)
    run_as(test, "later")
    done = test.finish(process)
    check(done.status == 0, done)
    check(f'a trigger ended the recording, at its last events: {EXIT}: traceoff if comm == "ends-it"' in done.err,
          done)
    for name in ("x.txt", "x.json"):
        check(test.run("convert", "x.traced", name).status == 0, name)
    ends = lines(test, "x.txt", "sched_process_exit")
    check([comm for comm, *_ in ends] == ["ends-it"], ends)
    execs = {text.split()[0].rsplit("/", 1)[1] for *_, text in lines(test, "x.txt", "sched_process_exec")}
    check({"other", "ends-it"} <= execs and "later" not in execs, execs)
    check(max(float(at) for *_, at, _ in lines(test, "x.txt", "sched_process_exec")) < float(ends[0][2]), ends)
    data = other_data(test, "x.json")
    check("trigger" in json.dumps(data["end"] if "end" in data else data), data)


def always(test):
    """Without a filter, too, the event that ends the recording is in it."""
    # Any task's end ends it, maybe at once.
    process = test.start("record", "-t", "60s", "-e", EXIT, "--trigger", "traceoff:1", "-o", "x.txt")
    settled("it ends", lambda: run_as(test, "ends-it") and process.poll() is not None)
    done = test.finish(process)
    check(done.status == 0 and "a trigger ended the recording" in done.err, done)
    check(len(lines(test, "x.txt", "sched_process_exit")) == 1, (test.dir / "x.txt").read_text())


def a_flight_recorder(test):
    """What came before an event, without anybody who waits for it."""
    done = test.run("start", "--name", "a", "--ring", "-e", "sched:sched_process_exec", "--trigger",
                    f'{EXIT}: traceoff if comm == "ends-it"')
    check(done.status == 0, done)
    done = test.run("start", "--name", "b", "-e", "sched:sched_process_exec")
    check(done.status == 0, done)
    run_as(test, "before")
    run_as(test, "ends-it")
    until_stopped(test, "a")
    run_as(test, "later")
    done = test.run("stop", "a", "-o", "a.txt")
    check(done.status == 0 and "a trigger ended the recording" in done.err, done)
    execs = [text.split()[0].rsplit("/", 1)[1] for *_, text in lines(test, "a.txt", "sched_process_exec")]
    check("before" in execs and "later" not in execs, execs)
    check(lines(test, "a.txt", "sched_process_exit")[-1][0] == "ends-it", (test.dir / "a.txt").read_text())
    # Another's recording goes on.
    done = test.run("stop", "b", "-o", "b.txt")
    check(done.status == 0 and "trigger" not in done.err, done)
    check("later" in (test.dir / "b.txt").read_text(), "the other recording ended, too")


def on_and_off(test):
    """With both, tracing goes off and on, and the recording lasts as long as it should."""
    process = begin(test, "-e", "sched:sched_process_exec", "--trigger",
                    f'{EXIT}: traceoff if comm == "off"', "--trigger",
                    'sched:sched_process_exec: traceon if filename ~ "*/on"',
                    "-o", "x.txt")
    for comm in ("before", "off", "between", "on", "after"):
        run_as(test, comm)
    process.send_signal(signal.SIGINT)
    done = test.finish(process)
    check(done.status == 0 and "trigger" not in done.err, done)
    execs = [text.split()[0].rsplit("/", 1)[1] for *_, text in lines(test, "x.txt", "sched_process_exec")]
    ours = [comm for comm in execs if comm in ("before", "off", "between", "on", "after")]
    check(ours == ["before", "off", "after"], execs)


def others_on_and_off(test):
    """A trigger's target need not be recorded otherwise; its events are decoded."""
    process = begin(test, "-e", "sched:sched_process_exec", "--trigger",
                    f'{EXIT}: enable_event:sched:sched_process_fork if comm == "on"', "--trigger",
                    'sched:sched_process_exec: disable_event:sched:sched_process_fork if filename ~ "*/off"',
                    "-o", "x.txt")
    for comm in ("before", "on", "between", "off", "after"):
        run_as(test, comm)
    process.send_signal(signal.SIGINT)
    done = test.finish(process)
    check(done.status == 0, done)
    text = (test.dir / "x.txt").read_text()
    at = {comm: text.find(f"/{comm} pid=") for comm in ("before", "on", "between", "off", "after")}
    check(-1 not in at.values(), at)
    ours = rf"-{os.getpid()} .*: sched_process_fork: comm=\S+ pid={os.getpid()} "
    forks = [m.start() for m in re.finditer(ours, text)]
    check(any(at["on"] < f < at["between"] for f in forks), f"no fork of ours in\n{text[-3000:]}")
    check(not any(f < at["on"] or f > at["off"] for f in forks), f"{forks}, {at}")


def of_a_probe(test):
    need((TRACEFS / "uprobe_events").exists(), "this kernel has no uprobes")
    # A program of this test alone: it ends the recording.
    program = run_as(test, "probed")
    process = begin(test, "--uprobe", f"p:begins {program}:0x{entry_of(program):x}",
                    "--trigger", "stacktrace:1", "--trigger", "traceoff", "-o", "x.txt")
    run_as(test, "probed")
    done = test.finish(process)
    check(done.status == 0 and "a trigger ended the recording" in done.err, done)
    check(len(lines(test, "x.txt", "begins")) == 1, (test.dir / "x.txt").read_text())
    settled("the probe goes", lambda: str(program) not in (TRACEFS / "uprobe_events").read_text())


def refusals(test):
    switch = ["-e", "sched:sched_switch"]
    # Since Linux 6.2 the kernel logs the errors of a trigger's filter.
    release = tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups()))
    filtered = ["refuses the trigger"] + [r"\^"] * (release >= (6, 2))
    for arguments, words in (
            (["--trigger", "stacktrace if prev_stat & 2"], [*filtered, "did you mean 'prev_state'"]),
            (["--trigger", "stacktrace:3 if prev_stat & 2"], [*filtered, "did you mean 'prev_state'"]),
            (["--trigger", "stacktrace if prev_state & "], filtered),
            (["--trigger", 'stacktrace if prev_comm == "' + "x" * 3000 + '"'], ["refuses the trigger"]),
            (["--trigger", "stacktrace if " + "(" * 3800], ["refuses the trigger"]),
            (["--trigger", "traceof"], ["did you mean .*'traceoff'"]),
            (["--trigger", "snapshot"], ["takes the events out of the recording", "--ring"]),
            (["--trigger", "enable_event:sched:sched_wakin"], ["did you mean 'sched:sched_waking'"]),
            (["--trigger", "enable_event:sched"], [r"\^", "SYSTEM:EVENT"]),
            (["--trigger", "stacktrace", "--trigger", "stacktrace:3"], ["takes one of both", "join"]),
            (["--trigger", "sched:sched_swich: stacktrace"], ["no event .* 'sched:sched_swich'", "sched_switch"]),
            (["--trigger", "x\udcff\x01: stacktrace"], ["control character|no event"]),
            (["--top-level", "--trigger", "stacktrace"], ["exclude each other"])):
        done = test.run("record", "-t", "100ms", *switch, *arguments, "-o", "x.txt")
        check(done.status == 1, f"{arguments}: {done}")
        for word in words:
            check(re.search(word, done.err), f"{arguments}: no {word} in {done}")
        check("common_pid" not in done.err, f"a filter that nobody typed: {done}")
        check(not (test.dir / "x.txt").exists(), "a file was written")
    settled("nothing is left", lambda: not test.instances())
    done = test.run("record", "--trigger", "stacktrace", "-o", "x.txt")
    check(done.status == 2 and "no event before it" in done.err, done)


def members(test):
    """They may use the triggers, on their events and by open fields."""
    conf = test.dir / "daemon" / "users.conf"
    conf.write_text("[daemon]\nspare = no\n[users]\nevents_denied = irq\n")
    test.daemon.stop()
    test.daemon = Daemon(test, "--config", conf)
    test.daemon.socket.parent.chmod(0o755)
    os.chown(test.daemon.socket, 0, GROUP)
    test.daemon.socket.chmod(0o660)
    os.chown(test.dir, NOBODY, NOBODY)
    wrap = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--groups", str(GROUP)]
    for action, word in (("kmem:kmalloc: stacktrace if ptr > 1", "only root may compare 'ptr'"),
                         ("kmem:kmalloc: traceoff if call_site > 1", "only root may compare 'call_site'"),
                         ("irq:softirq_entry: stacktrace", "only root may record 'irq:softirq_entry'"),
                         ("sched:sched_switch: enable_event:irq:softirq_entry", "only root may record")):
        done = test.run("record", "-t", "100ms", "-e", "sched", "--trigger", action, "-o", "x.txt", wrap=wrap)
        check(done.status == 1 and word in done.err, f"{action}: {done}")
    done = test.run("record", "-t", "1s", "-e", "sched:sched_switch", "--trigger", "stacktrace:2 if prev_pid > 0",
                    "-o", "x.txt", wrap=wrap)
    check(done.status == 0, done)
    check((test.dir / "x.txt").read_text().count("<stack trace>") == 2, done)


def killed(test):
    """The next daemon removes what a killed one left."""
    done = test.run("start", "--name", "x", "-e", "sched:sched_switch", "--trigger", "stacktrace if prev_pid == 1",
                    "--trigger", "enable_event:sched:sched_waking if prev_pid == 1")
    check(done.status == 0, done)
    ours = [INSTANCES / name for name in test.instances_of(test.daemon.process.pid)]
    check(any("stacktrace:unlimited if prev_pid == 1" in (i / "events/sched/sched_switch/trigger").read_text()
              for i in ours), "no trigger is set")
    test.daemon.process.kill()
    test.daemon.process.wait()
    test.daemon.log.close()
    test.daemon = type(test.daemon)(test)
    check(test.run("status").status == 0, "the next daemon does not answer")
    settled("the instances go", lambda: not any(i.exists() for i in ours))


def main():
    test = Test("event-triggers")
    for label, function in (("stacks in every format", stacks), ("one ends it", one_ends_it), ("always", always),
                            ("a flight recorder", a_flight_recorder), ("on and off", on_and_off),
                            ("others on and off", others_on_and_off), ("of a probe", of_a_probe),
                            ("refusals", refusals), ("members", members), ("killed", killed)):
        test.case(label, function, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
