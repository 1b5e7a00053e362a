/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Setup and teardown of a test that runs in its own folder. */
#pragma once

int own_folder_setup(void **state);
int own_folder_teardown(void **state);
/* Counts the entries of the current folder. */
unsigned own_folder_count(void);
