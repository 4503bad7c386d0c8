#include "graph/ops/pool.h"

#include "graph/ops/elementwise.h"

const hwnas_onnx_row hwnas_pool_onnx_rows[] = {
    {.name = "auto_pad", .text = "NOTSET"},
    {.name = "ceil_mode", .value = 0, .fallback = 0},
    {.name = "dilations", .kind = HWNAS_ATTR_INTS, .value = 1, .fallback = 1},
    {.name = "storage_order", .is_ignored = true}, /* of the indices, which we do not make */
    {0},
};

/* A pad as large as the kernel would make windows of nothing but padding. */
hwnas_status hwnas_infer_pool(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_attr *a = node->attrs;
    TRY(hwnas_need_image(node, in, "to shrink a volume, use 'conv3d' with a stride"));
    out->rank = 4;
    out->dims[0] = in->dims[0];
    out->dims[1] = in->dims[1];
    for (int i = 0; i < 2; i++) {
        const int64_t kernel = a[HWNAS_POOL_KERNEL].ints[i];
        const int64_t before = a[HWNAS_POOL_PAD].ints[i], after = a[HWNAS_POOL_PAD].ints[2 + i];
        const int64_t padded = in->dims[2 + i] + before + after;
        if (before >= kernel || after >= kernel)
            return hwnas_fail(HWNAS_E_INPUT, NULL, "'pad' of '%s' is %lld, 'kernel' must be larger",
                              node->op->name, (long long)(before > after ? before : after));
        if (kernel > padded)
            return hwnas_fail(HWNAS_E_INPUT, NULL,
                              "'%s': a kernel of %lld is larger than its padded input of %lld",
                              node->op->name, (long long)kernel, (long long)padded);
        out->dims[2 + i] = (padded - kernel) / a[HWNAS_POOL_STRIDE].ints[i] + 1;
    }
    return HWNAS_OK;
}

/* From where to where the `at`-th window lies on a plane of `size`, without the padding. */
static void clamp_window(int64_t *begin, int64_t *end, int64_t at, int64_t size,
                         const hwnas_attr *attrs, int direction)
{
    *begin = at * attrs[HWNAS_POOL_STRIDE].ints[direction] - attrs[HWNAS_POOL_PAD].ints[direction];
    *end = *begin + attrs[HWNAS_POOL_KERNEL].ints[direction];
    *begin = *begin < 0 ? 0 : *begin;
    *end = *end > size ? size : *end;
}

void hwnas_compute_pool(const hwnas_graph *graph, const hwnas_node *node,
                        const float *const *inputs, float *output,
                        float (*reduce)(const hwnas_pool_window *window, const hwnas_node *node))
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    const int64_t *kernel = node->attrs[HWNAS_POOL_KERNEL].ints;
    const int64_t planes = in->dims[0] * in->dims[1];
    hwnas_pool_window window = {.width = in->dims[3], .n_padded = kernel[0] * kernel[1]};
    for (int64_t p = 0; p < planes; p++) {
        window.plane = inputs[0] + p * in->dims[2] * in->dims[3];
        for (int64_t y = 0; y < out->dims[2]; y++) {
            clamp_window(&window.top, &window.bottom, y, in->dims[2], node->attrs, 0);
            for (int64_t x = 0; x < out->dims[3]; x++) {
                clamp_window(&window.left, &window.right, x, in->dims[3], node->attrs, 1);
                *output++ = reduce(&window, node);
            }
        }
    }
}
