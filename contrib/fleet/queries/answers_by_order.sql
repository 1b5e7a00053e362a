-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Orders, their boards, events and losses.
SELECT fleet, serial, min(started) AS first, count(DISTINCT board) AS boards, sum(events)::BIGINT AS events,
       sum(lost)::BIGINT AS lost, count(*) FILTER (incomplete) AS incomplete
FROM answers GROUP BY fleet, serial ORDER BY fleet, serial;
