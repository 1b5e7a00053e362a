#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""After a crash or a power cut `tracectl recover` lists and exports what is left. A spool that was
truncated anywhere, with anything after the cut, gives all whole chunks, and nothing else."""

import datetime
import json
import os
import random
import re
import struct
import subprocess
import time

from harness import Test, check, in_namespace

STREAM_MAGIC = b"\x89traced\n"
CHUNK_HEADER = 24


def recording(test):
    """A recording of some events, as a spool has it, and its text."""
    r = test.run("record", "--name", f"{test.name}-lab", "-b", "256K", "-e", "sched", "-o", "lab.traced",
                 "--", "sh", "-c", "for i in $(seq 60); do /bin/true; done")
    check(r.status in (0, 3), f"{r}")
    r = test.run("convert", "lab.traced", "whole.txt")
    check(r.status in (0, 3), f"{r}")
    return (test.dir / "lab.traced").read_bytes()


def lines(path):
    """Without the names in front, because a truncation may remove one that is learnt at the end,
    and without the recorder's own mark, whose place in the kernel is an address if the symbols are
    damaged."""
    return [re.sub(r"^ *.*?(?=-\d+ +\[)", "", line) for line in path.read_text(errors="replace").splitlines()
            if not line.startswith("#") and "[LOST" not in line and "trace_event_clock_sync" not in line]


def listed_and_exported(test):
    data = recording(test)
    spool = test.dir / "left"
    spool.mkdir()
    # Without its end: the share of events in it depends on the machine.
    (spool / "20260102T030405Z-lab-0123abcd.traced").write_bytes(data[:-20])
    (spool / "20260102T030406Z-lab-1123abcd.traced").write_bytes(data)
    (spool / "20260102T030407Z-1000+other-day-2123abcd.traced").write_bytes(data)
    # The daemon's folder of spools, for this process only.
    wrap = in_namespace("mount -t tmpfs none /var/lib && mkdir -m 700 /var/lib/traced && "
                        f"cp {spool}/* /var/lib/traced")
    r = test.run("recover", wrap=wrap)
    check(r.status == 0 and len(r.out.splitlines()) == 3 and "other-day " in r.out, f"{r}")
    r = test.run("recover", "--json", wrap=wrap, env=test.environment(TZ="XYZ-5:30"))
    found = {f["file"].rsplit("/", 1)[1]: f for f in json.loads(r.out)}
    for f in found.values():
        age = time.time() - datetime.datetime.strptime(f["ended"], "%Y-%m-%d %H:%M:%S %z").timestamp()
        check(-2 < age < 60, f"ended {age} s ago: {f}")
    check(found["20260102T030407Z-1000+other-day-2123abcd.traced"]["session"] == "other-day", f"{r}")
    check(found["20260102T030406Z-lab-1123abcd.traced"]["bytes"] == len(data), f"{r}")
    with open("/dev/full", "wb") as full:
        r = subprocess.run([*wrap, *test.arguments("recover")], cwd=test.dir, env=test.environment(),
                           stdout=full, stderr=subprocess.PIPE, check=False)
    check(r.returncode == 1 and b"standard output" in r.stderr, f"{r}")
    r = test.run("recover", "lab", wrap=wrap)
    check(r.status == 0 and (test.dir / "lab.json").exists(), f"{r}")
    r = test.run("recover", "20260102T030405Z-lab-0123abcd.traced", "-o", "cut.txt", wrap=wrap)
    check(r.status == 3 and "cut.txt" in r.err, f"{r}")
    check(0 < len(lines(test.dir / "cut.txt")) <= len(lines(test.dir / "whole.txt")), "what is in it")
    r = test.run("recover", "nobody", wrap=wrap)
    check(r.status == 1 and "nobody" in r.err, f"{r}")
    r = test.run("recover", wrap=in_namespace("mount -t tmpfs none /var/lib"))
    check(r.status == 0 and "no recording is left" in r.out, f"{r}")


def power_cuts(test):
    """A file system may have the length but not the bytes: zeros, or older data."""
    seed = int(os.environ.get("CUT_SEED", random.randrange(1 << 30)))
    rng = random.Random(seed)
    data = recording(test)
    whole = lines(test.dir / "whole.txt")
    known, most = set(whole), 0
    for n in range(16):
        # The head is most of such a short recording.
        cut = rng.randrange(len(data)) if n < 4 else rng.randrange(len(data) * 3 // 4, len(data))
        what = ("nothing", "zeros", "garbage", "a hole before")[n % 4]
        left = data[:cut]
        if what == "zeros":
            left += bytes(min(len(data) - cut, 1 << 16))
        elif what == "garbage":
            left += rng.randbytes(rng.randrange(1, 1 << 14))
        elif what == "a hole before":
            at = max(0, cut - 4096)
            left = data[:at] + bytes(cut - at) + data[cut:]
        (test.dir / "left.traced").write_bytes(left)
        r = test.run("convert", "left.traced", "left.txt")
        told = f"seed {seed}: cut at {cut} of {len(data)}, then {what}: {r}"
        check(r.status in (1, 3) or left == data, told)
        check("tracectl:" in r.err or left == data, told)
        if r.status != 1:
            found = lines(test.dir / "left.txt")
            strange = [line for line in found if line not in known]
            check(not strange, f"{told}\n{strange[:3]}")
            most = max(most, len(found))
            (test.dir / "left.txt").unlink()
        else:
            check(not (test.dir / "left.txt").exists(), told)
    check(most > len(whole) // 8, f"seed {seed}: never more than {most} of {len(whole)} lines came out")


def damage_is_told(test):
    """For a chunk of each kind."""
    data = recording(test)
    at, kinds = len(STREAM_MAGIC), set()
    while at < len(data):
        kind, length = struct.unpack_from("<4xH2xI12x", data, at)
        payload = at + CHUNK_HEADER
        at = payload + (length + 7) // 8 * 8
        kinds.add(kind)
        left = bytearray(data)
        left[payload + length // 2] ^= 0x55
        (test.dir / "left.traced").write_bytes(left)
        r = test.run("convert", "left.traced", "left.txt")
        check(r.status in (1, 3) and "damaged" in r.err, f"a chunk of kind {kind}, {length} bytes: {r}")
    check(at == len(data) and len(kinds) > 8, f"{at} of {len(data)}: {kinds}")


def main():
    test = Test("recover")
    test.case("listed and exported", listed_and_exported)
    test.case("damage is told", damage_is_told)
    test.case("power cuts", power_cuts)
    test.end()


if __name__ == "__main__":
    main()
