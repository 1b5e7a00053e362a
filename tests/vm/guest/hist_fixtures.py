#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""hist_fixtures.py BUILD_DIRECTORY: in a guest, writes texts of the kernel's histograms into
/out/data/VERSION/hists.gz (tests/vm/fixtures copies it to tests/data): the hist file of each
trigger, below a line "## TRIGGER"."""

import os
import pathlib
import subprocess
import sys

from common import INSTANCES, append, of_a_guest
from fixtures import version, write_gz

TRIGGERS = (
    ("sched/sched_switch", "hist:keys=next_comm"),
    ("sched/sched_switch", "hist:keys=prev_comm,next_pid:vals=next_prio:sort=next_pid:size=256 if next_prio < 130"),
    ("sched/sched_waking", "hist:keys=common_pid.execname,prio:sort=hitcount.descending"),
    ("raw_syscalls/sys_enter", "hist:keys=id.syscall"),
    ("kmem/kmalloc", "hist:keys=call_site.sym:vals=bytes_req,bytes_alloc"),
    ("kmem/kmalloc", "hist:keys=call_site.sym-offset,bytes_req.hex"),
    ("kmem/kmalloc", "hist:keys=bytes_req.log2:vals=bytes_alloc.hex"),
    ("kmem/kmalloc", "hist:keys=bytes_req.buckets=100,gfp_flags"),
    ("kmem/kmalloc", "hist:keys=stacktrace:vals=bytes_req"),
    ("kmem/kmalloc", "hist:keys=stacktrace,bytes_req.log2:vals=bytes_req"),
    ("kmem/kmalloc", "hist:keys=common_timestamp.usecs:size=128"),
    ("kmem/kmalloc", "hist:keys=bytes_req:vals=hitcount.percent,bytes_req.graph"),
    ("sched/sched_process_exec", "hist:keys=filename,pid"),
    ("sched/sched_process_exec", "hist:keys=filename"),
    ("sched/sched_waking", "hist:keys=cpu,target_cpu"),
    ("timer/hrtimer_start", "hist:keys=function.sym,mode"),
)
HOSTILE = "/tmp/a\n} hitcount:          5\n\nTotals:\n    Hits: 1\n    Entries: 1\n    Dropped: 0\n"


def load():
    program = pathlib.Path(HOSTILE)
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    for _ in range(3):
        subprocess.run([HOSTILE], check=True)
        subprocess.run(["ls", "-l", "/proc"], check=True, stdout=subprocess.DEVNULL)
    names = ("a } hitcount:  9", "x\ny: 1, z: 2", "")
    for name in names:
        subprocess.run([sys.executable, "-c", "import time; open('/proc/self/comm', 'w').write("
                        f"{name!r}); [time.sleep(0.01) for _ in range(5)]"], check=False)


def texts(test, out):
    text = bytearray()
    for number, (event, trigger) in enumerate(TRIGGERS):
        instance = INSTANCES / f"{test.name}-{number}"
        instance.mkdir()
        files = instance / "events" / event
        try:
            append(files / "trigger", trigger)
            load()
            append(files / "trigger", f"{trigger.partition(' if ')[0]}:pause"
                   f"{''.join(trigger.partition(' if ')[1:])}")
            text += f"## {trigger}\n".encode() + (files / "hist").read_bytes()
            append(files / "trigger", f"!{trigger}")
        except OSError as error:
            # Older kernels lack some modifiers.
            print(f"{trigger}: {error}: {(instance / 'error_log').read_text()}")
        finally:
            instance.rmdir()
    # Debian 11's kernel has no histograms.
    if text or any(INSTANCES.parent.glob("events/*/*/hist")):
        write_gz(out / "hists.gz", text)


def main():
    out = pathlib.Path("/out/data") / version()
    out.mkdir(parents=True, exist_ok=True)
    test = of_a_guest("hist-fixtures")
    test.case("texts of histograms", texts, out)
    test.end()
    os.sync()


if __name__ == "__main__":
    main()
