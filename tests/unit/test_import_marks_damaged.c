/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Marks of Perfetto traces that are cut, or have other bits than they were written with. */
#include "imported_marks.h"

#define PACKETS_MAX 512

/* The packets of a file, and what an importer is given of each. */
struct packets {
	struct wire_field whole[PACKETS_MAX];
	size_t count;
};

static void split(const struct buf *file, struct packets *ret)
{
	struct wire_reader r = wire_reader_of(file->data, file->len);
	struct wire_field f;

	ret->count = 0;
	while (wire_read(&r, &f)) {
		assert_true(ret->count < ARRAY_SIZE(ret->whole));
		ret->whole[ret->count++] = f;
	}
	assert_false(r.bad);
}

static void export_rich(struct buf *out)
{
	_cleanup_buf_ struct buf rich = BUF_INIT;

	read_rich_marks(&rich);
	export_marks(rich.data, rich.len, out);
}

/* The part of a packet of which something comes; NULL: it has none. */
static struct wire_field *telling_part(struct pf_packet *p)
{
	struct wire_field *parts[] = { &p->track_event, &p->track_descriptor, &p->perf_sample };

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i]->len)
			return parts[i];
	return NULL;
}

/* Cut anywhere: what was before is there, and what comes of it can be read. */
static void cut_anywhere(void **state _unused_)
{
	_cleanup_buf_ struct buf file = BUF_INIT;
	uint64_t before = 0, runs = 0;
	struct pf_packet read[PACKETS_MAX];
	struct packets all;

	export_rich(&file);
	split(&file, &all);
	for (size_t n = 0; n < all.count; n++) {
		struct wire_field *part;
		struct pf_packet p;
		size_t whole;

		assert_true(pf_packet_read(wire_reader_in(&all.whole[n]), &read[n]));
		p = read[n];
		part = telling_part(&p);
		whole = part ? part->len : 0;
		for (size_t len = 0; part && len <= whole; len++, runs++) {
			_cleanup_import_ struct import i;

			import_begin(&i, 0);
			for (size_t k = 0; k < n; k++)
				import_add(&i, &read[k]);
			part->len = len;
			import_add(&i, &p);
			if (runs % 4 == 0) {
				import_end(&i);
				check_readable(&i);
			} else {
				import_close(&i);
			}
			assert_true(i.count >= before);
			if (len == whole) {
				assert_int_equal(i.left_out, 0);
				before = i.count;
			}
		}
	}
	assert_true(before > 50);
}

/* Bits that changed: some of it is lost, no more. */
static void any_bits_are_taken(void **state _unused_)
{
	_cleanup_buf_ struct buf file = BUF_INIT;
	uint32_t random = 1;
	struct packets all;

	export_rich(&file);
	split(&file, &all);
	for (unsigned run = 0; run < 1500; run++) {
		_cleanup_buf_ struct buf bytes = BUF_INIT;
		_cleanup_import_ struct import i;

		buf_append(&bytes, file.data, file.len);
		for (unsigned flip = 0; flip <= run % 8; flip++) {
			const struct wire_field *f;
			size_t at;

			random = random * 1664525 + 1013904223;
			f = &all.whole[(random >> 8) % all.count];
			random = random * 1664525 + 1013904223;
			at = (size_t)(f->data - (const uint8_t *)file.data) +
			     (random >> 8) % f->len;
			bytes.data[at] = (char)(bytes.data[at] ^ (1 << (random >> 5 & 7)));
		}
		import_begin(&i, 0);
		for (size_t k = 0; k < all.count; k++) {
			size_t at = (size_t)(all.whole[k].data - (const uint8_t *)file.data);
			struct pf_packet p;

			/* So much of it as comes before what is damaged. */
			pf_packet_read(wire_reader_of(bytes.data + at, all.whole[k].len), &p);
			import_add(&i, &p);
		}
		import_end(&i);
		check_readable(&i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(any_bits_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
