#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recordings that are written while they run: when data comes, that nothing is missing or doubled,
and that the spool's space is freed."""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from harness import INSTANCES, Failure, Test, check, chunks, interrupt, need, settled
from trace_event_rules import STRING_MAX

MARKS = 3000
SUBBUFS, FLUSH = 10, 15  # enum chunk_type


@contextlib.contextmanager
def recording(test, *arguments, **kwargs):
    """tracectl record, which already records; it ends in any case."""
    process = test.start("record", "--name", test.name, *arguments, **kwargs)
    try:
        try:
            test.wait_for_recording(test.name)
        except Failure as e:
            interrupt(process)
            raise Failure(f"{e}: {test.finish(process)}") from None
        yield process
    finally:
        if process.poll() is None:
            interrupt(process)
            try:
                process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()


def instance_of(test):
    """The main instance, once it takes marks: the one for tasks is turned on before it."""
    until = time.monotonic() + 20
    while True:
        for i in test.instances():
            on = INSTANCES / i / "tracing_on"
            if not i.endswith("-tasks") and on.read_text().strip() == "1":
                return INSTANCES / i
        check(time.monotonic() < until, "the session does not record")
        time.sleep(0.01)


def write_marks(test, count, pause=0.0, first=0):
    """Numbered marks, straight into the session's instance, from any CPU."""
    with open(instance_of(test) / "trace_marker", "wb", buffering=0) as marker:
        for n in range(first, first + count):
            marker.write(b"number %d\n" % n)
            if n % 100 == 99:
                time.sleep(pause)


def numbers_in(text):
    return [int(n) for n in re.findall(r"\bnumber (\d+)$", text, re.M)]


def every_mark_is_written_once(test, file):
    with recording(test, "--stream", "--json", "-b", "4M", "-e", "sched", "-o", file) as process:
        write_marks(test, MARKS, 0.08)
        interrupt(process)
        result = test.finish(process)
    check(result.status == 0, f"{result}")
    outcome = json.loads(result.out)
    check(outcome["lost"] == 0, f"{outcome}")
    if not file.endswith(".txt"):
        converted = test.run("convert", file, "x.txt")
        check(converted.status == 0, f"{converted}")
        file = "x.txt"
    text = (test.dir / file).read_text(errors="replace")
    check(numbers_in(text) == list(range(MARKS)), "marks are missing, doubled or out of order")
    lines = sum(1 for line in text.splitlines() if not line.startswith("#"))
    check(lines == outcome["events"], f"{lines} lines of {outcome['events']} events")
    written = sum(row["written"] for row in outcome["ledger"])
    check(written == outcome["events"], f"{written} were written: {outcome['ledger']}")
    test.check_no_instances()


def lines_come_while_it_records(test):
    with recording(test, "--format", "txt", "-o", "-") as process:
        began = time.monotonic()
        write_marks(test, 10)
        seen = []
        while len(seen) < 10:
            check(time.monotonic() - began < 30, f"after 30 s only {seen} came")
            line = process.stdout.readline().decode(errors="replace")
            check(line, "the output ended")
            seen += numbers_in(line)
        check(process.poll() is None, "the recording has ended")
        interrupt(process)
        result = test.finish(process)
        check(result.status == 0, f"{result}")
        test.check_no_instances()


def a_reader_that_leaves_ends_it(test):
    head = subprocess.Popen(["head", "-n", "30"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process = subprocess.Popen(
        test.arguments("record", "--name", test.name, "--format", "txt", "-o", "-"), cwd=test.dir,
        env=test.environment(), stdin=subprocess.DEVNULL, stdout=head.stdin, stderr=subprocess.PIPE)
    head.stdin.close()
    head.stdin = None
    out = head.communicate(timeout=60)[0].decode()
    check(len(out.splitlines()) == 30, f"{out}")
    err = process.communicate(timeout=60)[1].decode()
    check(process.returncode == 1, err)
    check("Broken pipe" not in err and "hint" not in err, err)
    check(err.count("the reader closed the output: the rest was not written") == 1, err)
    test.check_no_instances()
    check(not list((test.top / "spool").iterdir()), "the spool is left")


def spool_of(test):
    return next(iter(test.daemon.spool.iterdir())).stat()


def children_of_daemon(test):
    pid = test.daemon.process.pid
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def exporter_of(test):
    children = children_of_daemon(test)
    check(len(children) == 1, f"one exporter expected: {children}")
    return int(children[0])


FLOOD = f"flood-{os.getpid()}"


@contextlib.contextmanager
def load():
    """Many system calls of one program of a name of its own, until it is stopped."""
    process = subprocess.Popen([sys.executable, "-c", f"import os\nopen('/proc/self/comm', 'w').write('{FLOOD}')\n"
                                "while True: os.getppid()"])

    def stop():
        process.kill()
        process.wait()

    try:
        yield stop
    finally:
        stop()


def head_of(spool):
    """The kinds of the chunks that are never freed: up to the first FLUSH, or to what is freed already."""
    kinds = []
    with open(spool, "rb") as stream, contextlib.suppress(Failure):
        for kind, _, _ in chunks(stream):
            if kind == FLUSH:
                break
            kinds.append(kind)
    return kinds


def a_spool_is_freed(test):
    """During the recording, once the exporter has caught up with a burst."""
    # Only the load's: a slow exporter never catches up with a busy machine.
    with load() as stop, recording(test, "--stream", "-b", "16M", "-e", "raw_syscalls", "-f",
                                   f'comm == "{FLOOD}"', "-o", "x.pftrace") as process:
        until = time.monotonic() + 60
        while spool_of(test).st_size < 20 << 20:
            check(time.monotonic() < until, "the spool does not grow")
            time.sleep(0.02)
        head = head_of(next(test.daemon.spool.iterdir()))
        check(head and SUBBUFS not in head, f"events before the first FLUSH: {head}")
        stop()
        # It leaves the CPUs to all others: beside four busy programs, under TSan, it took longer than 25 s.
        os.setpriority(os.PRIO_PROCESS, exporter_of(test), -10)
        while spool_of(test).st_blocks * 512 > spool_of(test).st_size // 2:
            check(time.monotonic() < until, f"the spool is not freed: {spool_of(test).st_blocks} "
                  f"blocks of {spool_of(test).st_size} bytes")
            check(process.poll() is None, "the recording has ended")
            time.sleep(0.1)
        interrupt(process)
        result = test.finish(process)
        check(result.status in (0, 3), f"{result}")
        test.check_no_instances()
        check(not list(test.daemon.spool.iterdir()), "the spool is left")


def overrun(instance):
    return sum(int(re.search(r"overrun: (\d+)", p.read_text())[1]) for p in instance.glob("per_cpu/cpu*/stats"))


def private_with(test, text):
    """The environment for a private daemon with this configuration."""
    config = test.dir / "conf"
    config.write_text(text)
    wrapper = test.dir / "traced"
    wrapper.write_text(f'#!/bin/sh\nexec "{test.private}" "$@" --config "{config}"\n')
    wrapper.chmod(0o755)
    return test.environment(TRACED_DAEMON=str(wrapper))


def a_small_spool_does_not_end_a_stream(test):
    """It fills before the first flush and between two: the export goes on, and what is overwritten is counted."""
    # Only the load's events: others would overwrite the last marks before they are read.
    with load() as stop, recording(test, "--stream", "--json", "-b", "1M", "-e", "raw_syscalls", "-f", f'comm == "{FLOOD}"',
                                       "-o", "x.txt", env=private_with(test, "[limits]\nspool_max = 1M\n")) as process:
        part, sizes, spool = test.dir / "x.txt.part", [0], 0
        instance, until = instance_of(test), time.monotonic() + 60
        while len(sizes) < 10 or not overrun(instance):
            check(process.poll() is None, f"the recording has ended: {sizes}")
            check(time.monotonic() < until, f"it does not grow, or nothing is overwritten: {sizes}")
            time.sleep(0.02)
            if part.stat().st_size > sizes[-1]:
                sizes.append(part.stat().st_size)
            for file in (test.top / "spool").iterdir():
                spool = max(spool, file.stat().st_blocks * 512)
        stop()
        check(spool < 20 << 20, f"{spool} bytes in the spool")
        write_marks(test, 10)
        interrupt(process)
        result = test.finish(process, timeout=120)
    check(result.status == 0, f"{result}")
    outcome = json.loads(result.out)
    text = (test.dir / "x.txt").read_text(errors="replace")
    check(numbers_in(text) == list(range(10)), "the last marks are missing")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    lost = sum(int(n) for n in re.findall(r"\[LOST (\d+)", text))
    check(sum("[LOST " not in line for line in lines) == outcome["events"], f"{outcome}")
    check(lost == outcome["lost"] > 0, f"{lost} in the text: {outcome}")
    check(sum(row["written"] - row["unread"] for row in outcome["ledger"]) ==
          outcome["events"] + lost, f"{outcome}")
    test.check_no_instances()


def losses_by_a_slow_reader_are_counted(test):
    """The spool fills, the rings overwrite: each gap has its number, and the sums agree."""
    with load() as stop, recording(test, "-b", "4M", "-e", "raw_syscalls", "--format", "txt", "-o", "-", "-v",
                                   env=private_with(test, "[limits]\nspool_max = 20M\n")) as process:
        until = time.monotonic() + 60
        instance = instance_of(test)
        while next(iter((test.top / "spool").iterdir())).stat().st_blocks * 512 < 20 << 20:
            check(time.monotonic() < until, "the spool does not fill")
            time.sleep(0.1)
        before = overrun(instance)
        while overrun(instance) < before + 1000:
            check(time.monotonic() < until, "nothing is overwritten")
            time.sleep(0.1)
        stop()
        interrupt(process)
        result = test.finish(process, timeout=120)
        check(result.status == 0, f"{result.err}")
        check("the output was too slow" in result.err, result.err)
        rows = re.findall(r"^ +\d+((?: +\d+){7})$", result.err, re.M)
        check(rows, result.err)
        written, events, overwritten, other, _, unread, left_out = (
            sum(int(row.split()[i]) for row in rows) for i in range(7))
        lines = [line for line in result.out.splitlines() if not line.startswith("#")]
        gaps = [line for line in lines if "[LOST " in line]
        lost = sum(int(re.search(r"LOST (\d+)", line)[1]) for line in gaps)
        check(len(lines) - len(gaps) == events, f"{len(lines)} lines, {len(gaps)} gaps: {result.err}")
        check(lost == overwritten + other and lost > 1000, f"{lost} in the text: {result.err}")
        check(written == events + lost + unread and not left_out, result.err)
        test.check_no_instances()


def a_stream_has_one_output(test):
    with recording(test, "--stream", "-o", "x.txt") as process:
        second = test.run("stop", test.name, "-o", "y.txt")
        check(second.status == 1 and "while it records" in second.err, f"{second}")
        check(test.run("stop", test.name, "-o", "/dev/null", "--format", "txt").status == 1, "taken")
        # The command that the hint names.
        command = re.search(r"tracectl (stop .*)", second.err)[1].split()
        third = test.run(*command)
        check(third.status == 0 and f"{test.dir}/x.txt: " in third.err, f"{third}")
        # It was to record until Ctrl-C: the stop was that.
        result = test.finish(process)
        check(result.status == 0, f"{result}")
        check(test.files() == ["x.txt"], f"{test.files()}")


def a_long_name_has_no_part(test):
    """NAME.part would be longer than a name may be."""
    for length, warned in ((250, False), (255, True)):
        name = "x" * (length - 4) + ".txt"
        result = test.run("record", "--stream", "--name", test.name, "-t", "200ms", "-o", name)
        check(result.status == 0 and ("too long" in result.err) == warned, f"{result}")
        check((test.dir / name).stat().st_size > 0, "nothing in it")
        (test.dir / name).unlink()
    check(not test.files(), f"{test.files()}")
    result = test.run("record", "--stream", "--name", test.name, "-t", "200ms", "-o", f"x{name}")
    check(result.status == 1 and "shorter name" in result.err and "appears" not in result.err,
          f"{result}")


def await_growth(test, part, size=1):
    until = time.monotonic() + 30
    while not part.exists() or part.stat().st_size < size:
        check(time.monotonic() < until, f"{part.name} does not grow: {test.files()}")
        time.sleep(0.05)


def a_killed_daemon_leaves_the_rest(test):
    """Data that was not written is in the spool, for convert."""
    with recording(test, "--stream", "-o", "x.txt") as process:
        time.sleep(3)
        await_growth(test, test.dir / "x.txt.part", 4096)
        test.daemon.process.send_signal(signal.SIGKILL)
        test.daemon.process.wait()
        result = test.finish(process)
        check(result.status == 3 and "x.txt is INCOMPLETE" in result.err, f"{result}")
        check("sched_switch" in (test.dir / "x.txt").read_text(errors="replace"), "the file lacks earlier events")
        test.remove_instances()
        spool = next(iter(test.daemon.spool.iterdir()))
        converted = test.run("convert", spool, "rest.txt")
        check(converted.status == 3 and "INCOMPLETE" in converted.err, f"{converted}")
        check("freed during the recording" in converted.err, f"{converted}")
        check("sched_switch" in (test.dir / "rest.txt").read_text(errors="replace"), "nothing is left")


def who_is_left_running_is_said(test):
    """A recording that fails does not end its command."""
    with recording(test, "--stream", "-o", "x.txt", "--", "sh", "-c", "exec sleep 60 >/dev/null 2>&1") as process:
        test.daemon.process.send_signal(signal.SIGKILL)
        test.daemon.process.wait()
        result = test.finish(process)
        left = re.search(r"sh \(pid (\d+)\) is still running", result.err)
        check(left, f"{result}")
        os.kill(int(left[1]), signal.SIGTERM)
        test.remove_instances()


def beyond_what_a_viewer_opens(test, *options):
    """The trace goes on in another file. Its last lines have the account."""
    result = test.run("record", *options, "-e", "raw_syscalls", "-b", "64M", "--json", "-o", "x.json", "--", "dd",
                      "if=/dev/zero", "of=/dev/null", "bs=1", "count=1800000", "status=none", timeout=200)
    check(result.status == 0, f"{result}")
    outcome = json.loads(result.out)
    need(outcome["bytes"] > STRING_MAX, f"too few events: {outcome}")
    # Other programs make events, too.
    files = ["x.json"] + [f"x.{n:04}.json" for n in range(2, len(outcome["files"]) + 1)]
    check(len(files) > 1 and outcome["files"] == files, f"{outcome}")
    check("x.json goes on in x.0002.json" in result.err, f"{result.err}")
    check(test.files() == sorted(files), f"{test.files()}")
    events = 0
    for name in outcome["files"]:
        path = test.dir / name
        check(path.stat().st_size < STRING_MAX, f"{name}: {path.stat()}")
        with path.open("rb") as f:
            check(f.read(31) == b'{"systemTraceEvents":"# tracer:', name)
            f.seek(-(1 << 20), 2)
            end = f.read()
        check(end.endswith(b"}}\n"), f"{name} ends with {end[-80:]}")
        events += json.loads(end[end.rindex(b'"otherData":') + 12:-2])["events"]
    check(events == outcome["events"], f"{events} of {outcome}")


def await_unlocked(part):
    """Waits until all its writers are gone: until then it belongs to them, even if it is whole."""
    until = time.monotonic() + 30
    with part.open("rb") as f:
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            check(time.monotonic() < until, "the part stays locked")
            time.sleep(0.05)


def another_may_stop_it(test, ending):
    """The file is whole: it ends where the recording does."""
    with recording(test, "--stream", "-e", "sched:sched_switch", "-o", f"x.{ending}") as process:
        stopped = test.run("stop", test.name)
        check(stopped.status == 0, f"{stopped}")
        result = test.finish(process)
    check(result.status == 0 and "INCOMPLETE" not in result.err, f"{result}")
    check(test.files() == [f"x.{ending}"], f"{test.files()}")
    test.check_no_instances()


def a_killed_tracectl_leaves_a_whole_part(test):
    """The daemon ends the recording and closes the file, though nobody gives it its name."""
    part = test.dir / "x.json.part"
    with recording(test, "--stream", "-e", "sched", "-o", "x.json") as process:
        await_growth(test, part, 4096)
        process.kill()
        test.finish(process)
    test.check_no_instances()
    await_unlocked(part)
    check(part.read_bytes().endswith(b"}\n"), "the part is never completed")
    before = json.loads(part.read_text(errors="strict"))
    check(before["otherData"]["events"] > 0, f"{before['otherData']}")
    result = test.run("record", "--stream", "-t", "100ms", "-e", "sched", "-o", "x.json")
    check(result.status == 0 and "is now x.partial.json" in result.err, f"{result}")
    check(json.loads((test.dir / "x.partial.json").read_text(errors="strict")) == before, "changed")
    check(test.files() == ["x.json", "x.partial.json"], f"{test.files()}")


def killed_all_together(test, ending):
    """As by the OOM killer of their cgroup: the part is a prefix."""
    part = test.dir / f"x.{ending}.part"
    with recording(test, "--stream", "-e", "sched", "-o", f"x.{ending}") as process:
        await_growth(test, part, 4096)
        process.kill()
        test.daemon.process.kill()
        test.daemon.process.wait()
        test.finish(process)
    test.remove_instances()
    time.sleep(0.2)
    check(test.files() == [part.name], f"{test.files()}")
    second = test.start("record", "--stream", "-e", "sched", "-o", f"x.{ending}")
    await_growth(test, test.dir / f"x.partial.{ending}")
    await_growth(test, part)
    # Nobody may take a part that is being written.
    third = test.run("record", "--stream", "-t", "100ms", "-e", "sched", "-o", f"x.{ending}")
    check(third.status == 0 and "belongs to another recording" in third.err, f"{third}")
    interrupt(second)
    result = test.finish(second)
    check(result.status == 0 and f"is now x.partial.{ending}" in result.err, f"{result}")
    check(test.files() == sorted([f"x.partial.{ending}", f"x.{ending}"]), f"{test.files()}")
    text = (test.dir / f"x.partial.{ending}").read_text(errors="strict")
    if ending == "json":
        text = json.loads(text)["systemTraceEvents"]
    check("sched_switch" in text, "the file lacks earlier events")


def a_command_that_cannot_run_leaves_no_file(test):
    """The kernel finds that out when the recording has begun."""
    bad = test.dir / "bad"
    bad.write_text("#!/absent\n")
    bad.chmod(0o755)
    for options in ([], ["--stream"]):
        result = test.run("record", *options, "-o", "x.json", "--", bad)
        check(result.status == 1 and f"{bad}: No such file" in result.err, f"{options}: {result}")
        check(not list(test.dir.glob("x*")), f"{options}: {list(test.dir.iterdir())}")
    result = test.run("record", "--stream", "-o", "x.json", "--", "sh", "-c", "exit 3")
    check(result.status == 3 and "sh ended with exit status 3" in result.err, result)


def main():
    test = Test("stream")
    for file in ("x.txt", "x.traced"):
        test.case(f"every mark is written once to {file}", every_mark_is_written_once, file)
    test.case("lines come while it records", lines_come_while_it_records)
    test.case("a reader that leaves ends it", a_reader_that_leaves_ends_it)
    for options in ((), ("--stream",)):
        test.case(f"beyond what a viewer opens {' '.join(options)}", beyond_what_a_viewer_opens, *options)
    test.case("a spool is freed", a_spool_is_freed, daemon=True)
    test.case("a small spool does not end a stream", a_small_spool_does_not_end_a_stream)
    test.case("losses by a slow reader are counted", losses_by_a_slow_reader_are_counted)
    test.case("a stream has one output", a_stream_has_one_output, daemon=True)
    test.case("a long name has no part", a_long_name_has_no_part)
    test.case("a command that can't run leaves no file", a_command_that_cannot_run_leaves_no_file)
    test.case("a killed daemon leaves the rest", a_killed_daemon_leaves_the_rest, daemon=True)
    test.case("who is left running is said", who_is_left_running_is_said, daemon=True)
    test.case("a killed tracectl leaves a whole part", a_killed_tracectl_leaves_a_whole_part,
              daemon=True)
    for ending in ("json", "txt", "pftrace"):
        test.case(f"another may stop it, {ending}", another_may_stop_it, ending, daemon=True)
    for ending in ("json", "txt"):
        test.case(f"killed all together, {ending}", killed_all_together, ending, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
