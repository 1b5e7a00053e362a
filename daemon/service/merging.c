/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/merging.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "control/frame.h"
#include "formats/formats.h"

_Static_assert(CONTROL_FDS_MAX >= MERGING_FDS_MAX + 1, "an output and all that is merged into it");

/* Of one file in the exporter's words: its clock, its name, the name of the file of its syncs. */
#define WORDS_EACH 3
#define SCRATCH "scratch"
#define NO_SCRATCH "memory"

void merging_deinit(struct merging *m)
{
	for (size_t i = 0; i < m->word_count; i++)
		free(m->words[i]);
	for (size_t i = 0; i < m->fd_count; i++)
		close_fd(m->fds[i]);
	*m = (struct merging){ 0 };
}

static int add_word(struct merging *m, const char *word, struct error *err)
{
	m->words[m->word_count] = strdup(word);
	if (!m->words[m->word_count])
		return error_errno(err, -ENOMEM, "request");
	m->word_count++;
	return 0;
}

/* A pipe that nobody fills would hold an exporter for ever. */
static int check_file(int fd, int mode, const char *name, struct error *err)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && !(flags & O_PATH) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    ((flags & O_ACCMODE) == O_RDWR || (flags & O_ACCMODE) == mode))
		return 0;
	return error_set(err, -EBADF, "%s: no regular file that is open for it", name);
}

static int take_file(struct merging *m, int *fds, size_t fd_count, int mode, const char *name,
		     struct error *err)
{
	int *fd = &fds[m->fd_count];

	if (m->fd_count >= fd_count)
		return error_set(err, -EBADF, "%s: the request names it but brings none", name);
	if (check_file(*fd, mode, name, err) < 0)
		return -EBADF;
	m->fds[m->fd_count++] = TAKE_FD(*fd);
	return 0;
}

static int take_merge(struct merging *m, const Traced__Control__Merge *merge, int *fds,
		      size_t fd_count, struct error *err)
{
	int clock, r = 0;

	if (*merge->clock)
		r = merge_clock_find(merge->clock, &clock, err);
	if (r >= 0)
		r = add_word(m, merge->clock, err);
	if (r >= 0)
		r = add_word(m, merge->name, err);
	if (r >= 0)
		r = add_word(m, merge->syncs ? merge->sync_name : "", err);
	if (r >= 0 && merge->syncs && !*merge->sync_name)
		r = error_set(err, -EINVAL, "%s: the file of its syncs has no name", merge->name);
	if (r >= 0)
		r = take_file(m, fds, fd_count, O_RDONLY, merge->name, err);
	if (r >= 0 && merge->syncs)
		r = take_file(m, fds, fd_count, O_RDONLY, merge->sync_name, err);
	return r;
}

int merging_take(struct merging *ret, const Traced__Control__Output *output, int *fds,
		 size_t fd_count, struct error *err)
{
	size_t wanted = 0;
	bool scratch;
	int r;

	*ret = (struct merging){ 0 };
	if (!output->n_merges)
		return 0;
	if (output->n_merges > EXPORT_MERGES_MAX)
		return error_set(err, -EINVAL, "more than %d files to be merged",
				 EXPORT_MERGES_MAX);
	if (output->stream || output->rotate_bytes || output->rotate_ns)
		return error_set(err, -EINVAL,
				 "files are merged into a recording that has ended, in one file");
	for (size_t i = 0; i < output->n_merges; i++)
		wanted += output->merges[i]->syncs ? 2 : 1;
	scratch = fd_count > wanted;
	r = add_word(ret, scratch ? SCRATCH : NO_SCRATCH, err);
	for (size_t i = 0; r >= 0 && i < output->n_merges; i++)
		r = take_merge(ret, output->merges[i], fds, fd_count, err);
	if (r >= 0 && scratch)
		r = take_file(ret, fds, fd_count, O_RDWR, "scratch", err);
	return r;
}

int merging_read(struct export_options *options, struct export_merge *files, char **words,
		 size_t word_count, int first_fd)
{
	int fd = first_fd;

	if (!word_count)
		return 0;
	if (word_count > MERGING_ARGS_MAX || word_count % WORDS_EACH != 1)
		return -EINVAL;
	for (char **w = words + 1; w < words + word_count; w += WORDS_EACH) {
		struct export_merge *m = &files[options->merge_count++];

		*m = (struct export_merge){ .fd = fd++, .clock = -1, .name = w[1] };
		if (*w[0] && merge_clock_find(w[0], &m->clock, NULL) < 0)
			return -EINVAL;
		if (*w[2]) {
			m->sync_name = w[2];
			m->sync_fd = fd++;
		}
	}
	options->merges = files;
	if (strcmp(words[0], SCRATCH) == 0)
		options->scratch_fd = fd++;
	return fd - first_fd;
}
