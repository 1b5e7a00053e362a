/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libtraced puts a program's own marks into recordings of traced, on the same clock as kernel
 * events. docs/marks.md is the guide, libtraced(3) the reference.
 *
 * 	#include <traced/traced.h>
 *
 * 	void load(const char *path)
 * 	{
 * 		TRACED_SCOPE("app", "load", TRACED_STRING("path", path));
 * 		...
 * 	}
 *
 * While nobody records, a mark costs two loads and a branch. Its arguments are not evaluated.
 * During a recording the thread writes the mark into its own ring, in memory shared with the
 * daemon, without a lock or a system call.
 *
 * Errors: no call fails or blocks, and nothing needs to be initialised. Without a daemon marks are
 * discarded. A mark that the ring has no room for is dropped and counted, as is one longer than a
 * quarter of the ring or 512 KiB.
 * Threads: call everything from any thread, also from signal handlers. A mark in a handler that
 * interrupted a mark of the same thread is dropped and counted. Such a handler must not end with
 * longjmp(). After fork() the child gets rings of its own, from its first mark on.
 * Ownership: a call copies the data behind pointers before it returns. It does not copy labels:
 * they must live as long as the process. The macros make them static.
 * Units: times are ns of CLOCK_BOOTTIME, as traced_now() returns them.
 * Text: any bytes, shown as UTF-8. Names and categories in the macros must be string constants.
 *
 * Phases and their meaning are those of the Trace Event Format, which Chrome's Trace Viewer
 * defines: the document "Trace Event Format" of the Catapult project.
 */
#ifndef TRACED_TRACED_H
#define TRACED_TRACED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRACED_PUBLIC __attribute__((visibility("default")))

/*
 * The daemon's word, in a page shared by all processes: 0 while nobody records, a small number
 * without a daemon.
 */
#if defined(__x86_64__) || defined(__i386__) || defined(__arm__) || defined(__riscv)
#define TRACED_PAGE_SIZE 4096
#else
#define TRACED_PAGE_SIZE 65536
#endif
struct traced_page {
	uint32_t word;
	char reserved[TRACED_PAGE_SIZE - sizeof(uint32_t)];
};
extern TRACED_PUBLIC struct traced_page traced_page;

/* Not 0 while another tracer listens: libtraced(3), TRACED_USER_EVENTS. */
extern TRACED_PUBLIC uint32_t traced_listeners;

/*
 * Looks for a daemon, at most once a second. Returns 1 if a recording runs or another
 * tracer listens, otherwise 0. traced_enabled() calls it if there was no daemon.
 */
TRACED_PUBLIC int traced_look(void);

/* True if a mark would be written. Use it to skip work that only serves marks. */
static inline int traced_enabled(void)
{
	uint32_t word = __atomic_load_n(&traced_page.word, __ATOMIC_RELAXED),
		 listeners = __atomic_load_n(&traced_listeners, __ATOMIC_RELAXED);

	return __builtin_expect((word | listeners) != 0, 0) && (word >= 16 || traced_look());
}

/* Returns the current time in ns of CLOCK_BOOTTIME, the clock of all marks. */
TRACED_PUBLIC uint64_t traced_now(void);

/*
 * A name and its category, sent once and then known by a number. With a parent it is a frame of a
 * stack. The label and its texts must live as long as the process.
 */
struct traced_label {
	const char *category; /* several are separated by commas */
	const char *name;
	struct traced_label *parent; /* the caller's frame; NULL: none */
	uint32_t id;		     /* set by libtraced; 0 at first */
};
#define TRACED_LABEL_INIT(category, name)                                                          \
	{                                                                                          \
		"" category, "" name, NULL, 0                                                      \
	}
#define TRACED_LABEL_(category, name)                                                              \
	(__extension__({                                                                           \
		static struct traced_label traced_label_ = TRACED_LABEL_INIT(category, name);      \
		&traced_label_;                                                                    \
	}))
/* Defines a frame as a static variable. parent: the address of another frame, or NULL. */
#define TRACED_FRAME(variable, category, name, parent)                                             \
	static struct traced_label variable = { "" category, "" name, parent, 0 }

/* Types of an argument's value. */
enum traced_type {
	TRACED_TYPE_NULL = 0,
	TRACED_TYPE_INT = 1,
	TRACED_TYPE_UINT = 2,
	TRACED_TYPE_DOUBLE = 3,
	TRACED_TYPE_BOOL = 4,
	TRACED_TYPE_POINTER = 5,
	TRACED_TYPE_STRING = 6,
	TRACED_TYPE_JSON = 7,
	TRACED_TYPE_REF = 8,
};

/*
 * An argument of a mark. Make it with the functions and macros below. Their keys must be string
 * constants, except for traced_arg_named().
 */
struct traced_arg {
	union {
		struct traced_label *label; /* its name is the argument's name */
		const char *text;	    /* the name, if `named` */
	} key;
	uint16_t type;	 /* enum traced_type */
	uint16_t named;	 /* 1: key.text is the name; 0: key.label has it */
	uint32_t length; /* bytes of value.text, which need not be terminated */
	union {
		int64_t i;
		uint64_t u;
		double d;
		const char *text;
	} value;
};

static inline struct traced_arg traced_arg_(struct traced_label *key, enum traced_type type)
{
	struct traced_arg a = { { key }, (uint16_t)type, 0, 0, { 0 } };

	return a;
}

static inline struct traced_arg traced_arg_int(struct traced_label *key, int64_t value)
{
	struct traced_arg a = traced_arg_(key, TRACED_TYPE_INT);

	a.value.i = value;
	return a;
}

static inline struct traced_arg traced_arg_uint(struct traced_label *key, enum traced_type type,
						uint64_t value)
{
	struct traced_arg a = traced_arg_(key, type);

	a.value.u = value;
	return a;
}

static inline struct traced_arg traced_arg_double(struct traced_label *key, double value)
{
	struct traced_arg a = traced_arg_(key, TRACED_TYPE_DOUBLE);

	a.value.d = value;
	return a;
}

/* length: bytes of text. The text is borrowed until the mark is written. A NULL text gives null. */
static inline struct traced_arg traced_arg_text(struct traced_label *key, enum traced_type type,
						const char *text, size_t length)
{
	struct traced_arg a = traced_arg_(key, text ? type : TRACED_TYPE_NULL);

	a.value.text = text;
	a.length = (uint32_t)length;
	return a;
}

/* Gives an argument a name that need not be a constant. Borrowed until the mark is written. */
static inline struct traced_arg traced_arg_named(const char *name, struct traced_arg a)
{
	a.key.text = name;
	a.named = 1;
	return a;
}

#define TRACED_INT(key, v) traced_arg_int(TRACED_LABEL_("", key), (int64_t)(v))
#define TRACED_UINT(key, v) traced_arg_uint(TRACED_LABEL_("", key), TRACED_TYPE_UINT, (uint64_t)(v))
#define TRACED_DOUBLE(key, v) traced_arg_double(TRACED_LABEL_("", key), (double)(v))
#define TRACED_BOOL(key, v) traced_arg_uint(TRACED_LABEL_("", key), TRACED_TYPE_BOOL, !!(v))
#define TRACED_POINTER(key, v)                                                                     \
	traced_arg_uint(TRACED_LABEL_("", key), TRACED_TYPE_POINTER, (uint64_t)(uintptr_t)(v))
#define TRACED_STRING(key, v) traced_arg_string_(TRACED_LABEL_("", key), TRACED_TYPE_STRING, (v))
/* A text with one JSON value: an object, a list ... Invalid JSON is shown as a string. */
#define TRACED_JSON(key, v) traced_arg_string_(TRACED_LABEL_("", key), TRACED_TYPE_JSON, (v))
/* Refers to the object with that id (TRACED_OBJECT_NEW): to its snapshot at that time. */
#define TRACED_REF(key, id)                                                                        \
	traced_arg_uint(TRACED_LABEL_("", key), TRACED_TYPE_REF, (uint64_t)(uintptr_t)(id))

static inline struct traced_arg traced_arg_string_(struct traced_label *key, enum traced_type type,
						   const char *text)
{
	return traced_arg_text(key, type, text, text ? strlen(text) : 0);
}

/* Ids connect events with each other. */
enum traced_id_kind {
	TRACED_ID_NONE = 0,
	TRACED_ID_USUAL = 4,  /* objects and counters: local to the process; others: global */
	TRACED_ID_LOCAL = 5,  /* local to the process */
	TRACED_ID_GLOBAL = 6, /* global */
};

struct traced_id {
	enum traced_id_kind kind;
	const char *text; /* NULL: number is the id */
	uint64_t number;
	const char *scope; /* ids in different scopes differ; NULL: none */
};

static inline struct traced_id traced_id_(enum traced_id_kind kind, uint64_t number)
{
	struct traced_id id = { kind, NULL, 0, NULL };

	id.number = number;
	return id;
}
#define TRACED_ID(number) traced_id_(TRACED_ID_USUAL, (uint64_t)(uintptr_t)(number))
#define TRACED_LOCAL(number) traced_id_(TRACED_ID_LOCAL, (uint64_t)(uintptr_t)(number))
#define TRACED_GLOBAL(number) traced_id_(TRACED_ID_GLOBAL, (uint64_t)(uintptr_t)(number))

/* The tracks that an instant is shown on. */
enum traced_scope {
	TRACED_SCOPE_THREAD = 0,
	TRACED_SCOPE_PROCESS = 1,
	TRACED_SCOPE_GLOBAL = 2,
};

enum traced_flags {
	/* A flow's end binds to the enclosing slice, not to the next one. */
	TRACED_BIND_ENCLOSING = 1 << 2,
};

/* A stack: frames, or program counters with the outermost first. */
struct traced_stack {
	struct traced_label *frame; /* the innermost one */
	const uint64_t *addresses;
	size_t count; /* of addresses; at most 128 are used */
};

/*
 * Everything that a mark may contain. A member that is 0 is left out. Pointers are borrowed until
 * traced_write() returns, except labels and frames. Texts are terminated.
 */
struct traced_mark {
	struct traced_label *label; /* NULL: use category and name */
	const char *category, *name;
	unsigned flags; /* enum traced_scope | enum traced_flags */
	const struct traced_arg *args;
	size_t arg_count;	  /* at most 64 are used */
	struct traced_id id;	  /* of an operation, flow, object, counter or dump */
	struct traced_id linked;  /* for '=': the other id */
	uint64_t time;		  /* ns: time of the event, if not now; the end of an 'X' */
	uint64_t start;		  /* ns: for 'X' */
	uint64_t issued;	  /* ns: for the issuer of a clock sync, the time of its request */
	uint64_t thread_duration; /* for 'X': ns of the thread's CPU clock */
	uint64_t instructions;	  /* for 'X': how many the thread executed */
	struct traced_stack stack;
	struct traced_stack end_stack; /* for 'X': the stack at its end */
	const char *cname;	       /* name of a colour in Trace Viewer */
	const char *sync_id;	       /* for a clock sync; both parties write the same one */
	const char *base_type, *snapshot_category; /* for an object's snapshot */
};

/* Writes a mark of this thread. phase: the letter in the Trace Event Format. */
TRACED_PUBLIC void traced_write(char phase, const struct traced_mark *mark);
/* Like traced_write(), for marks that only have flags, a label and arguments, or a label. */
TRACED_PUBLIC void traced_write_label(char phase, unsigned flags, struct traced_label *label,
				      const struct traced_arg *args, size_t arg_count);
TRACED_PUBLIC void traced_write_plain(char phase, struct traced_label *label);

/*
 * Sets what this thread's further marks count; 0: nothing. Each count costs a system call per mark.
 * Returns the flags now in effect: instructions need perf_event_open(2) and a machine that counts
 * them.
 */
#define TRACED_WITH_THREAD_CLOCK 1U /* the thread's CPU time in ns */
#define TRACED_WITH_INSTRUCTIONS 2U /* instructions that the thread executed in user space */
TRACED_PUBLIC unsigned traced_thread_counts(unsigned which);

/*
 * Sets the size in bytes of the rings that all threads make from now on: rounded up to a power of
 * two, 64 KiB to 16 MiB. 0 restores the default: TRACED_RING in the environment, or 1 MiB.
 */
TRACED_PUBLIC void traced_ring_size(size_t bytes);

/*
 * Returns how many marks of this thread were dropped since it began: its ring was full, it had no
 * ring, or a signal handler interrupted a mark.
 */
TRACED_PUBLIC uint64_t traced_dropped(void);

/* The following is internal to the macros. */
#define TRACED_ARGS_(...)                                                                          \
	const struct traced_arg traced_args_[] = { { { NULL }, 0, 0, 0, { 0 } }, ##__VA_ARGS__ };  \
	const size_t traced_arg_count_ = sizeof(traced_args_) / sizeof(traced_args_[0]) - 1
#define TRACED_LABELLED_(phase, flags, label, ...)                                                 \
	do {                                                                                       \
		if (traced_enabled()) {                                                            \
			TRACED_ARGS_(__VA_ARGS__);                                                 \
			if (!traced_arg_count_ && !(flags))                                        \
				traced_write_plain((phase), (label));                              \
			else                                                                       \
				traced_write_label((phase), (flags), (label), traced_args_ + 1,    \
						   traced_arg_count_);                             \
		}                                                                                  \
	} while (0)
/* statements fill traced_mark_, a struct traced_mark. */
#define TRACED_MARK_(phase, category_, name_, statements, ...)                                     \
	do {                                                                                       \
		if (traced_enabled()) {                                                            \
			TRACED_ARGS_(__VA_ARGS__);                                                 \
			struct traced_mark traced_mark_;                                           \
			memset(&traced_mark_, 0, sizeof(traced_mark_));                            \
			traced_mark_.label = TRACED_LABEL_(category_, name_);                      \
			traced_mark_.args = traced_args_ + 1;                                      \
			traced_mark_.arg_count = traced_arg_count_;                                \
			statements;                                                                \
			traced_write((phase), &traced_mark_);                                      \
		}                                                                                  \
	} while (0)
#define TRACED_WITH_ID_(phase, category, name, id_, ...)                                           \
	TRACED_MARK_(phase, category, name, traced_mark_.id = (id_), ##__VA_ARGS__)
#define TRACED_CONCAT2_(a, b) a##b
#define TRACED_CONCAT_(a, b) TRACED_CONCAT2_(a, b)

static inline void traced_scope_end_(const int *began)
{
	if (*began)
		traced_write_plain('E', NULL);
}

/* The following is for programs. "..." are arguments, any number. */

/* A slice of the thread. Slices nest. Both ends may have arguments. */
#define TRACED_BEGIN(category, name, ...)                                                          \
	TRACED_LABELLED_('B', 0U, TRACED_LABEL_(category, name), ##__VA_ARGS__)
#define TRACED_END(...) TRACED_LABELLED_('E', 0U, (struct traced_label *)NULL, ##__VA_ARGS__)
/* A slice that ends when the program leaves the block, in any way but longjmp(). */
#define TRACED_SCOPE(category, name, ...)                                                          \
	const int TRACED_CONCAT_(traced_scope_, __LINE__)                                          \
		__attribute__((cleanup(traced_scope_end_), unused)) = traced_enabled();            \
	TRACED_BEGIN(category, name, ##__VA_ARGS__)
/* A whole slice, written at its end. start: traced_now() at its beginning. */
#define TRACED_COMPLETE(category, name, start_, ...)                                               \
	TRACED_MARK_('X', category, name, traced_mark_.start = (start_), ##__VA_ARGS__)
/* An event without duration. scope: an enum traced_scope. */
#define TRACED_INSTANT(category, name, scope, ...)                                                 \
	TRACED_LABELLED_('i', (unsigned)(scope), TRACED_LABEL_(category, name), ##__VA_ARGS__)
/* Values of a counter (TRACED_INT, TRACED_UINT, TRACED_DOUBLE). Several are shown stacked. */
#define TRACED_COUNTER(category, name, ...)                                                        \
	TRACED_LABELLED_('C', 0U, TRACED_LABEL_(category, name), ##__VA_ARGS__)
#define TRACED_COUNTER_OF(category, name, id, ...)                                                 \
	TRACED_WITH_ID_('C', category, name, id, ##__VA_ARGS__)

/* Operations that move between threads. Each category and id is one tree, nested by time. */
#define TRACED_ASYNC_BEGIN(category, name, id, ...)                                                \
	TRACED_WITH_ID_('b', category, name, id, ##__VA_ARGS__)
#define TRACED_ASYNC_INSTANT(category, name, id, ...)                                              \
	TRACED_WITH_ID_('n', category, name, id, ##__VA_ARGS__)
#define TRACED_ASYNC_END(category, name, id, ...)                                                  \
	TRACED_WITH_ID_('e', category, name, id, ##__VA_ARGS__)

/* Arrows between slices: from the one around START, over STEPs, to the one after END. */
#define TRACED_FLOW_START(category, name, id, ...)                                                 \
	TRACED_WITH_ID_('s', category, name, id, ##__VA_ARGS__)
#define TRACED_FLOW_STEP(category, name, id, ...)                                                  \
	TRACED_WITH_ID_('t', category, name, id, ##__VA_ARGS__)
#define TRACED_FLOW_END(category, name, id, ...)                                                   \
	TRACED_WITH_ID_('f', category, name, id, ##__VA_ARGS__)
/* Ends the arrow at the enclosing slice. */
#define TRACED_FLOW_END_HERE(category, name, id_, ...)                                             \
	TRACED_MARK_('f', category, name,                                                          \
		     (traced_mark_.id = (id_), traced_mark_.flags = TRACED_BIND_ENCLOSING),        \
		     ##__VA_ARGS__)

/* Objects with a name, from NEW to DELETE. A snapshot shows its arguments. */
#define TRACED_OBJECT_NEW(category, name, id) TRACED_WITH_ID_('N', category, name, id)
#define TRACED_OBJECT_SNAPSHOT(category, name, id, ...)                                            \
	TRACED_WITH_ID_('O', category, name, id, ##__VA_ARGS__)
/* A snapshot of an object that NEW and DELETE call `base`. */
#define TRACED_OBJECT_SNAPSHOT_AS(category, name, id_, base, ...)                                  \
	TRACED_MARK_('O', category, name,                                                          \
		     (traced_mark_.id = (id_), traced_mark_.base_type = (base)), ##__VA_ARGS__)
#define TRACED_OBJECT_DELETE(category, name, id) TRACED_WITH_ID_('D', category, name, id)

/* From ENTER to LEAVE the thread's events belong to a context, an object's id. */
#define TRACED_CONTEXT_ENTER(category, name, id) TRACED_WITH_ID_('(', category, name, id)
#define TRACED_CONTEXT_LEAVE(category, name, id) TRACED_WITH_ID_(')', category, name, id)
/* Declares two ids equal. */
#define TRACED_LINK(category, name, id_, other)                                                    \
	TRACED_MARK_('=', category, name, (traced_mark_.id = (id_), traced_mark_.linked = (other)))

/* Memory of the machine or the process. All parts of one dump have the same id. */
#define TRACED_MEMORY_GLOBAL(category, name, id, ...)                                              \
	TRACED_WITH_ID_('V', category, name, id, ##__VA_ARGS__)
#define TRACED_MEMORY_PROCESS(category, name, id, ...)                                             \
	TRACED_WITH_ID_('v', category, name, id, ##__VA_ARGS__)
/* A moment with a defined meaning, as in navigation timing. */
#define TRACED_MARK(category, name, ...)                                                           \
	TRACED_LABELLED_('R', 0U, TRACED_LABEL_(category, name), ##__VA_ARGS__)
/* A sample of the thread's stack. frame: the innermost TRACED_FRAME. */
#define TRACED_SAMPLE(category, name, frame_, ...)                                                 \
	TRACED_MARK_('P', category, name, traced_mark_.stack.frame = (frame_), ##__VA_ARGS__)

/* Clock sync. The receiver records an id; the issuer then records when it made the request. */
#define TRACED_SYNC_RECEIVED(id_) TRACED_MARK_('c', "", "clock_sync", traced_mark_.sync_id = (id_))
#define TRACED_SYNC_ISSUED(id_, issued_at)                                                         \
	TRACED_MARK_('c', "", "clock_sync",                                                        \
		     (traced_mark_.sync_id = (id_), traced_mark_.issued = (issued_at)))

/* How viewers show process and thread. Repeat these for each recording. */
#define TRACED_PROCESS_NAME(name) TRACED_META_("process_name", TRACED_STRING("name", name))
#define TRACED_PROCESS_LABELS(labels)                                                              \
	TRACED_META_("process_labels", TRACED_STRING("labels", labels))
#define TRACED_PROCESS_SORT_INDEX(index)                                                           \
	TRACED_META_("process_sort_index", TRACED_INT("sort_index", index))
#define TRACED_THREAD_NAME(name) TRACED_META_("thread_name", TRACED_STRING("name", name))
#define TRACED_THREAD_SORT_INDEX(index)                                                            \
	TRACED_META_("thread_sort_index", TRACED_INT("sort_index", index))
#define TRACED_META_(item, arg) TRACED_LABELLED_('M', 0U, TRACED_LABEL_("__metadata", item), arg)

#ifdef __cplusplus
}
#endif

#endif
