#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""fixtures.py BUILD_DIRECTORY: in a guest, records what unit tests need of its
kernel into /out/data/VERSION (tests/vm/fixtures copies it to tests/data):

    formats.txt.gz   all events' format files, each below a line "## SYSTEM"
    header_page      how a sub-buffer begins
    mixed.traced.gz  a capture in which as many events as possible occur
    mixed.txt.gz     the kernel's own text of the same buffer
"""

import gzip
import os
import pathlib
import re
import socket
import subprocess
import threading
import time

from common import INSTANCES, TRACEFS, check, of_a_guest

# Enough to see each event; more of these would fill the fixture.
NOISY = {"kmem", "rcu", "syscalls", "raw_syscalls", "lock", "preemptirq", "maple_tree", "cgroup",
         "filemap", "irq_vectors", "timer", "vmscan", "workqueue", "percpu", "mmap", "tlb", "csd",
         "ipi", "exceptions", "mmap_lock", "pagemap", "x86_fpu", "writeback", "sched", "irq",
         "block", "skb", "net", "sock", "tcp", "task", "signal", "power",
         "timer_migration", "rseq"}
# The begin and the end of the kernel's text bound symbol lookups.
BOUNDS = {b"_stext", b"_etext", b"_sinittext", b"_einittext", b"_end"}


def version():
    """Debian's release names an ABI; the kernel's version is in the other string."""
    match = re.search(r"Debian (\d+\.\d+\.\d+)", os.uname().version)
    number = match[1] if match else os.uname().release.partition("-")[0]
    release = os.uname().release
    return number + "-rt" * ("-rt-" in release) + "-own" * release.endswith("-own")


def write_gz(path, data):
    with open(path, "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", mtime=0, filename="") as z:
        z.write(data)


def formats(out):
    text = bytearray()
    for path in sorted(TRACEFS.glob("events/*/*/format")):
        try:
            text += f"## {path.parts[-3]}\n".encode() + path.read_bytes()
        except OSError:
            pass
    write_gz(out / "formats.txt.gz", text)
    (out / "header_page").write_bytes((TRACEFS / "events" / "header_page").read_bytes())


def load_once():
    """A little of everything that a small machine can do."""
    subprocess.run(["sh", "-c", "echo x >/var/tmp/f; cat /var/tmp/f /proc/self/maps; ls -l /usr/bin;"
                    "mkdir /var/tmp/d; mv /var/tmp/f /var/tmp/d; rm -r /var/tmp/d; sync; kill -0 $$;"
                    "ip link set lo down; ip link set lo up; ping -c 1 127.0.0.1; ip a; dmesg -c;"
                    "mkdir -p /run/m; mount -t tmpfs t /run/m; echo a >/run/m/a; umount /run/m;"
                    "echo 1 >/proc/sys/vm/drop_caches; dd if=/dev/vda of=/dev/null bs=64k count=4;"
                    "echo data | dd of=/dev/vda conv=fsync; timeout 0.02 sleep 1; nice true; uptime"],
                   check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with socket.create_server(("127.0.0.1", 0)) as server, \
            socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        client.sendall(b"hello" * 100)
        accepted.recv(100)
        accepted.close()


def record_mixed(test, instance):
    (instance / "buffer_size_kb").write_text("16384")
    # Before 5.13 the kernel's own system has the file, too, and refuses to be enabled.
    systems = [p for p in sorted((instance / "events").iterdir()) if (p / "enable").exists() and p.name != "ftrace"]
    quiet = [p for p in systems if p.name not in NOISY]
    stop = threading.Event()

    def keep_busy():
        while not stop.is_set():
            load_once()

    for p in quiet:
        (p / "enable").write_text("1")
    load_once()
    (instance / "trace_marker").write_text("between quiet and noisy")
    for p in quiet:
        (p / "enable").write_text("0")
    (instance / "tracing_on").write_text("0")
    thread = threading.Thread(target=keep_busy)
    thread.start()
    try:
        for p in systems:
            if p.name in NOISY:
                (p / "enable").write_text("1")
                (instance / "tracing_on").write_text("1")
                time.sleep(0.02)
                (instance / "tracing_on").write_text("0")
                (p / "enable").write_text("0")
    finally:
        stop.set()
        thread.join()


def fewer_symbols(text, path):
    """From 150,000 symbols those that the text may name, each with the next one, which gives its
    size."""
    words = set(re.findall(rb"[A-Za-z_][\w.]{2,}", text)) | BOUNDS
    lines = pathlib.Path("/proc/kallsyms").read_bytes().splitlines(True)
    lines.sort(key=lambda line: int(line.split()[0], 16))
    addresses = [line.split()[0] for line in lines]
    wanted = {a for a, line in zip(addresses, lines) if line.split()[2] in words}
    # All names of an address: any of them may be the kernel's choice.
    ends = {b for a, b in zip(addresses, addresses[1:]) if a in wanted and a != b}
    kept = wanted | ends
    path.write_bytes(b"".join(line for a, line in zip(addresses, lines) if a in kept))


def mixed(test, out):
    instance = INSTANCES / f"{test.name}-mixed"
    instance.mkdir()
    try:
        record_mixed(test, instance)
        text = (instance / "trace").read_bytes()
        check(b"LOST" not in text, "the fixture's buffer is too small")
        symbols = test.dir / "kallsyms"
        fewer_symbols(text, symbols)
        subprocess.run(["mount", "--bind", str(symbols), "/proc/kallsyms"], check=True)
        done = test.run("extract", "--instance", instance.name, "-o", "mixed.traced")
        check(done.status == 0, f"extract: {done}")
    finally:
        subprocess.run(["umount", "/proc/kallsyms"], check=False, stderr=subprocess.DEVNULL)
        instance.rmdir()
    write_gz(out / "mixed.txt.gz", text)
    write_gz(out / "mixed.traced.gz", (test.dir / "mixed.traced").read_bytes())


def main():
    test = of_a_guest("fixtures")
    (TRACEFS / "saved_cmdlines_size").write_text("8192")
    out = pathlib.Path("/out/data") / version()
    out.mkdir(parents=True)
    for module in sorted(pathlib.Path("/later").glob("*.ko")) * 3:
        subprocess.run(["insmod", str(module)], check=False, stderr=subprocess.DEVNULL)
    formats(out)
    test.case("mixed", mixed, out)
    test.end()


if __name__ == "__main__":
    main()
