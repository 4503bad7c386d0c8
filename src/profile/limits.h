/* limits.h: what a device can do at most for the products of one network, some of which may be in
 * bytes or bf16 beside floats. */
#ifndef HWNAS_PROFILE_LIMITS_H
#define HWNAS_PROFILE_LIMITS_H

#include "measure/roofline.h"

/* What a product is computed in, in a network that is run in `precision`: HWNAS_S8 of two
 * dequantized operands, HWNAS_BF16 of two rounded ones (graph/rounding.h). */
hwnas_precision hwnas_product_precision(const hwnas_graph *graph, const hwnas_node *node,
                                        hwnas_precision precision);

/* The roofline of `precision`, with the rates of products in lower types that the graph has; those
 * that cannot be measured are left out. `is_rough` as hwnas_roofline_rough(). */
HWNAS_CHECKED hwnas_status hwnas_limits_get(hwnas_roofline *out, hwnas_runner *runner,
                                            const char *device, const hwnas_graph *graph,
                                            hwnas_precision precision, bool is_rough,
                                            const hwnas_measure_options *options);
/* Operations a second in a precision; of one that the roofline does not know, its own. */
double hwnas_limits_flops(const hwnas_roofline *roofline, hwnas_precision precision);

#endif
