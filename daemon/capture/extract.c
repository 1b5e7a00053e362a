/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Drains an existing buffer into a stream. Reads only; no setting of the buffer changes. */
#include <fcntl.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "base/io.h"
#include "base/nearest.h"
#include "daemon/capture/capture.h"
#include "daemon/capture/clocks.h"
#include "daemon/capture/last_boot.h"
#include "daemon/capture/names/mappings.h"
#include "daemon/capture/names/metadata.h"
#include "daemon/capture/names/names.h"
#include "daemon/capture/rings/ring.h"
#include "proto/capture.pb-c.h"

struct extraction {
	const struct capture_env *env;
	const char *instance;
	struct ring ring;
	struct staging staging;
	struct names names;
	struct stream_writer writer;
	struct buf header, header_page;
	bool last_boot;	 /* what is known of this boot is not written: tasks, clocks, times */
	bool taken;	 /* events may have left the ring */
	struct buf boot; /* the packed LastBoot */
	int guard; /* holds trace_pipe open: since Linux 6.6 the kernel admits a single reader */
	uint64_t start_boot_ns, cpu_began;
};

static void extraction_deinit(struct extraction *x)
{
	ring_close(&x->ring);
	staging_deinit(&x->staging);
	names_deinit(&x->names);
	buf_deinit(&x->boot);
	buf_deinit(&x->header);
	buf_deinit(&x->header_page);
	x->guard = close_fd(x->guard);
}

static int extraction_no_instance(const struct capture_env *env, const char *instance,
				  struct error *err)
{
	const char *best[NEAREST_MAX];
	char **names = NULL;
	size_t count = 0, n = 0;

	error_set(err, -ENOENT, "there is no tracefs instance '%s'", instance);
	if (tracefs_list_instances(env->tracefs, &names, &count) == 0)
		n = nearest_names(instance, (const char *const *)names, count, best);
	if (n)
		error_hint(err, "did you mean '%s'?", best[0]);
	else if (count)
		error_hint(err, "there are %zu, the first is '%s'", count, names[0]);
	else
		error_hint(err,
			   "there are no instances; without a name the top-level buffer is read");
	tracefs_free_names(names, count);
	return -ENOENT;
}

static int extraction_open(struct extraction *x, struct error *err)
{
	int dir = tracefs_open_instance(x->env->tracefs, x->instance);
	struct subbuf_layout layout;
	int r;

	if (dir == -ENOENT)
		return extraction_no_instance(x->env, x->instance, err);
	if (dir < 0)
		return error_errno(err, dir, "cannot open the tracefs instance");
	x->guard = tracefs_open_file(dir, O_RDONLY | O_NONBLOCK, "trace_pipe");
	r = metadata_read_layout(x->env->tracefs, dir, &x->header_page, &layout, err);
	if (r == 0 && x->guard == -EBUSY) {
		error_set(err, -EBUSY, "another program is reading this buffer");
		r = error_hint(err, "stop the program that reads its trace_pipe");
	}
	if (r == 0 && staging_init(&x->staging, layout.size) < 0)
		r = error_set(err, -ENOMEM, "out of memory");
	if (r < 0) {
		close_fd(dir);
		return r;
	}
	/* Splice, not mmap: a mapping keeps the buffer's owner from resizing it. */
	return ring_open(&x->ring, BUFFER_MAIN, dir, capture_env_sys(x->env), NULL,
			 CAPTURE_READER_SPLICE, &layout, &x->staging, err);
}

static int extraction_describe(struct extraction *x, struct error *err)
{
	struct metadata m = { .env = x->env,
			      .instance = x->instance,
			      .dir = x->ring.dir,
			      .layout = &x->ring.layout,
			      .cpus = x->ring.cpu_count };
	const char *const *events;
	size_t count;
	int r;

	for (unsigned i = 0; i < x->ring.cpu_count; i++)
		m.cpus_online += x->ring.cpus[i].online;
	if (getrandom(m.uuid, sizeof(m.uuid), 0) != sizeof(m.uuid))
		return error_errno(err, -errno, "cannot get random bytes");
	r = metadata_pack_header(&m, &x->header, err);
	if (r == 0)
		r = tracefs_events(x->env->tracefs, &events, &count, err);
	if (r < 0)
		return r;
	r = names_init(&x->names, x->env, events, count, true);
	if (r == 0)
		r = names_see_options(&x->names, x->ring.dir);
	return r < 0 ? error_errno(err, r, "cannot list the events") : 0;
}

static int extraction_write_clocks(struct extraction *x, enum clock_phase phase)
{
	struct clock_snapshot s;

	if (x->last_boot)
		return 0;
	clocks_read(&s);
	return clocks_write(&s, &x->writer, phase);
}

static int extraction_write_head(struct extraction *x, int fd)
{
	int r = stream_writer_init(&x->writer, fd, 0);

	if (r == 0)
		r = stream_write(&x->writer, CHUNK_HEADER, x->header.data, x->header.len);
	if (r == 0)
		r = stream_write(&x->writer, CHUNK_HEADER_PAGE, x->header_page.data,
				 x->header_page.len);
	if (r == 0 && x->last_boot)
		r = stream_write(&x->writer, CHUNK_LAST_BOOT, x->boot.data, x->boot.len);
	if (r == 0)
		r = extraction_write_clocks(x, CLOCK_PHASE_START);
	return r;
}

static int extraction_write_names(struct extraction *x)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (x->last_boot ||
	    tracefs_read(tracefs_root(x->env->tracefs), "saved_cmdlines", &text) < 0 ||
	    !buf_string(&text))
		return 0;
	return tasks_write_saved(text.data, &x->writer);
}

/*
 * Since about Linux 6.16 the kernel resets the counts of a ring of the last boot once it is empty:
 * all that was counted before has been read.
 */
static int extraction_count_rest(struct extraction *x)
{
	if (!x->last_boot)
		return ring_count(&x->ring);
	for (unsigned cpu = 0; cpu < x->ring.cpu_count; cpu++) {
		struct cpu_counts *c = &x->ring.cpus[cpu].counts;

		c->read += c->entries;
		c->entries = c->bytes = 0;
	}
	return 0;
}

static int extraction_write_formats(struct extraction *x)
{
	int r;

	do {
		r = names_step(&x->names, &x->writer);
	} while (r > 0);
	return r;
}

static int extraction_write_tail(struct extraction *x)
{
	Traced__Capture__End end = TRACED__CAPTURE__END__INIT;
	struct rusage u;
	int r = x->last_boot ? 0 : extraction_write_formats(x);

	if (r == 0)
		r = extraction_write_names(x);
	if (r == 0)
		r = extraction_write_clocks(x, CLOCK_PHASE_END);
	if (r == 0)
		r = extraction_count_rest(x);
	if (r == 0)
		r = ring_write_stats(&x->ring, &x->writer, CLOCK_PHASE_END);
	if (r < 0)
		return r;
	end.reason = TRACED__CAPTURE__END__REASON__EXTRACTED;
	end.boot_ns = x->last_boot ? 0 : now_ns(CLOCK_BOOTTIME);
	end.start_boot_ns = x->start_boot_ns;
	end.cpu_time_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - x->cpu_began;
	if (getrusage(RUSAGE_SELF, &u) == 0)
		end.peak_rss_bytes = (uint64_t)u.ru_maxrss * 1024;
	return stream_write_message(&x->writer, CHUNK_END, &end.base);
}

/* Writes the current mappings: the kernel's own text of user stacks uses them, too. */
static int extraction_write_mappings(struct extraction *x)
{
	struct mapping_scan scan = MAPPING_SCAN_INIT;
	uint64_t on = 0;
	int r;

	tracefs_read_u64(x->ring.dir, "options/sym-userobj", &on);
	if (!on || x->last_boot || mapping_scan_start(&scan, x->env->proc, true) < 0)
		return 0;
	do {
		r = mapping_scan_step(&scan, true, &x->writer);
	} while (r > 0);
	return r;
}

static int extraction_drain(struct extraction *x)
{
	uint64_t on = 0;

	/* A buffer that is still written to needs a bound, or the flush would never end. */
	tracefs_read_u64(x->ring.dir, "tracing_on", &on);
	return on ? ring_flush_bounded(&x->ring, &x->staging, &x->writer)
		  : ring_flush(&x->ring, &x->staging, &x->writer);
}

static uint64_t extraction_count_read(const struct ring *ring)
{
	uint64_t n = 0;

	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++)
		n += ring->cpus[cpu].counts.read;
	return n;
}

/* Times of this boot's clock say nothing about the last one's. */
static void extraction_forget_times(struct extraction *x)
{
	for (unsigned cpu = 0; cpu < x->ring.cpu_count; cpu++)
		x->ring.cpus[cpu].counts.now_ns = 0;
	x->ring.counted_boot_ns = 0;
}

static uint64_t extraction_count_held(const struct ring *ring)
{
	uint64_t n = 0;

	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++)
		n += ring->cpus[cpu].counts.entries;
	return n;
}

/* Before anything is taken. */
static int extraction_see_last_boot(struct extraction *x, struct error *err)
{
	_cleanup_buf_ struct buf info = BUF_INIT;
	int r = last_boot_read_info(x->ring.dir, x->instance, &info, err);

	if (r < 0)
		return r;
	/* Linux 6.12 does not tell the two boots' events apart. */
	if (ring_is_on(&x->ring) > 0) {
		error_set(err, -EBUSY, "the ring '%s' already records this boot", x->instance);
		return error_hint(err, "'^traceoff' on the kernel's command line keeps it off: "
				       "tracectl boot-recorder enable");
	}
	r = ring_count(&x->ring);
	if (r < 0)
		return error_errno(err, r, "cannot count the events");
	if (!extraction_count_held(&x->ring))
		return last_boot_nothing(x->instance, err);
	x->names.stage = NAMES_FORMATS;
	x->start_boot_ns = 0;
	return last_boot_pack(x->env, &info, &x->boot, err);
}

static int extraction_transfer(struct extraction *x, int fd, struct capture_stats *ret)
{
	uint64_t before;
	int r = extraction_write_head(x, fd);

	if (r == 0)
		r = extraction_write_mappings(x);
	/* Events are gone from the ring once they are read: without formats they would be lost. */
	if (r == 0 && x->last_boot)
		r = extraction_write_formats(x);
	if (r == 0)
		r = ring_count(&x->ring);
	before = extraction_count_read(&x->ring);
	if (x->last_boot)
		extraction_forget_times(x);
	if (r == 0)
		r = ring_write_stats(&x->ring, &x->writer, CLOCK_PHASE_START);
	x->taken = r == 0;
	if (r == 0)
		r = extraction_drain(x);
	if (r == 0)
		r = extraction_write_tail(x);
	if (r < 0 || !ret)
		return r;
	*ret = (struct capture_stats){ .start_boot_ns = x->start_boot_ns,
				       .events = extraction_count_read(&x->ring) - before,
				       .bytes = x->writer.bytes,
				       .reader = cpu_reader_kind_name(CAPTURE_READER_SPLICE),
				       .instance = x->instance };
	for (unsigned cpu = 0; cpu < x->ring.cpu_count; cpu++) {
		const struct cpu_counts *c = &x->ring.cpus[cpu].counts;

		ret->lost += c->overrun + c->commit_overrun + c->dropped;
	}
	return 0;
}

static int extract(const struct capture_env *env, const char *instance, bool last_boot,
		   int stream_fd, struct capture_stats *ret, bool *ret_taken, struct error *err)
{
	_cleanup_(extraction_deinit) struct extraction x = {
		.env = env,
		.instance = instance,
		.last_boot = last_boot,
		.ring = { .dir = -EBADF },
		.staging = STAGING_INIT,
		.names = NAMES_INIT,
		.guard = -EBADF,
		.start_boot_ns = now_ns(CLOCK_BOOTTIME),
		.cpu_began = now_ns(CLOCK_THREAD_CPUTIME_ID),
	};
	int r;

	r = extraction_open(&x, err);
	if (r == 0)
		r = extraction_describe(&x, err);
	if (r == 0 && last_boot)
		r = extraction_see_last_boot(&x, err);
	if (r < 0)
		return r;
	r = extraction_transfer(&x, stream_fd, ret);
	*ret_taken = x.taken;
	return r < 0 ? error_errno(err, r, "cannot write the capture stream") : 0;
}

int capture_extract(const struct capture_env *env, const char *instance, int stream_fd,
		    struct capture_stats *ret, struct error *err)
{
	bool taken;

	return extract(env, instance, false, stream_fd, ret, &taken, err);
}

int capture_extract_last_boot(const struct capture_env *env, const char *instance, int stream_fd,
			      bool *ret_taken, struct error *err)
{
	*ret_taken = false;
	return extract(env, instance, true, stream_fd, NULL, ret_taken, err);
}
