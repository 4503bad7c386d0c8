/* data.h: samples and labels in files, and what a network makes of them. */
#ifndef HWNAS_PUBLIC_DATA_H
#define HWNAS_PUBLIC_DATA_H

#include <hwnas/exec.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Samples for the inputs of a network, and perhaps a label for each: arrays in files of NumPy
 * (.npy, .npz) or MNIST (IDX), also behind gzip, whose first dimension counts the samples. They are
 * read as they are needed, and may be larger than memory. A sample is taken for an input when it
 * has the same dimensions, but for those of 1, or when one of both is all in a row. */
typedef struct hwnas_dataset hwnas_dataset;

typedef struct hwnas_data_file {
    const char *input; /* of the network; NULL: its one input, or all of them by name in a .npz */
    const char *path;
    const char *array; /* in a .npz; NULL: that of the input's name, else "x" */
} hwnas_data_file;

typedef struct hwnas_dataset_options {
    size_t size;
    const char *labels;      /* file; NULL: the .npz of the samples, if it has them */
    const char *label_array; /* in a .npz; NULL: "y" */
    bool ignores_labels;
    int64_t limit; /* samples, from the first; 0: all */
    /* Of a network with one input; a value x becomes (x * scale - mean) / std. One mean for all, or
     * one for each channel of the input; so std. Borrowed during the call. */
    double scale; /* 0: 1 */
    size_t n_mean, n_std;
    const double *mean, *std;
    const char *layout; /* "nchw" or "nhwc", of the data; NULL: as the network's */
    /* NaN and infinity are values of inputs of floats: what is missing, a mask. Else they are
     * refused as what a file should not have. */
    bool takes_non_finite;
} hwnas_dataset_options;
#define HWNAS_DATASET_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(hwnas_dataset_options), NULL, NULL, false, 0, 0, 0, 0, NULL, NULL, NULL, false      \
    }

/* Opens files and compares their shapes with the network's, which is borrowed. HWNAS_E_INPUT says
 * what does not fit, and what to try. Milliseconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_dataset_open(hwnas_dataset **out,
                                                        const hwnas_network *network,
                                                        size_t n_files,
                                                        const hwnas_data_file *files,
                                                        const hwnas_dataset_options *options);
HWNAS_API void hwnas_dataset_close(hwnas_dataset *data);
HWNAS_API int64_t hwnas_dataset_samples(const hwnas_dataset *data); /* at most `limit` */
HWNAS_API bool hwnas_dataset_has_labels(const hwnas_dataset *data);

/* Whether the first dimension of all inputs and outputs is the batch, so that it counts samples.
 * Any other network runs once, with inputs as a whole. */
HWNAS_API bool hwnas_network_takes_samples(const hwnas_network *network);
/* The network's inputs from arrays that have their shapes, for one hwnas_network_run(); each is
 * freed by hwnas_free(). Floats may be NaN or infinite. HWNAS_E_INPUT says what does not fit. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_read_inputs(float **out,
                                                               const hwnas_network *network,
                                                               size_t n_files,
                                                               const hwnas_data_file *files);

typedef struct hwnas_evaluation_options {
    size_t size;
    hwnas_precision precision;
    int64_t calibrate; /* HWNAS_S8: ranges are found with so many of the first samples; 0: 64 */
    const char *task;  /* "classify", "tokens", "regress"; NULL: as the shapes of labels and
                          outputs say */
    const hwnas_network *against; /* compared with, in fp32; takes the same inputs; NULL: none */
    /* (optional) Becomes nonzero, in a signal handler or another thread: the evaluation ends soon,
     * with what it has. */
    const volatile sig_atomic_t *cancel;
    /* (optional) Is told after each batch, in the calling thread. */
    void (*progress)(void *context, int64_t n_done, int64_t n_samples);
    void *context;
} hwnas_evaluation_options;
#define HWNAS_EVALUATION_OPTIONS_INIT                                                              \
    {                                                                                              \
        sizeof(hwnas_evaluation_options), HWNAS_F32, 0, NULL, NULL, NULL, NULL, NULL               \
    }

/* Computes the outputs of all samples, in batches of the network's, in this process. out[i] is of
 * output i, the samples one behind the other, `n` of them; each is freed by hwnas_free(). The whole
 * of it is in memory. Of the options, `task` and `against` have no meaning. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_dataset_run(float **out, hwnas_dataset *data,
                                                       const hwnas_network *network,
                                                       hwnas_device *device,
                                                       const hwnas_evaluation_options *options);

/* Writes an ONNX file of 8-bit integers (QDQ) for other runtimes, batch norms folded, whole or not
 * at all. Ranges of activations come from the first `calibrate` samples (0: 64), run on the CPU. Of
 * a network whose batch is open the file has the batch that it was opened with. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_dataset_quantize(hwnas_dataset *data,
                                                            const hwnas_network *network,
                                                            const char *path, int64_t calibrate);

typedef struct hwnas_network_mix_options {
    size_t size;
    double max_error;  /* limit on the largest difference from fp32, relative to the largest output;
                          below 0: 0.05, or none where the data has labels */
    int64_t calibrate; /* ranges, and without labels errors, are of so many of the first samples; 0:
                          64 */
    int threads;       /* 0: all cores that this process may use */
    double seconds;    /* that each way is measured for; 0: 1 */
    /* (optional) Becomes nonzero, in a signal handler or another thread: it ends soon with
     * HWNAS_E_INTERRUPTED, and nothing is written. */
    const volatile sig_atomic_t *cancel;
    /* (optional) Is told what is done, `of` 0: not how much of it there is; in the calling thread.
     */
    void (*progress)(void *context, const char *phase, size_t done, size_t of);
    void *context;
    hwnas_mixing mixing; /* 0: HWNAS_MIXED. A file cannot say bf16: HWNAS_MIXED_BF16 chooses for
                            who computes its floats in bf16, which the report says. */
    double max_loss; /* accuracy that may be lost, in points (of numbers of 100 r2), by the data's
                        labels: without them HWNAS_E_USAGE; below 0: 1, or none without labels */
} hwnas_network_mix_options;
#define HWNAS_NETWORK_MIX_OPTIONS_INIT                                                             \
    {                                                                                              \
        sizeof(hwnas_network_mix_options), -1, 0, 0, 0, NULL, NULL, NULL, 0, -1                    \
    }

/* Chooses for each layer whether it is computed in 8-bit integers, by what it gains on the device
 * `cpu` and what it costs in accuracy (docs/precision.md), and writes the fastest network within
 * the limit as an ONNX file, batch norms folded, whole or not at all. `data` NULL: random inputs.
 * Data with labels judges by accuracy: a half of it, of at most 1000 samples, chooses, the other is
 * held out and tells what was lost.
 * Text and JSON ("hwnas.mix"). Minutes for a large network. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_mix(hwnas_report **out,
                                                       const hwnas_network *network,
                                                       hwnas_dataset *data, const char *path,
                                                       const hwnas_network_mix_options *options);

typedef struct hwnas_outputs_options {
    size_t size;
    /* Of the first and the second network; NULL: "cpu", of the first "ref" where it is compared
     * with itself. */
    const char *devices[2];
    hwnas_precision precisions[2];
    int threads;       /* 0: all cores that this process may use */
    double tolerance;  /* of the largest difference in an output, relative to its largest value;
                          0: what rounding explains, 1e-4 in fp32 (docs/correctness.md) */
    int64_t n_samples; /* of the data; 0: one batch */
    /* (optional) Becomes nonzero, in a signal handler or another thread: HWNAS_E_INTERRUPTED. */
    const volatile sig_atomic_t *cancel;
} hwnas_outputs_options;
#define HWNAS_OUTPUTS_OPTIONS_INIT                                                                 \
    {                                                                                              \
        .size = sizeof(hwnas_outputs_options)                                                      \
    }

/* What two networks that should compute the same give for the same inputs, output by output and
 * node by node, in this process; `second` NULL: the first network once more, by another device or
 * in another precision. Nodes are those that have one name in both. `data` NULL: random inputs,
 * else samples of the first network. HWNAS_E_INPUT: inputs or outputs differ in number or shape.
 * Concludes with HWNAS_E_WRONG_RESULT where an output differs by more than the tolerance. Text,
 * CSV, JSON ("hwnas.differences"). */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_compare_outputs(hwnas_report **out,
                                                           const hwnas_network *first,
                                                           const hwnas_network *second,
                                                           hwnas_dataset *data,
                                                           const hwnas_outputs_options *options);

typedef struct hwnas_evaluation hwnas_evaluation;

/* The same, and compares the first output with the labels, or the original's, or both.
 * HWNAS_E_USAGE: there is nothing to compare with. */
HWNAS_API HWNAS_CHECKED hwnas_status
hwnas_dataset_evaluate(hwnas_evaluation **out, hwnas_dataset *data, const hwnas_network *network,
                       hwnas_device *device, const hwnas_evaluation_options *options);
HWNAS_API void hwnas_evaluation_free(hwnas_evaluation *evaluation);
/* Value number i, from 0; NULL behind the last. docs/evaluate.md lists them. */
HWNAS_API const hwnas_metric_value *hwnas_evaluation_value(const hwnas_evaluation *evaluation,
                                                           size_t i);
/* NULL: it was not computed. */
HWNAS_API const hwnas_metric_value *hwnas_evaluation_find(const hwnas_evaluation *evaluation,
                                                          const char *metric);
/* Samples that were evaluated: fewer than there are after `cancel`. */
HWNAS_API int64_t hwnas_evaluation_samples(const hwnas_evaluation *evaluation);
/* "classify", "tokens", "regress", "none". Static. */
HWNAS_API const char *hwnas_evaluation_task(const hwnas_evaluation *evaluation);
/* Text, JSON ("hwnas.evaluation"). Concludes with HWNAS_E_INTERRUPTED where samples are missing. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_evaluation_report(hwnas_report **out,
                                                             const hwnas_evaluation *evaluation);

/* Writes arrays to a file, whole or not at all: .npz by their names, .npy one of them; another
 * name: their values alone, in fp32, one array behind the other. Whole numbers are written as
 * int64. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_arrays_write(const char *path, size_t n,
                                                        const hwnas_array_info *arrays,
                                                        const float *const *values);
/* Reads a file of values alone, in fp32, one array behind the other, which has exactly as many as
 * the arrays: the inputs of one inference, say. out[i] is of arrays[i], and is freed by
 * hwnas_free(). */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_arrays_read(float **out, const char *path, size_t n,
                                                       const hwnas_array_info *arrays);

#ifdef __cplusplus
}
#endif
#endif
