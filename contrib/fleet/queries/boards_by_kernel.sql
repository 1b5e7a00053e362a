-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Kernel versions, by each board's last answer.
SELECT kernel, arch, count(*) AS boards
FROM (SELECT board, arg_max(kernel, started) AS kernel, arg_max(arch, started) AS arch
      FROM answers GROUP BY fleet, board)
GROUP BY kernel, arch ORDER BY boards DESC, kernel;
