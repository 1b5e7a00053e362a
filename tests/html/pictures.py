#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""pictures.py BUILD_DIRECTORY [CASE...]: what the page looks like, compared with stored pictures, in Chromium without
a screen; 77 where there is none. in_firefox.py compares them in Firefox.

pictures.py --make BUILD_DIRECTORY: stores the pictures anew. They are without texts, whose letters differ by machine."""

import base64
import pathlib
import re
import sys

from browser import run_cases
from viewer import LINES, equal, page_of, page_with

from harness import check

STORED = pathlib.Path(__file__).resolve().parent / "pictures"
SIZE = (680, 420)  # of the rows
BLOCK = 4  # pixels: the mean colours of blocks are compared, as browsers smooth edges in ways of their own
LEAST = 6  # least difference of a colour's part, of 255, that counts
MOST = 3  # blocks that may differ
SEEN_LEAST = 16  # pixels of lines: a colour in fewer ones may be wrong

# The picture that `p` saves, without texts.
DRAW = """(() => { const {prototype} = CanvasRenderingContext2D, {fillText} = prototype;
    prototype.fillText = () => {};
    traceViewer.head.overview = null;
    for (const {painter} of [traceViewer.panel, traceViewer.pins]) painter.sight = null;
    const picture = traceViewer.moments.picture();
    prototype.fillText = fillText;
    return picture; })()"""
MAKE = f"{DRAW}.toDataURL('image/png').split(',')[1]"
# How many blocks differ from a stored picture, and where the first are; or both sizes, if these differ.
COMPARE = """(async () => { const picture = %s, image = new Image();
    image.src = 'data:image/png;base64,%s'; await image.decode();
    const {width, height} = image;
    if (picture.width !== width || picture.height !== height) return [[picture.width, picture.height], [width, height]];
    const means = (of) => { const c = new OffscreenCanvas(width, height).getContext('2d');
        c.drawImage(of, 0, 0);
        const {data} = c.getImageData(0, 0, width, height), across = Math.ceil(width / BLOCK);
        const sums = new Float64Array(across * Math.ceil(height / BLOCK) * 3);
        for (let i = 0; i < width * height; i++) {
            const block = Math.floor(Math.floor(i / width) / BLOCK) * across + Math.floor((i %% width) / BLOCK);
            for (let k = 0; k < 3; k++) sums[block * 3 + k] += data[i * 4 + k] / BLOCK / BLOCK;
        }
        return [sums, across]; };
    const [[a, across], [b]] = [means(picture), means(image)];
    const wrong = [];
    for (let i = 0; i < a.length / 3; i++)
        if ([0, 1, 2].some((k) => Math.abs(a[i * 3 + k] - b[i * 3 + k]) >= LEAST))
            wrong.push([i %% across * BLOCK, Math.floor(i / across) * BLOCK]);
    return [wrong.length, wrong.slice(0, 9)]; })()""".replace("BLOCK", str(BLOCK)).replace("LEAST", str(LEAST))


def few_events(test, browser):
    """Rows of each kind, a gap, pinned rows, a selected state and its arrows."""
    browser.open(page_with(test, LINES))
    browser.ask("""(({rows}) => { traceViewer.pin(rows.all[1]); traceViewer.pin(rows.ofThread(200));
        traceViewer.goToRun(200, 3e6);
        traceViewer.details.hidden = true; })(traceViewer)""")


def many_events(test, browser):
    browser.open(page_of(test, "6.12.107/mixed.traced.gz", "x.html"))


VIEWS = (few_events, many_events)


def fit(browser):
    """Gives the rows their size, whatever the browser's fonts and scroll bars take."""
    browser.resize(SIZE[0] + 20, SIZE[1] + 100)
    more = browser.ask("(({scroll}) => [innerWidth - scroll.clientWidth, innerHeight - scroll.clientHeight])(traceViewer)")
    browser.resize(*(size + rest for size, rest in zip(SIZE, more)))
    equal(browser.ask("(({scroll}) => [scroll.clientWidth, scroll.clientHeight])(traceViewer)"), list(SIZE), "the size of the rows")


def pictures_of(test, browser):
    """Shows each view, light and dark; yields the stored picture's path."""
    for view in VIEWS:
        view(test, browser)
        fit(browser)
        for name in ("light", "dark"):
            browser.dark(name == "dark")
            yield STORED / f"{re.sub('_', '-', view.__name__)}-{name}.png"
    browser.dark(False)
    browser.resize(1400, 900)


def compare(browser, path):
    return browser.ask(COMPARE % (DRAW, base64.b64encode(path.read_bytes()).decode()))


# Makes a colour of the theme a little lighter or darker; keeps the right one. How many pixels of lines have it.
BREAK = """((table, i) => { const {theme, words, lines, pixels} = traceViewer.painter, shades = theme[table][i];
    window.right = shades.slice();
    const whole = shades[table === 'palette' ? 255 : 0];
    shades.forEach((word, k) => (shades[k] = word ^ 0x101010));
    return words.subarray(0, lines.length * pixels).filter((word) => word === whole).length; })"""


def as_stored(test, browser):
    """The page looks as it did when the pictures were stored."""
    for path in pictures_of(test, browser):
        wrong = compare(browser, path)
        check(isinstance(wrong[0], int) and wrong[0] <= MOST, f"{path.name}: blocks that differ, and the first of them: {wrong}")


def a_wrong_colour(test, browser):
    """The comparison finds each slice's and each state's colour that is another one. The last state has the background's."""
    found = set()
    for path in pictures_of(test, browser):
        for table, last in (("palette", 0), ("states", 1)):
            for i in range(browser.ask(f"traceViewer.painter.theme.{table}.length") - last):
                seen = browser.ask(f"{BREAK}('{table}', {i})")
                wrong = compare(browser, path)[0]
                browser.ask(f"traceViewer.painter.theme.{table}[{i}].set(window.right)")
                check(seen < SEEN_LEAST or wrong > MOST, f"{path.name}: {table} {i} is wrong in {seen} pixels, of which {wrong} blocks differ")
                if seen >= SEEN_LEAST:
                    found.add((table, i))
        check(compare(browser, path)[0] <= MOST, f"{path.name}: the colours are right again")
    check({("states", state) for state in (1, 2, 3, 4)} < found and len(found) > 10, f"only {sorted(found)} are in the pictures")


CASES = [as_stored, a_wrong_colour]


def make(test, browser):
    STORED.mkdir(exist_ok=True)
    for path in pictures_of(test, browser):
        path.write_bytes(base64.b64decode(browser.ask(MAKE)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        del sys.argv[1]
        CASES = [make]
    run_cases("pictures", CASES)
