-- SPDX-License-Identifier: LGPL-2.1-or-later
-- The part of a CPU's time that interrupts take on each board, in per cent.
SELECT board, round(100.0 * sum(total_ns) / any_value(span_ns), 2) AS percent
FROM rows WHERE report = 'irq'
GROUP BY board, serial ORDER BY percent DESC LIMIT 20;
