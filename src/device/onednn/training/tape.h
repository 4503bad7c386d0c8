/* tape.h: a training step as primitives and loops, in the order in which they run.
 *
 * Rules (gradients.h) write a tape: they add slots, which are arrays in one of oneDNN's layouts,
 * and steps that read and write them. How long a slot is needed follows from the steps, and so does
 * the memory of the whole, which is known before any of it is taken. A value that backward needs
 * again simply lives until then. */
#ifndef HWNAS_DEVICE_ONEDNN_TRAINING_TAPE_H
#define HWNAS_DEVICE_ONEDNN_TRAINING_TAPE_H

#include <oneapi/dnnl/dnnl.h>

#include "device/onednn/onednn.h"
#include "device/onednn/onednn_lower.h"
#include "graph/op.h"

enum { HWNAS_TAPE_ARGS = 20, HWNAS_TAPE_LOOP_ARGS = 8, HWNAS_NO_SLOT = -1 };

/* What a step is part of. */
typedef enum hwnas_tape_phase {
    HWNAS_TAPE_FORWARD,
    HWNAS_TAPE_LOSS,
    HWNAS_TAPE_BACKWARD,
    HWNAS_TAPE_UPDATE,
    HWNAS_TAPE_N_PHASES
} hwnas_tape_phase;

typedef struct hwnas_tape_slot {
    const_dnnl_memory_desc_t layout; /* the tape's */
    int base;                        /* the slot whose memory it is; itself, unless it is a view */
    int input;                       /* of the graph, whose values are the caller's; -1: none */
    bool is_kept;                    /* from step to step: weights, momentum, labels */
    int first, last;                 /* of a base: the steps that use it */
    size_t offset;                   /* of a base: in its block of memory */
    dnnl_memory_t memory;
} hwnas_tape_slot;

typedef struct hwnas_tape_arg {
    int arg; /* DNNL_ARG_SRC, ... */
    int slot;
} hwnas_tape_arg;

typedef struct hwnas_tape hwnas_tape;
/* A loop of ours: `values` are those of its slots. */
typedef void hwnas_tape_loop(const hwnas_tape *tape, const void *settings, void *const *values);

typedef struct hwnas_tape_step {
    int node; /* that it belongs to; -1: the loss */
    hwnas_tape_phase phase;
    dnnl_primitive_t primitive; /* or */
    hwnas_tape_loop *loop;
    const void *settings;
    int n;
    hwnas_tape_arg args[HWNAS_TAPE_ARGS];
    dnnl_exec_arg_t bound[HWNAS_TAPE_ARGS + 1]; /* and the scratchpad */
    void *values[HWNAS_TAPE_LOOP_ARGS];
    bool reads_inputs; /* `values` are to be found anew in each run */
} hwnas_tape_step;

/* What a rule keeps from forward for backward. */
typedef struct hwnas_tape_note {
    dnnl_primitive_desc_t hint; /* the tape's */
    int slots[8];
    int64_t number;
} hwnas_tape_note;

/* Values that a slot holds before the first step. */
typedef struct hwnas_tape_content {
    int slot;
    const_dnnl_memory_desc_t plain;
    float *values;              /* NULL: those of ... */
    const hwnas_tensor *weight; /* ... this one, made when they are needed; NULL: zeros */
    int64_t block; /* more than 0: groups of four blocks of so many values, the gates of an LSTM:
                      given in ONNX's order, input, output, forget, cell, kept in oneDNN's, input,
                      forget, cell, output */
} hwnas_tape_content;

struct hwnas_tape {
    onednn_device with;
    const onednn_device *device; /* `with` */
    hwnas_onednn_scratch scratch;
    dnnl_primitive_attr_t attr;
    hwnas_arena *arena;
    const hwnas_graph *graph;
    dnnl_data_type_t type; /* of activations */
    hwnas_optimizer optimizer;
    /* What is being written. */
    const char *name;
    int node;
    hwnas_tape_phase phase;
    /* By tensor: */
    int *value;      /* slot */
    int *gradient;   /* slot, summed up so far */
    int *master;     /* slot of the weight that the optimizer changes, as f32 */
    int *momentum;   /* slot of the first moment */
    bool *is_learnt; /* has a gradient: a parameter, or something follows from one */
    int *n_readers;  /* nodes; one more for an output */
    /* By node: */
    hwnas_tape_note *notes;
    bool *is_done; /* computed by the node before it */
    size_t n_slots, slot_room, n_steps, step_room, n_layouts, layout_room, n_hints, hint_room;
    size_t n_contents, content_room;
    hwnas_tape_slot *slots;
    hwnas_tape_step *steps;
    dnnl_memory_desc_t *layouts;
    dnnl_primitive_desc_t *hints;
    hwnas_tape_content *contents;
    size_t kept_bytes, passing_bytes;
    void *kept, *passing;
    int loss;        /* slot of the loss, one float */
    uint32_t n_runs; /* so far */
};

/* Empty, and `out` is to be freed in any case. */
HWNAS_CHECKED hwnas_status hwnas_tape_open(hwnas_tape *out, const onednn_device *device,
                                           const hwnas_graph *graph, dnnl_data_type_t type);
void hwnas_tape_done(hwnas_tape *tape);

/* A layout: row-major without `strides`. */
HWNAS_CHECKED hwnas_status hwnas_tape_layout(const_dnnl_memory_desc_t *out, hwnas_tape *tape,
                                             int rank, const int64_t *dims, const int64_t *strides,
                                             dnnl_data_type_t type);
/* The layout of a graph's tensor, row-major. */
HWNAS_CHECKED hwnas_status hwnas_tape_plain(const_dnnl_memory_desc_t *out, hwnas_tape *tape,
                                            int tensor, dnnl_data_type_t type);
/* The same with the channels last. */
HWNAS_CHECKED hwnas_status hwnas_tape_image(const_dnnl_memory_desc_t *out, hwnas_tape *tape,
                                            int tensor, dnnl_data_type_t type);
/* Whatever the primitive likes. */
HWNAS_CHECKED hwnas_status hwnas_tape_any(const_dnnl_memory_desc_t *out, hwnas_tape *tape, int rank,
                                          const int64_t *dims, dnnl_data_type_t type);
/* Whether its values lie without gaps, from the beginning of its memory on. */
bool hwnas_tape_is_dense(const_dnnl_memory_desc_t layout);
/* Takes one that is ours into the tape. */
const_dnnl_memory_desc_t hwnas_tape_own(hwnas_tape *tape, dnnl_memory_desc_t layout);
/* A copy of one that belongs to a primitive. */
HWNAS_CHECKED hwnas_status hwnas_tape_copy(const_dnnl_memory_desc_t *out, hwnas_tape *tape,
                                           const_dnnl_memory_desc_t layout);

int hwnas_tape_add_slot(hwnas_tape *tape, const_dnnl_memory_desc_t layout);
/* One that survives the step. `values`, the tape's to free, or NULL for zeros, are as `plain`. */
int hwnas_tape_add_kept(hwnas_tape *tape, const_dnnl_memory_desc_t layout,
                        const_dnnl_memory_desc_t plain, float *values);
/* Says that what was given for a kept slot are the gates of an LSTM, in blocks of so many values.
 */
void hwnas_tape_order_gates(hwnas_tape *tape, int slot, int64_t block);
/* The same memory in another layout. */
int hwnas_tape_add_view(hwnas_tape *tape, int slot, const_dnnl_memory_desc_t layout);

/* Adds a primitive; takes `desc`, which lives as long as the tape. `made` is how its description
 * ended. */
HWNAS_CHECKED hwnas_status hwnas_tape_add_primitive(hwnas_tape *tape, dnnl_status_t made,
                                                    dnnl_primitive_desc_t desc, int n,
                                                    const hwnas_tape_arg *args);
/* Adds a loop; `settings` are copied. */
void hwnas_tape_add_loop(hwnas_tape *tape, hwnas_tape_loop *loop, const void *settings, size_t size,
                         int n, const int *slots);
/* The same values in another layout or type: itself, what there is already, or a new step's. */
HWNAS_CHECKED hwnas_status hwnas_tape_convert(int *out, hwnas_tape *tape, int slot,
                                              const_dnnl_memory_desc_t layout);
/* Copies values into a slot, or a view, in its layout. */
HWNAS_CHECKED hwnas_status hwnas_tape_reorder(hwnas_tape *tape, int from, int to);
/* Adds to what the gradient of a tensor is so far. */
HWNAS_CHECKED hwnas_status hwnas_tape_add_gradient(hwnas_tape *tape, int tensor, int slot);

/* The layout that a primitive wants of an argument, as the tape's. */
HWNAS_CHECKED hwnas_status hwnas_tape_wanted(const_dnnl_memory_desc_t *out, hwnas_tape *tape,
                                             const_dnnl_primitive_desc_t desc, int arg);

/* After the last step: how much memory it all takes, then the memory itself. */
void hwnas_tape_measure(hwnas_tape *tape);
HWNAS_CHECKED hwnas_status hwnas_tape_bind(hwnas_tape *tape);
/* One training step; `seconds`, by step, or NULL. */
HWNAS_CHECKED hwnas_status hwnas_tape_run(hwnas_tape *tape, const float *const *inputs,
                                          double *seconds);
/* What was given for a kept slot; NULL: nothing. */
const hwnas_tape_content *hwnas_tape_find_content(const hwnas_tape *tape, int slot);
/* What a kept slot holds now, row-major; for those of `contents`. */
HWNAS_CHECKED hwnas_status hwnas_tape_read(float *out, const hwnas_tape *tape, int slot);

#endif
