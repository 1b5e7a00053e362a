/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/function_names.h"

#include <string.h>

#include "base/io.h"
#include "base/vec.h"
#include "daemon/capture/tracefs/function_regex.h"

void function_names_deinit(struct function_names *n)
{
	for (size_t i = 0; i < n->owned_count; i++)
		free(n->owned[i]);
	free(n->owned);
	for (size_t i = 0; i < ARRAY_SIZE(n->lists); i++)
		free(n->lists[i]);
	function_list_deinit(&n->functions);
	*n = (struct function_names){ 0 };
}

/* No function's name has a slash, so a glob that begins with one would match nothing. */
static bool word_is_regex(const char *word)
{
	return word[*word == '!'] == '/';
}

static size_t words_count_plain(const struct capture_words *words)
{
	size_t n = 0;

	for (size_t i = 0; i < words->count; i++)
		n += !word_is_regex(words->items[i]);
	return n;
}

struct expansion {
	struct function_names *names;
	const struct function_list *functions;
	const char **list; /* under construction, with room for max */
	size_t count, max;
};

static int expansion_add(struct expansion *e, const char *word, const char *for_word,
			 struct error *err)
{
	if (e->names->total < e->max) {
		e->names->total++;
		e->list[e->count++] = word;
		return 0;
	}
	error_set(err, -E2BIG, "with '%.200s' there are more than %zu names and globs of functions",
		  for_word, e->max);
	return error_hint(err, "the kernel compares each of them with all its functions: match "
			       "fewer, or use a glob");
}

static int expansion_add_name(struct expansion *e, const char *word, const char *name,
			      const char *rest, size_t from, struct error *err)
{
	size_t begin = *word == '!', len = strlen(name);
	char *text;

	/* Static functions may have one name. */
	for (size_t i = from; i < e->count; i++)
		if (strncmp(e->list[i] + begin, name, len) == 0 &&
		    strcmp(e->list[i] + begin + len, rest) == 0)
			return 0;
	if (asprintf(&text, "%s%s%s", begin ? "!" : "", name, rest) < 0)
		return error_set(err, -ENOMEM, "out of memory");
	if (vec_push(e->names->owned, e->names->owned_count, e->names->owned_cap, text) < 0) {
		free(text);
		return error_set(err, -ENOMEM, "out of memory");
	}
	return expansion_add(e, text, word, err);
}

/* Splits "[!]/REGEX/[:mod:MODULE]". */
static int regex_word_parse(const char *text, struct function_regex *re, struct function_word *word,
			    const char **rest, struct error *err)
{
	const char *begin = text + (*text == '!') + 1, *slash = strrchr(begin, '/');
	int r = 0;

	*word = (struct function_word){ 0 };
	if (!slash) {
		error_set(err, -EINVAL, "the regular expression '%.200s' has no '/' at its end",
			  text);
		return error_hint(err, "write it as in '/^vfs_(read|write)$/'");
	}
	*rest = slash + 1;
	if (**rest && strncmp(*rest, ":mod:", strlen(":mod:")) != 0) {
		error_set(err, -EINVAL,
			  "'%.200s': only :mod:MODULE may follow a regular expression", text);
		return error_hint(err, "a command needs the name or a glob of functions");
	}
	if (**rest)
		r = function_word_parse(word, *rest, err);
	return r < 0 ? r : function_regex_compile(re, begin, (size_t)(slash - begin), err);
}

static int expansion_add_regex(struct expansion *e, const char *text, struct error *err)
{
	const struct function_list *functions = e->functions;
	size_t from = e->count;
	struct function_word word;
	struct function_regex re;
	const char *rest = "";
	int r = regex_word_parse(text, &re, &word, &rest, err);

	for (size_t i = 0; i < functions->count && r == 0; i++)
		if (function_matches(functions, i, &word) &&
		    function_regex_matches(&re, functions->names[i]))
			r = expansion_add_name(e, text, functions->names[i], rest, from, err);
	if (r < 0 || e->count > from)
		return r;
	error_set(err, -ENOENT, "the kernel can trace no function that matches '%.200s'", text);
	return error_hint(err, "tracefs lists them in available_filter_functions; those of modules "
			       "only while they are loaded");
}

static int expand_words(struct function_names *names, struct capture_words *words,
			uint64_t until_ns, struct error *err)
{
	const char **list = names->lists[names->which];
	struct expansion e;

	if (!list)
		list = calloc(names->max + 1, sizeof(*list));
	if (!list)
		return error_set(err, -ENOMEM, "out of memory");
	names->lists[names->which] = list;
	e = (struct expansion){ names, &names->functions, list, names->count, names->max };
	while (names->taken < words->count) {
		const char *word = words->items[names->taken++];
		int r = word_is_regex(word) ? expansion_add_regex(&e, word, err)
					    : expansion_add(&e, word, word, err);

		names->count = e.count;
		if (r < 0)
			return r;
		if (now_ns(CLOCK_MONOTONIC) >= until_ns)
			return 1;
	}
	*words = (struct capture_words){ e.list, e.count };
	return 0;
}

/* Returns 1 if there are regular expressions. */
static int expand_begin(struct function_names *names, struct capture_words *const *words,
			const struct tracefs *fs, size_t names_max, struct error *err)
{
	size_t plain = 0, all = 0;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(names->lists); i++) {
		plain += words_count_plain(words[i]);
		all += words[i]->count;
	}
	if (plain == all)
		return 0;
	r = function_list_read(&names->functions, fs, err);
	names->max = names_max ?: FUNCTION_NAMES_MAX + plain;
	return r < 0 ? r : 1;
}

int function_names_expand(struct function_names *ret, const struct tracefs *fs,
			  struct capture_functions *f, uint64_t until_ns, struct error *err)
{
	struct capture_words *const words[] = { &f->only, &f->never, &f->roots };
	int r = ret->max ? 1 : expand_begin(ret, words, fs, f->names_max, err);

	while (r > 0 && ret->which < ARRAY_SIZE(words)) {
		r = expand_words(ret, words[ret->which], until_ns, err);
		if (r)
			return r;
		ret->which++;
		ret->count = ret->taken = 0;
		r = 1;
	}
	return MIN(r, 0);
}
