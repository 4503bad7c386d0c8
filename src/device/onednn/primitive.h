/* primitive.h: one of oneDNN's primitives with the memory that it needs. */
#ifndef HWNAS_DEVICE_ONEDNN_PRIMITIVE_H
#define HWNAS_DEVICE_ONEDNN_PRIMITIVE_H

#include <oneapi/dnnl/dnnl.h>

#include "device/onednn/onednn_lower.h"
#include "device/onednn/onednn_steps.h"

enum { HWNAS_ONEDNN_MAX_ARGS = 16 };

#define TRY_STATUS(call)                                                                           \
    do {                                                                                           \
        const dnnl_status_t status_ = (call);                                                      \
        if (status_ != dnnl_success)                                                               \
            return status_;                                                                        \
    } while (0)

typedef struct hwnas_onednn_primitive {
    const char *name; /* borrowed; for messages */
    const onednn_device *device;
    dnnl_primitive_t made;
    int n_args;
    dnnl_exec_arg_t args[HWNAS_ONEDNN_MAX_ARGS];
    void *buffers[HWNAS_ONEDNN_MAX_ARGS]; /* by argument; NULL: not ours */
    size_t bytes;                         /* of the buffers */
    size_t scratch_bytes;                 /* that it wants of the executable's scratch memory */
    bool is_reference;                    /* oneDNN has nothing faster than its reference code */
} hwnas_onednn_primitive;

/* Floats in one of oneDNN's formats. */
HWNAS_CHECKED hwnas_status hwnas_onednn_describe_floats(dnnl_memory_desc_t *out, const char *name,
                                                        int rank, const dnnl_dims_t dims,
                                                        dnnl_format_tag_t tag);

/* Attributes that every primitive here is described with: its scratchpad is ours. Yours to
 * destroy. */
HWNAS_CHECKED hwnas_status hwnas_onednn_attr(dnnl_primitive_attr_t *out, const char *name);

/* Whether this is oneDNN's reference code, all of it ("ref:any") or what lies below ("conv:any+ref");
 * false of a recurrent one, whose "ref" calls fast products. */
bool hwnas_onednn_is_reference(const_dnnl_primitive_desc_t desc);
/* Makes the primitive, and its scratchpad the first argument: the executable's, which
 * runs share. */
HWNAS_CHECKED hwnas_status hwnas_onednn_primitive_init(hwnas_onednn_primitive *p,
                                                       const_dnnl_primitive_desc_t desc);
/* Appends an argument (DNNL_ARG_SRC, ...), whose values each run gives. */
HWNAS_CHECKED hwnas_status hwnas_onednn_primitive_add(hwnas_onednn_primitive *p, int arg,
                                                      const_dnnl_memory_desc_t desc);
/* Appends one with a buffer of its own, which holds zeros. */
HWNAS_CHECKED hwnas_status hwnas_onednn_primitive_add_own(hwnas_onednn_primitive *p, int arg,
                                                          const_dnnl_memory_desc_t desc);
/* Appends one with a buffer of its own, which holds `values` that are laid out as `from`. */
HWNAS_CHECKED hwnas_status hwnas_onednn_primitive_add_weights(hwnas_onednn_primitive *p, int arg,
                                                              const_dnnl_memory_desc_t desc,
                                                              const void *values,
                                                              const_dnnl_memory_desc_t from);
void hwnas_onednn_primitive_done(hwnas_onednn_primitive *p);

/* Runs it; `values` are those of the `n` arguments behind the scratchpad. */
dnnl_status_t hwnas_onednn_primitive_run(const hwnas_onednn_primitive *p, size_t n,
                                         void *const *values);

#endif
