-- SPDX-License-Identifier: LGPL-2.1-or-later
-- How long tasks wait for a CPU, by the label "type".
SELECT labels['type'] AS type, count(DISTINCT board) AS boards, p99(list(delay)) AS p99_ns
FROM rows WHERE report = 'sched'
GROUP BY type ORDER BY p99_ns DESC;
