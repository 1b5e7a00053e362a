-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Makes Parquet of the rows of boards' reports, which DuckDB, ClickHouse, Spark and Trino read. In
-- the folder that has fleet=*/:
--
--     duckdb < parquet.sql
--
-- writes rows/report=R/fleet=F/serial=N/, anew, and prints the files that it skips. Each row of a
-- report is a row; columns that its report does not have are null. Fleet, serial and board are those
-- of the path, which a store lets only that board write: what a file says of itself counts for the
-- rest. Needs DuckDB 1.3 or later.

-- A bucket as the middle of its values (docs/report.md) and their count; none beyond 2^62 ns.
CREATE OR REPLACE TEMP MACRO spread(d) AS CASE WHEN d IS NOT NULL THEN {
    'count': d.count, 'sum_ns': d.sum_ns, 'min_ns': d.min_ns, 'max_ns': d.max_ns,
    'p50_ns': d.p50_ns, 'p99_ns': d.p99_ns,
    'buckets': [{
        'ns': CASE WHEN b[1] < 128 THEN b[1]
              ELSE ((b[1] % 64 + 64) << (b[1] // 64 - 1)::INTEGER) + (1::BIGINT << (b[1] // 64 - 1)::INTEGER) // 2 END,
        'n': b[2]} FOR b IN d.buckets IF b[1] BETWEEN 0 AND 3711 AND b[2] > 0]} END;

-- A line is a row, or says something of its file or report (docs/fleet.md). What is no JSON is null,
-- and so is a value that has another type than here.
CREATE OR REPLACE TEMP TABLE lines AS
SELECT filename,
       regexp_extract(filename, 'fleet=([^/]+)/order=([0-9]+)/board=([^/]+)/[^/]+$',
                      ['fleet', 'serial', 'board']) AS place,
       json IS NOT NULL AS is_json,
       json_transform(json, '{
           "format": "VARCHAR", "table": "VARCHAR", "report": "VARCHAR", "first_ns": "BIGINT",
           "span_ns": "BIGINT", "events": "BIGINT", "lost": "BIGINT", "incomplete": "BOOLEAN",
           "origin": {"started": "TIMESTAMP", "kernel": "VARCHAR", "arch": "VARCHAR",
                      "groups": ["VARCHAR"], "labels": "MAP(VARCHAR, VARCHAR)"},
           "task": "VARCHAR", "tid": "BIGINT", "process": "VARCHAR", "pid": "BIGINT",
           "cpu": "BIGINT", "name": "VARCHAR", "kind": "VARCHAR", "call": "VARCHAR",
           "function": "VARCHAR", "device": "VARCHAR", "operation": "VARCHAR",
           "state": "VARCHAR", "what": "VARCHAR", "source": "VARCHAR", "count": "BIGINT",
           "runs": "BIGINT", "calls": "BIGINT", "errors": "BIGINT", "migrations": "BIGINT",
           "bytes": "BIGINT", "runtime_ns": "BIGINT", "total_ns": "BIGINT",
           "noise_ns": "BIGINT", "max_ns": "BIGINT", "cut": "BIGINT", "open": "BIGINT",
           "delay": {"count": "BIGINT", "sum_ns": "BIGINT", "min_ns": "BIGINT", "max_ns": "BIGINT",
                    "p50_ns": "BIGINT", "p99_ns": "BIGINT", "buckets": [["BIGINT"]]},
           "time": {"count": "BIGINT", "sum_ns": "BIGINT", "min_ns": "BIGINT", "max_ns": "BIGINT",
                    "p50_ns": "BIGINT", "p99_ns": "BIGINT", "buckets": [["BIGINT"]]},
           "raise": {"count": "BIGINT", "sum_ns": "BIGINT", "min_ns": "BIGINT", "max_ns": "BIGINT",
                    "p50_ns": "BIGINT", "p99_ns": "BIGINT", "buckets": [["BIGINT"]]},
           "queue": {"count": "BIGINT", "sum_ns": "BIGINT", "min_ns": "BIGINT", "max_ns": "BIGINT",
                    "p50_ns": "BIGINT", "p99_ns": "BIGINT", "buckets": [["BIGINT"]]},
           "run": {"count": "BIGINT", "sum_ns": "BIGINT", "min_ns": "BIGINT", "max_ns": "BIGINT",
                    "p50_ns": "BIGINT", "p99_ns": "BIGINT", "buckets": [["BIGINT"]]},
           "late": {"count": "BIGINT", "sum_ns": "BIGINT", "min_ns": "BIGINT", "max_ns": "BIGINT",
                    "p50_ns": "BIGINT", "p99_ns": "BIGINT", "buckets": [["BIGINT"]]}}') AS r
FROM read_ndjson_objects('fleet=*/order=*/board=*/*.ndjson.zst', compression = 'zstd',
                         filename = true, ignore_errors = true, maximum_object_size = 67108864);

-- Files that begin and end as reports do, and are JSON in between. Each report is a folder, so a board
-- can't invent any.
CREATE OR REPLACE TEMP TABLE files AS
SELECT filename, any_value(place.fleet) AS fleet, any_value(TRY_CAST(place.serial AS UBIGINT)) AS serial,
       any_value(place.board) AS board, any_value(r) FILTER (r.first_ns IS NOT NULL) AS last
FROM lines
GROUP BY filename
HAVING bool_and(is_json) AND count(*) FILTER (r.format = 'traced-report') = 1
       AND count(*) FILTER (r.first_ns IS NOT NULL) = 1 AND any_value(TRY_CAST(place.serial AS UBIGINT)) IS NOT NULL
       AND coalesce(bool_and(r.report IN ('cpus', 'delays', 'sched', 'timehist', 'runq', 'offcpu',
           'blame', 'irq', 'syscalls', 'block', 'net', 'workqueue',
           'timer', 'power', 'noise', 'timerlat', 'functions', 'marks',
           'counts') OR starts_with(r.report, 'hist ')), true);

CREATE OR REPLACE TEMP TABLE boards AS
SELECT filename, fleet, serial, board, last.origin.started AS started, last.origin.kernel AS kernel,
       last.origin.arch AS arch, last.origin.groups AS groups, last.origin.labels AS labels,
       last.span_ns AS span_ns, last.events AS events, last.lost AS lost,
       last.incomplete AS incomplete
FROM files;

COPY (
    SELECT r.report AS report, fleet, serial, board, started, kernel, arch, groups, labels, span_ns, events, lost,
           incomplete, r.task, r.tid, r.process, r.pid, r.cpu, r.name, r.kind, r.call, r."function",
           r.device, r.operation, r.state, r.what, r.source, r.count, r.runs, r.calls, r.errors,
           r.migrations, r.bytes, r.runtime_ns, r.total_ns, r.noise_ns, r.max_ns, r.cut, r.open,
           spread(r.delay) AS delay, spread(r.time) AS time, spread(r.raise) AS raise,
           spread(r.queue) AS queue, spread(r.run) AS run, spread(r.late) AS late
    FROM lines JOIN boards USING (filename)
    -- Each histogram has columns of its own, and a board would name the folder.
    WHERE r.report IS NOT NULL AND NOT starts_with(r.report, 'hist ')
) TO 'rows' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (report, fleet, serial), OVERWRITE true);

-- A line for each board and order, also of boards without a row.
COPY (SELECT * EXCLUDE filename FROM boards)
TO 'answers' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (fleet, serial), OVERWRITE true);

-- Truncated files, and others that are no reports.
SELECT regexp_replace(file, '[^ -~]', '?', 'g') AS skipped
FROM glob('fleet=*/order=*/board=*/*.ndjson.zst')
WHERE file NOT IN (SELECT filename FROM files)
ORDER BY skipped;
