/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the sub-buffers of one CPU. A compressed buffer consists of blocks of some sub-buffers: the
 * number of blocks, then for each its compressed size, expanded size and data.
 */
#include "formats/dat/reader.h"

/* trace-cmd puts 10 sub-buffers into a block; one may have a MiB. */
#define BLOCK_MAX (16U << 20)
/* Traces compress about tenfold. A much larger claimed ratio is an attempt to fill the disk. */
#define RATIO_MAX 1000
#define RATIO_FREE (1U << 20)

int dat_run_open(struct dat_run *ret, const struct dat *d, const struct dat_buffer *b,
		 const struct dat_cpu *cpu, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	uint64_t size = cpu->size;
	int r = 0;

	*ret = (struct dat_run){ .dat = d, .page_size = b->page_size, .packed = b->packed };
	dat_cursor_file(&ret->from, d, cpu->offset, "events");
	/* trace-cmd 3.1 does not count the number of blocks in the size, 3.2 does. */
	if (b->packed && size)
		size = MIN(size, UINT64_MAX - sizeof(uint32_t)) + sizeof(uint32_t);
	if (cpu->offset <= d->size && size <= d->size - cpu->offset)
		ret->from.end = cpu->offset + size;
	else
		ret->cut = !b->packed;
	if (!size || cpu->offset >= d->size)
		ret->from.at = ret->from.end;
	else if (b->packed)
		r = dat_u32(&ret->from, &ret->blocks, &why);
	if (r == -EBADMSG) {
		ret->cut = true;
		return 0;
	}
	return r < 0 ? error_move(err, &why) : r;
}

void dat_run_deinit(struct dat_run *run)
{
	buf_deinit(&run->block);
	buf_deinit(&run->pages);
}

/* 0, or -EBADMSG: no further block is readable. */
static int data_next_block(struct dat_run *run, struct error *err)
{
	uint32_t size = 0, expanded = 0;
	int64_t n;
	char *to;
	int r;

	r = dat_u32(&run->from, &size, err);
	if (r == 0)
		r = dat_u32(&run->from, &expanded, err);
	if (r < 0)
		return r;
	run->stored += size;
	run->expanded += expanded;
	if (!expanded || expanded > BLOCK_MAX || size > 2 * BLOCK_MAX ||
	    run->expanded > run->stored * RATIO_MAX + RATIO_FREE)
		return dat_damaged(&run->from, err);
	buf_clear(&run->block);
	r = dat_append(&run->from, size, &run->block, err);
	if (r < 0)
		return r;
	to = buf_reserve(&run->pages, (size_t)expanded + 1);
	if (!to)
		return error_errno(err, -ENOMEM, "can't decompress its events");
	n = dat_unpack(run->dat, run->block.data, run->block.len, to, expanded, err);
	if (n < 0)
		return (int)n;
	/* A partial sub-buffer would shift all later ones. */
	if (n % run->page_size)
		return dat_damaged(&run->from, err);
	run->pages.len += (size_t)n;
	run->blocks--;
	return 0;
}

static int data_next_packed(struct dat_run *run, size_t max, struct error *err)
{
	while (run->blocks && run->pages.len < max) {
		_cleanup_error_ struct error why = ERROR_INIT;
		int r = data_next_block(run, &why);

		if (r == -EBADMSG) {
			run->cut = true;
			run->blocks = 0;
			break;
		}
		if (r < 0)
			return error_move(err, &why);
	}
	return run->pages.len > 0;
}

/* Bytes of the next whole sub-buffers. */
static uint32_t data_next_whole(struct dat_run *run, size_t max)
{
	uint64_t rest = run->from.end - run->from.at;
	uint64_t n = MIN(rest, (uint64_t)MAX(max, run->page_size));

	n -= n % run->page_size;
	run->cut |= n == 0 && rest > 0;
	return (uint32_t)n;
}

static int data_next_plain(struct dat_run *run, size_t max, struct error *err)
{
	uint32_t n = data_next_whole(run, max);
	int r = n ? dat_append(&run->from, n, &run->pages, err) : 0;

	return r < 0 ? r : n > 0;
}

int dat_run_next(struct dat_run *run, size_t max, struct error *err)
{
	buf_clear(&run->pages);
	return run->packed ? data_next_packed(run, max, err) : data_next_plain(run, max, err);
}

uint32_t dat_run_place(struct dat_run *run, uint64_t *ret_offset)
{
	uint32_t n = data_next_whole(run, DAT_RUN_BYTES);

	*ret_offset = run->from.at;
	run->from.at += n;
	return n;
}
