#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each call of the C library that a recording and a conversion make fails, one after another
(tests/fault). After each: no process crashed, a message reported the failure, a file under the
final name is whole, no instance is left, and a spool that is left can be converted. By default this
tests a sample for some seconds; FAULTS=all tests all of them, FAULTS=SECONDS a longer sample,
FAULT_SEED=N the same sample again."""

import errno
import json
import os
import random
import re
import struct
import subprocess
import time

from harness import Daemon, Failure, Test, check, skip

ERRNOS = {
    "open": ("EMFILE", "EACCES", "ENOMEM"), "read": ("EIO",), "write": ("ENOSPC", "EIO", "EDQUOT"),
    "splice": ("EIO", "ENOMEM", "EINVAL"), "ftruncate": ("EIO",), "fallocate": ("ENOSPC", "EOPNOTSUPP"),
    "fsync": ("EIO", "ENOSPC"), "stat": ("EIO",), "lseek": ("EIO",), "rename": ("EIO", "ENOSPC"),
    "link": ("EIO", "EDQUOT"), "mkdir": ("ENOSPC", "ENOMEM"), "mmap": ("ENOMEM",), "malloc": ("ENOMEM",),
    "pipe": ("EMFILE",), "socket": ("EMFILE",), "sendmsg": ("ENOBUFS",), "recvmsg": ("ENOMEM",),
    "poll": ("ENOMEM",), "epoll": ("ENOSPC",), "fork": ("EAGAIN",),
}
# A full disk stays full, and a limit that was reached stays reached.
LASTING = {"ENOSPC", "EDQUOT", "EMFILE"}


def names(header, which):
    body = header.split(f"#define FAULT_{which}_LIST(X)", 1)[1].replace("\\\n", " ").split("\n", 1)[0]
    return re.findall(r"X\((\w+)\)", body)


class Findings(list):
    """Reports each failure at the end."""

    def __enter__(self):
        return self

    def __exit__(self, kind, value, _):
        if kind is Failure:
            self.append(str(value))
            return True
        return False

    def tell(self):
        check(not self, f"{len(self)} findings:\n" + "\n".join(self[:20]))


class Faults:
    def __init__(self, test):
        header = (test.source / "tests/fault/fault.h").read_text()
        self.processes = names(header, "PROCESS")
        self.calls = names(header, "CALL")
        self.library = test.build / "tests/fault/fault.so"
        self.state = test.top / "faults"
        self.test = test
        self.ran = 0

    def environment(self, fault):
        """For programs in which the fault must occur; counts from the start."""
        self.state.write_bytes(bytes(4 * (1 + len(self.processes) * len(self.calls))))
        self.state.chmod(0o666)
        for f in self.test.files():
            (self.test.dir / f).unlink()
        env = self.test.environment(LD_PRELOAD=str(self.library), FAULT_STATE=str(self.state))
        if fault:
            env["FAULT"] = fault
        self.ran += 1
        return env

    def counts(self):
        words = struct.unpack(f"={1 + len(self.processes) * len(self.calls)}I", self.state.read_bytes())
        return {(p, c): words[1 + i * len(self.calls) + j] for i, p in enumerate(self.processes)
                for j, c in enumerate(self.calls)}

    def run(self, fault, *arguments):
        """Returns the result and the counts."""
        try:
            r = self.test.run(*arguments, env=self.environment(fault), timeout=60)
        except subprocess.TimeoutExpired as e:
            raise Failure(f"does not end: FAULT='{fault}': {(e.stderr or b'').decode(errors='replace')}") from None
        return r, self.counts()

    def all_of(self, counts):
        for (process, call), count in sorted(counts.items()):
            for code in ERRNOS[call]:
                for n in range(1, count + 1):
                    yield f"{process} {call} {n} {getattr(errno, code)}"
                if code in LASTING:
                    for n in range(1, count + 1):
                        yield f"{process} {call} {n}+ {getattr(errno, code)}"

    def sample(self, counts, seconds):
        """In an order in which each kind of call has its turn, however many there are."""
        seed = int(os.environ.get("FAULT_SEED", random.randrange(1 << 30)))
        rng = random.Random(seed)
        every = list(self.all_of(counts))
        kinds = {}
        for f in every:
            kinds.setdefault(tuple(f.split()[:2]), []).append(f)
        for k in kinds.values():
            rng.shuffle(k)
        order = [k[i] for i in range(max(map(len, kinds.values()))) for k in kinds.values() if i < len(k)]
        until = time.monotonic() + seconds
        for done, f in enumerate(order):
            if time.monotonic() > until:
                print(f"seed {seed}: {done} of {len(every)} faults")
                return
            yield f
        print(f"all {len(every)} faults")


def seconds(default):
    wanted = os.environ.get("FAULTS", "")
    return 1e9 if wanted == "all" else float(wanted or default)


def judge(test, fault, r, output, whole):
    """whole(text): fails if the output is wrong."""
    what = f"FAULT='{fault}': {r}"
    check(r.status in (0, 1, 3), f"unexpected exit status: {what}")
    check(r.status == 0 or "tracectl:" in r.err, f"failed without a message: {what}")
    check("was killed by signal" not in r.err, f"a crash: {what}")
    if r.status == 1:
        check(not output.exists(), f"failed, but there is an output: {what}")
    else:
        check(output.exists(), f"no output: {what}")
        whole(output, r.status, what)
    # A whole file that could not get its name is kept, and its name reported.
    left = [f for f in test.files() if f != output.name and f"saved as {test.dir}/{f}" not in r.err]
    check(not left, f"left {left}: {what}")


def conversions(test, faults, source):
    findings = Findings()
    for name in ("out.json", "out.txt", "out.pftrace", "out.json.gz"):
        output = test.dir / name
        r, counts = faults.run(None, "convert", source, output)
        check(r.status == 0, f"{r}")
        good = output.read_bytes()

        def whole(output, status, what, good=good):
            check(status == 3 or output.read_bytes() == good, f"another output: {what}")

        for fault in faults.sample(counts, seconds(2)):
            with findings:
                r, _ = faults.run(fault, "convert", source, output)
                judge(test, fault, r, output, whole)
    findings.tell()


def whole(output, _, what):
    trace = json.loads(output.read_text())
    check("systemTraceEvents" in trace, f"not a trace: {what}")


def recordings(test, faults):
    output = test.dir / "out.json"
    arguments = ("record", "--name", f"{test.name}-fault", "-t", "20ms", "-b", "64K", "-e", "sched:sched_switch",
                 "-o", output)

    r, counts = faults.run(None, *arguments)
    check(r.status == 0, f"{r}")
    judge(test, "", r, output, whole)
    spool = test.top / "spool"
    findings = Findings()
    for fault in faults.sample(counts, seconds(8)):
        with findings:
            r, _ = faults.run(fault, *arguments)
            judge(test, fault, r, output, whole)
        if test.instances():
            # The next daemon removes what the kernel refused to remove, or what a failed daemon
            # left.
            again = test.run(*arguments)
            with findings:
                check(again.status == 0, f"after FAULT='{fault}': {again}")
                test.check_no_instances()
        for s in spool.iterdir():
            if s.stat().st_size > 1 << 16:
                c = test.run("convert", s, "left.txt")
                (test.dir / "left.txt").unlink(missing_ok=True)
                with findings:
                    check(c.status in (0, 3), f"FAULT='{fault}': {s.name} is left, and not convertible: {c}")
            s.unlink()
    findings.tell()


def a_quota(test, faults):
    """A quota of the spool's filesystem is reported as that, and not as a limit that traced.conf sets."""
    arguments = ("record", "--name", f"{test.name}-quota", "-t", "20ms", "-b", "64K", "-e", "sched:sched_switch",
                 "-o", test.dir / "out.json")
    r, counts = faults.run(None, *arguments)
    check(r.status == 0, f"{r}")
    writes, reported = counts["traced", "write"], 0
    for n in range(max(writes - 20, 1), writes + 1):
        r, _ = faults.run(f"traced write {n} {errno.EDQUOT}", *arguments)
        check("reached its limit" not in r.err, f"write {n} of {writes}: {r}")
        reported += "the end of the recording is missing: Disk quota exceeded" in r.err
        for s in (test.top / "spool").iterdir():
            s.unlink()
    check(reported, f"none of the last writes of {writes} was one of the recording's end")


def serve(test, faults, fault, config, output):
    """A daemon that prepares instances, and one recording of it: neither leaves anything. Returns
    the counts."""
    # Messages about the daemon before, and its recording, if there was an error.
    for f in [*test.dir.glob("daemon/log"), *test.dir.glob("daemon/spool/*")]:
        f.unlink()
    try:
        test.daemon = Daemon(test, "--config", config, env=faults.environment(fault))
    except Failure as e:
        check("traced ended with 1:\ntraced: " in str(e), f"did not start, without a message: FAULT='{fault}': {e}")
        return faults.counts()
    try:
        r = test.run("record", "--name", f"{test.name}-fault", "-t", "20ms", "-e", "sched:sched_switch", "-o", output)
        judge(test, fault, r, output, whole)
    finally:
        daemon, test.daemon = test.daemon, None
        daemon.stop()
    code, pid = daemon.process.returncode, daemon.process.pid
    check(code == 0, f"FAULT='{fault}': the daemon ended with {code}: {daemon.words()}")
    if test.instances_of(pid):
        # Instances that could not be removed are in the journal.
        Daemon(test).stop()
    check(not test.instances_of(pid), f"FAULT='{fault}': left {test.instances_of(pid)}")
    return faults.counts()


def spares(test, faults):
    output, config = test.dir / "out.json", test.top / "spare.conf"
    config.write_text("[daemon]\nspare = yes\n[defaults]\nbuffer_size = 64K\n")
    counts = {key: n for key, n in serve(test, faults, None, config, output).items() if key[0] == "traced"}
    check(any(counts.values()), "no call is counted")
    findings = Findings()
    for fault in faults.sample(counts, seconds(8)):
        with findings:
            serve(test, faults, fault, config, output)
    findings.tell()


def main():
    test = Test("faults", root=False)
    if test.is_sanitized():
        skip("faults: a sanitizer wraps the same calls")
    faults = Faults(test)
    source = test.source / "tests/data/6.18.44/sched.traced"
    test.case("faults of a conversion", conversions, faults, source)
    if os.geteuid() == 0:
        test.case("faults of a recording", recordings, faults)
        test.case("a quota", a_quota, faults)
        test.case("faults of a daemon that has a spare", spares, faults)
    print(f"{faults.ran} runs")
    test.end()


if __name__ == "__main__":
    main()
