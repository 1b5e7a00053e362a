-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Tasks that run longest, over the fleet.
SELECT task, count(DISTINCT board) AS boards, sum(runtime_ns)::BIGINT AS runtime_ns
FROM rows WHERE report = 'sched'
GROUP BY task ORDER BY runtime_ns DESC LIMIT 20;
