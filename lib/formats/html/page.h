/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The page up to its data, built from page.html, viewer.css and the scripts by embed.py. */
#pragma once

#include <stddef.h>

extern const char html_page[];
extern const size_t html_page_len;
