#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""packed.py BUILD_DIRECTORY [CASE...]: the text of a long trace, which the page packs in memory, in Chromium without a
screen; 77 where there is none. in_firefox.py runs it, too."""

import base64
import hashlib
import subprocess

from answers import LINES, page_with
from browser import run_cases
from viewer import TEXT, equal

from harness import check

TEXT_NEXT = '#-</script ><script class="trace-data" type="application/text">'
# Text that packs well and badly, of one byte a letter and of several, with matches that end at an end or overlap.
TEXTS = """(() => { let seed = 1;
    const random = (n) => (seed = Math.imul(seed, 1103515245) + 12345 >>> 0, (seed >>> 8) % n);
    const letters = (n, from, count) => Array.from({length: n}, () => String.fromCodePoint(from + random(count))).join('');
    const words = Array.from({length: 40}, () => letters(1 + random(30), 97, 26));
    const texts = ['', 'a', '\\ufeffmark', '\\ud83e\\uddf5'.repeat(999), letters(70000, 32, 95), letters(3000, 0x4e00, 5000),
        letters(3000, 0x1f300, 200), 'x'.repeat(1 << 20), words.join(' ').repeat(90), letters(66000, 32, 95).repeat(3)];
    for (let n = 1; n < 300; n++) texts.push('ab'.repeat(n) + letters(n % 40, 97, 3), letters(n, 97, 2));
    for (let n = 0; n < 40; n++) texts.push(Array.from({length: 400}, () => words[random(40)]).join(random(2) ? ' ' : '\\n'));
    return texts; })()"""


def round_trip(test, browser):
    """A text that is packed comes back as it was; text that repeats itself takes less room."""
    browser.open(page_with(test))
    count, wrong, least = browser.ask(f"""(() => {{ const packer = new traceViewer.tools.TextPacker(1 << 20), texts = {TEXTS};
        const packed = texts.map((text) => packer.pack(text));
        const wrong = texts.flatMap((text, i) => (packer.unpack(packed[i]) === text ? [] : [i]));
        return [texts.length, wrong, packed[8].length * 20 < texts[8].length && packed[7].length < 5000]; }})()""")
    equal(wrong, [], f"of {count} texts")
    check(count > 600 and least, "text that repeats itself is not shorter")


def with_script(path, old, new):
    """The page with another script, which its policy names."""
    page = path.read_text()
    begin, end = page.index("<script>") + len("<script>"), page.index("</script>")
    was, script = page[begin:end], page[begin:end].replace(old, new)
    check(was != script, f"'{old}' is not in the script")
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (was, script)]
    path.write_text(page.replace(hashes[0], hashes[1]).replace(was, script))
    return path


def packed_at_once(path):
    return with_script(path, "PLAIN_MOST = 1 << 24", "PLAIN_MOST = 0")


SEEN = """(async () => { const {model, finder} = traceViewer, n = model.time.length;
    const lines = Array.from({length: 2000}, (_, i) => model.eventText(Math.floor((i * 7919) %% n)));
    await finder.find('%s');
    const {groups} = finder.search;
    const names = [...model.threads.values()].map((t) => model.threadLabel(t.tid)).sort();
    return {n, lines, names, slices: model.names, found: Object.values(groups).map((g) => g.length), refs: groups.events.map((e) => e.ref).slice(0, 500),
        packed: model.text.pieces.filter((p) => typeof p !== 'string').length}; })()"""


def a_packed_page(test, browser):
    """The page shows and finds the same, whether it packs its text or not."""
    subprocess.run([test.build / "tests/unit/generate", "mixed", "30000", test.dir / "x.traced"], check=True)
    check(test.run("convert", "-q", "x.traced", "x.html").status == 0, "convert")
    browser.open(test.dir / "x.html")
    plain = browser.ask(SEEN % "irq")
    browser.open(packed_at_once(test.dir / "x.html"))
    packed = browser.ask(SEEN % "irq")
    check(plain.pop("packed") == 0 and packed.pop("packed") > 3, "the text is packed only where it is long")
    check(sum(plain["found"]) > 100 and plain["n"] == 30000, f"{plain['found']} of {plain['n']}")
    for key in plain:
        equal(packed[key], plain[key], key)
    # A few lines, as a person clicks them.
    browser.open(with_script(packed_at_once(page_with(test)), "PACKED_LEAST = 1 << 12", "PACKED_LEAST = 0"))
    text = browser.ask("Array.from({length: traceViewer.model.time.length}, (_, i) => traceViewer.model.eventText(i))")
    equal(text, [line for line in LINES.splitlines() if not line.startswith("#")], "lines")
    equal(browser.said, [], "the browser complains")


def divided(test, browser):
    """A long block has many elements: each event is read once, also of a page that was cut where one ends."""
    subprocess.run([test.build / "tests/unit/generate", "mixed", "30000", test.dir / "x.traced"], check=True)
    check(test.run("convert", "-q", "x.traced", "x.html").status == 0, "convert")
    whole = (test.dir / "x.html").read_text()
    at = whole.index(TEXT_NEXT)
    check(whole.count(TEXT_NEXT) == 3, f"{whole.count(TEXT_NEXT) + 1} elements")
    for end in (None, at + 1, at + 2, at + 10, at + len(TEXT_NEXT) + 1, at + len(TEXT_NEXT) + 40):
        (test.dir / "cut.html").write_text(whole[:end])
        browser.open(test.dir / "cut.html")
        lines = whole[whole.index(TEXT) + len(TEXT):end].split("  </script>\n")[0].split("\n")[:-1]
        equal(browser.ask("[traceViewer.model.time.length, traceViewer.model.strange, traceViewer.model.cut]"),
              [sum(not line.startswith("#") for line in lines), 0, end is not None], f"events, of a page cut at {end}")
    # The JSON of a function tracer's recording is divided, too.
    subprocess.run([test.build / "tests/unit/generate", "graph", "40000", test.dir / "x.traced"], check=True)
    check(test.run("convert", "-q", "x.traced", "x.html").status == 0, "convert")
    browser.open(test.dir / "x.html")
    elements = sum(line.startswith(('{"ph"', '{"name"')) for line in (test.dir / "x.html").read_text().split("\n"))
    equal(browser.ask("traceViewer.model.elements.length"), elements, "elements")
    equal(browser.ask("[traceViewer.model.cut, document.querySelectorAll('.trace-more').length < 2]"), [False, True], "the JSON")
    equal(browser.said, [], "the browser complains")


CASES = [round_trip, a_packed_page, divided]

if __name__ == "__main__":
    run_cases("packed", CASES)
