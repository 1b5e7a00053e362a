# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions for all benchmarks: running programs, and trace-cmd beside ours."""

import datetime
import os
import pathlib
import platform
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/integration"))
from harness import chunks  # noqa: E402

TRACEFS = pathlib.Path("/sys/kernel/tracing")
PEER_INSTANCE = "traced-bench-peer"

# A locked-down kernel refuses these files, and trace-cmd takes that for a fatal error.
REFUSED = ["set_ftrace_filter", "set_ftrace_notrace", "set_ftrace_pid", "set_ftrace_notrace_pid"]


def die(text):
    sys.exit(f"bench: {text}")


def run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300, **more):
    """Runs argv to its end; exits with its errors if it fails."""
    argv = [str(a) for a in argv]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, timeout=timeout,
                              check=False, **more)
    except subprocess.TimeoutExpired:
        die(f"{argv[0]} took more than {timeout} s")
    if done.returncode != 0:
        die(f"{' '.join(argv)}: exit status {done.returncode}\n"
            + (done.stderr or done.stdout or b"").decode(errors="replace")[-2000:])
    return done.stdout


def output(argv, **more):
    """What argv prints."""
    return run(argv, stdout=subprocess.PIPE, **more).decode()


def in_peer_namespace(argv, empty):
    """argv in a mount namespace in which the refused files of the peer's instance are empty ones."""
    instance = TRACEFS / "instances" / PEER_INSTANCE
    covered = [pathlib.Path("/proc/sys/kernel/ftrace_enabled")]
    covered += [directory / name for directory in (TRACEFS, instance) for name in REFUSED]
    script = "".join(f"[ ! -e {f} ] || mount --bind {empty} {f} || exit 1\n" for f in covered)
    return ["unshare", "-m", "--propagation", "private", "sh", "-c", script + 'exec "$@"', "sh", *argv]


PERFETTO_INSTANCE = "traced-bench-perfetto"
# peer.sh ROOT FOLDER INSTANCE MEASURE COMMAND...: in a mount namespace; Perfetto's daemons record by FOLDER's
# config while COMMAND runs. Leaves counts, times and the trace in FOLDER, and what MEASURE, if any,
# says about each program's whole life.
PERFETTO_PEER = r"""
set -e
root=$1 folder=$2 instance=$1/sys/kernel/tracing/instances/$3 measure=$4; shift 4
mount -t tmpfs tmpfs "$root/tmp"
for fs in proc sysfs:sys tracefs:sys/kernel/tracing; do
  mountpoint -q "$root/${fs#*:}" || mount -t "${fs%%:*}" nodev "$root/${fs#*:}"
done
[ "$root" = / ] || mount --bind /dev "$root/dev"
mkdir "$instance"
programs() { if [ "$measure" ]; then cat $(printf '/proc/%s/task/%s/children ' $(for p; do echo $p $p; done)); else echo "$@"; fi; }
end() { kill -TERM $(programs "$@") 2>/dev/null || :; }
trap 'end $client $probes $service; wait; rmdir "$instance"' EXIT
cp "$folder/config" "$root/tmp/config"
in_root() { exec ${measure:+"$measure" "$folder/usage-${1##*/}"} chroot "$root" "$@" >>"$folder/log" 2>&1; }
(in_root /usr/sbin/traced) & service=$!
sleep 0.5
(in_root /usr/sbin/traced_probes) & probes=$!
sleep 0.5
(in_root /usr/bin/perfetto -c /tmp/config --txt -o /tmp/out) & client=$!
sleep 1
[ "$(cat "$instance/tracing_on")" = 1 ]
"$@"
sleep 0.5
# Its end empties the rings.
cat "$instance"/per_cpu/cpu*/stats >"$folder/stats"
end $client
wait $client
cat $(for p in $(programs $service $probes); do echo "/proc/$p/task/*/schedstat"; done) >"$folder/schedstat"
cp "$root/tmp/out" "$folder/peer.pftrace"
"""


def perfetto_peer(root, folder, argv, measure=""):
    """Runs argv while Perfetto records; returns the sums of its rings' counts."""
    run(["unshare", "-m", "--propagation", "private", "bash", "-c", PERFETTO_PEER, "peer.sh", root, folder,
         PERFETTO_INSTANCE, measure, *argv])
    return ring_stats((folder / "stats").read_text("ascii"))


def need_tracefs():
    """If tracefs is not mounted, runs this program again with a mount that only it sees."""
    if (TRACEFS / "instances").exists():
        return
    if "TRACED_BENCH_MOUNTED" in os.environ or not TRACEFS.exists():
        die(f"no tracefs at {TRACEFS}")
    os.environ["TRACED_BENCH_MOUNTED"] = "1"
    script = 'mount -t tracefs nodev "$0" && exec "$@"'
    os.execvp("unshare", ["unshare", "-m", "--propagation", "private", "sh", "-c", script, str(TRACEFS),
                          sys.executable, *sys.argv])


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    peer = subprocess.run(["dpkg-query", "-W", "-f=${Version}", "trace-cmd"], capture_output=True,
                          text=True, check=False).stdout or "unknown"
    return (f"{models[0] if models else platform.machine()}, {os.cpu_count()} CPUs, {memory:.0f} GB; "
            f"Linux {platform.release()}; trace-cmd {peer}; {datetime.date.today()}")


class Usage:
    """A program's usage, as the helper `measure` recorded it."""

    def __init__(self, path):
        wall_ns, cpu_ns, peak_kb = map(int, path.read_text(encoding="utf-8").split())
        self.wall, self.cpu, self.peak_mb = wall_ns / 1e9, cpu_ns / 1e9, peak_kb / 1024


# Fields of traced.capture.End in proto/capture.proto.
END_CPU_NS, END_PEAK_BYTES = 4, 5


def stream_end(path):
    """The END chunk of a capture stream: its fields' numbers and values, all varints."""
    with open(path, "rb") as file:
        for kind, flags, length in chunks(file):
            if kind == 12 and not flags:
                return varints(file.read(length))
    die(f"{path} has no end")


def varints(data):
    values, numbers = {}, []
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            numbers.append(number)
            number = shift = 0
    for key, value in zip(numbers[::2], numbers[1::2]):
        values[key >> 3] = value
    return values


def ring_stats(text):
    """The sums over all CPUs of per_cpu/cpuN/stats, or of trace-cmd's report of it."""
    sums = {}
    for name, value in re.findall(r"^\s*([a-z ]+): (\d+)\s*$", text, re.MULTILINE):
        sums[name] = sums.get(name, 0) + int(value)
    return sums
