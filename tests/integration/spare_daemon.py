#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Instances that the daemon prepares for the next recording: present, switched off, taken by any
request, made again, and removed with the option and with the daemon, however it ends."""

import json
import os
import pathlib
import re
import signal
import time

from harness import INSTANCES, Daemon, check, settled, Test


def of(test):
    return test.instances_of(test.daemon.process.pid)


def status(test):
    r = test.run("status", "--json")
    check(r.status == 0, f"status: {r}")
    return json.loads(r.out)


def ready(test):
    """The instances of the waiting spare."""
    settled("a spare", lambda: status(test)["spare_bytes"] > 0)
    names = [n for n in of(test) if "-spare+" in n]
    last = max(int(re.search(r"\+(\d+)", n)[1]) for n in names)
    return [n for n in names if re.search(r"\+(\d+)", n)[1] == str(last)]


def configure(test, spare, more=""):
    test.config.write_text(f"[daemon]\nspare = {spare}\n{more}")


def begin(test, spare="yes", more=""):
    test.config = test.dir / "traced.conf"
    configure(test, spare, more)
    test.daemon.stop()
    test.daemon = Daemon(test, "--config", test.config)


def recorded(test, name, *arguments):
    """Starts, marks and stops one. Returns its session while it recorded, and its text."""
    r = test.run("start", "--name", name, *arguments)
    check(r.status == 0, f"start: {r}")
    session, = (s for s in status(test)["sessions"] if s["name"] == name)
    check(test.run("mark", f"of {name}").status == 0, "mark")
    time.sleep(0.2)
    r = test.run("stop", name, "-o", f"{name}.txt")
    check(r.status == 0, f"stop: {r}")
    return session, (test.dir / f"{name}.txt").read_text(errors="replace")


def setting(instance, file):
    return (INSTANCES / instance / file).read_text().strip()


def waits_quietly(test):
    begin(test)
    names = ready(test)
    check(names == of(test) and names[0] + "-tasks" in names[:2], f"{names}")
    for n in names:
        check(setting(n, "tracing_on") == "0" and setting(n, "events/enable") == "0", f"{n} is not off")
        check("[boot]" in setting(n, "trace_clock"), f"{n}: {setting(n, 'trace_clock')}")
    told = status(test)["spare_bytes"]
    total = sum(int(setting(n, "buffer_total_size_kb")) << 10 for n in names)
    check(told == total, f"{told} B told, {total} B taken")
    check("wait for the next" in test.run("status").out, "status does not say so")
    # No other daemon takes it for a leftover.
    r = test.run("doctor", "--json")
    check("left by" not in r.out, f"doctor: {r}")
    if test.is_sanitized():  # the daemon's own threads wake
        return

    def sleeps():
        wakes = wakeups(test)
        time.sleep(3)
        return wakeups(test) == wakes

    # At first it may still see the clients off.
    settled("three seconds without a wake-up", sleeps)


def wakeups(test):
    n = 0
    for task in pathlib.Path(f"/proc/{test.daemon.process.pid}/task").iterdir():
        n += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", (task / "status").read_text(), re.M)[1])
    return n


def is_the_default(test):
    test.config = test.dir / "traced.conf"
    test.config.write_text("")
    test.daemon.stop()
    test.daemon = Daemon(test, "--config", test.config)
    release = tuple(int(n) for n in re.match(r"(\d+)\.(\d+)", os.uname().release).groups())
    if release < (6, 6):
        check(of(test) == [], f"{of(test)}")
        return
    main = ready(test)[0]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    is_small = (4 << 20) > memory // 256 // os.cpu_count()
    size = int(setting(main, "buffer_size_kb"))
    check(size < 100 if is_small else 4096 <= size < 4300, f"{size} KiB of {memory} B")
    session, _ = recorded(test, f"{test.name}-by-default", "-e", "sched:sched_switch")
    check(session["instance"] == main, f"{session['instance']} is not {main}")


def made_when_nothing_records(test):
    begin(test)
    main = ready(test)[0]
    names = [f"{test.name}-{n}" for n in ("a", "b")]
    for n in names:
        r = test.run("start", "--name", n, "-e", "sched:sched_switch")
        check(r.status == 0, f"start: {r}")
    check(test.run("cancel", names[1]).status == 0, "cancel")
    settled("the second goes", lambda: not any(names[1] in i for i in of(test)))
    time.sleep(0.5)  # longer than the daemon needs to make a spare
    check(sorted(of(test)) == sorted([main, main + "-tasks"]), f"{of(test)}")
    check(test.run("cancel", names[0]).status == 0, "cancel")
    check(ready(test)[0] != main, "the same spare again")


def is_taken(test):
    begin(test)
    main = ready(test)[0]
    session, text = recorded(test, f"{test.name}-as-it-is", "-e", "sched:sched_switch")
    check(session["instance"] == main, f"{session['instance']} is not {main}")
    check("sched_switch:" in text and f"of {test.name}-as-it-is" in text, "the text")
    settled("the instances go", lambda: not {main, main + "-tasks"} & {*of(test)})
    check(ready(test)[0] != main, "the same spare again")
    check(len(of(test)) == len(ready(test)), f"{of(test)}")


def takes_what_is_asked_for(test):
    begin(test)
    main = ready(test)[0]
    session, text = recorded(test, f"{test.name}-other", "-C", "mono", "-b", "256K", "-e", "sched:sched_switch")
    check(session["instance"] == main, f"{session['instance']} is not {main}")
    first, = re.findall(r"^.* (\d+\.\d+): .*sched_switch:", text.split("sched_switch:")[0] + "sched_switch:", re.M)
    check(abs(float(first) - time.clock_gettime(time.CLOCK_MONOTONIC)) < 60, f"{first} is not of that clock")
    ready(test)
    session, text = recorded(test, f"{test.name}-ring", "--ring", "-e", "irq", "-e", "sched")
    check("spare+" in session["instance"] and f"of {test.name}-ring" in text, f"{session}")


def two_at_once(test):
    begin(test)
    main = ready(test)[0]
    names = [f"{test.name}-{n}" for n in ("a", "b")]
    for p in [test.start("start", "--name", n, "-e", "sched:sched_switch") for n in names]:
        r = test.finish(p)
        check(r.status == 0, f"start: {r}")
    used = {s["instance"] for s in status(test)["sessions"]}
    check(len(used) == 2 and main in used, f"{used}")
    for n in names:
        r = test.run("stop", n, "-o", f"{n}.txt")
        check(r.status == 0 and "sched_switch:" in (test.dir / f"{n}.txt").read_text(), f"stop: {r}")


def refused_recording(test):
    begin(test)
    main = ready(test)[0]
    r = test.run("start", "--name", f"{test.name}-none", "-e", "no:such")
    check(r.status == 1, f"{r}")
    settled("another", lambda: main not in of(test) and ready(test)[0] != main)
    check(status(test)["sessions"] == [], "a session is left")


def meddled_with(test):
    begin(test)
    main = ready(test)[0]
    (INSTANCES / main / "events/irq/enable").write_text("1")
    (INSTANCES / main / "tracing_on").write_text("1")
    session, text = recorded(test, f"{test.name}-fresh", "-e", "sched:sched_switch")
    check(session["instance"] != main and "irq_" not in text, f"{session}")
    check("sched_switch:" in text, "nothing in it")
    settled("it is removed", lambda: main not in of(test))
    ready(test)


def turned_on_and_off(test):
    begin(test, "no")
    pid = test.daemon.process.pid
    check(test.instances_of(pid) == [] and status(test)["spare_bytes"] == 0, f"{test.instances_of(pid)}")
    for _ in range(2):
        configure(test, "yes", "[defaults]\nbuffer_size = 1M\n")
        test.daemon.process.send_signal(signal.SIGHUP)
        check(1000 <= int(setting(ready(test)[0], "buffer_size_kb")) <= 1100, "its size")
        configure(test, "no")
        test.daemon.process.send_signal(signal.SIGHUP)
        settled("it goes", lambda: test.instances_of(pid) == [])
        settled("status says so", lambda: status(test)["spare_bytes"] == 0)


def killed(test):
    begin(test)
    old = ready(test)
    test.daemon.process.kill()
    test.daemon.process.wait()
    check(all((INSTANCES / n).exists() for n in old), "somebody removed the instances")
    test.daemon.log.close()
    test.daemon = Daemon(test, "--config", test.config)
    check(not any((INSTANCES / n).exists() for n in old), f"{old} are left")
    ready(test)


def stopped(test):
    begin(test)
    for wait in (True, False):
        pid = test.daemon.process.pid
        if wait:
            ready(test)
        test.daemon.process.terminate()
        check(test.daemon.process.wait(30) == 0, "exit status")
        check(test.instances_of(pid) == [], f"left: {test.instances_of(pid)}")
        check(not list(test.daemon.state.glob("*.journal")), "a journal is left")
        test.daemon.log.close()
        test.daemon = Daemon(test, "--config", test.config)


def main():
    test = Test("spare")
    for label, function in (("it waits quietly", waits_quietly),
                            ("it is the default", is_the_default),
                            ("it is made when nothing records", made_when_nothing_records),
                            ("it is taken", is_taken),
                            ("whatever is asked for", takes_what_is_asked_for),
                            ("two at once", two_at_once),
                            ("a recording that is refused", refused_recording),
                            ("somebody meddles", meddled_with),
                            ("turned on and off", turned_on_and_off),
                            ("the daemon is killed", killed),
                            ("the daemon is stopped", stopped)):
        test.case(label, function, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
