#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""keys.py BUILD_DIRECTORY [CASE...]: the keys of the page of a trace and the controls of its flame graph do what
docs/html.md and the page's help say; in Chromium without a screen; 77 where there is none. in_firefox.py runs it, too."""

import collections
import json

from answers import details, mark_of, page_with, place_of
from browser import run_cases
from sums import select, with_samples
from viewer import equal

from harness import check

VIEW = "[traceViewer.painter.from, traceViewer.painter.to]"


def view(browser):
    return browser.ask(VIEW)


def middle_third(browser):
    browser.ask("(({firstTime: a, lastTime: b}) => traceViewer.show(a + (b - a) / 3, b - (b - a) / 3))(traceViewer.model)")
    browser.frame()
    return view(browser)


def hold(browser, key, **how):
    """Holds a key for a few frames. Returns the view before and after; at last it must not move."""
    before = view(browser)
    browser.key(key, up=False, **how)
    for _ in range(6):
        browser.frame()
    browser.key(key, down=False, **how)
    browser.frame()
    after = view(browser)
    browser.frame()
    equal(view(browser), after, f"the view after {key} was released")
    return before, after


def held_keys(test, browser):
    """W and S zoom at the pointer, A and D move left and right, as long as they are held; capitals do the same."""
    browser.open(page_with(test))
    for zooms_in, zooms_out, left, right, how in (("w", "s", "a", "d", {}), ("W", "S", "A", "D", {"shift": True})):
        middle_third(browser)
        x, y = place_of(browser, 200, 5000)
        browser.mouse("Moved", x, y)
        browser.frame()
        held = browser.ask(f"traceViewer.painter.t(traceViewer.hover.pointer.x)")
        before, after = hold(browser, zooms_in, **how)
        check(after[1] - after[0] < (before[1] - before[0]) * 0.99, f"{zooms_in}: {before} {after}")
        before, after = hold(browser, zooms_out, **how)
        check(after[1] - after[0] > (before[1] - before[0]) * 1.01, f"{zooms_out}: {before} {after}")
        is_ = browser.ask(f"traceViewer.painter.t(traceViewer.hover.pointer.x)")
        check(abs(is_ - held) < (after[1] - after[0]) / 1000, f"the time at the pointer was {held}, is {is_}")
        middle_third(browser)
        for key, way in ((left, -1), (right, 1)):
            before, after = hold(browser, key, **how)
            moved = [(b - a) * way for a, b in zip(before, after)]
            check(moved[0] > 0 and abs(moved[0] - moved[1]) < 1, f"{key}: {before} {after}")
    # A text field takes letters.
    before = view(browser)
    browser.key("/")
    hold(browser, "d")
    equal(view(browser), before, "the view while the search is typed")
    equal(browser.said, [], "the browser complains")


def arrow_keys(test, browser):
    """They move left and right by a step, and end at the trace's edges."""
    browser.open(page_with(test))
    from_, to = middle_third(browser)
    for key, way in (("ArrowLeft", -1), ("ArrowRight", 1), ("ArrowRight", 1)):
        before = view(browser)
        browser.key(key)
        browser.frame()
        steps = [(b - a) / (to - from_) * way for a, b in zip(before, view(browser))]
        check(all(abs(step - 0.15) < 1e-6 for step in steps), f"{key}: by {steps} of the view")
    for key, edge in (("ArrowLeft", "from"), ("ArrowRight", "to")):
        for _ in range(20):
            browser.key(key)
        browser.frame()
        at, end = browser.ask(f"[traceViewer.painter.{edge}, traceViewer.whole.{edge}]")
        check(abs(at - end) < 1 and abs(view(browser)[1] - view(browser)[0] - to + from_) < 1, f"{key}: {edge} {at}, not {end}")
    equal(browser.said, [], "the browser complains")


def shift_f(test, browser):
    """F goes to the thread's next run, Shift F to its previous one."""
    browser.open(page_with(test))
    browser.click(*place_of(browser, 400, 7500))
    equal(mark_of(browser), ["state", "hog 400", 7000], "the second run")
    browser.key("F", shift=True)
    equal(mark_of(browser), ["state", "hog 400", 1000], "Shift F goes to the first run")
    browser.key("F", shift=True)
    check("no earlier run" in details(browser), f"before the first run: {details(browser)}")
    browser.key("f")
    equal(mark_of(browser), ["state", "hog 400", 7000], "f goes back")
    equal(browser.said, [], "the browser complains")


SELECTED = "(({selection, mark, arrows, details}) => [Boolean(selection), Boolean(mark), arrows.length, details.hidden])(traceViewer)"


def escape(test, browser):
    """Escape clears the selection. In the search, in the filter and in the help it leaves these alone."""
    browser.open(page_with(test))
    browser.click(*place_of(browser, 200, 4000))
    equal(browser.ask(SELECTED), [False, True, 1, False], "a state is selected")
    browser.key("Escape")
    equal(browser.ask(SELECTED), [False, False, 0, True], "Escape after a click")
    x, y = place_of(browser, 200, 2000)
    browser.drag(x, y, x + 200, y)
    equal(browser.ask(SELECTED), [True, False, 0, False], "a time is selected")
    for key, is_left in (("/", "document.activeElement === traceViewer.scroll && traceViewer.finder.list.hidden"),
                         ("r", "document.activeElement === traceViewer.scroll"), ("?", "!traceViewer.help.open")):
        browser.key(key)
        browser.frame()
        check(not browser.ask(is_left), f"{key} has no effect")
        browser.key("Escape")
        browser.frame()
        check(browser.ask(is_left), f"Escape does not leave what {key} showed")
        equal(browser.ask(SELECTED)[0], True, f"the selection after Escape in what {key} showed")
    browser.key("Escape")
    equal(browser.ask(SELECTED), [False, False, 0, True], "Escape after a drag")
    equal(browser.said, [], "the browser complains")


def z_and_0(test, browser):
    """Z zooms to the selection, or to the selected item; 0 shows the whole trace."""
    browser.open(page_with(test))
    x, y = place_of(browser, 200, 2000)
    browser.drag(x, y, x + 200, y)
    for what in ("selection", "mark"):
        from_, to = browser.ask(f"[traceViewer.{what}.from, traceViewer.{what}.to]")
        browser.key("z")
        is_ = view(browser)
        check(is_[0] < from_ < to < is_[1] and is_[1] - is_[0] < (to - from_) * 1.2, f"z: {is_} for {what} {from_} to {to}")
        browser.key("0")
        whole = browser.ask("[traceViewer.whole.from, traceViewer.whole.to]")
        equal(view(browser), whole, "0")
        browser.click(*place_of(browser, 400, 7500))
    equal(browser.said, [], "the browser complains")


def copied_link(test, browser):
    """C copies a link to what is seen, and says so; if it may not, the link is in the address."""
    browser.open(page_with(test))
    browser.clipboard()
    middle_third(browser)
    browser.key("c")
    browser.ask("new Promise((done) => setTimeout(done, 200))")
    equal(browser.ask("[traceViewer.moments.toast.innerText, traceViewer.moments.toast.hidden]"), ["the link to this view is copied", False], "it says")
    link = browser.clipboard()
    first = browser.ask("traceViewer.model.firstTime")
    spelled = ",".join(str(round(t - first)) for t in view(browser))
    check(link.startswith("file://") and link.endswith(f"/x.html#v={spelled}"), f"{link}, not {spelled}")
    equal(browser.ask("location.href"), link, "the address")
    browser.ask("Object.defineProperty(navigator, 'clipboard', {value: {writeText: () => Promise.reject(new Error())}}), 0")
    browser.key("ArrowRight")
    browser.key("c")
    browser.ask("new Promise((done) => setTimeout(done, 50))")
    check("in the address bar" in browser.ask("traceViewer.moments.toast.innerText"), "it does not say that the link is not copied")
    check(browser.ask("location.href") != link, "the address is the one before")
    equal(browser.said, [], "the browser complains")


def picture_of_moments(test, browser):
    """Moments' names and times are a line at the top of the picture that P saves."""
    browser.open(page_with(test))
    size = "(({width, height}) => [width, height])(traceViewer.moments.picture())"
    canvases = "(traceViewer.panel.canvas.height + traceViewer.head.canvas.height)"
    equal(browser.ask(size)[1], browser.ask(canvases), "the height without moments")
    browser.ask("(({moments, model}) => { for (const [name, ms] of [['A', 1], ['B', 4]])"
                " moments.all.push({t: model.firstTime + ms * 1e6, name}); moments.change(); })(traceViewer)")
    browser.frame()
    equal(browser.ask(f"[{canvases} / traceViewer.painter.ratio, traceViewer.moments.words()]"),
          [browser.ask(size)[1] / browser.ask("traceViewer.painter.ratio") - 22, "A: 1 ms   + 3 ms   B: 4 ms"], "the line")
    texts = browser.ask("""(() => { const {prototype} = CanvasRenderingContext2D, {fillText} = prototype, seen = [];
        prototype.fillText = function (text, x, y) { if (this.canvas !== traceViewer.canvas && y === 11) seen.push(text); };
        traceViewer.moments.picture(); prototype.fillText = fillText; return seen; })()""")
    check("A: 1 ms   + 3 ms   B: 4 ms" in texts, f"the picture's texts: {texts}")
    equal(browser.said, [], "the browser complains")


FLAME = "traceViewer.sumsView.flame"
TOP_LEVEL = f"{FLAME}.root.sorted.map(({{name, total}}) => [name, total])"


def press(browser, element):
    """A click of the mouse on an element that a script returns."""
    x, y = browser.ask(f"""(() => {{ const e = {element}; e.scrollIntoView({{block: 'nearest'}});
        const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + Math.min(r.height, 18) / 2]; }})()""")
    browser.click(x, y)
    browser.frame()


def button(text):
    return f"[...document.querySelectorAll('#details button')].find((b) => b.innerText.startsWith('{text}'))"


def choose(browser, label, value):
    browser.ask(f"((select) => {{ select.value = '{value}'; select.dispatchEvent(new Event('change')); }})"
                f"(document.querySelector('.flame select[aria-label={label}]'))")
    browser.frame()


def widest(browser, depth):
    """The widest function of that depth: where it is in the window, its name and its weight."""
    return browser.ask(f"""(() => {{ {FLAME}.canvas.scrollIntoView({{block: 'nearest'}});
        const d = {FLAME}.drawn.filter((d) => d.node.depth === {depth}).sort((a, b) => b.width - a.width)[0];
        const box = {FLAME}.canvas.getBoundingClientRect();
        return [box.x + d.x + d.width / 2, box.y + d.y + 9, d.node.name, d.node.total]; }})()""")


def flame_controls(test, browser):
    """The search, invert, groups, kinds and the zoom, by clicks and letters."""
    samples, frames, _ = with_samples(test)
    browser.open(test.dir / "m.html")
    select(browser)
    press(browser, button("samples ("))
    check(browser.ask(f"{FLAME}.element.clientWidth > 0 && {FLAME}.drawn.length > 30"), "the flame graph is not shown")
    weights = sum(s["weight"] for s in samples)
    ends = collections.Counter()
    for s in samples:
        ends[frames[s["sf"]]["name"], frames[s["sf"]]["category"]] += s["weight"]
    # Inverted, the sampled functions come first.
    press(browser, button("invert"))
    equal(browser.ask(f"document.querySelector('.flame button').getAttribute('aria-pressed')"), "true", "invert is pressed")
    equal(sorted(total for _, total in browser.ask(TOP_LEVEL)), sorted(ends.values()), "sums of the sampled functions")
    # A click zooms in, until "whole graph" or another choice.
    for leave in (button("whole graph"), button("invert")):
        x, y, name, _ = widest(browser, 1)
        browser.click(x, y)
        browser.frame()
        equal(browser.ask(f"[{FLAME}.zoomed.name, {FLAME}.back.hidden]"), [name, False], "zoomed in")
        equal(browser.ask(f"{FLAME}.drawn.find((d) => d.node === {FLAME}.zoomed).width"), browser.ask(f"{FLAME}.element.clientWidth"), "its width")
        for is_dark in (True, False):
            browser.dark(is_dark)
            browser.frame()
            equal(browser.ask(f"[{FLAME}.zoomed.name, {FLAME}.dark]"), [name, is_dark], "the zoom in another theme")
        press(browser, leave)
        equal(browser.ask(f"[{FLAME}.zoomed, {FLAME}.back.hidden]"), [None, True], f"zoomed out by {leave}")
    equal(browser.ask(f"document.querySelector('.flame button').getAttribute('aria-pressed')"), "false", "invert is not pressed")
    # By thread, by CPU.
    cpus = collections.Counter()
    for s in samples:
        cpus[f"CPU {s['cpu']}"] += s["weight"]
    choose(browser, "groups", "cpu")
    equal(dict(browser.ask(TOP_LEVEL)), cpus, "by CPU")
    choose(browser, "groups", "thread")
    threads = collections.Counter()
    for s in json.loads((test.dir / "m.json").read_text())["samples"]:
        threads[s["tid"]] += s["weight"]
    equal({int(name.rsplit(" ", 1)[1]): total for name, total in browser.ask(TOP_LEVEL)}, threads, "by thread")
    choose(browser, "groups", "")
    # The kernel's frames or the programs' alone.
    for kind, is_kernel in (("kernel", True), ("user", False)):
        choose(browser, "stacks", kind)
        wrong = browser.ask(f"(() => {{ const walk = (n) => [...n.sorted.map((c) => c.module === '[kernel]'), ...n.sorted.flatMap(walk)]; "
                            f"return walk({FLAME}.root).filter((is) => is !== {json.dumps(is_kernel)}).length; }})()")
        check(wrong == 0 and browser.ask(f"{FLAME}.root.sorted.length") > 0, f"{kind}: {wrong} others")
    choose(browser, "stacks", "all")
    # The search colours matches and tells their share; a function of the list below is searched.
    press(browser, f"{FLAME}.input")
    browser.type("f1")
    browser.frame()
    check(browser.ask(f"document.activeElement === {FLAME}.input && {FLAME}.query === 'f1'"), "the letters do not arrive")
    colours = browser.ask(f"[true, false].map((is) => [...new Set({FLAME}.drawn.filter(({{node}}) => {FLAME}.matches(node) === is)"
                          f".map(({{node}}) => {FLAME}.color(node)))])")
    check(len(colours[0]) == 1 and colours[0][0] not in colours[1], f"colours of matches {colours[0]}, of others {colours[1]}")
    name = browser.ask(f"{FLAME}.list.querySelector('td button').innerText")
    press(browser, f"{FLAME}.list.querySelector('td button')")
    with_it = sum(s["weight"] for s in samples if name in names_of(s, frames))
    equal(browser.ask(f"{FLAME}.input.value"), name, "the search for a function of the list")
    check(f"({with_it / weights * 100:.1f} %)" in browser.ask(f"{FLAME}.found.textContent"),
          f"{name}: {browser.ask(f'{FLAME}.found.textContent')}, not {with_it} of {weights}")
    equal(browser.said, [], "the browser complains")


def names_of(sample, frames):
    """All names in a sample's stack that a search would compare."""
    text, frame = "", sample["sf"]
    while frame:
        text += frames[frame]["name"].lower() + "\n"
        frame = frames[frame].get("parent")
    return text


CASES = [held_keys, arrow_keys, shift_f, escape, z_and_0, copied_link, picture_of_moments, flame_controls]

if __name__ == "__main__":
    run_cases("keys", CASES)
