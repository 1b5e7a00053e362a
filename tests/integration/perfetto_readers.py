#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a reader infers from live Perfetto traces, by the model of perfetto_infer: one row for each
thread, slices that end, at most one running task for each CPU."""

import collections
import contextlib
import gzip
import os
import pathlib
import re
import subprocess
import time

from harness import Test, check, need
from perfetto_decode import Decoder, packets_of, perfetto_events
from perfetto_infer import Reader

# Threads and processes that make marks, some of them at once after their birth.
PROGRAM = '''
import os, subprocess, sys, threading, time
import traced

def work():
    for i in range(5):
        with traced.scope("step"):
            time.sleep(0.001)

traced.process_name("makes marks")
for _ in range(4):
    threads = [threading.Thread(target=work) for _ in range(10)]
    [t.start() for t in threads]
    [t.join() for t in threads]
for _ in range(10):
    if os.fork() == 0:
        with traced.scope("child"):
            pass
        os._exit(0)
    os.wait()
'''
SLICES = 4 * 10 * 5


def read(test, path):
    data = packets_of(path.read_bytes())
    return Reader(data, Decoder(test.dir, test.source).parse(data))


def record(test, *arguments, command, to="x.pftrace"):
    env = test.environment(TRACED_MARKS=str(test.daemon.socket.parent), PYTHONPATH=str(test.source / "python"),
                           LD_LIBRARY_PATH=str(test.build / "libtraced"))
    r = test.run("record", "--name", test.name, "-b", "8M", "-o", to, *arguments, "--", *command, env=env)
    check(r.status == 0, f"{r}")
    return test.dir / to


def marks(test, *arguments):
    path = record(test, "-e", "sched", "-e", "task", *arguments,
                  command=["/usr/bin/python3", "-c", PROGRAM])
    reader = read(test, path)
    made = [t for t in reader.threads if t.slices]
    check(sum(len(t.slices) for t in made) >= SLICES, f"only {[len(t.slices) for t in made]} slices")
    rows = collections.Counter((t.tid, t.process.pid if t.process else None) for t in reader.threads)
    twice = sorted(key for key, count in rows.items() if count > 1)
    check(not twice, f"threads that appear twice: {twice} of {len(reader.threads)}")
    check(all(end for t in made for _, end in t.slices), "slices without an end")
    # The thread ran in each of its slices.
    idle = [t.tid for t in made for begin, end in t.slices
            if not any(s.ts < end and (s.dur is None or s.ts + s.dur > begin) for s in t.scheds)]
    check(not idle, f"slices of {set(idle)} in which their threads never ran")
    scheduling(reader, path)


def scheduling(reader, path):
    cpus = os.cpu_count()
    check(len(reader.scheds) > 100, f"only {len(reader.scheds)} slices of scheduling")
    for what, found in (("switches of other tasks than ran", reader.mismatched),
                        ("slices of scheduling without an end", reader.open_scheds())):
        check(not found, f"{path.name}: {len(found)} {what} among {len(reader.scheds)} switches")
    # A task whose switch was not reported can run elsewhere by the time that this is seen.
    left_out = {tid for switch in reader.unreported for tid in switch}
    lost = [(tid, state.ts, state.state) for tid, state in reader.open_states() if tid not in left_out | reader.before]
    check(not lost, f"{len(lost)} states of tasks without an end: {lost[:3]}")
    check(len(reader.open_states()) <= max(1, len(reader.unreported) / 10), f"{len(reader.open_states())} states without "
          f"an end for {len(reader.unreported)} switches that were left out")
    check(reader.most_active() <= cpus, f"{reader.most_active()} tasks run at a time on {cpus} CPUs")


def gaps(test, *arguments):
    """A flood into the smallest buffers."""
    path = record(test, "-e", "raw_syscalls", "-e", "sched", "-b", "64K", *arguments, command=[
        "sh", "-c", "for i in 1 2 3; do python3 -c 'import os\nfor i in range(12000): os.getppid()' & done; wait"])
    reader = read(test, path)
    need(reader.losses, "nothing was lost")
    scheduling(reader, path)


# A thread that is not the first one becomes another program, with the first one's tid.
EXEC = """
import os, threading, time
for _ in range(20):
    if os.fork() == 0:
        threading.Thread(target=lambda: os.execv("/bin/true", ["true"])).start()
        time.sleep(10)
    os.wait()
"""


def execs(test):
    path = record(test, "-e", "sched:sched_switch", "-e", "sched:sched_waking", "-e",
                  "sched:sched_process_exec", "-e", "task", command=["/usr/bin/python3", "-c", EXEC])
    reader = read(test, path)
    taken = [e for e in reader.events if e[2] == "sched_process_exec" and e[3]["pid"] != e[3]["old_pid"]]
    check(len(taken) >= 20, f"only {len(taken)} threads took a tid")
    scheduling(reader, path)
    # The thread's slice ends at the latest with the next switch of its CPU.
    for ts, cpu, _, values in taken:
        last = max((s for t in reader.threads if t.tid == values["old_pid"] for s in t.scheds),
                   key=lambda s: s.ts)
        check(last.dur is not None, f"the slice of {values['old_pid']} never ends")


def build_id(path):
    told = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    return re.search(r"Build ID: ([0-9a-f]+)", told)[1]


def functions(path):
    """Name, first and last address of each function of a program."""
    lines = subprocess.run(["nm", "-S", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    for fields in map(str.split, lines.splitlines()):
        if len(fields) == 4 and fields[2] in "tT":
            yield fields[3], int(fields[0], 16), int(fields[0], 16) + int(fields[1], 16)


def samples(test):
    """Where samples were taken, in files that a reader can find again."""
    busy = test.build / "tests" / "integration" / "busy"
    path = record(test, "--sample", "997hz", "--call-graph", "-e", "sched:sched_switch", to="x.traced",
                  command=[busy, "400", "-t", "1"])
    r = test.run("convert", path, "x.pftrace")
    need("no samples" not in r.err, r.err)
    check(r.status == 0, f"{r}")
    trace = Decoder(test.dir, test.source).parse((test.dir / "x.pftrace").read_bytes())
    texts = collections.defaultdict(dict)
    mappings, frames, stacks = {}, {}, {}
    for data in (p.interned_data for p in trace.packet):
        for kind in ("function_names", "mapping_paths", "build_ids"):
            texts[kind].update((s.iid, s.str) for s in getattr(data, kind))
        mappings.update((m.iid, m) for m in data.mappings)
        frames.update((f.iid, f) for f in data.frames)
        stacks.update((s.iid, s) for s in data.callstacks)
    taken = [p.perf_sample for p in trace.packet if p.HasField("perf_sample")]
    modes = collections.Counter(s.cpu_mode for s in taken)
    check(modes[1] and modes[2] and set(modes) <= {1, 2}, f"modes of the CPU: {modes}")
    places = dict((name, place) for name, *place in functions(busy))
    seen, wrong = collections.Counter(), []
    for frame in frames.values():
        mapping, name = mappings[frame.mapping_id], texts["function_names"][frame.function_name_id].decode()
        file = texts["mapping_paths"][mapping.path_string_ids[0]].decode()
        seen[file] += 1
        if file == str(busy) and name in places and not places[name][0] <= frame.rel_pc < places[name][1]:
            wrong.append((name, hex(frame.rel_pc)))
        if file == str(busy):
            check(texts["build_ids"][mapping.build_id].hex() == build_id(busy), "another build ID")
        check((frame.kind == 2) == (file == "kernel" or file.startswith("[")) or file == "[unknown]" or
              file.startswith("[v"), f"{name} of {file} is of kind {frame.kind}")
    check(seen[str(busy)] > 3 and seen["kernel"] > 3, f"frames of {seen}")
    check(not wrong, f"functions at other places of {busy}: {wrong[:5]}")


def metadata(test):
    """What a reader lists about the machine and the recording."""
    path = record(test, "-e", "sched", command=["sh", "-c", "ls / >/dev/null"])
    trace = Decoder(test.dir, test.source).parse(packets_of(path.read_bytes()))
    system = next(p.system_info for p in trace.packet if p.HasField("system_info"))
    ram = re.search(r"MemTotal: +(\d+) kB", pathlib.Path("/proc/meminfo").read_text("ascii"))
    check(system.system_ram_bytes == int(ram[1]) * 1024, f"RAM {system.system_ram_bytes}, not {ram[1]} kB")
    check(system.HasField("timezone_off_mins") and
          system.timezone_off_mins == time.localtime().tm_gmtoff // 60, f"{system}")
    check(re.fullmatch(r"traced \d+\.\d+\.\d+.*", system.tracing_service_version), f"{system}")
    times = {p.service_event.WhichOneof("event_type"): p.timestamp for p in trace.packet
             if p.HasField("service_event")}
    events = [ts for cpu in perfetto_events(path.read_bytes(), trace)[0].values() for ts, *_ in cpu]
    check(set(times) == {"tracing_started", "tracing_disabled"}, f"{times}")
    check(times["tracing_started"] <= min(events) <= max(events) <= times["tracing_disabled"],
          f"{times}, events from {min(events)} to {max(events)}")


def kernel_threads(test):
    """The kernel's events have 15 characters of a name."""
    path = record(test, "-e", "sched", command=["sleep", "0.1"])
    trace = Decoder(test.dir, test.source).parse(packets_of(path.read_bytes()))
    trees = [p.process_tree for p in trace.packet if p.HasField("process_tree")]
    names = {p.pid: p.cmdline[0] for tree in trees for p in tree.processes if p.is_kthread}
    threads = {t.tid: t.name for tree in trees for t in tree.threads}
    whole = {}
    for pid in names:
        with contextlib.suppress(OSError):
            name = pathlib.Path(f"/proc/{pid}/comm").read_text("ascii").strip()
            if len(name) > 15 and not re.match(r"kworker/[^R]", name):
                whole[pid] = name
    need(whole, "this kernel has no threads with long names")
    for pid, name in whole.items():
        check(names[pid] == name and threads[pid] == name[:15], f"{names[pid]} and {threads[pid]} for {name}")


def unknown_processes(test):
    """Readers take a thread without a process for one of process 0."""
    packed = test.source / "tests" / "data" / "6.1.176" / "function.traced.gz"
    (test.dir / "x.traced").write_bytes(gzip.decompress(packed.read_bytes()))
    r = test.run("convert", "x.traced", "x.pftrace")
    check(r.status == 0, f"{r}")
    reader = read(test, test.dir / "x.pftrace")
    idle = [t.tid for t in reader.threads if t.tid and t.process and not t.process.pid]
    check(not idle, f"threads {idle} are the idle process's")
    check(any(t.scheds and not t.process for t in reader.threads), "each thread's process is known")


def main():
    test = Test("perfetto-readers")
    test.case("unknown processes", unknown_processes)
    test.case("metadata", metadata, daemon=True)
    test.case("kernel threads", kernel_threads, daemon=True)
    test.case("samples", samples, daemon=True)
    test.case("gaps", gaps, daemon=True)
    test.case("gaps, events in full", gaps, "--compact-sched=off", daemon=True)
    test.case("execs", execs, daemon=True)
    test.case("marks", marks, daemon=True)
    test.case("marks in a stream", marks, "--stream", daemon=True)
    test.end()


if __name__ == "__main__":
    main()
