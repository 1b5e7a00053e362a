-- SPDX-License-Identifier: LGPL-2.1-or-later
-- How long softirqs wait from their raise to their begin.
SELECT name, p99(list(raise)) AS p99_ns, max(raise.max_ns) AS max_ns
FROM rows WHERE report = 'irq' AND raise.count > 0
GROUP BY name ORDER BY p99_ns DESC;
