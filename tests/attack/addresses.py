# SPDX-License-Identifier: LGPL-2.1-or-later
"""A member looks for the kernel's addresses, which raw_addresses = no hides."""

import json
import os
import platform
import re
import shutil

from attack import Attack, Figures, admit_everybody, check

from harness import NOBODY, TRACEFS, as_nobody, need

# Where KASLR may place the kernel's text, and its steps.
TEXT = (0xffffffff80000000, 0xffffffffc0000000)
STEP = 2 << 20
# The lowest caller of kmalloc is not far behind the text's begin.
TEXT_MAX = 64 << 20
# A hash looks like one with a probability of 1 in 65536.
KERNEL_ADDRESS = re.compile(r"\b(?:0x)?ffff[0-9a-f]{12}\b")
EVENTS = TRACEFS / "events"
REFUSED = "only root may compare"


class Refused(Exception):
    pass


def text_begin():
    for line in open("/proc/kallsyms", encoding="ascii"):
        address, _, name = line.split()[:3]
        if name == "_text":
            return int(address, 16)
    return 0


def count(test, event, condition):
    """Events of a member's recording with this filter, without the recorder's own."""
    r = test.run("record", "--json", "-q", "-e", event, "-f", condition, "-o", "member/out.txt", "--", "sh",
                 "-c", "ls -l /proc >/dev/null; true", wrap=as_nobody())
    if r.status == 1 and REFUSED in r.err:
        raise Refused(r.err)
    check(r.status in (0, 3), f"a member's recording: {r}")
    told = json.loads(r.out)
    return told["events"] - told["own_events"]


def member(test):
    """Makes every user a member, with a folder for recordings."""
    admit_everybody(test)
    folder = test.dir / "member"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    need(shutil.which("setpriv"), "it needs setpriv")


def bisect(test):
    member(test)
    low, high = TEXT
    recordings = 0
    try:
        if platform.machine() != "x86_64":
            count(test, "kmem:kmalloc", "call_site >= 1")
        while high - low > STEP:
            middle = (low + high) // 2 // STEP * STEP
            if count(test, "kmem:kmalloc", f"call_site >= {low:#x} && call_site < {middle:#x}"):
                high = middle
            else:
                low = middle
            recordings += 1
    except Refused:
        check(not recordings, f"refused only after {recordings} recordings")
        return Figures()
    known = text_begin()
    check(False, f"{recordings} recordings say that the lowest caller of kmalloc is at {low:#x}; the text begins "
          f"at {known:#x}{', which is right' if 0 <= low + STEP - known < TEXT_MAX else ''}")
    return None


def other_ways(test):
    """Whatever else a filter can ask about an address, or about memory."""
    member(test)
    tried = {
        "kmem:kmalloc": ("ptr > 0", "bytes_req > 0 && !(call_site < 5)", "(node == 0) || (((call_site & 0x200000)))",
                         "stacktrace != 0"),
        "kmem:*": ("call_site >= 1",),
        "workqueue:workqueue_execute_start": ("function == 1", "work & 0x1000"),
        "timer:timer_start": ("function > 1",),
        "kmem:mm_page_alloc": ("pfn > 1",),
        "vmalloc:alloc_vmap_area": ("addr > 1", "vstart > 1", "vend > 1"),
        "msr:write_msr": ("val > 1",),
    }
    for event, conditions in tried.items():
        if not list(EVENTS.glob(event.replace(":", "/"))):
            continue
        for condition in conditions:
            try:
                found = count(test, event, condition)
            except Refused:
                continue
            check(False, f"{event} with '{condition}' was not refused: {found} events")
    for condition in ("call_site.function == kfree", "bytes_req > 0 &&", "bytes_req > 0 & call_site > 1"):
        r = test.run("record", "-e", "kmem:kmalloc", "-f", condition, "-o", "member/out.txt", "-t", "50ms",
                     wrap=as_nobody())
        check(r.status == 1 and "the filter for kmem:kmalloc" in r.err, f"'{condition}': {r}")
    r = test.run("record", "--kprobe", "p:x do_exit a=+0(%di):u64", "-o", "member/out.txt", "-t", "50ms",
                 wrap=as_nobody())
    check(r.status == 1 and "only root may make probes" in r.err, f"a probe: {r}")
    # Filters by what a recording shows go on working, and root's by everything.
    check(count(test, "kmem:kmalloc", "bytes_req > 0 && common_pid > 0") > 0, "no event of an open field")
    r = test.run("record", "-q", "-e", "kmem:kmalloc", "-f", "call_site > 1", "-o", "root.txt", "-t", "50ms")
    check(r.status in (0, 3), f"root's filter: {r}")
    return Figures()


def addresses_as_numbers(test):
    """Events that print addresses by %lx. Many tasks at once need new stacks, which vmalloc() makes."""
    need((EVENTS / "vmalloc/alloc_vmap_area").is_dir(), "it needs the events of vmalloc")
    member(test)
    for ending in ("txt", "json"):
        r = test.run("record", "-q", "-e", "vmalloc:*", "-o", f"member/out.{ending}", "--", "sh", "-c",
                     "for i in $(seq 60); do sleep 0.3 & done; wait", wrap=as_nobody())
        check(r.status == 0, f"a member's recording: {r}")
        text = (test.dir / f"member/out.{ending}").read_text(encoding="utf-8", errors="replace")
        check("alloc_vmap_area: " in text or '"alloc_vmap_area"' in text, f"{ending}: no event of vmalloc")
        found = KERNEL_ADDRESS.findall(text)
        check(not found, f"{ending} shows {len(found)} addresses, as {found[:3]}")
    return Figures()


ATTACKS = (
    Attack("bisecting KASLR's offset by filters", bisect),
    Attack("other questions about addresses", other_ways),
    Attack("addresses that the kernel prints as numbers", addresses_as_numbers),
)
