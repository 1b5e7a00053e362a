-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Boards whose tasks move between CPUs most often, per second.
SELECT board, round(sum(migrations) * 1e9 / any_value(span_ns), 1) AS per_second
FROM rows WHERE report = 'sched'
GROUP BY board, serial ORDER BY per_second DESC LIMIT 20;
