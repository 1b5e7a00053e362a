/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where profile files are looked for: TRACED_PROFILES names one folder instead of the installed. */
#pragma once

const char *const *profile_places(void);
