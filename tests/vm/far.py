#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""far.py SOCKET WORD...: runs a command line in the guest of tests/vm/joint, as a host's end of `tracectl -H`.

SOCKET leads to the command's input and output, SOCKET.err to its messages. Ends when the guest ends."""

import os
import selectors
import shlex
import socket
import sys


def connected(path):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    return s.detach()


def main():
    port, messages = connected(sys.argv[1]), connected(sys.argv[1] + ".err")
    os.write(port, (shlex.join(sys.argv[2:]) + "\n").encode())
    to = {0: port, port: 1, messages: 2}
    waiting = selectors.DefaultSelector()
    for source in to:
        waiting.register(source, selectors.EVENT_READ)
    while waiting.get_map().keys() & {port, messages}:
        for key, _ in waiting.select():
            data = os.read(key.fd, 1 << 16)
            if not data:
                waiting.unregister(key.fd)
            while data:
                data = data[os.write(to[key.fd], data):]


main()
