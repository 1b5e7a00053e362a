#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""After a crash or a power cut `tracectl recover` lists and exports what is left. A spool that was
truncated anywhere, with anything after the cut, gives all whole chunks, and nothing else."""

import datetime
import fcntl
import gzip
import io
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

from harness import INSTANCES, TRACEFS, Daemon, Test, check, chunks, in_namespace, need, settled, top_level


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
    and without the recorder's own mark and the works of kernel threads, whose places in the kernel are
    addresses if the symbols are damaged."""
    return [re.sub(r"^ *.*?(?=-\d+ +\[)", "", line) for line in path.read_text(errors="replace").splitlines()
            if not line.startswith("#") and "[LOST" not in line and "trace_event_clock_sync" not in line and
            "sched_kthread_work" not in line]


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


def decoder_of(process):
    """The status of the one child of tracectl, as words by name."""
    def decoder():
        # Programs that prepare its place come and go.
        for child in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            try:
                if pathlib.Path(f"/proc/{child}/comm").read_text() == "tracectl-decode\n":
                    return int(child)
            except (FileNotFoundError, ProcessLookupError):
                pass
        return None

    settled("it decodes", decoder)
    child = decoder()
    # It waits for its output's reader.
    settled("it waits", lambda: "pipe" in pathlib.Path(f"/proc/{child}/wchan").read_text())
    status = pathlib.Path(f"/proc/{child}/status").read_text()
    return child, {line.split(":")[0]: line.split(":")[1].split() for line in status.splitlines()}


def roots_recording_is_decoded_by_another(test):
    """By the exporter's user, with nothing else; the output stays root's."""
    need(os.geteuid() == 0, "it needs root")
    recording(test)
    whole = (test.dir / "whole.txt").read_bytes()
    spool = test.dir / "20260102T030405Z-lab-0123abcd.traced"
    spool.write_bytes((test.dir / "lab.traced").read_bytes())
    wrap = in_namespace("mount -t tmpfs none /var/lib && mkdir -m 700 /var/lib/traced && "
                        f"cp {spool} /var/lib/traced")
    report = ("report", "sched", "lab.traced", "--json")
    rows = test.run(*report)
    check(rows.status in (0, 3), f"{rows}")
    for words, prefix, wanted in ((("convert", "lab.traced", "-", "--format", "txt"), (), whole),
                                  (("recover", "lab", "-o", "-", "--format", "txt"), wrap, whole),
                                  (report, (), rows.stdout)):
        # A small pipe holds it up; one that has more in it can't be made smaller.
        process = test.start(*words, wrap=prefix, pipesize=4096)
        _, status = decoder_of(process)
        check(len(set(status["Uid"])) == 1 and status["Uid"][0] != "0", f"{status}")
        check(set(status["Gid"]) == {"65534"} and not status["Groups"], f"{status}")
        check(all(int(status[caps][0], 16) == 0 for caps in
                  ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")), f"{status}")
        check(status["NoNewPrivs"] == ["1"], f"{status}")
        check(test.is_sanitized() or status["Seccomp"] == ["2"], f"{status}")
        result = test.finish(process)
        check(result.status in (0, 3) and result.stdout == wanted, f"{result.err}")
    # Ways in: a pipe, and compressed; the owner of the way out.
    packed = gzip.compress((test.dir / "lab.traced").read_bytes())
    r = test.run("convert", "-", "piped.txt", stdin=packed)
    check(r.status in (0, 3) and (test.dir / "piped.txt").read_bytes() == whole, f"{r}")
    state = (test.dir / "piped.txt").stat()
    check((state.st_uid, state.st_gid) == (0, 0) and state.st_mode & 0o600 == 0o600, f"{state}")
    r = test.run("convert", "lab.traced", "out.ctf")
    check(r.status in (0, 3) and (test.dir / "out.ctf").stat().st_uid == 0, f"{r}")


def a_killed_decoder_is_reported(test):
    need(os.geteuid() == 0, "it needs root")
    recording(test)
    before = test.files()
    os.mkfifo(test.dir / "out")
    reader = os.open(test.dir / "out", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    process = test.start("convert", "lab.traced", "out", "--format", "txt")
    child, _ = decoder_of(process)
    os.kill(child, signal.SIGKILL)
    result = test.finish(process)
    check(result.status == 1 and "tracectl-decode, which reads the input, was killed" in result.err,
          f"{result}")
    # And the other way round.
    process = test.start("convert", "lab.traced", "out", "--format", "txt")
    child, _ = decoder_of(process)
    process.kill()
    test.finish(process)
    settled("the decoder ends, too", lambda: not pathlib.Path(f"/proc/{child}").exists())
    os.close(reader)
    check(test.files() == sorted([*before, "out"]), f"{test.files()}")


def is_nameless(line, known):
    """Whether the line is one of the known ones, but for addresses that have no names."""
    parts = re.split(r"0x[0-9a-f]{16}", line)
    if len(parts) < 2:
        return False
    pattern = re.compile(r"\S+(?: \[\w+\])?".join(map(re.escape, parts)))
    return any(pattern.fullmatch(other) for other in known)


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
            # Symbols come last: what is cut earlier has addresses instead of names.
            if "the kernel's symbols are missing" in r.err:
                strange = [line for line in strange if not is_nameless(line, known)]
            check(not strange, f"{told}\n{strange[:3]}")
            most = max(most, len(found))
            (test.dir / "left.txt").unlink()
        else:
            check(not (test.dir / "left.txt").exists(), told)
    check(most > len(whole) // 8, f"seed {seed}: never more than {most} of {len(whole)} lines came out")


def damage_is_told(test):
    """For a chunk of each kind."""
    data = recording(test)
    kinds, stream = set(), io.BytesIO(data)
    for kind, _, length in chunks(stream):
        payload = stream.tell()
        kinds.add(kind)
        left = bytearray(data)
        left[payload + length // 2] ^= 0x55
        (test.dir / "left.traced").write_bytes(left)
        r = test.run("convert", "left.traced", "left.txt")
        check(r.status in (1, 3) and "damaged" in r.err, f"a chunk of kind {kind}, {length} bytes: {r}")
    check(stream.tell() == len(data) and len(kinds) > 8, f"{stream.tell()} of {len(data)}: {kinds}")


def late_undo(test):
    """A daemon is killed. Until the next one starts, the administrator changes a setting."""
    with top_level():
        r = test.run("start", "--top-level", "-e", "irq:irq_handler_entry", "--name", "top")
        need("somebody else" not in r.err and "another program" not in r.err, "the top-level buffer is in use")
        check(r.status == 0, f"{r}")
        test.daemon.process.kill()
        test.daemon.process.wait()
        check("[boot]" in (TRACEFS / "trace_clock").read_text(), "the recording has another clock")
        (TRACEFS / "trace_clock").write_text("mono")
        test.daemon = Daemon(test)
        check("trace_clock stays 'mono': it was changed after the crash" in test.daemon.words(),
              f"the log does not name the clock: {test.daemon.words()}")
        check("[mono]" in (TRACEFS / "trace_clock").read_text(), "the administrator's clock is gone")
        check((TRACEFS / "events/irq/irq_handler_entry/enable").read_text().strip() == "0", "our event is still on")


def main():
    test = Test("recover")
    if INSTANCES.is_dir() and os.geteuid() == 0:
        test.case("a setting changed after a crash", late_undo, daemon=True)
    test.case("listed and exported", listed_and_exported)
    test.case("root's recording is decoded by another user", roots_recording_is_decoded_by_another)
    test.case("a killed decoder is reported", a_killed_decoder_is_reported)
    test.case("damage is told", damage_is_told)
    test.case("power cuts", power_cuts)
    test.end()


if __name__ == "__main__":
    main()
