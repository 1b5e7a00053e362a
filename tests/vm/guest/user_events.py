#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In a guest whose kernel has user events, which Debian's kernels lack: marks of libtraced as
user_events:traced_mark. The kernel's own text has each mark with what the program gave it, and so do
other tracers."""

import contextlib
import ctypes
import fcntl
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time

from common import (INSTANCES, TRACEFS, check, extracted, need, of_a_guest, put_back, record, same_text,
                    settings, settled, skip, text_of)
from harness import NOBODY, as_nobody
from marks import wanted_of_main

EVENT = TRACEFS / "events/user_events/traced_mark"
# Several lines, if a text of the mark has several.
MARK = re.compile(r"-(\d+) [^\n]*: traced_mark: phase=(\S*) category=(.*?) name=(.*?) args=(.*?) "
                  r"duration=0x[0-9a-f]+ \((\d+)\)$", re.M | re.S)
KERNEL = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
# Evaluates each line, and answers with the result.
PROGRAM = """
import os, sys, threading
import traced
for line in sys.stdin:
    print(eval(line), flush=True)
"""
# Expressions, and the event that the kernel has of each one.
MARKS = (
    ("traced.begin('work', 'app', n=-1, s='two words', half=0.5, yes=True, none=None)",
     ("B", "app", "work", "n=-1 s=two words half=0.5 yes=true none=null")),
    ("traced.instant('hello', 'app,io', scope='process')", ("i", "app,io", "hello", "")),
    ("traced.counter('queue', 'app', length=(1 << 64) - 1)", ("C", "app", "queue", f"length={(1 << 64) - 1}")),
    ("traced.flow_start('hand over', 3, 'app')", ("s", "app", "hand over", "id=0x3")),
    ("traced.instant('n' * 300, 'c' * 300, key='v' * 2000)", ("i", "c" * 255, "n" * 255, "key=" + "v" * 1019)),
    ("traced.instant('two\\nlines', '', list=[1, 'a'])", ("i", "", "two\nlines", 'list=[1, "a"]')),
    ("traced.end(done=1)", ("E", "", "", "done=1")),
)
ALL = [mark for _, mark in MARKS]


def shown(text):
    """Since Linux 6.19 the kernel writes the bytes of a text that is not printable."""
    data = text.encode(errors="surrogateescape")
    if KERNEL < (6, 19) or all(32 <= c < 127 for c in data):
        return text
    return (re.sub(rb"[^ -~]", b".", data) + b". (" + data.hex(":").encode() + b":00)").decode()


SHOWN = [tuple(map(shown, mark)) for mark in ALL]


class Program:
    """A Python program with marks, which does what it is asked to."""

    def __init__(self, test, wrap=(), marks="/nonexistent", **env):
        env = {"PYTHONPATH": str(test.source / "python"), "LD_LIBRARY_PATH": str(test.build / "libtraced"),
               "TRACED_USER_EVENTS": "1", "TRACED_MARKS": str(marks), **env}
        self.process = subprocess.Popen([*wrap, sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=test.environment(**env))
        self.pid = int(self.do("os.getpid()"))

    def do(self, expression):
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def listeners(self):
        """The word that the kernel writes."""
        return int(self.do("traced._listeners.value"))

    def mark(self):
        for expression, _ in MARKS:
            check(self.do(expression) == "None", expression)

    def end(self):
        self.process.stdin.close()
        check(self.process.wait(60) == 0, "the program failed")
        self.process.stdout.close()


@contextlib.contextmanager
def running(test, **arguments):
    program = Program(test, **arguments)
    try:
        yield program
    finally:
        program.end()


@contextlib.contextmanager
def listening(test, *settings_, event="traced_mark"):
    """An instance of ours. settings_: a file below the event's folder, and its text."""
    instance = INSTANCES / f"{test.name}-listens"
    instance.mkdir()
    folder = instance / "events/user_events" / event
    try:
        for name, text in settings_:
            (folder / name).write_text(text)
        (folder / "enable").write_text("1")
        yield instance
    finally:
        with contextlib.suppress(FileNotFoundError):
            (folder / "enable").write_text("0")
        instance.rmdir()


def marks_in(text, pid=None):
    """Phase, category, name and args of each one, of this thread only if there is a pid."""
    return [m.group(2, 3, 4, 5) for m in MARK.finditer(text) if pid in (None, int(m[1]))]


def trace_of(instance):
    return (instance / "trace").read_text(errors="surrogateescape")


def is_gone():
    settled("the event is gone", lambda: not EVENT.exists())


def nobody_listens(test):
    """The word stays 0, and a mark makes no system call."""
    check(not EVENT.exists(), "the event is there before a program is")
    calls = INSTANCES / f"{test.name}-calls"
    calls.mkdir()
    try:
        with running(test) as program:
            check(EVENT.exists() and program.listeners() == 0, "it is not registered, or somebody listens")
            (calls / "events/raw_syscalls/sys_enter/filter").write_text(f"common_pid == {program.pid}")
            # To look for a daemon takes a few calls each second. The clock tells how many.
            marks = "[traced._library.traced_write(b'i', traced._Mark(name=b'x')) for _ in range(2000)] and None"

            def count(expression):
                (calls / "trace").write_text("")
                (calls / "events/raw_syscalls/sys_enter/enable").write_text("1")
                began = time.monotonic()
                program.do(expression)
                (calls / "events/raw_syscalls/sys_enter/enable").write_text("0")
                return (calls / "trace").read_text().count(": sys_enter: "), time.monotonic() - began

            quiet, seconds = count(marks)
            check(quiet < 100 + 20 * seconds, f"{quiet} system calls of 2000 marks in {seconds} s")
            with listening(test):
                check(program.listeners() == 1, "the word does not say that somebody listens")
                busy, _ = count(marks)
                check(4000 <= busy < 4000 + quiet + 200, f"{busy} system calls of 2000 marks")
            settled("nobody listens any more", lambda: program.listeners() == 0)
            check(count(marks)[0] < 100 + 20 * seconds, "marks cost system calls after somebody listened")
    finally:
        (calls / "events/enable").write_text("0")
        calls.rmdir()
    is_gone()


def as_the_program_marked(test):
    with running(test) as program, listening(test) as instance:
        program.mark()
        text = trace_of(instance)
        got = marks_in(text, program.pid)
        check(got == SHOWN, f"{got}\n{text[-3000:]}")
        began = int(program.do("traced.now()"))
        program.do(f"traced.complete('whole', {began - 5000000}, 'app')")
        took = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - began
        last = list(MARK.finditer(trace_of(instance)))[-1]
        check(last[2] == "X" and 5000000 <= int(last[6]) <= 5000000 + took, f"{last[0]}, {took} ns")
        check(same_text(trace_of(instance), extracted(test, instance.name, ["user_events:traced_mark"]))
              > len(MARKS), "too little")


def by_every_macro(test):
    """The example's marks, by the macros of C."""
    process = subprocess.Popen([test.build / "libtraced/marks_example", "1000000000"], stdout=subprocess.DEVNULL,
                               env=test.environment(TRACED_USER_EVENTS="1", TRACED_MARKS="/nonexistent"))
    try:
        settled("the event is registered", EVENT.exists)
        with listening(test) as instance:
            first = re.compile(r": traced_mark: phase=M category=__metadata name=process_name ")
            settled("a whole round", lambda: len(first.findall(trace_of(instance))) >= 2)
            (instance / "events/user_events/traced_mark/enable").write_text("0")
            text = trace_of(instance)
            ours = extracted(test, instance.name, ["user_events:traced_mark"])
            same_text(text, ours)
    finally:
        process.kill()
        process.wait()
    got = marks_in(text, process.pid)
    start = next(i for i, m in enumerate(got) if m[2] == "process_name")
    # The kernel has no names of ends. Clock syncs and metadata are not compared.
    wanted = [(e["ph"], *(("", "") if e["ph"] == "E" else (e["cat"], e["name"]))) for e in wanted_of_main(False, False)]
    round_ = [m[:3] for m in got[start:] if m[0] != "c"][:len(wanted)]
    check(round_ == wanted, "\n".join(f"{a} {b}" for a, b in zip(round_, wanted) if a != b))
    args = {m[2]: m[3] for m in got}
    check(args["scope"] == shown('int=-42 uint=18446744073709551615 double=0.25 bool=true string=a "quoted" \u00e4 \udcff byte\n '
          'pointer=0xdeadbeef json={"list": [1, 2.5, null], "deep": {"yes": true}}'), repr(args["scope"]))
    check(args["late"] == "named 1=-9223372036854775808 bytes=no null=null", args["late"])
    check(args["pets"] == "cats=7 dogs=2.5" and args["request"] in ("url=/ id=0x100", "id=0x100"), f"{args}")
    is_gone()


def filtered(test):
    with running(test) as program:
        with listening(test, ("filter", 'category == "app" || phase == "E"')) as instance:
            program.mark()
            got = marks_in(trace_of(instance))
        wanted = [mark for mark in ALL if mark[1] == "app" or mark[0] == "E"]
        check(got == wanted and len(wanted) == 4, f"the kernel's filter: {got}")
        record(test, "-e", "user_events:traced_mark", "-f", 'category == "app" && name ~ "q*"', "-o", "out.txt",
               during=program.mark)
        got = marks_in(text_of(test))
        check(got == [MARKS[2][1]], f"our filter: {got}")


def threads_and_children(test):
    """A thread's marks are its own, and a forked child's."""
    with running(test) as program, listening(test) as instance:
        program.do("(t := threading.Thread(target=traced.instant, args=('in a thread',))).start() or t.join()")
        child = int(program.do("(pid := os.fork()) or (traced.instant('in a child'), os._exit(0))"))
        program.do(f"os.waitpid({child}, 0)")
        found = {m[4]: int(m[1]) for m in MARK.finditer(trace_of(instance))}
        check(set(found) == {"in a thread", "in a child"} and found["in a child"] == child and
              found["in a thread"] not in (program.pid, child), f"{found}, {program.pid}")
        check(program.listeners() == 1, "the child ended, and the parent's word is 0")
        program.do("traced.instant('still here')")
        check("still here" in trace_of(instance), "the parent's marks ended with the child")


def two_programs(test):
    with running(test) as second:
        with running(test) as first, listening(test) as instance:
            for program in (first, second):
                program.mark()
                got = marks_in(trace_of(instance), program.pid)
                check(len(got) == len(MARKS), f"{got}")
        check(EVENT.exists() and second.listeners() == 0, "the event went with the first program")
        second.process.kill()
        second.process.wait()
        is_gone()
        second.end = lambda: None


def without_rights(test):
    """A program that may not register does its work without the event."""
    with running(test, wrap=as_nobody()) as program:
        check(not EVENT.exists(), "nobody registered it")
        program.mark()


def with_dropped_rights(test):
    with running(test) as program:
        check(program.do(f"os.setgroups([]) or os.setgid({NOBODY}) or os.setuid({NOBODY})") == "None", "setuid")
        with listening(test) as instance:
            program.mark()
            got = marks_in(trace_of(instance), program.pid)
            check(got == SHOWN, f"{got}")


def set_user_id(test):
    """Such a program ignores the variable. The library's path is absolute: it ignores LD_LIBRARY_PATH, too."""
    ours = "/var/tmp/python3-set-user-id"
    shutil.copy(os.path.realpath(sys.executable), ours)
    library = test.build / "libtraced/libtraced.so.1"
    code = (f"import ctypes, os; ctypes.CDLL({str(library)!r}); "
            f"print(os.geteuid(), os.path.exists({str(EVENT)!r}))")
    try:
        for mode, wrap, wanted in ((0o755, (), "0 True"), (0o4755, as_nobody(), "0 False")):
            os.chmod(ours, mode)
            done = subprocess.run([*wrap, ours, "-c", code], env=test.environment(TRACED_USER_EVENTS="1"),
                                  capture_output=True, text=True, check=False)
            # To look into tracefs needs root's rights, which both have.
            check(done.stdout.strip() == wanted, f"{mode:o}: {done}")
            is_gone()
    finally:
        os.unlink(ours)


class UserReg(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("size", ctypes.c_uint32), ("enable_bit", ctypes.c_uint8), ("enable_size", ctypes.c_uint8),
                ("flags", ctypes.c_uint16), ("enable_addr", ctypes.c_uint64), ("name_args", ctypes.c_uint64),
                ("write_index", ctypes.c_uint32)]


@contextlib.contextmanager
def another_event(name_args):
    """An event of this program. Yields what writes one."""
    word, text = ctypes.c_uint32(0), ctypes.create_string_buffer(name_args)
    fd = os.open(TRACEFS / "user_events_data", os.O_RDWR)
    reg = UserReg(ctypes.sizeof(UserReg), 0, 4, 0, ctypes.addressof(word), ctypes.addressof(text), 0)
    try:
        data = bytearray(bytes(reg))
        fcntl.ioctl(fd, 3 << 30 | 8 << 16 | ord("*") << 8, data)
        index = data[-4:]
        yield lambda record: os.write(fd, bytes(index) + record)
        unregister = bytes(ctypes.c_uint32(16)) + bytes((0, 0, 0, 0)) + bytes(ctypes.c_uint64(ctypes.addressof(word)))
        fcntl.ioctl(fd, 1 << 30 | 8 << 16 | ord("*") << 8 | 2, unregister)
    finally:
        os.close(fd)
    # The kernel removes it a little later.
    name = name_args.split()[0].decode()
    settled("the event goes", lambda: not (TRACEFS / "events/user_events" / name).exists())


def patterns_leave_it_out(test):
    """Else each mark would be in a recording twice."""
    with running(test) as program, another_event(b"mine u32 number") as write:
        def during():
            program.mark()
            write(struct.pack("<I", 7))

        for pattern in ("user_events", "user_events:*", "user_*:*", "*:*"):
            record(test, "-e", pattern, "-b", "4M", "-o", "out.txt", during=during)
            text = text_of(test)
            check("traced_mark: " not in text, f"{pattern} has the marks")
            check(text.count(": mine: number=0x7 (7)\n") == 1, f"{pattern} has not the other event")
        for pattern in ("user_events:traced_mark", "user_events:traced_m*"):
            done = test.run("record", "-t", "100ms", "-e", pattern, "-o", "out.txt")
            check(("no event" in done.err) == ("*" in pattern), f"{pattern}: {done}")


def recorded(test):
    """In every format, beside the same marks from the rings."""
    with running(test, marks=test.daemon.socket.parent) as program:
        record(test, "-e", "user_events:traced_mark", "-o", "out.traced", during=program.mark)
    is_gone()
    for name in ("out.txt", "out.json", "out.pftrace"):
        done = test.run("convert", "out.traced", name)
        check(done.status == 0 and "warning" not in done.err, f"{name}: {done}")
    got = marks_in(text_of(test), program.pid)
    check(got == SHOWN, f"{got}")
    document = json.loads(text_of(test, "out.json"))
    one_line = [tuple(part.replace("\n", " ") for part in mark) for mark in got]
    check(marks_in(document["systemTraceEvents"], program.pid) == one_line, "the JSON's text differs")
    own = [(e["ph"], e["name"]) for e in document["traceEvents"] if e["pid"] == program.pid and e["ph"] in "BCEis"]
    # Rings have whole texts, and names of ends.
    check([ph for ph, _ in own] == [m[0] for m in got], f"{own}")
    data = (test.dir / "out.pftrace").read_bytes()
    for text in (b"n=-1 s=two words half=0.5 yes=true none=null", b"c" * 255, b"hand over"):
        check(text in data, f"the Perfetto trace has no {text}")


def counted(test):
    """Histograms by the event's texts."""
    with running(test) as program:
        record(test, "--hist", 'user_events:traced_mark:keys=category,phase if category != ""', "-o", "out.traced",
               during=lambda: [program.mark() for _ in range(3)])
    done = test.run("report", "hist", "out.traced", "--json")
    check(done.status == 0, f"{done}")
    rows = {(r["category"], r["phase"]): r["hitcount"] for r in json.loads(done.out)["reports"][0]["rows"]}
    wanted = {(m[1], m[0]): 3 for m in ALL if m[1]}
    check(rows == wanted, f"{rows}, not {wanted}")


def ends_during(test, *options):
    """The program ends during the recording, which keeps its marks."""
    before = settings()
    program = Program(test)
    done = test.run("start", "-e", "user_events:traced_mark", "--name", "x", *options)
    check(done.status == 0, f"start: {done}")
    program.mark()
    program.end()
    time.sleep(1)
    done = test.run("stop", "x", "-o", "out.txt")
    check(done.status == 0 and "warning" not in done.err, f"stop: {done}")
    got = marks_in(text_of(test), program.pid)
    check(got == SHOWN, f"{got}\n{text_of(test)[-1000:]}")
    is_gone()
    put_back(before)


def in_words(text):
    """The marks of trace-cmd's and perf's text, which writes the duration in decimals."""
    return re.findall(r"traced_mark: +phase=(\S*) category=(.*?) name=(.*?) args=(.*?) duration=(?:0x)?[0-9a-f]+$", text,
                      re.M | re.S)


def by_another(test, recorder, report):
    """Both start a program once they record."""
    need(shutil.which(recorder[0]), f"{recorder[0]} is not in this guest")
    # The event has to be there before.
    with running(test), running(test, wrap=[*recorder, "-e", "user_events:traced_mark"]) as program:
        check(program.listeners() == 1, f"{recorder[0]} does not listen")
        program.mark()
    done = subprocess.run(report, capture_output=True, text=True, errors="surrogateescape", check=False)
    check(in_words(done.stdout) == ALL, f"{in_words(done.stdout)}\n{done.stdout[-3000:]}{done.stderr[-1000:]}")


def by_trace_cmd(test):
    before = settings()
    file = str(test.dir / "trace.dat")
    try:
        by_another(test, ["trace-cmd", "record", "-q", "-o", file], ["trace-cmd", "report", "-i", file])
    finally:
        subprocess.run(["trace-cmd", "reset"], check=False)
    put_back(before)


def by_perf(test):
    file = str(test.dir / "perf.data")
    by_another(test, ["perf", "record", "-q", "-o", file], ["perf", "script", "-i", file])


def numbers(test):
    """An event of another program."""
    with another_event(b"numbers u8 small; char letter; s8 minus; u16 mid; s16 low; u32 big; s32 neg; u64 wide") as write, \
            listening(test, event="numbers") as instance:
        write(struct.pack("<BcbHhIiQ", 7, b"x", -128, 80, -2, 1 << 31, -1, 256))
        text = trace_of(instance)
        check(text.endswith(": numbers: small=(7) letter='x'(120) minus=(128) mid=0x50 (80) low=0xfffe (65534) "
                            "big=0x80000000 (-2147483648) neg=0xffffffff (-1) wide=0x100 (256)\n"), text)
        same_text(text, extracted(test, instance.name, ["user_events:numbers"]))


def not_yet_there(test):
    done = test.run("record", "-t", "100ms", "-e", "user_events:traced_mark", "-o", "out.txt")
    check(done.status == 1 and "TRACED_USER_EVENTS" in done.err, f"{done}")


def told(test):
    doctor = test.run("doctor").out
    check(re.search(r"^\S+ +marks .*\buser_events\b", doctor, re.M) and "CONFIG_USER_EVENTS" not in doctor, doctor)


def main():
    test = of_a_guest("user_events")
    if not (TRACEFS / "user_events_data").exists():
        skip("the kernel has no user events (CONFIG_USER_EVENTS, Linux 6.4)")
    test.case("doctor", told)
    test.case("nobody listens", nobody_listens)
    test.case("as the program marked", as_the_program_marked)
    test.case("by every macro", by_every_macro)
    test.case("filtered", filtered, daemon=True)
    test.case("threads and children", threads_and_children)
    test.case("two programs", two_programs)
    test.case("without rights", without_rights)
    test.case("with dropped rights", with_dropped_rights)
    test.case("set-user-ID", set_user_id)
    test.case("patterns leave it out", patterns_leave_it_out)
    test.case("in every format", recorded, daemon=True)
    test.case("counted", counted)
    test.case("the program ends first", ends_during, daemon=True)
    test.case("the program ends before a ring is read", ends_during, "--ring", daemon=True)
    test.case("no program yet", not_yet_there)
    test.case("numbers of another event", numbers)
    test.case("trace-cmd", by_trace_cmd)
    test.case("perf", by_perf)
    test.end()


if __name__ == "__main__":
    main()
