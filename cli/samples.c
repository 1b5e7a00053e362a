/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "samples.h"

#include <sys/stat.h>

#include "base/plural.h"
#include "merge.h"
#include "symbols/code_symbols.h"

static const char *find_symbol(void *userdata, const struct code_place *place)
{
	return code_symbols_find(userdata, place);
}

/* A missing folder would otherwise show only as functions without names. */
static int samples_check_folder(const char *path, struct error *err)
{
	struct stat st;
	int r = 0;

	if (path && stat(path, &st) < 0)
		r = -errno;
	else if (path && !S_ISDIR(st.st_mode))
		r = -ENOTDIR;
	return r < 0 ? error_errno(err, r, "--symbols: %s", path) : 0;
}

int samples_open(struct samples *ret, const struct options *o, const struct code_opener *opener,
		 struct error *err)
{
	int r = samples_check_folder(o->symbols, err);

	if (r < 0)
		return r;
	r = code_symbols_new(&ret->code, o->symbols, opener);
	if (r < 0)
		return error_errno(err, r, "cannot prepare names of functions");
	ret->symbols = (struct export_symbols){ find_symbol, ret->code };
	for (size_t i = 0; i < o->cpu_profiles.count; i++) {
		int fd = merge_open_file("cpu-profile", o->cpu_profiles.items[i], INPUT_PROFILE,
					 err);

		if (fd < 0)
			return fd;
		ret->profiles[ret->profile_count++] = (struct export_profile){
			.fd = fd,
			.name = o->cpu_profiles.items[i],
		};
	}
	if (ret->profile_count)
		ret->scratch_fd = merge_open_scratch();
	return 0;
}

void samples_tell(const struct samples *s)
{
	size_t changed = code_symbols_changed(s->code);

	if (changed)
		cli_warn("%zu program%s or librar%s from what was recorded: functions there have "
			 "no names",
			 changed, plural_s(changed), plural(changed, "y differs", "ies differ"));
}

void samples_deinit(struct samples *s)
{
	code_symbols_free(s->code);
	for (size_t i = 0; i < s->profile_count; i++)
		close_fd(s->profiles[i].fd);
	if (s->scratch_fd)
		close_fd(s->scratch_fd);
	*s = (struct samples){ 0 };
}
