/* onednn_steps.h: what a run of a graph on this device is made of.
 *
 * A step is a partition of oneDNN's, or one node that oneDNN's graphs have no operator for. Steps
 * come in kinds, each a table of functions. What a primitive or a reshape needs is taken when it is
 * compiled; in a run only oneDNN's partitions (scratch) and a few plain loops allocate. */
#ifndef HWNAS_DEVICE_ONEDNN_STEPS_H
#define HWNAS_DEVICE_ONEDNN_STEPS_H

#include "device/onednn/onednn.h"

typedef struct hwnas_onednn_kind hwnas_onednn_kind;

typedef struct hwnas_onednn_step {
    const hwnas_onednn_kind *kind; /* NULL: not compiled yet */
    const char *name;              /* of its first node, for messages */
    hwnas_exec_step about;         /* the nodes in it */
    const onednn_device *device;   /* the executable's with the threads of this step */
    void *state;                   /* the kind's */
    size_t bytes;                  /* that `state` holds in buffers */
    bool is_reference;             /* it is known to be oneDNN's reference code */
    size_t n_inputs, n_outputs;
    size_t output_bytes;                         /* of a step of one node */
    int *input_ids, *output_ids;                 /* tensors of the graph */
    const_dnnl_graph_tensor_t *inputs, *outputs; /* the same, bound to memory */
} hwnas_onednn_step;

struct hwnas_onednn_kind {
    const char *name; /* what computes it, in a word or two */
    /* A step of one node, whose tensors are plain. The step has the node's inputs and its output;
     * a kind that keeps weights in its state takes them off the end. NULL: a partition. On failure
     * what was made is in `state`. */
    hwnas_status (*compile)(hwnas_onednn_step *step, const onednn_device *device,
                            const hwnas_graph *graph, const hwnas_node *node);
    dnnl_status_t (*run)(const hwnas_onednn_step *step, const onednn_device *device);
    void (*free)(void *state);
    /* (optional) The inputs in whose place the tensor `output` may lie, one after the other from
     * `k` = 0 on; -1: no more. */
    int (*in_place)(const hwnas_onednn_step *step, int output, size_t k);
};

/* An `in_place`: where the first input is. */
int hwnas_onednn_over_first(const hwnas_onednn_step *step, int output, size_t k);

/* Where a bound tensor's values are. */
static inline void *hwnas_onednn_values(const_dnnl_graph_tensor_t tensor)
{
    void *values = NULL;
    dnnl_graph_tensor_get_data_handle(tensor, &values);
    return values;
}

/* One partition of oneDNN's; see partition.h. */
extern const hwnas_onednn_kind hwnas_onednn_partition;
/* The operator's own plain loops, one thread: for what only moves values, and for what is rare. */
extern const hwnas_onednn_kind hwnas_onednn_loops;
/* The same values in another shape: nothing at all, where the input's place can be taken over. */
extern const hwnas_onednn_kind hwnas_onednn_reshape;
/* One of oneDNN's primitives, which its graphs do not have: GELU by tanh, -x, |x|, roots, powers of
 * a constant exponent (eltwise), LayerNorm without scale or shift or over several dimensions, LSTM,
 * GRU. */
extern const hwnas_onednn_kind hwnas_onednn_eltwise;
extern const hwnas_onednn_kind hwnas_onednn_layer_norm;
extern const hwnas_onednn_kind hwnas_onednn_lstm;
extern const hwnas_onednn_kind hwnas_onednn_gru;
/* What oneDNN 3.7 lacks: rms_norm, with one scale for each value of a row or one for all. */
extern const hwnas_onednn_kind hwnas_onednn_rms_norm;
/* Values that a normalisation of the dimensions from `axis` on takes as one. */
int64_t hwnas_onednn_row_length(const hwnas_graph *graph, const hwnas_node *node);
/* Loops of ours where oneDNN is slow: an LSTM or GRU over few sequences whose length of state fits
 * our vectors. */
extern const hwnas_onednn_kind hwnas_onednn_short_recurrent;
bool hwnas_onednn_is_short_recurrent(const hwnas_graph *graph, const hwnas_node *node);

#endif
