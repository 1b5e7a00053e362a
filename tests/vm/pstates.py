#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""pstates.py CPUS: writes the body of an ACPI table (SSDT) that gives each of QEMU's x86 processors,
\\_SB.CPUS.C000 and so on, three frequencies, so that Linux's acpi-cpufreq drives them. To change one, it
writes a value to an I/O port; nothing listens at this one. The encoding (AML) is chapter 20 of the
ACPI specification, 6.4."""

import sys

STATES = {2000: 1, 1500: 2, 1000: 3}  # MHz, and the value for the port
PORT = 0x80  # for diagnostics of a machine's start
TRANSITION_US = 10

NAME, BYTE, DWORD, SCOPE, BUFFER, PACKAGE = b"\x08", b"\x0a", b"\x0c", b"\x10", b"\x11", b"\x12"


def counted(op, body):
    """The length that follows op counts its own bytes; this form is for up to 4,095."""
    length = len(body) + 2
    return op + bytes([0x40 | length & 0xf, length >> 4]) + body


def package(elements):
    return counted(PACKAGE, bytes([len(elements)]) + b"".join(elements))


def state(mhz):
    """Frequency, power in mW, two times, the value that sets it and that which tells it."""
    return package([DWORD + number.to_bytes(4, "little")
                    for number in (mhz, mhz * 10, TRANSITION_US, TRANSITION_US, STATES[mhz], STATES[mhz])])


def processor(cpu):
    # A generic register: I/O space, 8 bits; then the end of the resources.
    register = bytes([0x82, 12, 0, 1, 8, 0, 0]) + PORT.to_bytes(8, "little") + bytes([0x79, 0])
    port = counted(BUFFER, BYTE + bytes([len(register)]) + register)
    return counted(SCOPE, b"\\\x2f\x03_SB_CPUSC%03X" % cpu +
                   NAME + b"_PCT" + package([port, port]) +
                   NAME + b"_PSS" + package([state(mhz) for mhz in STATES]) +
                   NAME + b"_PPC" + b"\x00")


if __name__ == "__main__":
    sys.stdout.buffer.write(b"".join(processor(cpu) for cpu in range(int(sys.argv[1]))))
