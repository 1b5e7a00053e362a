-- SPDX-License-Identifier: LGPL-2.1-or-later
-- System calls that fail most often.
SELECT call, sum(errors)::BIGINT AS errors, round(100.0 * sum(errors) / sum(calls), 1) AS percent,
       count(DISTINCT board) FILTER (errors > 0) AS boards
FROM rows WHERE report = 'syscalls'
GROUP BY call HAVING sum(errors) > 0 ORDER BY errors DESC LIMIT 20;
