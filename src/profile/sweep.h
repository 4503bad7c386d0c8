/* sweep.h: models measured over settings: what `hwnas profile` and `hwnas compare` do before they
 * print. */
#ifndef HWNAS_PROFILE_SWEEP_H
#define HWNAS_PROFILE_SWEEP_H

#include <hwnas/profile.h>

#include "measure/measure.h"
#include "profile/mix_data.h"
#include "profile/profile.h"
#include "profile/shapes.h"

enum { HWNAS_SWEEP_MODELS = 64, HWNAS_SWEEP_LIST = 16 };

typedef struct hwnas_sweep {
    const char *models[HWNAS_SWEEP_MODELS], *code; /* see profile/model_load.h; borrowed, as all */
    int n_models;
    int n_devices, n_batches, n_threads, n_precisions, n_streams;
    const char *devices[HWNAS_SWEEP_LIST];
    int batches[HWNAS_SWEEP_LIST], threads[HWNAS_SWEEP_LIST];
    int streams[HWNAS_SWEEP_LIST]; /* 0: one copy, by the protocol for one; or HWNAS_STREAMS_FILL */
    hwnas_precision precisions[HWNAS_SWEEP_LIST];
    unsigned mixings; /* behind them, a set of 1 << hwnas_mixing (precision/mix.h), on the device
                         cpu */
    double max_error; /* of those, as hwnas_mix_options has it; below 0: the default */
    hwnas_mix_data data; /* of those */
    /* Nobody asked for these batches: of an ONNX file that fixes its own that one is taken, and
     * those behind the first are tried. */
    bool has_own_batches;
    size_t n_shapes; /* of ONNX files' inputs; 0: as the files have them */
    hwnas_shape_set shapes[HWNAS_SHAPE_VARIANTS];
    bool keeps_going; /* an ONNX file that cannot be read is a row, where another model can */
    bool with_layers; /* time the parts of each as well, in one copy, hot */
    bool verifies;    /* compare the result of each with a reference; in one copy */
    bool skips;       /* leave out what cannot be computed */
    /* (optional) Is told, before anything is measured, what is left out of a model: a line a node.
     */
    void (*on_skipped)(void *context, const char *model, const char *list);
    void *context;
    /* (optional) Is told what is measured next, in words. */
    void (*progress)(void *context, const char *words);
    void *progress_context;
    hwnas_measure_options options;
} hwnas_sweep;

/* The most that are asked for anywhere. */
int hwnas_sweep_threads(const hwnas_sweep *sweep);
/* Says that a row is measured next, the `number`th from 1. `of` 0: of as many as the sweep has at
 * most. */
void hwnas_sweep_tell(const hwnas_sweep *sweep, const hwnas_profile_row *row, size_t number,
                      size_t of);

/* Adds a row for each model under each setting. One that cannot be measured is a row with the
 * reason. A model that cannot be read ends it before anything is measured, or with `keeps_going`
 * where none can; an interruption ends it too, and the rows before stay. */
HWNAS_CHECKED hwnas_status hwnas_sweep_run(hwnas_profile *profile, const hwnas_sweep *sweep);

#endif
