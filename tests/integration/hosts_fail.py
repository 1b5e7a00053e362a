#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tracectl -H with hosts that fail: they start late or not at all, break off, lie, or are interrupted."""

import json
import re
import shutil
import signal
import struct
import subprocess
import time

from harness import PATIENCE_S, Test, check, in_namespace, settled
from hosts import LINE, check_clean, command_line, far, relay, run, run_cases


def one_fails(test):
    for bad, why in (("exec:false", "before the start"), ("exec:no-such-program", "PATH"),
                     ("exec:echo rubbish; :", "no capture"),
                     ("exec:echo @armed >&2; cat /dev/zero; :", "no capture"),
                     ("exec:echo @armed >&2; yes '('; :", "compressed capture is damaged"),
                     ('exec:echo @armed >&2; while read l; do test "$l" = stop && exit; done;', "no capture"),
                     ("exec:yes | head -c 10000000 >&2; exit 3; :", "left out")):
        hosts = {"good": far(test), "bad": bad}
        r = run(test, hosts, "record", "-t", "100ms", "-o", "out.txt")
        check(r.status == 3 and "bad: " in r.err and why in r.err, f"{bad}: {r}")
        check(len(r.err) < 50000, f"{bad}: {len(r.err)} bytes of messages")
        check("good " in (test.dir / "out.txt").read_text(errors="replace"), f"{bad}: nothing of the good one")
        (test.dir / "out.txt").unlink()
        # The others must be told the same in any order.
        for all_of in (hosts, dict(reversed(hosts.items()))):
            r = run(test, all_of, "--require-all", "record", "-t", "100ms", "-o", "out.txt")
            check(r.status == 1 and not test.files(), f"{bad}, all required: {test.files()} {r}")
            check("good: it does not end" not in r.err, f"{bad}, all required: {r}")


def lines_of_ssh(test):
    """ssh ends them with a carriage return, too."""
    host = {"bad": r"exec:printf 'no way\r\n' >&2; exit 255; :"}
    for words in (("record", "-t", "100ms", "-o", "out.txt"), ("status",)):
        r = run(test, host, *words)
        check(r.status in (1, 255) and re.search("no way ?\n", r.err), f"{words}: {r}")


def output_first(test):
    """An output that cannot be written is refused before anything is recorded."""
    host = {"a": "exec:touch started;"}
    two = {**host, "b": "exec:touch started;:"}
    for hosts, status, words in ((host, 1, ("-o", "absent/out.json")), (two, 1, ("-o", "absent/out.txt")),
                                 (two, 1, ("-o", "absent/out.traced")), (host, 1, ("-o", "absent/out.traced")),
                                 (host, 2, ("-o", "out.txt", "--generic", "yes")),
                                 (two, 2, ("-o", "out.pftrace", "--compress", "zstd")),
                                 (two, 2, ("-o", "-", "--format", "traced"))):
        r = run(test, hosts, "record", "-t", "300ms", *words)
        check(r.status == status and r.err, f"{words}: {r}")
        check(not test.files(), f"{words}: {test.files()}")


def one_hangs(test):
    """The others wait for one that is slow, but has answered."""
    slow = far(test).replace("exec:", "exec:echo @here >&2; sleep 17; ", 1)
    r = run(test, {"good": far(test), "bad": "exec:exec sleep 1000; :", "slow": slow}, "record", "-t", "300ms", "-o", "out.txt")
    check(r.status == 3 and "bad: it is not ready" in r.err and "slow: it" not in r.err, f"record: {r}")
    seen = {m[1] for m in LINE.finditer((test.dir / "out.txt").read_text(errors="replace"))}
    check(seen == {"good", "slow"}, f"hosts in the text: {seen}")


def first_has_nothing(test):
    """A first host whose capture has neither ties nor a time of day leaves the others theirs."""
    empty = test.dir / "daemon" / "empty"
    empty.write_bytes(b"\x89traced\n" + bytes(1000))
    lies = f'exec:echo @armed >&2; cat {empty}; while read l; do test "$l" = stop && exit; done;'
    mute = f'exec:echo @armed >&2; while read l; do test "$l" = stop && break; done; cat {test.dir}/daemon/one.traced;'
    r = test.run("record", "-t", "300ms", "-o", empty.with_name("one.traced"))
    check(r.status == 0, f"record: {r}")
    r = run(test, {"bad": lies, "good": mute}, "record", "-t", "300ms", "-o", "out.txt")
    check(r.status == 3 and "left out: bad" in r.err, f"record: {r}")
    check("good " in (test.dir / "out.txt").read_text(errors="replace"), "nothing of the good one")


def one_breaks(test):
    r = run(test, {"good": far(test), "bad": relay(test, "--cut", 2)}, "record", "-t", "4s", "-e", "sched",
            "-o", "out.txt")
    check(r.status == 3 and "bad: " in r.err and "incomplete" in r.err, f"record: {r}")
    seen = {m[1] for m in LINE.finditer((test.dir / "out.txt").read_text(errors="replace"))}
    check(seen == {"good", "bad"}, f"hosts in the text: {seen}")
    check_clean(test)


def one_lies(test):
    """A damaged chunk: what is sound stays."""
    # The last byte is beyond what a shorter recording has.
    for at, time_ in ((3, "200ms"), (40, "200ms"), (1000, "200ms"), (30000, "200ms"), (300000, "700ms")):
        r = run(test, {"good": far(test), "bad": relay(test, "--flip", at), "plain": relay(test, "--plain", "--flip", at)},
                "record", "-t", time_, "-e", "sched", "-e", "raw_syscalls", "-o", "out.txt")
        check(r.status in (0, 3), f"byte {at}: {r}")
        seen = {m[1] for m in LINE.finditer((test.dir / "out.txt").read_text(errors="replace"))}
        check("good" in seen, f"byte {at}: hosts in the text: {seen}")
        (test.dir / "out.txt").unlink()


def packed(data, *words):
    return subprocess.run(["zstd", "-cq", *words], input=data, capture_output=True, check=True).stdout


def bombs(test):
    """Few bytes that unpack to many, and a window that needs much memory."""
    head = b"\x89traced\n"
    place, small = test.dir / "daemon", test.dir / "small"

    def host(name):
        return f'exec:echo @armed >&2; cat {place}/{name}; while read l; do test "$l" = stop && exit; done;'

    (place / "bomb").write_bytes(packed(head) + 16 * packed(bytes(256 << 20)))
    (place / "window").write_bytes(packed(head + bytes(1 << 20), "--long=27"))
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400m", "none", small], check=True)
    try:
        r = run(test, {"bomb": host("bomb")}, "record", "-t", "300ms", "-o", "out.txt", env=test.environment(TMPDIR=small))
    finally:
        subprocess.run(["umount", "-l", small], check=True)
        small.rmdir()
    check(r.status == 1 and "bomb: no space is left here for its capture" in r.err and not test.files(), r)
    r = run(test, {"good": far(test), "window": host("window")}, "record", "-t", "300ms", "-o", "out.txt")
    check(r.status == 3 and "window: its compressed capture is damaged" in r.err, r)
    check("good " in (test.dir / "out.txt").read_text(errors="replace"), f"nothing of the good one: {r}")


def what_is_missing_there(test):
    """A recorder that reports something missing, and a compressed capture that ends too early: exit status 3."""
    whole, place = test.dir / "daemon" / "one.traced", test.dir / "daemon"
    r = test.run("record", "-t", "300ms", "-e", "sched", "-o", whole)
    check(r.status == 0, f"record: {r}")
    data = packed(whole.read_bytes())
    (place / "whole.zst").write_bytes(data)
    (place / "cut.zst").write_bytes(data[:-1])

    def host(sent, ends):
        return f'exec:echo @armed >&2; while read l; do test "$l" = stop && break; done; cat {sent}; exit {ends}; :'

    bad = {"a": host(whole, 3), "b": host(place / "whole.zst", 3), "c": host(place / "cut.zst", 0)}
    good = {"d": host(whole, 0), "e": host(place / "whole.zst", 0)}
    for hosts, output in ((good, "good.traced"), ({**bad, **good}, "all.traced"), ({"a": bad["a"]}, "a.txt")):
        r = run(test, hosts, "record", "-t", "300ms", "-o", output)
        check(r.status == (3 if "a" in hosts else 0), f"{output}: {r}")
        told = {name: re.search(rf"{name}: its (recording lacks something|compressed capture was cut)", r.err) for name in hosts}
        check({name for name in told if told[name]} == hosts.keys() & bad.keys(), f"{output}: {r}")
    whole.unlink()


def nothing_is_thrown_away(test):
    """What was recorded is kept if it can't be written, and can be converted then."""
    place, disk = test.dir / "daemon" / "temp", test.dir / "disk"
    place.mkdir()
    disk.mkdir()
    small = in_namespace(f"mount -t tmpfs -o size=64k none {disk}")
    for hosts, output in (({"a": far(test), "b": far(test, "nice")}, "o.json"), ({"a": far(test), "b": far(test, "nice")}, "o.traced"),
                          ({"a": far(test)}, "o.txt")):
        done = subprocess.run([*small, *command_line(test, hosts, "record", "-t", "500ms", "-e", "sched", "-e", "raw_syscalls", "-o",
                                                     disk / output)], cwd=test.dir, capture_output=True, stdin=subprocess.DEVNULL,
                              env=test.environment(TMPDIR=str(place)), timeout=PATIENCE_S, check=False, text=True)
        check(done.returncode == 1 and "No space left" in done.stderr, f"{output}: {done}")
        safe = re.search(r"what was recorded is safe: tracectl convert (.+) -o FILE$", done.stderr, re.M)
        check(safe and len(safe[1].split()) == len(hosts), f"{output}: {done}")
        r = test.run("convert", *safe[1].split(), "-o", "kept.json")
        check(r.status == 0 and json.loads((test.dir / "kept.json").read_text())["systemTraceEvents"], f"{output}: {r}")
        shutil.rmtree(place)
        place.mkdir()
    place.rmdir()
    disk.rmdir()


def appended(test):
    """A file at whose end the shell writes takes no bytes by sendfile(2)."""
    (test.dir / "all.traced").write_bytes(b"")
    with (test.dir / "all.traced").open("ab") as f:
        done = subprocess.run(command_line(test, {"a": far(test)}, "record", "-t", "300ms", "-o", "-", "--format", "traced"), cwd=test.dir,
                              env=test.environment(), stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.PIPE, timeout=PATIENCE_S,
                              check=False)
    check(done.returncode == 0, f"record: {done}")
    r = test.run("convert", "all.traced", "all.txt")
    check(r.status == 0 and "sched_switch" in (test.dir / "all.txt").read_text(), f"convert: {r}")


def interrupted(test):
    hosts = {"a": far(test), "b": far(test, "nice")}
    p = subprocess.Popen(command_line(test, hosts, "record", "-o", "out.txt"), cwd=test.dir, env=test.environment(),
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in p.stderr:
        if b"until Ctrl-C" in line:
            break
    time.sleep(0.5)
    p.send_signal(signal.SIGINT)
    r = test.finish(p)
    check(r.status == 0, f"record: {r}")
    seen = {m[1] for m in LINE.finditer((test.dir / "out.txt").read_text(errors="replace"))}
    check(seen == {"a", "b"}, f"hosts in the text: {seen}")


def ordered(test, orders):
    """The far side alone, which gets these orders once it is armed."""
    with subprocess.Popen(test.arguments("record", "--control", "-o", "out.traced", "-e", "sched:sched_switch"), cwd=test.dir,
                          env=test.environment(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as p:
        check([p.stderr.readline(), p.stderr.readline()] == [b"@here\n", b"@armed\n"], "it is not armed")
        p.stdin.write(orders)
        p.stdin.flush()
        err = p.stderr.read().decode()
        return p.wait(PATIENCE_S), err


def stopped_at_once(test):
    """A "stop" in one read with "go" ends a recording that has begun; before it, one that has not."""
    status, err = ordered(test, b"go\nstop\n")
    check(status == 0 and (test.dir / "out.traced").exists(), f"{status}: {err}")
    (test.dir / "out.traced").unlink()
    for orders in (b"stop\n", b"stop\ngo\n"):
        status, err = ordered(test, orders)
        check(status == 1 and "cancelled before it began" in err and not test.files(), f"{orders}: {status}: {err}")
    check_clean(test)


def killed(test):
    """The recorders end with their orders."""
    p = subprocess.Popen(command_line(test, {"a": far(test), "b": far(test, "nice")}, "record", "-o", "out.txt"),
                         cwd=test.dir, env=test.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    settled("both record", lambda: len(json.loads(test.run("status", "--json").out)["sessions"]) == 2)
    p.kill()
    p.wait()
    check_clean(test)
    check(not test.files(), f"files: {test.files()}")


# In front of each chunk's payload: magic, type, flags, length, CPU, hash.
CHUNK = struct.Struct("<IHHIIQ")
MAGIC_BYTES = 8
HOST = 25


def chunks(capture):
    """Type, and the place of the payload."""
    at = MAGIC_BYTES
    while at < len(capture):
        _, kind, _, length, _, _ = CHUNK.unpack_from(capture, at)
        at += CHUNK.size
        yield kind, at, length
        at += (length + 7) // 8 * 8


def damaged_host(test):
    """A host's own words can't be read: its events are there, and a message says what is missing."""
    r = run(test, {"pump": far(test), "valve": far(test, "nice")}, "record", "-t", "300ms", "-e", "sched",
            "-e", "tcp", "-e", "sock", "-o", "out.traced")
    check(r.status == 0, f"record: {r}")
    path = test.dir / "out.valve.traced"
    capture = bytearray(path.read_bytes())
    place, = [at for kind, at, _ in chunks(capture) if kind == HOST]
    capture[place + 1] ^= 1
    path.write_bytes(capture)
    (test.dir / "bad.traced").write_bytes(capture)
    says = ": its HOST chunk is damaged: the machine's name and the ties of its clock are missing"
    r = test.run("convert", "out.pump.traced", "bad.traced", "-o", "out.json")
    check(r.status == 3 and "tracectl: bad" + says in r.err and "pump" + says not in r.err, f"convert: {r}")
    check("bad: placed by the time of day" in r.err, f"convert: {r}")
    other = json.loads((test.dir / "out.json").read_text())["otherData"]
    check("bad" + says in other["warnings"], f"warnings: {other['warnings']}")
    r = test.run("report", "net", "out.pump.traced", "bad.traced")
    check("tracectl: bad" + says in r.err, f"report: {r}")


def main():
    test = Test("hosts_fail")
    run_cases(test, one_fails, lines_of_ssh, output_first, one_hangs, first_has_nothing, one_breaks, one_lies, bombs,
              what_is_missing_there, nothing_is_thrown_away, appended, interrupted, stopped_at_once, killed, damaged_host)
    test.end()


if __name__ == "__main__":
    main()
