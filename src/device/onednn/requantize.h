/* requantize.h: what a primitive that reads or writes bytes multiplies by.
 *
 * Products of bytes are whole numbers. They are multiplied by their scale as soon as they are
 * summed up; where nothing behind them minds (sums, ReLU, limits), the scale of the bytes that they
 * become is in that factor already, and all is said in units of it. */
#ifndef HWNAS_DEVICE_ONEDNN_REQUANTIZE_H
#define HWNAS_DEVICE_ONEDNN_REQUANTIZE_H

#include "device/onednn/onednn_int8.h"
#include "device/onednn/primitive.h"

typedef struct hwnas_onednn_requantize {
    const hwnas_onednn_source *source;
    const hwnas_onednn_group *group;
    const hwnas_node *root;
    float unit;                    /* what a result of 1 means to the operations behind the root */
    float *scales;                 /* of products, in units; NULL: the root makes none */
    int64_t n_scales;              /* 1 or one for each output */
    hwnas_onednn_scale in[2], out; /* of floats 1 and 0 */
    float excess; /* of a sum of bytes, which such primitives do not take off; what begins does */
    int n_posts;  /* of the group that do anything */
} hwnas_onednn_requantize;

void hwnas_onednn_requantize_init(hwnas_onednn_requantize *out, const hwnas_onednn_source *source,
                                  const hwnas_onednn_group *group);
void hwnas_onednn_requantize_done(hwnas_onednn_requantize *q);

/* Says in `attr` which factors and zero points there will be. */
dnnl_status_t hwnas_onednn_requantize_attr(const hwnas_onednn_requantize *q,
                                           dnnl_primitive_attr_t attr);
/* Appends what begins the group's operations, if there is an excess; one of them; or what ends
 * them: what makes bytes of sums of bytes. */
dnnl_status_t hwnas_onednn_requantize_begin(const hwnas_onednn_requantize *q,
                                            dnnl_post_ops_t posts);
dnnl_status_t hwnas_onednn_requantize_post(const hwnas_onednn_requantize *q,
                                           const hwnas_onednn_post *p, dnnl_post_ops_t posts);
dnnl_status_t hwnas_onednn_requantize_end(const hwnas_onednn_requantize *q, dnnl_post_ops_t posts);
/* Appends the factors and zero points as arguments. */
HWNAS_CHECKED hwnas_status hwnas_onednn_requantize_add(const hwnas_onednn_requantize *q,
                                                       hwnas_onednn_primitive *p);

#endif
