-- SPDX-License-Identifier: LGPL-2.1-or-later
-- How many intervals losses cut, by report: what the other answers do not know.
SELECT report, sum(cut)::BIGINT AS cut, count(DISTINCT board) FILTER (cut > 0) AS boards
FROM rows GROUP BY report HAVING sum(cut) > 0 ORDER BY cut DESC;
