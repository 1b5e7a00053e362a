/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/names/mappings.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/io.h"
#include "base/vec.h"
#include "proto/capture.pb-c.h"

#define PROCESSES_PER_SLICE 24
#define MAPS_MAX (4U << 20) /* bytes of one process's maps text */
#define MAPPINGS_MAX 16384  /* executable mappings of one process */
/*
 * Any user's processes are read here, so the bytes of each are limited. A slice ends with the
 * process that takes it beyond SLICE_BYTES.
 */
#define PROCESS_BYTES_MAX (1U << 20)
#define SLICE_BYTES (4U << 20)
#define MAPPING_BYTES 64 /* besides the path */
#define BUILD_ID_MAX 20

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

/* One slice: the message and the memory that it points to. */
struct mapping_slice {
	Traced__Capture__Mappings message;
	Traced__Capture__ProcessMappings **processes;
	size_t bytes, process_bytes; /* process_bytes: of the current process */
	size_t mapping_cap;	     /* of its mappings */
};

static void mapping_slice_deinit(struct mapping_slice *s)
{
	for (size_t i = 0; i < s->message.n_processes; i++)
		traced__capture__process_mappings__free_unpacked(s->processes[i], NULL);
	free(s->processes);
}

static Traced__Capture__ProcessMappings *mapping_slice_add_process(struct mapping_slice *s,
								   int32_t pid)
{
	Traced__Capture__ProcessMappings *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	traced__capture__process_mappings__init(p);
	p->pid = pid;
	s->processes[s->message.n_processes++] = p;
	s->mapping_cap = 0;
	return p;
}

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

static int mapping_slice_add(struct mapping_slice *s, uint64_t start, uint64_t end, uint64_t offset,
			     const char *path, const void *build_id, size_t build_id_len)
{
	Traced__Capture__ProcessMappings *p = s->processes[s->message.n_processes - 1];
	size_t bytes = strlen(path) + MAPPING_BYTES;
	Traced__Capture__Mapping *m;

	if (p->n_mappings >= MAPPINGS_MAX || s->process_bytes + bytes > PROCESS_BYTES_MAX)
		return 0;
	s->process_bytes += bytes;
	s->bytes += bytes;
	if (vec_reserve(p->mappings, p->n_mappings, s->mapping_cap, 1) < 0)
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
static int mapping_query(struct mapping_slice *s, int maps)
{
	uint8_t build_id[BUILD_ID_MAX];
	char name[PATH_MAX];
	struct map_query q;
	uint64_t at = 0;

	for (unsigned i = 0; i < MAPPINGS_MAX; i++) {
		int r;

		q = (struct map_query){
			.size = sizeof(q),
			.flags = (s->message.all ? 0 : QUERY_EXECUTABLE) | QUERY_NEXT,
			.address = at,
			.name_size = sizeof(name),
			.name = (uintptr_t)name,
			.build_id_size = sizeof(build_id),
			.build_id = (uintptr_t)build_id,
		};
		if (ioctl(maps, MAP_QUERY, &q) < 0)
			return errno == ENOENT || errno == ESRCH ? 0 : -errno;
		r = mapping_slice_add(s, q.start, q.end, q.offset, q.name_size ? name : "",
				      build_id, q.build_id_size);
		if (r < 0 || q.end <= at)
			return r;
		at = q.end;
	}
	return 0;
}

/* "START-END PERMISSIONS OFFSET DEVICE INODE   PATH" */
static int mapping_parse_line(struct mapping_slice *s, const char *line)
{
	uint64_t start, end, offset;
	char perms[5];
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &start, &end, perms,
		   &offset, &path) < 4 ||
	    !path || (perms[2] != 'x' && !s->message.all))
		return 0;
	return mapping_slice_add(s, start, end, offset, line + path, NULL, 0);
}

static int mapping_parse(struct mapping_slice *s, int dir, const char *path)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char *next, *line;
	int r = read_file_at(dir, path, MAPS_MAX, &text);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	next = buf_string(&text);
	if (!next)
		return -ENOMEM;
	while (r == 0 && (line = strsep(&next, "\n")))
		r = mapping_parse_line(s, line);
	return r;
}

static int mapping_read_process(struct mapping_slice *s, int proc, const char *name)
{
	_cleanup_close_ int maps = -EBADF;
	Traced__Capture__ProcessMappings *p;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "%.20s/maps", name);
	maps = openat(proc, path, O_RDONLY | O_CLOEXEC);
	/* The process has ended, or is a kernel thread. */
	if (maps < 0)
		return 0;
	p = mapping_slice_add_process(s, atoi(name));
	if (!p)
		return -ENOMEM;
	s->process_bytes = 0;
	r = mapping_query(s, maps);
	if (r < 0 && r != -ENOMEM && !p->n_mappings)
		r = mapping_parse(s, proc, path);
	return r == -ENOMEM ? r : 0;
}

int mapping_scan_start(struct mapping_scan *s, const char *proc, bool all)
{
	s->processes = opendir(proc);
	if (!s->processes)
		return -errno;
	s->all = all;
	s->proc = dirfd(s->processes);
	return 0;
}

int mapping_scan_step(struct mapping_scan *s, struct stream_writer *w)
{
	_cleanup_(mapping_slice_deinit) struct mapping_slice slice = { 0 };
	struct dirent *e = NULL;
	int r = 0;

	if (!s->processes)
		return 0;
	traced__capture__mappings__init(&slice.message);
	slice.processes = calloc(PROCESSES_PER_SLICE, sizeof(*slice.processes));
	slice.message.processes = slice.processes;
	if (!slice.processes)
		return -ENOMEM;
	slice.message.all = s->all;
	slice.message.boot_ns = now_ns(CLOCK_BOOTTIME);
	while (r == 0 && slice.message.n_processes < PROCESSES_PER_SLICE &&
	       slice.bytes < SLICE_BYTES && (e = readdir(s->processes)))
		if (e->d_name[0] > '0' && e->d_name[0] <= '9')
			r = mapping_read_process(&slice, s->proc, e->d_name);
	if (r == 0 && slice.message.n_processes) {
		_cleanup_free_ uint8_t *packed = NULL;
		size_t len = traced__capture__mappings__get_packed_size(&slice.message);

		packed = malloc(len + 1);
		if (!packed)
			return -ENOMEM;
		traced__capture__mappings__pack(&slice.message, packed);
		r = stream_write_packed(w, CHUNK_MAPPINGS, packed, len);
	}
	if (r < 0 || !e)
		mapping_scan_end(s);
	return r < 0 ? r : e != NULL;
}

void mapping_scan_end(struct mapping_scan *s)
{
	if (s->processes)
		closedir(s->processes);
	*s = MAPPING_SCAN_INIT;
}
