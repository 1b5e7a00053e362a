/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Samples within a recording: starts, reads and ends its sampler. */
#include "daemon/capture/names/metadata.h"
#include "daemon/capture/recording.h"

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

void capture_scan_mappings(struct capture *c)
{
	if (mapping_scan_start(&c->mappings, c->env.proc, c->wants_mappings) < 0)
		capture_warn(c, "%s cannot be read: programs' code has no names", c->env.proc);
}

int capture_sampling_start(struct capture *c)
{
	/* Start recording new mappings before reading procfs, so that none is missed. */
	int r = c->sampler.hz ? sampler_start(&c->sampler, &c->writer) : 0;

	if (r == 0 && (c->sampler.hz || (c->wants_mappings && !c->ring_mode)))
		capture_scan_mappings(c);
	return r;
}

int capture_sampling_stop(struct capture *c)
{
	return c->sampler.hz ? sampler_stop(&c->sampler, &c->writer) : 0;
}
