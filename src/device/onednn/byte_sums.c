#include "device/onednn/byte_sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/onednn/requantize.h"
#include "graph/op.h"

enum { SIGN = 128 }; /* from signed bytes to unsigned ones */

static bool has_instructions(void)
{
#if defined __x86_64__
    return hwnas_onednn_ends_at_avx2() && __builtin_cpu_supports("fma") &&
           !hwnas_onednn_is_native(HWNAS_S8);
#else
    return false;
#endif
}

static bool is_limit(const hwnas_onednn_post *p)
{
    return p->alg == dnnl_eltwise_clip || (p->alg == dnnl_eltwise_relu && p->alpha == 0);
}

hwnas_byte_posts hwnas_byte_posts_of(const hwnas_onednn_group *group)
{
    const bool is_sum = group->n_posts && group->posts[0].is_sum;
    bool are_limits = true, are_functions = true;
    for (int i = is_sum; i < group->n_posts; i++) {
        const hwnas_onednn_post *p = &group->posts[i];
        are_functions &= p->operand < 0 && hwnas_onednn_has_post(p);
        are_limits &= p->operand < 0 && is_limit(p);
    }
    if (are_limits)
        return is_sum ? HWNAS_BYTE_SUM : HWNAS_BYTE_LIMITS;
    return are_functions && !is_sum ? HWNAS_BYTE_FUNCTIONS : HWNAS_BYTE_OTHER;
}

bool hwnas_byte_sums_fit(const hwnas_onednn_source *source, const hwnas_onednn_group *group,
                         const hwnas_onednn_layout *layouts)
{
    const hwnas_graph *graph = source->graph;
    const hwnas_node *root = &graph->nodes[group->chain.nodes[0]];
    const hwnas_tensor *out = hwnas_node_output(graph, root);
    return has_instructions() && group->is_product_of_bytes && root->op->id == HWNAS_OP_CONV &&
           out->rank == 4 && out->dims[1] >= HWNAS_SUMS_BLOCK &&
           hwnas_onednn_is_int8(source, group->chain.output) &&
           layouts[group->reads[0]] == HWNAS_ONEDNN_IMAGE &&
           (hwnas_byte_posts_of(group) != HWNAS_BYTE_SUM ||
            layouts[group->posts[0].operand] == HWNAS_ONEDNN_IMAGE) &&
           layouts[group->chain.output] == HWNAS_ONEDNN_IMAGE;
}

hwnas_status hwnas_byte_kernel(float **out, const hwnas_onednn_source *source,
                               const hwnas_onednn_group *group)
{
    void *values;
    const hwnas_graph *graph = source->graph;
    const hwnas_node *root = &graph->nodes[group->chain.nodes[0]];
    const hwnas_node *dequantize = &graph->nodes[hwnas_node_input(graph, root, 1)->producer];
    const hwnas_tensor *kernel = hwnas_node_input(graph, dequantize, 0);
    TRY(hwnas_try_alloc(&values, (size_t)hwnas_tensor_count(kernel) * sizeof(float), root->name));
    hwnas_tensor_fill(kernel, values);
    *out = values;
    return HWNAS_OK;
}

/* ---- What is behind ---- */

static float limited(float x, float low, float high)
{
    return fminf(fmaxf(x, low), high);
}

/* The range that the limits behind the sums and those of a byte leave, before the zero point is
 * added. */
static void find_limits(hwnas_byte_sums *s, const hwnas_onednn_group *g)
{
    s->low = -INFINITY;
    s->high = INFINITY;
    for (int i = s->sum >= 0; i < g->n_posts && !s->n_posts; i++) {
        const hwnas_onednn_post *p = &g->posts[i];
        const bool is_clip = p->alg == dnnl_eltwise_clip;
        const float low = is_clip ? p->alpha / s->unit : 0;
        const float high = is_clip ? p->beta / s->unit : INFINITY;
        s->low = limited(s->low, low, high);
        s->high = limited(s->high, low, high);
    }
    const float least = (float)((s->out_is_signed ? INT8_MIN : 0) - s->zero);
    const float most = (float)((s->out_is_signed ? INT8_MAX : UINT8_MAX) - s->zero);
    s->low = limited(s->low, least, most);
    s->high = limited(s->high, least, most);
}

static void add_posts(hwnas_byte_sums *s, const hwnas_onednn_requantize *q)
{
    const hwnas_onednn_group *g = q->group;
    const hwnas_byte_posts posts = hwnas_byte_posts_of(g);
    s->zero = q->out.zero;
    s->n_posts = posts == HWNAS_BYTE_FUNCTIONS ? g->n_posts : 0;
    s->unit = s->n_posts ? 1 : q->out.scale;
    s->per_byte = s->unit / q->out.scale;
    s->sum = posts == HWNAS_BYTE_SUM ? g->posts[0].operand : -1;
    memcpy(s->posts, g->posts, sizeof s->posts);
    find_limits(s, g);
}

/* Returns what is to be added to all sums for the zero point of what is added to each. */
static float add_sum(hwnas_byte_sums *s, const hwnas_onednn_source *source)
{
    if (s->sum < 0)
        return 0;
    const hwnas_onednn_scale of = hwnas_onednn_scale_of_int8(source->graph, s->sum);
    s->sum_is_signed = source->kept[s->sum] == dnnl_s8;
    s->sum_factor = of.scale / s->unit;
    return -(float)(of.zero + (s->sum_is_signed ? SIGN : 0)) * s->sum_factor;
}

/* ---- Channels ---- */

/* Sums begin with what the zero point adds to them. */
static int32_t begin_of(const float *weights, int64_t n, int32_t zero)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (int32_t)weights[i];
    return -zero * sum;
}

static void add_channels(hwnas_byte_sums *s, hwnas_onednn_step *step,
                         const hwnas_onednn_requantize *q, const float *kernel, int64_t n_weights,
                         const float *bias)
{
    const float more = add_sum(s, q->source);
    const int64_t n = s->n_blocks * HWNAS_SUMS_BLOCK;
    s->begins = hwnas_alloc((size_t)n * sizeof *s->begins);
    s->factors = hwnas_alloc((size_t)n * sizeof *s->factors);
    s->offsets = hwnas_alloc((size_t)n * sizeof *s->offsets);
    step->bytes += (size_t)n * (sizeof *s->begins + sizeof *s->factors + sizeof *s->offsets);
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = hwnas_byte_sums_channel(s, i);
        s->begins[i] = begin_of(kernel + c * n_weights, n_weights,
                                q->in[0].zero + (s->in_is_signed ? SIGN : 0));
        s->factors[i] = q->scales[q->n_scales > 1 ? c : 0] * q->unit / s->unit;
        s->offsets[i] = (bias ? bias[c] / s->unit : 0) + more;
    }
}

hwnas_status hwnas_byte_sums_init(hwnas_byte_sums *out, hwnas_onednn_step *step,
                                  const hwnas_onednn_source *source,
                                  const hwnas_onednn_group *group, const float *kernel,
                                  hwnas_arena *arena)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_graph *graph = source->graph;
    const hwnas_node *root = &graph->nodes[group->chain.nodes[0]];
    const int64_t n_weights = hwnas_tensor_count(hwnas_node_input(graph, root, 1));
    hwnas_onednn_requantize q;
    void *bias = NULL;
    hwnas_onednn_requantize_init(&q, source, group);
    *out = (hwnas_byte_sums){.n_channels = hwnas_node_output(graph, root)->dims[1],
                             .blank = (uint8_t)q.in[0].zero,
                             .in_is_signed = source->kept[group->reads[0]] == dnnl_s8,
                             .out_is_signed = source->kept[group->chain.output] == dnnl_s8};
    out->n_blocks = (out->n_channels + HWNAS_SUMS_BLOCK - 1) / HWNAS_SUMS_BLOCK;
    add_posts(out, &q);
    const int inputs[] = {group->reads[0], out->sum};
    step->n_inputs = out->sum < 0 ? 1 : 2;
    step->n_outputs = 1;
    step->input_ids = hwnas_arena_copy(arena, inputs, step->n_inputs * sizeof *inputs);
    step->output_ids = hwnas_arena_copy(arena, &group->chain.output, sizeof *step->output_ids);
    if (group->bias >= 0) {
        const size_t bytes = (size_t)out->n_channels * sizeof(float);
        TRY_OUT(hwnas_try_alloc(&bias, bytes, step->name));
        hwnas_tensor_fill(&graph->tensors[group->bias], bias);
    }
    add_channels(out, step, &q, kernel, n_weights / out->n_channels, bias);
out:
    free(bias);
    hwnas_onednn_requantize_done(&q);
    return status;
}

void hwnas_byte_sums_done(hwnas_byte_sums *sums)
{
    free(sums->begins);
    free(sums->factors);
    free(sums->offsets);
}
