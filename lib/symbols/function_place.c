/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbols/function_place.h"

#include <fcntl.h>
#include <inttypes.h>

#include "base/buf.h"
#include "base/nearest.h"
#include "symbols/elf_file.h"

/* Further functions of the same name are only counted. */
#define PLACES_NAMED 4

DEFINE_CLEANUP_FUNC(struct elf_file *, elf_file_free);

static int function_place_none(struct elf_file *f, const char *path, const char *name,
			       struct error *err)
{
	_cleanup_buf_ struct buf hint = BUF_INIT, text = BUF_INIT;
	_cleanup_free_ const char **names = NULL;
	const char *best[NEAREST_MAX];
	size_t count = elf_file_names(f, &text, &names), n;

	error_set(err, -ENOENT, "%s has no function '%s'", path, name);
	if (!count)
		return error_hint(
			err,
			"the file has no function names: give an offset, for example %s:0x1234",
			path);
	n = nearest_names(name, names, count, best);
	for (size_t i = 0; i < n; i++)
		buf_printf(&hint, "%s'%s'", i ? ", " : "did you mean ", best[i]);
	buf_printf(&hint, "%s'readelf -sW %s' lists its functions", n ? "? " : "", path);
	return error_hint(err, "%s", buf_string(&hint) ?: "");
}

static int function_place_chosen(const char *path, const char *name, struct error *err)
{
	error_set(err, -ENOENT,
		  "%s has several variants of '%s', of which a program chooses one at start", path,
		  name);
	return error_hint(err, "give the offset of the variant in use: a debugger shows its name, "
			       "'readelf -sW' and 'readelf -lW' its place");
}

static int function_place_several(const char *path, const char *name, const uint64_t *offsets,
				  size_t count, struct error *err)
{
	_cleanup_buf_ struct buf places = BUF_INIT;

	for (size_t i = 0; i < count && i < PLACES_NAMED; i++)
		buf_printf(&places, "%s0x%" PRIx64, i ? ", " : "", offsets[i]);
	error_set(err, -ENOTUNIQ, "%s has %zu functions called '%s'", path, count, name);
	return error_hint(err, "give the offset of one of them: %s%s", buf_string(&places) ?: "",
			  count > PLACES_NAMED ? ", ..." : "");
}

int function_place_find(const char *path, const char *name, uint64_t *ret, struct error *err)
{
	_cleanup_(elf_file_freep) struct elf_file *f = NULL;
	uint64_t offsets[PLACES_NAMED];
	/* O_NONBLOCK: opening a FIFO would block. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;
	bool is_chosen;
	size_t count;

	if (fd < 0)
		return error_errno(err, -errno, "cannot open %s", path);
	r = elf_file_open(&f, fd, path, NULL, NULL, NULL, 0);
	if (r == -EOPNOTSUPP) {
		error_set(err, r,
			  "cannot look up functions in %s: this tracectl is built without elfutils",
			  path);
		return error_hint(err,
				  "give an offset, for example %s:0x1234; 'readelf -sW' and "
				  "'readelf -lW' show it",
				  path);
	}
	if (r == -ENOEXEC)
		return error_set(err, r, "%s is neither a program nor a library", path);
	if (r < 0)
		return error_errno(err, r, "cannot read %s", path);
	count = elf_file_locate(f, name, offsets, PLACES_NAMED, &is_chosen);
	if (!count)
		return is_chosen ? function_place_chosen(path, name, err)
				 : function_place_none(f, path, name, err);
	if (count > 1)
		return function_place_several(path, name, offsets, count, err);
	*ret = offsets[0];
	return 0;
}
