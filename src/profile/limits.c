#include "profile/limits.h"

#include "graph/op.h"
#include "graph/pack_weights.h"
#include "graph/quantize_graph.h"
#include "graph/rounding.h"

enum { X, KERNEL }; /* inputs of a product */

static const hwnas_node *maker_of(const hwnas_graph *graph, int tensor)
{
    const int producer = graph->tensors[tensor].producer;
    return producer < 0 ? NULL : &graph->nodes[producer];
}

hwnas_precision hwnas_product_precision(const hwnas_graph *graph, const hwnas_node *node,
                                        hwnas_precision precision)
{
    if (node->op->class != HWNAS_CLASS_PRODUCT || node->n_inputs <= KERNEL)
        return precision;
    const hwnas_node *x = maker_of(graph, node->inputs[X]);
    const hwnas_node *kernel = maker_of(graph, node->inputs[KERNEL]);
    if (!x || !kernel)
        return precision;
    if (hwnas_rounds(x) && hwnas_rounds(kernel))
        return HWNAS_BF16;
    return x->op->id == HWNAS_OP_DEQUANTIZE_LINEAR && hwnas_dequantizes_kernel(graph, kernel) &&
                   !hwnas_is_packed_kernel(graph, kernel)
               ? HWNAS_S8
               : precision;
}

static bool has_products_in(const hwnas_graph *graph, hwnas_precision lower,
                            hwnas_precision precision)
{
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (lower != precision &&
            hwnas_product_precision(graph, &graph->nodes[n], precision) == lower)
            return true;
    return false;
}

static hwnas_status get(hwnas_roofline *out, hwnas_runner *runner, const char *device,
                        hwnas_precision precision, bool is_rough,
                        const hwnas_measure_options *options)
{
    return is_rough ? hwnas_roofline_rough(out, runner, device, precision, options)
                    : hwnas_roofline_get(out, runner, device, precision, false, options);
}

hwnas_status hwnas_limits_get(hwnas_roofline *out, hwnas_runner *runner, const char *device,
                              const hwnas_graph *graph, hwnas_precision precision, bool is_rough,
                              const hwnas_measure_options *options)
{
    const struct {
        hwnas_precision precision;
        hwnas_rate *rate;
    } lower[] = {{HWNAS_S8, &out->s8_flops}, {HWNAS_BF16, &out->bf16_flops}};
    TRY(get(out, runner, device, precision, is_rough, options));
    for (size_t i = 0; i < sizeof lower / sizeof *lower; i++) {
        hwnas_roofline other;
        if (!has_products_in(graph, lower[i].precision, precision))
            continue;
        const hwnas_status status =
            get(&other, runner, device, lower[i].precision, is_rough, options);
        if (status == HWNAS_E_INTERRUPTED)
            return status;
        if (status == HWNAS_OK)
            *lower[i].rate = other.flops;
        else
            hwnas_error_clear();
    }
    return HWNAS_OK;
}

double hwnas_limits_flops(const hwnas_roofline *roofline, hwnas_precision precision)
{
    const double rate = precision == HWNAS_S8     ? roofline->s8_flops.p50
                        : precision == HWNAS_BF16 ? roofline->bf16_flops.p50
                                                  : 0;
    return rate > 0 && precision != roofline->precision ? rate : roofline->flops.p50;
}
