/* network.h: spaces, which are families of networks; networks, and files of them. */
#ifndef HWNAS_PUBLIC_NETWORK_H
#define HWNAS_PUBLIC_NETWORK_H

#include <hwnas/common.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Spaces: families of networks ---- */

typedef struct hwnas_space hwnas_space;

/* Reads a space and checks it: its grammar, its rules, that some of its networks can be built.
 * Milliseconds; up to a second where it has rules that are hard to count. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_open(hwnas_space **out, const char *name);
/* After everything that was opened with it. */
HWNAS_API void hwnas_space_close(hwnas_space *space);

/* Writes a space to a YAML file, whole or not at all: its first network is `model`, an ONNX file
 * with its weights, and its choices are what can change in it. docs/optimize.md. Seconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_derive(const char *path, const char *model);

/* Writes a space to a PyTorch module, whole or not at all: all of its networks, as slices of one
 * set of weights. docs/training.md. HWNAS_E_UNSUPPORTED, with the line that is why: they cannot be
 * that. Up to seconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_write_supernet(const hwnas_space *space,
                                                                const char *path);

HWNAS_API const char *hwnas_space_name(const hwnas_space *space);
/* What the space says of itself; "": nothing. */
HWNAS_API const char *hwnas_space_about(const hwnas_space *space);

/* Number of encodings that count, in decimal, as it may have dozens of digits; yours. With
 * conditions and constraints it is exact unless too many different things follow from the first
 * genes for those behind, as when sums of large numbers meet; then it is an upper bound. `is_exact`
 * may be NULL. */
HWNAS_API char *hwnas_space_count(const hwnas_space *space, bool *is_exact);

/* The code of a random network that meets the constraints, uniform over the encodings; number
 * `index` of the stream that `seed` names. HWNAS_E_INPUT where none is found. Cheap. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_sample(char **out, const hwnas_space *space,
                                                        uint64_t seed, uint64_t index);
/* The network after `code` (NULL: the first) in an order that has each that counts once.
 * HWNAS_E_EXHAUSTED after the last; HWNAS_E_UNSUPPORTED where they cannot be counted. Cheap. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_next(char **out, const hwnas_space *space,
                                                      const char *code);
/* Another network near to `code`: each gene changes with probability `rate`, at least one does.
 * Seeded as hwnas_space_sample(). Cheap. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_mutate(char **out, const hwnas_space *space,
                                                        const char *code, double rate,
                                                        uint64_t seed, uint64_t index);
/* Whether a code is one of the space and meets its constraints; else HWNAS_E_INPUT says where it
 * does not. `out` is the code as the library spells it, without genes that do not count; may be
 * NULL. Cheap. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_check(char **out, const hwnas_space *space,
                                                       const char *code);

/* What a space lets choose: its choices and settings. Text, JSON ("hwnas.space"). Cheap. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_report(hwnas_report **out,
                                                        const hwnas_space *space);
/* Opens the space of that name, and with each value of each of its settings; says where one is
 * wrong. Text, JSON ("hwnas.check"). Takes hwnas_space_open() for each. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_validate(hwnas_report **out, const char *name);
/* The number of encodings, and of different networks: at most 200,000 encodings are built, up to a
 * minute, to compare their digests; of more the number of networks is left open. Text, JSON
 * ("hwnas.count"). */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_count_networks(hwnas_report **out,
                                                                const hwnas_space *space);
/* Random networks with their parameters and MACs, uniform over the encodings; repetitions are
 * possible. Other ones than hwnas_space_sample() draws of that seed. Text, JSON ("hwnas.sample").
 * About a millisecond for each. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_sample_networks(hwnas_report **out,
                                                                 const hwnas_space *space, size_t n,
                                                                 uint64_t seed);

/* ---- Networks ---- */

typedef struct hwnas_network hwnas_network;

typedef struct hwnas_network_options {
    size_t size;
    int batch; /* 0: 1, or a trial's own; an ONNX file whose batch is fixed to another one
                  is refused */
    bool takes_own_batch; /* instead, such a file has its own; hwnas_network_input() tells it */
    /* (optional) Shapes of an ONNX file's inputs, "ids=1x128,mask=1x128", or lengths of open
     * dimensions by their names, "sequence_length=128": open dimensions become these, wherever they
     * have the same name. A length of 0 is an input without values, which is none of the
     * network's. */
    const char *shape;
    /* (optional) Samples for its inputs, as for hwnas_dataset_open(): open dimensions that `shape`
     * does not say become those of the samples. What cannot be read says nothing here. */
    size_t n_files;
    const struct hwnas_data_file *files;
} hwnas_network_options;
#define HWNAS_NETWORK_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(hwnas_network_options), 0, false, NULL, 0, NULL                                     \
    }

/* Of all the batch. */
typedef struct hwnas_costs {
    int64_t params;           /* learned values, with BatchNorm's affine, without its statistics */
    int64_t macs;             /* multiply-accumulates of convolutions and matrix products, as the
                                 published tables count them */
    int64_t weight_bytes;     /* all weights as stored, fp32 */
    int64_t activation_bytes; /* peak of live activations over the order of the nodes */
    int64_t peak_bytes;       /* weights plus that peak */
    int64_t layers;           /* nodes with learned weights and MACs */
    int64_t cache_bytes;      /* keys and values that a decoder reads: inputs called past_*, fp32 */
} hwnas_costs;

/* An input or output. Arrays that are given and taken are float, whatever `type` says, in the order
 * of the dimensions, the last one fastest; the first one is the batch. */
typedef struct hwnas_array_info {
    const char *name;
    const char *type; /* "float32", "int64", ...: what the values mean, and what ONNX has */
    int rank;
    const int64_t *dims;
    int64_t count; /* of elements */
} hwnas_array_info;

/* Builds a network by its names, as a graph of untrained weights. Milliseconds; an ONNX file takes
 * its time to read, and keeps its weights. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_open(hwnas_network **out, const char *name,
                                                        const char *code,
                                                        const hwnas_network_options *options);
/* The same in an open space, which is borrowed. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_open_in(hwnas_network **out,
                                                           const hwnas_space *space,
                                                           const char *code,
                                                           const hwnas_network_options *options);
/* The network of a trial of a study, which may still run; `trial` -1: of the winner.
 * HWNAS_E_INFEASIBLE, HWNAS_E_DISTURBED: it has none; HWNAS_E_NOT_FOUND: no such trial. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_open_trial(hwnas_network **out,
                                                              const char *study, int64_t trial,
                                                              const hwnas_network_options *options);
HWNAS_API void hwnas_network_close(hwnas_network *network);

/* As hwnas_space_check() spells it; NULL: of an ONNX file. */
HWNAS_API const char *hwnas_network_code(const hwnas_network *network);
/* Hash of what it computes with unknown weights: 32 hex digits. Codes of one digest are one
 * network. */
HWNAS_API const char *hwnas_network_digest(const hwnas_network *network);
HWNAS_API const hwnas_costs *hwnas_network_costs(const hwnas_network *network);
/* Input and output number i, from 0; NULL: there is none. */
HWNAS_API const hwnas_array_info *hwnas_network_input(const hwnas_network *network, size_t i);
HWNAS_API const hwnas_array_info *hwnas_network_output(const hwnas_network *network, size_t i);
/* Layers, shapes, parameters, MACs and memory. Text, JSON ("hwnas.network"), DOT. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_report(hwnas_report **out,
                                                          const hwnas_network *network);

/* ---- Precisions ---- */

/* What a network is computed in. Inputs and outputs are fp32 in every one of them. */
typedef enum hwnas_precision {
    HWNAS_F32,
    HWNAS_TF32, /* products of fp32 values with 10 bits of mantissa, on NVIDIA's tensor cores */
    HWNAS_BF16,
    HWNAS_F16,
    HWNAS_S8, /* quantised: 8-bit integers, ranges from calibration */
    HWNAS_W8, /* fp32, with the weights of products as 8-bit integers, */
    HWNAS_W4, /* or 4-bit ones, 64 of which share a scale: for products with few vectors */
    HWNAS_N_PRECISIONS
} hwnas_precision;

/* "f32", "tf32", "bf16", "f16", "s8", "w8", "w4". Static. */
HWNAS_API const char *hwnas_precision_name(hwnas_precision precision);
/* HWNAS_E_INPUT with the known names for another one. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_precision_find(hwnas_precision *out, const char *name);

/* Those layers in 8-bit integers for which it pays, and the others in floats: in f32, or all of
 * them in f32 or bf16, whichever is faster (docs/precision.md). */
typedef enum hwnas_mixing {
    HWNAS_UNMIXED,
    HWNAS_MIXED,
    HWNAS_MIXED_BF16,
    HWNAS_N_MIXINGS
} hwnas_mixing;
/* "mixed"; "" of HWNAS_UNMIXED. Static. */
HWNAS_API const char *hwnas_mixing_name(hwnas_mixing mixing);
/* HWNAS_UNMIXED: it is none of these names. */
HWNAS_API hwnas_mixing hwnas_mixing_find(const char *name);

/* ---- Files of networks ---- */

typedef struct hwnas_export_options {
    size_t size;
    hwnas_precision precision; /* an ONNX file has HWNAS_S8 as QDQ nodes, HWNAS_W8 and HWNAS_W4 as
                                  MatMulNBits of ONNX Runtime; others are F32 */
    bool is_folded;            /* ONNX: without batch norms and dead branches */
    bool as_measured;          /* of a trial, in its precision where a file can have it */
    /* (optional) Gets what the user should know of the file, as a sentence; yours. NULL: nothing.
     */
    char **note;
} hwnas_export_options;
#define HWNAS_EXPORT_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(hwnas_export_options), HWNAS_F32, false, false, NULL                                \
    }

/* Writes a file, whole or not at all, and not over what the network was opened from. `format`:
 * "onnx", "pytorch", "yaml". A network of an ONNX file is written as "onnx" or "pytorch"; the
 * latter is NAME.py, with its weights beside it in NAME.safetensors. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_network_export(const hwnas_network *network,
                                                          const char *path, const char *format,
                                                          const hwnas_export_options *options);

#ifdef __cplusplus
}
#endif
#endif
