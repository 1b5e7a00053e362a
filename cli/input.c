/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "input.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>

#include "base/io.h"
#include "base/landlock.h"
#include "base/parse.h"
#include "cli.h"
#include "confined.h"
#include "formats/import.h"
#include "marks/trace_file.h"
#include "report/merge.h"
#include "report/table.h"
#include "samples/cpu_profile.h"
#include "stream/reader.h"
#include "unpack.h"

#define PIECE (256U << 10)
/* Bytes read to detect a file's kind. */
#define BEGINNING 4096
#define PERFETTO_PACKET_TAG 0x0a /* Trace.packet: field 1, length-delimited */
#define ROOM_MIN (UINT64_C(256) << 20)

const char *input_temp_place(void)
{
	return getenv("TMPDIR") ?: "/var/tmp";
}

int input_create_temp(void)
{
	int fd = open(input_temp_place(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

void input_reserve_temps(struct input_beside *b)
{
	for (size_t i = 0; i < INPUT_TEMPS; i++)
		b->temps[i] = input_create_temp();
}

/* b: may have a reserved file; NULL: none. */
static int input_temp_file(struct input_beside *b, struct error *err)
{
	int fd = 0;

	for (size_t i = 0; b && !fd && i < INPUT_TEMPS; i++) {
		fd = b->temps[i];
		b->temps[i] = 0;
	}
	if (!fd)
		fd = input_create_temp();
	if (fd >= 0)
		return fd;
	error_errno(err, fd, "cannot create a temporary file in %s", input_temp_place());
	return error_hint(err, "set TMPDIR to another folder");
}

int input_check(const struct stat *st, const char *path, struct error *err)
{
	if (S_ISDIR(st->st_mode))
		return error_errno(err, -EISDIR, "%s", path);
	if (S_ISCHR(st->st_mode))
		return error_set(err, -EINVAL, "%s is a device: give a file or a pipe", path);
	return 0;
}

/* Detects packets of a Perfetto trace: tag and length, then a field of TracePacket. */
static bool begins_as_perfetto(const uint8_t *p, size_t len)
{
	size_t at = 1;

	if (len < 3 || p[0] != PERFETTO_PACKET_TAG || !p[1])
		return false;
	while (at < len && p[at] & 0x80)
		at++;
	/* Text may begin with a newline, too: require a valid field number and wire type next. */
	return at + 1 < len && at < 6 && p[at + 1] >> 3 &&
	       ((p[at + 1] & 7) <= 2 || (p[at + 1] & 7) == 5);
}

static int input_refuse(const void *data, size_t len, struct error *err)
{
	static const char report[] = "{\"format\":\"" TABLES_FORMAT;
	bool json = trace_file_begins(data, len) && !unpack_begins(data, len);

	if (len > strlen(report) && !memcmp(data, report, strlen(report))) {
		error_set(err, -EBADMSG, "this is a report, not a recording");
		return error_hint(err, "tracectl report --merge prints and adds up reports");
	}
	if (begins_as_perfetto(data, len)) {
		error_set(err, -EBADMSG,
			  "this is a Perfetto trace: tracectl writes that format, but cannot read "
			  "it");
		return error_hint(err,
				  "record a .traced and convert that: tracectl record -o x.traced; "
				  "tracectl convert x.traced out.json");
	}
	error_set(err, -EBADMSG, "%s",
		  json ? "a JSON file cannot be read: it has the events as text only"
		       : "neither a recording of traced nor a trace.dat");
	return error_hint(err, "give a .traced (tracectl record -o out.traced) or a trace.dat");
}

static int input_check_beginning(const void *data, size_t len, enum input_kind kind, bool unpacked,
				 struct error *err)
{
	switch (kind) {
	case INPUT_RECORDING:
		if (import_begins(data, len) || stream_begins(data, len) ||
		    (!unpacked && unpack_begins(data, len)))
			return 0;
		return input_refuse(data, len, err);
	case INPUT_REPORT:
		return 0; /* those who read it say more */
	case INPUT_MARKS:
		if (trace_file_begins(data, len))
			return 0;
		return error_set(err, -EBADMSG,
				 "neither an array of events nor an object that has one");
	case INPUT_PROFILE:
		if (cpu_profile_begins(data, len))
			return 0;
		return error_set(err, -EBADMSG, "not a profile of gperftools' CPU profiler");
	}
	return -EINVAL;
}

/* Bytes that a temporary file may take; a part is left to others, as the daemon's spool does. */
static uint64_t input_room(int fd, uint64_t *ret_left)
{
	struct statvfs st;
	uint64_t free;

	*ret_left = 0;
	if (fstatvfs(fd, &st) < 0)
		return UINT64_MAX;
	*ret_left = MIN(ROOM_MIN, (uint64_t)st.f_blocks * st.f_frsize / 16);
	free = (uint64_t)st.f_bavail * st.f_frsize;
	return free > *ret_left ? free - *ret_left : 0;
}

bool input_temp_has_room(int fd, uint64_t len)
{
	uint64_t left;

	return input_room(fd, &left) >= len;
}

static int input_no_room(uint64_t least, struct error *err)
{
	_cleanup_buf_ struct buf left = BUF_INIT;

	format_bytes(least, &left);
	error_set(err, -ENOSPC, "not enough space in %s: %s must stay free", input_temp_place(),
		  buf_string(&left) ?: "some");
	return error_hint(err, "set TMPDIR to another folder");
}

/* The bytes that input_copy() copies. `read` returns len bytes, fewer only at the end, or -errno.
 */
struct input_source {
	ssize_t (*read)(void *userdata, void *data, size_t len);
	void *userdata;
	bool unpacked; /* decompressed by this process */
};

static ssize_t input_read_fd(void *userdata, void *data, size_t len)
{
	return read_full(*(int *)userdata, data, len);
}

static int input_explain_read(const struct input_source *source, int r, struct error *err)
{
	if (!source->unpacked || r != -EBADMSG)
		return error_errno(err, r, "cannot read it");
	error_set(err, r, "its compression is damaged, or needs more than 128 MiB of memory");
	return error_hint(err, "gzip or zstd can check it (-t) and decompress it (-d)");
}

static int input_copy(const struct input_source *source, int out, enum input_kind kind,
		      struct error *err)
{
	const uint64_t max = kind == INPUT_PROFILE  ? CPU_PROFILE_MAX
			     : kind == INPUT_REPORT ? REPORT_MERGE_BYTES_MAX
						    : UINT64_MAX - PIECE;
	_cleanup_free_ char *piece = malloc(PIECE);
	uint64_t size = 0, left;
	ssize_t n;
	int r = 0;

	if (!piece)
		return error_errno(err, -ENOMEM, "cannot read it");
	n = source->read(source->userdata, piece, BEGINNING);
	if (n >= 0)
		r = input_check_beginning(piece, (size_t)n, kind, source->unpacked, err);
	for (; r == 0 && n > 0; n = source->read(source->userdata, piece, PIECE)) {
		if (input_room(out, &left) < PIECE)
			return input_no_room(left, err);
		r = write_full(out, piece, (size_t)n);
		if (r < 0) {
			error_errno(err, r, "cannot write a temporary file in %s",
				    input_temp_place());
			error_hint(err, "set TMPDIR to another folder");
		}
		/* One byte above the limit is enough. */
		size += (uint64_t)n;
		if (size > max)
			break;
	}
	return n < 0 ? input_explain_read(source, (int)n, err) : r;
}

/* Replaces *fd by a nameless file with what the source has, at its beginning. */
static int input_replace(int *fd, struct input_beside *beside, const struct input_source *source,
			 const char *path, enum input_kind kind, struct error *err)
{
	_cleanup_close_ int kept = input_temp_file(beside, err);
	int r;

	if (kept < 0)
		return kept;
	r = input_copy(source, kept, kind, err);
	if (r < 0)
		return error_prefix(err, "%s", path);
	if (lseek(kept, 0, SEEK_SET) < 0)
		return error_errno(err, -errno, "cannot write a temporary file in %s",
				   input_temp_place());
	close_fd(*fd);
	*fd = TAKE_FD(kept);
	return 0;
}

int input_keep(int *fd, const char *path, enum input_kind kind, struct error *err)
{
	const struct input_source source = { input_read_fd, fd, false };
	struct stat st;
	int r;

	if (fstat(*fd, &st) < 0)
		return error_errno(err, -errno, "%s", path);
	r = input_check(&st, path, err);
	if (r < 0 || S_ISREG(st.st_mode))
		return r;
	return input_replace(fd, NULL, &source, path, kind, err);
}

int input_explain_damage(const char *path, struct error *err)
{
	error_prefix(err, "%s", path);
	if (err->hint)
		return -err->code;
	return error_hint(err, "it cannot be read; if it is a copy, compare it with the original");
}

void input_beside_deinit(struct input_beside *b)
{
	if (b->pages_fd)
		close_fd(b->pages_fd);
	for (size_t i = 0; i < INPUT_TEMPS; i++)
		if (b->temps[i] > 0)
			close_fd(b->temps[i]);
	*b = (struct input_beside){ 0 };
}

/* Checks that the file begins like a known recording. */
static int input_check_file(int fd, const char *path, struct error *err)
{
	char beginning[BEGINNING];
	ssize_t n = pread_full(fd, beginning, sizeof(beginning), 0);
	int r = n < 0 ? error_errno(err, (int)n, "cannot read it")
		      : input_check_beginning(beginning, (size_t)n, INPUT_RECORDING, true, err);

	return r < 0 ? error_prefix(err, "%s", path) : 0;
}

/* Decompresses a gzip or zstd file; others stay unchanged. */
static int input_unpack(int *fd, struct input_beside *beside, const char *path, struct error *err)
{
	_cleanup_(unpack_freep) struct unpack *unpack = NULL;
	struct input_source source = { .read = unpack_read, .unpacked = true };
	char head[4];
	ssize_t n = pread_full(*fd, head, sizeof(head), 0);
	int r;

	if (n < 0 || !unpack_begins(head, (size_t)n))
		return 0;
	r = unpack_new(&unpack, *fd, err);
	if (r < 0)
		return error_prefix(err, "%s", path);
	source.userdata = unpack;
	r = input_replace(fd, beside, &source, path, INPUT_RECORDING, err);
	if (r == 0 && unpack_is_cut(unpack))
		cli_warn("%s is cut: its compressed data has no end", path);
	return r;
}

int input_unpack_into(int fd, int out, const char *path, enum input_kind kind, struct error *err)
{
	_cleanup_(unpack_freep) struct unpack *unpack = NULL;
	struct input_source source = { .read = unpack_read, .unpacked = true };
	int r = unpack_new(&unpack, fd, err);

	source.userdata = unpack;
	if (r == 0)
		r = input_copy(&source, out, kind, err);
	/* Without its end, nothing says that the rest is right. */
	if (r == 0 && unpack_is_cut(unpack))
		r = error_set(err, -EBADMSG, "it is cut: its compressed data has no end");
	return r < 0 ? error_prefix(err, "%s", path) : 0;
}

int input_import(int *in, struct input_beside *ret, const char *path, const char *instance,
		 struct error *err)
{
	uint64_t left;
	struct import_options options = { .instance = instance };
	_cleanup_close_ int fd = -EBADF;
	int r;

	r = input_unpack(in, ret, path, err);
	if (r < 0)
		return r;
	if (!import_wanted(*in)) {
		if (!instance)
			return input_check_file(*in, path, err);
		return error_set(err, -EINVAL, "--instance needs a trace.dat, and %s is none",
				 path);
	}
	fd = input_temp_file(ret, err);
	if (fd < 0)
		return fd;
	options.limit = MAX(input_room(fd, &left), (uint64_t)1);
	r = import_stream(*in, fd, &options, err);
	if (r == -EDQUOT)
		r = input_no_room(left, err);
	else if (r == -ENOSPC)
		error_hint(err, "set TMPDIR to a folder other than %s", input_temp_place());
	if (r == -EBADMSG)
		return input_explain_damage(path, err);
	if (r < 0)
		return error_prefix(err, "%s", path);
	ret->pages_fd = fcntl(*in, F_DUPFD_CLOEXEC, 3);
	if (ret->pages_fd < 0)
		return error_errno(err, -errno, "%s", path);
	close_fd(*in);
	*in = TAKE_FD(fd);
	return 0;
}

int input_open(const char *path, struct error *err)
{
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (!strcmp(path, "-")) {
		if (isatty(STDIN_FILENO)) {
			error_set(err, -EINVAL, "cannot read a recording from a terminal");
			return error_hint(err, "name a file, or pipe one in");
		}
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	} else {
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	}
	if (fd < 0)
		return error_errno(err, -errno, "%s", path);
	r = input_keep(&fd, path, INPUT_RECORDING, err);
	return r < 0 ? r : TAKE_FD(fd);
}

/* elfutils downloads missing files from these servers into a cache: needs network and writing. */
static bool input_fetches_symbols(void)
{
	const char *servers = getenv("DEBUGINFOD_URLS");

	return servers && *servers && !confined_wanted();
}

void input_confine(int folder)
{
	_cleanup_close_ int temp = open(input_temp_place(), O_PATH | O_DIRECTORY | O_CLOEXEC);
	int writable[2];
	struct landlock_rules rules = { .may_read = true, .writable = writable };

	if (input_fetches_symbols())
		return;
	if (folder >= 0)
		writable[rules.writable_count++] = folder;
	if (temp >= 0)
		writable[rules.writable_count++] = temp;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		landlock_enter(&rules, NULL);
}
