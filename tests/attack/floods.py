# SPDX-License-Identifier: LGPL-2.1-or-later
"""Marks at a rate that nobody's program needs: any user may make marks, and they go into root's recording."""

import fcntl
import mmap
import os
import socket
import struct
import time

from attack import VICTIM_S, Attack, Exceeded, Stranger, Victim, connect, report_attack
from descriptors import send_with
from harness import Daemon, check
from members import as_two_busy_loops

RINGS, RING = 4, 16 << 20
# Offsets in struct mark_ring of include/traced/mark_ring.h, and the types of its messages
HEAD, TAIL = 0, 64
MARKS_RING, MARKS_LOOK = 1, 2
SPOOL = 160 << 20


def message(kind):
    return struct.pack("<IHHIIiiII16s", 0x4b52414d, kind, 1, mmap.PAGESIZE, RING, os.getpid(), os.getpid(), 0, 0, b"flood")


def flood(path):
    """All rings are full again as soon as the daemon has taken them."""
    with connect(path, socket.SOCK_SEQPACKET) as s:
        rings = []
        for _ in range(RINGS):
            memory = os.memfd_create("ring", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(memory, mmap.PAGESIZE + RING)
            fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
            rings.append(mmap.mmap(memory, mmap.PAGESIZE))
            with open(memory, "rb", buffering=0) as file:
                send_with(s, message(MARKS_RING), [file])
        reported = False
        while True:
            for ring in rings:
                tail, = struct.unpack_from("<I", ring, TAIL)
                struct.pack_into("<I", ring, HEAD, (tail + RING) & 0xffffffff)
                if tail and not reported:
                    report_attack()
                    reported = True
            s.send(message(MARKS_LOOK))
            time.sleep(0.001)


def marks_socket(test):
    return test.daemon.socket.parent / "marks.sock"


def marks(test):
    return as_two_busy_loops(test, flood, marks_socket(test))


def marks_fill_the_spool(test):
    """The recording does not end early, and has its own events."""
    config = test.dir / "traced.conf"
    config.write_text(f"[daemon]\nspare = no\n[limits]\nspool_max = {SPOOL >> 20}M\nmark_rate = none\n")
    why = test.daemon.stop()
    check(not why, why)
    test.daemon = Daemon(test, "--config", str(config))
    most = 0
    with Victim(test) as v, Stranger(flood, marks_socket(test)):
        while v.client.poll() is None:
            most = max([most, *(f.stat().st_size for f in test.daemon.spool.iterdir())])
            time.sleep(0.05)
        v.finish()
    check("reached spool_max" not in v.words and "victim: its duration is over" in test.daemon.words(), v.words)
    # Its last events may be lost on a busy machine, but not each time.
    if v.span_s < VICTIM_S / 2:
        raise Exceeded(f"events of {v.span_s:.1f} s: {v.words}")
    check("marks of" in v.words, f"nothing says that marks are missing: {v.words}")
    v.figures.bytes = most
    return v.figures


ATTACKS = [
    Attack("a flood of marks", marks),
    Attack("a flood of marks into a small spool", marks_fill_the_spool, bytes=SPOOL * 3 // 4),
]
