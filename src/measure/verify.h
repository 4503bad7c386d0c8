/* verify.h: does a device compute a network right?
 *
 * The network is run once on its seeded input as it is measured, compiled as a whole, and once by a
 * reference: the plain loops of `ref`, or, where those would take too long, the same device with
 * each layer by itself in fp32. A time is worth nothing where the two differ by more than rounding
 * explains. docs/correctness.md has the tolerances and what they stand on. */
#ifndef HWNAS_MEASURE_VERIFY_H
#define HWNAS_MEASURE_VERIFY_H

#include <jansson.h>

#include "measure/reference.h"

/* Of `ref` for one network; beyond, by an estimate or by the clock, it is not the reference. */
#define HWNAS_VERIFY_REF_SECONDS 10.0

/* Largest difference of a value that rounding explains, relative to the largest value of its
 * output. */
double hwnas_verify_tolerance(hwnas_precision precision);

typedef struct hwnas_verified {
    char against[64]; /* "ref", or "cpu, each layer by itself" */
    /* The largest difference of a value, relative to the largest value of its output; of whole
     * numbers the share that differs. Infinite: a value is not finite where the reference's is. */
    double error, tolerance;
    /* The first value beyond the tolerance, or with the error. */
    char output[64];
    int64_t at;
    double got, wanted;
    /* The network came with weights of more bits than this device's products of bytes are right
     * with (hwnas_device_weight_bits()): what is wrong may be theirs. */
    bool may_overflow;
} hwnas_verified;

/* What a graph (not folded) should give on its seeded input. */
typedef struct hwnas_expected {
    hwnas_buffers buffers;  /* inputs, and the reference's outputs */
    hwnas_reference how;    /* with a device where the loops would take, or took, too long */
    hwnas_graph *quantized; /* what is computed in the place of the graph; NULL: the graph itself */
} hwnas_expected;

/* In s8 the graph is quantised as the device does it, and that is what the reference computes: what
 * the bytes cost in accuracy is not a fault of the device. The loops may take `ref_seconds`. `out` is
 * to be done with even after a failure. */
HWNAS_CHECKED hwnas_status hwnas_expected_open(hwnas_expected *out, hwnas_device *device,
                                               const hwnas_graph *graph, double ref_seconds,
                                               const hwnas_measure_options *options);
void hwnas_expected_done(hwnas_expected *expected);

/* Compares outputs that the device gave for these inputs in the precision of `options`. */
HWNAS_CHECKED hwnas_status hwnas_expected_compare(hwnas_verified *out,
                                                  const hwnas_expected *expected, float *const *got,
                                                  const hwnas_graph *graph,
                                                  const hwnas_measure_options *options);

/* Runs a graph once on the device, and compares. */
HWNAS_CHECKED hwnas_status hwnas_verify(hwnas_verified *out, hwnas_device *device,
                                        const hwnas_graph *graph, double ref_seconds,
                                        const hwnas_measure_options *options);

/* The same in a runner, whose limit of memory does not count here. */
HWNAS_CHECKED hwnas_status hwnas_runner_verify(hwnas_verified *out, hwnas_runner *runner,
                                               const hwnas_graph *graph, double ref_seconds,
                                               const hwnas_measure_options *options);

/* HWNAS_E_WRONG_RESULT with what differs, when the error is beyond the tolerance. */
HWNAS_CHECKED hwnas_status hwnas_verified_judge(const hwnas_verified *verified, const char *device,
                                                hwnas_precision precision);

/* {against, error, tolerance, output, at, got, wanted, may_overflow}; what is not finite is null.
 */
json_t *hwnas_wire_verified(const hwnas_verified *verified);
/* false: a member is missing or of another type. */
bool hwnas_wire_read_verified(hwnas_verified *out, const json_t *object);

#endif
