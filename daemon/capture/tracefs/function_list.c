/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/tracefs/function_list.h"

#include <ctype.h>
#include <fnmatch.h>

#include "base/nearest.h"
#include "daemon/capture/tracefs/feature.h"

void function_list_deinit(struct function_list *l)
{
	buf_deinit(&l->text);
	free(l->names);
	free(l->modules);
	*l = (struct function_list){ 0 };
}

static int function_list_refused(int code, struct error *err)
{
	if (code == -EPERM || code == -EACCES) {
		error_set(err, code, "the kernel refuses function tracing");
		return error_hint(err, "%s; events can still be recorded: -e sched, -e irq",
				  code == -EPERM ? "it is locked down, by Secure Boot, its "
						   "configuration or its command line"
						 : "run as root");
	}
	if (code == -ENOENT) {
		error_set(err, code, "this kernel cannot trace functions");
		return feature_hint(err, FEATURE_PART, "functions", "events can still be recorded");
	}
	return error_errno(err, code, "cannot read available_filter_functions");
}

/* Splits "name" or "name [module]" in place. */
static void function_list_add_line(struct function_list *l, char *line)
{
	char *module = strstr(line, " [");

	/* The kernel lists functions discarded at boot under this name. */
	if (strncmp(line, "__ftrace_invalid_address", 24) == 0)
		return;
	if (module) {
		*module = '\0';
		module += 2;
		module[strcspn(module, "]")] = '\0';
	}
	l->modules[l->count] = module;
	l->names[l->count++] = line;
}

int function_list_read(struct function_list *ret, const struct tracefs *fs, struct error *err)
{
	_cleanup_function_list_ struct function_list l = { 0 };
	size_t lines = 1;
	char *save = NULL;
	int r = tracefs_read(tracefs_root(fs), "available_filter_functions", &l.text);

	if (r < 0)
		return function_list_refused(r, err);
	if (!buf_string(&l.text))
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < l.text.len; i++)
		lines += l.text.data[i] == '\n';
	l.names = calloc(lines, sizeof(*l.names));
	l.modules = calloc(lines, sizeof(*l.modules));
	if (!l.names || !l.modules)
		return error_set(err, -ENOMEM, "out of memory");
	for (char *p = strtok_r(l.text.data, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
		function_list_add_line(&l, p);
	*ret = l;
	l = (struct function_list){ 0 };
	return 0;
}

bool function_matches(const struct function_list *l, size_t i, const struct function_word *word)
{
	if (*word->module && (!l->modules[i] || fnmatch(word->module, l->modules[i], 0) != 0))
		return false;
	/* An empty glob before ":mod:" matches all of the module. */
	return !*word->glob || fnmatch(word->glob, l->names[i], 0) == 0;
}

bool function_any_matches(const struct function_list *l, const struct function_word *word)
{
	for (size_t i = 0; i < l->count; i++)
		if (function_matches(l, i, word))
			return true;
	return false;
}

bool function_module_is_loaded(const struct function_list *l, const char *module)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->modules[i] && fnmatch(module, l->modules[i], 0) == 0)
			return true;
	return false;
}

static int function_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts, removes duplicates, and suggests the words nearest to wanted, each with an ending. */
static int function_offer(const char *wanted, const char **words, size_t count, const char *ending,
			  struct error *err)
{
	_cleanup_buf_ struct buf hint = BUF_INIT;
	const char *best[NEAREST_MAX];
	size_t kept = 0, n;

	qsort(words, count, sizeof(*words), function_compare);
	for (size_t i = 0; i < count; i++)
		if (!kept || strcmp(words[kept - 1], words[i]) != 0)
			words[kept++] = words[i];
	n = nearest_names(wanted, words, kept, best);
	for (size_t i = 0; i < n; i++)
		buf_printf(&hint, "%s'%s%s'", i ? ", " : "did you mean ", best[i], ending);
	if (n)
		return error_hint(err, "%s?", buf_string(&hint) ?: "did you mean another");
	return error_hint(err, "tracefs lists them in available_filter_functions");
}

/* For "vsf_*": compares the glob's prefix with function prefixes of the same length. */
static int function_offer_beginnings(const struct function_list *l, const char *glob, size_t len,
				     struct error *err)
{
	_cleanup_free_ const char **words = calloc(l->count + 1, sizeof(*words));
	_cleanup_free_ char *text = calloc(l->count + 1, len + 1);
	_cleanup_free_ char *wanted = strndup(glob, len);
	size_t n = 0;

	if (!words || !text || !wanted)
		return -err->code;
	for (size_t i = 0; i < l->count; i++) {
		char *word = text + n * (len + 1);

		if (strlen(l->names[i]) < len)
			continue;
		memcpy(word, l->names[i], len);
		words[n++] = word;
	}
	return function_offer(wanted, words, n, "*", err);
}

static int function_no_module(const struct function_list *l, const char *module, struct error *err)
{
	_cleanup_free_ const char **words = calloc(l->count + 1, sizeof(*words));
	size_t n = 0;

	error_set(err, -ENOENT, "there is no module '%s'", module);
	if (!words)
		return -ENOENT;
	for (size_t i = 0; i < l->count; i++)
		if (l->modules[i])
			words[n++] = l->modules[i];
	return function_offer(module, words, n, "", err);
}

int function_no_match(const struct function_list *l, const struct function_word *word,
		      struct error *err)
{
	size_t literal = strcspn(word->glob, "*?[");
	_cleanup_free_ const char **words = NULL;

	if (*word->module && !function_module_is_loaded(l, word->module))
		return function_no_module(l, word->module, err);
	error_set(err, -ENOENT, "the kernel can trace no function '%s'%s%s", word->glob,
		  *word->module ? " of module " : "", word->module);
	if (!err)
		return -ENOENT;
	if (word->glob[literal] == '*' && !word->glob[literal + 1] && literal)
		return function_offer_beginnings(l, word->glob, literal, err);
	words = calloc(l->count + 1, sizeof(*words));
	if (!words)
		return -ENOENT;
	memcpy(words, l->names, l->count * sizeof(*words));
	return function_offer(word->glob, words, l->count, "", err);
}

static int function_word_take(char *to, size_t size, const char *from, size_t len, const char *word,
			      struct error *err)
{
	if (len >= size)
		return error_set(err, -E2BIG, "'%.60s...' is too long for the name of a function",
				 word);
	memcpy(to, from, len);
	to[len] = '\0';
	return 0;
}

int function_word_parse(struct function_word *ret, const char *word, struct error *err)
{
	struct function_word w = { .negated = *word == '!' };
	const char *p = word + w.negated;
	size_t len = strcspn(p, ":");
	int r;

	for (const char *c = word; *c; c++) {
		if (isgraph((unsigned char)*c))
			continue;
		error_set(err, -EINVAL, "'%s' is not a function name: it contains a blank", word);
		return error_hint(err, "use one option for each glob: -l 'vfs_*' -l 'ksys_*'");
	}
	r = function_word_take(w.glob, sizeof(w.glob), p, len, word, err);
	if (r < 0)
		return r;
	p += len;
	if (strncmp(p, ":mod:", 5) == 0) {
		p += 5;
		len = strcspn(p, ":");
		r = function_word_take(w.module, sizeof(w.module), p, len, word, err);
		if (r < 0)
			return r;
		p += len;
		if (!len || *p)
			return error_set(err, -EINVAL, "'%s' is not GLOB:mod:MODULE", word);
	} else if (*p) {
		len = strcspn(++p, ":");
		r = function_word_take(w.command, sizeof(w.command), p, len, word, err);
		if (r < 0)
			return r;
		if (!len)
			return error_set(err, -EINVAL, "'%s' is not GLOB:COMMAND", word);
		w.parameters = p[len] ? p + len + 1 : NULL;
	}
	if (!*w.glob && !*w.module)
		return error_set(err, -EINVAL, "'%s' names no function", word);
	*ret = w;
	return 0;
}
