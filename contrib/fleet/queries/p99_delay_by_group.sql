-- SPDX-License-Identifier: LGPL-2.1-or-later
-- How long tasks wait for a CPU, by the boards' groups: is the canary worse?
SELECT "group", count(DISTINCT board) AS boards, p99(list(delay)) AS p99_ns
FROM (SELECT unnest(groups) AS "group", board, delay FROM rows WHERE report = 'sched')
GROUP BY "group" ORDER BY p99_ns DESC;
