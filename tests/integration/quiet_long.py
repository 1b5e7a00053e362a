#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A long recording of little: the recorder looks at its rings more and more rarely."""

import os

from harness import Test, check, chunks
from quiet import DISTURBANCE, TRIES, lines_of, rename_programs, selection

PAGES = 10  # the kind of chunk that has sub-buffers, after 8 bytes
# Events of the recorder when no sub-buffer fills; start and end make most of them.
MOST = 40
# The kernel wakes the recorder when some sub-buffers are full. On a busy machine, gaps of rejected events fill them. Two
# CPUs with a load of 13 filled 27 and 37 in 20 s, and the recorder had 101 and 111 events.
MOST_PER_SUBBUF = 2


def full_subbufs(path):
    """The last one of each chunk is partly empty."""
    with open(path, "rb") as file:
        return sum((length - 8) // os.sysconf("SC_PAGESIZE") - 1 for kind, _, length in chunks(file) if kind == PAGES)


def twenty_seconds(test):
    for _ in range(TRIES):
        done = test.run("record", "-q", *selection(["sched"]), "-o", "out.traced", "-t", "20s")
        check(done.status == 0, str(done))
        done = test.run("convert", "-q", "out.traced", "out.txt")
        check(done.status == 0, str(done))
        own, full = lines_of(test.dir / "out.txt"), full_subbufs(test.dir / "out.traced")
        check(own, "no events")
        print(f"{len(own)} events are the recorder's own, {full} sub-buffers were full")
        if len(own) <= MOST + DISTURBANCE + MOST_PER_SUBBUF * full:
            return
    check(False, "\n".join([f"{len(own)} events are the recorder's own:", *own]))


def main():
    test = Test("quiet_long")
    rename_programs(test)
    test.case("twenty seconds with a daemon", twenty_seconds, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
