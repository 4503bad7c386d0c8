#include "derive/resolution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"

enum { SMALLEST = 16 }; /* images of less have nothing to lose */

static const hwnas_tensor *image_of(const hwnas_graph *graph)
{
    const hwnas_tensor *x = graph->n_inputs ? &graph->tensors[graph->inputs[0]] : NULL;
    const bool is_image = x && x->rank == 4 && x->dtype == HWNAS_FLOAT32 &&
                          x->dims[2] >= SMALLEST && x->dims[3] >= SMALLEST;
    return is_image ? x : NULL;
}

/* ---- As a choice ---- */

static void set_height(hwnas_derivation *d, const hwnas_tensor *x, int64_t height)
{
    d->image[0] = height == x->dims[2] ? 0 : height;
    d->image[1] = lround((double)(x->dims[3] * height) / (double)x->dims[2]);
}

/* Whether the model computes as many outputs of smaller images: it pools over all that is left of
 * them. */
static bool can_have(const hwnas_original *o, const hwnas_tensor *x, int64_t height)
{
    hwnas_derivation d;
    hwnas_graph *graph;
    hwnas_derivation_begin(&d, o);
    set_height(&d, x, height);
    const bool can = hwnas_derivation_build(&graph, &d) == HWNAS_OK;
    hwnas_derivation_end(&d);
    if (!can) {
        hwnas_error_clear();
        return false;
    }
    hwnas_graph_free(graph);
    return true;
}

/* Down to half, in steps that layers of stride 2 like. */
void hwnas_resolution_list(hwnas_change_options *to, const hwnas_original *o)
{
    const hwnas_tensor *x = image_of(o->graph);
    hwnas_str values = {0};
    int64_t step = 1;
    if (!x)
        return;
    while (step * 2 <= x->dims[2] / 7)
        step *= 2;
    hwnas_str_addf(&values, "%lld", (long long)x->dims[2]);
    const size_t n_own = values.n;
    for (int64_t h = (x->dims[2] - 1) / step * step; 2 * h >= x->dims[2]; h -= step)
        if (can_have(o, x, h))
            hwnas_str_addf(&values, ", %lld", (long long)h);
    if (values.n == n_own) {
        hwnas_str_done(&values);
        return;
    }
    hwnas_change_options_add(
        to, (hwnas_change_option){
                .of = hwnas_strdup(x->name),
                .choice = hwnas_strdup("resolution"),
                .values = values.s,
                .about = hwnas_printf("height of the images %s, made smaller first", x->name)});
}

hwnas_status hwnas_resolution_apply(hwnas_derivation *d, const hwnas_model_change *change,
                                    const hwnas_value *value)
{
    const hwnas_tensor *x = image_of(d->original->graph);
    if (!x || strcmp(change->of, x->name))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &change->of_place,
                                     "the model has no images '%.100s'", change->of),
                          x ? "its first input is '%s'" : "its first input is no image of %s",
                          x ? x->name : "floats");
    if (value->kind != HWNAS_VALUE_INT || value->i < 1 || value->i > x->dims[2])
        return hwnas_fail(HWNAS_E_INPUT, &change->to->place,
                          "images of height %lld can be made smaller, to 1 or more",
                          (long long)x->dims[2]);
    set_height(d, x, value->i);
    d->image_place = change->to->place;
    if (d->image[1] >= 1)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &change->to->place,
                                 "images of %lld x %lld that become %lld high have no width",
                                 (long long)x->dims[2], (long long)x->dims[3], (long long)value->i),
                      "%lld or more",
                      (long long)((x->dims[2] + 2 * x->dims[3] - 1) / (2 * x->dims[3])));
}

hwnas_status hwnas_resolution_check(hwnas_status status, const hwnas_derivation *d,
                                    const hwnas_graph *graph)
{
    const hwnas_graph *own = d->original->graph;
    bool is_same = true;
    if (!d->image[0])
        return status;
    for (size_t i = 0; i < own->n_outputs && status == HWNAS_OK; i++)
        is_same = is_same && hwnas_same_shape(&graph->tensors[graph->outputs[i]],
                                              &own->tensors[own->outputs[i]]);
    if (status == HWNAS_OK && is_same)
        return HWNAS_OK;
    if (status == HWNAS_OK)
        status = hwnas_fail(HWNAS_E_INPUT, NULL, "the model's outputs get another shape");
    hwnas_context(status, "of images of %lld x %lld", (long long)d->image[0],
                  (long long)d->image[1]);
    hwnas_hint(status, "a larger value of the resolution");
    return hwnas_fail_at(status, &d->image_place);
}

/* ---- In the network ---- */

/* from x to: what a pixel of the smaller side takes of each of the larger. */
static float *weights_of(int64_t from, int64_t to)
{
    float *w = hwnas_alloc((size_t)(from * to) * sizeof *w);
    const double scale = fmax((double)from / (double)to, 1);
    for (int64_t k = 0; k < to; k++) {
        const double centre = ((double)k + 0.5) * (double)from / (double)to - 0.5;
        double sum = 0;
        for (int64_t i = 0; i < from; i++)
            sum += fmax(0, 1 - fabs((double)i - centre) / scale);
        for (int64_t i = 0; i < from; i++)
            w[i * to + k] = (float)(fmax(0, 1 - fabs((double)i - centre) / scale) / sum);
    }
    return w;
}

/* Along the last dimension, which then changes places with the one before it. */
static hwnas_status add_side(int *at, hwnas_rewrite *r, int64_t to, const char *side)
{
    const char *input = r->from->tensors[r->from->inputs[0]].name;
    const int64_t dims[2] = {r->to->tensors[*at].dims[3], to};
    const hwnas_attr turned = {.is_set = true, .n = 4, .ints = {0, 1, 3, 2}};
    char *weights_name = hwnas_printf("%s.%s.weights", input, side);
    char *product = hwnas_printf("%s.%s", input, side), *turn = hwnas_printf("%s.turned", product);
    float *values = weights_of(dims[0], dims[1]);
    int inputs[2] = {*at, -1};
    hwnas_status status =
        hwnas_graph_add_constant(&inputs[1], r->to, weights_name, 2, dims, values);
    if (status == HWNAS_OK)
        status = hwnas_graph_add_node(at, r->to, hwnas_ops[HWNAS_OP_MATMUL], product, NULL, 2,
                                      inputs, false);
    if (status == HWNAS_OK)
        status = hwnas_graph_add_node(at, r->to, hwnas_ops[HWNAS_OP_TRANSPOSE], turn, &turned, 1,
                                      at, false);
    free(values);
    free(weights_name);
    free(product);
    free(turn);
    return status;
}

hwnas_status hwnas_resolution_add(hwnas_rewrite *r, const int64_t image[2])
{
    const int input = r->from->inputs[0];
    int at = r->place[input];
    TRY(add_side(&at, r, image[1], "width"));
    TRY(add_side(&at, r, image[0], "height"));
    r->place[input] = at;
    return HWNAS_OK;
}
