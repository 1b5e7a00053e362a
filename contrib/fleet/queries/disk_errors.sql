-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Disks with failed requests.
SELECT board, device, sum(errors)::BIGINT AS errors
FROM rows WHERE report = 'block'
GROUP BY board, device HAVING sum(errors) > 0 ORDER BY errors DESC;
