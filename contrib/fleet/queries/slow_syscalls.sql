-- SPDX-License-Identifier: LGPL-2.1-or-later
-- System calls with the longest p99.
SELECT call, sum(calls)::BIGINT AS calls, p99(list(time)) AS p99_ns
FROM rows WHERE report = 'syscalls'
GROUP BY call ORDER BY p99_ns DESC LIMIT 20;
