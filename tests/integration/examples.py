#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every example of README.md and tracectl(1) that begins with tracectl is run as
it stands (long times made short), beside a daemon; each has to succeed."""

import re
import subprocess

from harness import Test, check


def examples(path):
    """The code of a Markdown or scdoc file: fenced, or indented like code."""
    fenced = False
    for line in path.read_text().splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    ") or line.startswith("\t"):
            line = line.strip().removeprefix("# ").removeprefix("$ ")
            if line.startswith("tracectl "):
                yield line


def run_all(test, path):
    lines = list(examples(path))
    check(len(lines) >= 5, f"hardly an example in {path.name}: {lines}")
    wrapper = test.dir / "bin"
    wrapper.mkdir()
    (wrapper / "tracectl").write_text(
        f"#!/bin/sh\nexec '{test.tracectl}' --socket '{test.daemon.socket}' \"$@\"\n")
    (wrapper / "tracectl").chmod(0o755)
    for line in lines:
        short = re.sub(r"-t \d+0s\b", "-t 1s", line)
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", short], cwd=test.dir, timeout=120,
            env=test.environment(PATH=f"{wrapper}:/usr/sbin:/usr/bin:/sbin:/bin"),
            stdin=subprocess.DEVNULL, capture_output=True, check=False)
        # Real-time tasks and losses depend on the machine: status 3 reports an empty or lossy
        # result.
        allowed = (0, 3) if " -f " in line or "fail-on-loss" in line else (0,)
        check(done.returncode in allowed, f"{line}\nexit status {done.returncode}\n"
              + done.stdout.decode(errors="replace")[-500:]
              + done.stderr.decode(errors="replace")[-1500:])
        print(f"  {line}", flush=True)


def main():
    test = Test("examples")
    for name in ("README.md", "man/tracectl.1.scd"):
        test.case(f"examples of {name}", run_all, test.source / name, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
