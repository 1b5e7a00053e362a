# SPDX-License-Identifier: LGPL-2.1-or-later
"""What ended each idle time of a CPU, from the events of a recording by the rules of docs/report.md."""

import collections
import re

UNKNOWN = "(unknown)"
AWAKE = "4294967295"


def source(e):
    if e.name == "irq_handler_entry":
        irq, name = re.match(r"irq=(\d+) name=(.*)", e.details).groups()
        return f"{irq} {name}"
    if e.name == "ipi_entry":
        return "ipi"
    if e.name.endswith("_entry") and re.fullmatch("vector=[0-9]+", e.details):
        return e.name.removesuffix("_entry")
    return None


class Wakers:
    """Feed it with every event, and with losses. times: (CPU, source) to pairs of (begin, end)."""

    def __init__(self):
        self.times, self.cut, self.open, self.sought = collections.defaultdict(list), collections.Counter(), collections.Counter(), {}

    def settle(self, cpu):
        begin, end, name = self.sought.pop(cpu)
        self.times[cpu, name or UNKNOWN].append((begin, end))

    def lose(self, cpu, counter=None):
        if (idle := self.sought.pop(cpu, None)) and idle[1]:
            (self.cut if counter is None else counter)[cpu, UNKNOWN] += 1

    def event(self, e):
        begin, end, name = self.sought.get(e.cpu, (None, None, None))
        if e.name == "cpu_idle" and re.match(f"state={AWAKE} ", e.details):
            if begin and not end:
                self.sought[e.cpu] = begin, e, name
                if name:
                    self.settle(e.cpu)
        elif e.name in ("cpu_idle", "sched_switch"):
            if end:
                self.settle(e.cpu)
            if e.name == "cpu_idle":
                self.sought[e.cpu] = e, None, None
        elif begin and not name and source(e):
            self.sought[e.cpu] = begin, end, source(e)
            if end:
                self.settle(e.cpu)

    def finish(self):
        for cpu in list(self.sought):
            self.lose(cpu, self.open)
