#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recordings in several files: each file opens alone, and together they have every event once. After a
crash or on a full disk the files open, too."""

import contextlib
import json
import os
import re
import signal
import subprocess
import time

from harness import Test, check, in_namespace, interrupt, settled
from perfetto_decode import Decoder, perfetto_events
from stream import numbers_in, recording, write_marks

MARKS = 3000
MARKS_IN_2_S = 2000


@contextlib.contextmanager
def load():
    """Many switches on all CPUs."""
    process = subprocess.Popen(["sh", "-c", "while :; do ls /usr/lib; done | cat >/dev/null"],
                               start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def in_order(test, pattern):
    files = sorted(test.dir.glob(pattern))
    check(files, f"no {pattern}: {test.files()}")
    return files


def read_perfetto(test, path):
    """The number of events, and the numbers of the marks in order of time."""
    data = path.read_bytes()
    cpus, _ = perfetto_events(data, Decoder(test.dir, test.source).parse(data))
    events = sorted((e for cpu in cpus.values() for e in cpu), key=lambda e: e[0])
    numbers = [int(found[1]) for e in events for value in e[3].values() if isinstance(value, str)
               for found in [re.fullmatch(r"number (\d+)", value)] if found]
    return len(events), numbers


def event_lines(text):
    """All but comments and "CPU:1 [LOST 7 EVENTS]"."""
    return [line for line in text.splitlines() if not line.startswith(("#", "CPU:"))]


def read_json(_, path):
    trace = json.loads(path.read_text(errors="strict"))
    lines = event_lines(trace["systemTraceEvents"])
    # A free-text mark is a slice, which begins and ends: two lines for one event.
    ends = sum(1 for line in lines if re.search(r": tracing_mark_write: E\|\d+$", line))
    numbers = [int(n) for n in re.findall(r": B\|\d+\|number (\d+)$", "\n".join(lines), re.M)]
    if "otherData" in trace:
        check(trace["otherData"]["events"] == len(lines) - ends, f"{path} counts otherwise")
    return len(lines) - ends, numbers


def read_text(_, path):
    text = path.read_text(errors="replace")
    return len(event_lines(text)), numbers_in(text)


READ = {"pftrace": read_perfetto, "json": read_json, "txt": read_text}


def read_all(test, files, ended_early=False):
    """ended_early: the last file may have its head only."""
    ending = files[0].suffix[1:]
    events, numbers = 0, []
    for path in files:
        n, more = READ[ending](test, path)
        check(n or (ended_early and len(files) > 1 and path == files[-1]), f"{path} is empty")
        events, numbers = events + n, numbers + more
    return events, numbers


def check_row(numbers, count, unread=0):
    """0, 1, 2, ..., count of them; among the last `unread` some may be missing."""
    gap = next((n for n, number in enumerate(numbers) if number != n), len(numbers))
    rest = numbers[gap:]
    around = f"at {gap} of {count}: {numbers[max(gap - 5, 0):gap + 20]}"
    check(rest == sorted(set(rest)) and (not rest or rest[0] > gap), f"marks are doubled or out of order {around}")
    check(not rest or gap >= rest[-1] + 1 - unread, f"marks are missing {around}")
    check(len(numbers) == count or unread, f"{len(numbers)} marks of {count}, to {numbers[-1:]}")


def every_mark_is_in_one_file(test, ending, limit, least):
    with load(), recording(test, "--json", "-b", "8M", "-e", "sched", "--rotate", limit, "-o",
                           f"x.{ending}") as process:
        write_marks(test, MARKS, 0.1)
        interrupt(process)
        result = test.finish(process)
    check(result.status == 0, f"{result}")
    outcome = json.loads(result.out)
    check(outcome["lost"] == 0, f"{outcome}")
    files = in_order(test, f"x.*.{ending}")
    check(len(files) >= least and outcome["files"] == [f.name for f in files], f"{outcome} {files}")
    check(test.files() == [f.name for f in files], f"{test.files()}")
    events, numbers = read_all(test, files)
    check(events == outcome["events"], f"{events} events in the files of {outcome}")
    check_row(numbers, MARKS)
    check(sum(f.stat().st_size for f in files) == outcome["bytes"], f"{outcome}")
    test.check_no_instances()


def the_last_are_kept(test):
    for n in range(2):
        result = test.run("record", "-t", "2s", "-e", "sched", "--rotate", "300ms", "--keep", "3", "-o",
                          "x.txt")
        check(result.status == 0, f"{result}")
        # The sums include files that were removed.
        own = re.search(r"^x\.\d+\.txt to x\.\d+\.txt and (\d+) older ones?, removed since: ", result.err, re.M)
        check(own and result.err.count("removed") == 1 + n, f"{result}")
        check(n == 0 or "\n3 files of earlier recordings were removed\n" in result.err, f"{result}")
        numbers = [int(f.name.split(".")[1]) for f in in_order(test, "x.*.txt")]
        check(len(numbers) == 3 and len(test.files()) == 3, f"{test.files()}")
        check(numbers == list(range(numbers[0], numbers[0] + 3)), f"{numbers}")
        # Numbers go on: no file of an earlier recording is overwritten.
        check(numbers[0] > 1 and (n == 0 or numbers[0] > before), f"{numbers}")
        before = numbers[-1]
    read_all(test, in_order(test, "x.*.txt"))


def children(pid):
    out = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(pid)], capture_output=True,
                         text=True, check=False).stdout
    # "name <defunct>" for one that has ended.
    return {comm: int(n) for n, comm in (line.split(maxsplit=1) for line in out.splitlines())}


def kill(test, who):
    pid = test.daemon.process.pid
    if who == "exporter":
        pid = children(pid)["traced-export"]
    os.kill(pid, signal.SIGKILL)
    if who == "daemon":
        test.daemon.process.wait()
        test.remove_instances()


def await_marks(test, files):
    """The exporter, at nice 10, may be far behind."""
    until = time.monotonic() + 60
    while True:
        with contextlib.suppress(FileNotFoundError):
            data = [p.read_bytes() for p in test.dir.glob("x.*")]
            if len(data) >= files and sum(d.count(b"number ") for d in data) > MARKS / 5:
                return
        check(time.monotonic() < until, f"nothing is written: {test.files()}")
        time.sleep(0.1)


def a_crash_leaves_a_prefix(test, who, ending, *rotate):
    """Whichever process dies, the files are whole, up to some event."""
    with load(), recording(test, "-b", "8M", "-e", "sched", "--stream", *rotate, "-o",
                           f"x.{ending}") as process:
        write_marks(test, MARKS, 0.1)
        await_marks(test, 2 if rotate else 1)
        kill(test, who)
        result = test.finish(process)
    check(result.status == 3 and "INCOMPLETE" in result.err, f"{result}")
    files = in_order(test, f"x.*{ending}")
    check(bool(rotate) == (len(files) > 1), f"{files}")
    check(test.files() == [f.name for f in files], f"{test.files()}")
    _, numbers = read_all(test, files, ended_early=True)
    # A dead daemon's unread data of one CPU is lost; data that it read of another CPU is there.
    unread = MARKS_IN_2_S if who == "daemon" else 0
    check_row(numbers, len(numbers), unread)
    check(len(numbers) > MARKS / 10, f"only {len(numbers)} marks")
    # The rest is in the spool, and so is its head, which is never freed. If the files have every mark,
    # the spool may have only the first ones.
    rest = test.run("convert", next(iter(test.daemon.spool.iterdir())), "rest.txt")
    check(rest.status == 3, f"{rest}")
    _, after = read_text(test, test.dir / "rest.txt")
    check(after == sorted(set(after)), f"marks are doubled or out of order in the rest: {after}")
    both = sorted(set(numbers) | set(after))
    check_row(both, MARKS if who == "exporter" else len(both), unread)


def a_full_disk(test, ending, *how):
    disk, out = test.dir / "disk", test.dir / "out"
    disk.mkdir()
    out.mkdir()
    # Only that namespace sees the disk: its files are copied at the end.
    script = f'mount -t tmpfs -o size=1m none {disk}; "$@"; r=$?; cp {disk}/* {out}; exit $r'
    process = test.start("record", "-t", "60s", "-e", "sched", "-b", "8M", *how, "-o",
                         f"disk/x.{ending}", wrap=["unshare", "-m", "--propagation", "private", "sh",
                                                   "-c", script, "sh"])
    with load():
        result = test.finish(process, timeout=90)
    check(result.status == 3 and "No space left" in result.err, f"{result}")
    check("INCOMPLETE" in result.err, f"{result}")
    # And where the rest is.
    rest = re.search(rf"is safe: tracectl convert (\S+\.traced) DIR/x\.rest\.{ending} \(DIR on", result.err, re.M)
    check(rest and os.path.exists(rest[1]), f"{result}")
    files = in_order(test, f"out/x.*{ending}")
    check("--keep" in result.err and len(files) >= 3 if "--rotate" in how else
          [f.name for f in files] == [f"x.{ending}"], f"{files} {result}")
    read_all(test, files, ended_early=True)
    check(sum(f.stat().st_size for f in files) > 700 << 10, "too little was written for a full disk")
    test.check_no_instances()


def only_written_data_is_freed(test):
    """The process that makes the files stops, and dies: the files have everything that the daemon
    freed by then."""
    with recording(test, "-b", "8M", "-e", "sched:sched_process_exec", "--rotate", "64K", "-o", "x.txt") as process:
        write_marks(test, 3000, 0.03)
        until = time.monotonic() + 60
        while not (test.dir / "x.0001.txt").exists():
            check(time.monotonic() < until, f"{test.files()}")
            time.sleep(0.1)
        maker = children(process.pid)["tracectl-files"]
        os.kill(maker, signal.SIGSTOP)
        # Longer than the exporter waits for more data, and less than the most that is on its way.
        write_marks(test, 2000, 0.1, first=3000)
        os.kill(maker, signal.SIGKILL)
        result = test.finish(process)
    check(result.status == 3 and "INCOMPLETE" in result.err and "tracectl-files, which writes the files, was killed" in result.err,
          f"{result}")
    (spool,) = test.daemon.spool.iterdir()
    check(f"what was not written yet is safe: tracectl convert {spool} x.rest.txt" in result.err, f"{result}")
    numbers = [n for path in sorted(test.dir.glob("x.*")) for n in numbers_in(path.read_text(errors="replace"))]
    rest = test.run("convert", spool, "rest.txt")
    check(rest.status == 3, f"{rest}")
    _, after = read_text(test, test.dir / "rest.txt")
    check(len(numbers) > 500 and numbers == list(range(len(numbers))), f"{numbers}")
    nowhere = sorted(set(range(5000)) - set(numbers) - set(after))
    check(not nowhere, f"{len(nowhere)} marks are nowhere, from {nowhere[:1]} on: files have {len(numbers)}")


def an_abort_leaves_a_hanging_disk(test):
    """The process that makes the files hangs, as on a disk that hangs."""
    process = test.start("record", "--name", test.name, "-t", "60s", "-e", "sched", "--rotate", "64K", "-o", "x.txt")
    test.wait_for_recording(test.name)
    settled("it has its name", lambda: "tracectl-files" in children(process.pid))
    maker = children(process.pid)["tracectl-files"]
    os.kill(maker, signal.SIGSTOP)
    try:
        for _ in range(20):
            # SIGINT may be ignored, as for a command that a shell starts with &.
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
                break
    finally:
        os.kill(maker, signal.SIGCONT)
    result = test.finish(process)
    check(result.status == -signal.SIGTERM, f"{result}")
    # The process's new parent may leave it unreaped.
    settled("the end of the process that makes the files", lambda: not os.path.exists(f"/proc/{maker}/exe"))
    settled("the session's end", lambda: not test.instances())


def newest(process, folder):
    """The number of the newest file, as the process's mount namespace shows the folder."""
    names = os.listdir(f"/proc/{process.pid}/root{folder}")
    return max((int(name.split(".")[1]) for name in names if name.endswith(".txt")), default=0)


def keep_bounds_the_space(test):
    """On the same disk, for many files."""
    disk = test.dir / "disk"
    disk.mkdir()
    mount = in_namespace(f"mount -t tmpfs -o size=1m none {disk}")
    process = test.start("record", "-t", "60s", "-e", "sched", "-b", "8M", "--rotate", "200K", "--keep", "2", "-o",
                         "disk/x.txt", wrap=mount)
    with load():
        settled("ten files", lambda: newest(process, disk) >= 10)
        interrupt(process)
        result = test.finish(process, timeout=90)
    check(result.status == 0, f"{result}")
    removed = re.search(r"and (\d+) older ones, removed since: ", result.err)
    check(removed and int(removed[1]) > 5, f"{result}")


def two_recordings_share_a_name(test):
    with load():
        both = [test.start("record", "--json", "-t", "2s", "-e", "sched", "--rotate", "400ms", "-o",
                           "x.txt") for _ in range(2)]
        results = [test.finish(process) for process in both]
    for result in results:
        check(result.status == 0, f"{result}")
    outcomes = [json.loads(result.out) for result in results]
    names = [set(outcome["files"]) for outcome in outcomes]
    check(all(len(n) >= 4 for n in names) and not names[0] & names[1], f"{names}")
    check(test.files() == sorted(names[0] | names[1]), f"{test.files()} of {names}")
    for outcome in outcomes:
        events, _ = read_all(test, [test.dir / name for name in outcome["files"]])
        check(events == outcome["events"], f"{events} events in the files of {outcome}")


def older_files_stay(test):
    """A conversion goes on after the files that are there, as a recording does. Both say so, unless -q."""
    check(test.run("record", "-q", "-t", "400ms", "-e", "sched", "-o", "in.traced").status == 0, "no recording")
    commands = (("convert", "in.traced", "x.txt", "--rotate", "100ms"),
                ("record", "-t", "400ms", "-e", "sched", "--rotate", "100ms", "-o", "x.txt"))
    there = {}
    for command in (*commands, commands[0]):
        result = test.run(*command)
        says = "".join(f"tracectl: {name} is there: the numbers of the files go on after it\n" for name in sorted(there)[-1:])
        check(result.status == 0 and result.err.count("go on after it") == bool(there) and says in result.err, f"{result}")
        files = {f.name: f.read_bytes() for f in in_order(test, "x.*.txt")}
        check(len(files) > len(there) and all(files[name] == data for name, data in there.items()), f"{sorted(files)}")
        there = files
    result = test.run(*commands[0], "-q")
    check(result.status == 0 and not result.err, f"{result}")


def the_last_file_is_no_sliver(test):
    """A rest below a tenth of a file stays in it. A part of a recording has an exact end."""
    with load():
        result = test.run("record", "-t", "1s", "-e", "sched", "-o", "x.traced")
    check(result.status == 0, f"{result}")
    for period, count in (("490ms", 1), ("400ms", 2), ("245ms", 2), ("200ms", 3)):
        result = test.run("convert", "--json", "--to", "+500ms", "--split", period, "x.traced", "-o", "x.txt")
        check(result.status == 0, f"{result}")
        outcome = json.loads(result.out)
        files = [path for path in test.files() if path != "x.traced"]
        check(outcome["files"] == files and len(files) == count, f"{period}: {outcome}")
        events, _ = read_all(test, [test.dir / path for path in files])
        check(events == outcome["events"], f"{period}: {outcome}")
        for path in files:
            (test.dir / path).unlink()


def an_abort_is_reported(test):
    """A second Ctrl-C aborts a recording, the first one a conversion."""
    process = test.start("record", "-e", "sched", "--rotate", "300ms", "-o", "x.txt")
    with load():
        until = time.monotonic() + 60
        while not (test.dir / "x.0002.txt").exists():
            check(time.monotonic() < until, f"{test.files()}")
            time.sleep(0.02)
        # Both signals at once: the daemon has no time to write the rest.
        process.send_signal(signal.SIGSTOP)
        interrupt(process)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        result = test.finish(process)
    given_up = re.search(r"cancelled: nothing after x.0001.txt to (x.\d+.txt) was written", result.err)
    check(result.status == 3 and given_up, f"{result}")
    check("nothing was written" not in result.err, f"{result}")
    check(test.files()[-1] == given_up[1], f"{test.files()}")
    read_all(test, in_order(test, "x.*.txt"))
    test.check_no_instances()


def a_conversion_is_aborted(test):
    capture = test.dir / "x.traced"
    subprocess.run([test.build / "tests/unit/generate", "mixed", "2000000", capture], check=True)
    for _ in range(5):
        process = test.start("convert", capture, "y.txt", "--rotate", "10M")
        settled("a second file", lambda: (test.dir / "y.0002.txt").exists())
        interrupt(process)
        result = test.finish(process)
        if result.status != 0:
            break
        # It was faster than we.
        for path in test.dir.glob("y.*.txt"):
            path.unlink()
    given_up = re.search(r"cancelled: nothing after y.0001.txt to (y.\d+.txt) was written", result.err)
    check(result.status == 3 and given_up, f"{result}")
    check(test.files()[-1] == given_up[1], f"{test.files()}")
    check(all(f.stat().st_size > 10 << 20 for f in in_order(test, "y.*.txt")), "a file was truncated")


class MarkFile:
    """A file's description of the program's marks: every track is described before its use, down
    from its process."""

    def __init__(self, trace):
        tracks, interned, self.events, self.names = {}, {}, [], set()
        for p in trace.packet:
            if p.sequence_flags & 1:
                interned.clear()
            interned.update({i.iid: i.str if isinstance(i.str, str) else i.str.decode()
                             for i in p.interned_data.event_names})
            if p.HasField("track_descriptor"):
                d = p.track_descriptor
                check(not d.parent_uuid or d.parent_uuid in tracks, f"a track before its parent: {d}")
                tracks[d.uuid] = d
            if not p.HasField("track_event"):
                continue
            e = p.track_event
            d = tracks.get(e.track_uuid)
            check(d is not None, f"an event of a track without a description in this file: {e}")
            name = e.name or interned.get(e.name_iid, "")
            check(e.type in (2, 4) or name, f"a name of another file: {e}")
            self.events.append((e.type, d.thread.thread_name or d.name, name))
            while d.parent_uuid:
                d = tracks[d.parent_uuid]
            self.names.add(d.process.process_name)
        self.tids = {t.tid: t.tgid for p in trace.packet for t in p.process_tree.threads}
        self.threads = {d.thread.tid: d.thread.pid for d in tracks.values() if d.thread.tid}


BEGIN, END, COUNTER = 1, 2, 4


def marks_go_on_in_every_file(test):
    program = test.build / "tests" / "integration" / "marks_rotate"
    result = test.run("record", "-e", "sched:sched_switch", "--rotate", "400ms", "-o", "x.pftrace",
                      "--", program,
                      env=test.environment(TRACED_MARKS=str(test.daemon.socket.parent)))
    check(result.status == 0, f"{result}")
    decoder = Decoder(test.dir, test.source)
    paths = in_order(test, "x.*.pftrace")
    files = [MarkFile(decoder.decode(path)) for path in paths]
    check(len(files) >= 5, f"{paths}")
    with_marks = [f for f in files if f.events]
    check(len(with_marks) >= 5, f"marks are in {len(with_marks)} of {len(files)}")
    for f in with_marks:
        check(f.names == {"rotating"}, f"a process is called {f.names}")
        check(all(f.tids.get(tid) == pid for tid, pid in f.threads.items()),
              f"{f.threads} and {f.tids}")
    for thread in ("rotating main", "rotating worker"):
        events = [e for f in with_marks for e in f.events if e[1] == thread]
        # All of the thread's marks have its name: each file that has some describes the thread.
        rounds = [e for e in events if e[2] == "round"]
        check(len(rounds) == 40, f"{len(rounds)} rounds of {thread}")
        check(events[0] == (BEGIN, thread, "whole"), f"it begins with {events[:2]}")
        check(events[-1][0] == END, f"it ends with {events[-1]}")
        all_ends = sum(e[0] == END for e in events)
        check(all_ends == 41, f"{all_ends} ends of 41 slices")
    operations = [(n, e[0]) for n, f in enumerate(with_marks) for e in f.events
                  if e[1] == "operation"]
    check([kind for _, kind in operations] == [BEGIN, BEGIN, END, END] and
          operations[1][0] < operations[2][0], f"{operations}")
    counts = sum(e[0] == COUNTER for f in with_marks for e in f.events)
    check(counts == 80, f"{counts} counts")


def nonsense_is_refused(test):
    for arguments in (["--rotate", "1M", "-o", "-"], ["--rotate", "1M", "-o", "x.traced"],
                      ["--rotate", "1M", "-o", "/dev/null", "--format", "txt"],
                      ["--rotate", "1m", "-C", "counter", "-o", "x.txt"], ["--keep", "3"],
                      ["--rotate", "10"], ["--rotate", "1K"], ["--rotate", "1M", "--ring"]):
        result = test.run("record", *arguments)
        check(result.status == 2, f"{arguments}: {result}")
    result = test.run("record", "--rotate", "1M", "-o", "there/x.json")
    check(result.status == 1 and "does not exist" in result.err, f"{result}")
    check(not test.files(), f"{test.files()}")


def main():
    test = Test("rotate")
    for ending, limit, least in (("pftrace", "64K", 5), ("json", "700ms", 4), ("txt", "500K", 3)):
        test.case(f"every mark is in one file, {ending}", every_mark_is_in_one_file, ending, limit,
                  least)
    test.case("the last are kept", the_last_are_kept)
    test.case("a crash of the exporter leaves a prefix", a_crash_leaves_a_prefix, "exporter",
              "pftrace", "--rotate", "64K", daemon=True)
    for ending in READ:
        test.case(f"a crash of the daemon leaves a prefix, {ending}", a_crash_leaves_a_prefix,
                  "daemon", ending, daemon=True)
    test.case("a crash of the daemon leaves a prefix, rotated json", a_crash_leaves_a_prefix,
              "daemon", "json", "--rotate", "1s", daemon=True)
    for ending in ("pftrace", "json"):
        test.case(f"a full disk, {ending}", a_full_disk, ending, "--rotate", "200K")
        test.case(f"a full disk, streamed {ending}", a_full_disk, ending, "--stream")
    test.case("only written data is freed", only_written_data_is_freed, daemon=True)
    test.case("an abort leaves a hanging disk", an_abort_leaves_a_hanging_disk, daemon=True)
    test.case("--keep bounds the space", keep_bounds_the_space)
    test.case("two recordings share a name", two_recordings_share_a_name)
    test.case("older files stay", older_files_stay)
    test.case("the last file is no sliver", the_last_file_is_no_sliver)
    test.case("marks go on in every file", marks_go_on_in_every_file, daemon=True)
    test.case("an abort is reported", an_abort_is_reported)
    test.case("a conversion is aborted", a_conversion_is_aborted)
    test.case("nonsense is refused", nonsense_is_refused)
    test.end()


if __name__ == "__main__":
    main()
