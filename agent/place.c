/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/place.h"

#include <sodium.h>
#include <stdlib.h>

#include "agent/order.h"

void place_show(struct place *p, const void *data, size_t len)
{
	unsigned char digest[DIGEST_SIZE];

	crypto_generichash(digest, DIGEST_SIZE, data, len, NULL, 0);
	if (memcmp(digest, p->digest, DIGEST_SIZE) == 0)
		return;
	place_forget(p);
	memcpy(p->digest, digest, DIGEST_SIZE);
	p->due_ns = 0;
	if (!len) {
		p->news = PLACE_EMPTY;
	} else if (len > ORDER_MAX) {
		p->news = PLACE_TOO_LARGE;
	} else {
		p->news = PLACE_ORDER;
		buf_append(&p->text, data, len);
		/* Without memory, it is judged when the next connection shows it. */
		if (p->text.failed) {
			place_forget(p);
			memset(p->digest, 0, DIGEST_SIZE);
		}
	}
}

void place_forget(struct place *p)
{
	p->news = PLACE_NONE;
	buf_deinit(&p->text);
	p->text = BUF_INIT;
}

void place_deinit(struct place *p)
{
	free(p->name);
	buf_deinit(&p->text);
	*p = (struct place){ 0 };
}
