#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""form.py BUILD_DIRECTORY [CASE...]: the page on other screens, with other input, for other eyes, and with
hostile names, in Chromium without a screen; 77 where there is none. in_firefox.py runs a part of it."""

import base64
import hashlib
import itertools
import re

from answers import ELEMENTS, LINES, page_with, place_of
from browser import Browser, run_cases
from edges import mark
from viewer import TEXT, equal

from harness import check, settled

STATES = ("running", "runnable", "sleeping", "blocked", "stopped")
# Machado, Oliveira and Fernandes 2009: linear RGB as it is seen without one kind of cones.
BLIND = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
APART = 30  # least distance of two states' colours in CIELAB; 2.3 is just noticeable
APART_SLICES = 10  # of two slices' colours
CONTRAST = 4.5  # least contrast of a text on a slice, as WCAG 2 has it
CONTRAST_SHAPES = 3  # of bars
NAMES = {"German": "Größenänderung", "Chinese": "数据处理线程工作者", "Arabic": "خيط العمل", "Emoji": "🧵🧶"}


def linear(colour):
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in colour)]


def lab(colour, matrix):
    r, g, b = (min(1, max(0, sum(m * c for m, c in zip(row, linear(colour))))) for row in matrix)
    xyz = ((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b,
           (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089)
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(colours):
    """The least distance of two colours, and where it is: (distance, kind of eyes, one, the other)."""
    pairs = []
    for kind, matrix in BLIND.items():
        seen = {name: lab(colour, matrix) for name, colour in colours.items()}
        pairs += [(sum((p - q) ** 2 for p, q in zip(seen[a], seen[b])) ** 0.5, kind, a, b)
                  for a, b in itertools.combinations(seen, 2)]
    return min(pairs)


def contrast(*colours):
    dark, light = sorted(sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(colour))) for colour in colours)
    return (light + 0.05) / (dark + 0.05)


def variables(browser, *names):
    """Colours of the style, by name."""
    hexes = browser.ask(f"""(() => {{ const style = getComputedStyle(document.documentElement);
        return {list(names)}.map((name) => style.getPropertyValue('--' + name).trim()); }})()""")
    return {name: [int(text[i:i + 2], 16) for i in (1, 3, 5)] for name, text in zip(names, hexes)}


def colours(test, browser):
    """States differ, and so do slices, for people who see two kinds of colours, too. Texts on slices can be read."""
    browser.open(page_with(test))
    for dark in (False, True):
        browser.dark(dark)
        name = "dark" if dark else "light"
        states = variables(browser, *STATES)
        check(apart(states)[0] > APART, f"states in the {name} page: {apart(states)}")
        pixels = browser.ask("traceViewer.painter.theme.palette.map((shades) => shades[255])")
        slices = {i: [pixel >> shift & 255 for shift in (0, 8, 16)] for i, pixel in enumerate(pixels)}
        check(len(slices) >= 12 and apart(slices)[0] > APART_SLICES, f"slices in the {name} page: {apart(slices)}")
        style = variables(browser, "text", "back", "accent", "raised")
        check(contrast(style["accent"], style["raised"]) >= CONTRAST_SHAPES, f"bars of plots in the {name} page: {style}")
        for i, colour in slices.items():
            check(contrast(colour, style["text"]) >= CONTRAST, f"text on slice {i} {colour} in the {name} page")
            check(apart({i: colour, "background": style["back"]})[0] > APART_SLICES, f"slice {i} in the {name} page")
    browser.dark(False)


LAYOUT = """(() => { const seen = [];
    for (const e of document.querySelectorAll('header > *, #details:not([hidden]), #head, #scroll')) {
        const r = e.getBoundingClientRect();
        if (r.width && (r.left < 0 || r.right > innerWidth + 0.5 || r.top < 0 || r.bottom > innerHeight + 0.5))
            seen.push([e.id || e.className || e.tagName, r.left, r.right, r.top, r.bottom]);
    }
    return [document.documentElement.scrollWidth <= innerWidth, traceViewer.panel.height, seen]; })()"""


def sizes(test, browser):
    """Everything is in the window, and the pane does not cover what is selected."""
    browser.open(page_with(test))
    for width, height, mobile in ((1280, 720, False), (390, 844, True), (360, 640, True), (2560, 1440, False)):
        browser.resize(width, height, mobile)
        browser.ask("traceViewer.clear()")
        fits, rows, outside = browser.ask(LAYOUT)
        check(fits and rows > 150 and not outside, f"{width}x{height}: {fits}, rows {rows} high, outside: {outside}")
        browser.ask("traceViewer.pins.rows.rows.length || Array.from({length: 8}, (_, i) => traceViewer.pin(traceViewer.rows.all[i + 1])); "
                    "traceViewer.panel.top = 1e6")
        browser.frame()
        x, y = place_of(browser, 500, 8050)
        browser.click(x, y)
        browser.frame()
        equal(browser.ask("traceViewer.mark && traceViewer.mark.row.label"), "worker 500", f"{width}x{height}: a click")
        fits, rows, outside = browser.ask(LAYOUT)
        check(fits and rows >= 80 and not outside, f"{width}x{height} with a pane: rows {rows} high, outside: {outside}")
        x, y = place_of(browser, 500, 8050)
        top = browser.ask(f"document.elementFromPoint({x}, {y}).tagName")
        equal(top, "CANVAS", f"{width}x{height}: what is over the selection")
    browser.resize(1400, 900)
    equal(browser.said, [], "the browser complains")


def ruler(test, browser):
    """No label of the axis is cut off."""
    browser.open(page_with(test))
    for width in (1280, 390):
        browser.resize(width, 720)
        cut = browser.ask("""(() => { const v = traceViewer, c = v.head.canvas.getContext('2d'), cut = [];
            let seen = 0;
            const fillText = c.fillText;
            c.fillText = (text, x, y, most) => { seen++;
                const w = Math.min(c.measureText(text).width, most || 1e9), left = most ? 0 : LEFT;
                if (x < left || x + w > v.painter.width || (most && x + w > LEFT)) cut.push([text, x, w]); };
            const LEFT = v.painter.x(v.painter.from);
            for (let i = 0; i < 60; i++) {
                v.show(v.whole.from + i * 1e4, v.whole.from + (v.whole.to - v.whole.from) * 0.82 ** i + i * 1e4);
                v.head.paint();
            }
            delete c.fillText;
            return [seen, cut.slice(0, 5)]; })()""")
        check(cut[0] > 200 and not cut[1], f"at {width} pixels: {cut}")
    browser.resize(1400, 900)


def hover(test, browser):
    """The tooltip follows the view, not only the pointer."""
    browser.open(page_with(test))
    tip = "traceViewer.hover.tip.hidden ? '' : traceViewer.hover.tip.querySelector('b').innerText"
    browser.mouse("Moved", *place_of(browser, 200, 4000))
    browser.frame()
    equal(browser.ask(tip), "runnable", "the tooltip")
    browser.ask("traceViewer.show(5.5e6, 6.5e6)")
    browser.frame()
    equal(browser.ask(tip), "running", "the tooltip after a move of the view")
    browser.ask("traceViewer.show(traceViewer.whole.from, traceViewer.whole.to), traceViewer.rows.groups[1].open = false, traceViewer.placeAgain()")
    browser.frame()
    is_, should = browser.ask("""(({hover, panel}) => [hover.hit && hover.hit.row.label,
        (({row, from}) => from === undefined ? null : row.label)(panel.hit(hover.pointer.x, hover.pointer.y) || {})])(traceViewer)""")
    equal(is_, should, "the hovered row after others moved")
    browser.mouse("Moved", 600, 10)
    browser.frame()
    equal(browser.ask(tip), "", "the tooltip of a pointer that left")
    equal(browser.said, [], "the browser complains")


def pins_to_touch(test, browser):
    """Where nothing can be pointed at, each row shows its pin."""
    count = """(() => { const {painter, rows} = traceViewer, {paintPin} = painter; let n = 0;
        painter.paintPin = () => n++; traceViewer.paint(); painter.paintPin = paintPin;
        return [n, rows.all.filter(({kind}) => kind !== 'group').length]; })()"""
    browser.open(page_with(test))
    equal(browser.ask(count)[0], 0, "pins of a mouse that points at no row")
    browser.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    pins, rows = browser.ask(count)
    equal(pins, rows, "pins on a touch screen")
    browser.call("Emulation.setTouchEmulationEnabled", enabled=False)
    equal(browser.said, [], "the browser complains")


def touch(test, browser):
    """Two fingers zoom, one moves; held, it selects. A trackpad's pinch zooms."""
    browser.open(page_with(test))
    _, y = place_of(browser, 200, 0)

    def fingers(kind, *xs):
        browser.call("Input.dispatchTouchEvent", type=f"touch{kind}",
                     touchPoints=[{"x": x, "y": y, "id": i} for i, x in enumerate(xs)])

    view = "[traceViewer.painter.from, traceViewer.painter.to]"
    before = browser.ask(view)
    held = browser.ask("traceViewer.painter.t(600)")
    browser.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    fingers("Start", 600)
    fingers("Start", 600, 800)
    for step in range(1, 6):
        fingers("Move", 600, 800 + step * 40)
    fingers("End")
    after = browser.ask(view)
    check(abs((after[1] - after[0]) / (before[1] - before[0]) - 0.5) < 0.02, f"two fingers: {before} {after}")
    check(abs(browser.ask("traceViewer.painter.t(600)") - held) < (after[1] - after[0]) / 200, "the held time moved")
    browser.ask("new Promise((done) => setTimeout(done, 50))")
    fingers("Start", 700)
    for step in range(1, 6):
        fingers("Move", 700 - step * 20)
    fingers("End")
    moved = browser.ask(view)
    check(moved[0] > after[0] and abs(moved[1] - moved[0] - after[1] + after[0]) < 1, f"one finger: {after} {moved}")
    fingers("Start", 500)
    browser.ask("new Promise((done) => setTimeout(done, 600))")
    for step in range(1, 6):
        fingers("Move", 500 + step * 40)
    fingers("End")
    check(browser.ask("traceViewer.selection !== null && traceViewer.selection.to > traceViewer.selection.from"), "a held finger")
    equal(browser.ask(view), moved, "the view while a finger selects")
    browser.call("Emulation.setTouchEmulationEnabled", enabled=False)
    for _ in range(10):
        browser.mouse("Wheel", 700, y, deltaX=0, deltaY=-5.5, modifiers=2)
    browser.frame()
    pinched = browser.ask(view)
    check((pinched[1] - pinched[0]) / (moved[1] - moved[0]) < 0.7, f"a trackpad: {moved} {pinched}")
    equal(browser.said, [], "the browser complains")


# The browser scrolls on for a moment.
RESTED = """new Promise((done) => { let last = -1; const look = () => { const {top} = traceViewer.panel;
    if (top === last) return done(1);
    last = top;
    return setTimeout(look, 100); }; look(); })"""


def a_phone(test, browser):
    """On a phone a finger scrolls the rows, and selects nothing; two fingers zoom the picture, not the page."""
    browser.open(page_with(test, LINES + "".join(mark(0, 6000 + n, ("many", 1000 + n), f"I|{1000 + n}|x") for n in range(90))))
    browser.resize(390, 844, True)
    browser.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    state = """(({painter, panel, mark, selection}) => [[painter.from, painter.to],
        [panel.top, visualViewport.scale, visualViewport.offsetTop, mark, selection]])(traceViewer)"""

    def fingers(kind, *places):
        browser.call("Input.dispatchTouchEvent", type=f"touch{kind}",
                     touchPoints=[{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(places)])
        browser.frame()

    try:
        view, rest = browser.ask(state)
        fingers("Start", (250, 600))
        for step in range(1, 16):
            fingers("Move", (250 + step // 4, 600 - 20 * step))
        fingers("End")
        browser.ask(RESTED)
        scrolled = browser.ask(state)
        check(scrolled[1][0] > 200 and scrolled[0] == view and scrolled[1][1:] == rest[1:], f"a finger upwards: {view} {rest} {scrolled}")
        for canvas, y, slope in (("scroll canvas", 300, 0.5), ("head", 25, 0.05)):
            y += browser.ask(f"document.querySelector('#{canvas}').getBoundingClientRect().top")
            view, rest = browser.ask(state)
            fingers("Start", (220, y))
            fingers("Start", (220, y), (260, y + 10))
            for step in range(1, 11):
                fingers("Move", (220 - 8 * step, y - 8 * slope * step), (260 + 8 * step, y + 10 + 8 * slope * step))
            fingers("End")
            now = browser.ask(state)
            check(abs((now[0][1] - now[0][0]) / (view[1] - view[0]) - 0.2) < 0.02, f"two fingers on {canvas}: {view} {now[0]}")
            equal(now[1], rest, f"the page after two fingers on {canvas}")
    finally:
        browser.call("Emulation.setTouchEmulationEnabled", enabled=False)
        browser.resize(1400, 900)
    equal(browser.said, [], "the browser complains")


PAINTED = """(() => { const p = traceViewer.painter, c = p.context, seen = [];
    const fillText = c.fillText;
    c.fillText = (text, x, y, most) => { seen.push([text, x, Math.min(c.measureText(text).width, most || 1e9)]);
        fillText.call(c, text, x, y); };
    p.paint(0, {});
    delete c.fillText;
    return seen; })()"""


def named(name, tid=200):
    return {"name": "thread_name", "ph": "M", "cat": "__metadata", "pid": 200, "tid": tid, "args": {"name": name}}


def languages(test, browser):
    """Names of other languages are whole, or cut between letters, and in their place."""
    for language, name in NAMES.items():
        for text in (name, name * 20):
            browser.open(page_with(test, LINES, [*ELEMENTS, named(text)]))
            drawn = [d for d in browser.ask(PAINTED) if d[0][:2] == text[:2]]
            check(drawn, f"{language}: not drawn")
            for shown, x, width in drawn:
                check(x + width <= 230 or x > 230, f"{language}: '{shown}' is {width} wide at {x}")
                whole = shown == f"{text} 200"
                check(whole or (shown.endswith("…") and text.startswith(shown[:-1]) and len(shown) > 8),
                      f"{language}: '{shown}'")
            check(text != name or any(d[0] == f"{name} 200" for d in drawn), f"{language}: not whole: {drawn}")
    equal(browser.said, [], "the browser complains")


HOSTILE = {
    "markup": "</script><script>window.hostile = 1</script><img src=x onerror='window.hostile = 1'><!--",
    "turned": "safe\u202etxt.exe\u202c\u2066\u200b",
    "long": "x" * 65536,
    "long, of two halves": "𝒳" * 32768,
    "control": "a\x01\x1b[31m\x7fb",
    "half a letter": "\ud800half",
    "object": "__proto__",
    "empty": "",
}


def hostile_names(test, browser):
    """Names of threads, processes, slices and arguments can neither act, nor hide, nor stop the page."""
    for kind, name in HOSTILE.items():
        elements = [*ELEMENTS, named(name), {**named(name), "name": "process_name"},
                    {"name": name, "ph": "X", "cat": name, "pid": 200, "tid": 200, "ts": 100005600, "dur": 300, "args": {name: name}},
                    {"name": name, "ph": "C", "cat": "x", "pid": 200, "tid": 200, "ts": 100005600, "args": {name: 3}},
                    {"name": name, "ph": "b", "cat": name, "pid": 200, "tid": 200, "ts": 100005600, "id": "0x1"}]
        path = page_with(test, LINES, [])
        page = path.read_text().replace('"traceEvents":[\n', '"traceEvents":[\n' + spell(elements))
        path.write_text(page)
        browser.open(path)
        browser.ask("traceViewer.goToThread(200)")
        browser.click(*place_of(browser, 200, 5700, 7 + 8))
        browser.ask("traceViewer.goToRun(200, 5.5e6)")
        browser.mouse("Moved", *place_of(browser, 200, 5700, 7 + 8))
        browser.frame()
        browser.ask(f"traceViewer.finder.find({spell_text(name[:50] or 'app')})")
        browser.ask("traceViewer.select({...traceViewer.whole, top: 0, bottom: 1e9})")
        check(not browser.ask("window.hostile || document.querySelector('img, #error') || document.scripts.length > 3"), f"{kind}: it acted")
        texts = browser.ask("document.body.innerText") + "".join(str(d[0]) for d in browser.ask(PAINTED))
        check(not re.search("[\u0001-\u0008\u001b\u007f\u200b\u202a-\u202e\u2066-\u2069]", texts), f"{kind}: it is not spelled")
        check(browser.ask("document.documentElement.scrollWidth <= innerWidth"), f"{kind}: the page is wider than the window")
        if isinstance(browser, Browser):
            cost = browser.frames("traceViewer.zoom(n % 2 ? 1.02 : 1 / 1.02, 900)", 10)[0]
            check(cost < 16, f"{kind}: a frame takes {cost} ms")
        equal(browser.said, [], f"{kind}: the browser complains")


def spell_text(text):
    return '"' + "".join(c if " " <= c <= "~" and c not in '"\\<' else "".join(f"\\u{u:04x}" for u in units(c)) for c in text) + '"'


def units(c):
    data = c.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[i:i + 2], "big") for i in range(0, len(data), 2)]


def spell(value):
    """JSON, as the page has it: one element per line, "<" spelled."""
    def put(v):
        if isinstance(v, dict):
            return "{" + ",".join(f"{spell_text(k)}:{put(x)}" for k, x in v.items()) + "}"
        return spell_text(v) if isinstance(v, str) else str(v)
    return ",\n".join(map(put, value))


def cut_in_the_middle(test, browser):
    """Cut anywhere, even within a letter or a long name, the page shows what is left, and says so."""
    elements = [*ELEMENTS, named("数据" * 5000), named("</script>", 300)]
    path = page_with(test, LINES, elements)
    whole = path.read_bytes()
    begin = whole.index(TEXT.encode()) + len(TEXT)
    for i in range(24):
        at = begin + 200 + (len(whole) - begin - 700) * i // 23 + i % 3
        path.write_bytes(whole[:at])
        browser.open(path)
        check("was cut" in browser.ask("document.querySelector('.about').innerText"), f"cut at {at}: it does not say so")
        check(browser.ask("traceViewer.rows.all.length > 0 && !document.querySelector('#error')"), f"cut at {at}: not shown")
        equal(browser.said, [], f"cut at {at}: the browser complains")


def errors(test, browser):
    """An error is shown in the page."""
    browser.open(page_with(test))
    browser.ask("traceViewer.painter.paint = () => { throw new Error('no <paint>'); }, traceViewer.dirty()")
    browser.frame()
    check("no <paint>" in browser.ask("document.querySelector('#error').innerText"), "an error of a frame is not shown")
    browser.ask("document.querySelector('#error').click()")
    check(not browser.ask("document.querySelector('#error')"), "a click does not close the error")
    path = page_with(test)
    path.write_text(path.read_text().replace('"traceEvents":[', '"traceEvents":[\n{"name":{},"ph":[],"ts":"x","args":7},\n{"ph":"X"},'))
    browser.open(path)
    check(browser.ask("traceViewer.rows.all.length > 3"), "damaged elements stop the page")


def help_and_keys(test, browser):
    """The help lists each key and colour; it opens by ? and closes by Escape."""
    browser.open(page_with(test))
    browser.key("?")
    text = browser.ask("traceViewer.help.open && traceViewer.help.innerText")
    for word in ("W S", "[ ]", "follow", "Esc", "wheel", "touch", "runnable", "blocked", "events are lost"):
        check(word in text, f"'{word}' is not in the help: {text}")
    listed = browser.ask("[...traceViewer.input.actions.keys()]")
    described = browser.ask("[...traceViewer.help.querySelectorAll('kbd, button')].map((k) => k.innerText).join(' ')").lower().split()
    spelled = {"arrowleft": "←", "arrowright": "→", "escape": "esc"}
    for key in listed:
        check(spelled.get(key, key).lower() in described, f"key {key} is not in the help: {described}")
    browser.ask("traceViewer.help.close()")
    # A screen without keys has the help's buttons.
    span = "traceViewer.painter.to - traceViewer.painter.from"
    for name, done in (("m", "traceViewer.moments.all.length === 1"), ("v", "Boolean(traceViewer.sums)"),
                       ("Esc", "traceViewer.selection === null"), ("/", "document.activeElement.type === 'search'"),
                       ("0", f"{span} === traceViewer.whole.to - traceViewer.whole.from")):
        browser.ask("traceViewer.show(5e6, 6e6), traceViewer.help.showModal()")
        browser.ask(f"[...traceViewer.help.querySelectorAll('button')].find((b) => b.innerText === '{name}').click()")
        settled(f"the help's button {name}", lambda done=done: browser.ask(done))
        check(not browser.ask("traceViewer.help.open"), f"the help is open after its button {name}")
    for name, word, key in (("f", "follow", 1), ("F", "follow", -1), ("[", "toWaker", None), ("]", "back", None)):
        browser.ask(f"window.called = 'no', traceViewer.walk.{word} = (way = null) => (window.called = way)")
        browser.ask(f"[...traceViewer.help.querySelectorAll('button')].find((b) => b.innerText === '{name}').click()")
        equal(browser.ask("window.called"), key, f"the help's button {name}")
    equal(browser.said, [], "the browser complains")


def policy(test, browser):
    """The policy allows the page's script and style, by their hashes, and nothing else."""
    path = page_with(test)
    page = path.read_text()
    text, = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.split(None, 1) for rule in text.split("; "))
    equal(rules["default-src"], "'none'", "default-src")
    equal([rules["base-uri"], rules["form-action"]], ["'none'", "'none'"], "base-uri, form-action")
    check("unsafe" not in text and "http" not in text and "*" not in text, text)
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        inside = page[page.index(f"<{tag}>") + len(tag) + 2:page.index(f"</{tag}>")]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        equal(rules[rule], f"'sha256-{digest}'", rule)
    size = page.index("  <script class=")
    check(size < 200_000, f"the page without data has {size} characters")
    path.write_text(page.replace("<body>", "<body><script>window.foreign = 1</script><p onclick='window.foreign = 1'>"))
    browser.open(path)
    browser.ask("document.querySelector('p').click()")
    check(not browser.ask("window.foreign"), "a foreign script ran")
    if isinstance(browser, Browser):
        check(any("Content Security Policy" in line for line in browser.said), f"the browser says nothing of it: {browser.said}")
    # Without a policy it would be loaded: it needs no network.
    equal(browser.ask("fetch('data:,x').then(() => 'loaded', () => 'refused')"), "refused", "a request")


def readers(test, browser):
    """Screen readers get names for all controls, and the threads as a table."""
    browser.open(page_with(test))
    rows = browser.ask("[...document.querySelectorAll('.read table')[1].rows].map((r) => [...r.cells].map((c) => c.innerText))")
    equal(rows[:2], [["thread", "ran", "runnable", "longest delay"], ["hog 400", "5 ms", "2 ms", "2 ms"]], "threads")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    value = lambda node, key: node.get(key, {}).get("value", "")
    seen = [(value(n, "role"), value(n, "name")) for n in nodes if not n.get("ignored")]
    for role, name in (("image", "overview and ruler"), ("columnheader", "longest delay"), ("button", "blank rows")):
        check((role, name) in seen, f"no {role} '{name}' among {seen}")
    unnamed = [s for s in seen if s[0] in ("button", "searchbox", "combobox", "image", "table") and not s[1]]
    check(not unnamed, f"controls without a name: {unnamed}")


# Fingers, phones and the tree for screen readers need Chromium's protocol. Firefox hides from a page what a test throws.
CASES = [colours, ruler, hover, languages, hostile_names, cut_in_the_middle, help_and_keys, policy]

if __name__ == "__main__":
    run_cases("form", [*CASES, errors, sizes, touch, pins_to_touch, a_phone, readers])
