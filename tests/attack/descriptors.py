# SPDX-License-Identifier: LGPL-2.1-or-later
"""Descriptors whose closing blocks."""

import array
import ctypes
import fcntl
import mmap
import os
import socket
import struct
import threading
import time

from attack import Attack, Stranger, Victim, admit_everybody, connect, hello, wait_of_another

LINGER_S = 5
# struct marks_message of include/traced/mark_ring.h, of a type that no library sends
UNKNOWN_MESSAGE = struct.pack("<IHHIIiiII16s", 0x4b52414d, 99, 0, 0, 0, 0, 0, 0, 0, b"")
RING_MAX = 16 << 20
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2
libc = ctypes.CDLL(None, use_errno=True)


def lingering(count):
    """TCP sockets with unsent data that nobody reads: the last close() of each takes LINGER_S."""
    server = socket.create_server(("127.0.0.1", 0))
    kept, given = [server], []
    for _ in range(count):
        s = socket.create_connection(server.getsockname())
        kept.append(server.accept()[0])
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER_S))
        s.setblocking(False)
        try:
            while True:
                s.send(bytes(1 << 16))
        except BlockingIOError:
            pass
        given.append(s)
    return kept, given


def send_with(sock, data, files):
    fds = array.array("i", [f.fileno() for f in files])
    sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])


def drop(files):
    """While the daemon holds the files, this closes nothing for good."""
    for f in files:
        f.close()


def give_to_service(path, whole):
    """A request whose first bytes bring lingering sockets. The daemon keeps them for the rest."""
    kept, given = lingering(3)
    s = connect(path)
    message = hello()
    send_with(s, message[:5], given)
    drop(given)
    if whole:
        s.sendall(message[5:])
    else:
        s.close()
    return kept, s


def give_to_marks(path):
    """So many messages that the daemon reads the last one, which brings the sockets, later. If it
    was faster, only a child of ours waits."""
    kept, given = lingering(3)
    s = connect(path, socket.SOCK_SEQPACKET)
    s.setblocking(True)
    if os.fork() == 0:
        for _ in range(300):
            s.send(UNKNOWN_MESSAGE)
        send_with(s, UNKNOWN_MESSAGE, given)
        os._exit(0)
    drop(given)
    return kept, s


def allocate_again(memory, size):
    while True:
        for mode in 0, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
            libc.fallocate(memory, mode, ctypes.c_long(0), ctypes.c_long(size))


def offer_busy_memory(path, ring, size, seals, threads):
    """A ring in memory that is allocated again and again: the kernel locks it for so long."""
    memory = os.memfd_create("ring", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(memory, size)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
    for _ in range(threads):
        threading.Thread(target=allocate_again, args=(memory, size), daemon=True).start()
    time.sleep(0.01)
    with connect(path, socket.SOCK_SEQPACKET) as s, open(memory, "rb", buffering=0) as file:
        send_with(s, struct.pack("<IHHIIiiII16s", 0x4b52414d, 1, 1, mmap.PAGESIZE, ring, os.getpid(), os.getpid(), 0, 0, b""), [file])
        time.sleep(0.2)


def offer_again(*arguments):
    """Each time in a process of its own, whose threads and memory end with it."""
    for _ in range(3):
        if os.fork() == 0:
            while True:
                if (child := os.fork()) == 0:
                    offer_busy_memory(*arguments)
                    os._exit(0)
                os.waitpid(child, 0)
    time.sleep(1)
    return []


def attack(test, function, *arguments):
    admit_everybody(test)
    with Victim(test) as v, Stranger(function, *arguments):
        time.sleep(0.2)
        waited = wait_of_another(test)
    v.figures.delay_s = max(v.figures.delay_s, waited)
    return v.figures


def request(test):
    return attack(test, give_to_service, test.daemon.socket, True)


def part_of_a_request(test):
    return attack(test, give_to_service, test.daemon.socket, False)


def busy_memory(test):
    return attack(test, offer_again, test.daemon.socket.parent / "marks.sock", 1 << 16, 2 << 30, fcntl.F_SEAL_SHRINK, 1)


def busy_ring(test):
    return attack(test, offer_again, test.daemon.socket.parent / "marks.sock", RING_MAX, mmap.PAGESIZE + RING_MAX,
                  fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW, 50)


def mark(test):
    return attack(test, give_to_marks, test.daemon.socket.parent / "marks.sock")


ATTACKS = (
    Attack("lingering sockets with a request", request),
    Attack("lingering sockets with a part of a request", part_of_a_request),
    Attack("lingering sockets to marks.sock", mark),
    Attack("a ring of marks in much memory that is busy", busy_memory, delay_s=2),
    Attack("a ring of marks that many threads allocate", busy_ring),
)
