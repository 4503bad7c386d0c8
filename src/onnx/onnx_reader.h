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
/* The bytes of a constant that holds `count` values of `size` bytes. */
HWNAS_CHECKED hwnas_status hwnas_onnx_find_data(const void **out, const Onnx__TensorProto *from,
                                                int64_t count, const void *typed, size_t n_typed,
                                                size_t size);
bool hwnas_onnx_is_external(const Onnx__TensorProto *tensor);
/* NULL when there is none. */
const char *hwnas_onnx_find_entry(Onnx__StringStringEntryProto *const *entries, size_t n,
                                  const char *key);

/* Makes the output of a node that the tables cannot say; `out` stays as it is when they can. */
HWNAS_CHECKED hwnas_status hwnas_onnx_read_form(int *out, hwnas_onnx_reader *r,
                                                const Onnx__NodeProto *node, const char *name);

#endif
