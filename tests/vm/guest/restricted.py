#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In a guest, last: data that a kernel hides, and the messages about it. Lockdown ends with the
guest."""

import pathlib
import re
import subprocess

from common import check, of_a_guest, record, some_files, text_of

KPTR = pathlib.Path("/proc/sys/kernel/kptr_restrict")
LOCKDOWN = pathlib.Path("/sys/kernel/security/lockdown")


def hidden_symbols(test):
    """Names become addresses, and a message says why."""
    before = KPTR.read_text()
    KPTR.write_text("2")
    try:
        done = record(test, "-p", "function", "-l", "vfs_open", "-o", "out.txt")
        doctor = test.run("doctor")
    finally:
        KPTR.write_text(before)
    check("kernel.kptr_restrict" in done.err, f"no message says so: {done}")
    check(re.search(r"kernel\.kptr_restrict is 2: addresses will have no names", doctor.out), f"{doctor}")
    check(re.search(r": 0x[0-9a-f]+ <-0x[0-9a-f]+$", text_of(test), re.M), text_of(test)[-500:])


def integrity(test):
    """The weaker lockdown mode permits tracing."""
    LOCKDOWN.write_text("integrity")
    record(test, "-p", "function", "-l", "vfs_open", "--kprobe", "p:opened vfs_open", "-o", "out.txt",
           during=some_files)
    text = text_of(test)
    check("vfs_open <-" in text and ": opened: " in text, f"{text[-1500:]}")
    done = test.run("doctor")
    check("integrity" in done.out, f"{done}")


def confidentiality(test):
    LOCKDOWN.write_text("confidentiality")
    for arguments in ([], ["-p", "function", "-l", "vfs_open"], ["--kprobe", "p:opened vfs_open"]):
        done = test.run("record", "-t", "100ms", *arguments, "-o", "out.txt")
        check(done.status == 1 and "locked down" in done.err, f"{arguments}: {done}")
        check(not (test.dir / "out.txt").exists(), "a file was written")
    done = test.run("doctor")
    check(done.status != 0 and "confidentiality" in done.out, f"{done}")


def main():
    test = of_a_guest("restricted")
    test.case("symbols that the kernel hides", hidden_symbols, daemon=True)
    if not LOCKDOWN.exists():
        subprocess.run(["mount", "-t", "securityfs", "securityfs", str(LOCKDOWN.parent)], check=True)
    test.case("lockdown: integrity", integrity, daemon=True)
    test.case("lockdown: confidentiality", confidentiality)
    test.end()


if __name__ == "__main__":
    main()
