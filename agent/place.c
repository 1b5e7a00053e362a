/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/place.h"

#include <sodium.h>
#include <stdlib.h>

#include "base/io.h"
#include "fleet/order.h"

static void place_keep(struct place *p, const void *data, size_t len)
{
	p->news = PLACE_ORDER;
	buf_append(&p->text, data, len);
	if (!p->text.failed)
		return;
	/* Without memory, it is looked at when the next connection shows it. */
	p->news = PLACE_NONE;
	buf_clear(&p->text);
	memset(p->digest, 0, DIGEST_SIZE);
}

void place_show(struct place *p, const void *data, size_t len)
{
	unsigned char digest[DIGEST_SIZE];

	crypto_generichash(digest, DIGEST_SIZE, data, len, NULL, 0);
	if (memcmp(digest, p->digest, DIGEST_SIZE) == 0)
		return;
	memcpy(p->digest, digest, DIGEST_SIZE);
	p->replaced += p->news != PLACE_NONE;
	p->due_ns = p->looked_ns + NSEC_PER_SEC;
	p->news = PLACE_NONE;
	buf_clear(&p->text);
	if (!len)
		p->is_withdrawn = true;
	else if (len > ORDER_MAX)
		p->news = PLACE_TOO_LARGE;
	else
		place_keep(p, data, len);
}

void place_forget(struct place *p, uint64_t now)
{
	p->news = PLACE_NONE;
	p->replaced = 0;
	p->looked_ns = now;
	buf_deinit(&p->text);
	p->text = BUF_INIT;
}

void order_place_deinit(struct place *p)
{
	free(p->name);
	buf_deinit(&p->text);
	*p = (struct place){ 0 };
}
