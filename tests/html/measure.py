# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a page costs: until it shows something, for each frame, and in memory."""

import os
import pathlib
import re
import statistics

from browser import Browser

FRAMES = 90
# Parts of the trace in view, and what moves in each frame.
SIGHTS = (("zoomed out", 1, "zoom(n % 2 ? 1.02 : 1 / 1.02, 900)"), ("mid", 0.05, "zoom(n % 2 ? 1.02 : 1 / 1.02, 900)"),
          ("in", 0.0005, "zoom(n % 2 ? 1.02 : 1 / 1.02, 900)"), ("panning", 0.05, "pan(n < 45 ? 0.02 : -0.02)"))


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


def frame_times(browser, action):
    """Milliseconds between frames, and of scripts in each: all frames."""
    return browser.ask(f"""new Promise((done) => {{ const times = [], scripts = []; let n = 0;
        const v = traceViewer, paint = v.paint.bind(v);
        v.paint = () => {{ const began = performance.now(); paint(); scripts.push(performance.now() - began); }};
        const tick = (t) => {{ times.push(t); v.{action};
            if (n++ < {FRAMES}) requestAnimationFrame(tick);
            else {{ delete v.paint; done([times.slice(1).map((x, i) => x - times[i]), scripts]); }} }};
        requestAnimationFrame(tick); }})""")


def spell(times):
    return f"median {statistics.median(times):5.1f} ms, p99 {sorted(times)[int(len(times) * 0.99)]:5.1f} ms"


def measure(path):
    with Browser(1600, 1000) as browser:
        # The protocol keeps what a page loads.
        browser.call("Network.disable")
        before = browser.cpu_seconds()
        browser.open(pathlib.Path(path).resolve())
        cpu = browser.cpu_seconds() - before
        events, first, whole = browser.ask("""(() => { const v = traceViewer, p = v.preview;
            return [v.model.time.length + v.model.elements.length, p.painted || v.painted, v.painted]; })()""")
        now, peak = memory(browser)
        load = os.getloadavg()[0]
        print(f"{events:,} events; first paint after {first:.0f} ms, all after {whole:.0f} ms; {cpu:.2f} s of CPU time; "
              f"memory {now} MB, at most {peak} MB; load {load:.1f}", flush=True)
        for name, part, action in SIGHTS:
            browser.ask(f"""(() => {{ const v = traceViewer, s = v.whole.to - v.whole.from;
                v.show(v.whole.from + s * 0.3, v.whole.from + s * (0.3 + {part})); }})()""")
            browser.frame()
            between, scripts = frame_times(browser, action)
            cpu = browser.frames(f"traceViewer.{action}", FRAMES)[:3]
            print(f"  {name:10}  a frame: {spell(between)}; of it scripts: {spell(scripts)}; CPU time of scripts, main thread, "
                  f"all processes: {', '.join(f'{ms:.1f}' for ms in cpu)} ms", flush=True)
