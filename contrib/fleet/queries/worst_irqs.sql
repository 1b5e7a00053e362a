-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Interrupts that take longest, by name and kind.
SELECT name, kind, count(DISTINCT board) AS boards, p99(list(time)) AS p99_ns, max(time.max_ns) AS max_ns
FROM rows WHERE report = 'irq'
GROUP BY name, kind ORDER BY max_ns DESC LIMIT 20;
