#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files that a recording polls: each format has what the files said, at their times; the recorder
stays quiet."""

import collections
import importlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

from harness import NOBODY, Daemon, Failure, Test, as_nobody, check, chunks, interrupt
from perfetto_decode import Decoder

POLLS = 22  # CHUNK_POLLS
END = 12
MS = 1000000


def decoder(test):
    """Of the capture stream's messages, too: by protoc and python3-protobuf."""
    if not hasattr(test, "decoder"):
        folder = test.top / "classes"
        folder.mkdir()
        test.decoder = Decoder(folder, test.source)
    return test.decoder


def load_capture(test):
    decoder(test)
    return importlib.import_module("capture_pb2")


def payloads(path, kind):
    with path.open("rb") as file:
        yield from (file.read(length) for found, _, length in chunks(file) if found == kind)


def end_of(test, path):
    return load_capture(test).End.FromString(next(payloads(path, END)))


def readings(test, path):
    """The stream's readings: (source, boot_ns, {(number, label): text})."""
    capture = load_capture(test)
    for payload in payloads(path, POLLS):
        for poll in capture.Polls.FromString(payload).polls:
            yield (capture.Poll.Source.Name(poll.source), poll.boot_ns,
                   {(f.number, f.label.decode()): f.text.decode() for f in poll.files})


CPU = "user nice system idle iowait irq softirq steal guest guest_nice".split()
DISK = ("reads reads_merged read_sectors read_ms writes writes_merged write_sectors write_ms "
        "in_flight io_ms weighted_io_ms discards discards_merged discard_sectors discard_ms "
        "flushes flush_ms").split()
SIZES = "VmSize VmLck VmHWM VmRSS RssAnon RssFile RssShmem VmSwap".split()


def values_of(source, number, label, text):
    """(name, value) of each value, read with other means than the exporter's."""
    lines = text.splitlines()
    if source == "MEMINFO":
        for line in lines:
            key, rest = line.split(":")
            yield f"meminfo {key}", int(rest.split()[0])
    elif source == "VMSTAT":
        for line in lines:
            yield f"vmstat {line.split()[0]}", int(line.split()[1])
    elif source == "STAT":
        for words in map(str.split, lines):
            if re.fullmatch(r"cpu\d+", words[0]):
                for key, ticks in zip(CPU, words[1:]):
                    yield f"stat {words[0]} {key}", int(ticks) * 10000000
            elif words[0] in ("intr", "ctxt", "processes", "procs_running", "procs_blocked", "softirq"):
                yield f"stat {words[0]}", int(words[1])
    elif source == "PSI":
        for line in lines:
            yield f"psi {label} {line.split()[0]}", int(re.search(r"total=(\d+)", line)[1])
    elif source == "DISKSTATS":
        for words in map(str.split, lines):
            for key, n in zip(DISK, words[3:]):
                yield f"diskstats {words[2]} {key}", int(n)
    elif source == "CPUFREQ":
        yield f"cpufreq cpu{number}", int(text)
    elif source == "THERMAL":
        yield f"thermal zone{number} {label}", int(text)
    elif source == "PROCESS_MEMORY":
        for line in lines:
            key, rest = line.split(":")
            if key in SIZES:
                yield f"process-memory {key} of {number}", int(rest.split()[0])


def expected(test, path):
    """By counter the values in their order."""
    out = collections.defaultdict(list)
    for source, ns, files in readings(test, path):
        for (number, label), text in files.items():
            for name, value in values_of(source, number, label, text):
                out[name].append((ns, value))
    return out


def json_counters(path):
    out = collections.defaultdict(list)
    for e in json.loads(path.read_text())["traceEvents"]:
        if e.get("cat") != "poll":
            continue
        check(e["ph"] == "C" and len(e["args"]) == 1, f"{e}")
        name = f"{e['name']} of {e['pid']}" if e["pid"] else e["name"]
        out[name].append((round(e["ts"] * 1000), next(iter(e["args"].values()))))
    return out


def compare(found, wanted, what):
    check(found.keys() == wanted.keys(), f"{what}: {set(found) ^ set(wanted)}")
    for name, values in wanted.items():
        got = found[name]
        check([v for _, v in got] == [v for _, v in values], f"{what}: {name}: {got} {values}")
        check(all(abs(a - b) <= 1000 for (a, _), (b, _) in zip(got, values)), f"{what}: times of {name}")


def perfetto_counters(test, path):
    """As trace processor names them: typed ones by their messages, others by their tracks."""
    trace = decoder(test).decode(path)
    typed, tracks = collections.defaultdict(list), {}
    for p in trace.packet:
        if p.HasField("track_descriptor"):
            tracks[p.track_descriptor.uuid] = p.track_descriptor.name
        for m in p.sys_stats.meminfo:
            typed["meminfo", m.key].append((p.timestamp, m.value))
        for m in p.sys_stats.vmstat:
            typed["vmstat", m.key].append((p.timestamp, m.value))
        for m in p.sys_stats.cpu_stat:
            typed["idle", m.cpu_id].append((p.timestamp, m.idle_ns))
        for m in p.sys_stats.psi:
            typed["psi", m.resource].append((p.timestamp, m.total_ns // 1000))
        for m in p.sys_stats.disk_stat:
            typed["sectors", m.device_name].append((p.timestamp, m.read_sectors))
        for m in p.process_stats.processes:
            typed["rss", m.pid].append((p.timestamp, m.vm_rss_kb))
        if p.HasField("track_event") and p.track_event.type == 4:
            typed["track", tracks[p.track_event.track_uuid]].append(
                (p.timestamp, p.track_event.counter_value))
    return typed


def compare_perfetto(test, wanted):
    found = perfetto_counters(test, test.dir / "out.pftrace")
    names = {
        "meminfo MemTotal": ("meminfo", 1), "meminfo MemFree": ("meminfo", 2),
        "meminfo Dirty": ("meminfo", 17), "meminfo Committed_AS": ("meminfo", 28),
        "meminfo HugePages_Total": ("track", "meminfo HugePages_Total"),
        "vmstat nr_free_pages": ("vmstat", 1), "vmstat pgfault": ("vmstat", 49),
        "stat cpu0 idle": ("idle", 0), "stat ctxt": ("track", "stat ctxt"),
        "psi memory some": ("psi", 5), "psi io full": ("psi", 4),
        f"process-memory VmRSS of {os.getpid()}": ("rss", os.getpid()),
    }
    disk = next((n.split()[1] for n in wanted if n.startswith("diskstats ")), None)
    if disk:
        names[f"diskstats {disk} read_sectors"] = ("sectors", disk)
    for name, key in names.items():
        if name in wanted:
            compare({name: found.get(key, [])}, {name: wanted[name]}, "pftrace")


def every_format(test):
    """Each value of each format is what the file said, and what this script reads is near it."""
    before = pathlib.Path("/proc/stat").read_text()
    r = test.run("record", "--name", test.name, "-e", "sched:sched_switch", "--poll",
                 "meminfo,vmstat,stat,psi,diskstats,cpufreq,thermal@100ms", "--poll",
                 "process-memory@500ms", "-t", "1200ms", "-o", "out.traced")
    check(r.status == 0, r)
    for path in re.findall(r"is not polled: (\S+): ", r.err):
        check(not pathlib.Path(path).exists(), f"{r.err}")
    wanted = expected(test, test.dir / "out.traced")
    total = int(re.search(r"MemTotal: +(\d+)", pathlib.Path("/proc/meminfo").read_text())[1])
    check({v for _, v in wanted["meminfo MemTotal"]} == {total}, "MemTotal")
    switches = [int(re.search(r"^ctxt (\d+)", t, re.M)[1])
                for t in (before, pathlib.Path("/proc/stat").read_text())]
    check(all(switches[0] <= v <= switches[1] for _, v in wanted["stat ctxt"]), f"{switches}")
    ours = wanted[f"process-memory VmRSS of {os.getpid()}"]
    check(ours and all(v > 5000 for _, v in ours), f"{ours}")
    for output in ("out.json", "out.pftrace", "out.html", "out.txt"):
        r = test.run("convert", "out.traced", output)
        check(r.status == 0, r)
        check(("no place for polled files" in r.err) == (output == "out.txt"), r)
    compare(json_counters(test.dir / "out.json"), wanted, "json")
    compare_perfetto(test, wanted)
    check("meminfo MemTotal" in (test.dir / "out.html").read_text(), "no counters in the page")


def times_of(test, path):
    out = collections.defaultdict(list)
    for source, ns, _ in readings(test, path):
        out[source].append(ns)
    return out


def again(function):
    """A case that a machine's pause spoils gets two more tries."""
    def tries(test):
        for left in (2, 1, 0):
            try:
                return function(test)
            except Failure as e:
                if not left:
                    raise
                print(f"again: {e}", flush=True)
                for path in test.dir.glob("*.*"):
                    path.unlink()
    return tries


@again
def intervals(test):
    """Each source has its own. The first reading is at the begin, and the last at the end."""
    r = test.run("record", "--name", test.name, "-e", "sched:sched_process_fork", "--poll",
                 "meminfo@50ms", "--poll", "psi,vmstat@200ms", "-t", "2s", "-o", "out.traced")
    check(r.status == 0, r)
    times = times_of(test, test.dir / "out.traced")
    end = end_of(test, test.dir / "out.traced")
    for source, ms in (("MEMINFO", 50), ("VMSTAT", 200), ("PSI", 200)):
        if source not in times:
            continue
        at = times[source]
        apart = statistics.median(b - a for a, b in zip(at, at[1:])) / MS
        check(0.8 * ms < apart < 1.2 * ms, f"{source}: {apart} ms apart instead of {ms}")
        # Busy machines make fewer, and may record longer.
        lasted = (end.boot_ns - end.start_boot_ns) / MS
        check(1000 / ms < len(at) <= lasted / ms + 2, f"{source}: {len(at)} readings")
        check(at == sorted(at) and at[0] - end.start_boot_ns < 500 * MS and
              end.boot_ns - at[-1] < 500 * MS, f"{source}: {at}, {end}")


@again
def quiet(test):
    """Costs: the thread's events and CPU time."""
    for polls in ([], ["--poll", "meminfo,vmstat,stat@100ms"]):
        r = test.run("record", "--name", test.name, "-e", "sched:sched_switch", *polls, "-t", "2s",
                     "-o", "out.traced")
        check(r.status == 0, r)
        r = test.run("convert", "--tgid", "out.traced", "out.txt")
        check(r.status == 0, r)
        # Other daemons may poll at the same time.
        own = rf"^ *traced-poll-\d+ +\( *{test.daemon.process.pid}\) .* sched_switch: "
        count = len(re.findall(own, (test.dir / "out.txt").read_text(), re.MULTILINE))
        end = end_of(test, test.dir / "out.traced")
        if not polls:
            check(not count, "a thread without work")
            without = end.cpu_time_ns
    readings_made = sum(1 for _ in readings(test, test.dir / "out.traced"))
    check(readings_made >= 40, f"{readings_made} readings")
    # Three readings per wakeup; another task may interrupt one.
    check(10 <= count <= readings_made, f"{count} switches for {readings_made} readings")
    spent = (end.cpu_time_ns - without) / MS
    check(spent < 20 or test.is_sanitized(), f"{spent} ms of CPU time in 2 s")


@again
def processes(test):
    """Sizes follow what a process does; with -P there are no others."""
    grows = subprocess.Popen([sys.executable, "-c", "import time; print('begun', flush=True); input(); "
                              "a = bytearray(64 << 20); print(len(a), flush=True); time.sleep(300)"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        grows.stdout.readline()
        recorder = test.start("record", "--name", test.name, "-P", str(grows.pid), "-e", "sched:sched_switch",
                              "--poll", "process-memory@100ms", "-o", "out.json")
        test.wait_for_recording(test.name)
        time.sleep(0.3)
        grows.stdin.write(b"\n")
        grows.stdin.flush()
        grows.stdout.readline()
        time.sleep(1)
        interrupt(recorder)
        r = test.finish(recorder)
    finally:
        grows.kill()
        grows.communicate()
    check(r.status == 0, r)
    found = json_counters(test.dir / "out.json")
    check({n.rsplit(" ", 1)[1] for n in found} == {str(grows.pid)}, f"{list(found)}")
    anon = [v for _, v in found[f"process-memory RssAnon of {grows.pid}"]]
    check(anon[-1] - anon[0] >= 64 << 10, f"{anon}")


@again
def written_meanwhile(test):
    """A stream's values and those of files of --rotate are together what one file has."""
    r = test.run("record", "--name", test.name, "-e", "sched:sched_switch", "--poll",
                 "meminfo@50ms", "--stream", "-t", "1200ms", "-o", "out.json")
    check(r.status == 0, r)
    found = json_counters(test.dir / "out.json")["meminfo MemFree"]
    check(len(found) >= 12 and found == sorted(found), f"{found}")
    r = test.run("record", "--name", test.name, "-e", "sched:sched_switch", "--poll",
                 "meminfo@20ms", "--rotate", "300ms", "-t", "1500ms", "-o", "cut.pftrace")
    check(r.status == 0, r)
    files = sorted(test.dir.glob("cut.*.pftrace"))
    check(len(files) >= 3, f"{files}")
    times = []
    for f in files:
        own = [ts for ts, _ in perfetto_counters(test, f)["meminfo", 2]]
        check(own and perfetto_counters(test, f)["track", "meminfo HugePages_Total"], f"{f.name}")
        times += own
    check(times == sorted(set(times)) and len(times) > 30, f"{times}")


def converted_by_a_user(test):
    """Readings are data of the stream: no right is needed to read them."""
    r = test.run("record", "--name", test.name, "-e", "sched:sched_switch", "--poll", "meminfo@1h",
                 "-t", "100ms", "-o", "out.traced")
    check(r.status == 0, r)
    os.chmod(test.dir / "out.traced", 0o644)
    folder = test.dir / "theirs"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    r = test.run("convert", "out.traced", "theirs/out.json", wrap=as_nobody())
    check(r.status == 0, r)
    # A recording that is shorter than the interval has its begin and its end.
    check(len(json_counters(folder / "out.json")["meminfo MemFree"]) == 2, "not two readings")


def by_default(test):
    """Profiles and traced.conf may name files; the command line decides."""
    profiles = test.dir / "profiles"
    profiles.mkdir()
    (profiles / "mem.profile").write_text(
        "[profile]\nevents = sched:sched_switch\npoll = vmstat@50ms\n")
    conf = test.dir / "daemon" / "traced.conf"

    class Configured(Daemon):
        def config(self):
            conf.write_text("[daemon]\nspare = no\n[defaults]\npoll = meminfo,stat@50ms\n")
            return conf

    test.daemon = Configured(test, env=test.environment(TRACED_PROFILES=str(profiles)))
    for arguments, sources in (
            ([], {"MEMINFO", "STAT"}), (["--profile", "mem"], {"VMSTAT"}),
            (["--poll", "diskstats@50ms"], {"DISKSTATS"})):
        r = test.run("start", "--name", test.name, "-t", "200ms", *arguments)
        check(r.status == 0, r)
        r = test.run("attach", test.name)
        r = test.run("stop", test.name, "-o", "out.traced")
        check(r.status == 0, r)
        check(set(times_of(test, test.dir / "out.traced")) == sources, f"{arguments}")
    r = test.run("record", "--name", test.name, "--ring", "-t", "200ms", "-o", "ring.traced")
    check(r.status == 0 and not times_of(test, test.dir / "ring.traced"), r)


def refusals(test):
    every = "meminfo, vmstat, stat, cpufreq, psi, thermal, diskstats, process-memory"
    cases = [(["--poll", "memory"], 2, every), (["--poll", ""], 2, every),
             (["--poll", "meminfo@fast"], 2, "fast"), (["--poll", "meminfo@1ms"], 2, "10ms"),
             (["--poll", "process-memory@10ms"], 2, "100ms"),
             (["--poll", "meminfo", "--ring"], 2, "exclude each other")]
    if not pathlib.Path("/sys/class/thermal/thermal_zone0").exists():
        cases.append((["--poll", "thermal"], 1, "nothing can be polled: /sys/class/thermal"))
    for arguments, status, says in cases:
        r = test.run("record", "--name", test.name, "-t", "200ms", "-o", "out.json", *arguments)
        check(r.status == status and says in r.err, f"{arguments}: {r}")
        check(test.files() == [], f"left {test.files()}")
    r = test.run("__complete", "--", "record", "--poll", "meminfo,ps")
    check(r.out == "meminfo,psi\n", r)


def main():
    test = Test("polls")
    test.case("each format has what the files said", every_format)
    test.case("intervals", intervals)
    test.case("quiet", quiet, daemon=True)
    test.case("memory of processes", processes, daemon=True)
    test.case("written while recording", written_meanwhile)
    test.case("converted without rights", converted_by_a_user)
    test.case("profiles and configuration", by_default)
    test.case("what can't be polled", refusals)
    test.end()


if __name__ == "__main__":
    main()
