-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Boards and devices whose requests take longest.
SELECT board, device, operation, sum(count)::BIGINT AS requests, p99(list(time)) AS p99_ns
FROM rows WHERE report = 'block'
GROUP BY board, device, operation ORDER BY p99_ns DESC LIMIT 20;
