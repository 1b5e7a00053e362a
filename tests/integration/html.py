#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Traces as pages: the content of their blocks, as their readers search for it, against the JSON
and the text of the same captures. tests/html/viewer.py opens them in a browser."""

import gzip
import json
import re
import subprocess

from harness import Test, check, need_tracefs

DATA = "tests/data/6.12.107"
TEXT = '  <script class="trace-data" type="application/text">'
MORE = '  <script class="trace-more" type="application/json">'
END = ["  </script>", "</body>", "</html>"]
# Between two elements of a block.
TEXT_NEXT = '#-</script ><script class="trace-data" type="application/text">'
MORE_NEXT = '</script><script class="trace-more" type="application/json">'


def blocks(page):
    """By line, as Trace Viewer and trace processor do it. Returns the text's lines and the other
    block's JSON."""
    lines = page.split("\n")
    check(lines[0] == "<!DOCTYPE html>", f"begins with {lines[0][:60]}")
    check(lines[-4:] == END + [""], f"ends with {lines[-4:]}")
    check(page.count(TEXT) == 1 and page.count(MORE) == 1, "a block occurs twice")
    text, more = lines.index(TEXT), lines.index(MORE)
    # For a function tracer's recording the text comes second.
    text_end, more_end = (more - 1, -4) if text < more else (-4, text - 1)
    check(lines[max(text, more) - 1] == END[0], f"the first block ends with {lines[max(text, more) - 1]}")
    tail = "\n".join(line for line in lines[more + 1:more_end] if line != MORE_NEXT)
    check("<" not in tail, "markup within the JSON")
    # Each element is a line, so that a program can read a part of it.
    for line in tail.split("\n"):
        if line.startswith('{"name"'):
            json.loads(re.sub(r"[\],]+$", "", line))
    return lines[text + 1:text_end], json.loads(tail)


def restored(line):
    return re.sub(r"<\\(\\*(?:/script|script|!--))", r"<\1", line, flags=re.I)


def convert(test, capture, *outputs):
    for arguments in outputs:
        result = test.run("convert", "-q", capture, *arguments)
        check(result.status == 0, f"{arguments}: {result}")


def capture_of(test, name):
    data = test.source / DATA / f"{name}.traced.gz"
    (test.dir / "x.traced").write_bytes(gzip.decompress(data.read_bytes()))


def same_as_the_others(test):
    """The text equals that of the JSON, line by line, and has all the kernel's lines; so has the
    rest."""
    for name in ("mixed", "graph", "function-stack"):
        capture_of(test, name)
        convert(test, "x.traced", ["x.html"], ["--tgid", "x.json"], ["--tgid", "x.txt"])
        text, more = blocks((test.dir / "x.html").read_text())
        other = json.loads((test.dir / "x.json").read_text())
        check(text[0] == "# tracer: nop" and any(l.startswith("#") and "TASK-PID" in l for l in text),
              f"{name}: the head is {text[:4]}")
        ours = [restored(line) for line in text if not line.startswith("#")]
        theirs = other.pop("systemTraceEvents").split("\n")[1:-1]
        check(ours == theirs, f"{name}: the text is not that of the JSON")
        check(more.pop("form") == 1, f"{name}: of another form")
        # Both were made just now, and each reports its own duration.
        for document in (more, other):
            document["otherData"].pop("export_ns", None)
        check(more == other, f"{name}: the rest is not that of the JSON")
        if name == "mixed":
            kernel = [l for l in (test.dir / "x.txt").read_text(errors="replace").splitlines() if not l.startswith("#")]
            places = [re.sub(r" \S+ +(\d+\.\d+): .*", r" \1", line) for line in ours]
            for line in kernel:
                place = re.sub(r" \S+ +(\d+\.\d+): .*", r" \1", line)
                check(not re.match(r" +\S+-\d+ ", line) or place in places, f"not in the page: {line}")
            whole = set(ours)
            same = sum(line in whole for line in kernel)
            check(same > len(kernel) * 0.8, f"{same} of {len(kernel)} lines are the kernel's own")


def long_blocks(test):
    """A long block has many elements. Trace Viewer and trace processor, which go by lines, see one."""
    for kind, next_element in (("mixed", TEXT_NEXT), ("graph", MORE_NEXT)):
        subprocess.run([test.build / "tests/unit/generate", kind, "40000", test.dir / "x.traced"], check=True)
        convert(test, "x.traced", ["x.html"], ["--tgid", "x.json"])
        page = (test.dir / "x.html").read_text()
        elements = page.split(next_element + "\n")
        check(len(elements) > 2, f"{kind}: {len(elements)} elements")
        check(all(1e6 <= len(e) < 1e6 + 1000 for e in elements[1:-1]), f"{kind}: of {[len(e) for e in elements]} characters")
        text, more = blocks(page)
        other = json.loads((test.dir / "x.json").read_text())
        theirs = other.pop("systemTraceEvents").split("\n")[1:-1]
        check([restored(line) for line in text if not line.startswith("#")] == theirs, f"{kind}: another text than in the JSON")
        check(not any("</script>" in line for line in text), f"{kind}: trace processor finds the text's end too early")
        more.pop("form")
        for document in (more, other):
            document["otherData"].pop("export_ns", None)
        check(more == other, f"{kind}: the rest is not that of the JSON")


def piped(test):
    capture_of(test, "mixed")
    convert(test, "x.traced", ["x.html"])
    result = test.run("convert", "-q", "--format", "html", "x.traced", "-")
    check(result.status == 0, f"{result}")
    check(blocks(result.stdout.decode())[0] == blocks((test.dir / "x.html").read_text())[0], "the pipe has another text")


def cut_captures(test):
    """A damaged recording gives a whole page, which says so."""
    data = gzip.decompress((test.source / DATA / "mixed.traced.gz").read_bytes())
    for part in (0.97, 0.995, 0.9999):
        (test.dir / "x.traced").write_bytes(data[:int(len(data) * part)])
        result = test.run("convert", "x.traced", "x.html")
        check(result.status == 3, f"{part}: {result}")
        _, more = blocks((test.dir / "x.html").read_text())
        check(more["otherData"]["incomplete"], f"{part}: it does not say that it is incomplete")


def recorded(test):
    """Names and marks that would end a block; streamed, and in several files."""
    need_tracefs()
    script = "printf '</script><!--' >/proc/$$/comm; sleep 0.2; :"
    for stream in ([], ["--stream"]):
        result = test.run("record", "-q", *stream, "-e", "sched", "-o", "x.html", "--", "sh", "-c", script)
        check(result.status == 0, f"{result}")
        text, more = blocks((test.dir / "x.html").read_text())
        check(any("</script><!---" in restored(line) for line in text), "the task of that name has no line")
        check(any(e["args"].get("name") == "</script><!--" for e in more["traceEvents"]), "it has no name")
    result = test.run("record", "-q", "-t", "700ms", "--rotate", "200ms", "-e", "sched", "-o", "r.html")
    check(result.status == 0, f"{result}")
    names = [name for name in test.files() if name.startswith("r.")]
    check(len(names) >= 2, f"in one file: {names}")
    for name in names:
        text, _ = blocks((test.dir / name).read_text())
        check(any("sched_switch" in line for line in text), f"{name}: no event")


def main():
    test = Test("html", root=False)
    test.case("the same as the others", same_as_the_others)
    test.case("long blocks", long_blocks)
    test.case("by a pipe", piped)
    test.case("of cut captures", cut_captures)
    test.case("recorded", recorded)
    test.end()


if __name__ == "__main__":
    main()
