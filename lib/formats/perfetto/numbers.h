/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Upstream's field numbers of messages that are written without protobuf-c. Numbers used by one
 * file only are in that file.
 */
#pragma once

/* FtraceEvent, without the events. */
enum { EVENT_TIMESTAMP = 1, EVENT_PID = 2, EVENT_COMMON_FLAGS = 5 };

/* TrackDescriptor and its submessages. */
enum {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	TRACK_CHILD_ORDERING = 11,
	TRACK_RANK = 12,
	TRACK_PROCESS_ORDERING = 19,
	TRACK_THREAD_ORDERING = 20,

	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	PROCESS_LABELS = 8,

	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5,

	COUNTER_TYPE = 1,
	COUNTER_UNIT = 3,
	COUNTER_UNIT_NAME = 6,
};
enum { UNIT_TIME_NS = 1, UNIT_COUNT = 2, UNIT_SIZE_BYTES = 3 }; /* CounterDescriptor.Unit */

/* TrackEvent.callstack, InlineCallstack.frames, Frame.function_name, Frame.source_file */
enum { CALLSTACK = 55, CALLSTACK_INLINE = 1, INLINE_FUNCTION = 1, INLINE_FILE = 2 };

/* DebugAnnotation */
enum {
	ANNOTATION_NAME_IID = 1,
	ANNOTATION_BOOL = 2,
	ANNOTATION_UINT = 3,
	ANNOTATION_INT = 4,
	ANNOTATION_DOUBLE = 5,
	ANNOTATION_STRING = 6,
	ANNOTATION_POINTER = 7,
	ANNOTATION_NAME = 10,
	ANNOTATION_DICT_ENTRIES = 11,
	ANNOTATION_ARRAY_VALUES = 12,
};

/* InternedData with its Frame, Mapping and Callstack. */
enum {
	INTERNED_CATEGORIES = 1,
	INTERNED_NAMES = 2,
	INTERNED_KEYS = 3,
	INTERNED_FUNCTION_NAMES = 5,
	INTERNED_FRAMES = 6,
	INTERNED_CALLSTACKS = 7,
	INTERNED_BUILD_IDS = 16,
	INTERNED_MAPPING_PATHS = 17,
	INTERNED_MAPPINGS = 19,

	FRAME_FUNCTION = 2,
	FRAME_MAPPING = 3,
	FRAME_REL_PC = 4,
	FRAME_KIND = 7,
	MAPPING_BUILD_ID = 2,
	MAPPING_PATH = 7,
	CALLSTACK_FRAMES = 2,
};

enum { FRAME_NATIVE = 1, FRAME_KERNEL = 2 }; /* Frame.Kind */

/* TracePacketDefaults.perf_sample_defaults, PerfSampleDefaults.timebase, Timebase */
enum { DEFAULTS_PERF = 12, PERF_TIMEBASE = 1, TIMEBASE_FREQUENCY = 2, TIMEBASE_NAME = 10 };

/* PerfSample; the last one is ours, and readers ignore it. */
enum {
	SAMPLE_CPU = 1,
	SAMPLE_PID = 2,
	SAMPLE_TID = 3,
	SAMPLE_CALLSTACK = 4,
	SAMPLE_CPU_MODE = 5,
	SAMPLE_WEIGHT = 74726,
};
