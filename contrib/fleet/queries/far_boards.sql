-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Boards whose p99 of delays is far from the rest, in their last answer: more than 3.5 times 1.4826
-- times the median distance from the median. `tracectl fleet report` uses the same measure.
WITH last AS (SELECT fleet, board, max(serial) AS serial FROM rows WHERE report = 'sched' GROUP BY ALL),
each_board AS (
    SELECT fleet, board, p99(list(delay)) AS p99_ns
    FROM rows JOIN last USING (fleet, board, serial) WHERE report = 'sched' GROUP BY fleet, board),
fleets AS (SELECT fleet, median(p99_ns) AS middle, mad(p99_ns) AS mad FROM each_board GROUP BY fleet)
SELECT board, p99_ns, middle::BIGINT AS median_ns,
       round(abs(p99_ns - middle) / greatest(1.4826 * mad, 0.01 * middle, 1), 1) AS deviations
FROM each_board JOIN fleets USING (fleet)
WHERE deviations > 3.5 ORDER BY deviations DESC;
