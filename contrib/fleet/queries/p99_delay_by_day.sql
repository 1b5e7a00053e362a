-- SPDX-License-Identifier: LGPL-2.1-or-later
-- How long tasks wait for a CPU, day by day.
SELECT started::DATE AS day, count(DISTINCT board) AS boards, p99(list(delay)) AS p99_ns
FROM rows WHERE report = 'sched'
GROUP BY day ORDER BY day;
