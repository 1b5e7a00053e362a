-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Boards that answered an order before, but not the last one of their fleet.
WITH last AS (SELECT fleet, max(serial) AS serial FROM answers GROUP BY fleet)
SELECT a.fleet, a.board, max(a.serial) AS last_answer
FROM answers a JOIN last USING (fleet)
GROUP BY a.fleet, a.board HAVING max(a.serial) < any_value(last.serial) ORDER BY last_answer, a.board;
