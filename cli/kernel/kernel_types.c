/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kernel_types.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "base/vec.h"

#define BTF_MAX (256U << 20)

static void module_types_deinit(struct module_types *m)
{
	free(m->name);
	btf_functions_free(m->functions);
	buf_deinit(&m->btf);
}

void kernel_types_deinit(struct kernel_types *t)
{
	/* Modules refer to the kernel's types. */
	while (t->count)
		module_types_deinit(&t->items[--t->count]);
	free(t->items);
	*t = (struct kernel_types){ 0 };
}

/* Types that can't be read are unknown. */
static int kernel_types_add(struct kernel_types *t, int dir, const char *file, bool is_module)
{
	struct module_types m = { .btf = BUF_INIT };
	int r = read_file_at(dir, file, BTF_MAX, &m.btf);

	if (r == 0 && is_module && !(m.name = strdup(file)))
		r = -ENOMEM;
	if (r == 0)
		r = btf_functions_new(&m.functions, m.btf.data, m.btf.len,
				      is_module ? t->items[0].functions : NULL);
	if (r == 0)
		r = vec_push(t->items, t->count, t->cap, m);
	if (r == 0)
		return 0;
	module_types_deinit(&m);
	return r == -ENOMEM ? r : 0;
}

int kernel_types_read(struct kernel_types *ret, const char *path)
{
	_cleanup_(kernel_types_deinit) struct kernel_types t = { 0 };
	DIR *dir = opendir(path);
	struct dirent *e;
	int r;

	if (!dir)
		return errno == ENOMEM ? -ENOMEM : 0;
	r = kernel_types_add(&t, dirfd(dir), KERNEL_TYPES_OWN, false);
	while (r == 0 && t.count && (e = readdir(dir)))
		if (*e->d_name != '.' && strcmp(e->d_name, KERNEL_TYPES_OWN) != 0)
			r = kernel_types_add(&t, dirfd(dir), e->d_name, true);
	closedir(dir);
	*ret = t;
	t = (struct kernel_types){ 0 };
	return r;
}

const struct btf_functions *kernel_types_of(const struct kernel_types *t, const char *module)
{
	for (size_t i = 0; i < t->count; i++)
		if (strcmp(t->items[i].name ?: "", module ?: "") == 0)
			return t->items[i].functions;
	return NULL;
}
