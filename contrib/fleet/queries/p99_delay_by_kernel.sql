-- SPDX-License-Identifier: LGPL-2.1-or-later
-- How long tasks wait for a CPU, by kernel version.
SELECT kernel, count(DISTINCT board) AS boards, p99(list(delay)) AS p99_ns, max(delay.max_ns) AS max_ns
FROM rows WHERE report = 'sched'
GROUP BY kernel ORDER BY p99_ns DESC;
