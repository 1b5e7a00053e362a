/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/order.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/io.h"
#include "formats/formats.h"

static int order_perfetto(const Traced__Control__Output *output, const struct export_format *format,
			  struct perfetto_options *ret, struct error *err)
{
	const Traced__Control__Perfetto *p = output->perfetto;
	const char *const words[][2] = {
		{ "generic", p ? p->generic : "" },
		{ "compact-sched", p ? p->compact_sched : "" },
		{ "compress", p ? p->compress : "" },
	};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(words); i++) {
		if (!*words[i][1])
			continue;
		r = perfetto_options_set(ret, words[i][0], words[i][1], err);
		if (r >= 0)
			r = export_format_check_perfetto(format, ret, err);
	}
	return r;
}

int order_options(const Traced__Control__Output *output, struct export_options *ret,
		  struct export_watch *ret_watch, struct error *err)
{
	const struct export_format *format = export_format_find(output->format, NULL);
	struct export_options o = {
		.format = output->format,
		.raw_addresses = output->raw_addresses,
		.tgid = output->tgid,
		.rotate = { .bytes = output->rotate_bytes, .ns = output->rotate_ns },
		.page = { .events = output->page_events, .bytes = output->page_bytes },
		.json_array = output->json_array,
		.segments = output->segments,
		.bound_max_ns = output->bound_max_ns,
	};
	int r = order_perfetto(output, format, &o.perfetto, err);

	if (r >= 0 && *output->function_view)
		r = function_view_find(output->function_view, &o.function_view, err);
	if (r >= 0)
		r = export_format_check_functions(format, o.function_view, err);
	if (r < 0)
		return r;
	*ret_watch = (struct export_watch){ (const char *const *)output->conditions,
					    output->n_conditions };
	o.watch = ret_watch;
	*ret = o;
	return 0;
}

Traced__Control__Output *order_copy(const Traced__Control__Output *output)
{
	size_t len = traced__control__output__get_packed_size(output);
	_cleanup_free_ uint8_t *packed = malloc(len ?: 1);

	if (!packed)
		return NULL;
	traced__control__output__pack(output, packed);
	return traced__control__output__unpack(NULL, len, packed);
}

int order_write(const Traced__Control__ExportOrder *order)
{
	size_t len = traced__control__export_order__get_packed_size(order);
	_cleanup_free_ uint8_t *packed = malloc(len ?: 1);
	_cleanup_close_ int fd = memfd_create("export-order", MFD_CLOEXEC);
	int r;

	if (fd < 0 || !packed)
		return fd < 0 ? -errno : -ENOMEM;
	traced__control__export_order__pack(order, packed);
	r = write_full(fd, packed, len);
	return r < 0 ? r : TAKE_FD(fd);
}

Traced__Control__ExportOrder *order_read(int fd)
{
	_cleanup_free_ uint8_t *packed = NULL;
	struct stat st;
	size_t len;

	if (fstat(fd, &st) < 0)
		return NULL;
	len = (size_t)st.st_size;
	packed = malloc(len ?: 1);
	if (!packed || pread_full(fd, packed, len, 0) != (ssize_t)len)
		return NULL;
	return traced__control__export_order__unpack(NULL, len, packed);
}
