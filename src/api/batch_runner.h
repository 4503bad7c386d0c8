/* batch_runner.h: a network on any number of samples: in batches of its own, the last one filled
 * up.
 */
#ifndef HWNAS_API_BATCH_RUNNER_H
#define HWNAS_API_BATCH_RUNNER_H

#include "api/api.h"
#include "data/dataset.h"
#include "device/device.h"

typedef struct hwnas_batch_runner {
    const hwnas_network *network;
    int batch;
    hwnas_exec *exec;
    float **inputs, **outputs; /* of a batch that is not full */
    const float **from;        /* of one that is: where its samples begin */
    float **to;
} hwnas_batch_runner;

/* Compiles the network, which is borrowed. One whose inputs are not `data`'s, or whose inputs or
 * outputs do not begin with the batch: HWNAS_E_INPUT. S8: ranges come from `calibrate` samples of
 * `data`, which then is at its first sample again. */
HWNAS_CHECKED hwnas_status hwnas_batch_runner_open(hwnas_batch_runner *out,
                                                   const hwnas_network *network,
                                                   hwnas_device *device, hwnas_dataset *data,
                                                   hwnas_precision precision, int64_t calibrate);
void hwnas_batch_runner_close(hwnas_batch_runner *runner); /* accepts one that is all zero */

/* Samples as hwnas_exec_options has them: the inputs of a batch one after the other, `n_batches`
 * times, the last one filled up; of the first `calibrate` samples (0: 64). `data` then is at its
 * first sample again. `out` is yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_calibration_take(float **out, size_t *n_batches,
                                                  const hwnas_network *network, hwnas_dataset *data,
                                                  int64_t calibrate);

/* Elements of an array for one sample. */
int64_t hwnas_sample_count(const hwnas_array_info *array);
/* `n` samples: an array for each input and output, one sample behind the other. */
HWNAS_CHECKED hwnas_status hwnas_batch_runner_run(hwnas_batch_runner *runner,
                                                  const float *const *inputs, float *const *outputs,
                                                  int64_t n);

/* Arrays of `n` samples for each of the network's inputs, or outputs. What there is of them on
 * failure goes by hwnas_arrays_free() as well. */
HWNAS_CHECKED hwnas_status hwnas_arrays_alloc(float **out, size_t n_arrays,
                                              const hwnas_array_info *arrays, int64_t n,
                                              const char *what);
/* Frees the list, too. */
void hwnas_arrays_free(float **arrays, size_t n_arrays);

#endif
