#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In a guest: each way to read a ring, with rings of 64 KiB to 64 MiB and, where the kernel lets
them be chosen, sub-buffers of 4 to 64 KiB. Every numbered mark is in the trace, in order, or
counted as lost, on each CPU."""

import json
import os
import re

from common import INSTANCES, TRACEFS, check, lines_of, of_a_guest, record, text_of
from harness import Daemon

MARKS = 800  # on each CPU: more than the smallest rings hold
MARK = re.compile(r"tracing_mark_write: reading (\d+) (\d+) (p*)$")
SIZES = (("64K", 4), ("64M", 4))
SIZES_OF_SUB_BUFFERS = (("1M", 16), ("64M", 64))


def write_marks(buffer):
    before = os.sched_getaffinity(0)
    marker = os.open(buffer / "trace_marker", os.O_WRONLY)
    try:
        for cpu in before:
            os.sched_setaffinity(0, {cpu})
            for i in range(MARKS):
                os.write(marker, f"reading {cpu} {i} {'p' * (i % 300)}\n".encode())
    finally:
        os.close(marker)
        os.sched_setaffinity(0, before)


def check_marks(test, told, ring):
    """Each CPU's line of the ledger agrees with the trace."""
    seen = {}
    for line in lines_of("\n".join(l for l in text_of(test).splitlines() if "[LOST " not in l)):
        m = MARK.search(line["text"])
        if m:
            check(line["cpu"].lstrip("0") == m[1].lstrip("0"), f"a mark of CPU {m[1]} on {line['cpu']}")
            check(len(m[3]) == int(m[2]) % 300, f"mark {m[2]} is not whole: {m[0]}")
            seen.setdefault(int(m[1]), []).append(int(m[2]))
    rows = {row["cpu"]: row for row in told["ledger"]}
    own = told["own_events"]
    for cpu in os.sched_getaffinity(0):
        row, numbers = rows[cpu], seen.get(cpu, [])
        check(numbers == sorted(set(numbers)), f"CPU {cpu}: not in order, or twice")
        check(MARKS <= row["written"] <= MARKS + 1, f"{row}: {MARKS} marks were written")
        check(row["events"] + row["lost_overrun"] + row["lost_other"] == row["written"], f"{row}")
        check(row["unread"] == 0 and row["events"] - 1 <= len(numbers) <= row["events"],
              f"{row}: {len(numbers)} marks in the text")
    check(sum(map(len, seen.values())) + own == told["events"], f"{own} of our own: {told}")
    check(told["lost"] == 0 or ring == "64K", f"{told['lost']} lost in rings of {ring}")


def read_by(test, reader, ring, kilobytes):
    config = test.dir / "traced.conf"
    # A spare does not carry a name of ours.
    config.write_text(f"[daemon]\nspare = no\n[defaults]\nreader = {reader}\n")
    test.daemon = Daemon(test, "--config", config)
    # An instance's sub-buffers are a page; the top level's are its owner's choice.
    top_level = kilobytes != 4
    size = TRACEFS / "buffer_subbuf_size_kb"
    if top_level:
        size.write_text(str(kilobytes))
        (TRACEFS / "trace").write_text("")

    def during():
        write_marks(TRACEFS if top_level else
                    INSTANCES / next(i for i in test.instances() if not i.endswith("-tasks")))

    try:
        done = record(test, "--json", "-b", ring, "-e", "sched:sched_process_hang",
                      *(["--top-level"] if top_level else []), "-o", "out.txt", during=during)
    finally:
        if top_level:
            size.write_text("4")
    check_marks(test, json.loads(done.out), ring)


def main():
    test = of_a_guest("reading")
    sizes = SIZES
    if (TRACEFS / "buffer_subbuf_size_kb").exists():
        sizes += SIZES_OF_SUB_BUFFERS
    release = tuple(map(int, os.uname().release.split(".")[:2]))
    for reader in ("read", "splice", "mmap") if release >= (6, 10) else ("read", "splice"):
        for ring, kilobytes in sizes:
            test.case(f"{reader}, rings of {ring}iB, sub-buffers of {kilobytes} KiB", read_by, reader, ring,
                      kilobytes)
    test.end()


if __name__ == "__main__":
    main()
