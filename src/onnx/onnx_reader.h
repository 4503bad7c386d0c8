/* onnx_reader.h: what onnx_read.c lends to onnx_read_forms.c. */
#ifndef HWNAS_ONNX_ONNX_READER_H
#define HWNAS_ONNX_ONNX_READER_H

#include "onnx/onnx_priv.h"

enum { HWNAS_ONNX_NOT_MADE = -1 };

/* What a name stands for. */
typedef struct hwnas_onnx_named {
    const char *name;
    const Onnx__TensorProto *constant; /* an initialiser; else NULL */
    const Onnx__ValueInfoProto *input; /* an input of the graph; else NULL */
    bool is_extra;                     /* a second output of a node, such as Dropout's mask */
    struct hwnas_onnx_named *same_as;  /* what an Identity passed on; else NULL */
    int tensor;                        /* in the graph, once made */
} hwnas_onnx_named;

typedef struct hwnas_onnx_reader {
    const Onnx__GraphProto *from;
    hwnas_graph *graph;
    const char *folder; /* of the file; NULL: none */
    int64_t opset;
    size_t n_values;
    hwnas_onnx_named *values; /* sorted by name */
    size_t n_node_names;
    const char **node_names; /* sorted */
} hwnas_onnx_reader;

/* "node 'conv1' (Conv)", for messages. */
typedef struct hwnas_onnx_text {
    char s[160];
} hwnas_onnx_text;
hwnas_onnx_text hwnas_onnx_describe(const Onnx__NodeProto *node);
HWNAS_CHECKED hwnas_status hwnas_onnx_unsupported(const Onnx__NodeProto *node,
                                                  const char *attribute, const char *what);

static inline bool is_empty(const char *text)
{
    return !text || !*text;
}

/* NULL when nothing has the name. */
hwnas_onnx_named *hwnas_onnx_find_value(const hwnas_onnx_reader *r, const char *name);
/* What `who` reads under `name`: a constant, or a tensor that is made already. */
HWNAS_CHECKED hwnas_status hwnas_onnx_resolve(hwnas_onnx_named **out, const hwnas_onnx_reader *r,
                                              const char *name, const char *who);
/* Makes a constant a weight of the graph, if it is not yet one. */
HWNAS_CHECKED hwnas_status hwnas_onnx_make_weight(hwnas_onnx_reader *r, hwnas_onnx_named *value,
                                                  bool is_parameter);
/* Makes a tensor that is computed of nothing but known values a weight of known values; others stay. */
HWNAS_CHECKED hwnas_status hwnas_onnx_fold(hwnas_onnx_reader *r, int tensor);
/* The tensor `name` when its values are known, else NULL. */
HWNAS_CHECKED hwnas_status hwnas_onnx_constant(const hwnas_tensor **out, hwnas_onnx_reader *r,
                                               const char *name, const char *who);

/* ---- onnx_tensor.c ---- */

/* The type of `what` ("input", "constant") called `name`. */
HWNAS_CHECKED hwnas_status hwnas_onnx_dtype(hwnas_dtype *out, int32_t type, const char *what,
                                            const char *name);
size_t hwnas_onnx_size(hwnas_dtype dtype); /* bytes of one value in a file */
/* The `count` values of a tensor. `folder`: where a file beside the model lies; NULL: nowhere. */
HWNAS_CHECKED hwnas_status hwnas_onnx_values(float *out, const Onnx__TensorProto *from,
                                             int64_t count, const char *folder);
bool hwnas_onnx_is_external(const Onnx__TensorProto *tensor);
/* NULL when there is none. */
const char *hwnas_onnx_find_entry(Onnx__StringStringEntryProto *const *entries, size_t n,
                                  const char *key);

/* Makes the output of a node that the tables cannot say; `out` stays as it is when they can. */
HWNAS_CHECKED hwnas_status hwnas_onnx_read_form(int *out, hwnas_onnx_reader *r,
                                                const Onnx__NodeProto *node, const char *name);

#endif
