-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Interrupts that come most often, per second, with the board.
SELECT board, name, round(sum(count) * 1e9 / any_value(span_ns)) AS per_second
FROM rows WHERE report = 'irq'
GROUP BY board, serial, name ORDER BY per_second DESC LIMIT 20;
