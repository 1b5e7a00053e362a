/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recording.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <cmocka.h>

#include "base/io.h"
#include "stream/reader.h"

struct tracefs *open_tracefs_or_skip(void)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct tracefs *fs;

	if (tracefs_open(&fs, NULL, &err) < 0) {
		fprintf(stderr, "skipped: %s\n", err.message);
		exit(77);
	}
	if (faccessat(tracefs_root(fs), "instances", W_OK, AT_EACCESS) < 0) {
		fprintf(stderr, "skipped: this user may not make tracefs instances\n");
		exit(77);
	}
	return fs;
}

void recording_init(struct recording *r, struct tracefs *fs)
{
	char path[100];

	strcpy(r->dir, "/tmp/traced-test-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	snprintf(r->state, sizeof(r->state), "%s/state", r->dir);
	assert_int_equal(mkdir(r->state, 0700), 0);
	snprintf(path, sizeof(path), "%s/stream", r->dir);
	r->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(r->fd >= 0);
	r->env = (struct capture_env){ .tracefs = fs, .proc = "/proc", .state_dir = r->state };
}

bool kernel_maps_rings(void)
{
	unsigned major, minor;
	struct utsname name;

	assert_int_equal(uname(&name), 0);
	assert_int_equal(sscanf(name.release, "%u.%u", &major, &minor), 2);
	return major > 6 || (major == 6 && minor >= 10);
}

static int remove_one(const char *path, const struct stat *st _unused_, int type _unused_,
		      struct FTW *ftw _unused_)
{
	return remove(path);
}

void recording_deinit(struct recording *r)
{
	close_fd(r->fd);
	nftw(r->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void run_until(struct capture *c, uint64_t end)
{
	for (uint64_t now; (now = now_ns(CLOCK_BOOTTIME)) < end;) {
		uint64_t next = MIN(capture_deadline(c), end);
		struct pollfd p = { .fd = capture_fd(c), .events = POLLIN };
		int r;

		poll(&p, 1, next > now ? (int)((next - now) / NSEC_PER_MSEC) + 1 : 0);
		do {
			r = capture_dispatch(c, NULL);
			assert_true(r >= 0);
		} while (r > 0);
	}
}

void run_for(struct capture *c, uint64_t ns)
{
	run_until(c, now_ns(CLOCK_BOOTTIME) + ns);
}

unsigned count_instances(struct tracefs *fs, const char *prefix)
{
	unsigned found = 0;
	size_t count = 0;
	char **names = NULL;

	assert_int_equal(tracefs_list_instances(fs, &names, &count), 0);
	for (size_t i = 0; i < count; i++)
		found += strncmp(names[i], prefix, strlen(prefix)) == 0;
	tracefs_free_names(names, count);
	return found;
}

static void add_format(struct decoded *d, struct buf *b)
{
	const char *system, *name, *id;
	unsigned n = d->name_count;

	/* The function may move the text that it terminates. */
	system = buf_string(b);
	assert_non_null(system);
	name = strstr(b->data + strlen(system) + 1, "name: ");
	id = name ? strstr(name, "\nID: ") : NULL;
	assert_non_null(id);
	if (n < ARRAY_SIZE(d->names)) {
		snprintf(d->names[n].name, sizeof(d->names[n].name), "%s:%.*s", system,
			 (int)strcspn(name + 6, "\n"), name + 6);
		d->names[n].id = (uint16_t)strtoul(id + 5, NULL, 10);
		d->name_count++;
	}
	d->formats++;
}

static void add_subbuf(struct decoded *d, unsigned buffer, unsigned cpu, const uint8_t *page,
		       uint32_t skip, record_func func, void *userdata)
{
	struct decoded_cpu *c = &d->cpus[buffer][cpu];
	const uint8_t *first = page + d->layout.data_offset + skip;
	struct page_iter it;
	struct record rec;
	int r;

	assert_int_equal(page_iter_init(&it, &d->layout, page, d->layout.subbuf_size), 0);
	if (it.missed == UINT64_MAX)
		c->uncounted++;
	else
		c->missed += it.missed;
	while ((r = page_iter_next(&it, &rec)) > 0) {
		if (rec.data < first)
			continue;
		/* Within one CPU time never goes back. */
		assert_true(rec.ts >= c->last_ts);
		c->last_ts = rec.ts;
		c->events++;
		if (func)
			func(userdata, buffer, cpu, &rec);
	}
	assert_int_equal(r, 0);
	c->subbufs++;
}

static void add_subbufs(struct decoded *d, const struct chunk *chunk, const struct buf *b,
			record_func func, void *userdata)
{
	struct subbufs_header h;
	uint32_t skip;

	assert_true(b->len >= sizeof(h));
	memcpy(&h, b->data, sizeof(h));
	assert_true(le32toh(h.buffer) < BUFFER_COUNT && chunk->cpu < DECODED_CPUS);
	assert_int_equal((b->len - sizeof(h)) % d->layout.subbuf_size, 0);
	skip = le32toh(h.skip);
	for (size_t at = sizeof(h); at < b->len; at += d->layout.subbuf_size, skip = 0)
		add_subbuf(d, le32toh(h.buffer), chunk->cpu, (const uint8_t *)b->data + at, skip,
			   func, userdata);
}

static void add_stats(struct decoded *d, const struct buf *b)
{
	Traced__Capture__Stats *s =
		traced__capture__stats__unpack(NULL, b->len, (const uint8_t *)b->data);

	assert_non_null(s);
	assert_true(s->buffer < BUFFER_COUNT);
	for (size_t i = 0; i < s->n_cpus; i++)
		if (s->cpus[i]->cpu < DECODED_CPUS)
			d->cpus[s->buffer][s->cpus[i]->cpu].stats = *s->cpus[i];
	traced__capture__stats__free_unpacked(s, NULL);
}

static void add_tasks(struct decoded *d, const struct buf *b)
{
	Traced__Capture__Tasks *t =
		traced__capture__tasks__unpack(NULL, b->len, (const uint8_t *)b->data);

	assert_non_null(t);
	d->tasks += (unsigned)t->n_tasks;
	traced__capture__tasks__free_unpacked(t, NULL);
}

static void add_chunk(struct decoded *d, const struct chunk *chunk, struct buf *b, record_func func,
		      void *userdata)
{
	switch (chunk->type) {
	case CHUNK_HEADER:
		d->header = traced__capture__header__unpack(NULL, b->len, (uint8_t *)b->data);
		assert_non_null(d->header);
		break;
	case CHUNK_HEADER_PAGE:
		assert_int_equal(page_layout_parse(&d->layout, b->data, b->len,
						   d->header->word_size, d->header->big_endian,
						   d->header->subbuf_size, NULL),
				 0);
		break;
	case CHUNK_FORMAT:
		add_format(d, b);
		break;
	case CHUNK_SUBBUFS:
		add_subbufs(d, chunk, b, func, userdata);
		break;
	case CHUNK_STATS:
		add_stats(d, b);
		break;
	case CHUNK_TASKS:
		add_tasks(d, b);
		break;
	default:
		d->kallsyms += chunk->type == CHUNK_KALLSYMS;
		d->excerpts += chunk->type == CHUNK_KALLSYMS_EXCERPT;
		d->clocks += chunk->type == CHUNK_CLOCKS;
		d->notes += chunk->type == CHUNK_NOTE;
		d->ends += chunk->type == CHUNK_END;
	}
}

struct decoded *decode(int fd, record_func func, void *userdata)
{
	struct decoded *d = calloc(1, sizeof(*d));
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct stream_reader reader;
	struct chunk chunk;
	int r;

	assert_non_null(d);
	assert_int_equal(stream_reader_init(&reader, fd, NULL), 0);
	while ((r = stream_reader_next(&reader, &chunk, NULL)) > 0) {
		assert_int_equal(stream_reader_load(&reader, &chunk, &b, NULL), 0);
		add_chunk(d, &chunk, &b, func, userdata);
	}
	assert_true(r == 0 || r == -ENODATA);
	d->cut = r == -ENODATA;
	d->whole = reader.offset;
	return d;
}

void decoded_free(struct decoded *d)
{
	if (d->header)
		traced__capture__header__free_unpacked(d->header, NULL);
	free(d);
}

int decoded_event_id(const struct decoded *d, const char *name)
{
	for (unsigned i = 0; i < d->name_count; i++)
		if (strcmp(d->names[i].name, name) == 0)
			return d->names[i].id;
	return -1;
}
