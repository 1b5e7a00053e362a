/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The terminal of `tracectl top`, by ncurses. Built without it, no screen can be opened. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Whether there is a terminal that can show a page. */
bool top_screen_is_possible(void);
/* False: it was built without ncurses. */
bool top_screen_is_built(void);

/* Takes over the terminal. -ENOTTY: that cannot show a page. */
int top_screen_open(void);
/* Gives the terminal back; also if none was open. */
void top_screen_close(void);

/* The terminal has another size: takes it. */
void top_screen_resize(void);
void top_screen_size(size_t *ret_rows, size_t *ret_width);
/* The next key that was pressed, as top_view_key() takes it; -1: none. */
int top_screen_key(void);
/* Shows lines; the one with this number stands out. */
void top_screen_show(const struct buf *lines, size_t names);
