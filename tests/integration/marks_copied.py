#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What programs write into the top level's trace_marker reaches root's recordings (Linux 6.16), and
no program's write fails because of a recording."""

import os
import threading

from harness import INSTANCES, TRACEFS, Test, as_nobody, check, interrupt, need, settled, top_level

OPTION = "options/copy_trace_marker"


def write(text):
    fd = os.open(TRACEFS / "trace_marker", os.O_WRONLY)
    try:
        return os.write(fd, text.encode())
    finally:
        os.close(fd)


def instance_of(test):
    return INSTANCES / next(i for i in test.instances() if i.endswith((f"-{test.name}", f"+{test.name}")))


def recorded(test, to, *arguments):
    """The file of a recording during which a program makes a slice and writes a line."""
    with top_level():
        try:
            result = test.run("start", "--name", test.name, "-e", "sched", *arguments)
            check(result.status == 0, f"{result}")
            for text in (f"B|{os.getpid()}|of the top level", f"E|{os.getpid()}", "free words"):
                write(text)
            result = test.run("stop", test.name, "-o", to)
            check(result.status == 0 and "warning" not in result.err, f"{result}")
        finally:
            (TRACEFS / "trace").write_text("")
    return (test.dir / to).read_text(errors="replace")


def marks_are_copied(test):
    text = recorded(test, "x.json")
    check(text.count(f"B|{os.getpid()}|of the top level\\n") == 1, text[-1500:])
    check(text.count("free words") == 1, text[-1500:])
    text = recorded(test, "x.txt", "--ring")
    check(text.count("free words") == 1, text[-1500:])


def nobody_asked_for_them(test):
    for arguments in (["-O", "nocopy_trace_marker"], ["--cpus", "0"]):
        text = recorded(test, "x.txt", *arguments)
        check("free words" not in text, text[-1500:])


def users_have_none(test):
    test.daemon.socket.parent.chmod(0o755)
    test.daemon.socket.chmod(0o666)
    result = test.run("start", "--name", test.name, "-e", "sched", wrap=as_nobody())
    check(result.status == 0, f"{result}")
    check((instance_of(test) / OPTION).read_text().strip() == "0", "a user gets marks that may be root's alone")
    result = test.run("cancel", f"65534/{test.name}")
    check(result.status == 0, f"{result}")


def no_write_fails(test):
    """Recordings begin and end while a program writes on each CPU."""
    failures, done, count = [], threading.Event(), [0]

    def writes():
        while not done.is_set():
            try:
                check(write("hammer") == 6, "a short write")
                count[0] += 1
            except OSError as e:
                failures.append(e)

    with top_level():
        threads = [threading.Thread(target=writes) for _ in range(2)]
        for t in threads:
            t.start()
        try:
            for _ in range(5):
                process = test.start("record", "-q", "--name", test.name, "-e", "sched", "-o", "x.txt")
                test.wait_for_recording(test.name)
                before = count[0]
                settled("marks", lambda: count[0] > before + 20)
                interrupt(process)
                result = test.finish(process)
                check(result.status == 0, f"{result}")
                check("hammer" in (test.dir / "x.txt").read_text(errors="replace"), "no mark was copied")
        finally:
            done.set()
            for t in threads:
                t.join()
            (TRACEFS / "trace").write_text("")
    check(count[0] > 100 and not failures, f"{len(failures)} of {count[0]} failed: {failures[:3]}")


def the_end_is_clean(test):
    """The option is off before the instance is removed, also by the daemon that follows a killed one."""
    result = test.run("start", "--name", test.name, "-e", "sched")
    check(result.status == 0, f"{result}")
    check((instance_of(test) / OPTION).read_text().strip() == "1", "marks are not copied")
    test.daemon.process.kill()
    test.daemon.process.wait()
    test.daemon.log.close()
    test.daemon = type(test.daemon)(test)
    settled("the killed one's instance is gone",
            lambda: not any(i.endswith(f"-{test.name}") for i in test.instances()))
    check((TRACEFS / OPTION).read_text().strip() == "1", "the top level takes no marks")


def main():
    test = Test("marks_copied")
    need((TRACEFS / OPTION).exists(), "this kernel copies no marks")
    test.case("marks of the top level are in a recording", marks_are_copied, daemon=True)
    test.case("who does not want them has none", nobody_asked_for_them, daemon=True)
    test.case("other users' recordings have none", users_have_none, daemon=True)
    test.case("no program's write fails", no_write_fails, daemon=True)
    test.case("the option ends with the recording", the_end_is_clean, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
