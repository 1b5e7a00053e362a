-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Makes rows of boards' reports, as Parquet that DuckDB, ClickHouse, Spark and Trino read. In the
-- folder that has fleet=*/:
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

-- NULL for a file that is no report: truncated, not UTF-8, not JSON, or of another kind. What has
-- another type than here is null.
CREATE OR REPLACE TEMP MACRO report_of(content) AS json_transform(TRY_CAST(TRY(decode(content)) AS JSON), replace('{
    "format": "VARCHAR",
    "span_ns": "BIGINT", "events": "BIGINT", "lost": "BIGINT", "incomplete": "BOOLEAN",
    "origin": "STRUCT(started TIMESTAMP, kernel VARCHAR, arch VARCHAR, groups VARCHAR[],
                      labels MAP(VARCHAR, VARCHAR))",
    "reports": "STRUCT(name VARCHAR, rows STRUCT(
        task VARCHAR, tid BIGINT, process VARCHAR, pid BIGINT, cpu BIGINT,
        name VARCHAR, kind VARCHAR, call VARCHAR, function VARCHAR, device VARCHAR,
        operation VARCHAR, state VARCHAR, what VARCHAR, source VARCHAR,
        count BIGINT, runs BIGINT, calls BIGINT, errors BIGINT, migrations BIGINT,
        bytes BIGINT, runtime_ns BIGINT, total_ns BIGINT, noise_ns BIGINT, max_ns BIGINT,
        cut BIGINT, open BIGINT,
        delay STRUCT(count BIGINT, sum_ns BIGINT, min_ns BIGINT, max_ns BIGINT, p50_ns BIGINT,
                     p99_ns BIGINT, buckets BIGINT[][]),
        time STRUCT(count BIGINT, sum_ns BIGINT, min_ns BIGINT, max_ns BIGINT, p50_ns BIGINT,
                    p99_ns BIGINT, buckets BIGINT[][]),
        raise STRUCT(count BIGINT, sum_ns BIGINT, min_ns BIGINT, max_ns BIGINT, p50_ns BIGINT,
                     p99_ns BIGINT, buckets BIGINT[][]),
        queue STRUCT(count BIGINT, sum_ns BIGINT, min_ns BIGINT, max_ns BIGINT, p50_ns BIGINT,
                     p99_ns BIGINT, buckets BIGINT[][]),
        run STRUCT(count BIGINT, sum_ns BIGINT, min_ns BIGINT, max_ns BIGINT, p50_ns BIGINT,
                   p99_ns BIGINT, buckets BIGINT[][]),
        late STRUCT(count BIGINT, sum_ns BIGINT, min_ns BIGINT, max_ns BIGINT, p50_ns BIGINT,
                    p99_ns BIGINT, buckets BIGINT[][]))[])[]"}', chr(10), ' '));

CREATE OR REPLACE TEMP TABLE all_files AS
SELECT filename, report_of(CASE WHEN size <= 67108864 THEN content END) AS r,
       regexp_extract(filename, 'fleet=([^/]+)/order=([0-9]+)/board=([^/]+)/[^/]+$',
                      ['fleet', 'serial', 'board']) AS place
FROM read_blob('fleet=*/order=*/board=*/*.json');

CREATE OR REPLACE TEMP TABLE files AS
SELECT place.fleet AS fleet, TRY_CAST(place.serial AS UBIGINT) AS serial, place.board AS board,
       r.origin.started AS started, r.origin.kernel AS kernel, r.origin.arch AS arch,
       r.origin.groups AS groups, r.origin.labels AS labels, r.span_ns AS span_ns,
       r.events AS events, r.lost AS lost, r.incomplete AS incomplete, r.reports AS reports
FROM all_files
WHERE r.format = 'traced-report' AND serial IS NOT NULL;

COPY (
    WITH each_report AS (SELECT * EXCLUDE reports, unnest(reports) AS r FROM files),
         each_row AS (SELECT * EXCLUDE r, r.name AS report, unnest(r.rows) AS r FROM each_report)
    SELECT report, fleet, serial, board, started, kernel, arch, groups, labels, span_ns, events, lost,
           incomplete, r.task, r.tid, r.process, r.pid, r.cpu, r.name, r.kind, r.call, r."function",
           r.device, r.operation, r.state, r.what, r.source, r.count, r.runs, r.calls, r.errors,
           r.migrations, r.bytes, r.runtime_ns, r.total_ns, r.noise_ns, r.max_ns, r.cut, r.open,
           spread(r.delay) AS delay, spread(r.time) AS time, spread(r.raise) AS raise,
           spread(r.queue) AS queue, spread(r.run) AS run, spread(r.late) AS late
    FROM each_row
) TO 'rows' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (report, fleet, serial), OVERWRITE true);

-- A line for each board and order, also of boards without a row.
COPY (SELECT * EXCLUDE reports FROM files)
TO 'answers' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (fleet, serial), OVERWRITE true);

-- Truncated files, and others that are no reports.
SELECT regexp_replace(filename, '[^ -~]', '?', 'g') AS skipped FROM all_files
WHERE r.format IS DISTINCT FROM 'traced-report' OR TRY_CAST(place.serial AS UBIGINT) IS NULL
ORDER BY skipped;
