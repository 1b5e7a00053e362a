#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""trace-cmd's files as input and output of tracectl: recorded ones of tests/data, whole, piped,
truncated and damaged; and trace-cmd's own report of our files, if it is installed. Without root and
tracefs nothing is recorded."""

import gzip
import re
import shutil
import subprocess

from harness import Test, check, need, need_tracefs

PEER = "tests/data/trace-cmd-3.1.6"


def peer(test, name):
    data = (test.source / PEER / name).read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else data


def events(text):
    return [line for line in text.splitlines() if not line.startswith("#")]


def peer_text(test, name):
    return events(peer(test, name + ".txt.gz").decode())


def convert(test, data, *arguments, status=0):
    (test.dir / "in.dat").write_bytes(data)
    result = test.run("convert", *arguments, "in.dat", "out.txt")
    check(result.status == status, f"expected exit status {status}: {result}")
    files = ["in.dat"] + (["out.txt"] if status in (0, 3) else [])
    check(test.files() == files, f"left files: {test.files()}")
    text = (test.dir / "out.txt").read_text() if status in (0, 3) else ""
    (test.dir / "out.txt").unlink(missing_ok=True)
    return result, events(text)


def all_versions(test):
    """The kernel's own text, of each buffer; and all of them as one."""
    for name in ("v6.dat.gz", "v7-none.dat.gz", "v7-zstd.dat"):
        data = peer(test, name)
        both = sum(len(peer_text(test, n)) for n in ("dat-peer", "dat-two"))
        for instance in ("dat-peer", "dat-two"):
            _, lines = convert(test, data, "--instance", instance)
            check(lines == peer_text(test, instance), f"{name}: not the kernel's text of {instance}")
        result, lines = convert(test, data)
        check(len(lines) == both, f"{name}: {len(lines)} lines of {both}")
        check("none lost" in result.err, f"{result}")


def by_pipe_and_by_way_of_a_stream(test):
    data = peer(test, "v6.dat.gz")
    (test.dir / "in.dat").write_bytes(data)
    check(test.run("convert", "in.dat", "x.traced").status == 0, "to a stream")
    check(test.run("convert", "x.traced", "x.txt").status == 0, "from the stream")
    piped = test.run("convert", "--format", "txt", "-", "-", stdin=data)
    check(piped.status == 0, f"{piped}")
    check(piped.stdout == (test.dir / "x.txt").read_bytes(), "the pipe's text differs")


def wrong_buffer(test):
    result, _ = convert(test, peer(test, "v7-zstd.dat"), "--instance", "nosuch", status=1)
    check("no buffer 'nosuch'" in result.err and "'dat-two', 'dat-peer'" in result.err, f"{result}")
    # The instance exists, and is empty.
    result, _ = convert(test, peer(test, "v7-zstd.dat"), "--instance", "", status=3)
    check("NOT ONE EVENT" in result.err, f"{result}")
    (test.dir / "in.dat").write_bytes(b"\x89traced\n")
    result = test.run("convert", "--instance", "x", "in.dat", "out.txt")
    check(result.status == 1 and "is none" in result.err, f"{result}")


def cut_and_damaged(test):
    six, seven = peer(test, "v6.dat.gz"), peer(test, "v7-zstd.dat")
    whole = sum(len(peer_text(test, n)) for n in ("dat-peer", "dat-two"))
    # A version 6 that ends within its events is converted, with a message that it is not whole.
    result, lines = convert(test, six[:-4096 * 3], status=3)
    check("INCOMPLETE" in result.err and re.search(r"events of CPU \d", result.err), f"{result}")
    check(0 < len(lines) < whole, f"{len(lines)} lines of {whole}")
    for data in (six[:40], six[:3000], seven[:len(seven) // 2], seven[:len(seven) * 9 // 10], seven[:30]):
        result, _ = convert(test, data, status=1)
        check("in.dat: " in result.err and "damaged" in result.err, f"{result}")
    for i in range(12):
        for good in (six, seven):
            at = len(good) * i // 12 + i
            bad = bytearray(good)
            bad[at] ^= 0x10
            (test.dir / "in.dat").write_bytes(bad)
            result = test.run("convert", "in.dat", "out.txt")
            check(result.status in (0, 1, 3), f"damage at {at}: {result}")


def report(test, name):
    done = subprocess.run(["trace-cmd", "report", "-i", test.dir / name], capture_output=True, check=False)
    check(done.returncode == 0, f"trace-cmd report {name}: {done.stderr[-1000:]}")
    return done.stdout.decode(errors="replace").splitlines()


def reported_alike(test):
    """trace-cmd's report of its own file, and of ours made from it."""
    need(shutil.which("trace-cmd"), "trace-cmd is not installed")
    for name in ("v6.dat.gz", "v7-none.dat.gz", "v7-zstd.dat"):
        (test.dir / "peer.dat").write_bytes(peer(test, name))
        theirs = report(test, "peer.dat")
        for form in ([], ["--compress=zstd"]):
            result = test.run("convert", *form, "peer.dat", "ours.dat")
            check(result.status == 0, f"{result}")
            check(report(test, "ours.dat") == theirs, f"{name}, {form}: another report")


def other_machines(test):
    """32 bits and the other byte order: trace-cmd sees as many events as we do, in both versions."""
    need(shutil.which("trace-cmd"), "trace-cmd is not installed")
    for machine in ("6.12.107-armhf", "6.12.107-s390x"):
        (test.dir / "x.traced").write_bytes(gzip.decompress(
            (test.source / "tests/data" / machine / "mixed.traced.gz").read_bytes()))
        result = test.run("convert", "x.traced", "x.txt")
        check(result.status == 0, f"{result}")
        ours = [line for line in (test.dir / "x.txt").read_text(errors="replace").splitlines()
                if not line.startswith("#")]
        reports = []
        for form in ([], ["--compress=zstd"]):
            result = test.run("convert", *form, "x.traced", "x.dat")
            check(result.status == 0, f"{result}")
            reports.append(report(test, "x.dat"))
        check(reports[0] == reports[1], f"{machine}: the versions differ")
        # "cpus=2", and an event a line.
        check(len(ours) > 1000 and len(reports[0]) == len(ours) + 1,
              f"{machine}: {len(reports[0])} lines for {len(ours)}")


def recorded(test):
    need_tracefs()
    result = test.run("record", "--name", test.name, "-t", "300ms", "-e", "sched", "-o", "x.dat")
    check(result.status == 0, f"{result}")
    result = test.run("convert", "--json", "x.dat", "x.txt")
    check(result.status == 0, f"{result}")
    lines = events((test.dir / "x.txt").read_text(errors="replace"))
    check(len(lines) > 10, f"{len(lines)} events")
    if shutil.which("trace-cmd"):
        # "cpus=2", and an event a line.
        check(len(report(test, "x.dat")) == len(lines) + 1, "trace-cmd reports another number of events")
    for clock in ("boot", "mono"):
        result = test.run("record", "--name", test.name, "-t", "100ms", "-C", clock, "-o", "c.dat")
        told = result.err.count("trace-cmd report shows times of the clock boot as whole numbers")
        check(result.status == 0 and told == (clock == "boot"), f"{clock}: {result}")
        if shutil.which("trace-cmd"):
            whole = not re.search(r"\] +\d+\.\d+: ", report(test, "c.dat")[1])
            check(whole == (clock == "boot"), f"{clock}: {report(test, 'c.dat')[1]}")
    (test.dir / "c.dat").unlink()
    piped = test.run("record", "--name", test.name, "-t", "100ms", "--format", "dat", "-o", "-")
    check(piped.status == 0 and piped.stdout[:10] == b"\x17\x08\x44tracing", f"{piped.err}")
    result = test.run("record", "--name", test.name, "-t", "1h", "--format", "dat", "--compress=zstd", "-o", "-")
    check(result.status == 1 and "to a pipe" in result.err and not result.stdout, f"{result}")
    result = test.run("record", "--name", test.name, "-t", "100ms", "--stream", "-o", "y.dat")
    check(result.status == 2 and "omit --stream" in result.err, f"{result}")
    check("y.dat" not in test.files(), "a file is left")


def main():
    test = Test("trace-dat", root=False)
    test.case("all versions", all_versions)
    test.case("by a pipe, by way of a stream", by_pipe_and_by_way_of_a_stream)
    test.case("a buffer that is not there", wrong_buffer)
    test.case("cut and damaged", cut_and_damaged)
    test.case("reported alike", reported_alike)
    test.case("32 bits, the other byte order", other_machines)
    test.case("recorded", recorded)
    test.end()


if __name__ == "__main__":
    main()
