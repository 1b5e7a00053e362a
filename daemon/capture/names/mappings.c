/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/names/mappings.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/io.h"
#include "base/vec.h"
#include "daemon/capture/names/tasks.h"
#include "proto/capture.pb-c.h"

#define MAPS_MAX (4U << 20) /* bytes of one process's maps text */
#define MAPPINGS_MAX 16384  /* executable mappings of one process */
/* Any user's processes are read here, so the bytes of each are limited. */
#define PROCESS_BYTES_MAX (1U << 20)
#define MAPPING_BYTES 64 /* besides the path */
#define BUILD_ID_MAX 20
/* A caller that may not block waits so long for a slice: most take less. */
#define SHORT_WAIT_NS (5 * NSEC_PER_MSEC)

/* Linux 6.11, <linux/fs.h>: queries the mapping at an address, or the next one. */
struct map_query {
	uint64_t size, flags, address;
	uint64_t start, end, vma_flags, page_size, offset, inode;
	uint32_t major, minor, name_size, build_id_size;
	uint64_t name, build_id;
};
#define MAP_QUERY _IOWR('f', 17, struct map_query)
#define QUERY_EXECUTABLE 0x04
#define QUERY_NEXT 0x10

/* One process: the message and what it takes. */
struct process_maps {
	Traced__Capture__ProcessMappings *process;
	bool all; /* not only executable mappings */
	size_t bytes, cap;
};

/* Copies bytes that protobuf-c will free; len 0: leaves it empty. */
static int mapping_copy_bytes(ProtobufCBinaryData *to, const void *data, size_t len)
{
	*to = (ProtobufCBinaryData){ 0 };
	if (!len)
		return 0;
	to->data = malloc(len);
	if (!to->data)
		return -ENOMEM;
	memcpy(to->data, data, len);
	to->len = len;
	return 0;
}

static int process_maps_add(struct process_maps *l, uint64_t start, uint64_t end, uint64_t offset,
			    const char *path, const void *build_id, size_t build_id_len)
{
	Traced__Capture__ProcessMappings *p = l->process;
	size_t bytes = strlen(path) + MAPPING_BYTES;
	Traced__Capture__Mapping *m;

	if (p->n_mappings >= MAPPINGS_MAX || l->bytes + bytes > PROCESS_BYTES_MAX)
		return 0;
	l->bytes += bytes;
	if (vec_reserve(p->mappings, p->n_mappings, l->cap, 1) < 0)
		return -ENOMEM;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	traced__capture__mapping__init(m);
	p->mappings[p->n_mappings++] = m;
	m->start = start;
	m->end = end;
	m->offset = offset;
	return mapping_copy_bytes(&m->path, path, strlen(path))
		       ?: mapping_copy_bytes(&m->build_id, build_id, build_id_len);
}

/* -ENOTTY: the kernel is older than 6.11. */
static int mapping_query(struct process_maps *l, int maps)
{
	uint8_t build_id[BUILD_ID_MAX];
	char name[PATH_MAX];
	struct map_query q;
	uint64_t at = 0;

	for (unsigned i = 0; i < MAPPINGS_MAX; i++) {
		int r;

		q = (struct map_query){
			.size = sizeof(q),
			.flags = (l->all ? 0 : QUERY_EXECUTABLE) | QUERY_NEXT,
			.address = at,
			.name_size = sizeof(name),
			.name = (uintptr_t)name,
			.build_id_size = sizeof(build_id),
			.build_id = (uintptr_t)build_id,
		};
		if (ioctl(maps, MAP_QUERY, &q) < 0)
			return errno == ENOENT || errno == ESRCH ? 0 : -errno;
		r = process_maps_add(l, q.start, q.end, q.offset, q.name_size ? name : "", build_id,
				     q.build_id_size);
		if (r < 0 || q.end <= at)
			return r;
		at = q.end;
	}
	return 0;
}

/* "START-END PERMISSIONS OFFSET DEVICE INODE   PATH" */
static int mapping_parse_line(struct process_maps *l, const char *line)
{
	uint64_t start, end, offset;
	char perms[5];
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &start, &end, perms,
		   &offset, &path) < 4 ||
	    !path || (perms[2] != 'x' && !l->all))
		return 0;
	return process_maps_add(l, start, end, offset, line + path, NULL, 0);
}

static int mapping_parse(struct process_maps *l, int process)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char *next, *line;
	int r = read_file_at(process, "maps", MAPS_MAX, &text);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	next = buf_string(&text);
	if (!next)
		return -ENOMEM;
	while (r == 0 && (line = strsep(&next, "\n")))
		r = mapping_parse_line(l, line);
	return r;
}

static void mapping_discard(void *process)
{
	traced__capture__process_mappings__free_unpacked(process, NULL);
}

/* Out of memory, or the process has ended, or is a kernel thread: NULL. */
static void *mapping_read_process(int process, bool all)
{
	_cleanup_close_ int maps = openat(process, "maps", O_RDONLY | O_CLOEXEC);
	struct process_maps l = { .all = all };
	int r;

	if (maps < 0)
		return NULL;
	l.process = calloc(1, sizeof(*l.process));
	if (!l.process)
		return NULL;
	traced__capture__process_mappings__init(l.process);
	r = mapping_query(&l, maps);
	if (r < 0 && r != -ENOMEM && !l.process->n_mappings)
		r = mapping_parse(&l, process);
	if (r != -ENOMEM)
		return l.process;
	mapping_discard(l.process);
	return NULL;
}

static const struct inquiry_kind mappings = { mapping_read_process, mapping_discard };

int mapping_scan_start(struct mapping_scan *s, const char *proc, bool all)
{
	s->processes = opendir(proc);
	if (!s->processes)
		return -errno;
	s->all = all;
	s->proc = dirfd(s->processes);
	return 0;
}

/* Asks about the next processes. */
static int mapping_scan_ask(struct mapping_scan *s)
{
	struct dirent *e = NULL;

	s->inquiry = inquiry_new(&mappings, s->all);
	if (!s->inquiry)
		return -ENOMEM;
	s->boot_ns = now_ns(CLOCK_BOOTTIME);
	s->count = 0;
	while (s->count < MAPPING_SLICE && (e = readdir(s->processes))) {
		uid_t uid = 0;
		int process;

		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		process = openat(s->proc, e->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (process < 0)
			continue;
		task_read_uid(process, &uid);
		s->pids[s->count++] = atoi(e->d_name);
		inquiry_add(s->inquiry, process, uid);
	}
	s->last = !e;
	inquiry_begin(s->inquiry);
	return 0;
}

static int mapping_scan_write(struct mapping_scan *s, struct stream_writer *w)
{
	Traced__Capture__ProcessMappings *processes[MAPPING_SLICE];
	Traced__Capture__Mappings m = TRACED__CAPTURE__MAPPINGS__INIT;
	_cleanup_free_ uint8_t *packed = NULL;
	int r = -ENOMEM;

	m.processes = processes;
	m.all = s->all;
	m.boot_ns = s->boot_ns;
	for (size_t i = 0; i < s->count; i++) {
		processes[m.n_processes] = inquiry_take(s->inquiry, i);
		if (processes[m.n_processes])
			processes[m.n_processes++]->pid = s->pids[i];
	}
	s->unread += inquiry_unanswered(s->inquiry);
	packed = malloc(traced__capture__mappings__get_packed_size(&m) + 1);
	if (packed)
		r = m.n_processes ? stream_write_packed(w, CHUNK_MAPPINGS, packed,
							traced__capture__mappings__pack(&m, packed))
				  : 0;
	for (size_t i = 0; i < m.n_processes; i++)
		mapping_discard(processes[i]);
	return r;
}

int mapping_scan_step(struct mapping_scan *s, bool block, struct stream_writer *w)
{
	int r = 0;

	if (!s->processes)
		return 0;
	if (!s->inquiry)
		r = mapping_scan_ask(s);
	if (r == 0 && !inquiry_wait(s->inquiry, block ? UINT64_MAX : SHORT_WAIT_NS))
		return -EAGAIN;
	if (r == 0)
		r = mapping_scan_write(s, w);
	s->inquiry = inquiry_free(s->inquiry);
	if (r == 0 && !s->last)
		return 1;
	mapping_scan_end(s);
	return r;
}

void mapping_scan_end(struct mapping_scan *s)
{
	size_t unread = s->unread;

	inquiry_free(s->inquiry);
	if (s->processes)
		closedir(s->processes);
	*s = MAPPING_SCAN_INIT;
	s->unread = unread;
}
