#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tracectl -H and --push over links that hang, drip, or are slow for longer than a host may be silent."""

import json
import os
import re
import signal
import subprocess
import time

from harness import Test, check
from hosts import LINE, command_line, far, run, run_cases
from hosts_push import Bare, push

# Takes a part, and ends with its input.
STUCK_HEAD = """#!/usr/bin/python3
import os, select
os.write(1, os.read(0, 4096))
left = select.poll()
left.register(0, select.POLLHUP)
left.poll()
"""
# A slow link behind large buffers: all of the program has left, and arrives bit by bit.
LATE_HEAD = """#!/usr/bin/python3
import os, sys, time
left = int(sys.argv[2])
data = bytearray()
while len(data) < left and (piece := os.read(0, left - len(data))):
    data += piece
for n in range(40):
    os.write(1, data[left * n // 40:left * (n + 1) // 40])
    time.sleep(0.5)
"""


def pushed_hangs(test):
    """A host that asks for the program and takes none of it, or a part, fails alone and soon."""
    good = Bare(test, name="good")
    part = Bare(test, name="part", head=STUCK_HEAD)
    hosts = {"good": good.host, "none": f"exec:echo @push {os.uname().machine} >&2; exec sleep 1000; :",
             # Its buffers have room for all of it.
             "all": f"exec:echo @push {os.uname().machine} >&2; tail -c 1 >&2; exec sleep 1000; :", "part": part.host}
    for words in (("record", "-t", "300ms", "-o", "out.txt"), ("list", "clocks")):
        began = time.monotonic()
        r = run(test, hosts, push(test), *words, timeout=300)
        took = time.monotonic() - began
        check(all(f"{name}: " in r.err for name in ("none", "all", "part")) and not re.search("^good: ", r.err, re.M), f"{words}: {r}")
        check(took < 60, f"{words}: after {took:.1f} s")
        check(r.status == (3 if "record" in words else 1), f"{words}: {r}")
        for bare in (good, part):
            bare.check_clean()
    seen = {m[1] for m in LINE.finditer((test.dir / "out.txt").read_text(errors="replace"))}
    check(seen == {"good"}, f"hosts in the text: {seen}")


def pushed_slowly(test):
    """A link that is slow for longer than a host may be silent."""
    bares = [Bare(test, name=name, head=LATE_HEAD) for name in ("status", "record")]
    began = time.monotonic()
    commands = [subprocess.Popen(command_line(test, {"a": bare.host}, push(test), *words), cwd=test.dir, env=test.environment(),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for bare, words in zip(bares, (("status", "--json"), ("record", "-t", "300ms", "-o", "out.txt")))]
    status, record = [test.finish(p, timeout=200) for p in commands]
    took = time.monotonic() - began
    check(status.status == 0 and not status.err and "sessions" in json.loads(status.out), f"status: {status}")
    check(record.status == 0 and "@" not in record.err and took > 18, f"record: {took:.1f} s {record}")
    for bare in bares:
        bare.check_clean()


def one_drips(test):
    """One that does not end, and sends a byte now and then, is left with what came."""
    r = test.run("record", "-t", "300ms", "-o", test.dir / "daemon" / "one.traced")
    check(r.status == 0, f"record: {r}")
    drips = (f'exec:echo @armed >&2; while read l; do test "$l" = stop && break; done; cat {test.dir}/daemon/one.traced; '
             "while printf x; do sleep 0.2; done;")
    began = time.monotonic()
    r = run(test, {"good": far(test), "bad": drips}, "record", "-t", "300ms", "-o", "out.txt", timeout=120)
    check(r.status == 3 and "bad: it does not end, and sent less than " in r.err, f"record: {r}")
    check(time.monotonic() - began < 60, f"it took {time.monotonic() - began} s")
    seen = {m[1] for m in LINE.finditer((test.dir / "out.txt").read_text(errors="replace"))}
    check(seen == {"good", "bad"}, f"hosts in the text: {seen}")


def one_goes_on(test):
    """After -t, one whose capture goes on and on is left with the first Ctrl-C, as the message says."""
    r = test.run("record", "-t", "300ms", "-o", test.dir / "daemon" / "one.traced")
    check(r.status == 0, f"record: {r}")
    on = (f'exec:echo @armed >&2; while read l; do test "$l" = stop && break; done; cat {test.dir}/daemon/one.traced; '
          "while head -c 16384 /dev/zero; do sleep 0.2; done;")
    p = subprocess.Popen(command_line(test, {"good": far(test), "on": on}, "record", "-t", "300ms", "-o", "out.txt"),
                         cwd=test.dir, env=test.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    for line in p.stderr:
        if b"on: it still sends its capture; Ctrl-C leaves the rest of it" in line:
            break
    p.send_signal(signal.SIGINT)
    r = test.finish(p)
    check(r.status == 3 and "on: it was left: its part is incomplete" in r.err, f"record: {r}")


def main():
    test = Test("hosts_waits")
    run_cases(test, one_drips, one_goes_on, pushed_hangs, pushed_slowly)
    test.end()


if __name__ == "__main__":
    main()
