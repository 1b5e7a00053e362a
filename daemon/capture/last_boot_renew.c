/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <stdio.h>

#include "base/io.h"
#include "daemon/capture/last_boot.h"
#include "daemon/capture/names/kernel_symbols.h"
#include "proto/capture.pb-c.h"
#include "stream/reader.h"

#define MODULES_MAX (1U << 20)

struct renewal {
	const struct capture_env *env;
	struct stream_reader reader;
	struct stream_writer writer;
	bool has_symbols;
};

static int renewal_write_modules(struct renewal *x, const struct chunk *chunk, struct error *err)
{
	_cleanup_buf_ struct buf payload = BUF_INIT, modules = BUF_INIT;
	Traced__Capture__LastBoot *m;
	ProtobufCBinaryData old;
	char path[256];
	int r = stream_reader_load(&x->reader, chunk, &payload, err);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/modules", x->env->proc);
	r = read_file_at(AT_FDCWD, path, MODULES_MAX, &modules);
	if (r < 0)
		return error_errno(err, r, "%s", path);
	m = traced__capture__last_boot__unpack(NULL, payload.len, (const uint8_t *)payload.data);
	if (!m)
		return error_set(err, -EBADMSG, "the last boot's description is damaged");
	old = m->modules;
	m->modules = (ProtobufCBinaryData){ modules.len, (uint8_t *)modules.data };
	r = stream_write_message(&x->writer, CHUNK_LAST_BOOT, &m->base);
	m->modules = old;
	traced__capture__last_boot__free_unpacked(m, NULL);
	return r < 0 ? error_errno(err, r, "cannot write the capture stream") : 0;
}

/* Writes all symbols where the first ones were. */
static int renewal_write_symbols(struct renewal *x, struct error *err)
{
	struct kernel_symbols symbols = KERNEL_SYMBOLS_INIT;
	const uint64_t before = x->writer.bytes;
	int r = 1;

	if (x->has_symbols)
		return 0;
	while (r > 0)
		r = kernel_symbols_step(&symbols, x->env->proc, true, &x->writer);
	if (r == 0 && (symbols.hidden || x->writer.bytes == before))
		r = -EPERM;
	kernel_symbols_deinit(&symbols);
	x->has_symbols = true;
	return r < 0 ? error_errno(err, r, "the kernel's symbols") : 0;
}

static int renewal_copy(struct renewal *x, const struct chunk *chunk, int to, struct error *err)
{
	uint64_t len = x->reader.offset - chunk->offset;
	int r = -EDQUOT;

	if (!x->writer.limit || len + x->writer.bytes <= x->writer.limit)
		r = x->writer.failed = copy_range(to, x->reader.fd, chunk->offset, len);
	x->writer.bytes += len;
	return r < 0 ? error_errno(err, r, "cannot write the capture stream") : 0;
}

int last_boot_renew(const struct capture_env *env, int from, int to, uint64_t limit,
		    struct error *err)
{
	struct renewal x = { .env = env };
	struct chunk chunk;
	int r = stream_reader_init(&x.reader, from, err);

	if (r < 0)
		return r;
	r = stream_writer_init(&x.writer, to, limit);
	if (r < 0)
		return error_errno(err, r, "cannot write the capture stream");
	while ((r = stream_reader_next(&x.reader, &chunk, err)) > 0) {
		if (chunk.type == CHUNK_LAST_BOOT)
			r = renewal_write_modules(&x, &chunk, err);
		else if (chunk.type == CHUNK_KALLSYMS || chunk.type == CHUNK_KALLSYMS_EXCERPT)
			r = renewal_write_symbols(&x, err);
		else
			r = renewal_copy(&x, &chunk, to, err);
		if (r < 0)
			break;
	}
	return r == -EDQUOT && !x.writer.failed ? -ENOBUFS : r;
}
