#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In a guest: the daemon is killed before each of its writes, from the request of a recording with all
that the kernel is to make until that is undone. The next start removes probes, synthetic events,
triggers and instances. It takes one of several writes, and other ones each time; STRIDE = 1 takes all."""

import pathlib
import random
import signal
import struct

from common import INSTANCES, TRACEFS, check, need, of_a_guest, put_back, settings
from harness import Daemon, entry_of, settled

WAKEUP = ("SELECT start.pid, (end.TIMESTAMP_USECS - start.TIMESTAMP_USECS) AS lat "
          "FROM sched_waking AS start JOIN sched_switch AS end ON start.pid = end.next_pid WHERE start.prio > -1")
RUN = ("SELECT start.pid, start.lat AS waited, TIMESTAMP_DELTA_USECS AS ran "
       "FROM wakeup AS start JOIN sched_switch AS end ON start.pid = end.prev_pid")
OPEN = ("SELECT start.common_pid AS who, end.ret FROM opened AS start JOIN was_opened AS end "
        "ON start.common_pid = end.common_pid")
STRIDE = 11


def words_of(test):
    """A recording of everything that this kernel has."""
    program = pathlib.Path(test.tracectl).resolve()
    readme = (TRACEFS / "README").read_text()
    words = ["--kprobe", "p:opened vfs_open path=%di", "--kprobe", "r:was_opened vfs_open ret=$retval:s32",
             "--uprobe", f"p:begins {program}:0x{entry_of(program):x}", "--sql", WAKEUP, "--as", "wakeup", "--sql", RUN,
             "--as", "run", "--sql", OPEN, "--hist", "kmem:kmalloc:keys=bytes_req", "-e", "irq", "--trigger",
             "irq:irq_handler_entry: stacktrace:3", "--trigger",
             "irq:irq_handler_exit: enable_event:timer:timer_start:1"]
    if " f[:[<group>/]" in readme:
        words += ["--fprobe", "f:entered vfs_read", "--tprobe", "t:switched sched_switch"]
    if " eprobe_dyn_event_create\n" in pathlib.Path("/proc/kallsyms").read_text():
        words += ["--eprobe", "e:next sched:sched_switch pid=$next_pid"]
    return words


def made():
    """What may be left, beside settings() of the top level."""
    return [(TRACEFS / "synthetic_events").read_text(), *sorted(i.name for i in INSTANCES.iterdir())]


class Kills:
    def __init__(self, test):
        header = (test.source / "tests/fault/fault.h").read_text()
        lists = {which: header.split(f"#define FAULT_{which}_LIST(X)", 1)[1].replace("\\\n", " ").split("\n", 1)[0]
                 .replace("X(", "").replace(")", "").split() for which in ("PROCESS", "CALL")}
        self.size = 1 + len(lists["PROCESS"]) * len(lists["CALL"])
        self.index = 1 + lists["PROCESS"].index("traced") * len(lists["CALL"]) + lists["CALL"].index("write")
        self.library = test.build / "tests/fault/fault.so"
        need(self.library.exists(), "the build has no tests/fault/fault.so")
        self.state = test.top / "faults"
        self.test = test

    def daemon(self, nth=None):
        """A daemon that does not live to its nth write."""
        self.state.write_bytes(bytes(4 * self.size))
        env = self.test.environment(LD_PRELOAD=str(self.library), FAULT_STATE=str(self.state))
        if nth:
            env["FAULT"] = f"traced write {nth} -{signal.SIGKILL.value}"
        return Daemon(self.test, env=env)

    def writes(self):
        return struct.unpack(f"={self.size}I", self.state.read_bytes())[self.index]


def replace(test, daemon):
    test.daemon.stop()
    test.daemon = daemon()


def at_each_write(test):
    kills, before, words = Kills(test), (settings(), made()), ("start", "--name", "x", *words_of(test))
    test.daemon.stop()
    test.daemon = kills.daemon()
    first = kills.writes() + 1
    done = test.run(*words)
    check(done.status == 0, f"start: {done}")
    check(len(made()[0].splitlines()) == 3, f"not all is made: {made()}")
    begun = kills.writes()
    check(test.run("cancel", "x").status == 0, "cancel")
    settled("all is undone", lambda: (settings(), made()) == before)
    last = kills.writes()
    check(begun - first >= 20 and last > begun, f"writes: {first}, {begun}, {last}")
    every = range(first + random.randrange(STRIDE), last + 1, STRIDE)
    print(f"  kills before writes {every}; the recording begins after {begun}")
    half_made = 0
    for nth in every:
        replace(test, lambda n=nth: kills.daemon(n))
        if test.run(*words).status == 0:
            test.run("cancel", "x")
        # Either it is killed, or it undoes all by itself.
        settled("the daemon is killed, or has undone all",
                lambda: test.daemon.process.poll() is not None or (settings(), made()) == before)
        half_made += (settings(), made()) != before
        replace(test, lambda: Daemon(test))
        check(test.run("status").status == 0, f"write {nth}: the next daemon does not answer")
        put_back(before[0])
        settled(f"all is removed of a recording that was killed before write {nth}", lambda: made() == before[1])
    check(half_made >= len(every) // 4, f"only {half_made} kills met a half-made recording")


def main():
    test = of_a_guest("killed")
    test.case("at each write", at_each_write, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
