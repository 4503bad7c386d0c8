/* optimize.h: a trained model, samples and a device in; a faster model with its weights out.
 * docs/optimize.md. */
#ifndef HWNAS_PUBLIC_OPTIMIZE_H
#define HWNAS_PUBLIC_OPTIMIZE_H

#include <hwnas/search.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hwnas_optimize_options {
    size_t size;
    /* "FILE#KEY=VALUE,...": labelled samples, as of `accuracy: samples:` (docs/predictors.md). */
    const char *samples;
    /* As of a job, docs/searching.md; a number with an x behind it is that many times what the
     * model has: "latency.p50 <= 0.5 x and params < 2 M". NULL: "latency.p50 <= 0.5 x". */
    const char *constraints;
    double max_loss;    /* accuracy that may be lost, in points; 0: any */
    double minutes;     /* of the search; 0: 10 */
    int64_t max_trials; /* 0: only time is limited */
    const char *device; /* NULL: "cpu" */
    int threads, batch; /* of the measured network; 0: 1; threads also HWNAS_THREADS_ALL (profile.h) */
    uint64_t seed;
    const char *out; /* what its files begin with; NULL: "NAME-opt" of NAME.onnx */
    bool resume;     /* go on with the study that is there */
    bool overwrite;  /* put new files in the place of those that are there */
    /* (optional) As of hwnas_search_options. */
    const volatile sig_atomic_t *cancel;
    void (*progress)(void *context, const hwnas_search_progress *progress);
    void *context;
    /* What networks may be computed in, parted by commas: "f32,s8". NULL: "f32", as the model, or
     * what the study that goes on has; others are HWNAS_E_USAGE then. */
    const char *precisions;
    bool with_resolution; /* images may be made smaller before the model sees them */
} hwnas_optimize_options;
#define HWNAS_OPTIMIZE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(hwnas_optimize_options), NULL, NULL, 0, 0, 0, NULL, 0, 0, 0, NULL, false, false,    \
            NULL, NULL, NULL, NULL, false                                                          \
    }

/* Derives a space of the model (OUT.yaml), searches it (OUT.db), and writes the winner: OUT.onnx,
 * and OUT.py with OUT.safetensors, each with its weights, and OUT-finetune.py, which trains it with
 * the model as its teacher (OUT-teacher.py, .safetensors). The report has the model and the winner
 * side by side: accuracy on samples that neither the search nor the weights have seen, latencies of
 * both, measured anew in turns, parameters, MACs. Text, JSON ("hwnas.optimized"). It concludes as
 * that of hwnas_search(); without a winner no network is written. Takes the minutes, and about one
 * more. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_optimize(hwnas_report **out, const char *model,
                                                    const hwnas_optimize_options *options);

#ifdef __cplusplus
}
#endif
#endif
