-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Timers that expire latest, by function.
SELECT "function", kind, p99(list(late)) AS p99_ns, max(late.max_ns) AS max_ns
FROM rows WHERE report = 'timer' AND late.count > 0
GROUP BY "function", kind ORDER BY max_ns DESC LIMIT 20;
