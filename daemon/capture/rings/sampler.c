/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/rings/sampler.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/buf.h"
#include "daemon/capture/tracefs/feature.h"
#include "proto/capture.pb-c.h"

/* PERF_FORMAT_LOST: Linux 6.0. */
#define FORMAT_LOST (UINT64_C(1) << 4)

struct sampler_cpu {
	int fd; /* below 0: offline, or not requested */
	struct perf_event_mmap_page *page;
};

#define SAMPLE_HZ_MAX 100000
#define SAMPLE_EVENT_DEFAULT "cpu-clock"

struct sample_event {
	uint32_t type; /* enum perf_type_id */
	uint64_t config;
};

/* Events by the names that perf(1) uses. */
static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} events[] = {
	{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
	{ "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
	{ "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	{ "minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN },
	{ "major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ },
	{ "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
	{ "cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS },
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ "cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES },
	{ "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES },
	{ "branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
	{ "branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES },
	{ "bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES },
	{ "ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES },
};

static int sample_event_hint(struct error *err)
{
	_cleanup_buf_ struct buf names = BUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		buf_printf(&names, "%s%s", i ? ", " : "", events[i].name);
	return error_hint(err, "use one of %s, or a raw one in hexadecimal: r1a8",
			  buf_string(&names) ?: "");
}

/* name: "cycles", "cpu-clock", "r01c2" (raw, hexadecimal) ... -EINVAL: unknown. */
static int sample_event_find(const char *name, struct sample_event *ret, struct error *err)
{
	char *end;

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		if (strcmp(events[i].name, name) != 0)
			continue;
		*ret = (struct sample_event){ events[i].type, events[i].config };
		return 0;
	}
	if (name[0] == 'r' && strspn(name + 1, "0123456789abcdef") == strlen(name + 1) && name[1] &&
	    strlen(name) <= 17) {
		*ret = (struct sample_event){ PERF_TYPE_RAW, strtoull(name + 1, &end, 16) };
		return 0;
	}
	error_set(err, -EINVAL, "'%s' is not an event to sample by", name);
	return sample_event_hint(err);
}

int sampling_check(const struct sampling *s, struct error *err)
{
	struct sample_event event;

	if (s->hz > SAMPLE_HZ_MAX) {
		error_set(err, -EINVAL, "%u samples a second are too many", s->hz);
		return error_hint(
			err, "the maximum is %u; kernel.perf_event_max_sample_rate may be lower",
			SAMPLE_HZ_MAX);
	}
	return sample_event_find(s->event ?: SAMPLE_EVENT_DEFAULT, &event, err);
}

/*
 * A hardware counter may sample in an NMI, where the kernel can read only two clocks. The exporter
 * converts their time by the clock readings in the stream.
 */
static int32_t sampler_choose_clock(const char *trace_clock, bool software)
{
	static const struct {
		const char *name;
		clockid_t clock;
		bool nmi_safe;
	} clocks[] = {
		{ "boot", CLOCK_BOOTTIME, false },
		{ "tai", CLOCK_TAI, false },
		{ "mono", CLOCK_MONOTONIC, true },
		{ "mono_raw", CLOCK_MONOTONIC_RAW, true },
	};

	/* perf's own default clock is this one. */
	if (!strcmp(trace_clock, "local") || !strcmp(trace_clock, "perf"))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		if (!strcmp(trace_clock, clocks[i].name) && (software || clocks[i].nmi_safe))
			return clocks[i].clock;
	return CLOCK_MONOTONIC;
}

static int sampler_open_event(const struct sampler *s, unsigned cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = s->type,
		.config = s->config,
		.freq = 1,
		.sample_freq = s->hz,
		.sample_type = s->sample_type,
		.read_format = s->read_format,
		.disabled = 1,
		.exclude_hv = 1,
		.exclude_guest = 1, /* the exporter would resolve guest addresses as the host's */
		.exclude_idle = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.sample_id_all = 1,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)s->ring_bytes / 2,
		.build_id = s->build_ids,
		.use_clockid = s->clock >= 0,
		.clockid = s->clock >= 0 ? s->clock : 0,
	};
	long fd;

	fd = syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

/* Opens the event; drops attributes that an older kernel rejects, newest first. */
static int sampler_open_cpu(struct sampler *s, unsigned cpu)
{
	int fd = sampler_open_event(s, cpu);

	if (fd == -EINVAL && s->read_format) {
		s->read_format = 0;
		fd = sampler_open_event(s, cpu);
	}
	if (fd == -EINVAL && s->build_ids) {
		s->build_ids = false;
		fd = sampler_open_event(s, cpu);
	}
	return fd;
}

static int sampler_explain(const struct sampler *s, int r, struct error *err)
{
	switch (r) {
	case -ENOENT:
	case -EOPNOTSUPP:
	case -ENODEV:
		error_set(err, -EOPNOTSUPP, "this machine cannot sample by '%s'", s->event);
		return error_hint(err, "virtual machines mostly lack hardware counters: "
				       "--sample-event " SAMPLE_EVENT_DEFAULT);
	case -ENOSYS:
		error_set(err, -EOPNOTSUPP, "this kernel cannot sample");
		return feature_hint(err, FEATURE_PART, "samples", NULL);
	case -EACCES:
	case -EPERM:
		error_set(err, r, "the kernel does not permit sampling of all processes");
		return error_hint(err, "CAP_PERFMON or CAP_SYS_ADMIN is needed: for the "
				       "service, traced(8) has a drop-in");
	case -EINVAL:
		error_set(err, r, "the kernel refuses %u samples a second by '%s'", s->hz,
			  s->event);
		return error_hint(err, "kernel.perf_event_max_sample_rate is the limit");
	case -ENOMEM:
		return error_set(err, r, "out of memory for the rings of samples");
	default:
		return error_errno(err, r, "cannot sample by '%s'", s->event);
	}
}

static int sampler_map_ring(struct sampler *s, struct sampler_cpu *c)
{
	void *p = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE) + s->ring_bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED, c->fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	c->page = p;
	return 0;
}

int sampler_open(struct sampler *s, const struct sampling *what, const char *clock,
		 unsigned cpu_count, const struct cpu_set *wanted, struct error *err)
{
	struct sample_event event;
	unsigned opened = 0;
	int r = sample_event_find(what->event ?: SAMPLE_EVENT_DEFAULT, &event, err);

	*s = (struct sampler){ .hz = what->hz, .build_ids = true, .read_format = FORMAT_LOST };
	if (r < 0)
		return r;
	s->type = event.type;
	s->config = event.config;
	snprintf(s->event, sizeof(s->event), "%s", what->event ?: SAMPLE_EVENT_DEFAULT);
	s->clock = sampler_choose_clock(clock, event.type == PERF_TYPE_SOFTWARE);
	s->ring_bytes = sampler_ring_bytes(what->hz);
	s->sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			 PERF_SAMPLE_PERIOD;
	if (what->call_graph)
		s->sample_type |= PERF_SAMPLE_CALLCHAIN;
	s->cpus = calloc(cpu_count, sizeof(*s->cpus));
	if (!s->cpus)
		return error_set(err, -ENOMEM, "out of memory");
	s->cpu_count = cpu_count;
	for (unsigned cpu = 0; cpu < cpu_count; cpu++)
		s->cpus[cpu].fd = -EBADF;
	for (unsigned cpu = 0; cpu < cpu_count; cpu++) {
		struct sampler_cpu *c = &s->cpus[cpu];

		if (wanted && !cpu_set_has(wanted, cpu))
			continue;
		c->fd = sampler_open_cpu(s, cpu);
		/* The CPU is offline. */
		if (c->fd == -ENODEV)
			continue;
		r = c->fd < 0 ? c->fd : sampler_map_ring(s, c);
		if (r < 0)
			return sampler_explain(s, r, err);
		opened++;
	}
	return opened ? 0 : sampler_explain(s, -ENODEV, err);
}

int sampler_watch(const struct sampler *s, int epfd, uint32_t tag)
{
	for (unsigned cpu = 0; cpu < s->cpu_count; cpu++) {
		struct epoll_event e = { .events = EPOLLIN, .data.u64 = (uint64_t)tag << 32 | cpu };

		if (s->cpus[cpu].fd >= 0 && epoll_ctl(epfd, EPOLL_CTL_ADD, s->cpus[cpu].fd, &e) < 0)
			return -errno;
	}
	return 0;
}

static void sampler_ioctl(const struct sampler *s, unsigned long request)
{
	for (unsigned cpu = 0; cpu < s->cpu_count; cpu++)
		if (s->cpus[cpu].fd >= 0)
			ioctl(s->cpus[cpu].fd, request, 0);
}

int sampler_start(struct sampler *s, struct stream_writer *w)
{
	Traced__Capture__Sampler m = TRACED__CAPTURE__SAMPLER__INIT;
	int r;

	m.event = s->event;
	m.hz = s->hz;
	m.clock = s->clock;
	m.type = s->type;
	m.config = s->config;
	m.sample_type = s->sample_type;
	m.ring_bytes = s->ring_bytes;
	r = stream_write_message(w, CHUNK_SAMPLER, &m.base);
	if (r < 0)
		return r;
	sampler_ioctl(s, PERF_EVENT_IOC_ENABLE);
	s->running = true;
	return 0;
}

int sampler_drain_cpu(struct sampler *s, unsigned cpu, struct stream_writer *w)
{
	struct perf_event_mmap_page *page = cpu < s->cpu_count ? s->cpus[cpu].page : NULL;
	struct iovec pieces[2];
	uint64_t head, tail;
	size_t at, len;
	char *data;
	int r;

	if (!page)
		return 0;
	/* Acquire: records before the head were written before the head was. */
	head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	tail = page->data_tail;
	len = (size_t)(head - tail);
	if (!len)
		return 0;
	data = (char *)page + sysconf(_SC_PAGESIZE);
	at = (size_t)tail & (s->ring_bytes - 1);
	pieces[0].iov_base = data + at;
	pieces[0].iov_len = MIN(len, s->ring_bytes - at);
	pieces[1].iov_base = data;
	pieces[1].iov_len = len - pieces[0].iov_len;
	r = stream_write_samples(w, cpu, pieces, pieces[1].iov_len ? 2 : 1);
	/* Release: from now on the kernel may overwrite these records. */
	if (r == 0)
		__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
	return r;
}

int sampler_drain(struct sampler *s, struct stream_writer *w)
{
	int r = 0;

	for (unsigned cpu = 0; r == 0 && cpu < s->cpu_count; cpu++)
		r = sampler_drain_cpu(s, cpu, w);
	return r;
}

/*
 * Writes the kernel's own count of lost samples: losses after the last record in a ring have no
 * record.
 */
static int sampler_write_counts(const struct sampler *s, struct stream_writer *w)
{
	Traced__Capture__SampleCounts m = TRACED__CAPTURE__SAMPLE_COUNTS__INIT;
	Traced__Capture__SampleCount *all = calloc(s->cpu_count + 1, sizeof(*all));
	Traced__Capture__SampleCount **list = calloc(s->cpu_count + 1, sizeof(*list));
	uint64_t values[2]; /* value, lost */
	int r = -ENOMEM;

	for (unsigned cpu = 0; all && list && cpu < s->cpu_count; cpu++) {
		Traced__Capture__SampleCount *c = &all[m.n_cpus];

		if (s->cpus[cpu].fd < 0)
			continue;
		traced__capture__sample_count__init(c);
		c->cpu = cpu;
		if (s->read_format &&
		    read(s->cpus[cpu].fd, values, sizeof(values)) == sizeof(values)) {
			c->counted = true;
			c->lost = values[1];
		}
		list[m.n_cpus++] = c;
	}
	m.cpus = list;
	if (all && list)
		r = stream_write_message(w, CHUNK_SAMPLE_COUNTS, &m.base);
	free(all);
	free(list);
	return r;
}

void sampler_pause(struct sampler *s)
{
	if (s->running)
		sampler_ioctl(s, PERF_EVENT_IOC_DISABLE);
}

int sampler_stop(struct sampler *s, struct stream_writer *w)
{
	int r;

	if (!s->running)
		return 0;
	sampler_pause(s);
	s->running = false;
	r = sampler_drain(s, w);
	return r < 0 ? r : sampler_write_counts(s, w);
}

void sampler_close(struct sampler *s)
{
	for (unsigned cpu = 0; cpu < s->cpu_count; cpu++) {
		if (s->cpus[cpu].page)
			munmap(s->cpus[cpu].page, (size_t)sysconf(_SC_PAGESIZE) + s->ring_bytes);
		close_fd(s->cpus[cpu].fd);
	}
	free(s->cpus);
	*s = (struct sampler){ 0 };
}
