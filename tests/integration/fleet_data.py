# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reports of boards that nobody recorded: their answers are known."""

import hashlib
import json
import subprocess

# The columns of each report that is made here: name, kind, how it adds up, of which column.
DISTRIBUTION = "histogram"
COLUMNS = {
    "sched": [("task", "text", "key"), ("tid", "number", "key"), ("runtime", "time", "sum"), ("runs", "count", "sum"),
              ("migrations", "count", "sum"), ("delay", DISTRIBUTION, "histogram"), ("max-at", "at", "at", "delay"),
              ("cut", "count", "sum"), ("open", "count", "sum")],
    "irq": [("name", "text", "key"), ("kind", "text", "key"), ("count", "count", "sum"), ("total", "time", "sum"),
            ("time", DISTRIBUTION, "histogram"), ("max-at", "at", "at", "time"), ("raise", DISTRIBUTION, "histogram"),
            ("cut", "count", "sum"), ("open", "count", "sum")],
    "syscalls": [("call", "text", "key"), ("calls", "count", "sum"), ("errors", "count", "sum"),
                 ("total", "time", "sum"), ("time", DISTRIBUTION, "histogram"), ("max-at", "at", "at", "time"),
                 ("cut", "count", "sum"), ("open", "count", "sum")],
    "block": [("device", "text", "key"), ("operation", "text", "key"), ("count", "count", "sum"),
              ("bytes", "bytes", "sum"), ("errors", "count", "sum"), ("queue", DISTRIBUTION, "histogram"),
              ("time", DISTRIBUTION, "histogram"), ("max-at", "at", "at", "time"), ("cut", "count", "sum"),
              ("open", "count", "sum")],
    "timer": [("function", "text", "key"), ("kind", "text", "key"), ("count", "count", "sum"),
              ("total", "time", "sum"), ("run", DISTRIBUTION, "histogram"), ("late", DISTRIBUTION, "histogram"),
              ("max-at", "at", "at", "run"), ("cut", "count", "sum"), ("open", "count", "sum")],
    "workqueue": [("function", "text", "key"), ("count", "count", "sum"), ("total", "time", "sum"),
                  ("run", DISTRIBUTION, "histogram"), ("delay", DISTRIBUTION, "histogram"),
                  ("max-at", "at", "at", "run"), ("cut", "count", "sum"), ("open", "count", "sum")],
}
HIST = "hist sched:sched_switch by next_comm if prev_comm ~ \"<a*\""
COLUMNS[HIST] = [("next_comm", "text", "key"), ("hitcount", "count", "sum")]
UNITS = {"time": "_ns", "at": "_ns"}


def bucket(value):
    if value < 128:
        return value
    shift = value.bit_length() - 7
    return 64 * shift + (value >> shift)


def distribution(values):
    """Of {value: count}."""
    if isinstance(values, (list, tuple)):
        values = {v: values.count(v) for v in values}
    buckets = {}
    for value, count in values.items():
        buckets[bucket(value)] = buckets.get(bucket(value), 0) + count
    every = sorted(v for v, n in values.items() for _ in range(min(n, 1000)))
    return {"count": sum(values.values()), "sum_ns": sum(v * n for v, n in values.items()),
            "min_ns": min(every, default=0), "max_ns": max(every, default=0), "p50_ns": 0, "p99_ns": 0,
            "buckets": sorted(buckets.items())}


def table(name, rows):
    columns = [dict(zip(("name", "kind", "adds", "of"), c)) for c in COLUMNS[name]]
    full = []
    for row in rows:
        out = {}
        for c in columns:
            key = c["name"].replace("-", "_") + UNITS.get(c["kind"], "")
            value = row.get(key, "" if c["kind"] == "text" else {} if c["kind"] == DISTRIBUTION else 0)
            out[key] = distribution(value) if c["kind"] == DISTRIBUTION else value
        full.append(out)
    of_kernel = {"definition": "keys=next_comm:vals=hitcount"} if name == HIST else {}
    return {"name": name, "by": None, "sort": None, **of_kernel, "columns": columns, "rows": full, "notes": []}


def reports(tables, events=1000, lost=0, incomplete=False, span_ns=10**9, origin=None):
    """The bytes of a file. tables: {name: rows}."""
    head = {"format": "traced-report", "version": 1, "clock": "mono", "first_ns": 1, "span_ns": span_ns,
            "events": events, "lost": lost, "incomplete": incomplete,
            "reports": [table(name, rows) for name, rows in tables.items()]}
    if origin:
        head["origin"] = origin
    return json.dumps(head).encode()


def put(folder, board, data, order=17, fleet="doors", suffix="json"):
    """Puts a file where a store has it; its path."""
    path = folder / f"fleet={fleet}/order={order}/board={board}" / f"{name_of(data)}.{suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def as_lines(data):
    """The lines of a report's rows."""
    report = json.loads(data)
    first = {key: report.pop(key) for key in ("format", "version", "clock")}
    lines = [first]
    for table in report.pop("reports"):
        name, rows, notes = table.pop("name"), table.pop("rows"), table.pop("notes")
        lines += [{"table": name, **table}, *({"report": name, **row} for row in rows), {"end": name, "notes": notes}]
    lines.append(report)
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def packed(lines):
    return subprocess.run(["zstd", "-qc"], input=lines, check=True, capture_output=True).stdout


def put_rows(folder, board, data, order=17, fleet="doors"):
    """The same as rows, as a board sends them."""
    return put(folder, board, packed(as_lines(data)), order, fleet, "ndjson.zst")


def lines_of(path):
    done = subprocess.run(["zstd", "-qdc", path], check=True, capture_output=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def name_of(data):
    return hashlib.blake2b(data, digest_size=32).hexdigest()
