/* device.h: what can run a graph; <hwnas/device.h> says what a device is.
 *
 * `cpu` runs graphs through oneDNN, `ref` is the truth in plain C, `null` does nothing and measures
 * the harness, `replay` remembers published measurements and runs nothing, `ssh` and `runner` are
 * run by other processes (measure/runner_link.h), `external` by others. */
#ifndef HWNAS_DEVICE_DEVICE_H
#define HWNAS_DEVICE_DEVICE_H

#include <hwnas/device.h>

#include "graph/graph.h"

/* What a step's `how` says where it is code that a fast runtime would not have: the operator's own
 * loops, which one thread runs, and the reference code of a library. */
#define HWNAS_HOW_PLAIN "plain loops"
#define HWNAS_HOW_REFERENCE "reference code"

/* How many bits the weights of products have where all else stays floats; 0: another precision. */
int hwnas_precision_weight_bits(hwnas_precision precision);
/* Whether it computes another graph than that of floats: one of bytes, or with packed weights. */
bool hwnas_precision_has_form(hwnas_precision precision);
/* "f32, bf16" of a set of bits; yours to free(). */
char *hwnas_precision_names(unsigned set);

/* Built in and registered, NULL-terminated. */
extern const hwnas_device_ops *hwnas_devices[];

/* The row of a device's spelling and what stands behind the colon (""); opens nothing. */
HWNAS_CHECKED hwnas_status hwnas_device_find(const hwnas_device_ops **out, const char **argument,
                                             const char *spelling);
/* The spelling without the device's word for being quick; NULL: it has none, or is spelled without.
 * Yours to free(). */
char *hwnas_device_thorough(const char *spelling);
bool hwnas_device_is_quick(const char *spelling); /* it is spelled with that word */
/* Nobody here runs it: its values are told. A wrong name is no such device, and no failure. */
bool hwnas_device_is_told(const char *spelling);
/* Another process runs it, which is reached by measure/runner_link.h. A wrong name is no such
 * device. */
bool hwnas_device_is_elsewhere(const char *spelling);
/* Compiles for the device. One that runs nothing, or not in this precision: HWNAS_E_UNSUPPORTED.
 * `options` NULL: fp32. */
HWNAS_CHECKED hwnas_status hwnas_device_compile(hwnas_exec **out, hwnas_device *device,
                                                const hwnas_graph *graph,
                                                const hwnas_exec_options *options);
/* Has the device do ahead what compiling will want, as its `prepare` says; what it would not
 * compile is left. */
void hwnas_device_prepare(hwnas_device *device, const hwnas_graph *graph,
                          const hwnas_exec_options *options, bool (*goes_on)(void *context),
                          void *context);
/* The graph as it is compiled with these options: folded, as it is deployed, or as it is trained. */
HWNAS_CHECKED hwnas_status hwnas_exec_form(hwnas_graph **out, const hwnas_graph *graph,
                                           const hwnas_exec_options *options);
/* f32 is exact on this device, and so leaves the units for products alone that tf32 uses. */
bool hwnas_device_exact_is_slow(const hwnas_device_info *info);
#define HWNAS_EXACT_IS_SLOW "f32 multiplies without tensor cores; %s tf32 uses them"
/* Bits of a weight that the device's products of bytes are right with: 8, and 7 on processors of
 * x86 without instructions for them, which add two products of bytes in 16 bits, at most 32,767:
 * 2 x 255 x 127 does not fit, 2 x 255 x 64 does. Files of bytes may come with more. */
int hwnas_device_weight_bits(const hwnas_device *device);
/* Tells whoever listens when the network comes with weights of bytes that the device's sums of 16
 * bits may cut off. */
void hwnas_device_note_overflow(const hwnas_device_info *info, const hwnas_graph *graph,
                                const char *name);
/* Whether this processor has instructions for products of bytes, or adds them in 32 bits without.
 */
bool hwnas_device_cpu_has_s8(void);
/* Cores that this process may run on. */
int hwnas_device_cores(void);

#endif
