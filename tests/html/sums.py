#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sums.py BUILD_DIRECTORY [CASE...]: sums, samples and moments in the page of a trace, compared with what tracectl says
of the same recording; in Chromium without a screen; 77 where there is none. in_firefox.py runs it, too."""

import base64
import collections
import contextlib
import gzip
import json
import math
import random
import re
import shutil
import subprocess

from browser import Browser, run_cases
from harness import Failure, check
from viewer import LINES, equal, page_of, page_with

WHOLE = "{...traceViewer.whole, top: 0, bottom: 1e9}"
# The text has microseconds, reports have nanoseconds.
ROUNDING = 2000


def select(browser, what=WHOLE):
    browser.ask(f"(async () => {{ await traceViewer.select({what}); }})()")


def samples_file(test, tids, first_us, last_us):
    """A JSON with samples of random stacks; some functions are the kernel's."""
    rng = random.Random(3)
    frames, paths, parents = {}, [], [None]
    for i in range(60):
        parent = rng.choice(parents)
        name = f"f{rng.randrange(12)}" + ("; <b>" if i == 7 else "")
        frames[str(i)] = {"name": name, "category": rng.choice(["[kernel]", "app", "libc.so.6"]),
                          **({"parent": parent} if parent else {})}
        parents.append(str(i))
    samples = []
    for _ in range(3000):
        samples.append({"cpu": rng.randrange(2), "tid": rng.choice(tids), "ts": rng.uniform(first_us, last_us), "name": "cpu-clock",
                        "sf": str(rng.randrange(60)), "weight": rng.choice([1000, 2500, 7])})
    samples.sort(key=lambda s: s["ts"])
    path = test.dir / "samples.json"
    path.write_text(json.dumps({"traceEvents": [], "samples": samples, "stackFrames": frames}))
    return path, samples, frames


def recording(test, count=20000):
    subprocess.run([test.build / "tests/unit/generate", "mixed", str(count), test.dir / "x.traced"], check=True)


def convert(test, *arguments):
    r = test.run("convert", "-q", *arguments)
    check(r.status == 0, r)


def paths_of_tree(browser, options):
    """Sums of a flame graph's stacks, without the task."""
    sums = collections.Counter()
    for path, n in browser.ask(f"""(() => {{ const out = [];
        const walk = (node, path) => {{ if (node.self) out.push([path.join(';'), node.self]);
            for (const child of node.children.values()) walk(child, [...path, child.name.replace(/;/g, ':')]); }};
        walk(traceViewer.sums.samples.tree({json.dumps(options)}), []); return out; }})()"""):
        sums[path] += n
    return sums


def with_samples(test):
    """Makes m.html, m.json and m.folded of a recording with samples; returns these, their frames, and their threads."""
    recording(test)
    convert(test, "x.traced", "x.json")
    trace = json.loads((test.dir / "x.json").read_text())
    tids = sorted({int(t) for t in re.findall(r"next_pid=(\d+)", trace["systemTraceEvents"])} - {0})[:5]
    times = [float(t) * 1e6 for t in re.findall(r" (\d+\.\d{6}): ", trace["systemTraceEvents"])]
    path, samples, frames = samples_file(test, tids, min(times), max(times))
    merge = ["--merge", str(path), "--merge-clock", "boottime"]
    for name in ("m.html", "m.folded", "m.json"):
        convert(test, *merge, "x.traced", name)
    return samples, frames, tids


def flame_graph(test, browser):
    """The flame graph's sums are those of the folded stacks."""
    samples, frames, tids = with_samples(test)
    folded, tasks = collections.Counter(), collections.Counter()
    for line in (test.dir / "m.folded").read_text().splitlines():
        stack, n = line.rsplit(" ", 1)
        task, stack = stack.split(";", 1)
        folded[stack] += int(n)
        tasks[task] += int(n)
    weights = sum(s["weight"] for s in samples)
    equal(sum(folded.values()), weights, "the folded stacks' sum")
    browser.open(test.dir / "m.html")
    select(browser)
    equal(browser.ask("traceViewer.sums.samples.count"), len(samples), "samples")
    equal(paths_of_tree(browser, {}), folded, "stacks")
    inverted = paths_of_tree(browser, {"invert": True})
    equal(sum(inverted.values()), weights, "the sum from the sampled functions")
    equal({";".join(reversed(stack.split(";"))): n for stack, n in inverted.items()}, folded, "stacks from their ends")
    groups = browser.ask("""[...traceViewer.sums.samples.tree({by: 'thread'}).children.values()].map((n) => [n.name, n.total])""")
    names = collections.Counter()
    for label, n in groups:
        names[label.rsplit(" ", 1)[0]] += n
    equal(names, tasks, "by thread")
    groups = dict(browser.ask("[...traceViewer.sums.samples.tree({by: 'cpu'}).children.values()].map((n) => [n.name, n.total])"))
    equal(groups, {f"CPU {c}": sum(s["weight"] for s in samples if s["cpu"] == c) for c in (0, 1)}, "by CPU")
    kinds = [sum(paths_of_tree(browser, {"kind": kind}).values()) for kind in ("kernel", "user")]
    check(all(0 < n < weights for n in kinds) and sum(kinds) >= weights, f"{kinds} of {weights}")
    alone = collections.Counter()
    for s in samples:
        alone[frames[s["sf"]]["name"]] += s["weight"]
    hottest = collections.Counter()
    for name, n in browser.ask("traceViewer.sums.samples.hottest().functions.map((f) => [f.name, f.self])"):
        hottest[name] += n
    equal(+hottest, +alone, "functions alone")
    drawn_and_searched(browser, weights)
    # A part of the samples: of one thread, and of a time.
    row, t = browser.ask(f"""(() => {{ const v = traceViewer, r = v.rows.reveal((r) => r.thread && r.thread.tid === {tids[0]});
        return [r.y, r.thread.samples.time.data[r.thread.samples.time.length >> 1]]; }})()""")
    base = browser.ask("traceViewer.model.base")
    select(browser, f"{{from: traceViewer.whole.from, to: {t}, top: {row + 1}, bottom: {row + 2}}}")
    mine = [s for s in json.loads((test.dir / "m.json").read_text())["samples"] if s["tid"] == tids[0] and s["ts"] * 1e3 - base * 1e9 <= t + 1]
    equal(browser.ask("traceViewer.sums.samples.count"), len(mine), "samples of a thread before a time")
    equal(browser.said, [], "the browser complains")


def drawn_and_searched(browser, weights):
    """The canvas shows it; a search names the share, a click zooms in, and a button zooms out."""
    flame = "traceViewer.sumsView.flame"
    browser.ask("traceViewer.sumsView.choose('samples')")
    browser.frame()
    drawn = browser.ask(f"{flame}.drawn.map((d) => [d.node.depth, d.x, d.width])")
    check(len(drawn) > 30 and drawn[0][1] == 0, f"{len(drawn)} functions are drawn")
    browser.ask(f"{flame}.input.value = 'f1', {flame}.input.dispatchEvent(new Event('input'))")
    found = browser.ask(f"{flame}.found.textContent")
    total = browser.ask("""traceViewer.sums.samples.groups.reduce((sum, g) => sum + [...g.frames].reduce((n, [f, s]) =>
        n + (traceViewer.model.frames.stack(f).some((i) => traceViewer.model.frames.name[i].includes('f1')) ? s.weight : 0), 0), 0)""")
    check(f"({total / weights * 100:.1f} %)" in found, f"{found}, not {total} of {weights}")
    x, y = browser.ask(f"""(() => {{ const d = {flame}.drawn.filter((d) => d.node.depth === 2).sort((a, b) => b.width - a.width)[0];
        const box = {flame}.canvas.getBoundingClientRect(); return [box.x + d.x + d.width / 2, box.y + d.y + 9]; }})()""")
    browser.click(x, y)
    equal(browser.ask(f"{flame}.zoomed.depth"), 2, "zoomed in")
    width = browser.ask(f"{flame}.drawn.find((d) => d.node === {flame}.zoomed).width")
    equal(width, browser.ask(f"{flame}.element.clientWidth"), "its width")
    browser.ask(f"{flame}.back.click()")
    equal(browser.ask(f"{flame}.zoomed"), None, "zoomed out")


def table(browser, name, label):
    """A table of the selection, by label: count, sum, p50, p99, longest, and the time of the longest."""
    rows = browser.ask(f"""[...traceViewer.sums.tables.{name}].map(([key, d]) => [({label})(key),
        [d.count, d.ns, d.quantile(0.5), d.quantile(0.99), d.max, d.at]])""")
    return {tuple(key) if isinstance(key, list) else key: row for key, row in rows}


def near(is_, should, what, rest=ROUNDING):
    check(abs(is_ - should) <= rest, f"{what}: {is_}, not {should}")


def same_as_report(browser, reports):
    """Each row of the reports has its like in the page's tables."""
    name = "(i) => traceViewer.model.names[i]"
    runs, delays = table(browser, "cpu", "(tid) => tid"), table(browser, "delays", "(tid) => tid")
    compared = collections.Counter()
    for row in reports["sched"]:
        # The report leaves out intervals at the edges, of which the page shows a part.
        if row["cut"] or row["open"] or not row["tid"]:
            continue
        near(runs[row["tid"]][1], row["runtime_ns"], f"run time of {row}", ROUNDING * row["runs"])
        compared["run time"] += 1
        delay = row["delay"]
        if not delay["count"]:
            continue
        count, ns, p50, p99, longest, at = delays[row["tid"]]
        equal(count, delay["count"], f"delays of {row}")
        near(ns, delay["sum_ns"], f"sum of delays of {row}", ROUNDING * count)
        near(longest, delay["max_ns"], f"longest delay of {row}")
        near(p50, delay["p50_ns"], f"p50 of {row}", ROUNDING + delay["p50_ns"] // 50)
        near(p99, delay["p99_ns"], f"p99 of {row}", ROUNDING + delay["p99_ns"] // 50)
        # The report's time is the delay's end, or that of another one as long.
        compared["delay"] += 1
    irqs = {re.sub(r"^(.*) \(irq (\d+)\)$", r"\2 \1", k): v for k, v in table(browser, "irqs", name).items()}
    for row in reports["irq"]:
        if row["cut"] or row["open"]:
            continue
        equal(irqs[row["name"]][0], row["count"], f"{row}")
        near(irqs[row["name"]][1], row["total_ns"], f"{row}", ROUNDING * row["count"])
        near(irqs[row["name"]][4], row["time"]["max_ns"], f"{row}")
        compared["irq"] += 1
    # If raw_syscalls and syscalls were recorded, the page has a row for each, with one name, and the report the first.
    calls = table(browser, "syscalls", f"(i) => [i, ({name})(i).replace(/^NR /, 'syscall_')]")
    for row in reports["syscalls"]:
        if row["cut"] or row["open"]:
            continue
        same = [found for (_, call), found in calls.items() if call == row["call"] and found[0] == row["calls"]
                and abs(found[4] - row["time"]["max_ns"]) <= ROUNDING and abs(found[1] - row["total_ns"]) <= ROUNDING * found[0]]
        check(same, f"{row} is not in {calls}")
        compared["system call"] += 1
    return compared


def sums_of_a_report(test, browser):
    """The sums of the whole trace are the report's."""
    recording(test)
    compared = collections.Counter()
    for capture in (*sorted((test.source / "tests/data").glob("*/mixed.traced.gz")), "x.traced"):
        convert(test, capture, "x.html")
        r = test.run("report", "--json", "--top", "1000", "sched,irq,syscalls", capture)
        check(r.status == 0, r)
        browser.open(test.dir / "x.html")
        browser.ask("traceViewer.selectView()")
        reports = {one["name"]: one["rows"] for one in json.loads(r.out)["reports"]}
        compared += same_as_report(browser, reports)
    check(len(compared) == 4 and min(compared.values()) > 10, f"compared {compared}")
    longest_leads_there(browser)
    equal(browser.said, [], "the browser complains")


def longest_leads_there(browser):
    """A click on the longest delay shows its place."""
    text = browser.ask("""(() => { const t = [...document.querySelectorAll('#details table')].find((t) => t.caption.innerText.includes('delay'));
        const b = t.querySelector('td button'); b.click(); return b.innerText; })()""")
    tid, at, longest = browser.ask("""(() => { const [tid, d] = [...traceViewer.sums.tables.delays].sort(([, a], [, b]) => b.ns - a.ns)[0];
        return [tid, d.at, d.max]; })()""")
    check(text == browser.ask(f"(() => {{ const n = {longest}; return n < 1e6 ? `${{+(n / 1e3).toFixed(3)}} µs` : `${{+(n / 1e6).toFixed(3)}} ms`; }})()"), text)
    place, view, row = browser.ask("""(() => { const v = traceViewer, p = v.painter;
        return [v.selection.from, [p.from, p.to], v.rows.at(v.selection.top).thread.tid]; })()""")
    near(place, at, "the place", 1)
    check(view[0] < at < view[1], f"{at} is not in view: {view}")
    equal(row, tid, "the row")


def moments(test, browser):
    """Moments are measured and named, and the address keeps them, the view and the selection."""
    page = page_with(test, LINES)
    browser.open(page)
    browser.ask("traceViewer.show(2e6, 9e6)")
    for t in ("3e6", "4.5e6"):
        x = browser.ask(f"traceViewer.painter.x({t})")
        browser.ask(f"traceViewer.point({{x: {x}, y: 30, pageX: {x}, pageY: 90}})")
        browser.key("m")
    bar = browser.ask("document.querySelector('#moments').innerText")
    check("+ 1.5 ms" in bar, f"between: {bar}")
    name = "größer, 100 % & <b>#</b>"
    browser.ask(f"(() => {{ const i = document.querySelector('#moments input'); i.value = {json.dumps(name)}; i.dispatchEvent(new Event('change')); }})()")
    select(browser, "{from: 3e6, to: 5e6, top: 20, bottom: 60}")
    if isinstance(browser, Browser):
        browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.key("c")
    browser.ask("new Promise((done) => setTimeout(done, 100))")
    says = browser.ask("traceViewer.moments.toast.innerText")
    check("link" in says, f"it says {says}")
    link = browser.ask("location.href")
    was = browser.ask(SEEN)
    equal([round(t) for t in was["view"]], [2000000, 9000000], "the view")
    # Without a load between, and with one.
    browser.leave()
    browser.open(link[len("file://"):])
    browser.ask("new Promise((done) => { const look = () => (traceViewer.sums ? done(1) : setTimeout(look, 10)); look(); })")
    now = browser.ask(SEEN)
    equal(now, was, "after a load of the link")
    equal(now["moments"][0][1], name, "the name")
    huge = "9" * 400
    for broken in ("#v=1&m=x,y&m=5&s=1,2", "#v=a,b&m=%E0%A4%A,%&s=9,1,1,1", f"#v=-{huge},{huge}&m={huge},x",
                   "#" + "&".join(["m=1,x"] * 9999)):
        browser.ask(f"location.hash = {json.dumps(broken)}, new Promise((done) => setTimeout(done, 50))")
        equal(browser.ask("[traceViewer.painter.from, traceViewer.painter.to].map(Number.isFinite)"), [True, True], broken[:50])
    equal(browser.ask("traceViewer.moments.all.length"), 26, "moments of a broken link")
    equal(browser.said, [], "the browser complains")


def link_to_pinned_rows(test, browser):
    """A link keeps the pinned rows, and a selection in them."""
    browser.open(page_with(test, LINES))
    browser.ask("(({rows}) => [rows.ofThread(202), rows.ofThread(200), rows.ofCpu(1)].forEach((row) => traceViewer.pin(row)))(traceViewer)")
    browser.frame()
    sums = "new Promise((done) => { const look = () => (traceViewer.sums ? done(1) : setTimeout(look, 10)); look(); })"
    seen = """(({pins, selection: s, details, sums}) => [pins.rows.all.map((row) => row.label), s && [s.list === pins.rows, s.top, s.bottom],
        details.innerText, sums && [...sums.tids]])(traceViewer)"""
    x, y, end = browser.ask("(({pins, painter}) => [painter.x(2e6), pins.canvas.getBoundingClientRect().top + pins.rows.all[1].y + 5, "
                            "painter.x(6e6)])(traceViewer)")
    browser.drag(x, y, end, y)
    browser.ask(sums)
    was = browser.ask(seen)
    equal([was[0], was[1][0], was[3]], [["app 202", "app 200", "CPU 1"], True, [200]], "what is selected")
    browser.key("c")
    browser.ask("new Promise((done) => setTimeout(done, 100))")
    link = browser.ask("location.href")
    browser.leave()
    browser.open(link[len("file://"):])
    browser.ask(sums)
    equal(browser.ask(seen), was, "after a load of the link")
    # Another link in the same page unpins them; a selection goes on with its row.
    browser.ask("traceViewer.moments.restore()")
    browser.ask("traceViewer.pin(traceViewer.rows.ofThread(202))")
    top = browser.ask("[traceViewer.selection.top, traceViewer.pins.rows.shown(traceViewer.rows.ofThread(200)).y]")
    equal(top[0], top[1], "the selection's place after a row above was unpinned")
    browser.ask("location.hash = '#v=0,1000&s=0,500,20,60', new Promise((done) => setTimeout(done, 50))")
    equal(browser.ask("(({pins, selection, rows}) => [pins.rows.all.length, selection.list === rows, rows.all.some((row) => row.pinned)])"
                      "(traceViewer)"), [0, True, False], "after a link without pinned rows")
    for broken in ("#k=-1,99999,1,1", "#k=x", "#k=" + ",".join(["1"] * 9999), "#s=1,2,3,4,5,6", "#s=1,2,3,4,1"):
        browser.ask(f"location.hash = {json.dumps(broken)}, new Promise((done) => setTimeout(done, 50))")
        check(browser.ask("traceViewer.pins.rows.all.length") < 2, f"pinned rows of {broken[:20]}")
    equal(browser.said, [], "the browser complains")
    browser.ask(f"location.hash = {json.dumps('#' + link.split('#')[1])}, new Promise((done) => setTimeout(done, 50))")
    browser.frame()
    # The rectangle is over the pinned row, and not over the row in the same place below.
    blue = browser.ask("""(({pins, panel, selection}) => { const x = pins.painter.x((selection.from + selection.to) / 2), y = selection.top + 1;
        const at = ({painter}) => painter.context.getImageData(x, y, 1, 1).data.join();
        const now = [pins, panel].map(at);
        traceViewer.selection = null; traceViewer.paint();
        return [pins, panel].map((one, i) => at(one) !== now[i]); })(traceViewer)""")
    equal(blue, [True, False], "whether the selection is painted")


SEEN = """(() => { const v = traceViewer, p = v.painter, s = v.selection, f = v.model.firstTime;
    const round = (t) => Math.round(t - f) + f;
    return {view: [p.from, p.to].map(round), moments: v.moments.all.map((m) => [round(m.t), m.name]),
        selection: s && [s.from, s.to, s.top, s.bottom].map(Math.round)}; })()"""


# A PNG against the canvases that the page shows below each other: both sizes, how many pixels differ, and the first heights.
SAME_PICTURE = """(async () => { const image = new Image();
    image.src = 'data:image/png;base64,%s'; await image.decode();
    const read = (of, width, height) => { const c = new OffscreenCanvas(width, height).getContext('2d');
        c.drawImage(of, 0, 0);
        return new Uint32Array(c.getImageData(0, 0, width, height).data.buffer); };
    const shown = [...document.querySelectorAll('canvas')].filter((c) => (c.closest('.rows') || c).clientHeight);
    const width = Math.max(...shown.map((c) => c.width)), saved = read(image, image.width, image.height), wrong = [];
    let y = 0;
    for (const canvas of shown) {
        read(canvas, width, canvas.height).forEach((word, i) => word === saved[y * width + i] || wrong.push(y + Math.floor(i / width)));
        y += canvas.height;
    }
    return [[image.width, image.height], [width, y], shown.length, wrong.length, wrong.slice(0, 9)]; })()"""


def saved_picture(test, browser):
    """The PNG that `p` saves."""
    folder = test.dir / "pictures"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    browser.download_to(folder)
    browser.key("p")
    # Chromium packs a picture when it has nothing else to do.
    for _ in range(600):
        # Firefox writes under another name first, which may go at any moment.
        with contextlib.suppress(FileNotFoundError):
            files = [path.read_bytes() for path in folder.iterdir()]
            if len(files) == 1 and files[0].startswith(b"\x89PNG") and files[0][-8:-4] == b"IEND":
                return files[0]
        browser.ask("new Promise((done) => setTimeout(done, 50))")
    raise Failure(f"no picture: {list(folder.iterdir())}")


def picture_of_the_view(test, browser):
    """`p` saves a PNG with the pixels of the page: of the overview, the pinned rows and the others."""
    browser.open(page_with(test, LINES))
    for pinned in (0, 3):
        browser.ask(f"Array.from({{length: {pinned}}}, (_, i) => traceViewer.pin(traceViewer.rows.all[2 * i + 1])), "
                    "traceViewer.moments.toast.hidden = true, 0")
        browser.frame()
        equal(browser.ask("traceViewer.pins.height > 0"), pinned > 0, "whether there are pinned rows")
        is_, should, canvases, *wrong = browser.ask(SAME_PICTURE % base64.b64encode(saved_picture(test, browser)).decode())
        equal([is_, canvases], [should, 3 if pinned else 2], f"size with {pinned} pinned rows")
        equal(wrong, [0, []], f"pixels with {pinned} pinned rows")
    equal(browser.said, [], "the browser complains")


def functions(test, browser):
    """A call's arguments and return value are told, also if the slice's end has the latter."""
    lines = [{"name": "outer", "ph": "B", "cat": "func", "args": {"arguments": {"fd": "3", "...": "?"}}, "ts": 100001000},
             {"name": "inner", "ph": "X", "cat": "func", "dur": 10, "args": {"ret": "0x5", "arguments": {"x": "1"}}, "ts": 100001100},
             {"name": "outer", "ph": "E", "args": {"ret": "-2"}, "ts": 100001500}]
    page = page_with(test, LINES)
    text = page.read_text()
    first = '{"name":"late","ph":"X"'
    more = ",\n".join(json.dumps({**line, "pid": 200, "tid": 204}, separators=(",", ":")) for line in lines)
    page.write_text(text.replace(first, f"{more},\n{first}"))
    browser.open(page)
    said = browser.ask("traceViewer.model.thread(204).nest.lanes.map((lane) => traceViewer.tools.tellElement(lane.ref.data[0]))")
    equal(said, ["func\narguments: fd = 3, ... = ?\nreturned -2", "func\nreturned 0x5\narguments: x = 1"], "what is told")
    browser.open(page_of(test, "7.2.13/graph-args.traced.gz", "args.html"))
    element = browser.ask("""(() => { const {model} = traceViewer; for (const nest of model.nests()) for (const lane of nest.lanes)
        for (let i = 0; i < lane.length; i++) { const e = lane.ref.data[i] < 0 && model.element(lane.ref.data[i]);
            if (e && e.name === 'do_sys_openat2') return traceViewer.tools.tellElement(lane.ref.data[i]); } })()""")
    check(re.search(r"^arguments: dfd = \d+, filename = 0x[0-9a-f]+, how = ", element, re.M), f"{element}")
    equal(browser.said, [], "the browser complains")


def plots(test, browser):
    """The bars of the report's histograms sum up to its counts; a row's click shows its own."""
    capture = test.source / "tests" / "data" / "6.12.107/mixed.traced.gz"
    convert(test, "--report", "sched,runq,irq", capture, "x.html")
    r = test.run("report", "--json", "--top", "1000", "sched,runq,irq", capture)
    wanted = {one["name"]: one["rows"] for one in json.loads(r.out)["reports"]}
    browser.open(test.dir / "x.html")
    browser.key("t")
    captions = browser.ask("[...document.querySelectorAll('#report figcaption')].map((f) => f.innerText)")
    delays = sum(row["delay"]["count"] for row in wanted["sched"])
    check(f"delay of all rows · {delays:,}" in captions, f"{captions}, not {delays}")
    titles = browser.ask("[...document.querySelectorAll('#report figure')[0].querySelectorAll('title')].map((t) => t.textContent)")
    equal(sum(int(re.search(r": ([\d,]+) ", t)[1].replace(",", "")) for t in titles), delays, "the bars' sum")
    name = browser.ask("(() => { const tr = document.querySelector('#report tr.plotted'); tr.click(); return tr.cells[0].innerText; })()")
    caption = browser.ask("document.querySelector('#report figcaption').innerText")
    equal(caption, f"delay of {name} · {wanted['sched'][0]['delay']['count']:,}", "one row's plot")
    # By keys, too: the second row, again, and so all.
    second = wanted["sched"][1]
    for caption in (f"delay of {second['task']} · {second['delay']['count']:,}", f"delay of all rows · {delays:,}"):
        browser.ask("document.querySelectorAll('#report tr.plotted')[1].lastChild.firstChild.focus()")
        equal(browser.ask("document.activeElement.getAttribute('aria-label')"), f"plot {second['task']}", "the button's label")
        browser.key("Enter")
        # Firefox may press the button after it has answered.
        browser.frame()
        equal(browser.ask("document.querySelector('#report figcaption').innerText"), caption, "plotted by Enter")
        equal(browser.ask("document.activeElement.getAttribute('aria-pressed')"), str("all" not in caption).lower(), "pressed")
    # A click on a heading sorts by its column.
    heads = browser.ask("[...document.querySelectorAll('#report table th')].map((th) => th.innerText)")
    for head, value in (("delay max", lambda row: -(row["delay"]["max_ns"] or 0)), ("runs", lambda row: -row["runs"]),
                        ("task", lambda row: row["task"].lower())):
        browser.ask(f"document.querySelectorAll('#report table')[0].querySelectorAll('th button')[{heads.index(head)}].click()")
        tasks = browser.ask("[...document.querySelectorAll('#report table')[0].rows].slice(1).map((tr) => tr.cells[0].innerText)")
        values = {row["task"]: value(row) for row in wanted["sched"]}
        equal(sorted(tasks), sorted(values), f"tasks sorted by {head}")
        if head == "task":
            equal(tasks, browser.ask(f"{json.dumps(tasks[::-1])}.sort((a, b) => a.localeCompare(b))"), "the order by task")
        else:
            equal([values[task] for task in tasks], sorted(values.values()), f"the order by {head}")
        sorts = browser.ask("[...document.querySelectorAll('#report table th[aria-sort]')].map((th) => [th.innerText, th.getAttribute('aria-sort')])")
        equal(sorts, [[head, "ascending" if head == "task" else "descending"]], "the sorted column")
    # A bucket's middle lies between its bounds in the kernel's unit: that of the row's only delay.
    for row in wanted["sched"]:
        for bucket, _ in row["delay"]["buckets"]:
            least = browser.ask(f"traceViewer.tools.bucketFrom({bucket})")
            check(row["delay"]["min_ns"] * 0.98 <= least <= row["delay"]["max_ns"], f"bucket {bucket} begins at {least}: {row}")
    equal(browser.said, [], "the browser complains")


# The figures of the reports: caption, what a screen reader says, the bars' places and texts, and where the labels are.
FIGURES = """[...document.querySelectorAll('#report figure')].map((f) => [f.innerText.split('\\n')[0],
    f.querySelector('svg').getAttribute('aria-label'),
    [...f.querySelectorAll('rect')].map((r) => [...['x', 'width', 'y', 'height'].map((key) => +r.getAttribute(key)), r.textContent]),
    [...f.querySelectorAll('text')].map((t) => [t.getAttribute('text-anchor'), +t.getAttribute('x'), t.textContent])])"""


def same_bars(figure, wanted, at):
    """The bars are as high as the counts of `wanted`, by their bounds, and on an axis that `at` tells."""
    caption, label, bars, labels = figure
    wanted = sorted((bounds, count) for bounds, count in wanted.items() if count)
    equal(len(bars), len(wanted), f"bars of {caption}")
    check(f"{len(bars)} bars" in label and "The highest is" in label, label)
    check(caption.endswith(f" · {sum(count for _, count in wanted):,}"), caption)
    top, most = max(bar[3] for bar in bars), max(count for _, count in wanted)
    first, last = at(wanted[0][0][0]), at(wanted[-1][0][1])
    scale = (bars[-1][0] + bars[-1][1] + 1 - bars[0][0]) / (last - first)
    for (x, width, y, height, text), ((from_, end), count) in zip(bars, wanted):
        check(abs(height - max(1, count / most * top)) < 0.01, f"{caption}: {count} of {most} is {height} of {top} pixels high")
        check(abs(y + height - bars[0][2] - bars[0][3]) < 0.01, f"{caption}: bars begin at different heights")
        should = [bars[0][0] + (at(from_) - first) * scale, (at(end) - at(from_)) * scale - 1]
        check(abs(x - should[0]) < 0.1 and abs(width - max(1, should[1])) < 0.1, f"{caption}: {from_} to {end} is at {x}, {width}, not {should}")
        check(f": {count:,} (" in text, f"{text}: not {count}")
    counts = [text for anchor, _, text in labels if anchor == "end"]
    values = [x for anchor, x, _ in labels if anchor == "middle"]
    check(not [text for *_, text in labels if text.startswith("-")], f"{caption}: {labels}")
    check(counts[0] == "0" and len(counts) > 1, f"{caption}: counts on the axis {counts}")
    check(len(values) > 1 and all(b - a >= 50 for a, b in zip(values, values[1:])), f"{caption}: values on the axis at {values}")


def histograms_of_the_kernel(test):
    """A recording with real texts of histograms by ranges: of powers of two, and of one width with a second key."""
    text = gzip.decompress((test.source / "tests/data/6.12.117/hists.gz").read_bytes()).decode()
    parts = [part.split("\n", 1)[1] for part in text.split("## ")
             if part.startswith(("hist:keys=bytes_req.log2", "hist:keys=bytes_req.buckets", "hist:keys=call_site.sym:"))]
    subprocess.run([test.build / "tests/unit/generate", "hists", "20000", test.dir / "x.traced"], input="\n".join(parts), text=True, check=True)


def plots_of_ranges(test, browser):
    """Histograms whose rows are ranges: `runq`, and the kernel's own."""
    histograms_of_the_kernel(test)
    for reports, is_missing in (("runq", True), ("runq,hist", False)):
        r = test.run("convert", "--report", reports, "x.traced", "x.html")
        check(r.status == 0 and ("histograms are left out" in r.err) == is_missing, r)
    r = test.run("report", "--json", "--top", "1000", "runq,hist", "x.traced")
    runq, by_call, by_log, by_width = (one["rows"] for one in json.loads(r.out)["reports"])
    browser.open(test.dir / "x.html")
    browser.key("t")
    figures = browser.ask(FIGURES)
    # A table without ranges has no plot; its shares are bars in the cells.
    equal([caption.split(" · ")[0] for caption, *_ in figures], ["distribution", "bytes_req", "bytes_req"], "plots")
    log = lambda value: math.log2(value) if value >= 1 else value - 1
    check(len(runq) > 4 and len(by_log) > 8 and len(by_width) > 12, f"{len(runq)}, {len(by_log)}, {len(by_width)} rows")
    same_bars(figures[0], {(row["from_ns"], row["to_ns"] + 1): row["count"] for row in runq}, log)
    same_bars(figures[1], {(row["bytes_req"], row["bytes_req_to"] + 1): row["hitcount"] for row in by_log}, log)
    sums = collections.Counter()
    for row in by_width:
        sums[row["bytes_req"], row["bytes_req_to"] + 1] += row["hitcount"]
    same_bars(figures[2], sums, lambda value: value)
    # A click on a row plots the histogram of its other key.
    row = next(i for i, one in enumerate(by_width) if one["gfp_flags"] == 3264)
    browser.ask(f"document.querySelectorAll('#report table')[3].rows[{row + 1}].click()")
    figure = browser.ask(FIGURES)[2]
    check(figure[0].startswith("bytes_req of 3264 · "), figure[0])
    same_bars(figure, {(one["bytes_req"], one["bytes_req_to"] + 1): one["hitcount"] for one in by_width if one["gfp_flags"] == 3264},
              lambda value: value)
    shares = browser.ask("[...document.querySelectorAll('#report table')[1].querySelectorAll('td.share')].map((td) => "
                         "[td.innerText, td.style.backgroundSize])")
    equal(shares, [[f"{row['share_permille'] / 10:.1f} %", f"{row['share_permille'] / 10:g}% 100%"] for row in by_call], "bars of shares")
    # A phone's screen has room for each plot. Firefox's windows are never so narrow.
    sizes = "[...document.querySelectorAll('#report svg')].map((svg) => svg.getBoundingClientRect()).map((r) => [r.right, r.height / r.width])"
    wide = browser.ask(sizes)
    browser.resize(360, 640)
    width = browser.ask("innerWidth")
    for (_, shape), (right, is_) in zip(wide, browser.ask(sizes), strict=True):
        check(right <= width and abs(is_ - shape) < 0.02, f"a plot ends at {right} of {width}, its shape was {shape}, is {is_}")
    browser.resize(1400, 900)
    # All rows are in the tables, for those who see no plots.
    equal(browser.ask("[...document.querySelectorAll('#report table')].map((t) => t.rows.length - 1)"),
          [len(rows) for rows in (runq, by_call, by_log, by_width)], "rows of the tables")
    equal(browser.said, [], "the browser complains")


def pages(test, browser):
    """A page ends at a number of events, and says that; the next pages have the rest."""
    recording(test, 10000)
    r = test.run("convert", "--html-max", "4000", "x.traced", "x.html")
    check(r.status == 0 and "goes on in x.0002.html to x.0003.html" in r.err, r)
    counts = []
    for name in ("x.html", "x.0002.html", "x.0003.html"):
        browser.open(test.dir / name)
        counts.append(browser.ask("traceViewer.model.time.length"))
        equal(browser.ask("traceViewer.model.cut"), False, f"{name} is cut")
    equal(counts, [4000, 4000, 2000], "events of the pages")
    recording(test, 40000)
    r = test.run("convert", "--html-max", "2M", "x.traced", "y.html")
    sizes = [path.stat().st_size for path in test.dir.glob("y*.html")]
    check(r.status == 0 and len(sizes) > 1 and max(sizes) < 4 << 20, f"{sizes}: {r}")
    for value, says in (("12", "too little"), ("1x", "neither a size nor"), ("512K", "too little")):
        r = test.run("convert", "--html-max", value, "x.traced", "z.html")
        check(r.status == 2 and says in r.err, r)
    r = test.run("convert", "--html-max", "4000", "x.traced", "z.json")
    check(r.status != 0 and "is no page" in r.err, r)
    check(not (test.dir / "z.html").exists() and not (test.dir / "z.json").exists(), "a file is left")


def seen_while_it_is_read(test, browser):
    """A long trace shows the picture of its beginning before it is read."""
    recording(test, 200000)
    convert(test, "x.traced", "x.html")
    browser.open(test.dir / "x.html")
    first, whole, colours, left = browser.ask("""(() => { const v = traceViewer, {canvas, painted} = v.preview;
        const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return [painted, v.painted, new Set(new Uint32Array(data.buffer)).size, document.querySelectorAll('#wait').length]; })()""")
    check(0 < first < whole, f"first paint at {first} ms, all at {whole} ms")
    check(colours > 5, f"the first picture has {colours} colours")
    equal(left, 0, "messages that it is read")
    equal(browser.ask("traceViewer.model.time.length"), 200000, "events")
    lines = browser.ask("[0, 1, 99999, 199999].map((i) => traceViewer.model.eventText(i))")
    text = (test.dir / "x.html").read_text()
    check(all(f"\n{line}\n" in text for line in lines), f"{lines}")


CASES = [flame_graph, sums_of_a_report, moments, link_to_pinned_rows, picture_of_the_view, functions, plots, plots_of_ranges, pages, seen_while_it_is_read]

if __name__ == "__main__":
    run_cases("sums", CASES)
