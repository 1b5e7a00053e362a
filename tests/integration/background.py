#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""start --rotate: files in the background, beyond the caller's terminal."""

import contextlib
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import time

from harness import Test, as_nobody, check, interrupt, settled

FORMAT = ["-e", "sched", "--rotate", "64K", "-o", "out.txt"]


def started(test, *arguments, **kwargs):
    result = test.run("start", "--name", test.name, *arguments, **kwargs)
    check(result.status == 0 and result.out == f"{test.name}\n", f"{result}")
    return result


def writers(test):
    """Processes of tracectl that stayed behind."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = open(f"/proc/{pid}/cmdline", encoding="utf-8").read().split("\0")
        except OSError:
            continue
        if test.name in command and "start" in command:
            found.append(int(pid))
    return found


def parts(test):
    return [n for n in test.files() if re.fullmatch(r"out\.\d{4}\.txt", n)]


def children(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return []


def stopped(test, status=0, **kwargs):
    result = test.run("stop", test.name, timeout=120, **kwargs)
    check(result.status == status, f"{result}")
    settled("the writers end", lambda: not writers(test))
    return result


def lines_of(test):
    """The events in all files, without comments."""
    return sum(line[:1] not in "#C\n" for n in parts(test) for line in (test.dir / n).open(errors="replace"))


def files_come_and_are_reported(test):
    result = started(test, *FORMAT)
    check("Messages: out.txt.log\n" in result.err, f"{result}")
    settled("some files", lambda: len(parts(test)) > 2)
    session, = json.loads(test.run("status", "--json").out)["sessions"]
    check(session["name"] == test.name and session["place"] == f"{test.dir}/out.*.txt", f"{session}")
    # It needs no folder of the caller.
    result = stopped(test, cwd="/sys")
    events = int(re.search(r"([\d,]+) events? of", result.err)[1].replace(",", ""))
    check(f"{test.dir}/out.*.txt: " in result.err and "none lost" in result.err, f"{result}")
    check(events == lines_of(test), f"{events} events, {lines_of(test)} lines")
    log = (test.dir / "out.txt.log").read_text()
    check("out.0001.txt to out." in log and "INCOMPLETE" not in log, log)
    check(not [n for n in test.files() if n.endswith(".part")], f"{test.files()}")


def its_log_is_named_after_it(test):
    """Without -o, too."""
    result = started(test, "-e", "sched", "--rotate", "64K", "--format", "txt")
    check("Messages: trace.txt.log\n" in result.err, f"{result}")
    stopped(test)
    check("trace.txt.log" in test.files() and "trace.0001.txt" in test.files(), f"{test.files()}")


def the_terminal_goes(test):
    """A hangup, as when an ssh connection ends, does not end it."""
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(test.dir)
        command = test.arguments("start", "--name", test.name, *FORMAT)
        os.execve("/bin/sh", ["sh", "-c", '"$@"; echo ready; read x', "sh", *command], test.environment())
    text = b""
    while b"ready" not in text:
        text += os.read(terminal, 1000)
    before = len(parts(test))
    os.close(terminal)
    os.waitpid(pid, 0)
    settled("files after the hangup", lambda: len(parts(test)) > before + 2)
    stopped(test)


def only_the_last_are_kept(test):
    started(test, *FORMAT, "--keep", "2")
    settled("some files", lambda: parts(test) and parts(test)[-1] > "out.0005.txt")
    stopped(test)
    check(len(parts(test)) == 2, f"{parts(test)}")


def it_ends_by_itself(test):
    started(test, *FORMAT, "-t", "1s")
    settled("the end", lambda: not writers(test))
    check(parts(test) and "out.0001.txt" in (test.dir / "out.txt.log").read_text(), f"{test.files()}")
    check(json.loads(test.run("list", "--json").out)["sessions"] == [], "a session is left")


def what_is_missing_is_said(test):
    """The process that makes the files is killed."""
    started(test, *FORMAT)
    settled("some files", lambda: len(parts(test)) > 1)
    for pid in writers(test):
        if "tracectl-files" in open(f"/proc/{pid}/comm", encoding="utf-8").read():
            os.kill(pid, signal.SIGKILL)
    settled("the end", lambda: not writers(test))
    text = (test.dir / "out.txt.log").read_text()
    check("was killed" in text and "INCOMPLETE" in text, text)


def a_failure_is_the_callers(test):
    for arguments, status, text in (
            (["-e", "nosuch:event", "--rotate", "64K", "-o", "out.txt"], 1, "nosuch:event"),
            (["-e", "sched", "--rotate", "64K", "-o", "absent/out.txt"], 1, "absent"),
            (["-e", "sched", "--rotate", "64K", "-o", "-"], 2, "--rotate writes files"),
            (["-e", "sched", "--ring", "--rotate", "64K", "-o", "out.txt"], 2, "exclude each other"),
            (["-e", "sched", "-o", "out.txt"], 2, "only with --rotate or --on")):
        result = test.run("start", "--name", test.name, *arguments)
        check(result.status == status and text in result.err and not result.out, f"{arguments}: {result}")
    check(not test.files(), f"{test.files()}")
    settled("no process stays", lambda: not writers(test))


def the_caller_gives_up(test):
    """Killed before it prints the name: nobody could end the recording."""
    for _ in range(20):
        caller = test.start("start", "--name", test.name, *FORMAT)
        settled("a second process", lambda: len(writers(test)) > 1 or caller.poll() is not None)
        caller.kill()
        result = test.finish(caller)
        if not result.out:
            break
        stopped(test)
    check(not result.out, f"always too late: {result}")
    settled("the writers end", lambda: not writers(test))
    check(json.loads(test.run("list", "--json").out)["sessions"] == [], "a session is left")


def messages_go_to_no_other_file(test):
    """The log would be a link, or a second name of another file: nothing is recorded, as messages would be lost."""
    for make in (os.symlink, os.link):
        (test.dir / "precious").write_text("")
        make(test.dir / "precious", test.dir / "out.txt.log")
        result = test.run("start", "--name", test.name, "-e", "sched", "--rotate", "1s", "-o", "out.txt")
        check(result.status == 1 and "out.txt.log" in result.err and not result.out, f"{result}")
        settled("the session ends", lambda: not json.loads(test.run("status", "--json").out)["sessions"])
        check(test.files() == ["out.txt.log", "precious"], test.files())
        check((test.dir / "precious").read_text() == "", f"{make}")
        (test.dir / "out.txt.log").unlink()


def files_are_the_callers(test):
    test.daemon.socket.parent.chmod(0o755)
    test.daemon.socket.chmod(0o666)
    test.dir.chmod(0o777)
    started(test, *FORMAT, wrap=as_nobody())
    settled("some files", lambda: len(parts(test)) > 1)
    owners = {(test.dir / n).stat().st_uid for n in [*parts(test), "out.txt.log"]}
    result = test.run("stop", test.name, wrap=as_nobody(), timeout=120)
    check(result.status == 0 and owners == {65534}, f"{owners}: {result}")
    settled("the writers end", lambda: not writers(test))


def a_pipe_gets_the_name_only(test):
    """NAME=$(tracectl start ...) does not wait for the recording's end."""
    out = subprocess.run(["sh", "-c", 'echo "<$("$@")>"', "sh", *test.arguments("start", "--name", test.name, *FORMAT)],
                         cwd=test.dir, env=test.environment(), capture_output=True, timeout=60, check=True)
    check(out.stdout == f"<{test.name}>\n".encode(), f"{out}")
    stopped(test)


def a_lock_of_the_caller_ends_with_it(test):
    """flock, for example, passes on the descriptor that holds its lock."""
    result = started(test, *FORMAT, wrap=("flock", test.dir / "lock"))
    subprocess.run(["flock", "--nonblock", test.dir / "lock", "true"], check=True, timeout=60)
    check(len(writers(test)) > 0, f"{result}")
    stopped(test)


def an_interrupted_start_leaves_nothing(test):
    """Who presses Ctrl-C has not heard that it records. Large rings take their time."""
    for options in ((), ("--ring", "--on", "sched.delay > 1h", "-o", "there")):
        for ms in (10, 30, 60, 120, 200):
            process = test.start("start", "--name", test.name, "-e", "sched", "-b", "64M", *options)
            time.sleep(ms / 1000)
            interrupt(process)
            result = test.finish(process)
            if result.out:
                check(test.run("cancel", test.name).status == 0, f"{options} at {ms} ms: {result}")
            settled("no session", lambda: test.name not in test.run("list").out)
            check(not writers(test), f"{options} at {ms} ms: {result}")


def an_interrupted_stop_keeps_the_recording(test):
    """Its file had no name yet."""
    check(test.run("start", "--name", test.name, "-e", "raw_syscalls", "-b", "16M").status == 0, "start")
    subprocess.run(["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=600000", "status=none"], check=True)
    process = test.start("stop", test.name, "-o", "x.json")
    settled("it is written", lambda: process.poll() is not None or "traced-export" in "".join(
        pathlib.Path(f"/proc/{pid}/comm").read_text() for pid in children(test.daemon.process.pid)))
    process.send_signal(signal.SIGKILL)
    test.finish(process)
    if "x.json" not in test.files():
        settled("the session is over", lambda: test.name not in test.run("list").out)
        check(len(list(test.daemon.spool.glob("*.traced"))) == 1, f"nothing is kept: {test.daemon.words()}")


def main():
    test = Test("background")
    for case in (files_come_and_are_reported, its_log_is_named_after_it, the_terminal_goes, only_the_last_are_kept, it_ends_by_itself,
                 what_is_missing_is_said, a_failure_is_the_callers, the_caller_gives_up,
                 messages_go_to_no_other_file, files_are_the_callers, a_pipe_gets_the_name_only,
                 a_lock_of_the_caller_ends_with_it, an_interrupted_start_leaves_nothing,
                 an_interrupted_stop_keeps_the_recording):
        test.case(case.__name__.replace("_", " "), case, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
