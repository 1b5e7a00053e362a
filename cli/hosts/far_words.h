/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The command line of a host's recorder. */
#pragma once

#include "cli.h"

struct far_words {
	char **items; /* owned, as are the first `owned` of them */
	size_t count, cap, owned;
};

/* A NULL ends the words. 0 or -ENOMEM; call far_words_deinit() in any case. */
int far_words_init(struct far_words *w, const struct options *o);
void far_words_deinit(struct far_words *w);
#define _cleanup_far_words_ _cleanup_(far_words_deinit)
