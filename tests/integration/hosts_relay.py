#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""hosts_relay.py [--offset S] [--drift PPM] [--delay MS] [--jitter MS] [--utc-offset S] [--flip BYTE] [--cut S]
[--cut-early S] [--plain] [--keep FILE] -- COMMAND: a way to a host, as a bad network has it. --plain: the host's tracectl
is an older one, which knows of no compression. --keep: the capture's bytes on their way. Its clock, which the answers show, is another one
than the kernel's, and its time of day may be wrong."""
import argparse
import os
import random
import re
import subprocess
import sys
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("--offset", type=float, default=0)
parser.add_argument("--drift", type=float, default=0)
parser.add_argument("--delay", type=float, default=0)
parser.add_argument("--jitter", type=float, default=0)
parser.add_argument("--utc-offset", type=float, default=0)
parser.add_argument("--flip", type=int, default=-1)
parser.add_argument("--cut", type=float, default=0)
parser.add_argument("--cut-early", type=float, default=0)
parser.add_argument("--plain", action="store_true")
parser.add_argument("--keep", default="/dev/null")
parser.add_argument("command", nargs="+")
o = parser.parse_args()
began = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
if o.plain:
    o.command = ["--control" if word == "--control=zstd" else word for word in o.command]
child = subprocess.Popen(o.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait():
    """Mostly short, now and then long, and not the same in both directions."""
    time.sleep(o.delay / 1000)
    if o.jitter:
        time.sleep(random.expovariate(1) * o.jitter / 1000 * (10 if random.random() < 0.1 else 1))


def orders():
    # Orders come alone; a program comes in pieces.
    while piece := sys.stdin.buffer.read1(65536):
        wait()
        if piece.endswith(b"go\n") and o.cut:
            threading.Timer(o.cut, os._exit, (255,)).start()
        child.stdin.write(piece)
        child.stdin.flush()
    child.stdin.close()


def moved(ns):
    return ns + int(o.offset * 1e9 + (ns - began) * o.drift * 1e-6)


def answers():
    for line in iter(child.stderr.readline, b""):
        m = re.fullmatch(rb"@clock (\d+) (\d+)(?: (\d+) (\d+))?(?: (\d+) (\d+ \d+))?\n", line)
        if m:
            line = b"@clock %s %d" % (m[1], moved(int(m[2])))
            line += b" %d %s" % (int(m[3]) + int(o.utc_offset * 1e9), m[4]) if m[3] else b""
            line += b" %d %s\n" % (moved(int(m[5])), m[6]) if m[5] else b"\n"
        wait()
        os.write(2, line)


threading.Thread(target=orders, daemon=True).start()
if o.cut_early:
    threading.Timer(o.cut_early, os._exit, (255,)).start()
reader = threading.Thread(target=answers, daemon=True)
reader.start()
passed = 0
kept = open(o.keep, "wb", buffering=0)
while piece := child.stdout.read1(65536):
    if passed <= o.flip < passed + len(piece):
        at = o.flip - passed
        piece = piece[:at] + bytes([piece[at] ^ 0x55]) + piece[at + 1:]
    passed += len(piece)
    kept.write(piece)
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
reader.join()
os._exit(child.wait())
