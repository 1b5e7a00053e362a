-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Work items that keep kernel workers longest.
SELECT "function", sum(total_ns)::BIGINT AS total_ns, p99(list(run)) AS p99_ns
FROM rows WHERE report = 'workqueue'
GROUP BY "function" ORDER BY total_ns DESC LIMIT 20;
