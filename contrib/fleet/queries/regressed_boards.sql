-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Boards whose p99 of delays has doubled, at least, since the last answer a day ago or earlier.
WITH each_answer AS (
    SELECT fleet, board, started, p99(list(delay)) AS p99_ns
    FROM rows WHERE report = 'sched' GROUP BY fleet, board, serial, started),
now AS (
    SELECT fleet, board, max(started) AS started, arg_max(p99_ns, started) AS p99_ns
    FROM each_answer GROUP BY fleet, board),
earlier AS (
    SELECT e.fleet, e.board, arg_max(e.p99_ns, e.started) AS p99_ns
    FROM each_answer e JOIN now USING (fleet, board)
    WHERE e.started <= now.started - INTERVAL 1 DAY GROUP BY e.fleet, e.board)
SELECT board, earlier.p99_ns AS before_ns, now.p99_ns AS now_ns,
       round(now.p99_ns / earlier.p99_ns, 1) AS times
FROM now JOIN earlier USING (fleet, board)
WHERE now.p99_ns >= 2 * earlier.p99_ns ORDER BY times DESC;
