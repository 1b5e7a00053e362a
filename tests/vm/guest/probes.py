#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In a guest: events that a recording makes in the kernel's code and in programs, and
that they are gone afterwards."""

import os
import pathlib
import re
import subprocess
import time

from common import (INSTANCES, TRACEFS, append, check, extracted, is_recording, of_a_guest, put_back, record,
                    same_text, settings, settled, some_files, text_of)
from harness import entry_of


def calls_and_returns(test):
    record(test, "--kprobe", "p:opened vfs_open path=%di", "--kprobe", "r:was_opened vfs_open ret=$retval:s32",
           "--kprobe", "vfs_read", "-o", "out.txt")
    text = text_of(test)
    for wanted in (r": opened: \(vfs_open\+0x[04]/0x[0-9a-f]+\) path=0x[0-9a-f]+$",
                   r": was_opened: \(\w+\+0x[0-9a-f]+/0x[0-9a-f]+ <- vfs_open\) ret=0$",
                   r": vfs_read: \(vfs_read\+0x[04]/0x[0-9a-f]+\)$"):
        check(len(re.findall(wanted, text, re.M)) >= 20, f"no /{wanted}/ in\n{text[-1500:]}")


def a_program(test):
    program = pathlib.Path(test.tracectl).resolve()
    record(test, "--uprobe", f"p:begins {program}:0x{entry_of(program):x}", "-o", "out.txt",
           during=lambda: [test.run("--version") for _ in range(3)])
    text = text_of(test)
    check(len(re.findall(r"tracectl-\d+ .*: begins: \(0x[0-9a-f]+\)$", text, re.M)) >= 3,
          f"not begun thrice in\n{text[-1500:]}")


def a_function_by_its_name(test):
    maps = pathlib.Path("/proc/self/maps").read_text()
    library = re.search(r"(/\S+/libc\.so\.6)$", maps, re.M)[1]
    record(test, "--uprobe", f"{library}:malloc", "--uprobe", f"r:made {library}:malloc $retval", "-o", "out.txt",
           during=lambda: [test.run("status") for _ in range(3)])
    text = text_of(test)
    for wanted in (r"tracectl-\d+ .*: malloc: \(0x[0-9a-f]+\)$", r"tracectl-\d+ .*: made: \(0x[0-9a-f]+ <- "):
        check(re.search(wanted, text, re.M), f"no /{wanted}/ in\n{text[-1500:]}")


def filtered(test):
    """Filters by an argument, and by the caller."""
    fd = os.open("/proc/self/exe", os.O_RDONLY)
    record(test, "--kprobe", "p:sized vfs_read size=%dx", "-f", "size == 7", "--kprobe", "p:other vfs_read",
           "-f", f"common_pid != {os.getpid()}", "-o", "out.txt",
           during=lambda: [os.pread(fd, n, 0) for n in (7, 8) * 20])
    os.close(fd)
    text = text_of(test)
    sizes = re.findall(r"-(\d+) .*: sized: .* size=(0x[0-9a-f]+)$", text, re.M)
    check(sizes.count((str(os.getpid()), "0x7")) == 20, f"not twenty reads of 7 bytes among {sizes}")
    check({size for _, size in sizes} == {"0x7"}, f"others than of 7 bytes: {sizes}")
    check(not re.search(rf"-{os.getpid()} .*: other: ", text), "a task that is filtered out is there")


def lacks(test, kind):
    """What a kernel lacks for a kind of probes, as doctor says; None: nothing."""
    told = next(line for line in test.run("doctor").out.splitlines() if re.match(r"\S+ +probes ", line))
    missing = re.search(rf"no {kind}s \(([^)]*)\)", told)
    check(missing or re.search(rf"\b{kind}s\b", told), told)
    return missing and missing[1]


def is_refused(test, kind, definition):
    """A kernel without this kind: the refusal names the configuration."""
    config = lacks(test, kind)
    if not config:
        return False
    before = settings()
    done = test.run("record", "-t", "100ms", f"--{kind}", definition, "-o", "out.txt")
    check(done.status == 1 and config in done.err, f"{kind}: {done}")
    put_back(before)
    return True


def by_fprobes(test):
    """The arguments have names, where the kernel has its types."""
    if is_refused(test, "fprobe", "vfs_read"):
        return
    fd = os.open("/proc/self/exe", os.O_RDONLY)
    try:
        record(test, "--fprobe", "f:entered vfs_read count", "-f", "count == 7", "--fprobe",
               "vfs_read%return ret=$retval:s64", "-f", "ret == 7", "--fprobe", "f:all vfs_read $arg*", "-o", "out.txt",
               during=lambda: [os.pread(fd, n, 0) for n in (7, 8) * 20])
    finally:
        os.close(fd)
    text = text_of(test)
    for wanted in (rf"-{os.getpid()} .*: entered: \(vfs_read\+0x[0-9a-f]+/0x[0-9a-f]+\) count=(?:7|0x7)$",
                   rf"-{os.getpid()} .*: vfs_read__return: \(\w+\+0x[0-9a-f]+/0x[0-9a-f]+ <- vfs_read\) ret=7$",
                   rf"-{os.getpid()} .*: all: \(vfs_read\+.*\) file=\S+ buf=\S+ count=\S+ pos=\S+$"):
        check(len(re.findall(wanted, text, re.M)) >= 20, f"no /{wanted}/ in\n{text[-1500:]}")
    check(not re.search(r": entered: .* count=(?!7$|0x7$)", text, re.M), "others than of 7 bytes")


def by_tracepoints(test):
    """A tracepoint's argument that its event does not have."""
    if is_refused(test, "tprobe", "sched_switch"):
        return
    record(test, "--tprobe", "t:switched sched_switch from=prev->pid to=next->pid stack=prev->stack", "-e",
           "sched:sched_switch", "-o", "out.txt")
    text = text_of(test)
    own = re.findall(r"\[(\d+)\] .*: switched: \(\S+\) from=(\d+) to=(\d+) stack=0x[0-9a-f]+$", text, re.M)
    kernels = re.findall(r"\[(\d+)\] .*: sched_switch: .*prev_pid=(\d+) .*next_pid=(\d+) ", text)
    check(len(own) >= 10, f"{len(own)} switches; {text[-1500:]}")
    for cpu in {cpu for cpu, *_ in own}:
        ours, theirs = ([switch for switch in events if switch[0] == cpu] for events in (own, kernels))
        # Tracing goes on and off between the two events of a switch, too.
        inner = ours[1:-1]
        check(any(theirs[i:i + len(inner)] == inner for i in range(3)), f"CPU {cpu}: {ours} and {theirs}")


def no_such_tracepoint(test):
    """Linux 6.12 takes the probe, for a module that comes later; its recording would be empty."""
    if lacks(test, "tprobe"):
        return
    before = settings()
    done = test.run("record", "-t", "100ms", "--tprobe", "sched_switc", "-o", "out.txt")
    check(done.status == 1 and "did you mean 'sched_switch'" in done.err, f"{done}")
    put_back(before)


def by_events(test):
    """An event made of another: what a pointer of it shows."""
    if is_refused(test, "eprobe", "sched:sched_switch"):
        return
    record(test, "--eprobe", "e:opens syscalls:sys_enter_openat dfd=$dfd:s32 file=+0($filename):ustring", "--eprobe",
           "sched:sched_switch to=$next_pid:s32", "-f", f"to == {os.getpid()}", "-o", "out.txt",
           during=lambda: [pathlib.Path("/proc/self/limits").read_text() for _ in range(20)])
    text = text_of(test)
    # Linux 6.1 does not find the text.
    file = "/proc/self/limits" if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) > (6, 1) else ""
    check(len(re.findall(rf'-{os.getpid()} .*: opens: .*dfd=-100 file="{file}"$', text, re.M)) == 20, text[-1500:])
    check(set(re.findall(r": sched_switch: .*to=(\d+)$", text, re.M)) <= {str(os.getpid())}, text[-1500:])
    before = settings()
    done = test.run("record", "-t", "100ms", "--eprobe", "e:x sched:sched_swich", "-o", "refused.txt")
    check(done.status == 1 and "did you mean 'sched:sched_switch'" in done.err, done)
    put_back(before)


def places(test):
    """What probes can be made of, with arguments."""
    done = test.run("events", "--probe", "vfs_read", "sched_switch")
    check(done.status == 0 and re.search(r"^function +ssize_t vfs_read\(struct file \*file, char \*buf, "
                                         r"size_t count, loff_t \*pos\)$", done.out, re.M), done)
    check(re.search(r"^tracepoint +sched_switch\(bool preempt, struct task_struct \*prev, struct task_struct \*next",
                    done.out, re.M), done)
    subprocess.run(["insmod", "/later/dummy.ko"], check=True)
    try:
        done = test.run("events", "--probe", "dummy_xmit")
        check(done.status == 0 and re.search(r"^function +netdev_tx_t dummy_xmit\(struct sk_buff \*skb, "
                                             r"struct net_device \*dev\) \[dummy\]$", done.out, re.M), done)
    finally:
        subprocess.run(["rmmod", "dummy"], check=True)
    done = test.run("events", "--probe", "vfs_raed")
    check(done.status == 1 and "vfs_read" in done.err, done)


def with_triggers(test):
    """The stacks of a probe, and a probe that ends the recording."""
    before = settings()
    process = test.start("record", "-t", "120s", "--name", test.name, "--kprobe", "p:opened vfs_open", "--trigger",
                         "stacktrace:3", "--kprobe", "p:read vfs_read count=%dx", "--trigger", "traceoff if count == 7",
                         "-o", "out.txt")
    fd = os.open("/proc/self/exe", os.O_RDONLY)
    try:
        until = time.monotonic() + 100
        while process.poll() is None and time.monotonic() < until:
            some_files()
            if is_recording(test):
                os.pread(fd, 7, 0)
            time.sleep(0.2)
    finally:
        os.close(fd)
    done = test.finish(process)
    check(done.status == 0 and "a trigger ended the recording" in done.err, done)
    put_back(before)
    text = text_of(test)
    found = re.findall(r": <stack trace>\n((?: => .*\n)+)", text)
    check(len(found) == 3 and all("vfs_open" in stack or "do_" in stack for stack in found), f"{found}")
    check(re.search(r": read: .* count=0x7$", text, re.M), "the event that ended it is missing")


def of_dynamic_events_killed(test):
    if is_refused(test, "eprobe", "sched:sched_switch"):
        return
    before = settings()
    more = [] if lacks(test, "fprobe") else ["--fprobe", "f:mine vfs_read", "--tprobe", "t:point sched_switch"]
    done = test.run("start", "--eprobe", "e:killed sched:sched_switch to=$next_pid", *more, "--trigger", "stacktrace:1",
                    "--name", "x")
    check(done.status == 0, f"start: {done}")
    check(settings()["dynamic_events"] != before["dynamic_events"], "there is no probe")
    test.daemon.process.kill()
    test.daemon.process.wait()
    test.daemon.log.close()
    test.daemon = type(test.daemon)(test)
    check(test.run("status").status == 0, "the next daemon does not answer")
    put_back(before)


def every_format(test):
    record(test, "--kprobe", "p:opened vfs_open", "-e", "sched:sched_switch", "-o", "out.traced")
    for name in ("out.json", "out.txt", "out.pftrace"):
        done = test.run("convert", "out.traced", name)
        check(done.status == 0, f"convert to {name}: {done}")
        check(b"opened" in (test.dir / name).read_bytes(), f"{name} has no probe")
    check('"p:opened vfs_open"' in (test.dir / "out.json").read_text(), "the head lacks the request")


def the_kernels_text(test):
    """Another owner's probes, which -e names like any event."""
    probes = TRACEFS / "kprobe_events"
    instance = INSTANCES / f"{test.name}-text"
    append(probes, "p:kprobes/unit vfs_open path=%di:x64 word=+0(%di):u32 task=$comm\n"
           "r:kprobes/unit_ret vfs_open $retval\n")
    instance.mkdir()
    try:
        (instance / "events/kprobes/enable").write_text("1")
        some_files()
        (instance / "tracing_on").write_text("0")
        wanted = (instance / "trace").read_text()
        check(same_text(wanted, extracted(test, instance.name)) >= 40, "too little was recorded")
        (instance / "events/kprobes/enable").write_text("0")
        done = test.run("record", "--name", test.name, "-e", "kprobes:unit", "-o", "named.txt", "--", "cat",
                        "/proc/self/stat")
        check(done.status == 0, f"record: {done}")
        # The daemon answers before it has removed the recording, which uses the probe.
        settled("the recording is removed", lambda: test.instances() == [instance.name])
    finally:
        (instance / "events/enable").write_text("0")
        instance.rmdir()
        append(probes, "-:kprobes/unit\n-:kprobes/unit_ret\n")


def the_kernels_text_of_fprobes(test):
    if lacks(test, "fprobe"):
        return
    probes = TRACEFS / "dynamic_events"
    instance = INSTANCES / f"{test.name}-fprobes"
    append(probes, "f:fprobes/unit vfs_open $arg*\n")
    append(probes, "f:fprobes/unit_ret vfs_open%return $retval\n")
    append(probes, "t:fprobes/unit_point sched_switch prev->pid name=next->comm:string\n")
    instance.mkdir()
    try:
        (instance / "events/fprobes/enable").write_text("1")
        some_files()
        (instance / "tracing_on").write_text("0")
        wanted = (instance / "trace").read_text()
        names = {name for name in ("unit", "unit_ret", "unit_point") if f": {name}: (" in wanted}
        check(len(names) == 3, f"only {names} in\n{wanted[-1000:]}")
        check(same_text(wanted, extracted(test, instance.name)) >= 40, "too little was recorded")
    finally:
        (instance / "events/enable").write_text("0")
        instance.rmdir()
        for name in ("unit", "unit_ret", "unit_point"):
            append(probes, f"-:fprobes/{name}\n")


def two_at_once(test):
    """Two probes of one name: each recording has its own only."""
    done = test.run("start", "--name", "first", "--kprobe", "p:same vfs_open")
    check(done.status == 0, f"start: {done}")
    before = settings()
    done = test.run("record", "-t", "100ms", "-e", "*:same", "-o", "second.txt")
    check(done.status == 1 and "same" in done.err, f"a glob finds the other's: {done}")
    done = test.run("record", "-t", "500ms", "--name", "second", "--kprobe", "p:same vfs_read", "-o",
                    "second.txt")
    check(done.status == 0, f"record: {done}")
    put_back(before)
    check("same: (vfs_open" not in (test.dir / "second.txt").read_text(), "it has the other's")
    done = test.run("stop", "first", "-o", "first.txt")
    check(done.status == 0, f"stop: {done}")
    check("same: (vfs_read" not in (test.dir / "first.txt").read_text(), "it has the other's")


def killed(test):
    """The next start removes the probes of a killed recorder."""
    before = settings()
    process = test.start("start", "--kprobe", "p:opened vfs_open", "--name", "x")
    done = test.finish(process)
    check(done.status == 0, f"start: {done}")
    check(settings()["kprobe_events"] != before["kprobe_events"], "there is no probe")
    test.daemon.process.kill()
    test.daemon.process.wait()
    test.daemon.log.close()
    test.daemon = type(test.daemon)(test)
    check(test.run("status").status == 0, "the next daemon does not answer")
    put_back(before)


def refusals(test):
    program = pathlib.Path(test.tracectl).resolve()
    for arguments, words in (
            (["--kprobe", "p:x vfs_opne"], ["the kernel refuses the probe 'p:x vfs_opne'", "vfs_open"]),
            (["--kprobe", "p:x vfs_open a=%nothing"], ["p:x vfs_open a=%nothing\n", r"\^"]),
            (["--kprobe", "p:good vfs_open", "--kprobe", "p:x vfs_open a=$bad"], [r"\^"]),
            (["--kprobe", "p:x/y vfs_open"], ["names a group"]),
            (["--uprobe", "p:x /no/such/program:0x10"], ["the kernel refuses the probe"]),
            (["--uprobe", f"p:x {program}"], ["has no offset", "readelf"])):
        before = settings()
        done = test.run("record", "-t", "100ms", *arguments, "-o", "out.txt")
        check(done.status == 1, f"{arguments}: {done}")
        for word in words:
            check(re.search(word, done.err), f"{arguments}: no {word} in {done}")
        check("traced_" not in done.err, f"the output names the group: {done}")
        put_back(before)
        check(not (test.dir / "out.txt").exists(), "a file was written")
        check(not test.instances(), f"{arguments} left an instance behind")


def main():
    test = of_a_guest("probes")
    test.case("calls and returns", calls_and_returns, daemon=True)
    test.case("a program", a_program, daemon=True)
    test.case("a function of a library by its name", a_function_by_its_name, daemon=True)
    test.case("filters", filtered, daemon=True)
    test.case("functions by fprobes", by_fprobes, daemon=True)
    test.case("tracepoints", by_tracepoints, daemon=True)
    test.case("no such tracepoint", no_such_tracepoint, daemon=True)
    test.case("events of events", by_events, daemon=True)
    test.case("places", places)
    test.case("triggers", with_triggers, daemon=True)
    test.case("dynamic events of a killed one", of_dynamic_events_killed, daemon=True)
    test.case("in every format", every_format, daemon=True)
    test.case("the kernel's text", the_kernels_text, daemon=True)
    test.case("the kernel's text of fprobes", the_kernels_text_of_fprobes, daemon=True)
    test.case("two recordings' of one name", two_at_once, daemon=True)
    test.case("killed", killed, daemon=True)
    test.case("what the kernel refuses", refusals, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
