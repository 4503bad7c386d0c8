/* packed_panels.c: weights of few bits become floats where they are used. A panel of 64 results is
 * what oneDNN's kernel reads as it lies; larger ones took longer (docs/engine.md). */
#include "device/onednn/packed_panels.h"

#include <stdlib.h>

#include "device/onednn/primitive.h"

enum { WIDTHS = 2, ALIGN = 64 }; /* a whole panel, and the last one where that is smaller */
enum { IN, WEIGHTS, OUT, SCRATCH, N_ARGS };

typedef struct worker {
    dnnl_stream_t stream;
    dnnl_memory_t memory[WIDTHS][N_ARGS];
} worker;

struct hwnas_packed_panels {
    const onednn_device *device;
    int64_t n_out;
    dnnl_primitive_t made[WIDTHS]; /* NULL: no panel is so wide */
    size_t panel_bytes, bytes;     /* in the scratch memory: of a panel, of a thread */
    worker *workers;               /* by thread */
};

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static dnnl_status_t describe(dnnl_memory_desc_t *out, int64_t rows, int64_t columns, int64_t apart)
{
    const dnnl_dims_t dims = {rows, columns}, strides = {apart, 1};
    return dnnl_memory_desc_create_with_strides(out, 2, dims, dnnl_f32, strides);
}

/* The product with panels of `width` results: its primitive, and memory for each thread. */
static hwnas_status add_width(hwnas_packed_panels *p, int w, int64_t n_vectors, int64_t n_in,
                              int64_t width, const char *name)
{
    hwnas_status status = HWNAS_OK;
    const onednn_device *device = p->device;
    dnnl_memory_desc_t lies[3] = {NULL};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t desc = NULL;
    TRY_OUT(hwnas_onednn_attr(&attr, name));
    TRY_DNNL_OUT("describe", name, describe(&lies[IN], n_vectors, n_in, n_in));
    TRY_DNNL_OUT("describe", name, describe(&lies[WEIGHTS], n_in, width, HWNAS_PANEL));
    TRY_DNNL_OUT("describe", name, describe(&lies[OUT], n_vectors, width, p->n_out));
    TRY_DNNL_OUT("describe", name,
                 dnnl_matmul_primitive_desc_create(&desc, device->engine, lies[IN], lies[WEIGHTS],
                                                   NULL, lies[OUT], attr));
    if (hwnas_onednn_is_reference(desc)) {
        status = hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "'%s' has only reference code", name);
        goto out;
    }
    TRY_DNNL_OUT("compile", name, dnnl_primitive_create(&p->made[w], desc));
    const const_dnnl_memory_desc_t scratch =
        dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    const size_t bytes = p->panel_bytes + aligned(dnnl_memory_desc_get_size(scratch));
    p->bytes = bytes > p->bytes ? bytes : p->bytes;
    for (int t = 0; t < device->threads; t++)
        for (int i = 0; i < N_ARGS; i++)
            TRY_DNNL_OUT("bind", name,
                         dnnl_memory_create(&p->workers[t].memory[w][i],
                                            i == SCRATCH ? scratch : lies[i], device->engine,
                                            DNNL_MEMORY_NONE));
out:
    for (int i = 0; i < SCRATCH; i++)
        dnnl_memory_desc_destroy(lies[i]);
    dnnl_primitive_attr_destroy(attr);
    dnnl_primitive_desc_destroy(desc);
    return status;
}

hwnas_status hwnas_packed_panels_new(hwnas_packed_panels **out, const onednn_device *device,
                                     const hwnas_packed_rows *rows, int64_t n_vectors, int64_t n_in,
                                     int64_t n_out, const char *name)
{
    hwnas_status status = HWNAS_OK;
    hwnas_packed_panels *p = hwnas_alloc(sizeof *p);
    p->device = device;
    p->n_out = n_out;
    p->workers = hwnas_alloc((size_t)device->threads * sizeof *p->workers);
    p->panel_bytes = aligned((size_t)hwnas_packed_rows_inputs(rows) * HWNAS_PANEL * sizeof(float));
    for (int t = 0; t < device->threads; t++)
        TRY_DNNL_OUT(
            "compile", name,
            dnnl_stream_create(&p->workers[t].stream, device->engine, dnnl_stream_default_flags));
    hwnas_onednn_use_threads(1); /* each thread has a panel of its own */
    if (n_out >= HWNAS_PANEL)
        TRY_OUT(add_width(p, 0, n_vectors, n_in, HWNAS_PANEL, name));
    if (n_out % HWNAS_PANEL)
        TRY_OUT(add_width(p, 1, n_vectors, n_in, n_out % HWNAS_PANEL, name));
    if ((size_t)device->threads * p->bytes > device->scratch->bytes)
        device->scratch->bytes = (size_t)device->threads * p->bytes;
    *out = p;
    p = NULL;
out:
    hwnas_onednn_use_threads(device->threads);
    hwnas_packed_panels_free(p);
    return status;
}

void hwnas_packed_panels_free(hwnas_packed_panels *p)
{
    if (!p)
        return;
    for (int t = 0; t < p->device->threads; t++) {
        for (int i = 0; i < WIDTHS * N_ARGS; i++)
            dnnl_memory_destroy(p->workers[t].memory[i / N_ARGS][i % N_ARGS]);
        dnnl_stream_destroy(p->workers[t].stream);
    }
    for (int w = 0; w < WIDTHS; w++)
        dnnl_primitive_destroy(p->made[w]);
    free(p->workers);
    free(p);
}

dnnl_status_t hwnas_packed_panels_multiply(float *out, const hwnas_packed_panels *p,
                                           const hwnas_packed_rows *rows, const float *in,
                                           int64_t first, int thread)
{
    static const int names[N_ARGS] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST,
                                      DNNL_ARG_SCRATCHPAD};
    const int w = p->n_out - first < HWNAS_PANEL;
    char *const own = (char *)p->device->scratch->memory + (size_t)thread * p->bytes;
    void *const values[N_ARGS] = {(void *)in, own, out + first, own + p->panel_bytes};
    dnnl_exec_arg_t args[N_ARGS];
    hwnas_packed_rows_unpack((float *)own, rows, first, HWNAS_PANEL);
    for (int i = 0; i < N_ARGS; i++) {
        args[i] = (dnnl_exec_arg_t){names[i], p->workers[thread].memory[w][i]};
        TRY_STATUS(dnnl_memory_set_data_handle(args[i].memory, values[i]));
    }
    return dnnl_primitive_execute(p->made[w], p->workers[thread].stream, N_ARGS, args);
}
