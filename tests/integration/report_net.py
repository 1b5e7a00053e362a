#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The report net, computed once more from the text of the same recording, in which the order of the lines is that of the
events; and against the sends that the kernel traced by the addresses of their sk_buffs, which the report does not use."""

import collections
import contextlib
import fcntl
import json
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import time

from harness import INSTANCES, Test, check, interrupt, need, settled
from hosts import command_line, far, relay
from perfetto_decode import Decoder
from report_losses import Stream
from trace_event_rules import parse, problems

EVENTS = ("-e", "tcp:tcp_probe", "-e", "tcp:tcp_retransmit_skb", "-e", "sock:inet_sock_set_state")
# Since Linux 6.3.
HAS_SENDS = os.path.exists("/sys/kernel/tracing/events/sock/sock_send_length")
SENDS = ("-e", "sock:sock_send_length")
CALLS = ("-e", "raw_syscalls:sys_enter")
RECEIVES = ("-e", "sock:sock_recv_length")
US = 1000
LINE = re.compile(r"^.*-\d+ +\[\d+\] \S+ +(\d+)\.(\d{6}): (\w+): (.*)$")
MODULUS = 1 << 32
# linux/sockios.h, linux/if.h.
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
# Ethernet, IPv4 and TCP with a time stamp, or with selective acknowledgments.
HEADERS = range(54, 127)

LOAD = """
import socket, sys, threading, time
address, port, side = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def serve(s):
    c, _ = s.accept()
    with c:
        while data := c.recv(65536):
            c.sendall(data[:100] * 3)
def connect():
    for _ in range(500):
        try:
            return socket.create_connection((address, port), 20)
        except OSError:
            time.sleep(0.02)
def ask():
    with connect() as c:
        for i in range(120):
            c.sendall(b"x" * (50 + i))
            c.recv(65536)
            if i % 20 == 0:
                time.sleep(0.05)
        for i in range(30):
            c.sendall(b"y" * 20000)
        time.sleep(0.2)
        c.shutdown(socket.SHUT_WR)
        while c.recv(65536):
            pass
threads = []
if side != "client":
    server = socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    threads.append(threading.Thread(target=serve, args=(server,)))
if side != "server":
    threads.append(threading.Thread(target=ask))
for t in threads: t.start()
for t in threads: t.join()
"""

# Connections with one message each. The client writes down between which times it was sent. Of what the kernel encrypts
# (TCP_ULP, TLS_TX) calls tell another length than is sent.
MESSAGES = """
import json, os, random, socket, sys, tempfile, threading, time
address, port, side, path = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
now = lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME)
ways = ["send", "write", "sendmsg", "sendfile", "thread", "tls"]
def serve(s):
    s.settimeout(20)
    got = {}
    for _ in range(60):
        c, peer = s.accept()
        with c:
            c.settimeout(20)
            while c.recv(1 << 20):
                got[peer[1]] = now()
            c.sendall(b"!")
    with open(path + ".got", "w") as f:
        json.dump(got, f)
def connect():
    for _ in range(500):
        try:
            return socket.create_connection((address, port), 20)
        except OSError:
            time.sleep(0.02)
def send(c, way, data):
    if way == "write":
        while data:
            data = data[os.write(c.fileno(), data):]
    elif way == "sendmsg":
        while data:
            data = data[c.sendmsg([data[:7], data[7:]]):]
    elif way == "sendfile":
        with tempfile.TemporaryFile() as f:
            f.write(data)
            f.flush()
            at = 0
            while at < len(data):
                at += os.sendfile(c.fileno(), f.fileno(), at, len(data))
    elif way == "thread":
        threads = [threading.Thread(target=c.sendall, args=(data,)) for _ in range(3)]
        for t in threads: t.start()
        for t in threads: t.join()
    else:
        c.sendall(data)
def ask():
    random.seed(port)
    said = []
    for i in range(60):
        with connect() as c:
            c.settimeout(None)
            way = ways[i % len(ways)]
            data = bytes(random.choice((1, 100, 1000, 70000, 300000)))
            time.sleep(random.random() / 50)
            begin = now()
            if way == "tls":
                c.sendall(b"hello")
                try:
                    c.setsockopt(6, 31, b"tls")
                    c.setsockopt(282, 1, b"\\x03\\x03\\x33\\x00" + bytes(36))
                except OSError:
                    way = "send"
            send(c, way, data)
            said.append((c.getsockname()[1], way, begin, now()))
            c.shutdown(socket.SHUT_WR)
            c.recv(1)
    with open(path, "w") as f:
        json.dump(said, f)
threads = []
if side != "client":
    server = socket.create_server((address, port), backlog=99)
    threads.append(threading.Thread(target=serve, args=(server,)))
if side != "server":
    threads.append(threading.Thread(target=ask))
for t in threads: t.start()
for t in threads: t.join()
"""

Probe = collections.namedtuple("Probe", "at ns length nxt una skb")
Pair = collections.namedtuple("Pair", "probe before")


class Socket:
    def __init__(self):
        self.probes, self.begun, self.resends = [], False, []

    def unwrap(self):
        """Sequence numbers as differences from the first one."""
        first = self.probes[0].nxt if self.probes else 0
        return [p._replace(nxt=(p.nxt - first) % MODULUS, una=(p.nxt - first) % MODULUS - (p.nxt - p.una) % MODULUS)
                for p in self.probes]


def sockets_of(path):
    """By both addresses: sockets. And by addresses of sk_buffs: sends, as (line, length)."""
    found, sends = collections.defaultdict(Socket), collections.defaultdict(list)
    for at, line in enumerate(path.read_text(errors="replace").splitlines()):
        if not (match := LINE.match(line)):
            continue
        s, us, name, text = match.groups()
        fields = dict(word.split("=", 1) for word in text.split() if "=" in word)
        if name == "tcp_probe":
            found[fields["src"], fields["dest"]].probes.append(Probe(
                at, (int(s) * 1_000_000 + int(us)) * US, int(fields["data_len"]), int(fields["snd_nxt"], 16),
                int(fields["snd_una"], 16), fields.get("skbaddr")))
        elif name == "inet_sock_set_state" and fields["newstate"] == "TCP_ESTABLISHED":
            found[both(fields)].begun = True
        elif name == "tcp_retransmit_skb" and not fields["state"].startswith("TCP_SYN"):
            found[both(fields)].resends.append(at)
        elif name == "net_dev_queue":
            sends[fields["skbaddr"]].append((at, int(fields["len"])))
    return found, sends


def both(fields):
    if fields["saddrv6"].startswith("::ffff:"):
        return f"{fields['saddr']}:{fields['sport']}", f"{fields['daddr']}:{fields['dport']}"
    return f"[{fields['saddrv6']}]:{fields['sport']}", f"[{fields['daddrv6']}]:{fields['dport']}"


def acked(probes, i):
    return probes[i + 1 if i + 1 < len(probes) else i].una


def places(sender, receiver):
    """For each probe of the receiver: the least and the largest place of its last byte in the sender's sequence."""
    ps, found, got = sender.unwrap(), [], 0
    counts = []
    for r in receiver.probes:
        got += r.length
        counts.append(got)

    def until(at):
        return max((c for c, r in zip(counts, receiver.probes) if r.at < at), default=0)
    for k, r in enumerate(receiver.probes):
        least = [acked(ps, i) + counts[k] - until(p.at) for i, p in enumerate(ps) if p.at < r.at]
        if sender.begun and receiver.begun and ps:
            least.append(ps[0].una + counts[k])
        most = [p.nxt - (until(p.at) - counts[k]) for p in ps if p.at > r.at]
        found.append((max(least, default=None), min(most, default=None)))
    return found


def pairs_of(mine_of, peer):
    """What the socket received, each with the last event of its peer that was before its send; or None."""
    mine, theirs = mine_of.unwrap(), peer.unwrap()
    down, up = places(peer, mine_of), places(mine_of, peer)
    check(not any(a is not None and b is not None and a > b for a, b in down + up), "a place is not possible")
    result = []
    for i, p in enumerate(mine):
        before = []
        if p.length and down[i][0] is not None:
            before += [q for q in theirs if q.nxt < down[i][0]][-1:]
        if acked(mine, i) > p.una:
            later = [k for k, (_, most) in enumerate(up) if most is None or most >= acked(mine, i)]
            if theirs and (not later or later[0]):
                before.append(theirs[later[0] if later else -1])
        result.append(Pair(p, max(before, default=None)))
    return result


def document_of(test, *files, status=0):
    r = test.run("report", "net", "--json", *files)
    check(r.status == status, r)
    return json.loads(r.out), r


def rows_of(test, *files):
    return {(row["from"], row["to"]): row for row in document_of(test, *files)[0]["reports"][0]["rows"]}


def text_of(test, file):
    r = test.run("convert", "-q", "--raw-addresses", file, "x.txt")
    check(r.status == 0, r)
    return sockets_of(test.dir / "x.txt")


def check_row(row, pairs):
    paired = [p for p in pairs if p.before]
    check(row["count"] == len(pairs) and row["paired"] == len(paired) and row["unpaired"] == len(pairs) - len(paired)
          and row["cut"] == row["retransmits"] == 0, f"{row} {len(pairs)} {len(paired)}")
    check(row["bytes"] == sum(p.probe.length for p in pairs), row)
    times = [p.probe.ns - p.before.ns for p in paired]
    delay = row["delay"]
    check(delay["count"] == len(times) and abs(delay["sum_ns"] - sum(times)) <= US * len(times) and
          abs(delay["max_ns"] - max(times)) <= US, f"{delay} {sum(times)} {max(times)}")


def check_sends(pairs, sends):
    """No segment was sent before the event that the report takes for earlier. Returns how many were looked up."""
    known = 0
    for p in pairs:
        sent = [s for s in sends.get(p.probe.skb, ()) if s[0] < p.probe.at][-1:]
        # Segments that wait for a socket become one: its last byte is another one's.
        if not p.before or not sent or sent[0][1] - p.probe.length not in HEADERS:
            continue
        check(sent[0][0] > p.before.at, f"{p} was sent at line {sent[0]}")
        known += 1
    return known


def check_sockets(test, file, port):
    found, sends = text_of(test, file)
    rows = rows_of(test, file)
    mine = {key: s for key, s in found.items() if key[0].endswith(f":{port}") or key[1].endswith(f":{port}")}
    mine = {key: s for key, s in mine.items() if s.probes}
    check(len(mine) == 2, f"{sorted(found)}")
    total = known = 0
    for (near, remote), end in mine.items():
        pairs = pairs_of(end, mine[remote, near])
        check_row(rows[remote, near], pairs)
        total += len(pairs)
        known += check_sends(pairs, sends)
    # Since Linux 6.10 the event has the address of its sk_buff.
    has_address = any(p.skb for s in mine.values() for p in s.probes)
    check(total > 200 and (known > total / 2 or not has_address), f"{known} of {total} sends are known")
    print(f"   {total} segments, the sends of {known} are known", flush=True)


def record(test, port, *options, command, events=EVENTS):
    r = test.run("record", "-q", "--name", test.name, *events, "-e", "net:net_dev_queue", "-b", "16M", *options,
                 "-o", "x.traced", "--", *command)
    check(r.status == 0, r)


def load(address, port, side="both"):
    return ["/usr/bin/python3", "-c", LOAD, address, str(port), side]


def messages(test, address, port, side="both"):
    return ["/usr/bin/python3", "-c", MESSAGES, address, str(port), side, str(test.dir / "said.json")]


def check_messages(test, rows, port, label="", peer="", bound=0, calls=True, lossy=False):
    """Each message was sent between the time from which the report counts and the receipt."""
    said = json.loads((test.dir / "said.json").read_text())
    known, exact = collections.Counter(), 0
    for own, way, begin, end in said:
        found = [row for (source, to), row in rows.items() if source.startswith(label) and source.endswith(f":{own}")
                 and to.startswith(peer) and to.endswith(f":{port}")]
        if lossy and not found:
            continue
        check(len(found) == 1, f"{own}: {sorted(rows)}")
        row = found[0]
        check(row["count"] == row["paired"] + row["unpaired"] + row["cut"] and row["by_call"] <= row["paired"], row)
        if way == "tls":
            check(not row["by_call"], row)
        known[way] += row["by_call"] > 0
        # Bytes that wait in the kernel can leave after the call: then another event is nearer.
        if not row["by_call"] or row["by_call"] < row["paired"]:
            continue
        before = row["max_at_ns"] - row["delay"]["max_ns"]
        check(before <= end + bound, f"{way} of {own} was sent between {begin} and {end}: {row}")
        check(before >= begin - bound or not calls, f"{way} of {own} began at {begin}: {row}")
        exact += 1
    print(f"   by calls: {dict(known)}, {exact} of them alone; encrypted by the kernel: {[s[1] for s in said].count('tls')}",
          flush=True)
    check(exact >= 10 or lossy, f"{exact} of {len(said)}")
    return known


def free_port():
    return random.randrange(20000, 30000)


def loopback_is_up():
    """A guest's may be down."""
    with socket.socket() as s:
        request = struct.pack("16sH22x", b"lo", 0)
        flags = struct.unpack_from("16xH", fcntl.ioctl(s, SIOCGIFFLAGS, request))[0]
        if not flags & IFF_UP:
            fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", flags | IFF_UP))


def loopback(test):
    port = free_port()
    record(test, port, command=load("127.0.0.1", port))
    check_sockets(test, "x.traced", port)


def ip6(test):
    port = free_port()
    record(test, port, command=load("::1", port))
    check_sockets(test, "x.traced", port)


@contextlib.contextmanager
def spaces(test):
    """Two network namespaces with a cable; gives the words before a command in each."""
    need(shutil.which("ip") and shutil.which("unshare"), "ip or unshare is missing")
    held = [subprocess.Popen(["unshare", "-n", "sleep", "600"]) for _ in range(2)]
    words = [["nsenter", "-t", str(p.pid), "-n"] for p in held]
    own = os.readlink("/proc/self/ns/net")
    try:
        settled("namespaces", lambda: all(os.readlink(f"/proc/{p.pid}/ns/net") != own for p in held))
        made = subprocess.run([*words[0], "ip", "link", "add", "left", "type", "veth", "peer", "name", "right", "netns",
                               str(held[1].pid)], capture_output=True, text=True, check=False)
        need(made.returncode == 0, f"no veth: {made.stderr}")
        for way, name, address in zip(words, ("left", "right"), ("10.77.0.1/24", "10.77.0.2/24")):
            subprocess.run([*way, "ip", "address", "add", address, "dev", name], check=True)
            subprocess.run([*way, "ip", "link", "set", name, "up"], check=True)
        yield words
    finally:
        for p in held:
            p.kill()
            p.wait()


def namespaces(test):
    port = free_port()
    with spaces(test) as (left, right):
        server = subprocess.Popen([*left, *load("10.77.0.1", port, "server")])
        record(test, port, command=[*right, *load("10.77.0.1", port, "client")])
        server.wait(20)
    check_sockets(test, "x.traced", port)


def by_address(test):
    port = free_port()
    record(test, port, command=load("127.0.0.1", port))
    rows = rows_of(test, "x.traced").values()
    document, _ = document_of(test, "--by", "address", "x.traced")
    joined = {(row["from"], row["to"]): row for row in document["reports"][0]["rows"]}
    row = joined["127.0.0.1", "127.0.0.1"]
    wanted = [r for r in rows if r["from"].startswith("127.0.0.1:") and r["to"].startswith("127.0.0.1:")]
    check(all(row[name] == sum(r[name] for r in wanted) for name in ("count", "bytes", "paired", "unpaired", "cut")), row)


def chosen(test):
    """record --report net chooses the events."""
    port = free_port()
    r = test.run("record", "-q", "--name", test.name, "--report", "net", "--json", "--", *load("127.0.0.1", port))
    check(r.status == 0, r)
    rows = json.loads(r.out)["reports"][0]["rows"]
    check(any(row["from"].endswith(f":{port}") and row["paired"] > 50 for row in rows), rows)
    check(any(row["by_call"] for row in rows) == HAS_SENDS, rows)


def calls(test):
    """The delay of a message begins with the call that sent it, whatever came before."""
    need(HAS_SENDS, "the kernel has no sock_send_length")
    port = free_port()
    record(test, port, command=messages(test, "127.0.0.1", port), events=EVENTS + SENDS + CALLS)
    known = check_messages(test, rows_of(test, "x.traced"), port)
    check(sum(known.values()) >= 20, known)
    data = (test.dir / "x.traced").read_bytes()
    for seed in range(4):
        stream = Stream(data)
        stream.lose(random.Random(seed), 2)
        stream.write(test.dir / "lossy.traced")
        check_messages(test, rows_of(test, "lossy.traced"), port, lossy=True)


def check_arrows(test, trace, port, bound=0):
    """Each begins with a slice in a call of its message, and ends at a slice before the message was read. Returns their
    processes."""
    check(not problems(trace), problems(trace)[:5])
    events = [e for e in trace["traceEvents"] if e.get("cat") == "tcp"]
    slices = {(e["name"], e["tid"], e["ts"]): e for e in events if e["ph"] == "X"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    begins = {e["id"]: e for e in events if e["ph"] == "s"}
    check(begins.keys() == ends.keys() and len(begins) * 2 == len(slices), f"{len(begins)} {len(ends)} {len(slices)}")
    said = {own: said for own, *said in json.loads((test.dir / "said.json").read_text())}
    got = {int(own): ns for own, ns in json.loads((test.dir / "said.json.got").read_text()).items()}
    known = collections.Counter()
    for number, s in begins.items():
        f = ends[number]
        send, receive = slices["send", s["tid"], s["ts"]], slices["receive", f["tid"], f["ts"]]
        check(send["args"] == receive["args"] and (s["pid"], s["tid"]) != (f["pid"], f["tid"]), f"{send} {receive}")
        check(round((f["ts"] - s["ts"]) * US) >= -bound, f"{s} {f}")
        own, to = (int(send["args"][way].rsplit(":", 1)[1]) for way in ("from", "to"))
        # Answers go the other way.
        if to != port:
            continue
        way, begin, end = said[own]
        check(begin - bound <= s["ts"] * US and (s["ts"] + send["dur"]) * US <= end + bound and
              f["ts"] * US <= got[own] + bound, f"{way}: {send} {receive} {begin} {end} {got[own]}")
        known[way] += 1
    print(f"   arrows: {dict(known)}", flush=True)
    check(sum(known.values()) >= 10, known)
    return {(s["pid"], ends[number]["pid"]) for number, s in begins.items()}


def arrows(test):
    """From calls to receipts, in JSON and in Perfetto traces."""
    need(HAS_SENDS, "the kernel has no sock_send_length")
    port = free_port()
    record(test, port, command=messages(test, "127.0.0.1", port), events=EVENTS + SENDS + CALLS + RECEIVES)
    r = test.run("convert", "x.traced", "x.json", "--net-arrows")
    check(r.status == 0, r)
    trace = parse((test.dir / "x.json").read_bytes())
    check_arrows(test, trace, port)
    drawn = sorted(e["id"] for e in trace["traceEvents"] if e["ph"] == "s")
    plain = test.run("convert", "x.traced", "plain.json")
    check(plain.status == 0 and b'"receive"' not in (test.dir / "plain.json").read_bytes(), plain)
    r = test.run("convert", "x.traced", "x.html", "--net-arrows")
    check(r.status == 0 and b'"receive"' in (test.dir / "x.html").read_bytes(), r)
    r = test.run("convert", "x.traced", "x.txt", "--net-arrows")
    check(r.status == 2 and "has no arrows" in r.err, r)
    r = test.run("convert", "x.traced", "x.pftrace", "--net-arrows")
    check(r.status == 0, r)
    need(shutil.which("protoc"), "protoc is missing")
    decoded = Decoder(test.dir, test.source).decode(test.dir / "x.pftrace")
    flows = [list(p.track_event.flow_ids) for p in decoded.packet if p.HasField("track_event")]
    ends = [list(p.track_event.terminating_flow_ids) for p in decoded.packet if p.HasField("track_event")]
    check(sorted(sum(flows, [])) == sorted(sum(ends, [])) and len(set(sum(flows, []))) == len(drawn), f"{len(drawn)}")


def calls_unseen(test):
    """Without events of system calls, a call began after the task's last send, and after the connection."""
    need(HAS_SENDS, "the kernel has no sock_send_length")
    port = free_port()
    record(test, port, command=messages(test, "127.0.0.1", port), events=EVENTS + SENDS)
    known = check_messages(test, rows_of(test, "x.traced"), port, calls=False)
    check(sum(known.values()) >= 20, known)
    r = test.run("convert", "x.traced", "x.json", "--net-arrows")
    check(r.status == 0 and "there is no arrow" in r.err and "-e raw_syscalls:sys_enter" in r.err, r)


def losses(test):
    """Segments beside lost events are cut, and what is paired was not sent before."""
    port, cut = free_port(), 0
    record(test, port, command=load("127.0.0.1", port))
    whole = rows_of(test, "x.traced")
    data = (test.dir / "x.traced").read_bytes()
    for seed in range(6):
        stream = Stream(data)
        stream.lose(random.Random(seed), 3)
        stream.write(test.dir / "lossy.traced")
        document, _ = document_of(test, "lossy.traced")
        for row in document["reports"][0]["rows"]:
            before = whole.get((row["from"], row["to"]))
            check(row["count"] == row["paired"] + row["unpaired"] + row["cut"], row)
            check(before and row["paired"] <= before["paired"] and row["count"] <= before["count"], f"{row} {before}")
            cut += row["cut"]
    check(cut, "no segment is cut")


def partly(test):
    """Segments of some tasks or CPUs are not taken for all; those of some time are."""
    port = free_port()
    record(test, port, command=load("127.0.0.1", port))
    text = test.run("convert", "x.traced", "-", "--format", "txt").out
    # All may have happened on one CPU.
    cpu = re.search(r"^[^#].*? \[(\d+)\] ", text, re.M)[1]
    for part in (["--comm", "*"], ["--cpus", cpu.lstrip("0") or "0"], ["-e", "tcp"]):
        report = document_of(test, *part, "x.traced")[0]["reports"][0]
        check(not any(row["paired"] for row in report["rows"]) and "only some" in report["notes"][0], report)
    rows = document_of(test, "--from", "+100ms", "x.traced")[0]["reports"][0]["rows"]
    check(any(row["paired"] for row in rows), rows)


def recording(test):
    """Instances of recordings that have begun."""
    return [i for i in test.instances_of(test.daemon.process.pid) if not i.endswith("-tasks")
            and (INSTANCES / i / "set_event").read_text().strip()
            and (INSTANCES / i / "tracing_on").read_text().strip() == "1"]


def two_hosts(test, offset_s=0.0, program=load, events=()):
    """Each of two recordings of this kernel has one socket only, by a filter."""
    port = free_port()
    hosts = {"client": (far(test), f"dport=={port}"), "server": (relay(test, "--offset", offset_s), f"sport=={port}")}
    with spaces(test) as (left, right):
        running = [subprocess.Popen(
            command_line(test, {label: host}, "record",
                         *(w for e in EVENTS[1::2] for w in ("-e", e, "-f", text)), *events, "-o", f"{label}.traced"),
            cwd=test.dir, env=test.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT) for label, (host, text) in hosts.items()]
        settled("two recordings", lambda: len(recording(test)) == 2)
        for r in running:
            check(any(b"until Ctrl-C" in line for line in r.stdout), "it has ended")
        # Recordings begin when all hosts got the order to go.
        time.sleep(1)
        with subprocess.Popen([*left, *program("10.77.0.1", port, "server")]):
            subprocess.run([*right, *program("10.77.0.1", port, "client")], check=True, timeout=60)
        for r in running:
            interrupt(r)
            out, _ = r.communicate(timeout=60)
            check(r.returncode == 0, out)
    return port, *document_of(test, "client.traced", "server.traced")


def hosts_tied(test):
    _, document, r = two_hosts(test)
    rows = document["reports"][0]["rows"]
    check(len(rows) == 2 and {row["from"].split()[0] for row in rows} == {"client", "server"}, f"{rows} {r}")
    known = sum(float(m) for m in re.findall(r"clock tied within (\d+\.\d+) us", r.err)) * US
    for row in rows:
        check(abs(row["bound_ns"] - known) < 10 and row["paired"] > 100 and not row["cut"], row)
    notes = document["reports"][0]["notes"]
    match = re.fullmatch(r"\d+ segments: the clock of server is (-?\+?\d+\.\d+) to (-?\+?\d+\.\d+) us ahead of that of client",
                         notes[0]) if notes else None
    # Both are one clock.
    check(match and float(match[1]) * US <= known and float(match[2]) * US >= -known and len(notes) == 1, notes)


def hosts_contradict(test):
    """The answers of one host's clock are half a second off: so is its tie, and the segments tell."""
    _, document, _ = two_hosts(test, 0.5)
    notes = document["reports"][0]["notes"]
    match = [m for n in notes if (m := re.match(
        r"received before it was sent: the clock of server is at least (\d+\.\d+) us behind that of client", n))]
    check(match and 450_000 < float(match[0][1]) <= 500_500, notes)
    check(not any(row["paired"] for row in document["reports"][0]["rows"] if not row["cut"]), document)


def hosts_calls(test):
    """A call on one machine and its receipt on another one, by tied clocks."""
    need(HAS_SENDS, "the kernel has no sock_send_length")
    port, document, r = two_hosts(test, program=lambda *words: messages(test, *words), events=SENDS + CALLS + RECEIVES)
    rows = {(row["from"], row["to"]): row for row in document["reports"][0]["rows"]}
    bound = sum(float(m) for m in re.findall(r"clock tied within (\d+\.\d+) us", r.err)) * US
    known = check_messages(test, rows, port, "client ", "server ", bound)
    check(sum(known.values()) >= 20, known)
    r = test.run("convert", "client.traced", "server.traced", "-o", "x.json", "--net-arrows")
    check(r.status == 0, r)
    trace = parse((test.dir / "x.json").read_bytes())
    first = trace["otherData"]["hosts"][1]["first_pid"]
    check(all((one < first) != (other < first) for one, other in check_arrows(test, trace, port, bound)), first)
    r = test.run("convert", "client.traced", "server.traced", "-o", "x.pftrace", "--net-arrows")
    check(r.status == 0 and "there is no arrow" in r.err and "hint: write a .json" in r.err, r)


def several(test):
    """What does not go with several recordings is refused."""
    for words in (["sched", "a", "b"], ["net", "--from", "1", "a", "b"], ["net", "a", "b"]):
        r = test.run("report", *words)
        check(r.status and r.err, f"{words}: {r}")


def main():
    test = Test("report_net")
    loopback_is_up()
    test.case("loopback", loopback)
    test.case("IPv6", ip6)
    test.case("namespaces", namespaces)
    test.case("by address", by_address)
    test.case("chosen events", chosen)
    test.case("calls", calls)
    test.case("arrows", arrows)
    test.case("calls, only their ends", calls_unseen)
    test.case("losses", losses)
    test.case("some tasks", partly)
    test.case("two hosts", hosts_tied, daemon=True)
    test.case("two hosts, a wrong clock", hosts_contradict, daemon=True)
    test.case("two hosts, calls", hosts_calls, daemon=True)
    test.case("several recordings", several)
    test.end()


if __name__ == "__main__":
    main()
