#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tracectl -H: commands on other machines, and their recordings on one timeline. The "machines" are this one,
by pipes: so each event is in every recording, and its times tell the error of the clock ties. hosts_fail.py has
hosts that fail, hosts_push.py has ssh and --push."""

import collections
import contextlib
import csv
import gzip
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import time

from harness import PATIENCE_S, Result, Test, check, need, settled
from html import blocks, restored
from perfetto_decode import Decoder
from perfetto_infer import Reader
from python_marks import PROGRAM, run_env
from trace_event_rules import problems

WITHOUT_A_DAEMON = ("files_of_hosts", "notes_once", "pushed_alone")
RELAY = pathlib.Path(__file__).resolve().parent / "hosts_relay.py"
TIED = re.compile(r"(\S+): clock tied within (\d+\.\d+) us by ([^,]*), drift (?:([+-]\d+\.\d+) ppm|unknown)")
LINE = re.compile(r"^(\S+) +\S.*-\d+ +\[\d+\] \S+ +(\d+\.\d+): (\w+: .*)$", re.M)


def far(test, before=""):
    """A host: a pipe to our tracectl."""
    return f"exec:{before} env PATH={test.tracectl.parent}:{os.environ['PATH']}"


def relay(test, *options):
    return far(test, " ".join(["/usr/bin/python3", str(RELAY), *map(str, options), "--"]))


def command_line(test, hosts, *words):
    labels = [w for name, host in hosts.items() for w in ("--label", f"{name}={host}")]
    return [str(test.tracectl), "--socket", str(test.daemon.socket), *labels, *map(str, words)]


def run(test, hosts, *words, timeout=PATIENCE_S, env=None):
    done = subprocess.run(command_line(test, hosts, *words), cwd=test.dir, env=env or test.environment(),
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False)
    return Result(done.returncode, done.stdout, done.stderr)


def bounds(result):
    """By label: the stated bound in us."""
    return {m[1]: float(m[2]) for m in TIED.finditer(result.err)}


# Far more than a tie may be wrong, and less than most runs of a task are apart.
SAME_EVENT_S = 0.1


def errors(text, one, other):
    """Seconds from an event in one recording to the same event in the other one."""
    times = {one: {}, other: {}}
    for label, at, what in LINE.findall(text):
        # With a number of ns that hardly two of them share.
        if label in times and re.search(r"runtime=\d{6,}", what):
            times[label].setdefault(what, []).append(float(at))
    return [b - a for what, seen in times[one].items() if len(seen) == 1
            for a, b in [(seen[0], times[other].get(what, [None])[0])]
            if b is not None and len(times[other][what]) == 1]


def largest(wrong):
    """The largest error of the clocks. Neighbours share it; but one event's two stamps can be 0.1 ms apart, if the
    hypervisor stops the CPU between them. So the median of nine neighbours counts."""
    check(len(wrong) >= 9, f"only {len(wrong)} events are in both")
    return max((statistics.median(wrong[i:i + 9]) for i in range(len(wrong) - 8)), key=abs)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 2:
            length, at = varint(data, at)
            value = data[at:at + length]
            at += length
        else:
            size = {1: 8, 5: 4}[tag & 7]
            value = data[at:at + size]
            at += size
        yield tag >> 3, value


BEGINS = re.compile(r"recordings begin within (\d+\.\d+) us of one another")


def begins_apart(result):
    """The stated largest difference of the begins, in us."""
    stated = BEGINS.findall(result.err)
    check(len(stated) == 1, f"it is not said how far apart the recordings begin: {result}")
    return float(stated[0])


def files_of_hosts(test):
    """Lines that are no hosts are refused, with their place."""
    file = test.dir / "hosts"
    for text, status, says in (
            (b"# mine\n\n a=exec:echo A;:\nexec:echo B=1;:\n", 0, ""),
            (b"a=exec:echo A;:\0\nb=exec:echo B;:\n", 2, "hosts is no text: it has a NUL"),
            (b"# mine\nx y=exec:true\n", 2, "hosts:2: 'x y' can't name a host"),
            (b"a=exec:true\n=exec:true\n", 2, "hosts:2: '' can't name a host"),
            (b"\xef\xbb\xbfa=root@b\n", 2, "hosts:1: '"),
            (b"a=-b\n", 2, "hosts:1: '-b' is not a host"),
            # They would run the command on this machine.
            (b"exec:\n", 2, "hosts:1: 'exec:' is not a host"),
            (b"a=exec: \t\n", 2, "hosts:1: 'exec:' is not a host"),
            (b"adb:\n", 2, "hosts:1: 'adb:' is not a host")):
        file.write_bytes(text)
        r = subprocess.run([test.tracectl, "--hosts", "hosts", "status"], cwd=test.dir, capture_output=True, text=True,
                           timeout=PATIENCE_S, check=False)
        check(r.returncode == status and says in r.stderr, f"{text}: {r}")
        check(status or r.stdout.count("\n") == 5, f"{text}: {r}")
    file.unlink()
    for spec in ("exec:", "exec: ", "adb:"):
        r = subprocess.run([test.tracectl, "-H", spec, "record", "-t", "100ms", "-o", "x.json"], cwd=test.dir, capture_output=True,
                           text=True, timeout=PATIENCE_S, check=False)
        check(r.returncode == 2 and f"'{spec}' is not a host" in r.stderr and not test.files(), r)


def any_command(test):
    """Sessions of a host: their files are there, or come here byte by byte as standard output."""
    there = test.dir / "there"
    there.mkdir()
    host, name = {"a": far(test, f"env -C {there}")}, test.name
    folder = test.dir / "there" / "snapshots"
    exits = "event sched:sched_process_exit if comm == 'far-exit'"
    for words in (("--name", name, "--ring"), ("--name", f"{name}-on", "--ring", "--on", exits, "--after", "1ms", "-o", "snapshots")):
        r = run(test, host, "start", "-e", "sched", *words)
        check(r.status == 0 and r.out == f"{words[1]}\n", f"start: {r}")
    program = test.dir / "far-exit"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    waiting = subprocess.Popen(command_line(test, host, "wait", "--on", exits, "--after", "1ms", "-t", "60s"), stderr=subprocess.PIPE)
    settled("it waits", lambda: test.run("list").out.count("-watch") == 1)
    settled("a condition is met", lambda: subprocess.run([program], check=True) and waiting.poll() is not None)
    check(waiting.returncode == 0 and exits in waiting.stderr.read().decode(), "wait")
    waiting.stderr.close()
    settled("a snapshot is there", lambda: list(folder.glob("*.json")))
    # Ctrl-C ends what waits there, which prints nothing.
    waiting = subprocess.Popen(command_line(test, host, "wait", "--on", "irq.max > 1h"), stderr=subprocess.DEVNULL)
    settled("it waits", lambda: test.run("list").out.count("-watch") == 1)
    waiting.send_signal(signal.SIGINT)
    check(waiting.wait(PATIENCE_S) == -signal.SIGINT, f"interrupted: {waiting.returncode}")
    settled("it waits no longer", lambda: "-watch" not in test.run("list").out)
    r = run(test, host, "cancel", f"{name}-on")
    check(r.status == 0, f"cancel: {r}")
    for words, valid in ((("--format", "traced"), lambda data: data.startswith(b"\x89traced")), (("--format", "json.gz"), gzip.decompress)):
        r = run(test, host, "snapshot", name, "-o", "-", *words)
        check(r.status == 0 and valid(r.stdout), f"snapshot {words}: {r}")
        (test.dir / "x").write_bytes(r.stdout)
    r = run(test, host, "stop", name, "-o", "x.traced")
    check(r.status == 0 and (there / "x.traced").exists() and not (test.dir / "x.traced").exists(), f"stop: {r}")
    r = run(test, host, "attach", name)
    check(r.status == 1 and f'there is no session "{name}"' in r.err, f"attach: {r}")
    r = run(test, host, "convert", "x.traced", "-o", "x.txt")
    check(r.status == 0 and "sched_switch: " in (there / "x.txt").read_text(errors="replace"), f"convert: {r}")
    r = run(test, host, "convert", "x.traced", "-", "--format", "json.gz")
    check(r.status == 0 and gzip.decompress(r.stdout), f"convert to standard output: {r}")
    r = run(test, host, "recover")
    check(r.status == 0 and ("no recording is left" in r.out or ".traced" in r.out), f"recover: {r}")
    r = run(test, {"a": far(test), "b": far(test, "nice")}, "snapshot", "-o", "-")
    check(r.status == 2 and "an output - is for one host" in r.err and not r.out, f"two: {r}")
    check(test.files() == ["far-exit", "there", "x"], test.files())


def by_adb(test):
    """adb gets the serial, and one line for the board's shell."""
    tools = test.dir / "tools"
    tools.mkdir()
    adb = tools / "adb"
    adb.write_text(f"""#!/bin/sh
echo "$@" >>'{test.dir}/adb'
test "$1 $3 $4 $#" = '-s shell -T 5' || exit 9
PATH={test.tracectl.parent}:$PATH exec sh -c "$5"
""")
    adb.chmod(0o755)
    env = test.environment(PATH=f"{tools}:{os.environ['PATH']}")
    r = run(test, {"board": "adb:emulator-5554"}, "list", "clocks", env=env)
    check(r.status == 0 and "mono\n" in r.out, r)
    r = run(test, {"board": "adb:emulator-5554", "here": far(test)}, "record", "-e", "sched:sched_switch", "-f", "prev_comm != \"it's\"",
            "-t", "300ms", "-o", "out.txt", env=env)
    check(r.status == 0, r)
    check({m[1] for m in LINE.finditer((test.dir / "out.txt").read_text(errors="replace"))} == {"board", "here"}, r)
    said = (test.dir / "adb").read_text()
    check(said.count("-s emulator-5554 shell -T ") == said.count("\n") == 2, said)
    # Without a label it is the serial.
    r = subprocess.run([test.tracectl, "-H", "adb:emulator-5554", "record", "-t", "100ms", "-e", "no_such_event", "-o", "x.json"],
                       cwd=test.dir, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    check(r.returncode == 1 and "emulator-5554: " in r.stderr, r)


def unpacked(path):
    """What these bytes have been before, as far as they go."""
    return subprocess.run(["zstd", "-dcq"], stdin=open(path, "rb"), capture_output=True, check=False).stdout


def compressed_on_its_way(test):
    """By exec: and by adb:, while it is made. An older host's comes as it is."""
    tools = test.dir / "tools"
    tools.mkdir()
    adb = tools / "adb"
    adb.write_text(f"""#!/bin/sh
PATH={test.tracectl.parent}:$PATH sh -c "$5" | tee '{test.dir}/b'
""")
    adb.chmod(0o755)
    hosts = {"a": relay(test, "--keep", test.dir / "a"), "b": "adb:1", "c": relay(test, "--plain", "--keep", test.dir / "c")}
    p = subprocess.Popen(command_line(test, hosts, "record", "-e", "sched", "-e", "raw_syscalls", "-o", "out.traced"), cwd=test.dir,
                         env=test.environment(PATH=f"{tools}:{os.environ['PATH']}"), stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # The part that has come can be read before the end.
    settled("a part of each", lambda: all((test.dir / name).exists() for name in hosts) and
            all(len(unpacked(test.dir / name)) > 1000000 for name in "ab") and (test.dir / "c").stat().st_size > 1000000)
    check(p.poll() is None, "it has ended")
    p.send_signal(signal.SIGINT)
    r = test.finish(p)
    check(r.status == 0, r)
    for name in hosts:
        # The near side appends what it knows of the clock.
        capture, way = (test.dir / f"out.{name}.traced").read_bytes(), test.dir / name
        came = way.read_bytes() if name == "c" else unpacked(way)
        check(capture.startswith(came) and len(capture) - len(came) < 100000, f"{name}: {len(came)} of {len(capture)} bytes")
        print(f"   {name}: {way.stat().st_size} of {len(came)} bytes")
        check(name == "c" or way.stat().st_size < len(came) / 2, f"{name}: {way.stat().st_size} of {len(came)} bytes")


def one_host(test):
    status = run(test, {"a": far(test)}, "status", "--json")
    check(status.status == 0 and "sessions" in json.loads(status.out), f"status: {status}")
    both = run(test, {"a": far(test), "b": far(test, "nice")}, "list", "clocks")
    check(both.status == 0 and both.out.startswith("a:\n") and "\nb:\n" in both.out, f"list: {both}")
    twice = run(test, {"a": "exec:true", "b": "exec:true"}, "status")
    check(twice.status == 2 and "called a and b" in twice.err, f"two names of one host: {twice}")
    for words in (("fleet", "status"), ("help",), ("record", "--ring"), ("record", "-o", "x.nothing"), ("record", "--report", "nothing"),
                  ("record", "--report", "sched", "-o", "-"), ("hist", "sched_switch", "--key", "next_comm"),
                  ("hist", "sched_switch", "--key", "next_comm", "-t", "1s", "-o", "x.txt")):
        refused = run(test, {"a": far(test)}, *words)
        check(refused.status == 2 and refused.err, f"{words} is not refused: {refused}")
    # Messages say whose they are, since the tables' labels may be in a file.
    r = run(test, {"a": "exec:echo out; printf 'one\\n\\ntwo\\n' >&2; :", "b": "exec:printf thr >&2; sleep 0.3; echo ee >&2; exit 3; :"},
            "status")
    # Each host's are in order.
    check(r.status == 3 and sorted(r.err.splitlines(), key=lambda line: line[0]) == ["a: one", "a: ", "a: two", "b: three"] and
          r.out == "a:\nout\n\nb:\n", f"messages: {r}")
    # A host that says nothing is named, too.
    silent = {"a": "exec:kill -9 $$;", "b": "exec:no-such-program 2>/dev/null", "c": "exec:exit 9;"}
    r = run(test, silent, "status")
    check(r.status == 137 and "a: the connection or the command ended with status 137" in r.err
          and "b: it did not start: is tracectl in its PATH?" in r.err
          and "If the program after exec: was not found, correct that" in r.err and "c: " in r.err, f"silent: {r}")
    r = subprocess.run(["sh", "-c", '"$@" | head -1', "sh", *command_line(test, {"a": "exec:yes; :"}, "status")],
                       capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    check(r.stdout == "y\n" and not r.stderr, f"the reader leaves: {r}")
    # A host cannot control the terminal.
    tamed = run(test, {"a": r"exec:printf 'a\033[2J\302\233b\303\251\tc\n' >&2; printf '\033]0;x\a\n'; exit 4;"},
                "status")
    check(tamed.status == 4 and "\033" not in tamed.out + tamed.err and "\x9b" not in tamed.err
          and "b\xe9\tc\n" in tamed.err and "\a" not in tamed.out, f"not tamed: {tamed}")
    # Longer than run() waits.
    left = run(test, {"a": "exec:sleep 100 & echo $!; exit 0;"}, "status")
    check(left.status == 0, f"a process is left: {left}")
    os.kill(int(left.out), signal.SIGKILL)
    failed = run(test, {"a": "exec:false"}, "status")
    check(failed.status == 1, f"a failure is no failure: {failed}")
    r = run(test, {"a": far(test)}, "record", "-t", "300ms", "-o", "one.json")
    check(r.status == 0 and (test.dir / "one.json").stat().st_size > 1000, f"record: {r}")
    r = run(test, {"a": far(test)}, "record", "-o", "command.json", "--", "sh", "-c", "sleep 0.2; exit 0")
    check(r.status == 0 and (test.dir / "command.json").stat().st_size > 1000, f"a command: {r}")
    r = run(test, {"a": far(test)}, "record", "-t", "300ms", "-e", "no_such_event", "-o", "none.json")
    check(r.status == 1 and "a: " in r.err and "no_such_event" in r.err, f"a wrong event: {r}")
    check(test.files() == ["command.json", "one.json"], f"files: {test.files()}")


def what_one_host_records(test):
    """What chooses events, processes and CPUs said what to record: the file has all of it."""
    host = {"a": far(test)}
    record = ("record", "-o", "f.txt")
    r = run(test, host, *record, "-e", "sched:sched_switch", "-f", "next_prio < 200", "-t", "300ms")
    text = (test.dir / "f.txt").read_text(errors="replace") if test.files() == ["f.txt"] else ""
    check(r.status == 0 and "sched_switch: " in text and "left out" not in r.err, f"a filter: {r}")
    command = f"'{test.tracectl}' --socket '{test.daemon.socket}' mark 'from a shell'"
    for words in (("-e", "sched:sched_process_exec", "--trigger", "stacktrace"), ("-P", "1", "-e", "sched"), ("--cpus", "0")):
        r = run(test, host, *record, *words, "--", "sh", "-c", command)
        text = (test.dir / "f.txt").read_text(errors="replace")
        check(r.status == 0 and "from a shell" in text and "left out" not in r.err, f"{words}: {r}")
        check("--trigger" not in words or "<stack trace>" in text, f"no stack: {r}")
    nothing = ("-e", "sched:sched_switch", "-f", "prev_pid == 1 && next_pid == 1", "-t", "200ms", "-o", "none.txt")
    alone = test.run("record", *nothing)
    r = run(test, host, "record", *nothing)
    check("NOT ONE EVENT was recorded" in alone.err and (test.dir / "none.txt").exists(), f"alone: {alone}")
    check(r.status == alone.status == 3 and r.err == alone.err, f"nothing: {r}\n{alone}")


def notes_once(test):
    """What is missing in a recording is said once, with its host: by the host if its capture stays one, else here."""
    notes = not os.path.exists("/sys/class/thermal/thermal_zone0/temp")
    for names, output in (("a", "x.txt"), ("a", "x.traced"), ("ab", "x.pftrace"), ("ab", "x.traced")):
        # Their own daemons, of which only one takes marks: another note.
        words = [w for n in names for w in ("--label", f"{n}={far(test, f'env X={n}')}")]
        r = subprocess.run([test.tracectl, *words, "record", "-t", "300ms", "-b", "8k", "-e", "*:*",
                            "--poll", "thermal", "--poll", "meminfo", "-o", output],
                           cwd=test.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        lines = [line.removeprefix("tracectl: ") for line in r.stderr.splitlines()]
        told = [line for line in lines if "lost (" in line or "events were lost at" in line]
        check(r.returncode == 0 and sorted(line[:3] for line in told) == [f"{n}: " for n in names], r)
        texts = collections.Counter(re.sub(r"^[ab]: ", "", line) for line in lines)
        check(len(set(lines)) == len(lines), f"a line is there twice: {r}")
        check(all(line not in texts or texts[line] == 1 for line in lines), f"with and without its host: {r}")
        check(not notes or sum("thermal is not polled" in line for line in lines) == len(names), r)
        check(sum("a larger buffer" in line for line in lines) == (len(names) if output == "x.traced" else 1), r)


def one_document(test):
    """--json of several hosts is one document, whatever one of them prints; its status is that of the first failure."""
    def ask(hosts, *words):
        r = run(test, hosts, *words, "--json")
        document = json.loads(r.out)
        check(list(document) == ["hosts"] and [h["label"] for h in document["hosts"]] == list(hosts), f"{words}: {r}")
        return r, {h["label"]: h for h in document["hosts"]}

    hosts = {"a": far(test), "b": far(test, "nice")}
    for words, member in ((("status",), "sessions"), (("list", "clocks"), None), (("doctor",), None), (("profiles",), None),
                          (("--push=" + str(test.build / "cli/traced-multi"), "status"), "sessions")):
        r, of = ask(hosts, *words)
        for label, host in of.items():
            check(host["output"] and host["status"] in (0, 1) and (not member or member in host["output"]), f"{words}: {label}: {r}")
    # One host prints what it alone would.
    r = run(test, {"a": far(test)}, "status", "--json")
    check(r.status == 0 and "sessions" in json.loads(r.out), f"one host: {r}")
    r, of = ask({"a": far(test), "b": "exec:echo why >&2; exit 4;", "c": "exec:exit 5;"}, "status")
    check(r.status == 4 and "sessions" in of["a"]["output"] and "b: why\n" in r.err, f"failures: {r}")
    check([(of[name]["status"], of[name]["output"]) for name in "bc"] == [(4, None), (5, None)], f"failures: {r}")
    # Output that is no JSON is left out, and reported.
    values = {"whole": r'{"a": [1, -2.5e3, true, false, null, "\u00e4\n\"\\\\"], "b": {}, "c": []}', "text": '"a"', "number": "17"}
    lies = {"cut": '{"a": [1, 2', "two": "{} {}", "words": "no sessions", "comma": '{"a": 1,}', "deep": 1000 * "[", "byte": '"\\377\\001"'}
    r, of = ask({name: f"exec:printf %b '{text}'; :" if name == "byte" else f"exec:cat <<'E'\n{text}\nE\n:"
                 for name, text in {**values, **lies}.items()}, "status")
    for name, text in values.items():
        check(of[name] == {"label": name, "status": 0, "output": json.loads(text)}, f"{name}: {of[name]}")
    for name in lies:
        # A byte that is no UTF-8 is replaced.
        if name == "byte":
            check("\ufffd" in of[name]["output"], f"{of[name]}")
        else:
            check(of[name]["output"] is None and f"{name}: its output is no JSON: " in r.err, f"{name}: {of[name]} {r.err}")
    check(r.status == 1, f"{r}")
    # Without a place for their outputs it ends, and says so.
    r = run(test, hosts, "list", "clocks", "--json", env=test.environment(TMPDIR=str(test.dir / "absent")))
    check(r.status == 1 and r.err.count("its output is cut") == 2, f"{r}")
    check([h["output"] for h in json.loads(r.out)["hosts"]] == [None, None], f"{r}")
    # Ctrl-C leaves a whole document of those that have ended.
    r = left_at(test, "", {"b": "echo 17"}, "status", "--json")
    check(r.status == -signal.SIGINT and json.loads(r.out) == {"hosts": []}, f"{r}")


def machines(test):
    hosts = {"left": far(test), "right": far(test, "nice")}
    r = run(test, hosts, "record", "-t", "1s", "-o", "out.pftrace")
    check(r.status == 0 and set(bounds(r)) == {"left", "right"}, f"record: {r}")
    # Nobody asked for what each host recorded before all did.
    check("left out" not in r.err, f"record: {r}")
    ids, syncs, bundles, names = set(), [], {}, {}
    for number, packet in fields((test.dir / "out.pftrace").read_bytes()):
        check(number == 1, f"field {number} in the trace")
        parts = dict(fields(packet))
        machine = parts.get(98, 0)
        ids.add(machine)
        if 45 in parts and 17 in (system := dict(fields(parts[45]))):
            names[machine] = system[17].decode()
        if 107 in parts:
            syncs.append((machine, parts[107]))
        if 1 in parts:
            bundles[machine] = bundles.get(machine, 0) + 1
    check(ids == {0, 1} and set(bundles) == {0, 1}, f"machines {ids}, bundles {bundles}")
    check(names == {0: "left", 1: "right"}, f"names {names}")
    check(len(syncs) == 1 and syncs[0][0] == 1, f"clock syncs: {syncs}")
    rounds = [[dict(fields(clocks)) for _, clocks in fields(r)] for _, r in fields(syncs[0][1])]
    times = [dict(fields(c[1])) for r in rounds for c in r]
    # Client, host, client, host: the offsets that readers compute are 0.
    check([t[1] for t in times] == [6] * 4, f"clocks {times}")
    t = [x[2] for x in times]
    check((t[0] + t[2]) // 2 == t[1] and (t[1] + t[3]) // 2 == t[2], f"times {t}")
    refused = run(test, hosts, "record", "-t", "1s", "-o", "x.dat")
    check(refused.status == 2 and ".pftrace" in refused.err, f"x.dat is not refused: {refused}")
    check(test.files() == ["out.pftrace"], f"files: {test.files()}")


RANGE = 10_000_000  # of pids
JSON_LINE = re.compile(r"\s*(.+)-(\d+) +(?:\( *(?:\d+|-+)\) )?\[(\d+)\] (\S+) +(\d+\.\d+): (.*)")
PIDS = re.compile(r"(?<![^ _])(pid=|[BCSFE]\|)(\d+)")
CPUS = re.compile(r"(?<![^ ])((?:target_|orig_|dest_)cpu=|cpu_id=|sched_wake_idle_without_ipi: cpu=)(\d+)")


def own_lines(text, host=None):
    """(task, pid, CPU, flags, time, event) of each line; of several machines those of one, with its own numbers."""
    first_pid, first_cpu, cpus = (host["first_pid"], host["first_cpu"], host["cpus"]) if host else (0, 0, RANGE)
    label = host["label"] + ":" if host else ""

    def pid_of(number):
        check(not host or number in range(first_pid + 1, first_pid + RANGE) or number == 0, f"pid {number} of {label}")
        return number and number - first_pid

    def cpu_of(number):
        return number - first_cpu if number in range(first_cpu, first_cpu + cpus) else number
    lines = []
    for line in text.split("\n"):
        if line.startswith("#") or not line:
            continue
        name, pid, cpu, flags, at, what = JSON_LINE.fullmatch(line).groups()
        if int(cpu) not in range(first_cpu, first_cpu + cpus):
            continue
        check(name.startswith(label), f"a line of {label} {line}")
        if host:
            what = PIDS.sub(lambda m: m[1] + str(pid_of(int(m[2]))), what)
            what = CPUS.sub(lambda m: f"{m[1]}{cpu_of(int(m[2])):0{len(m[2]) if m[1] == 'target_cpu=' else 0}}", what)
        lines.append((name[len(label):], pid_of(int(pid)), cpu_of(int(cpu)), flags, float(at), what))
    return lines


def hosts_of(trace, labels):
    check(not problems(trace), f"{problems(trace)[:5]}")
    hosts = trace["otherData"]["hosts"]
    check([h["label"] for h in hosts] == labels, f"hosts: {[h['label'] for h in hosts]}")
    cpus = [n for h in hosts for n in range(h["first_cpu"], h["first_cpu"] + h["cpus"])]
    check(len(cpus) == len(set(cpus)) and max(cpus) < 4096, f"CPUs: {cpus}")
    for e in trace["traceEvents"]:
        check(e["pid"] == 0 or any(e["pid"] // RANGE == h["first_pid"] // RANGE for h in hosts), f"nobody's: {e}")
        check(e["tid"] == 0 or e["pid"] == 0 or e["tid"] // RANGE == e["pid"] // RANGE, f"two machines': {e}")
    return {h["label"]: h for h in hosts}


def elements(trace, host, phases):
    return [e for e in trace["traceEvents"] if e["ph"] in phases and e["pid"] // RANGE == host["first_pid"] // RANGE]


def in_json(test):
    """Recorded together: numbers, names, clocks."""
    r = run(test, {"left": far(test), "right": far(test, "nice")}, "record", "-t", "1s", "-e", "sched", "-o", "out.json")
    check(r.status == 0, f"record: {r}")
    trace = json.loads((test.dir / "out.json").read_text())
    hosts = hosts_of(trace, ["left", "right"])
    known = bounds(r)
    for label, host in hosts.items():
        check(abs(host["bound_ns"] / 1000 - known[label]) < 0.001, f"{label}: {host['bound_ns']}, not {known[label]}")
        check(f"# {label}: CPUs from {host['first_cpu']}" in trace["systemTraceEvents"], "no comment on it")
    check(trace["otherData"]["events"] == sum(h["recording"]["events"] for h in hosts.values()), "the sum of events")
    text = "".join(f"{label} {name}-{pid} [{cpu:03}] {flags} {at:.6f}: {what}\n" for label, host in hosts.items()
                   for name, pid, cpu, flags, at, what in own_lines(trace["systemTraceEvents"], host))
    wrong = [x for x in errors(text, "left", "right") if abs(x) < SAME_EVENT_S]
    check(len(wrong) > 20, f"only {len(wrong)} events are in both")
    limit = sum(known.values()) / 1e6 + 2e-6
    check(abs(largest(wrong)) <= limit, f"{largest(wrong) * 1e6:.1f} us wrong, known within {limit * 1e6:.1f} us")


def begins(test):
    """How far apart the machines' recordings begin is said, and is what the clocks' bounds leave open."""
    hosts = {"left": far(test), "right": far(test, "nice")}
    r = run(test, hosts, "record", "-t", "300ms", "-e", "sched", "-o", "out.json", "--json")
    check(r.status == 0, f"record: {r}")
    apart = begins_apart(r)
    check(0 < apart <= sum(bounds(r).values()) + 0.01 and apart < 100_000, f"{apart} us: {r}")
    known = json.loads((test.dir / "out.json").read_text())["otherData"]["begins_apart_ns"]
    check(abs(known / 1000 - apart) < 0.001 and json.loads(r.out)["begins_apart_ns"] == known, f"{known} ns: {r}")
    # One machine after the other.
    began = time.monotonic()
    for label, host in hosts.items():
        r = run(test, {label: host}, "record", "-t", "300ms", "-e", "sched", "-o", f"{label}.traced")
        check(r.status == 0, f"record: {r}")
    r = test.run("convert", "left.traced", "right.traced", "-o", "out.txt")
    check(r.status == 0 and 300_000 <= begins_apart(r) <= (time.monotonic() - began) * 1e6, f"convert: {r}")


def of_hosts(text, labels):
    """What each host printed, by label."""
    parts = re.split(r"^(\w+):\n", "\n" + text, flags=re.M)
    check(not parts[0].strip() and parts[1::2] == labels, f"labels: {text[:2000]}")
    return dict(zip(parts[1::2], parts[2::2]))


def reports(test):
    """report of a session and of a far file; record --report, with and without a file."""
    # A busy machine's tables may lack any given task.
    rows = re.compile(r"^sched\ntask +tid +runtime .*\n\S", re.M)
    hosts = {"a": far(test), "b": far(test, "nice")}
    started = test.run("start", "--name", "long", "-e", "sched")
    check(started.status == 0, f"start: {started}")
    r = run(test, hosts, "report", "--session", "long", "sched")
    for label, text in of_hosts(r.out, list(hosts)).items():
        check(r.status == 0 and rows.search(text), f"report --session: {label}: {r}")
    stopped = test.run("stop", "long", "-o", "long.traced")
    check(stopped.status == 0, f"stop: {stopped}")
    r = run(test, {"a": far(test)}, "report", "sched", "--json", test.dir / "long.traced")
    check(r.status == 0 and json.loads(r.out)["reports"][0]["name"] == "sched", f"report of a far file: {r}")
    r = run(test, hosts, "report", "sched", "no-such-file")
    check(r.status == 1 and r.err.count("no-such-file") >= 2, f"report of no file: {r}")
    # The far side chooses the events, and the tables are made here.
    for words in ((), ("-o", "out.traced"), ("-o", "out.txt")):
        r = run(test, {"a": far(test)}, "record", "--report", "sched,irq", "--top", "5", "-t", "200ms", *words)
        check(r.status == 0 and rows.search(r.out) and "a:\n" not in r.out, f"{words}: {r}")
        r = run(test, hosts, "record", "--report", "sched", "-t", "200ms", *words)
        for label, text in of_hosts(r.out, list(hosts)).items():
            check(r.status == 0 and rows.search(text), f"{words} {label}: {r}")
        check(set(bounds(r)) == set() if words == ("-o", "out.traced") else set(bounds(r)) == set(hosts), f"{words}: {r}")
    check(test.files() == ["long.traced", "out.a.traced", "out.b.traced", "out.traced", "out.txt"], f"files: {test.files()}")
    seen = {m[1] for m in LINE.finditer((test.dir / "out.txt").read_text(errors="replace"))}
    check(seen == set(hosts), f"hosts in the text: {seen}")
    r = run(test, {"a": far(test)}, "record", "--report", "sched", "-t", "200ms", "-o", "page.html")
    check(r.status == 0 and b'"report":{"format":"traced-report"' in (test.dir / "page.html").read_bytes(), f"a page: {r}")
    r = run(test, {"a": far(test)}, "record", "--report", "sched", "--json", "-t", "200ms")
    check(r.status == 0 and json.loads(r.out)["reports"][0]["name"] == "sched", f"record --report --json: {r}")
    # One that fails leaves the others their reports.
    bad = {"bad": "exec:false", "good": far(test)}
    r = run(test, bad, "record", "--report", "sched", "-t", "200ms")
    check(r.status == 3 and "the reports lack" in r.err and rows.search(of_hosts(r.out, ["good"])["good"]), f"one fails: {r}")
    # Programs find each host's tables by its label, whatever became of the others.
    for all_of, labels in ((hosts, ["a", "b"]), (bad, ["good"])):
        r = run(test, all_of, "record", "--report", "sched,irq", "--json", "-t", "200ms")
        found = json.loads(r.out)
        check((found["format"], found["version"]) == ("traced-report-hosts", 1), f"JSON of hosts: {r}")
        check([h["host"] for h in found["hosts"]] == labels, f"JSON of hosts: {r}")
        check(not any("part" in h for h in found["hosts"]), f"nobody asked for a part: {r}")
        for host in found["hosts"]:
            check(host["format"] == "traced-report" and [t["name"] for t in host["reports"]] == ["sched", "irq"]
                  and host["reports"][0]["rows"], f"JSON of {host['host']}: {r}")
        (test.dir / "one.json").write_text(json.dumps(found["hosts"][0]))
        merged = test.run("report", "--merge", "one.json", "--json")
        check(merged.status == 0 and "host" not in json.loads(merged.out), f"merge: {merged}")
        r = run(test, all_of, "record", "--report", "sched,irq", "--csv", "-t", "200ms")
        tables = [list(csv.DictReader(part.splitlines())) for part in r.out.replace("\r\n", "\n").split("\n\n")]
        check(len(tables) == 2 * len(labels), f"CSV of hosts: {r}")
        for number, table in enumerate(tables):
            of_rows = {row["host"] for row in table}
            # There need not be an interrupt.
            check(of_rows == {labels[number // 2]} or (number % 2 and not of_rows), f"CSV of {labels[number // 2]}: {r}")


def top_of_hosts(test):
    hosts = {"a": far(test), "b": far(test, "nice")}
    r = run(test, hosts, "top", "--batch", "-t", "2s", "sched")
    for label, text in of_hosts(r.out, list(hosts)).items():
        check(r.status == 0 and "events/s" in text and "\nsched\n" in text, f"top: {label}: {r}")
    # All at once: each waits for the other.
    meet = "exec:touch {}; n=0; while [ ! -e {} ] && [ $((n += 1)) -lt 150 ]; do sleep 0.1; done; test -e {} && :"
    r = run(test, {"a": meet.format("a", "b", "b"), "b": meet.format("b", "a", "a")}, "top", "-t", "2s")
    check(r.status == 0, f"one after the other: {r}")
    refused = run(test, hosts, "top", "--batch", "sched")
    check(refused.status == 2 and "-t 10s" in refused.err, f"top of two hosts without a time: {refused}")
    # top of one host runs until Ctrl-C, and leaves nothing there.
    p = subprocess.Popen(command_line(test, {"a": far(test)}, "top", "--batch", "sched"), cwd=test.dir,
                         env=test.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    settled("top prints", lambda: b"events/s" in p.stdout.readline())
    p.send_signal(signal.SIGINT)
    test.finish(p)
    check_clean(test)


def left_at(test, first, rest, *words):
    """Ctrl-C while the first host hangs, behind the command `first`, once every other one has ended."""
    for name in ("hung", *rest):
        (test.dir / name).unlink(missing_ok=True)
    hosts = {"hung": f"exec:{first} echo $$ >hung; exec sleep 100;", **{n: f"exec:{c}; touch {n}; :" for n, c in rest.items()}}
    p = subprocess.Popen(command_line(test, hosts, *words), cwd=test.dir, env=test.environment(),
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        # Their pipes are read, and that is printed.
        settled("the others end", lambda: all((test.dir / n).exists() for n in ("hung", *rest)))
        p.send_signal(signal.SIGINT)
        return test.finish(p)
    finally:
        settled("its process is known", lambda: (test.dir / "hung").exists() and (test.dir / "hung").read_text())
        os.kill(int((test.dir / "hung").read_text()), signal.SIGKILL)


def first_is_last(test):
    """Later hosts need not wait for the first one, however much they print, and Ctrl-C shows what they did."""
    waits = "n=0; while [ ! -e done ] && [ $((n += 1)) -lt 150 ]; do sleep 0.1; done; test -e done && :"
    much = "head -c 3000000 /dev/zero | tr '\\0' x; head -c 2000000 /dev/zero | tr '\\0' e >&2; touch done; :"
    r = run(test, {"a": f"exec:{waits}", "b": f"exec:{much}"}, "top", "-t", "2s")
    check(r.status == 0, f"the second one waits for the first: {r.status}")
    check(r.out == "a:\n\nb:\n" + 3000000 * "x" and r.err == "b: " + 2000000 * "e", f"{len(r.out)}, {len(r.err)} bytes")
    r = left_at(test, "echo one;", {"b": "echo two; echo three >&2", "c": "echo four"}, "top", "-t", "2s")
    check(r.status == -signal.SIGINT and r.err == "b: three\n", f"status or messages: {r}")
    check(of_hosts(r.out, ["hung", "b", "c"]) == {"hung": "one\n\n", "b": "two\n\n", "c": "four\n"}, f"output: {r}")
    r = left_at(test, "", {"b": "echo two"}, "status")
    check(of_hosts(r.out, ["hung", "b"])["b"] == "two\n", f"a command that takes no time: {r}")


def marks_are_moved(test):
    """Marks and samples are where the kernel's events of their threads are, on each machine's clock."""
    need(not test.is_sanitized(), "a sanitizer's library would have to come first")
    (test.dir / "app.py").write_text(PROGRAM)
    # The file begins where both record: not the other machine's first 0.4 s.
    r = run(test, {"left": far(test), "right": relay(test, "--offset", 0.4, "--drift", 80)}, "record", "-e", "sched",
            "--sample", "199", "-o", "out.json", "--", "sh", "-c", "sleep 0.8; python3 app.py", env=run_env(test))
    check(r.status == 0 and "taken as they are" not in r.err, f"record: {r}")
    trace = json.loads((test.dir / "out.json").read_text())
    for label, host in hosts_of(trace, ["left", "right"]).items():
        times = {}
        for _, pid, _, _, at, _ in own_lines(trace["systemTraceEvents"], host):
            times.setdefault(pid, []).append(at)
        ran = {pid: (min(all_) - 0.02, max(all_) + 0.02) for pid, all_ in times.items()}
        for kind, found in (("marks", elements(trace, host, "BEXisf")),
                            ("samples", [s for s in trace["samples"] if s["tid"] // RANGE == host["first_pid"] // RANGE])):
            own = [(e["tid"] - host["first_pid"], e["ts"] / 1e6) for e in found]
            own = [(tid, at) for tid, at in own if tid in ran]
            wrong = [(tid, at, ran[tid]) for tid, at in own if not ran[tid][0] <= at <= ran[tid][1]]
            check(len(own) > 3 and not wrong, f"{label}: {len(own)} {kind}, elsewhere: {wrong[:3]}")


def same_as_alone(test):
    """Each machine's lines and marks are what they are in a file of its own."""
    need(not test.is_sanitized(), "a sanitizer's library would have to come first")
    (test.dir / "app.py").write_text(PROGRAM)
    for name in ("a", "b"):
        r = test.run("record", "--name", name, "-o", f"{name}.traced", "-e", "sched", "-e", "power", "-e", "irq", "-e", "task",
                     "--", "python3", "app.py", env=run_env(test))
        check(r.status == 0, f"record: {r}")
        r = test.run("convert", f"{name}.traced", "-o", f"{name}.json")
        check(r.status == 0, f"convert: {r}")
    for out in ("both.json", "both.json.gz", "both.html"):
        r = test.run("convert", "a.traced", "b.traced", "-o", out)
        check(r.status == 0 and "the error is unknown" in r.err and not BEGINS.search(r.err), f"{out}: {r}")
    trace = json.loads((test.dir / "both.json").read_text())
    hosts = hosts_of(trace, ["a", "b"])
    check(gzip.decompress((test.dir / "both.json.gz").read_bytes()) == (test.dir / "both.json").read_bytes(), "the .gz")
    lines, more = blocks((test.dir / "both.html").read_text())
    page = {"systemTraceEvents": "\n".join(map(restored, lines))}
    check(more["traceEvents"] == trace["traceEvents"] and more["otherData"] == trace["otherData"], "the page's elements")
    flows = []
    for name, host in hosts.items():
        alone = json.loads((test.dir / f"{name}.json").read_text())
        check(host["bound_ns"] is None and host["recording"]["events"] == alone["otherData"]["events"], f"{name}: {host}")
        # The recorder's own mark ties a file's clocks, which these share.
        mine, joined, paged = ([(*line[:4], line[5]) for line in one if "tracing_mark_write" not in line[5]] for one in (
            own_lines(alone["systemTraceEvents"]), own_lines(trace["systemTraceEvents"], host),
            own_lines(page["systemTraceEvents"], host)))
        check(len(mine) > 100 and joined == mine, f"{name}: {[x for x in zip(joined, mine) if x[0] != x[1]][:2]}")
        check(paged == mine, f"{name}, page: {[x for x in zip(paged, mine) if x[0] != x[1]][:2]}")
        counts = [sorted((e["ph"], e.get("name", "")) for e in all_ if e["ph"] != "M" and e["ph"] != "c") for all_ in (
            elements(trace, host, "BEXiCbnestf"), alone["traceEvents"])]
        check(counts[0] == counts[1] and counts[0], f"{name}: {counts}")
        flow = elements(trace, host, "stf")
        check([e["ph"] for e in flow] == ["s", "f"] and flow[0]["id"] == flow[1]["id"], f"{name}: {flow}")
        flows.append(flow[0]["id"])
        names = {e["pid"]: e["args"]["name"] for e in elements(trace, host, "M") if e["name"] == "process_name"}
        check(f"{name}: app" in names.values(), f"{name}: {names}")
        for pid, text in names.items():
            check(text == name if pid == host["first_pid"] else text.startswith(f"{name}: "), f"{pid} is {text}")
        labels = {e["pid"]: e["args"]["labels"] for e in elements(trace, host, "M") if e["name"] == "process_labels"}
        check(labels and all(text == f"pid {pid - host['first_pid']}" for pid, text in labels.items()), f"{labels}")
    check(len(set(flows)) == 2, f"flows of two machines are one: {flows}")


def of_machine(data, wanted):
    """The packets of one machine, as a file."""
    out = b""
    at = 0
    while at < len(data):
        begin = at
        length, at = varint(data, at + 1)
        if dict(fields(data[at:at + length])).get(98, 0) == wanted:
            out += data[begin:at + length]
        at += length
    return out


def tasks_of_machines(test):
    """Readers process a packet without a time after all that they have read before, of any machine."""
    with subprocess.Popen(["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 0.3; done"]):
        r = run(test, {"left": far(test), "right": far(test, "nice")}, "record", "-t", "1s", "-e", "sched", "-e", "task",
                "-o", "out.pftrace")
    check(r.status == 0, f"record: {r}")
    data, decoder, latest = (test.dir / "out.pftrace").read_bytes(), Decoder(test.dir, test.source), 0
    for machine in (0, 1):
        part = of_machine(data, machine)
        reader = Reader(part, decoder.parse(part), latest)
        latest = reader.max_ts
        rows = collections.Counter(t.tid for t in reader.threads if not t.start_ts)
        twice = [tid for tid, count in rows.items() if count > 1]
        check(len(rows) > 10 and not twice, f"machine {machine}: threads {twice} of {len(rows)} appear twice")


def same_kernel(test, host, offset_s, drift_ppm, env=None, options=()):
    hosts = {"near": far(test), "other": host}
    began = time.monotonic()
    r = run(test, hosts, "record", "-t", "1s", "-e", "sched", "-o", "out.traced", *options, env=env)
    took = time.monotonic() - began
    check(r.status == 0 and test.files() == ["out.near.traced", "out.other.traced"], f"{test.files()} {r}")
    r = test.run("convert", "out.near.traced", "out.other.traced", "-o", "out.txt")
    known = bounds(r)
    check(r.status == 0 and set(known) == {"near", "other"}, f"convert: {r}")
    text = (test.dir / "out.txt").read_text(errors="replace")
    apart = errors(text, "near", "other")
    check(len(apart) > 20, f"only {len(apart)} events are in both")
    # Offsets are shorter than the recording, whose begin is cut off by the clock that the ties give.
    # The relay's clock shows `offset` more than the kernel's, so its events come that much earlier. With a
    # drift, about as much as at the middle.
    limit = (known["near"] + known["other"]) / 1e6 + 2e-6
    # Two runs of a task may take the same number of ns, each with its twin outside of the recording.
    wrong = [x for x in (a + offset_s for a in apart) if abs(x) < SAME_EVENT_S]
    check(len(wrong) > 0.9 * len(apart), f"{len(apart) - len(wrong)} of {len(apart)} events are elsewhere")
    # The relay's clock drifts for as long as it has run.
    slack = abs(drift_ppm) * 1e-6 * took
    check(abs(largest(wrong)) <= limit + slack, f"{largest(wrong) * 1e6:.1f} us wrong, known within {limit * 1e6:.1f} us")
    order = [float(m[2]) for m in LINE.finditer(text)]
    check(order == sorted(order), "the lines are not in order")
    print(f"   known within {limit * 1e6:.0f} us, median error {statistics.median(wrong) * 1e6:.1f} us", flush=True)
    return {m[1]: m[3] for m in TIED.finditer(r.err)}


def clock_is_near(test):
    same_kernel(test, far(test, "nice"), 0, 0)


def clock_is_another(test):
    same_kernel(test, relay(test, "--offset", 0.4), 0.4, 0)


def clock_is_jittered(test):
    same_kernel(test, relay(test, "--offset", -0.3, "--jitter", 3), -0.3, 0)


def clock_drifts(test):
    same_kernel(test, relay(test, "--offset", 0.3, "--drift", 80, "--jitter", 1), 0.3, 80)


def synchronised(test, us):
    """The environment of a machine whose time daemon states that its clock is wrong by `us` at most."""
    library = test.build / "tests/integration/synced_clock.so"
    need(library.exists(), "not with sanitizers")
    return test.environment(LD_PRELOAD=str(library), SYNCED_CLOCK=str(us))


def clocks_are_synchronised(test):
    """They are tied more exactly than by exchanges that take long."""
    by = same_kernel(test, relay(test, "--offset", 0.3, "--delay", 5), 0.3, 0, synchronised(test, 200))
    check(by["other"] == "the machines' synchronised clocks", by)


def one_is_not_synchronised(test):
    by = same_kernel(test, f"exec:env SYNCED_CLOCK=0 {relay(test, '--delay', 5)[5:]}", 0, 0, synchronised(test, 200))
    check(by["other"] == "exchanges", by)


def one_is_synchronised_wrongly(test):
    """Its time daemon is wrong by a second, which the exchanges rule out."""
    by = same_kernel(test, relay(test, "--delay", 5, "--utc-offset", 1), 0, 0, synchronised(test, 200))
    check(by["other"] == "exchanges", by)


PTP = "the network cards' PTP clocks"


def with_ptp(test, us):
    """The environment of a machine whose network card has a clock that is `us` ahead of other machines' ones."""
    library = test.build / "tests/integration/synced_clock.so"
    need(library.exists(), "not with sanitizers")
    return test.environment(LD_PRELOAD=str(library), PTP_CLOCK=str(us))


def ptp_clocks_tie(test):
    """More exactly than exchanges that take long, although these clocks run at another rate than the kernel's."""
    host = relay(test, "--offset", 0.3, "--delay", 20)
    by = same_kernel(test, host, 0.3, 0, with_ptp(test, 0), ("--phc", "/dev/null,50us"))
    check(by["other"] == PTP, by)


def ptp_clocks_differ(test):
    """By less than is stated, and by more: the exchanges rule that out."""
    for ahead_us, seen in ((40, PTP), (-40, PTP), (100000, "exchanges"), (-100000, "exchanges")):
        for path in test.dir.glob("out*"):
            path.unlink()
        host = f"exec:env PTP_CLOCK={ahead_us} {relay(test, '--delay', 20)[5:]}"
        by = same_kernel(test, host, 0, 0, with_ptp(test, 0), ("--phc", "/dev/null,50us"))
        check(by["other"] == seen, f"{ahead_us} us: {by}")


def ptp_clock_is_missing(test):
    """Here, or there; --phc is for recordings of other machines."""
    env = with_ptp(test, 0)
    r = run(test, {"near": far(test)}, "record", "-t", "300ms", "-o", "out.txt", "--phc", "/dev/nowhere,1us", env=env)
    check(r.status == 1 and "can't open the clock /dev/nowhere" in r.err and not test.files(), f"here: {r}")
    there = f"exec:env -u PTP_CLOCK {far(test)[5:]}"
    r = run(test, {"near": far(test), "other": there}, "record", "-t", "300ms", "-e", "sched", "-o", "out.txt", "--phc",
            "/dev/null,1us", env=env)
    check(r.status == 3 and "other: /dev/null is no clock" in r.err, f"there: {r}")
    r = test.run("record", "-t", "300ms", "--phc", "/dev/null,1us")
    check(r.status == 2 and "--phc needs -H" in r.err, f"alone: {r}")
    r = test.run("record", "-t", "300ms", "--phc", "/dev/null")
    check(r.status == 2 and "tracectl: --phc: it takes a clock and a time\n" in r.err, f"without a time: {r}")


MARKS = """
import time, traced
until = time.monotonic() + 60
i = 0
while time.monotonic() < until:
    traced.instant(f"mark {i}")
    i += 1
    time.sleep(0.01)
"""


def marks_and_samples(test):
    """They are moved as the machine's events are."""
    need(not test.is_sanitized(), "a sanitizer's library would have to come first")
    offset_s = 0.4
    env = test.environment(TRACED_MARKS=str(test.daemon.socket.parent), PYTHONPATH=str(test.source / "python"),
                           LD_LIBRARY_PATH=str(test.build / "libtraced"))
    hosts = {"near": far(test), "other": relay(test, "--offset", offset_s)}
    with subprocess.Popen(["/usr/bin/python3", "-c", MARKS], env=env) as program:
        try:
            r = run(test, hosts, "record", "-t", "2s", "-e", "sched", "--sample", "97hz", "--poll", "psi", "-o", "out.pftrace")
        finally:
            program.terminate()
        check(program.wait() == -signal.SIGTERM, "the program fails")
    check(r.status == 0 and "taken as they are" not in r.err, f"record: {r}")
    need("no samples" not in r.err, r.err)
    decoder = Decoder(test.dir, test.source)
    packets, data = {0: [], 1: []}, (test.dir / "out.pftrace").read_bytes()
    for _, packet in fields(data):
        packets[dict(fields(packet)).get(98, 0)].append(decoder.trace.TracePacket.FromString(packet))
    made = []
    for label, of_machine in zip(hosts, packets.values()):
        names, times, kinds = {}, {}, {}
        for packet in of_machine:
            names.update((n.iid, n.str.decode()) for n in packet.interned_data.event_names)
            kinds.setdefault(packet.WhichOneof("data"), []).append(packet.timestamp)
            if packet.HasField("track_event") and packet.track_event.name_iid in names:
                times[names[packet.track_event.name_iid]] = packet.timestamp / 1e9
        events = [e.timestamp for p in of_machine for e in p.ftrace_events.event]
        for kind in ("perf_sample", "sys_stats", "track_event"):
            # Half of the offset: a busy machine makes the first reading late, and the first event.
            late = [ts for ts in kinds[kind] if not min(events) - 2e8 < ts < max(events) + 2e8]
            check(not late, f"{len(late)} of {len(kinds[kind])} {kind} of {label} are outside of its events")
        made.append({name: ts for name, ts in times.items() if name.startswith("mark ")})
    apart = [made[1][name] - made[0][name] + offset_s for name in made[0] if name in made[1]]
    check(len(apart) > 50, f"only {len(apart)} marks are in both: {[len(m) for m in made]}")
    limit = sum(bounds(r).values()) / 1e6 + 2e-6
    check(max(map(abs, apart)) <= limit, f"marks are {max(apart, key=abs):.6f} s apart, known within {limit:.6f} s")


def eight(test):
    hosts = {f"h{i}": far(test) for i in range(8)}
    r = run(test, {n: h + " " * i for i, (n, h) in enumerate(hosts.items())}, "record", "-t", "300ms", "-o",
            "out.txt.gz", timeout=120)
    check(r.status == 0, f"record: {r}")
    text = subprocess.run(["zcat", test.dir / "out.txt.gz"], capture_output=True, check=True).stdout.decode()
    seen = {m[1] for m in LINE.finditer(text)}
    check(seen == set(hosts), f"hosts in the text: {seen}")


def check_clean(test):
    """The far machine is as it was."""
    settled("no session is left", lambda: not json.loads(test.run("status", "--json").out)["sessions"])
    settled("no recording is kept", lambda: not list(test.daemon.spool.glob("*.traced*")))


def marks_are_lost(test):
    """A program that is refused counts on each machine, and --fail-on-loss with several, too."""
    for options, status in (((), 0), (("--fail-on-loss",), 3)):
        p = subprocess.Popen(command_line(test, {"a": far(test), "b": far(test, "nice")}, "record", "-e", "sched", *options),
                             cwd=test.dir, env=test.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        for line in p.stderr:
            if b"until Ctrl-C" in line:
                break
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(str(test.daemon.socket.parent / "marks.sock"))
            s.send(b"garbage" * 8)
            check(s.recv(1) == b"", "the daemon still serves the sender of garbage")
        p.send_signal(signal.SIGINT)
        r = test.finish(p)
        check(r.status == status and all(f"{host}: marks of 1 program or thread are missing" in r.err for host in "ab"),
              f"{options}: {r}")
        check(test.files() == ["trace.pftrace"], f"{test.files()}")


def usual_names(test):
    """Without -o the name has the ending of --format."""
    two = {"a": far(test), "b": far(test, "nice")}
    for hosts, words, name in (({"a": far(test)}, (), "trace.json"), (two, (), "trace.pftrace"),
                               (two, ("--format", "txt"), "trace.txt"), ({"a": far(test)}, ("--format", "txt"), "trace.txt")):
        r = run(test, hosts, "record", "-t", "100ms", "-e", "sched", *words)
        check(r.status == 0 and test.files() == [name], f"{words}: {test.files()} {r}")
        (test.dir / name).unlink()


def without_ties(test):
    """Recordings of their own: placed by the time of day."""
    for name in ("a", "b"):
        r = test.run("record", "-t", "300ms", "-o", f"{name}.traced")
        check(r.status == 0, f"record: {r}")
    r = test.run("convert", "a.traced", "b.traced", "-o", "out.txt")
    check(r.status == 0 and "the error is unknown" in r.err, f"convert: {r}")
    r = test.run("convert", "a.traced", "b.traced", "-o", "a.traced")
    check(r.status == 2, f"an input as the output: {r}")
    r = test.run("convert", "a.traced", "b.traced", "c.traced")
    check(r.status == 2 and "-o" in r.err, f"no output: {r}")
    # Three names that are one, or become one.
    (test.dir / "d").mkdir()
    for name in ("b-3.traced", "d/b.traced"):
        (test.dir / name).write_bytes((test.dir / "b.traced").read_bytes())
    r = test.run("convert", "b.traced", "b-3.traced", "d/b.traced", "-o", "out.txt")
    seen = {m[1] for m in LINE.finditer((test.dir / "out.txt").read_text(errors="replace"))}
    check(r.status == 0 and seen == {"b", "b-3", "b-4"}, f"convert: {seen} {r}")


# An idle machine has hardly an event that is in two recordings, and no sample.
LOAD = """
import time
while True:
    until = time.monotonic() + 0.0003
    while time.monotonic() < until:
        pass
    time.sleep(0.001)
"""


@contextlib.contextmanager
def load():
    with subprocess.Popen(["/usr/bin/python3", "-c", LOAD]) as program:
        try:
            yield
        finally:
            program.kill()


def run_cases(test, *functions):
    for function in functions:
        test.case(function.__name__.replace("_", " "), function, daemon=function.__name__ not in WITHOUT_A_DAEMON)


def main():
    test = Test("hosts")
    run_cases(test, files_of_hosts, any_command, by_adb, compressed_on_its_way, one_host, what_one_host_records, one_document, machines,
              tasks_of_machines, begins, first_is_last, same_as_alone, eight, without_ties, usual_names, marks_are_lost)
    with load():
        run_cases(test, notes_once, in_json, reports, top_of_hosts, marks_are_moved, clock_is_near, clock_is_another, clock_is_jittered,
                  clock_drifts, clocks_are_synchronised, one_is_not_synchronised, one_is_synchronised_wrongly,
                  ptp_clocks_tie, ptp_clocks_differ, ptp_clock_is_missing, marks_and_samples)
    test.end()


if __name__ == "__main__":
    main()
