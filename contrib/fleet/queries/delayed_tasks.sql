-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Tasks that wait longest for a CPU, over the fleet.
SELECT task, count(DISTINCT board) AS boards, p99(list(delay)) AS p99_ns, max(delay.max_ns) AS max_ns
FROM rows WHERE report = 'sched'
GROUP BY task ORDER BY p99_ns DESC LIMIT 20;
