# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a page costs: until it shows something, for each frame, and in memory."""

import os
import pathlib
import re
import statistics

from browser import Browser

FRAMES = 90
PANNING = "panning"
# Parts of the trace in view. In each frame the view zooms, or moves.
SIGHTS = (("zoomed out", 1), ("mid", 0.05), ("in", 0.0005), (PANNING, 0.05))
SHOWN_MS = 600000

# Scripts for a page: a promise of what it showed and when; they show a part of the trace, and step in a zoom or a move.
# `painter` has our paint().
OURS = {
    "shown": """new Promise((done) => {
        const look = () => {
            const v = window.traceViewer;
            if (v && v.failed) done(v.failed);
            else if (!v || !v.ready || document.readyState !== 'complete') setTimeout(look, 20);
            else done([v.model.time.length + v.model.elements.length, v.preview.painted || v.painted, v.painted]);
        };
        look(); })""",
    "see": """(() => { const v = traceViewer, s = v.whole.to - v.whole.from;
        v.show(v.whole.from + s * 0.3, v.whole.from + s * (0.3 + %s)); })()""",
    "zoom": "traceViewer.zoom(n % 2 ? 1.02 : 1 / 1.02, 900)",
    "pan": "traceViewer.pan(n < 45 ? 0.02 : -0.02)",
    "painter": "traceViewer",
}
# Catapult's Trace Viewer, in a page that trace2html made. It has no first picture.
TRACE_VIEWER = {
    "shown": """new Promise((done) => {
        const look = () => {
            const view = typeof g_timelineViewEl === 'undefined' ? null : g_timelineViewEl;
            const failed = Array.from(document.querySelectorAll('*')).find((e) => e.title === 'Import error');
            if (failed) done(failed.textContent || 'Import error');
            else if (performance.now() > SHOWN_MS) done('nothing is shown');
            else if (!view || !view.trackView || !view.model || !view.trackView.viewport.isAttachedToDocumentOrInTestMode)
                setTimeout(look, 20);
            else requestAnimationFrame(() => requestAnimationFrame((now) => {
                let events = 0;
                for (const _ of view.model.getDescendantEvents()) events++;
                done([events, now, now]);
            }));
        };
        look(); })""".replace("SHOWN_MS", str(SHOWN_MS)),
    "see": """(() => { const {viewport, model} = g_timelineViewEl.trackView, t = viewport.currentDisplayTransform.clone();
        const {min, range} = model.bounds, from = min + range * 0.3 * (%s < 1);
        t.xSetWorldBounds(from, from + range * %s, viewport.modelTrackContainer.canvas.clientWidth);
        viewport.setDisplayTransformImmediately(t); })()""",
    "zoom": """(() => { const {viewport} = g_timelineViewEl.trackView, t = viewport.currentDisplayTransform.clone();
        const width = viewport.modelTrackContainer.canvas.clientWidth, middle = t.xViewToWorld(width / 2);
        t.scaleX *= n % 2 ? 1 / 1.02 : 1.02;
        t.xPanWorldPosToViewPos(middle, 'center', width);
        viewport.setDisplayTransformImmediately(t); })()""",
    "pan": """(() => { const {viewport} = g_timelineViewEl.trackView, t = viewport.currentDisplayTransform.clone();
        t.incrementPanXInViewUnits((n < 45 ? -0.02 : 0.02) * viewport.modelTrackContainer.canvas.clientWidth);
        viewport.setDisplayTransformImmediately(t); })()""",
    "painter": None,
}


def memory(browser):
    """Megabytes of the page's process: now, and at most so far."""
    page, browser.session = browser.session, None
    processes = browser.call("SystemInfo.getProcessInfo")["processInfo"]
    browser.session = page
    most = (0, 0)
    for process in processes:
        if process["type"] == "renderer":
            status = pathlib.Path(f"/proc/{process['id']}/status").read_text()
            now, peak = (int(re.search(rf"^{key}:\s+(\d+)", status, re.M)[1]) // 1024 for key in ("VmRSS", "VmHWM"))
            most = max(most, (now, peak))
    return most


def frame_times(browser, action, painter):
    """Milliseconds between frames, and of our painting in each: all frames."""
    return browser.ask(f"""new Promise((done) => {{ const times = [], scripts = []; let n = 0;
        const v = {painter or '{paint() {}}'}, paint = v.paint.bind(v);
        v.paint = () => {{ const began = performance.now(); paint(); scripts.push(performance.now() - began); }};
        const tick = (t) => {{ times.push(t); {action};
            if (n++ < {FRAMES}) requestAnimationFrame(tick);
            else {{ delete v.paint; done([times.slice(1).map((x, i) => x - times[i]), scripts]); }} }};
        requestAnimationFrame(tick); }})""")


def spell(times):
    return f"median {statistics.median(times):5.1f} ms, p99 {sorted(times)[int(len(times) * 0.99)]:5.1f} ms" if times else "unknown"


def measure(path, kind):
    with Browser(1600, 1000) as browser:
        # The protocol keeps what a page loads.
        browser.call("Network.disable")
        before = browser.cpu_seconds()
        browser.call("Page.navigate", url=f"file://{pathlib.Path(path).resolve()}")
        shown = browser.ask(kind["shown"])
        cpu = browser.cpu_seconds() - before
        if isinstance(shown, str):
            print(f"{path}: {shown}", flush=True)
            return
        events, first, whole = shown
        now, peak = memory(browser)
        load = os.getloadavg()[0]
        print(f"{events:,} events; first paint after {first:.0f} ms, all after {whole:.0f} ms; {cpu:.2f} s of CPU time; "
              f"memory {now} MB, at most {peak} MB; load {load:.1f}", flush=True)
        for name, part in SIGHTS:
            browser.ask(kind["see"].replace("%s", str(part)))
            browser.frame()
            action = kind["pan" if name == PANNING else "zoom"]
            between, scripts = frame_times(browser, action, kind["painter"])
            cpu = browser.frames(action, FRAMES)[:3]
            print(f"  {name:10}  a frame: {spell(between)}; of it painting: {spell(scripts)}; CPU time of scripts, main thread, "
                  f"all processes: {', '.join(f'{ms:.1f}' for ms in cpu)} ms", flush=True)
