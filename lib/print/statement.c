/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parses C types and statement expressions: ({ declarations; calls; value; }). */
#include <string.h>

#include "print/parser.h"

/*
 * Bit-fields of unions in print formats, from the lowest bit of a little-endian machine:
 * arch/x86/include/asm/kvm_host.h. The printed ones are the same since Linux 5.14.
 */
static const struct {
	const char *union_name, *member;
	uint8_t shift, bits;
} bit_fields[] = {
	{ "kvm_mmu_page_role", "word", 0, 32 },
	{ "kvm_mmu_page_role", "level", 0, 4 },
	{ "kvm_mmu_page_role", "has_4_byte_gpte", 4, 1 },
	{ "kvm_mmu_page_role", "gpte_is_8_bytes", 4, 1 }, /* before 5.18 */
	{ "kvm_mmu_page_role", "quadrant", 5, 2 },
	{ "kvm_mmu_page_role", "direct", 7, 1 },
	{ "kvm_mmu_page_role", "access", 8, 3 },
	{ "kvm_mmu_page_role", "invalid", 11, 1 },
	{ "kvm_mmu_page_role", "efer_nx", 12, 1 },
	{ "kvm_mmu_page_role", "nxe", 12, 1 }, /* before 5.14 */
	{ "kvm_mmu_page_role", "cr0_wp", 13, 1 },
	{ "kvm_mmu_page_role", "smep_andnot_wp", 14, 1 },
	{ "kvm_mmu_page_role", "smap_andnot_wp", 15, 1 },
	{ "kvm_mmu_page_role", "ad_disabled", 16, 1 },
	{ "kvm_mmu_page_role", "guest_mode", 17, 1 },
};

static struct local *parser_find_local(struct parser *p, const struct token *t)
{
	for (size_t i = p->local_count; i-- > 0;)
		if (p->locals[i].len == t->len && !memcmp(p->locals[i].name, t->text, t->len))
			return &p->locals[i];
	return NULL;
}

static bool token_is_qualifier(const struct token *t)
{
	static const char *const names[] = { "const",  "volatile", "static",
					     "__user", "__force",  "__iomem" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (token_is(t, names[i]))
			return true;
	return false;
}

bool parser_starts_type(const struct parser *p, const struct token *t)
{
	struct expr_type type;

	if (t->kind != TOKEN_NAME)
		return false;
	return token_is_qualifier(t) || token_is(t, "struct") || token_is(t, "union") ||
	       token_is(t, "enum") || token_is(t, "signed") || token_is(t, "void") ||
	       expr_type_by_name(t->text, t->len, p->env->word_size, &type);
}

/* Parses "unsigned long long int" and others: the words come in any order. */
static bool parser_basic_type(struct parser *p, struct expr_type *ret)
{
	bool seen_unsigned = false, seen_signed = false, seen_int = false, seen = false;
	unsigned longs = 0;

	*ret = int_type(4, true);
	for (;; lexer_next(&p->lexer)) {
		const struct token *t = &p->lexer.token;

		if (token_is(t, "unsigned"))
			seen_unsigned = true;
		else if (token_is(t, "signed"))
			seen_signed = true;
		else if (token_is(t, "long"))
			longs++;
		else if (token_is(t, "int"))
			seen_int = true;
		else if (!token_is_qualifier(t)) {
			if (seen || t->kind != TOKEN_NAME || seen_int || longs ||
			    !expr_type_by_name(t->text, t->len, p->env->word_size, ret))
				break;
			p->type_is_bool = token_is(t, "bool") || token_is(t, "_Bool");
			seen = true;
		}
	}
	if (longs)
		ret->size = longs > 1 ? 8 : (uint8_t)p->env->word_size;
	if (seen_unsigned)
		ret->is_signed = false;
	if (seen_signed)
		ret->is_signed = true;
	return seen || longs || seen_int || seen_unsigned || seen_signed ||
	       parser_unsupported(p, "an unknown type");
}

/* Looks up the constant "struct:NAME", which btf.c writes. 0: unknown. */
static uint16_t parser_struct_size(struct parser *p)
{
	const struct token *t = &p->lexer.token;
	char name[128];
	int64_t size;
	int n = snprintf(name, sizeof(name), "struct:%.*s", (int)MIN(t->len, (size_t)100), t->text);

	if (!constants_find(p->env->constants, name, (size_t)n, &size) || size < 0 ||
	    size > UINT16_MAX)
		return 0;
	return (uint16_t)size;
}

bool parser_type(struct parser *p, struct expr_type *ret)
{
	bool opaque = false;
	unsigned stars = 0;
	uint16_t scale = 1; /* size of void */

	p->type_is_bool = false;
	while (token_is_qualifier(&p->lexer.token))
		lexer_next(&p->lexer);
	if (token_is(&p->lexer.token, "struct") || token_is(&p->lexer.token, "union")) {
		lexer_next(&p->lexer);
		scale = parser_struct_size(p);
		lexer_next(&p->lexer);
		opaque = true;
	} else if (token_is(&p->lexer.token, "enum")) {
		lexer_next(&p->lexer);
		lexer_next(&p->lexer);
		*ret = int_type(4, false);
	} else if (token_is(&p->lexer.token, "void")) {
		lexer_next(&p->lexer);
		opaque = true;
	} else if (!parser_basic_type(p, ret)) {
		return false;
	}
	for (;; stars++) {
		while (token_is_qualifier(&p->lexer.token))
			lexer_next(&p->lexer);
		if (!parser_accept(p, '*'))
			break;
	}
	if (!stars)
		return !opaque || parser_unsupported(p, "a structure as a value");
	p->type_is_bool = false;
	if (stars == 1 && !opaque)
		/* expr_cast() makes it a pointer unless the value is an address in the record. */
		ret->class = TYPE_RECORD;
	else
		*ret = (struct expr_type){ TYPE_POINTER, (uint8_t)p->env->word_size, false,
					   stars > 1 ? (uint16_t)p->env->word_size : scale };
	return true;
}

static struct expr *parser_bit_field(struct parser *p, const struct local *local)
{
	const struct token t = p->lexer.token;

	for (size_t i = 0; i < ARRAY_SIZE(bit_fields); i++) {
		struct expr *e = local->value;

		if (strlen(bit_fields[i].union_name) != local->bits_len ||
		    memcmp(bit_fields[i].union_name, local->bits, local->bits_len) ||
		    !token_is(&t, bit_fields[i].member) || !e)
			continue;
		lexer_next(&p->lexer);
		if (bit_fields[i].bits == 32)
			return e;
		e = expr_make_binary(p->env, OP_SHR, e,
				     expr_const(p->env, bit_fields[i].shift, 4, true));
		e = expr_make_binary(p->env, '&', e,
				     expr_const(p->env, (1U << bit_fields[i].bits) - 1, 4, false));
		return parser_made(p, expr_cast(p->env, e, int_type(4, true)));
	}
	parser_unsupported(p, "a member of a union");
	return NULL;
}

struct expr *parser_local(struct parser *p, const struct token *t)
{
	struct local *local = parser_find_local(p, t);

	if (!local)
		return NULL;
	if (local->bits && parser_accept(p, '.'))
		return parser_bit_field(p, local);
	if (local->is_text)
		return p->written ? p->written : parser_made(p, expr_text(p->env, "", 0));
	if (!local->value)
		parser_fail(p, "%.*s has no value", (int)MIN(t->len, (size_t)80), t->text);
	return local->value;
}

/* { "a", "b", ... } */
static struct expr *parser_string_array(struct parser *p)
{
	struct expr *e = expr_new(p->env, EXPR_SELECT, (struct expr_type){ .class = TYPE_TEXT });
	struct name_entry *entries = arena_alloc(p->env->arena, 64 * sizeof(*entries));
	struct name_table *t = arena_alloc(p->env->arena, sizeof(*t));

	if (!e || !entries || !t || !parser_expect(p, '{'))
		return parser_made(p, NULL);
	t->entries = entries;
	do {
		struct expr *s;

		if (parser_is(p, '}'))
			break;
		s = parser_expr(p);
		if (!s || s->kind != EXPR_STRING || t->count == 64)
			return parser_made(p, NULL);
		entries[t->count].text = s->text;
		entries[t->count++].len = s->text_len;
		t->longest = MAX(t->longest, s->text_len);
	} while (parser_accept(p, ','));
	e->table = t;
	return parser_expect(p, '}') ? e : NULL;
}

/* trace_seq_buffer_ptr(p): the text written from here on. */
static bool parser_text_start(struct parser *p, struct local *local)
{
	if (!token_is(&p->lexer.token, "trace_seq_buffer_ptr"))
		return false;
	lexer_next(&p->lexer);
	if (!parser_expect(p, '('))
		return false;
	lexer_next(&p->lexer);
	local->is_text = true;
	p->written = p->written_last = NULL;
	return parser_expect(p, ')');
}

static bool parser_initializer(struct parser *p, struct local *local, bool is_array,
			       struct expr_type type)
{
	struct expr *e;

	if (parser_text_start(p, local))
		return true;
	if (p->why)
		return false;
	e = is_array ? parser_string_array(p) : parser_expr(p);
	if (e && !is_array && type.class == TYPE_INT)
		e = parser_made(p, expr_cast(p->env, e, type));
	local->value = e;
	return e != NULL;
}

static bool parser_declaration(struct parser *p)
{
	struct expr_type type = { 0 };
	struct local *local;
	bool is_array = false;

	if (p->local_count == PARSER_LOCALS)
		return parser_fail(p, "too many local names");
	local = &p->locals[p->local_count];
	*local = (struct local){ 0 };
	while (token_is_qualifier(&p->lexer.token))
		lexer_next(&p->lexer);
	if (token_is(&p->lexer.token, "union")) {
		lexer_next(&p->lexer);
		local->bits = p->lexer.token.text;
		local->bits_len = p->lexer.token.len;
		lexer_next(&p->lexer);
	} else if (!parser_type(p, &type)) {
		return false;
	}
	if (p->lexer.token.kind != TOKEN_NAME)
		return parser_fail(p, "a declaration that cannot be parsed");
	local->name = p->lexer.token.text;
	local->len = p->lexer.token.len;
	lexer_next(&p->lexer);
	if (parser_accept(p, '[')) {
		is_array = true;
		if (!parser_is(p, ']') && !parser_expr(p))
			return false;
		if (!parser_expect(p, ']'))
			return false;
	}
	if (parser_accept(p, '=') && !parser_initializer(p, local, is_array, type))
		return false;
	p->local_count++;
	return true;
}

/* "role.word = value" */
static bool parser_assignment(struct parser *p, bool *ret_done)
{
	struct lexer saved = p->lexer;
	struct local *local = parser_find_local(p, &p->lexer.token);

	*ret_done = false;
	if (!local || !local->bits)
		return true;
	lexer_next(&p->lexer);
	if (parser_accept(p, '.') && token_is(&p->lexer.token, "word")) {
		lexer_next(&p->lexer);
		if (parser_accept(p, '=')) {
			struct expr *e = parser_expr(p);

			local->value = e ? expr_cast(p->env, e, int_type(4, false)) : NULL;
			*ret_done = true;
			return parser_made(p, local->value) != NULL;
		}
	}
	p->lexer = saved;
	return true;
}

struct expr *parser_statements(struct parser *p)
{
	struct expr *last = NULL;
	size_t outer = p->local_count;

	while (!p->why && !parser_is(p, '}')) {
		bool done = false;

		last = NULL;
		if (parser_starts_type(p, &p->lexer.token)) {
			if (!parser_declaration(p))
				return NULL;
		} else if (!parser_assignment(p, &done)) {
			return NULL;
		} else if (!done) {
			last = parser_expr(p);
			if (!last)
				return NULL;
		}
		if (!parser_expect(p, ';'))
			return NULL;
	}
	p->local_count = outer;
	if (!parser_expect(p, '}'))
		return NULL;
	if (!last)
		parser_fail(p, "a statement expression without a value");
	return last;
}
