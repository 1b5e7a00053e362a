-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Boards that lost events, and the part of all events that these are.
SELECT board, sum(lost)::BIGINT AS lost, round(100.0 * sum(lost) / (sum(lost) + sum(events)), 3) AS percent
FROM answers GROUP BY board HAVING sum(lost) > 0 ORDER BY lost DESC;
