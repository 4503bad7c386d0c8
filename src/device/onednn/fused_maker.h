/* fused_maker.h: what fused.c, fused_roots.c and fused_weights.c share while a group is compiled.
 */
#ifndef HWNAS_DEVICE_ONEDNN_FUSED_MAKER_H
#define HWNAS_DEVICE_ONEDNN_FUSED_MAKER_H

#include "device/onednn/fused.h"
#include "device/onednn/requantize.h"

/* From a signed byte to an unsigned one. */
enum { HWNAS_ONEDNN_SHIFT = 128 };

typedef struct hwnas_onednn_maker {
    hwnas_onednn_step *step;
    struct hwnas_onednn_made *made;
    const onednn_device *device;
    const hwnas_onednn_source *source;
    const hwnas_graph *graph; /* its */
    const hwnas_onednn_group *group;
    const hwnas_onednn_layout *layouts;
    const hwnas_node *root;
    hwnas_onednn_requantize bytes;
    bool is_by_conv; /* the root works on rows, which are pixels of an image one row high */
    bool is_shifted; /* its signed bytes are read as unsigned ones, more by HWNAS_ONEDNN_SHIFT */
    dnnl_data_type_t factors; /* of a product of floats: f32, or bf16 that it rounds them to */
    bool is_reorder; /* the root brings its input into the layout of the result by itself */
    int n_inputs;    /* that the root reads in each run */
    int args[2];
    dnnl_memory_desc_t in[2], weights, bias, out; /* weights: as the library likes */
    dnnl_memory_desc_t operands[HWNAS_ONEDNN_MAX_POSTS];
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t desc;
} hwnas_onednn_maker;

dnnl_status_t hwnas_onednn_describe(dnnl_memory_desc_t *out, dnnl_data_type_t type, int rank,
                                    const dnnl_dims_t dims, hwnas_onednn_layout layout);
/* The tensor with ones before its dimensions, up to `rank`, in the type that it is kept in. */
dnnl_status_t hwnas_onednn_describe_tensor(dnnl_memory_desc_t *out, const hwnas_onednn_maker *m,
                                           int tensor, int rank, hwnas_onednn_layout layout);
/* Rows of its last dimension; pixels where a product is by convolution. */
dnnl_status_t hwnas_onednn_describe_rows(dnnl_memory_desc_t *out, const hwnas_onednn_maker *m,
                                         int tensor, dnnl_data_type_t type);

/* Whether a tensor lies as an image or plain. */
hwnas_onednn_layout hwnas_onednn_lies(const hwnas_onednn_maker *m, int tensor);

/* Adds what is constant to the group's primitive, as arguments: kernel, bias, factors. */
HWNAS_CHECKED hwnas_status hwnas_onednn_add_constants(const hwnas_onednn_maker *m,
                                                      hwnas_onednn_primitive *p);

/* Describes the root: its inputs, weights, result, and the primitive. */
dnnl_status_t hwnas_onednn_make_root(hwnas_onednn_maker *m);

#endif
