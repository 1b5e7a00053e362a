/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/shares.h"

#include <errno.h>
#include <inttypes.h>

#include "base/secret_hash.h"
#include "trace/index.h"

/* Limit of what one holds, as a multiple of what is free. */
#define SHARE 2

static uint64_t share_hash(const struct share_owner *o, bool all)
{
	return hash_number(o->user ^ hash_pair(all, o->pid));
}

DEFINE_TABLE(share_slots, struct share, const struct share *, slot->used != 0,
	     share_hash(&slot->owner, slot->all),
	     slot->owner.user == key->owner.user && slot->owner.pid == key->owner.pid &&
		     slot->all == key->all);

void shares_restart(struct shares *s)
{
	TABLE_CLEAR(&s->holders);
	s->used = 0;
}

void shares_deinit(struct shares *s)
{
	TABLE_DEINIT(&s->holders);
}

static struct share share_of(const struct share_owner *owner, bool all)
{
	return (struct share){ { owner->user, all ? 0 : owner->pid }, all, 0 };
}

static struct share *share_find(const struct shares *s, const struct share_owner *owner, bool all)
{
	const struct share key = share_of(owner, all);

	return share_slots_find(&s->holders, share_hash(&key.owner, all), &key);
}

static int share_add(struct shares *s, const struct share_owner *owner, bool all, uint64_t count)
{
	const struct share key = share_of(owner, all);
	struct share *h = share_slots_place(&s->holders, share_hash(&key.owner, all), &key);

	if (!h)
		return -ENOMEM;
	if (!h->used) {
		*h = key;
		s->holders.count++;
	}
	h->used += count;
	return 0;
}

static void share_subtract(struct shares *s, const struct share_owner *owner, bool all,
			   uint64_t count)
{
	struct share *h = share_find(s, owner, all);

	if (!h)
		return;
	h->used -= count;
	if (!h->used)
		share_slots_remove(&s->holders, h);
}

static int shares_refuse(struct shares *s, const struct share_owner *owner)
{
	if (!s->refused++)
		s->refused_pid = owner->pid;
	s->refused_others |= owner->pid != s->refused_pid;
	return -ENOSPC;
}

static bool shares_have_room(const struct shares *s, const struct share_owner *owner,
			     uint64_t count)
{
	const struct share *all = share_find(s, owner, true), *own = share_find(s, owner, false);
	uint64_t free = s->max - s->used, user = all ? all->used : 0, process = own ? own->used : 0;

	return count <= free && user + count <= SHARE * free &&
	       process + count <= SHARE * (SHARE * free - user);
}

int shares_try_take(struct shares *s, const struct share_owner *owner, uint64_t count)
{
	if (!shares_have_room(s, owner, count))
		return -ENOSPC;
	/* Room for both: then adding the second one can't fail. */
	if (share_slots_reserve(&s->holders, s->holders.count + 2) < 0 ||
	    share_add(s, owner, true, count) < 0 || share_add(s, owner, false, count) < 0)
		return -ENOMEM;
	s->used += count;
	return 0;
}

int shares_take(struct shares *s, const struct share_owner *owner, uint64_t count)
{
	int r = shares_try_take(s, owner, count);

	return r == -ENOSPC ? shares_refuse(s, owner) : r;
}

void shares_return(struct shares *s, const struct share_owner *owner, uint64_t count)
{
	if (!count)
		return;
	share_subtract(s, owner, true, count);
	share_subtract(s, owner, false, count);
	s->used -= count;
}

int shares_warn(const struct shares *s, const char *what, const char *more,
		struct stream_index *index)
{
	char process[32] = "a file or the samples";

	if (!s->refused)
		return 0;
	if (s->refused_pid)
		snprintf(process, sizeof(process), "process %" PRId32, s->refused_pid);
	return stream_index_warn(index, "%s are left out (%" PRIu64 "): %s%s too many%s%s", what,
				 s->refused, process,
				 s->refused_others ? " and others have" : " has", more ? " " : "",
				 more ?: "");
}
