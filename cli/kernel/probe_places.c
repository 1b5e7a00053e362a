/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "probe_places.h"

#include <fnmatch.h>
#include <string.h>

#include "base/vec.h"
#include "daemon/capture/tracefs/function_list.h"
#include "kernel_types.h"

void probe_places_deinit(struct probe_places *p)
{
	for (size_t i = 0; i < p->count; i++) {
		free(p->items[i].name);
		free(p->items[i].module);
		free(p->items[i].prototype);
	}
	free(p->items);
	*p = (struct probe_places){ 0 };
}

/* Globs, and which of them matched something. */
struct wanted {
	char *const *globs;
	size_t count;
	bool *matched; /* owned */
};

static bool wanted_has(struct wanted *w, const char *name)
{
	bool any = !w->count;

	for (size_t i = 0; i < w->count; i++) {
		if (fnmatch(w->globs[i], name, 0) != 0)
			continue;
		w->matched[i] = any = true;
	}
	return any;
}

/* function: in the kernel's types. A tracepoint's has an argument of the probe before its own. */
static int probe_places_add(struct probe_places *p, const char *kind, const char *name,
			    const char *module, const struct btf_functions *types,
			    const char *function)
{
	struct probe_place *place = vec_add(p->items, p->count, p->cap);
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (!place)
		return -ENOMEM;
	*place = (struct probe_place){ .kind = kind, .name = strdup(name) };
	if (module)
		place->module = strdup(module);
	if (types && btf_functions_put(types, function, name, function != name, &text)) {
		if (!buf_string(&text))
			return -ENOMEM;
		place->prototype = text.data;
		text = BUF_INIT;
	}
	return place->name && (!module || place->module) ? 0 : -ENOMEM;
}

static int find_functions(struct probe_places *p, const struct function_list *functions,
			  const struct kernel_types *types, struct wanted *w)
{
	int r = 0;

	for (size_t i = 0; i < functions->count && r == 0; i++)
		if (wanted_has(w, functions->names[i]))
			r = probe_places_add(
				p, "function", functions->names[i], functions->modules[i],
				kernel_types_of(types, functions->modules[i]), functions->names[i]);
	return r;
}

static int find_tracepoints(struct probe_places *p, const struct module_types *of, struct wanted *w)
{
	const struct btf_functions *types = of->functions;
	const size_t len = strlen(TRACEPOINT_FUNCTION);
	const char *last = "";
	int r = 0;

	for (size_t i = 0; i < btf_functions_count(types) && r == 0; i++) {
		const char *name = btf_functions_name(types, i);

		if (strncmp(name, TRACEPOINT_FUNCTION, len) != 0 || strcmp(name, last) == 0 ||
		    !wanted_has(w, name + len))
			continue;
		last = name;
		r = probe_places_add(p, "tracepoint", name + len, of->name, types, name);
	}
	return r;
}

static int place_compare(const void *a, const void *b)
{
	const struct probe_place *x = a, *y = b;

	return strcmp(x->kind, y->kind) ?: strcmp(x->name, y->name)
		?: strcmp(x->module ?: "", y->module ?: "");
}

static int check_matched(const struct wanted *w, const struct function_list *functions,
			 struct error *err)
{
	for (size_t i = 0; i < w->count; i++) {
		struct function_word word = { 0 };

		if (w->matched[i])
			continue;
		snprintf(word.glob, sizeof(word.glob), "%s", w->globs[i]);
		return function_no_match(functions, &word, err);
	}
	return 0;
}

int probe_places_find(struct probe_places *ret, const struct tracefs *fs, const char *folder,
		      char *const *globs, size_t count, struct error *err)
{
	_cleanup_probe_places_ struct probe_places p = { 0 };
	_cleanup_(kernel_types_deinit) struct kernel_types types = { 0 };
	_cleanup_function_list_ struct function_list functions = { 0 };
	_cleanup_free_ bool *matched = calloc(count + 1, sizeof(*matched));
	struct wanted w = { .globs = globs, .count = count, .matched = matched };
	int r = function_list_read(&functions, fs, err);

	if (r < 0)
		return r;
	if (!matched)
		return error_set(err, -ENOMEM, "out of memory");
	r = kernel_types_read(&types, folder);
	p.untyped = !types.count;
	if (r == 0)
		r = find_functions(&p, &functions, &types, &w);
	for (size_t i = 0; i < types.count && r == 0; i++)
		r = find_tracepoints(&p, &types.items[i], &w);
	if (r < 0)
		return error_errno(err, r, "cannot list the kernel's functions");
	r = check_matched(&w, &functions, err);
	if (r < 0)
		return r;
	qsort(p.items, p.count, sizeof(*p.items), place_compare);
	*ret = p;
	p = (struct probe_places){ 0 };
	return 0;
}
