#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""In a guest whose emulated network card has a PTP clock: it ties machines that exchanges tie worse."""

import pathlib
import subprocess

from clocks import ties
from common import check, of_a_guest, skip

CLOCK = pathlib.Path("/dev/ptp0")
DRIVER = pathlib.Path("/later/e1000e.ko")


def ptp_clock_ties(test):
    """Two programs read one clock, so it differs by nothing."""
    found, done = ties(test, "--phc", f"{CLOCK},1us")
    check(found.get("other") == "the network cards' PTP clocks", f"{done}")
    print(done.err, flush=True)


def main():
    test = of_a_guest("phc")
    if DRIVER.exists():
        subprocess.run(["insmod", str(DRIVER)], check=False)
    if not CLOCK.exists():
        skip("this kernel has no driver of the emulated card")
    test.case("a PTP clock ties machines", ptp_clock_ties, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
