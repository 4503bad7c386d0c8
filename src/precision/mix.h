/* mix.h: which layers of a network are computed in 8-bit integers, and which in bf16.
 *
 * A layer is a product with weights. What it gains is measured on the device, layer by layer; what
 * it costs is seen on samples, each layer by itself. Layers come in the order of error for each
 * second that they gain, as many as the limit on the error of all together allows: the greedy order
 * of the knapsack problem (Dantzig, "Discrete-Variable Extremum Problems", 1957). Errors of layers
 * add up nearly, not exactly, and a lone layer of bytes pays for its conversions, so every choice
 * is run on the samples as a whole (where they have labels its accuracy counts, too), and the ones
 * that remain are measured in turns. What is no such layer is in f32; the whole network in bf16 is
 * one of the ways. */
#ifndef HWNAS_PRECISION_MIX_H
#define HWNAS_PRECISION_MIX_H

#include "device/ranges.h"
#include "measure/measure.h"
#include "precision/mix_samples.h"
#include "precision/output_error.h"

typedef struct hwnas_mix_layer {
    int node;                       /* of the folded graph */
    double f32_seconds, bf16_seconds, s8_seconds; /* NaN: not told, or nobody asked for bf16 */
    hwnas_output_error alone, bf16_alone; /* in bytes, in bf16, all others in f32; 0: not asked */
    hwnas_precision kind;                 /* f32, bf16 or s8 in the network that was chosen */
} hwnas_mix_layer;

/* One way to compute the whole network. */
typedef struct hwnas_mix_way {
    const char *name;       /* static */
    hwnas_precision floats; /* of what is not in bytes: f32, or bf16 for all of it */
    int n_s8, n_bf16;       /* layers in bytes, in bf16 */
    hwnas_output_error error; /* from the outputs in fp32 */
    hwnas_estimate_95 accuracy; /* in percent, on the samples that choose; NaN: no labels; so ... */
    hwnas_estimate_95 held_out; /* ... on those that do not, of a way that was measured */
    hwnas_timing time; /* of all ways in turns; NaN: it was not measured */
    bool fits;         /* the limits on error and loss */
} hwnas_mix_way;

/* "f32", "bf16", "s8", "mixed", "mixed-bf16" */
enum {
    HWNAS_MIX_F32,
    HWNAS_MIX_BF16,
    HWNAS_MIX_S8,
    HWNAS_MIX_MIXED,
    HWNAS_MIX_MIXED_BF16,
    HWNAS_MIX_WAYS
};

typedef struct hwnas_mix {
    hwnas_graph *folded; /* what the layers are nodes of */
    hwnas_graph *graph;  /* the chosen network, to be computed in the floats of its way */
    size_t n_layers;
    hwnas_mix_layer *layers; /* in the order of the graph */
    hwnas_mix_way ways[HWNAS_MIX_WAYS];
    int chosen;       /* of these: the fastest that fits */
    bool is_unstable; /* the machine was disturbed while they were measured in turns */
    bool is_cut_short; /* something was not tried, as the time was over */
} hwnas_mix;

/* The limit on the error where nobody says one. */
#define HWNAS_MIX_MAX_ERROR 0.05
/* And on the accuracy that is lost, in points. */
#define HWNAS_MIX_MAX_LOSS 1

typedef struct hwnas_mix_options {
    double max_error; /* of outputs, as `largest` */
    double max_loss;  /* of accuracy, in points; where the samples have labels */
    bool takes_bf16;  /* layers, or all, may be in bf16, where the processor has it */
    int threads;
    double seconds;   /* that each way is measured for */
    /* A few layers are run alone, and what lies between them costs what they do by place; fewer
     * choices are tried, and held-out samples tell of f32 and what was chosen alone. Seconds for a
     * network, where a search has many; one without layers stays as it is. */
    bool is_quick;
    /* Where hwnas_now() is to be in the end; 0: whenever. Fewer choices are tried as it comes near,
     * down to none, in f32; what was begun is ended. */
    double deadline;
    const hwnas_measure_options *as; /* (optional) how to measure, but for `seconds` */
    const hwnas_mix_samples *samples;  /* (optional) else random ones */
    const volatile sig_atomic_t *stop; /* (optional) HWNAS_E_INTERRUPTED */
    void (*progress)(void *context, const char *phase, size_t done, size_t of); /* (optional) */
    void *context;
} hwnas_mix_options;

/* Chooses for a graph (not folded) on the device `cpu`, whose runner measures; outputs are computed
 * in this process. Minutes for a large network. A graph that has quantisations already, or nothing
 * to quantise, is HWNAS_E_INPUT. `out` is to be done with even after a failure. */
HWNAS_CHECKED hwnas_status hwnas_mix_choose(hwnas_mix *out, const hwnas_graph *graph,
                                            const hwnas_mix_options *options);
void hwnas_mix_done(hwnas_mix *mix);

/* A choice as a word: a letter for each layer, in the order of the graph: 's' in bytes, 'b' in
 * bf16, 'f' in the floats of the way. Yours to free(). */
char *hwnas_mix_word(const hwnas_mix *mix);
/* The network of such a word: of the options threads and samples count. HWNAS_E_INPUT where the
 * graph has another number of layers. */
HWNAS_CHECKED hwnas_status hwnas_mix_make(hwnas_graph **out, const hwnas_graph *graph,
                                          const char *word, const hwnas_mix_options *options);

#endif
