#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every example of README.md and tracectl(1) that begins with tracectl is run as
it stands (long times made short), beside a daemon; each has to succeed. The programs
of docs/marks.md are built and recorded by the commands that stand below them. Examples of documents
about SQL and histograms in the kernel are run, too, but the kernel may refuse them."""

import gzip
import json
import re
import shlex
import shutil
import struct
import subprocess
import zlib

from harness import Test, check, need


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


def several_lines(path):
    """The same, of which an example may go on over lines, in quotes or behind a backslash."""
    fenced, begun = False, ""
    for line in path.read_text().splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif begun or ((fenced or line.startswith("    ")) and line.strip().removeprefix("# ").startswith("tracectl ")):
            begun += line.strip().removeprefix("# ") + "\n"
            try:
                shlex.split(begun)
            except ValueError:
                continue
            if not begun.endswith("\\\n"):
                yield begun
                begun = ""
    check(not begun, f"{path.name}: {begun} has no end")


def run(test, line, **env):
    """Runs a line of a document in the shell, with our tracectl and daemon."""
    wrapper = test.dir / "bin" / "tracectl"
    if not wrapper.exists():
        wrapper.parent.mkdir()
        wrapper.write_text(f"#!/bin/sh\nexec '{test.tracectl}' --socket '{test.daemon.socket}' \"$@\"\n")
        wrapper.chmod(0o755)
    return subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=test.dir, timeout=120,
                          env=test.environment(PATH=f"{wrapper.parent}:/usr/sbin:/usr/bin:/sbin:/bin", **env),
                          stdin=subprocess.DEVNULL, capture_output=True, check=False)


def run_all(test, path):
    lines = list(examples(path))
    check(len(lines) >= 5, f"hardly an example in {path.name}: {lines}")
    # Some examples are about real-time tasks.
    real_time = subprocess.Popen(["chrt", "-f", "1", "sh", "-c", "while :; do sleep 0.02; done"])
    try:
        run_lines(test, lines)
    finally:
        real_time.kill()
        real_time.wait()


def run_lines(test, lines):
    for line in lines:
        done = run(test, re.sub(r"-t \d+0s\b", "-t 1s", line))
        # Losses depend on the machine: status 3 reports a lossy result.
        allowed = (0, 3) if "fail-on-loss" in line else (0,)
        check(done.returncode in allowed, f"{line}\nexit status {done.returncode}\n"
              + done.stdout.decode(errors="replace")[-500:]
              + done.stderr.decode(errors="replace")[-1500:])
        print(f"  {line}", flush=True)


def of_the_kernel(test, name):
    """The kernel may lack histograms, but no example is a misuse."""
    lines = list(several_lines(test.source / "docs" / name))
    check(len(lines) >= 2, f"hardly an example in {name}: {lines}")
    for line in lines:
        done = run(test, re.sub(r"-t \d+0s\b", "-t 1s", line))
        check(done.returncode in (0, 1), f"{line}\nexit status {done.returncode}\n{done.stderr.decode(errors='replace')}")
        check(done.returncode == 0 or b"CONFIG_" in done.stderr or b"x.traced" in done.stderr, f"{line}\n{done}")


def programs(test):
    need(not test.is_sanitized(), "a sanitizer's library would have to come first")
    text = (test.source / "docs" / "marks.md").read_text()
    env = {"TRACED_MARKS": str(test.daemon.socket.parent), "PYTHONPATH": str(test.source / "python"),
           "PKG_CONFIG_PATH": str(test.build / "meson-uninstalled"), "LD_LIBRARY_PATH": str(test.build / "libtraced")}
    for language, ending, commands in (("c", ".c", 2), ("python", ".py", 1)):
        program, rest = text.split(f"```{language}\n")[1].split("```\n", 1)
        (test.dir / f"queue{ending}").write_text(program)
        lines = re.match(r"\n((?:    .*\n)+)", rest)[1].splitlines()
        check(len(lines) == commands and "tracectl record" in lines[-1], f"{lines}")
        for line in lines:
            done = run(test, line, **env)
            check(done.returncode == 0, f"{line}: {done}")
        events = json.loads((test.dir / "queue.json").read_text())["traceEvents"]
        made = [(e["ph"], e.get("name")) for e in events if e.get("cat") in ("app", "python")]
        check(sorted(made, key=str) == sorted([
            ("B", "produce"), ("C", "queue"), ("s", "hand over"), ("B", "consume"), ("f", "hand over"), ("C", "queue"),
            ("E", "consume"), ("E", "produce")], key=str), f"{made}")


def quickstart(test):
    """The build tree of the quickstart has the files of it that README and docs/marks.md name."""
    targets = re.search(r"ninja -C build (.*?) >>", (test.source / "scripts/quickstart").read_text())[1]
    built = subprocess.run(["bash", "-c", f"printf '%s\\n' {targets}"], check=True, capture_output=True,
                           text=True).stdout.split()
    for name in ("README.md", "docs/marks.md"):
        named = set(re.findall(r"\bbuild/((?:cli|daemon|libtraced|man)/[\w.]+)", (test.source / name).read_text()))
        check(named and named <= set(built), f"{name} names {named}, the quickstart builds {built}")
        for file in named:
            check((test.build / file).exists(), f"{name}: a build has no {file}")
    done = test.run("record", "-q", "-e", "sched:sched_switch", "-o", "marks.json", "--", test.build / "libtraced/marks_example",
                    env=test.environment(TRACED_MARKS=str(test.daemon.socket.parent)))
    check(done.status == 0, f"{done}")
    events = json.loads((test.dir / "marks.json").read_text())["traceEvents"]
    check({"B", "E", "C", "s", "f"} <= {e["ph"] for e in events}, "marks of the example are missing")


def bytes_of_png(data):
    """Width, height, and the bytes of its pixels, each with bytes of its own for red, green and blue."""
    width, height, depth, kind, *_, interlaced = struct.unpack(">IIBBBBB", data[16:29])
    check(depth == 8 and kind in (2, 6) and not interlaced, f"another kind of PNG: {depth}, {kind}, {interlaced}")
    packed, at = b"", 8
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + size] if name == b"IDAT" else b""
        at += 12 + size
    raw, step = zlib.decompress(packed), 3 if kind == 2 else 4
    stride, above, pixels = width * step, bytes(width * step), []
    for at in range(0, len(raw), stride + 1):
        how, row = raw[at], bytearray(raw[at + 1:at + 1 + stride])
        for i in range(stride):
            left, up, corner = row[i - step] if i >= step else 0, above[i], above[i - step] if i >= step else 0
            near = left + up - corner
            paeth = min((left, up, corner), key=lambda v: abs(near - v))
            row[i] = (row[i] + (0, left, up, (left + up) // 2, paeth)[how]) & 255
        above = bytes(row)
        pixels += [above[i:i + 3] for i in range(0, stride, step)]
    return width, height, pixels


def a_picture(test):
    """The page as a picture, by the command of docs/html.md, in a smaller window."""
    need(shutil.which("chromium-headless-shell"), "chromium-headless-shell is not installed")
    (test.dir / "x.traced").write_bytes(gzip.decompress((test.source / "tests/data/6.1.176/mixed.traced.gz").read_bytes()))
    done = test.run("convert", "x.traced", "out.html")
    check(done.status == 0, f"{done}")
    command = re.search(r"^    (chromium-headless-shell .*?)\n\n", (test.source / "docs/html.md").read_text(), re.M | re.S)[1]
    check("1600,1000" in command and "out.html" in command, command)
    done = run(test, command.replace("1600,1000", "800,500").replace(" ", " --no-sandbox ", 1))
    check(done.returncode == 0, f"{command}: {done}")
    width, height, pixels = bytes_of_png((test.dir / "out.png").read_bytes())
    coloured = sum(max(pixel) - min(pixel) > 60 for pixel in pixels)
    check((width, height) == (800, 500) and coloured > 2000, f"{width}x{height}, {coloured} pixels of slices")


def main():
    test = Test("examples")
    for name in ("README.md", "man/tracectl.1.scd"):
        test.case(f"examples of {name}", run_all, test.source / name, daemon=True)
    for name in ("sql.md", "hist.md"):
        test.case(f"examples of docs/{name}", of_the_kernel, name, daemon=True)
    test.case("the picture of docs/html.md", a_picture, daemon=True)
    test.case("programs of docs/marks.md", programs, daemon=True)
    test.case("the quickstart's build tree", quickstart, daemon=True)
    test.end()


if __name__ == "__main__":
    main()
