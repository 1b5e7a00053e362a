/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Samples within a recording: when its sampler begins, is read, and ends. */
#include "capture/metadata.h"
#include "capture/recording.h"

int capture_sampling_open(struct capture *c, const struct capture_request *request,
			  struct error *err)
{
	const struct ring *ring = &c->rings[BUFFER_MAIN];
	int r;

	if (!request->sampling.hz)
		return 0;
	r = sampler_open(&c->sampler, &request->sampling, request->clock ?: DEFAULT_CLOCK,
			 ring->cpu_count, c->cpus.bits ? &c->cpus : NULL, err);
	if (r < 0)
		return r;
	r = sampler_watch(&c->sampler, c->epfd, CAPTURE_SAMPLER_TAG);
	return r < 0 ? error_errno(err, r, "cannot watch the rings of samples") : 0;
}

int capture_sampling_start(struct capture *c)
{
	int r;

	if (!c->sampler.hz)
		return 0;
	/* First the records of new mappings, then procfs: none is missed. */
	r = sampler_start(&c->sampler, &c->writer);
	if (r < 0)
		return r;
	if (mapping_scan_start(&c->mappings, c->env.proc) < 0)
		capture_warn(c,
			     "%s cannot be read: samples of programs that ran already have no "
			     "functions",
			     c->env.proc);
	return 0;
}

int capture_sampling_stop(struct capture *c)
{
	return c->sampler.hz ? sampler_stop(&c->sampler, &c->writer) : 0;
}
