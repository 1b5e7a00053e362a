/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/names/metadata.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/io.h"
#include "daemon/capture/tracefs/setting.h"
#include "proto/capture.pb-c.h"
#include "traced/stream.h"

#define FREQUENCIES_MAX 64
#define CPUINFO_MAX (4U << 20)

/* Each CPU's model, capacity and frequencies. */
struct cpu_list {
	Traced__Capture__Cpu *cpus;  /* owned */
	Traced__Capture__Cpu **list; /* owned; the array that protobuf-c needs */
	size_t count;
};

static bool cpu_read_text(int dir, const char *path, size_t max, struct buf *text)
{
	return dir >= 0 && read_file_at(dir, path, max, text) == 0 && buf_string(text);
}

static void cpu_read_capacity(Traced__Capture__Cpu *c, int sys)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[64];

	snprintf(path, sizeof(path), "devices/system/cpu/cpu%u/cpu_capacity", c->cpu);
	if (cpu_read_text(sys, path, 64, &text))
		c->capacity = (uint32_t)strtoul(text.data, NULL, 10);
}

static int cpu_read_frequencies(Traced__Capture__Cpu *c, int sys)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *p;
	char path[96];
	char *end;

	snprintf(path, sizeof(path),
		 "devices/system/cpu/cpu%u/cpufreq/scaling_available_frequencies", c->cpu);
	if (!cpu_read_text(sys, path, 4096, &text))
		return 0;
	c->frequencies_khz = calloc(FREQUENCIES_MAX, sizeof(*c->frequencies_khz));
	if (!c->frequencies_khz)
		return -ENOMEM;
	for (p = text.data; c->n_frequencies_khz < FREQUENCIES_MAX; p = end) {
		unsigned long khz = strtoul(p, &end, 10);

		if (end == p)
			break;
		c->frequencies_khz[c->n_frequencies_khz++] = (uint32_t)khz;
	}
	return 0;
}

/* Returns the value of "name<tabs>: value"; NULL: another line. */
static const char *cpuinfo_value(const char *line, const char *name)
{
	size_t len = strlen(name);

	if (strncmp(line, name, len) != 0)
		return NULL;
	line += len;
	while (*line == ' ' || *line == '\t')
		line++;
	if (*line++ != ':')
		return NULL;
	return line + (*line == ' ');
}

/*
 * Parses "processor : 0" and the lines that follow. x86 has a "model name", others a "Processor".
 */
static int cpu_list_read_models(struct cpu_list *l, int proc)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	unsigned long cpu = 0;

	if (!cpu_read_text(proc, "cpuinfo", CPUINFO_MAX, &text))
		return 0;
	for (char *line = text.data, *next; line; line = next) {
		const char *value;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		value = cpuinfo_value(line, "processor");
		if (value && isdigit((unsigned char)*value)) {
			cpu = strtoul(value, NULL, 10);
			continue;
		}
		value = cpuinfo_value(line, "model name") ?: cpuinfo_value(line, "Processor");
		if (!value || cpu >= l->count || *l->cpus[cpu].model)
			continue;
		l->cpus[cpu].model = strdup(value);
		if (!l->cpus[cpu].model) {
			l->cpus[cpu].model = (char *)protobuf_c_empty_string;
			return -ENOMEM;
		}
	}
	return 0;
}

/* Reads CPUs 0 to count - 1; skips missing values. 0 or -ENOMEM. */
static int cpu_list_read(struct cpu_list *ret, int sys, int proc, unsigned count)
{
	int r = 0;

	*ret = (struct cpu_list){
		.cpus = calloc(count + 1, sizeof(*ret->cpus)),
		.list = calloc(count + 1, sizeof(*ret->list)),
	};
	if (!ret->cpus || !ret->list)
		return -ENOMEM;
	for (unsigned cpu = 0; r == 0 && cpu < count; cpu++) {
		Traced__Capture__Cpu *c = &ret->cpus[cpu];

		traced__capture__cpu__init(c);
		c->cpu = cpu;
		ret->list[ret->count++] = c;
		cpu_read_capacity(c, sys);
		r = cpu_read_frequencies(c, sys);
	}
	return r == 0 ? cpu_list_read_models(ret, proc) : r;
}

static void cpu_list_deinit(struct cpu_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		if (*l->cpus[i].model)
			free(l->cpus[i].model);
		free(l->cpus[i].frequencies_khz);
	}
	free(l->cpus);
	free(l->list);
	*l = (struct cpu_list){ 0 };
}

int metadata_read_layout(const struct tracefs *fs, int dir, struct buf *text,
			 struct subbuf_layout *ret, struct error *err)
{
	uint64_t kb = 0;
	int r;

	/* Linux 6.8+: sub-buffers of several pages, with a size per instance. */
	if (tracefs_read_u64(dir, "buffer_subbuf_size_kb", &kb) < 0 || kb > SUBBUF_SIZE_MAX / 1024)
		kb = 0;
	r = read_file_at(dir, "events/header_page", 1 << 16, text);
	if (r == -ENOENT)
		r = read_file_at(tracefs_root(fs), "events/header_page", 1 << 16, text);
	if (r == 0 && !buf_string(text))
		r = -ENOMEM;
	if (r < 0)
		return tracefs_unreadable(err, r, "events/header_page");
	r = subbuf_layout_parse(ret, text->data, text->len, (uint32_t)kb * 1024);
	if (r < 0)
		return error_set(err, r, "the kernel's events/header_page makes no sense: %s",
				 text->data);
	return 0;
}

/* Returns a small file's text without the last newline; "" if unreadable. */
static char *metadata_read_word(int dir, const char *path)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (tracefs_read(dir, path, &text) < 0 || !buf_string(&text))
		return strdup("");
	return strdup(text.data);
}

static char *metadata_read_chosen(int dir, const char *path)
{
	_cleanup_free_ char *text = metadata_read_word(dir, path);

	return text ? strdup(setting_chosen(text)) : NULL;
}

/*
 * Reads only the comment lines of `trace`: the rest is long if the buffer is full. One CPU's file
 * has the same ones. To open that of all, the kernel visits each page of each CPU's ring.
 */
static char *metadata_read_trace_header(int dir)
{
	_cleanup_close_ int fd = tracefs_open_file(dir, O_RDONLY, "per_cpu/cpu0/trace");
	char text[8192], *p = text;
	ssize_t n;

	if (fd < 0)
		fd = tracefs_open_file(dir, O_RDONLY, "trace");
	if (fd < 0)
		return strdup("");
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return strdup("");
	text[n] = '\0';
	while (*p == '#' && strchr(p, '\n'))
		p = strchr(p, '\n') + 1;
	*p = '\0';
	return strdup(text);
}

static int metadata_fill_probes(Traced__Capture__Request *to, const struct capture_request *request)
{
	Traced__Capture__Probe *probes = calloc(request->probe_count + 1, sizeof(*probes));

	to->probes = calloc(request->probe_count + 1, sizeof(*to->probes));
	if (!probes || !to->probes) {
		free(probes);
		return -ENOMEM;
	}
	for (size_t i = 0; i < request->probe_count; i++) {
		const struct capture_probe *p = &request->probes[i];

		probes[i] = (Traced__Capture__Probe)TRACED__CAPTURE__PROBE__INIT;
		probes[i].kind = (char *)(uintptr_t)probe_kinds[p->kind].name;
		probes[i].definition = (char *)(uintptr_t)p->definition;
		if (p->filter)
			probes[i].filter = (char *)(uintptr_t)p->filter;
		to->probes[i] = &probes[i];
	}
	to->probes[request->probe_count] = probes; /* for request_release */
	to->n_probes = request->probe_count;
	return 0;
}

static int metadata_fill_triggers(Traced__Capture__Request *to,
				  const struct capture_request *request)
{
	to->triggers = calloc(request->trigger_count + 1, sizeof(*to->triggers));
	if (!to->triggers)
		return -ENOMEM;
	for (size_t i = 0; i < request->trigger_count; i++) {
		const struct capture_trigger *t = &request->triggers[i];

		if (asprintf(&to->triggers[i], "%s%s%s", t->event ?: "", t->event ? ": " : "",
			     t->action) < 0) {
			to->triggers[i] = NULL;
			return -ENOMEM;
		}
		to->n_triggers++;
	}
	return 0;
}

static int metadata_fill_request(Traced__Capture__Request *to,
				 const struct capture_request *request, struct buf *cpus)
{
	Traced__Capture__EventSpec *specs = calloc(request->event_count + 1, sizeof(*specs));
	size_t argc = 0;

	to->events = calloc(request->event_count + 1, sizeof(*to->events));
	to->sql_names = calloc(request->sql_count + 1, sizeof(*to->sql_names));
	to->sql = calloc(request->sql_count + 1, sizeof(*to->sql));
	if (!specs || !to->events || !to->sql_names || !to->sql) {
		free(specs);
		return -ENOMEM;
	}
	for (size_t i = 0; i < request->event_count; i++) {
		specs[i] = (Traced__Capture__EventSpec)TRACED__CAPTURE__EVENT_SPEC__INIT;
		specs[i].glob = (char *)(uintptr_t)request->events[i].glob;
		if (request->events[i].filter)
			specs[i].filter = (char *)(uintptr_t)request->events[i].filter;
		to->events[i] = &specs[i];
	}
	to->events[request->event_count] = specs; /* for request_release */
	to->n_events = request->event_count;
	while (request->command && request->command[argc])
		argc++;
	to->command = (char **)(uintptr_t)request->command;
	to->n_command = argc;
	to->pids = (int32_t *)(uintptr_t)request->pids;
	to->n_pids = request->pid_count;
	to->processes = (int32_t *)(uintptr_t)request->processes;
	to->n_processes = request->process_count;
	to->children = request->follow_forks;
	to->duration_ns = request->duration_ns;
	to->buffer_bytes = request->buffer_bytes;
	to->ring = request->ring;
	to->name = (char *)(uintptr_t)request->name;
	to->polls = (char **)(uintptr_t)request->polls.items;
	to->n_polls = request->polls.count;
	for (size_t i = 0; i < request->sql_count; i++) {
		to->sql_names[i] = (char *)(uintptr_t)request->sql[i].name;
		to->sql[i] = (char *)(uintptr_t)request->sql[i].text;
	}
	to->n_sql_names = to->n_sql = request->sql_count;
	if (request->functions.tracer)
		to->tracer = (char *)(uintptr_t)request->functions.tracer;
	if (request->cpus) {
		cpu_set_format(request->cpus, cpus);
		to->cpus = buf_string(cpus);
	}
	if (request->cpus && !to->cpus)
		return -ENOMEM;
	return metadata_fill_probes(to, request) ?: metadata_fill_triggers(to, request);
}

static void metadata_release_request(Traced__Capture__Request *r)
{
	if (r->events)
		free(r->events[r->n_events]);
	free(r->events);
	free(r->sql_names);
	free(r->sql);
	if (r->probes)
		free(r->probes[r->n_probes]);
	free(r->probes);
	for (size_t i = 0; i < r->n_triggers; i++)
		free(r->triggers[i]);
	free(r->triggers);
}

static int metadata_pack(const Traced__Capture__Header *header, struct buf *out)
{
	size_t len = traced__capture__header__get_packed_size(header);
	char *p = buf_reserve(out, len);

	if (!p)
		return -ENOMEM;
	out->len += traced__capture__header__pack(header, (uint8_t *)p);
	return 0;
}

static void metadata_describe_machine(const struct metadata *m, struct utsname *u,
				      Traced__Capture__Header *h)
{
	h->sysname = u->sysname;
	h->nodename = u->nodename;
	h->release = u->release;
	h->kernel_version = u->version;
	h->machine = u->machine;
	/* local_t has the kernel's word size, which may differ from this program's. */
	h->word_size = m->layout->commit_size;
	h->big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	h->page_size = (uint32_t)sysconf(_SC_PAGESIZE);
	h->subbuf_size = m->layout->size;
	h->tasks_subbuf_size = m->tasks_subbuf_size != h->subbuf_size ? m->tasks_subbuf_size : 0;
	h->cpus = m->cpus;
	h->cpus_online = m->cpus_online;
}

static void metadata_describe_place(Traced__Capture__Header *h)
{
	time_t now = time(NULL);
	struct sysinfo info;
	struct tm local;

	if (sysinfo(&info) < 0 || !localtime_r(&now, &local))
		return;
	h->ram_bytes = (uint64_t)info.totalram * info.mem_unit;
	h->timezone_mins = (int32_t)(local.tm_gmtoff / 60);
}

int metadata_pack_header(const struct metadata *m, struct buf *out, struct error *err)
{
	Traced__Capture__Request request = TRACED__CAPTURE__REQUEST__INIT;
	Traced__Capture__Header h = TRACED__CAPTURE__HEADER__INIT;
	_cleanup_close_ int sys = open(capture_env_sys(m->env), O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int proc = open(m->env->proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ char *kptr = metadata_read_word(proc, "sys/kernel/kptr_restrict");
	_cleanup_buf_ struct buf cpus = BUF_INIT;
	uint8_t uuid[16], key[16];
	struct cpu_list cpu_list = { 0 };
	struct utsname u;
	int r = 0;

	memcpy(uuid, m->uuid, sizeof(uuid));
	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		return error_errno(err, -errno, "cannot get random bytes");
	uname(&u);
	h.version = STREAM_VERSION;
	h.program = (char *)(uintptr_t) "traced " TRACED_VERSION;
	h.uuid = (ProtobufCBinaryData){ .len = sizeof(uuid), .data = uuid };
	h.pointer_key = (ProtobufCBinaryData){ .len = sizeof(key), .data = key };
	metadata_describe_machine(m, &u, &h);
	metadata_describe_place(&h);
	h.trace_clock = metadata_read_chosen(m->dir, "trace_clock");
	h.trace_header = metadata_read_trace_header(m->dir);
	h.tracer = metadata_read_word(m->dir, "current_tracer");
	h.trace_options = metadata_read_word(m->dir, "trace_options");
	h.lockdown = metadata_read_chosen(sys, "kernel/security/lockdown");
	h.hz = (uint64_t)sysconf(_SC_CLK_TCK);
	h.kptr_restrict = kptr ? (uint32_t)strtoul(kptr, NULL, 10) : 0;
	h.request = &request;
	if (m->request) {
		r = metadata_fill_request(&request, m->request, &cpus);
		h.recorded_tgid = m->request->tgid;
	} else if (m->instance) {
		request.name = (char *)(uintptr_t)m->instance;
	}
	if (r == 0)
		r = cpu_list_read(&cpu_list, sys, proc, m->cpus);
	h.cpu_list = cpu_list.list;
	h.n_cpu_list = cpu_list.count;
	if (!h.trace_clock || !h.trace_header || !h.tracer || !h.trace_options || !h.lockdown)
		r = -ENOMEM;
	if (r == 0)
		r = metadata_pack(&h, out);
	metadata_release_request(&request);
	cpu_list_deinit(&cpu_list);
	free(h.trace_clock);
	free(h.trace_header);
	free(h.tracer);
	free(h.trace_options);
	free(h.lockdown);
	return r < 0 ? error_errno(err, r, "cannot describe the machine") : 0;
}
