#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""ten_million.py BUILD_DIRECTORY [CASE...]: a trace of 10,000,000 events is pages that open, in Chromium without a
screen; 77 where there is none. Takes 2 GB of disk."""

import re
import shutil

from browser import run_cases
from measure import memory
from sums import recording
from viewer import equal

from harness import check, need

EVENTS = 10_000_000
OF_A_PAGE = 1_500_000
MEMORY_MB = 600
LINE = re.compile(rb".{16}-\d+ +\([ \d-]+\) \[\d+\] ")


def ten_million(test, browser):
    need(shutil.disk_usage(test.dir).free > 4 << 30, "4 GiB of free disk")
    recording(test, EVENTS)
    r = test.run("convert", "x.traced", "x.html")
    check(r.status == 0 and "goes on in x.0002.html to x.0007.html" in r.err, r)
    (test.dir / "x.traced").unlink()
    pages = [test.dir / "x.html", *sorted(test.dir.glob("x.0*.html"))]
    lines = []
    for page in pages:
        with open(page, "rb") as text:
            lines.append(sum(bool(LINE.match(line)) for line in text))
    equal(len(pages), -(-EVENTS // OF_A_PAGE), "pages")
    equal(sum(lines), EVENTS, f"events of all pages: {lines}")
    for page in (pages[0], pages[-1]):
        browser.open(page)
        equal(browser.ask("[traceViewer.model.time.length, traceViewer.model.strange, traceViewer.model.cut, traceViewer.failed]"),
              [lines[pages.index(page)], 0, False, ""], f"events of {page.name}")
        used, _ = memory(browser)
        check(used < MEMORY_MB, f"{page.name} takes {used} MB of memory")
    equal(browser.said, [], "the browser complains")


CASES = [ten_million]

if __name__ == "__main__":
    run_cases("ten_million", CASES)
