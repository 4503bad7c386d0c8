/* wire.h: what parent and runner say to each other.
 *
 * Frames of 16 bytes and a payload go both ways: magic "hwn1", type (32 bits), length (64 bits),
 * all little-endian, so that the two may be different machines. The parent sends OPEN, then any
 * number of MEASURE, each followed by GRAPH; the runner answers each with any number of PHASE and
 * one ANSWER. One of several copies answers first that it is ready, and measures at GO. Payloads
 * are JSON, but for GRAPH (ONNX) and PHASE (a few words). */
#ifndef HWNAS_MEASURE_WIRE_H
#define HWNAS_MEASURE_WIRE_H

#include <jansson.h>

#include "measure/measure.h"
#include "measure/window.h"

enum { HWNAS_FRAME_HEAD = 16 };

typedef enum hwnas_frame_type {
    HWNAS_FRAME_OPEN = 1, /* {device, threads, cores: [..], allowed: [..]} */
    HWNAS_FRAME_MEASURE,  /* hwnas_measure_options and `steps`: whether to time them as well;
                             `is_copy`: one of several;
                             `race`: so many graphs follow, to be compared;
                             `verify`: the result is wanted, not a time,
                             and the loops may take so many seconds */
    HWNAS_FRAME_GRAPH,
    HWNAS_FRAME_PHASE,
    HWNAS_FRAME_ANSWER, /* {status, message, hint} and info, window, race, verified or
                             measurement, with `steps` in it */
    HWNAS_FRAME_GO,     /* {lead, seconds} of the window that copies share */
} hwnas_frame_type;

typedef struct hwnas_wire_frame {
    hwnas_frame_type type;
    uint64_t length;
} hwnas_wire_frame;

void hwnas_frame_encode(unsigned char head[HWNAS_FRAME_HEAD], hwnas_wire_frame frame);
/* false: these bytes are no head of ours, or the payload is longer than its type may be. */
bool hwnas_frame_decode(hwnas_wire_frame *out, const unsigned char head[HWNAS_FRAME_HEAD]);

/* false: no integer, or one that an int cannot hold; `out` stays. */
bool hwnas_wire_read_int(int *out, const json_t *value);

/* Structs as JSON objects, one member for each field. NaN is null. */
json_t *hwnas_wire_options(const hwnas_measure_options *options);
json_t *hwnas_wire_measurement(const hwnas_measurement *measurement);
json_t *hwnas_wire_info(const hwnas_device_info *info);
/* false: a member is missing or of another type. */
bool hwnas_wire_read_options(hwnas_measure_options *out, const json_t *object);
bool hwnas_wire_read_measurement(hwnas_measurement *out, const json_t *object);
bool hwnas_wire_read_info(hwnas_device_info *out, const json_t *object);

/* {measurement, runs_per_second, samples} */
json_t *hwnas_wire_window(const hwnas_window *window);
/* `out` is to be freed with hwnas_window_done(). */
bool hwnas_wire_read_window(hwnas_window *out, const json_t *object);

/* Nodes travel by their names: they are those of `folded` on either side. */
json_t *hwnas_wire_steps(const hwnas_step_times *times, const hwnas_graph *folded);
/* false: something is missing or of another type, or `folded` has no such node. */
bool hwnas_wire_read_steps(hwnas_step_times *out, const json_t *object, const hwnas_graph *folded);

#endif
