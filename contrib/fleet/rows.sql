-- SPDX-License-Identifier: LGPL-2.1-or-later
-- What the queries beside it read: cat rows.sql queries/NAME.sql | duckdb

CREATE OR REPLACE TEMP VIEW rows AS
SELECT * FROM read_parquet('rows/*/*/*/*.parquet', hive_partitioning = true,
    hive_types = {'report': VARCHAR, 'fleet': VARCHAR, 'serial': UBIGINT});

CREATE OR REPLACE TEMP VIEW answers AS
SELECT * FROM read_parquet('answers/*/*/*.parquet', hive_partitioning = true,
    hive_types = {'fleet': VARCHAR, 'serial': UBIGINT});

-- The p99 of distributions together: p99(list(delay)). Exact to 1 %.
CREATE OR REPLACE TEMP MACRO p99(spreads) AS (
    SELECT min(ns) FROM (
        SELECT ns, sum(n) OVER (ORDER BY ns) AS so_far, sum(n) OVER () AS total
        FROM (SELECT b.ns AS ns, sum(b.n) AS n
              FROM (SELECT unnest(flatten([s.buckets FOR s IN spreads IF s IS NOT NULL])) AS b)
              GROUP BY ALL))
    WHERE so_far >= 0.99 * total);
