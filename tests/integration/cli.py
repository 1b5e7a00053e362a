#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tracectl from end to end on the live kernel: its output, its messages, and that the machine is
left unchanged."""

import contextlib
import gzip
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import time

from harness import INSTANCES, NOBODY, TRACEFS, Test, as_nobody, check, entry_of, in_namespace, interrupt, need, settled

LINE = re.compile(r"^ *(.+)-(\d+) +(?:\(([ \d-]+)\) )?\[(\d+)\] (\S{4,5}) +(\d+\.\d+): (\w+): ?(.*)$")


def refuse(text):
    raise ValueError(f"JSON has no {text}")


def parse_json(data):
    """Strict: no NaN, no key twice."""
    def pairs(items):
        keys = [k for k, _ in items]
        check(len(keys) == len(set(keys)), f"a key twice among {keys[:20]}")
        return dict(items)
    return json.loads(data.decode("utf-8"), parse_constant=refuse, object_pairs_hook=pairs)


def all_of_text(text):
    """The fields of all events."""
    events = []
    for line in text.splitlines():
        if line.startswith("#") or " [LOST " in line:
            continue
        match = LINE.match(line)
        check(match, f"no event line: {line!r}")
        events.append(match.groups())
    return events


def events_of_text(text):
    """The events without the marks by which recordings tie their clocks. Others' come from the top level."""
    return [e for e in all_of_text(text) if "trace_event_clock_sync: name=traced_" not in e[7]]


def check_json(data):
    trace = parse_json(data)
    check(isinstance(trace["traceEvents"], list), "traceEvents is no list")
    check(trace.get("displayTimeUnit") in ("ns", "ms"), "displayTimeUnit")
    text = trace["systemTraceEvents"]
    check(isinstance(text, str) and text.startswith("# tracer:"), "systemTraceEvents")
    for e in trace["traceEvents"]:
        check("ph" in e and "pid" in e and e.get("cat"), f"{e}")
        if e["ph"] != "M":
            check(isinstance(e["ts"], (int, float)), f"{e}")
    ties = [e for e in trace["traceEvents"] if e["name"] == "clock_sync"]
    in_text = re.findall(r"trace_event_clock_sync: name=(\w+)", text)
    check([e["args"]["sync_id"] for e in ties] == in_text, f"{ties} but in the text {in_text}")
    check(bool(ties) != ("clock-domain" in trace["metadata"]), f"tied by {ties} and {trace['metadata']}")
    named = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e.get("name") == "thread_name"}
    check(named, "no thread is named")
    events = events_of_text(text)
    check(events, "no events in the text")
    return trace, events


def record(test, *arguments, status=0, **kwargs):
    result = test.run("record", "--name", test.name, *arguments, **kwargs)
    check(result.status == status, f"expected exit status {status}: {result}")
    test.check_no_instances()
    return result


def json_end_to_end(test):
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    result = record(test, "-t", "1s", "-o", "x.json")
    after = time.clock_gettime(time.CLOCK_BOOTTIME)
    check(f"at {test.dir / 'no-daemon'}: starting a private one" in result.err, f"{result}")
    check(re.search(r"x\.json: .* events? of \d+ types?", result.err), f"{result}")
    check("ui.perfetto.dev" in result.err, f"{result}")
    check("\r" not in result.err and "\033" not in result.err, "a progress line in a pipe")
    check(test.files() == ["x.json"], f"{test.files()}")
    _, events = check_json((test.dir / "x.json").read_bytes())
    names = {e[6] for e in events}
    check("sched_switch" in names, f"{names}")
    times = [float(e[5]) for e in events]
    check(times == sorted(times), "not in order")
    check(before <= times[0] and times[-1] <= after, "not on the boot clock")
    check(times[-1] - times[0] > 0.8, f"only {times[-1] - times[0]} s of 1 s")
    check("<...>" not in (test.dir / "x.json").read_text(errors="replace"), "a task has no name")


def all_formats_agree(test):
    record(test, "-t", "500ms", "-o", "x.traced")
    for out in ("x.json", "x.json.gz", "x.txt", "x.txt.gz"):
        result = test.run("convert", "-v", "x.traced", out)
        check(result.status == 0, f"{result}")
        check("written" in result.err and "field by field" in result.err, f"-v: {result}")
    check((test.dir / "x.json").read_bytes() == gzip.decompress(
        (test.dir / "x.json.gz").read_bytes()), "x.json.gz")
    check((test.dir / "x.txt").read_bytes() == gzip.decompress(
        (test.dir / "x.txt.gz").read_bytes()), "x.txt.gz")
    text = events_of_text((test.dir / "x.txt").read_text(errors="replace"))
    _, events = check_json((test.dir / "x.json").read_bytes())
    check(len(text) == len(events), f"{len(text)} events in text, {len(events)} in JSON")
    # Through pipes, as nobody: convert needs neither names nor privilege.
    data = (test.dir / "x.traced").read_bytes()
    piped = test.run("convert", "--format", "txt", "-", "-", stdin=data, wrap=as_nobody(),
                     env=test.environment(TMPDIR="/tmp"))
    check(piped.status == 0 and piped.stdout == (test.dir / "x.txt").read_bytes(), f"{piped.err}")
    # A copied stream is the same stream.
    check(test.run("convert", "x.traced", "y.traced").status == 0, "to .traced")
    again = test.run("convert", "--format", "txt", "y.traced", "-")
    check(again.stdout == (test.dir / "x.txt").read_bytes(), "y.traced differs")
    # Standard output, given by its name: the file keeps what it had before.
    with open(test.dir / "log", "wb") as log:
        log.write(b"so far\n")
    with open(test.dir / "log", "ab") as log:
        subprocess.run(test.arguments("convert", "-q", "--format", "txt", "x.traced", "/dev/stdout"),
                       cwd=test.dir, env=test.environment(), stdout=log, check=True)
    check((test.dir / "log").read_bytes() == b"so far\n" + again.stdout, "/dev/stdout was replaced")
    (test.dir / "link.txt").symlink_to("/dev/stdout")
    check(test.run("convert", "-q", "x.traced", "link.txt").stdout == again.stdout, "the link's ending was not used")
    with open("/dev/full", "wb") as full:
        untold = subprocess.run(test.arguments("convert", "--json", "x.traced", "full.txt"), cwd=test.dir,
                                env=test.environment(), stdout=full, stderr=subprocess.PIPE, check=False)
    check(untold.returncode == 3 and b"standard output" in untold.stderr, f"{untold}")
    check((test.dir / "full.txt").exists(), "the file is not there")
    (test.dir / "full.txt").unlink()
    outcome = test.run("convert", "--json", "x.traced", "z.txt")
    told = parse_json(outcome.stdout)
    lines = len(all_of_text((test.dir / "x.txt").read_text(errors="replace")))
    check(lines > len(text) and told["events"] == lines and told["lost"] == 0, f"{lines} lines: {told}")
    check(sum(r["events"] for r in told["ledger"]) == lines, f"{lines} lines: {told}")


def handed_descriptors(test):
    """A descriptor's owner does not matter: it was passed on to be written."""
    log = test.dir / "log"
    log.write_bytes(b"so far\n")
    os.chown(log, NOBODY, NOBODY)
    with log.open("ab") as file:
        out = f"/dev/fd/{file.fileno()}"
        for more in ([], ["--stream"]):
            record(test, "-t", "200ms", "--format", "txt", "-o", out, *more, pass_fds=[file.fileno()])
        refused = record(test, "-t", "200ms", "--format", "txt", "-o", out, "--rotate", "1M", status=2,
                         pass_fds=[file.fileno()])
    check("--rotate writes files" in refused.err, f"{refused}")
    closed = record(test, "-t", "200ms", "--format", "txt", "-o", "/dev/stdin", status=1,
                    wrap=["sh", "-c", 'exec "$@" <&-', "sh"])
    check("/dev/stdin: Bad file descriptor" in closed.err, f"{closed}")
    text = log.read_text(errors="replace")
    check(text.startswith("so far\n") and text.count("# tracer:") == 2, text[:1000])
    check(test.files() == ["log"], f"{test.files()}")


def the_file_is_as_umask_says(test):
    record(test, "-t", "100ms", "-o", "x.json", umask=0o027)
    check(stat.S_IMODE((test.dir / "x.json").stat().st_mode) == 0o640, "mode")


def default_name(test):
    result = record(test, "-t", "200ms")
    check(test.files() == ["trace.json"] and "trace.json:" in result.err, f"{result}")
    result = record(test, "--format", "txt", "-t", "200ms")
    check(test.files() == ["trace.json", "trace.txt"] and "trace.txt:" in result.err, f"{result}")


def quiet(test):
    result = record(test, "-q", "-t", "200ms", "-o", "x.json")
    check(result.err == "" and result.out == "", f"{result}")


def outcome_as_json(test):
    result = record(test, "--json", "-t", "300ms", "-o", "x.txt")
    told = parse_json(result.stdout)
    lines = len(all_of_text((test.dir / "x.txt").read_text(errors="replace")))
    check(told["file"] == "x.txt" and told["events"] == lines, f"{lines} lines: {told}")
    check(told["bytes"] == (test.dir / "x.txt").stat().st_size, f"{told}")
    for row in told["ledger"]:
        check(row["written"] == row["events"] + row["lost_overrun"] + row["lost_other"]
              + row["unread"], f"the ledger does not add up: {row}")


def standard_output(test):
    result = record(test, "-t", "300ms", "-o", "-")
    check_json(result.stdout)
    check(test.files() == [], f"{test.files()}")
    text = record(test, "-t", "300ms", "--format", "txt", "-o", "-", "--", "echo", "loud")
    check(b"loud" not in text.stdout and "loud" in text.err, "COMMAND's output is in the trace")


def closed_descriptors(test):
    """A descriptor that the caller closed is used neither for the output nor for a pipe of ours."""
    record(test, "-t", "200ms", "-o", "x.traced")
    for output, *more in (["o.json"], ["o.ctf"], ["r.txt", "--rotate", "100K"]):
        result = test.run("convert", *more, "x.traced", output, wrap=("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"))
        check(result.status == 0 and not result.err, f"{output}: {result}")
    check_json((test.dir / "o.json").read_bytes())
    check((test.dir / "o.ctf" / "metadata").exists(), f"{test.files()}")
    check((test.dir / "r.0001.txt").read_bytes().startswith(b"# tracer"), f"{test.files()}")


# 200,000 events in a moment: more than a small disk holds in any format.
FLOOD = ("-b", "32M", "-e", "raw_syscalls", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=100000",
         "status=none")


def no_room_is_left(test):
    """The message names the file, and says what to do."""
    record(test, "-o", "x.traced", *FLOOD)
    disk = test.dir / "disk"
    disk.mkdir()
    for output in ("o.json", "o.txt", "o.html", "o.pftrace", "o.dat", "o.traced", "o.ctf"):
        result = test.run("convert", "x.traced", f"disk/{output}", wrap=in_namespace(
            f"mount -t tmpfs -o size=64k none {disk}"))
        told = result.err.splitlines()
        check(result.status == 1 and len(told) == 2, f"{output}: {result}")
        check(told[0].startswith(f"tracectl: disk/{output}: ") and "No space left" in told[0], f"{result}")
        check("free some space or name an output on another disk" in told[1], f"{result}")
    for output in ("o.txt", "o.ctf"):
        result = record(test, "-o", f"disk/{output}", *FLOOD, status=1, wrap=in_namespace(
            f"mount -t tmpfs -o size=64k none {disk}"))
        told = result.err.splitlines()[-2:]
        check(told[0].startswith(f"tracectl: disk/{output}: ") and "No space left" in told[0], f"{result}")
        safe = re.search(rf"the recording is safe: tracectl convert (\S+\.traced) DIR/{output} \(DIR on another disk\)$",
                         told[1])
        check(safe, f"{result}")
        os.unlink(safe[1])
    # The file of another ending, and one that stays full.
    result = record(test, "--format", "txt", "-o", "disk/o.json", *FLOOD, status=1, wrap=in_namespace(
        f"mount -t tmpfs -o size=64k none {disk}"))
    safe = re.search(r"tracectl convert (\S+\.traced) DIR/o.json --format txt \(DIR on another disk\)$", result.err,
                     re.M)
    check(safe, f"{result}")
    os.unlink(safe[1])
    result = record(test, "-t", "200ms", "--format", "txt", "-o", "/dev/full", status=1)
    safe = re.search(r"/dev/full: .*\n.*tracectl convert (\S+\.traced) FILE$", result.err, re.M)
    check(safe, f"{result}")
    os.unlink(safe[1])
    disk.rmdir()


def nearly_full_disk(test):
    """The space that ext4 allocated in advance is freed, even if the file needed less than
    requested."""
    need(shutil.which("mkfs.ext4"), "mkfs.ext4 is not installed")
    subprocess.run([test.build / "tests/unit/generate", "functions", "190000", test.dir / "x.traced"], check=True)
    disk, image = test.dir / "disk", test.dir / "image"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(26 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", image], check=True)
    result = test.run("convert", "x.traced", "disk/o.txt", wrap=in_namespace(
        f'mount -o loop {image} {disk} || exit 99; "$@"; s=$?; stat -c "%s %b %B" {disk}/o.txt; exit $s'))
    check(result.status == 0, f"{result}")
    size, blocks, unit = map(int, result.out.split())
    check(size > 18 << 20 and blocks * unit < size + (64 << 10), f"{blocks * unit} bytes are allocated for {size}")


def a_private_recording_is_listed(test):
    """And the printed command puts a mark into it."""
    process = test.start("record", "--name", test.name, "-t", "30s", "-e", "irq", "-o", "x.txt")
    test.wait_for_recording(test.name)
    result = test.run("status")
    check(result.status == 1 and "no traced is running" in result.err, f"{result}")
    check(f"private recording {test.name}, by traced " in result.out and "record --name" in result.out, f"{result}")
    command = re.search(rf"as root: tracectl (mark --name {test.name} TEXT)$", result.out, re.M)
    check(command, f"{result}")
    check(test.run(*command[1].split()).status == 1, "a mark reaches others than the daemon of --socket")

    def without_socket(*words):
        return subprocess.run([test.tracectl, *words], capture_output=True, check=False, env=test.environment())

    status = without_socket("status", "--json")
    listed = [p for p in parse_json(status.stdout)["private"] if p["name"] == test.name]
    check(status.returncode == 0 and len(listed) == 1 and listed[0]["instance"] in test.instances(), f"{status}")
    marked = without_socket(*command[1].replace("TEXT", "by-hand").split())
    check(marked.returncode == 0 and not marked.stderr, f"{marked}")
    absent = without_socket("mark", "--name", f"{test.name}-absent", "x")
    check(absent.returncode == 1 and b"no traced is running" in absent.stderr, f"{absent}")
    interrupt(process)
    result = test.finish(process)
    check(result.status == 0, f"{result}")
    marks = re.findall(r"tracing_mark_write: (N\|.*)$", (test.dir / "x.txt").read_text(), re.M)
    check(marks == [f"N|{os.getpid()}|marks|by-hand"], f"{marks}")


def reader_goes_away(test):
    """| head: no hang, no partial success."""
    process = test.start("record", "--name", test.name, "-t", "1s", "-e", "*:*", "--format",
                         "txt", "-o", "-")
    reader = subprocess.run(["head", "-c", "100"], stdin=process.stdout, capture_output=True,
                            check=True)
    check(reader.stdout.startswith(b"# tracer"), f"{reader}")
    process.stdout.close()
    process.stdout = open(os.devnull, "rb")
    result = test.finish(process)
    told = without_its_own(result.err).splitlines()
    check(result.status == 1 and len(told) == 1 and "reader closed the output" in told[0], f"{result}")
    test.check_no_instances()
    check(not list((test.top / "spool").glob("*")), "the spool was not removed")


def without_its_own(err):
    return "".join(line for line in err.splitlines(True) if "starting a private one" not in line)


@contextlib.contextmanager
def worker():
    """A shell that starts a program each time that it is asked to."""
    with subprocess.Popen(["sh", "-c", "while read -r x; do sleep 0.01; echo; done"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def record_work(test, process, *arguments):
    """Records until the worker has worked, however long that takes."""
    recorder = test.start("record", "--name", test.name, *arguments)
    try:
        test.wait_for_recording(test.name)
        for _ in range(10):
            process.stdin.write(b"\n")
            process.stdin.flush()
            process.stdout.readline()
    finally:
        interrupt(recorder)
        result = test.finish(recorder)
    check(result.status == 0, f"{result}")
    test.check_no_instances()


def filters_select(test):
    with worker() as sleeper:
        record_work(test, sleeper, "-e", "sched:sched_switch", "-f", f"next_pid == {sleeper.pid}", "-e", "sched:sched_waking",
                    "-o", "x.txt")
    events = events_of_text((test.dir / "x.txt").read_text(errors="replace"))
    # Marks of others reach every recording.
    names = {e[6] for e in events} - {"tracing_mark_write"}
    check(names == {"sched_switch", "sched_waking"}, f"{names}")
    for e in events:
        check(e[6] != "sched_switch" or f"next_pid={sleeper.pid} " in e[7], f"{e}")


def one_cpu(test):
    record(test, "-t", "500ms", "--cpus", "0", "-o", "x.txt")
    events = events_of_text((test.dir / "x.txt").read_text(errors="replace"))
    check({int(e[3]) for e in events} == {0}, "other CPUs")


def mono_clock(test):
    before = time.monotonic()
    record(test, "-t", "300ms", "-C", "mono", "-o", "x.txt")
    events = events_of_text((test.dir / "x.txt").read_text(errors="replace"))
    check(before <= float(events[0][5]) <= time.monotonic(), "not the monotonic clock")


def only_the_command(test):
    """-F: the command and its children only. A task that others wake reports that itself."""
    script = "echo $$ >pids; (sh -c 'echo $$ >>pids; sleep 0.1; exec ls -l /usr >/dev/null'); " \
             "sleep 0.1"
    result = record(test, "-F", "-e", "sched:sched_switch", "-e", "sched:sched_process_*",
                    "-o", "x.txt", "--", "sh", "-c", script)
    events = events_of_text((test.dir / "x.txt").read_text(errors="replace"))
    first, second = (test.dir / "pids").read_text().split()
    pids = {e[1] for e in events}
    check({first, second} <= pids, f"{first}, {second} are missing: {pids}; {result}")
    born = {m.group(1) for e in events if e[6] == "sched_process_fork"
            for m in [re.search(r"child_pid=(\d+)", e[7])]}
    # set_event_pid also passes the switch to a recorded task, which its predecessor writes.
    for e in events:
        ours = born | {first}
        if e[6] == "sched_switch" and re.search(r"next_pid=(\d+)", e[7]).group(1) in ours:
            continue
        check(e[1] in ours, f"a stranger: {e}; ours: {ours}")


def a_programs_probe(test):
    probes = TRACEFS / "uprobe_events"
    need(probes.exists(), "this kernel has no uprobes")
    program = test.tracectl.resolve()
    result = record(test, "--uprobe", f"p:begins {program}:0x{entry_of(program):x} sp=$stack", "--uprobe",
                    f"p:other {program}:0x{entry_of(program):x} sp=$stack", "-f", "sp == 1", "-o", "x.txt",
                    "--", program, "--version")
    text = (test.dir / "x.txt").read_text(errors="replace")
    check(re.search(r"tracectl-\d+ .*: begins: \(0x[0-9a-f]+\) sp=0x[0-9a-f]+$", text, re.M),
          f"no probe in\n{text[-1000:]}{result}")
    check(": other: " not in text, "events that the probe's filter rejects are there")
    # Other tests have probes, too.
    settled("the probes go", lambda: not re.search(r"/(begins|other) .*tracectl", probes.read_text()))


def one_process(test):
    with worker() as sleeper:
        record_work(test, sleeper, "-P", sleeper.pid, "-e", "sched:sched_process_fork", "-o", "x.txt")
    events = events_of_text((test.dir / "x.txt").read_text(errors="replace"))
    check({int(e[1]) for e in events} == {sleeper.pid}, f"{ {e[1] for e in events} }")


def stacks_of_a_program(test):
    """Addresses as offsets in the files that the program mapped."""
    with worker() as sleeper:
        for how in ([], ["--ring"]):
            record_work(test, sleeper, "-P", sleeper.pid, "-e", "raw_syscalls:sys_enter", "-O", "userstacktrace", "-O",
                        "sym-userobj", *how, "-o", "x.txt")
            text = (test.dir / "x.txt").read_text(errors="replace")
            check(re.search(r"<user stack trace>\n => /\S*\[\+0x[0-9a-f]+\]\n", text), f"no place in\n{text[-1000:]}")
            (test.dir / "x.txt").unlink()


def command_ends_it(test):
    start = time.monotonic()
    result = record(test, "-o", "x.json", "--", "sh", "-c", "sleep 0.5; exit 7", status=7)
    check(0.5 < time.monotonic() - start < 20, "time")
    check("exit status 7" in result.err and result.status == 7, f"{result}")
    check_json((test.dir / "x.json").read_bytes())
    for command, how, status in (("kill -TERM $$", [], 128 + signal.SIGTERM), ("exit 9", ["--status=ours"], 0),
                                 ("exit 3", ["--report", "sched"], 3), ("exit 9", ["-f", "prev_pid == 1"], 2)):
        r = test.run("record", "--name", test.name, *how, *([] if "--report" in how else ["-o", "x.json"]), "--", "sh",
                     "-c", command)
        check(r.status == status, f"{command}: {r}")
    # Longer than run() waits.
    result = record(test, "-t", "300ms", "-o", "x.json", "--", "sh", "-c", "exec sleep 120 >/dev/null 2>&1")
    check("is still running" in result.err, f"{result}")
    os.kill(int(re.search(r"pid (\d+)", result.err).group(1)), signal.SIGKILL)


def interrupted(test):
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process = test.start("record", "--name", test.name, "-t", "60s", "-o", "x.json")
        test.wait_for_recording(test.name)
        time.sleep(0.3)
        process.send_signal(sig)
        result = test.finish(process)
        check(result.status == 0, f"{result}")
        check_json((test.dir / "x.json").read_bytes())
        test.check_no_instances()


def interrupted_with_its_command(test):
    """As from a terminal: the whole process group gets the signal."""
    process = test.start("record", "--name", test.name, "-o", "x.json", "--", "sleep", "60",
                         start_new_session=True)
    test.wait_for_recording(test.name)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    result = test.finish(process, timeout=30)
    check(result.status == 0, f"{result}")
    check_json((test.dir / "x.json").read_bytes())


def killed(test):
    """No message can be printed any more, but nothing is left behind either."""
    process = test.start("record", "--name", test.name, "-t", "60s", "-o", "x.json")
    test.wait_for_recording(test.name)
    process.kill()
    process.communicate()
    settled("the instances go", lambda: not test.instances())
    check(test.files() == [], f"left files: {test.files()}")


def two_at_once(test):
    one = test.start("record", "--name", test.name + "-one", "-t", "1s", "-e", "sched", "-o",
                     "one.txt")
    two = test.start("record", "--name", test.name + "-two", "-t", "1s", "-e", "irq", "-e",
                     "timer", "-o", "two.txt")
    for process in (one, two):
        result = test.finish(process)
        check(result.status == 0, f"{result}")
    for name, systems in (("one.txt", {"sched"}), ("two.txt", {"irq", "timer"})):
        events = events_of_text((test.dir / name).read_text(errors="replace"))
        known = {line.split(":")[1] for line in
                 (TRACEFS / "available_events").read_text().splitlines()
                 if line.split(":")[0] in systems}
        # Marks that other programs write to the top level are copied into each recording.
        strangers = {e[6] for e in events} - known - {"tracing_mark_write"}
        check(events and not strangers, f"{name}: strangers in it: {strangers}")


def ring(test):
    process = test.start("record", "--name", test.name, "--ring", "-b", "64K", "-e", "sched",
                         "-o", "x.txt")
    test.wait_for_recording(test.name)
    time.sleep(1)
    interrupt(process)
    result = test.finish(process)
    check(result.status == 0 and "recording into x.txt until Ctrl-C" in result.err, f"{result}")
    check(events_of_text((test.dir / "x.txt").read_text(errors="replace")), "empty")


def losses_are_told(test):
    load = subprocess.Popen(["sh", "-c", "while :; do dd if=/dev/zero of=/dev/null bs=1 "
                             "count=100000 2>/dev/null; done"])
    try:
        result = record(test, "-t", "1s", "-b", "8K", "-e", "*:*", "--fail-on-loss", "-o", "x.txt",
                        status=3)
        check("lost" in result.err and "-b " in result.err, f"{result}")
        again = record(test, "-t", "300ms", "-b", "8K", "-e", "raw_syscalls", "--json", "-o", "x.txt")
        told = parse_json(again.stdout)
        check(told["lost"] > 0 and " [LOST " in (test.dir / "x.txt").read_text(errors="replace"),
              f"{told}")
    finally:
        load.kill()
        load.wait()


def by_name(test):
    """start, list, status, mark, snapshot, attach, stop, cancel."""
    check(test.run("list").out == "", "list without sessions")
    check(test.run("start", "--name", test.name, "-e", "sched").status == 0, "start")
    check(test.name in test.run("list").out, "list")
    check(test.run("mark", "hello", "you").status == 0, "mark")
    time.sleep(0.5)
    status = parse_json(test.run("status", "--json").stdout)
    session = status["sessions"][0]
    check(session["name"] == test.name and session["state"] == "recording", f"{session}")
    check(session["cpus"] and status["uptime_ns"] > 0, f"{status}")
    text = test.run("status", "-v")
    check(test.name in text.out and "CPU 0" in text.out, f"{text}")
    watched = test.start("status", "--watch")
    shown = ""
    while shown.count("traced: up ") < 2:
        line = watched.stdout.readline().decode()
        check(line, f"it has ended: {shown}")
        shown += line
    watched.send_signal(signal.SIGINT)
    test.finish(watched)
    check("\x1b" not in shown and test.name in shown, shown)
    result = test.run("stop", "-o", "x.txt")
    check(result.status == 0, f"{result}")
    marks = [e for e in events_of_text((test.dir / "x.txt").read_text(errors="replace"))
             if "hello you" in e[7]]
    check(len(marks) == 1, f"{marks}")
    check(test.run("list").out == "", "the session still exists")
    test.check_no_instances()
    # It ends by itself; attach waits for that, stop fetches it.
    check(test.run("start", "--name", test.name, "-t", "1s").status == 0, "start -t")
    attached = test.run("attach", test.name)
    check(attached.status == 0, f"{attached}")
    check(test.run("stop", test.name, "-o", "y.json").status == 0, "stop of a stopped one")
    check_json((test.dir / "y.json").read_bytes())
    check(test.run("start", "--name", test.name, "-t", "1s").status == 0, "start -t")
    attached = test.run("attach", test.name, "-o", "z.json")
    check(attached.status == 0, f"{attached}")
    check_json((test.dir / "z.json").read_bytes())
    check(test.run("start", "--name", test.name, "--ring", "-b", "1M").status == 0, "start ring")
    time.sleep(0.3)
    for name in ("1.json", "2.json"):
        result = test.run("snapshot", test.name, "-o", name)
        check(result.status == 0, f"{result}")
        check_json((test.dir / name).read_bytes())
    check(test.run("cancel", test.name).status == 0, "cancel")
    test.check_no_instances()


def own_files_without_o(test):
    """Without -o, no session's file replaces another one's, and no snapshot's the one before."""
    names = [f"{test.name}-{n}" for n in "ab"]
    for name in names:
        check(test.run("start", "--name", name, "--ring", "-b", "1M", "-e", "sched").status == 0, "start")
    time.sleep(0.3)
    for _ in range(2):
        check(test.run("snapshot", names[0]).status == 0, "snapshot")
    for name, how in zip(names, ([], ["--format", "txt"]), strict=True):
        result = test.run("stop", name, *how)
        check(result.status == 0, f"{result}")
    found = test.files()
    check(f"{names[0]}.json" in found and f"{names[1]}.txt" in found and len(found) == 4, f"{found}")
    snapshots = [f for f in found if re.fullmatch(names[0] + r"-\d{8}T\d{6}\.\d{3}Z\.json", f)]
    check(len(snapshots) == 2, f"{found}")
    test.check_no_instances()


def snapshots_of_one_moment(test):
    """Snapshots whose default names are the same keep each other's files."""
    library = test.build / "tests/integration/moved_clock.so"
    need(library.exists(), "not with sanitizers")
    (test.dir / "still").write_text("=1000000000")
    env = test.environment(LD_PRELOAD=str(library), MOVED_CLOCK=str(test.dir / "still"))
    check(test.run("start", "--name", test.name, "--ring", "-b", "1M", "-e", "sched").status == 0, "start")
    name = f"{test.name}-20010909T014640.000Z"
    data = []
    for ending in ("", "-2", "-3"):
        time.sleep(0.1)
        r = test.run("snapshot", test.name, env=env)
        check(r.status == 0 and f"{name}{ending}.json: " in r.err, f"{r}")
        data.append((test.dir / f"{name}.json").read_bytes())
    check(len(set(data)) == 1 and len(test.files()) == 4, f"{test.files()}")
    check(test.run("cancel", test.name).status == 0, "cancel")
    test.check_no_instances()


def owners_are_in_names(test):
    """Root's recordings of another user's session and of its own have two files."""
    group = 23456
    test.daemon.socket.parent.chmod(0o755)
    os.chown(test.daemon.socket, 0, group)
    test.daemon.socket.chmod(0o660)
    user = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--groups", str(group)]
    for wrap in ((), user):
        r = test.run("start", "--name", test.name, "-e", "sched:sched_process_exec", wrap=wrap)
        check(r.status == 0, f"{r}")
    for name in (f"{NOBODY}/{test.name}", test.name):
        r = test.run("stop", name)
        check(r.status in (0, 3), f"{r}")
    check(test.files() == sorted([f"{NOBODY}-{test.name}.json", f"{test.name}.json"]), f"{test.files()}")
    test.check_no_instances()


def failed_exports_are_seen(test):
    """A user sees and removes what a failed export left of the user's own, and nothing of another user."""
    group = 23456
    test.daemon.socket.parent.chmod(0o755)
    os.chown(test.daemon.socket, 0, group)
    test.daemon.socket.chmod(0o660)
    test.daemon.spool.chmod(0o700)
    users = {uid: ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--groups", str(group)] for uid in (NOBODY, 12345)}
    for uid, wrap in users.items():
        r = test.run("record", "--name", f"of-{uid}", "-t", "100ms", "-e", "sched", "-o", "/dev/full", "--format", "txt", wrap=wrap)
        check(r.status == 1 and "the recording is safe" in r.err, f"{r}")
    files = {uid: next(test.daemon.spool.glob(f"*-{uid}+of-{uid}-*.traced")) for uid in users}
    for uid, wrap in users.items():
        own, other = str(files[uid]), str(files[NOBODY + 12345 - uid])
        r = test.run("list", wrap=wrap)
        check(f"left from an earlier run: root can write it out: tracectl convert {own} FILE" in r.err and other not in r.err, f"{r}")
        r = test.run("recover", wrap=wrap)
        check(re.fullmatch(rf"of-{uid} +20\d\d-.* {re.escape(own)}\n", r.out), f"{r}")
        (kept,) = json.loads(test.run("recover", "--json", wrap=wrap).out)
        check(kept["file"] == own and kept["bytes"] == files[uid].stat().st_size and kept["session"] == f"of-{uid}", f"{kept}")
        r = test.run("recover", f"of-{uid}", wrap=wrap)
        check(r.status == 1 and "Permission denied" in r.err and f"tracectl cancel {own}" in r.err, f"{r}")
        r = test.run("cancel", other, wrap=wrap)
        check(r.status == 1 and files[NOBODY + 12345 - uid].exists(), f"another user's: {r}")
    for uid, wrap in users.items():
        check(test.run("cancel", files[uid], wrap=wrap).status == 0 and not files[uid].exists(), f"{files[uid]}")
        check(test.run("recover", wrap=wrap).out == "no recording of yours is left\n", "it is there")


SETTINGS = {"tracing_on", "trace_clock", "buffer_size_kb", "buffer_subbuf_size_kb", "current_tracer", "set_event", "set_event_pid",
            "tracing_cpumask", "enable", "filter", "trace_options", "buffer_percent"}
# Events of other tests, which come and go in each instance.
OTHERS = re.compile(r"/events/(traced_|synthetic/|user_events/)")


def settings(instance):
    """All settings that read the same while nobody writes."""
    kept = {}
    for folder, _, names in os.walk(instance):
        for path in (os.path.join(folder, name) for name in sorted(SETTINGS & set(names))):
            with contextlib.suppress(OSError):
                if not OTHERS.search(path):
                    kept[path] = pathlib.Path(path).read_text()
    return kept


def extract_foreign(test):
    """Another tool's instance: its events come out, its settings stay."""
    instance = INSTANCES / f"foreign-{test.name}"
    instance.mkdir()
    try:
        (instance / "trace_clock").write_text("mono")
        (instance / "events/sched/sched_switch/enable").write_text("1")
        time.sleep(0.3)
        (instance / "tracing_on").write_text("0")
        (instance / "trace_marker").open("w").close()
        before = settings(instance)
        held = [l for l in (instance / "trace").read_text(errors="replace").splitlines()
                if not l.startswith("#")]
        result = test.run("extract", "--instance", instance.name, "-o", "x.txt")
        check(result.status == 0, f"{result}")
        check(settings(instance) == before, "its settings were changed")
        events = events_of_text((test.dir / "x.txt").read_text(errors="replace"))
        check(len(events) == len(held), f"{len(events)} events of {len(held)}")
        check([float(e[5]) for e in events] == [float(LINE.match(l).group(6)) for l in held],
              "other times")
        empty = test.run("extract", "--instance", instance.name, "-o", "y.txt")
        check(empty.status == 3 and "NOT ONE EVENT" in empty.err
              and "buffer is empty" in empty.err, f"{empty}")
    finally:
        instance.rmdir()


def extracted_stacks_of_programs(test):
    """Stacks of running programs as the kernel prints them: the file and the offset."""
    instance = INSTANCES / f"foreign-{test.name}"
    instance.mkdir()
    try:
        (instance / "set_event_pid").write_text(str(os.getpid()))
        for option in ("userstacktrace", "sym-userobj"):
            (instance / "options" / option).write_text("1")
        (instance / "events/raw_syscalls/sys_enter/enable").write_text("1")
        for _ in range(50):
            json.dumps(sorted(os.listdir("/proc/self/fd")))
            pathlib.Path("/proc/self/stat").read_text()
        (instance / "events/enable").write_text("0")
        (instance / "tracing_on").write_text("0")
        kernels = (instance / "trace").read_text(errors="surrogateescape").partition("|||")[2]
        result = test.run("extract", "--instance", instance.name, "-o", "x.txt")
    finally:
        instance.rmdir()
    check(result.status == 0, f"{result}")
    check(kernels.count("[+0x") > 100, f"too little in\n{kernels[:1500]}")
    ours = (test.dir / "x.txt").read_text(errors="surrogateescape").partition("|||")[2]
    for theirs, own in itertools.zip_longest(kernels.splitlines(), ours.splitlines(), fillvalue=""):
        # Between other tests' tasks the kernel may have forgotten a name that we know.
        if theirs.lstrip().startswith("<...>-"):
            theirs, own = theirs.split("-", 1)[1], own[own.index(f"-{os.getpid()} ") + 1:]
        check(theirs == own, f"the kernel says\n  {theirs}\nand we\n  {own}")


def json_and_daemon(test):
    result = record(test, "-t", "300ms", "-o", "x.json")
    check("starting a private one" not in result.err, f"{result}")
    check_json((test.dir / "x.json").read_bytes())


def configured(test):
    """Settings that the command line leaves out come from traced.conf."""
    (test.dir / "daemon" / "conf").write_text("[defaults]\nevents = sched:sched_switch\n"
                                              "clock = mono\nbuffer_size = 1M\n")
    test.daemon.stop()
    test.daemon = type(test.daemon)(test, "--config", test.dir / "daemon" / "conf")
    before = time.monotonic()
    record(test, "-t", "300ms", "-o", "x.txt")
    events = events_of_text((test.dir / "x.txt").read_text(errors="replace"))
    check({e[6] for e in events} == {"sched_switch"}, f"{ {e[6] for e in events} }")
    check(before <= float(events[0][5]) <= time.monotonic(), "not the monotonic clock")


def an_ordinary_user(test):
    """A user who may use the socket needs no other privilege, and owns the file."""
    test.daemon.socket.parent.chmod(0o755)
    for mode, hint in ((0o600, "groupadd -r traced"), (0o660, "usermod -aG traced USER")):
        test.daemon.socket.chmod(mode)
        refused = test.run("status", wrap=as_nobody())
        check(refused.status == 1 and "no permission" in refused.err and hint in refused.err, f"{refused}")
    test.daemon.socket.chmod(0o666)
    os.chown(test.dir, NOBODY, NOBODY)
    result = record(test, "-t", "300ms", "-o", "x.json", wrap=as_nobody())
    check("starting a private one" not in result.err, f"{result}")
    check_json((test.dir / "x.json").read_bytes())
    check((test.dir / "x.json").stat().st_uid == NOBODY, "not theirs")


def lists(test):
    known = (TRACEFS / "available_events").read_text().split()
    every = test.run("events").out.split()
    check(set(known) <= set(every), f"missing: {sorted(set(known) - set(every))[:5]}")
    check(every == sorted(every), "not sorted")
    some = test.run("events", "--json", "irq:irq_handler_*")
    check(parse_json(some.stdout) == ["irq:irq_handler_entry", "irq:irq_handler_exit"], f"{some}")
    doctor = parse_json(test.run("doctor", "--json").stdout)
    check({"check", "verdict", "text"} <= set(doctor[0]), f"{doctor[0]}")
    (test.dir / "p").mkdir()
    (test.dir / "p" / "net.profile").write_text(
        "[profile]\nsummary = packets\nevents = net:*, skb\noptional = tcp\n")
    profiles = parse_json(test.run("profiles", "--json",
                                   env=test.environment(TRACED_PROFILES="p")).stdout)
    table = test.run("profiles", env=test.environment(TRACED_PROFILES="p")).out
    check(table == "net        packets\n", table)
    one = test.run("profiles", "net", env=test.environment(TRACED_PROFILES="p")).out
    check("  events   net:* skb\n" in one and "tcp" in one, one)
    # Without an environment variable: in the build tree, or where they are installed.
    env = test.environment()
    del env["TRACED_PROFILES"]
    check("latency" in test.run("profiles", env=env).out, "the build tree's own profiles")
    check(profiles[0]["name"] == "net" and profiles[0]["events"] == ["net:*", "skb"], f"{profiles}")


def same_list_from_the_daemon(test):
    direct = sorted((TRACEFS / "available_events").read_text().split())
    check(set(direct) <= set(test.run("events").out.split()), "events")


def a_terminal_gets_a_line(test):
    """script(1) gives a terminal; the progress line is gone at the end."""
    command = " ".join(f"'{a}'" for a in test.arguments("record", "--name", test.name, "-t",
                                                        "5s", "-o", "x.json"))
    done = subprocess.run(["script", "-qec", command, "/dev/null"], cwd=test.dir,
                          env=test.environment(TERM="xterm"), capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=60, check=False)
    out = done.stdout.decode(errors="replace")
    check(done.returncode == 0, out)
    # It is written once: more would be in the recording.
    check(re.findall(r"\r\033\[K(recording [^\r]*)", out) == ["recording for 5.00 s; Ctrl-C ends it early"], repr(out))
    # The terminal shows the output, if that goes there.
    command = " ".join(f"'{a}'" for a in test.arguments("record", "--name", test.name, "-e", "sched", "-t", "600ms",
                                                        "--format", "txt", "-o", "-"))
    done = subprocess.run(["script", "-qec", command, "/dev/null"], cwd=test.dir,
                          env=test.environment(TERM="xterm"), capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=60, check=False)
    check(done.returncode == 0 and b"# tracer" in done.stdout and b"\033[K" not in done.stdout, repr(done.stdout[:2000]))


def help_covers_all(test):
    overview = test.run("help")
    check(overview.status == 0, f"{overview}")
    commands = re.findall(r"^  ([a-z-]+) ", overview.out.split("Commands:")[1].split("Options")[0],
                          re.M)
    check(len(commands) >= 15, f"{commands}")
    man = (test.source / "man" / "tracectl.1.scd").read_text()
    for c in commands:
        text = test.run("help", c)
        check(text.status == 0 and text.out.startswith(f"tracectl {c}"), f"{text}")
        check(test.run(c, "--help").out == text.out, f"{c} --help")
        before = subprocess.run([test.tracectl, "-h", c], capture_output=True, check=True)
        check(before.stdout.decode() == text.out, f"-h {c}")
        check(f"*{c}*" in man, f"the manual lacks {c}")
        for option in re.findall(r"(--[a-z0-9-]+)", text.out.split("Options:")[1]):
            check(f"*{option}*" in man, f"the manual lacks {option}")
        # Help is on this command: no option's text is on another one.
        options = text.out.split("Options:")[1]
        others = [o for o in commands if o != c]
        check(c == "fleet" or not re.search(rf"(?:  |; |\()({'|'.join(others)})(, [\w-]+)*: ", options), text)
    check("take a snapshot" not in test.run("help", "wait").out, "the conditions of wait")
    listing = test.run("help", "list").out.split("Options:")[0]
    check("\n  clocks  " in listing and "(-C)" not in listing, f"list's words look like options: {listing}")
    record_help = test.run("help", "record").out
    check(re.findall(r"^(\S.*):$", record_help.split("Options:")[1], re.M) ==
          ["What to trace", "When", "Where to", "Reports", "Cost", "Rare", "General", "Formats"], record_help)
    reports = record_help.split("\nReports:\n")[1].split("\n\n")[0]
    check(re.findall(r"--([a-z-]+)", reports) == ["report", "by", "sort", "top", "min", "task", "csv"], reports)
    names = re.findall(r"^  ([a-z]+) ", test.run("help", "report").out.split("\nReports:\n")[1].split("\n\n")[0], re.M)
    unknown = test.run("report", "nosuch", "x").err
    check(", ".join(names) in unknown, f"{names}, {unknown}")
    for command, first in (("mark", "begin"), ("sync", "id"), ("extract", "instance"), ("start", "event")):
        shown = re.search(r"--([a-z-]+)", test.run("help", command).out.split("Options:")[1])[1]
        check(shown == first, f"the first option of {command} is --{shown}")
    for ending in re.findall(r"^  (\.\S+)", record_help, re.M):
        check(f"_{ending}_" in man, f"the manual lacks {ending}")
    check(re.match(r"tracectl \d+\.\d+", subprocess.run(
        [test.tracectl, "--version"], capture_output=True, check=True).stdout.decode()), "version")


def complete(test, line):
    """The completions that bash would offer after line."""
    script = f"""source {test.source}/cli/tracectl.bash
        tracectl() {{ '{test.tracectl}' "$@"; }}
        COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
        COMP_LINE={json.dumps(line)} COMP_POINT=${{#COMP_LINE}}
        _tracectl; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script], cwd=test.dir, env=test.environment(),
                          capture_output=True, check=False)
    check(done.stderr == b"", done.stderr.decode())
    return done.stdout.decode().split()


def completion(test):
    overview = test.run("help").out
    commands = re.findall(r"^  ([a-z-]+) ", overview.split("Commands:")[1].split("Options")[0], re.M)
    check(complete(test, "tracectl ") == commands, "commands")
    check(complete(test, "tracectl st") == ["start", "stop", "status"], "st")
    for c in commands:
        options = set(re.findall(r"(--[a-z0-9-]+)", test.run("help", c).out.split("Options:")[1]))
        check(set(complete(test, f"tracectl {c} --")) == options, f"options of {c}")
    check(complete(test, "tracectl record -e sched:sched_swi") == ["sched_switch"], "an event")
    check("sched" in complete(test, "tracectl record -t 1s -e sch"), "a system")
    check("json.gz" in complete(test, "tracectl convert --format js"), "a format")
    (test.dir / "some.traced").write_text("")
    check(complete(test, "tracectl convert so") == ["some.traced"], "a file")
    check("true" in complete(test, "tracectl record -F -- tru"), "a program")
    check(complete(test, "tracectl record --event=sched:sched_swi") == ["sched_switch"],
          "an event after =")
    check("sched" in complete(test, "tracectl record --event="), "all systems after =")
    check(complete(test, "tracectl record --output=so") == ["some.traced"], "a file after =")
    check(complete(test, "tracectl record -e 'sched:sched_swi") == ["sched_switch"], "in quotes")
    check(complete(test, "tracectl convert -oout so") == ["some.traced"], "after -oVALUE")
    clocks = (TRACEFS / "trace_clock").read_text().replace("[", "").replace("]", "").split()
    check(complete(test, "tracectl record -C ") == clocks, "the kernel's clocks")
    check("sched" in complete(test, "tracectl profiles s"), "a profile")
    check(complete(test, "tracectl list t") == ["tracers"], "a list")
    actions = ["enable", "disable", "status", "arm", "disarm"]
    check(complete(test, "tracectl boot-recorder ") == actions, "actions of the boot recorder")
    check(complete(test, "tracectl boot-recorder --size 16M dis") == ["disable", "disarm"], "an action")
    check(complete(test, "tracectl fleet --json ") == ["order", "withdraw", "status", "fetch", "report", "open"], "actions of a fleet")
    check(complete(test, "tracectl fleet report so") == ["some.traced"], "a file after an action")
    check(complete(test, "tracectl --socket x st") == ["start", "stop", "status"], "after globals")


def main():
    test = Test("cli")
    for case in (help_covers_all, completion, lists, json_end_to_end, all_formats_agree,
                 handed_descriptors, the_file_is_as_umask_says, default_name, quiet, outcome_as_json, standard_output, closed_descriptors,
                 no_room_is_left, reader_goes_away, a_private_recording_is_listed, filters_select,
                 one_cpu, mono_clock, only_the_command,
                 one_process, a_programs_probe, stacks_of_a_program, command_ends_it, interrupted,
                 interrupted_with_its_command,
                 killed, two_at_once, ring, losses_are_told,
                 extract_foreign, extracted_stacks_of_programs, a_terminal_gets_a_line, nearly_full_disk):
        test.case(case.__name__.replace("_", " "), case)
    for case in (by_name, own_files_without_o, snapshots_of_one_moment, owners_are_in_names, failed_exports_are_seen, same_list_from_the_daemon,
                 configured, two_at_once, json_and_daemon, an_ordinary_user):
        test.case(case.__name__.replace("_", " ") + " (with a daemon)", case, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
