/* wire.h: what the search and a runner say to each other: docs/runner-protocol.md.
 *
 * Frames of 16 bytes and a payload go both ways: magic "hwn1", type (32 bits), length (64 bits),
 * all little-endian, so that the two may be different machines. The search sends OPEN, then any
 * number of MEASURE, each followed by GRAPH; the runner answers each with any number of PHASE or
 * SAMPLES and one ANSWER. One of several copies answers first that it is ready, and measures at GO.
 * Payloads are JSON, but for GRAPH (ONNX) and PHASE (a few words). */
#ifndef HWNAS_MEASURE_WIRE_H
#define HWNAS_MEASURE_WIRE_H

#include <jansson.h>

#include "measure/measure.h"
#include "measure/window.h"

enum { HWNAS_FRAME_HEAD = 16, HWNAS_PROTOCOL = 1 };

typedef enum hwnas_frame_type {
    HWNAS_FRAME_OPEN = 1, /* {protocol, device, threads}; to our own child also {cores: [..],
                             allowed: [..]} */
    HWNAS_FRAME_MEASURE,  /* hwnas_measure_options and `steps`: whether to time them as well;
                             `is_copy`: one of several;
                             `race`: so many graphs follow, to be compared;
                             `verify`: the result is wanted, not a time,
                             and the loops may take so many seconds */
    HWNAS_FRAME_GRAPH,
    HWNAS_FRAME_PHASE,
    HWNAS_FRAME_ANSWER,  /* {status, message, hint} and info, window, race, verified or
                              measurement, with `steps` in it */
    HWNAS_FRAME_GO,      /* {lead, seconds} of the window that copies share */
    HWNAS_FRAME_SAMPLES, /* {seconds: [..]} of a runner that leaves the judging to the search */
    HWNAS_FRAME_STOP,    /* which has enough of them; no payload */
} hwnas_frame_type;

typedef struct hwnas_wire_frame {
    hwnas_frame_type type;
    uint64_t length;
} hwnas_wire_frame;

/* What not every runner can, a set of bits 1 << ability. */
typedef enum hwnas_ability {
    HWNAS_CAN_SEEDS,    /* draws weights from seeds (onnx.h), so that they need not travel */
    HWNAS_CAN_STEPS,    /* times the steps of a network */
    HWNAS_CAN_RACE,     /* lets networks take turns */
    HWNAS_CAN_COPIES,   /* runs one of several copies at the word GO */
    HWNAS_CAN_VERIFY,   /* compares outputs with the reference */
    HWNAS_CAN_AHEAD,    /* takes the next request while it serves one */
    HWNAS_CAN_TRAIN,    /* measures training steps */
    HWNAS_CAN_REALTIME, /* measures with real-time priority, which nobody disturbs */
    HWNAS_N_ABILITIES
} hwnas_ability;

/* What a runner says of itself when it is opened. */
typedef struct hwnas_hello {
    hwnas_device_info info;
    int protocol;
    int abilities;
    char machine[17]; /* tells machines apart; "": not said */
    char priority[16]; /* "realtime" or "normal", that it measures with; "": not said */
    int batch;         /* the largest that it takes; 0: any */
    char version[32]; /* of hwnas; "": another program */
} hwnas_hello;

void hwnas_frame_encode(unsigned char head[HWNAS_FRAME_HEAD], hwnas_wire_frame frame);
/* false: these bytes are no head of ours, or the payload is longer than its type may be. */
bool hwnas_frame_decode(hwnas_wire_frame *out, const unsigned char head[HWNAS_FRAME_HEAD]);

/* false: no integer, or one that an int cannot hold; `out` stays. */
bool hwnas_wire_read_int(int *out, const json_t *value);

/* Structs as JSON objects, one member for each field. NaN is null. */
json_t *hwnas_wire_options(const hwnas_measure_options *options);
json_t *hwnas_wire_measurement(const hwnas_measurement *measurement);
json_t *hwnas_wire_hello(const hwnas_hello *hello);
/* false: a member is of another type; those that are missing stay as they are by default. */
bool hwnas_wire_read_options(hwnas_measure_options *out, const json_t *object);
/* The same; but one without a name is none. */
bool hwnas_wire_read_hello(hwnas_hello *out, const json_t *object);
/* false: a member is missing or of another type. */
bool hwnas_wire_read_measurement(hwnas_measurement *out, const json_t *object);

/* {measurement, runs_per_second, samples} */
json_t *hwnas_wire_window(const hwnas_window *window);
/* `out` is to be freed with hwnas_window_done(). */
bool hwnas_wire_read_window(hwnas_window *out, const json_t *object);

/* Nodes travel by their names: they are those of `folded` on either side. */
json_t *hwnas_wire_steps(const hwnas_step_times *times, const hwnas_graph *folded);
/* false: something is missing or of another type, or `folded` has no such node. */
bool hwnas_wire_read_steps(hwnas_step_times *out, const json_t *object, const hwnas_graph *folded);

#endif
