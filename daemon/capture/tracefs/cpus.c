/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/tracefs/cpus.h"

#include <ctype.h>
#include <string.h>

#include "base/io.h"

#define FREQUENCIES_MAX 64
#define CPUINFO_MAX (4U << 20)

static bool read_text(int dir, const char *path, size_t max, struct buf *text)
{
	return dir >= 0 && read_file_at(dir, path, max, text) == 0 && buf_string(text);
}

static void read_capacity(Traced__Capture__Cpu *c, int sys)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[64];

	snprintf(path, sizeof(path), "devices/system/cpu/cpu%u/cpu_capacity", c->cpu);
	if (read_text(sys, path, 64, &text))
		c->capacity = (uint32_t)strtoul(text.data, NULL, 10);
}

static int read_frequencies(Traced__Capture__Cpu *c, int sys)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *p;
	char path[96];
	char *end;

	snprintf(path, sizeof(path),
		 "devices/system/cpu/cpu%u/cpufreq/scaling_available_frequencies", c->cpu);
	if (!read_text(sys, path, 4096, &text))
		return 0;
	c->frequencies_khz = calloc(FREQUENCIES_MAX, sizeof(*c->frequencies_khz));
	if (!c->frequencies_khz)
		return -ENOMEM;
	for (p = text.data; c->n_frequencies_khz < FREQUENCIES_MAX; p = end) {
		unsigned long khz = strtoul(p, &end, 10);

		if (end == p)
			break;
		c->frequencies_khz[c->n_frequencies_khz++] = (uint32_t)khz;
	}
	return 0;
}

/* Returns the value of "name<tabs>: value"; NULL: another line. */
static const char *value_of(const char *line, const char *name)
{
	size_t len = strlen(name);

	if (strncmp(line, name, len) != 0)
		return NULL;
	line += len;
	while (*line == ' ' || *line == '\t')
		line++;
	if (*line++ != ':')
		return NULL;
	return line + (*line == ' ');
}

/*
 * Parses "processor : 0" and the lines that follow. x86 has a "model name", others a "Processor".
 */
static int read_models(struct cpu_list *l, int proc)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	unsigned long cpu = 0;

	if (!read_text(proc, "cpuinfo", CPUINFO_MAX, &text))
		return 0;
	for (char *line = text.data, *next; line; line = next) {
		const char *value;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		value = value_of(line, "processor");
		if (value && isdigit((unsigned char)*value)) {
			cpu = strtoul(value, NULL, 10);
			continue;
		}
		value = value_of(line, "model name") ?: value_of(line, "Processor");
		if (!value || cpu >= l->count || *l->cpus[cpu].model)
			continue;
		l->cpus[cpu].model = strdup(value);
		if (!l->cpus[cpu].model) {
			l->cpus[cpu].model = (char *)protobuf_c_empty_string;
			return -ENOMEM;
		}
	}
	return 0;
}

int cpu_list_read(struct cpu_list *ret, int sys, int proc, unsigned count)
{
	int r = 0;

	*ret = (struct cpu_list){
		.cpus = calloc(count + 1, sizeof(*ret->cpus)),
		.list = calloc(count + 1, sizeof(*ret->list)),
	};
	if (!ret->cpus || !ret->list)
		return -ENOMEM;
	for (unsigned cpu = 0; r == 0 && cpu < count; cpu++) {
		Traced__Capture__Cpu *c = &ret->cpus[cpu];

		traced__capture__cpu__init(c);
		c->cpu = cpu;
		ret->list[ret->count++] = c;
		read_capacity(c, sys);
		r = read_frequencies(c, sys);
	}
	return r == 0 ? read_models(ret, proc) : r;
}

void cpu_list_deinit(struct cpu_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		if (*l->cpus[i].model)
			free(l->cpus[i].model);
		free(l->cpus[i].frequencies_khz);
	}
	free(l->cpus);
	free(l->list);
	*l = (struct cpu_list){ 0 };
}
