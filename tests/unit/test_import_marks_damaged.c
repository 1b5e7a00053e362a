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

/* So much of a packet as is there: its last part may be cut. */
static void read_packet(const uint8_t *data, size_t len, struct pf_packet *ret)
{
	struct wire_reader r = wire_reader_of(data, len);
	struct wire_field f = { 0 };

	*ret = (struct pf_packet){ 0 };
	for (;;) {
		const uint8_t *at = r.at;
		uint64_t tag, size;

		if (!wire_read(&r, &f)) {
			struct wire_reader cut = wire_reader_of(at, (size_t)(data + len - at));

			if (!r.bad || !wire_read_varint(&cut, &tag) || (tag & 7) != WIRE_BYTES ||
			    !wire_read_varint(&cut, &size))
				return;
			f = (struct wire_field){ .number = (uint32_t)(tag >> 3),
						 .type = WIRE_BYTES,
						 .data = cut.at,
						 .len = (size_t)(cut.end - cut.at) };
		}
		switch (f.number) {
		case 8:
			ret->timestamp = f.value;
			break;
		case 10:
			ret->sequence = (uint32_t)f.value;
			break;
		case 11:
			ret->track_event = f;
			break;
		case 12:
			ret->interned = f;
			break;
		case 13:
			ret->sequence_flags = (uint32_t)f.value;
			break;
		case 59:
			ret->defaults = f;
			break;
		case 60:
			ret->track_descriptor = f;
			break;
		case 66:
			ret->perf_sample = f;
			break;
		}
		if (r.bad)
			return;
	}
}

/* Cut anywhere: what was before is there, and what comes of it can be read. */
static void cut_anywhere(void **state _unused_)
{
	_cleanup_buf_ struct buf file = BUF_INIT;
	uint64_t before = 0, runs = 0;
	struct pf_packet read[PACKETS_MAX], p;
	struct packets all;

	export(rich, sizeof(rich) - 1, &file);
	split(&file, &all);
	for (size_t n = 0; n < all.count; n++) {
		const struct wire_field *last = &all.whole[n];

		read_packet(last->data, last->len, &read[n]);
		p = read[n];
		if (!p.track_event.len && !p.track_descriptor.len && !p.perf_sample.len)
			continue;
		for (size_t len = 0; len <= last->len; len++, runs++) {
			_cleanup_import_ struct import i;

			import_begin(&i, 0);
			for (size_t k = 0; k < n; k++)
				import_add(&i, &read[k]);
			read_packet(last->data, len, &p);
			import_add(&i, &p);
			if (runs % 4 == 0) {
				import_end(&i);
				check_readable(&i);
			} else {
				import_close(&i);
			}
			assert_true(i.count >= before);
			if (len == last->len) {
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

	export(rich, sizeof(rich) - 1, &file);
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

			read_packet((const uint8_t *)bytes.data + at, all.whole[k].len, &p);
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
