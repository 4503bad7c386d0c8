#include "inherit/recover.h"

#include <stdlib.h>
#include <string.h>

#include "graph/rewrite.h"
#include "inherit/least_squares.h"
#include "inherit/walk.h"

/* Examples for a layer: six for each of its weights, within bounds. More weights than MAX_INPUTS
 * take too long: such a layer keeps what it inherited. */
enum { MIN_ROWS = 2048, MAX_ROWS = 12288, ROWS_PER_INPUT = 6, MAX_INPUTS = 2304 };
#define RIDGE 1e-4

/* ---- Layers ---- */

typedef enum layer_kind {
    LAYER_NONE,
    LAYER_CONV,      /* channels at dimension 1, a position is a point of the image */
    LAYER_DEPTHWISE, /* the same, each channel by itself */
    LAYER_LINEAR,    /* batch x outputs */
    LAYER_MATMUL,    /* ... x outputs, with inputs x outputs as weights */
    LAYER_BIAS,      /* a sum with one value for each of the last dimension */
} layer_kind;

static bool is_weight(const hwnas_graph *graph, int tensor)
{
    return graph->tensors[tensor].kind == HWNAS_TENSOR_WEIGHT;
}

/* Which of an add's inputs is a bias; -1: none. */
static int bias_of(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *y = hwnas_node_output(graph, node);
    for (int i = 0; i < 2; i++) {
        const hwnas_tensor *t = hwnas_node_input(graph, node, i);
        if (is_weight(graph, node->inputs[i]) && !is_weight(graph, node->inputs[!i]) &&
            y->rank > 0 && hwnas_tensor_count(t) == y->dims[y->rank - 1] && t->rank > 0 &&
            t->dims[t->rank - 1] == y->dims[y->rank - 1] &&
            hwnas_same_shape(hwnas_node_input(graph, node, !i), y))
            return i;
    }
    return -1;
}

static layer_kind kind_of(const hwnas_graph *graph, const hwnas_node *node)
{
    const bool has_weights = node->n_inputs > 1 && is_weight(graph, node->inputs[1]) &&
                             !is_weight(graph, node->inputs[0]);
    switch (node->op->id) {
    case HWNAS_OP_CONV: {
        const int64_t groups = hwnas_node_attr(node, "groups")->ints[0];
        const bool is_depthwise = groups == hwnas_node_input(graph, node, 0)->dims[1] &&
                                  groups == hwnas_node_output(graph, node)->dims[1];
        return !has_weights   ? LAYER_NONE
               : groups == 1  ? LAYER_CONV
               : is_depthwise ? LAYER_DEPTHWISE
                              : LAYER_NONE;
    }
    case HWNAS_OP_LINEAR:
        return has_weights ? LAYER_LINEAR : LAYER_NONE;
    case HWNAS_OP_MATMUL:
        return has_weights && hwnas_node_input(graph, node, 1)->rank == 2 ? LAYER_MATMUL
                                                                          : LAYER_NONE;
    case HWNAS_OP_ADD:
        return bias_of(graph, node) >= 0 ? LAYER_BIAS : LAYER_NONE;
    default:
        return LAYER_NONE;
    }
}

/* How a layer's values lie: [samples][channels][positions], or the channels last. */
typedef struct layout {
    int channel_dim;
    int64_t n_samples, n_channels, n_positions;
    bool is_last;
} layout;

static layout layout_of(const hwnas_graph *graph, const hwnas_node *node, layer_kind kind,
                        int64_t n_chunks)
{
    const hwnas_tensor *y = hwnas_node_output(graph, node);
    const bool is_image = kind == LAYER_CONV || kind == LAYER_DEPTHWISE;
    layout l = {.channel_dim = is_image ? 1 : y->rank - 1, .is_last = !is_image};
    l.n_channels = y->dims[l.channel_dim];
    l.n_samples = n_chunks * y->dims[0];
    l.n_positions = hwnas_tensor_count(y) / y->dims[0] / l.n_channels;
    return l;
}

/* Row number r is a position of a sample; positions are spread by a stride that is prime to their
 * number.
 */
typedef struct row_plan {
    int64_t n, per_sample, n_positions;
} row_plan;

static row_plan plan_rows(const layout *l, int64_t n_inputs)
{
    int64_t wanted = ROWS_PER_INPUT * n_inputs;
    wanted = wanted < MIN_ROWS ? MIN_ROWS : wanted > MAX_ROWS ? MAX_ROWS : wanted;
    row_plan p = {.per_sample = (wanted + l->n_samples - 1) / l->n_samples};
    if (p.per_sample > l->n_positions)
        p.per_sample = l->n_positions;
    p.n = p.per_sample * l->n_samples;
    p.n_positions = l->n_positions;
    return p;
}

static void find_row(int64_t *sample, int64_t *position, int64_t row, const layout *l,
                     const row_plan *p)
{
    *sample = row / p->per_sample;
    *position =
        (row % p->per_sample * l->n_positions / p->per_sample + *sample * 7) % l->n_positions;
}

static float value_at(const float *values, const layout *l, int64_t sample, int64_t position,
                      int64_t channel)
{
    return values[(sample * l->n_channels * l->n_positions) +
                  (l->is_last ? position * l->n_channels + channel
                              : channel * l->n_positions + position)];
}

/* ---- The teacher ---- */

struct hwnas_teacher {
    const hwnas_original *original;
    hwnas_device *device;
    const float *const *inputs;
    int64_t n_chunks;
    row_plan *plans; /* by node */
    float **targets; /* by node: rows x channels; NULL: none */
};

/* Of the original: a smaller one has fewer, so there are enough rows. */
static int64_t inputs_of_layer(const hwnas_graph *graph, const hwnas_node *node, layer_kind kind)
{
    const hwnas_tensor *w = hwnas_node_input(graph, node, 1);
    return kind == LAYER_BIAS     ? 0
           : kind == LAYER_MATMUL ? w->dims[0]
                                  : hwnas_tensor_count(w) / w->dims[0];
}

static hwnas_status note_target(void *context, int n, float *const *values)
{
    hwnas_teacher *t = context;
    const hwnas_graph *graph = t->original->graph;
    const hwnas_node *node = &graph->nodes[n];
    const layer_kind kind = kind_of(graph, node);
    if (kind == LAYER_NONE)
        return HWNAS_OK;
    const layout l = layout_of(graph, node, kind, t->n_chunks);
    const row_plan p = plan_rows(&l, inputs_of_layer(graph, node, kind));
    TRY(hwnas_try_alloc((void **)&t->targets[n], (size_t)(p.n * l.n_channels) * sizeof(float),
                        node->name));
    t->plans[n] = p;
    for (int64_t row = 0; row < p.n; row++) {
        int64_t sample, position;
        find_row(&sample, &position, row, &l, &p);
        for (int64_t c = 0; c < l.n_channels; c++)
            t->targets[n][row * l.n_channels + c] =
                value_at(values[node->output], &l, sample, position, c);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_teacher_new(hwnas_teacher **out, const hwnas_original *original,
                               hwnas_device *device, const float *const *inputs, int64_t n_chunks)
{
    const size_t n_nodes = original->graph->n_nodes;
    hwnas_teacher *t = hwnas_alloc(sizeof *t);
    *t = (hwnas_teacher){.original = original,
                         .device = device,
                         .inputs = inputs,
                         .n_chunks = n_chunks,
                         .plans = hwnas_alloc((n_nodes + 1) * sizeof *t->plans),
                         .targets = hwnas_alloc((n_nodes + 1) * sizeof *t->targets)};
    const hwnas_walker walker = {.graph = original->graph,
                                 .device = device,
                                 .n_chunks = n_chunks,
                                 .inputs = inputs,
                                 .context = t,
                                 .after = note_target};
    const hwnas_status status = hwnas_inherit_walk(&walker);
    if (status == HWNAS_OK)
        *out = t;
    else
        hwnas_teacher_free(t);
    return status;
}

void hwnas_teacher_free(hwnas_teacher *teacher)
{
    if (!teacher)
        return;
    for (size_t n = 0; n < teacher->original->graph->n_nodes; n++)
        free(teacher->targets[n]);
    free(teacher->targets);
    free(teacher->plans);
    free(teacher);
}

/* ---- Recovering ---- */

typedef struct student {
    hwnas_graph *graph;
    const hwnas_derivation *derivation;
    const hwnas_teacher *teacher;
    hwnas_uses *uses; /* by tensor */
    int *origin;      /* by node: of the original */
} student;

/* What the original has at the channels that are kept. */
static hwnas_status take_targets(hwnas_matrix *out, const student *s, int n, int channel_dim)
{
    const hwnas_graph *original = s->teacher->original->graph;
    const int from = s->origin[n], tensor = original->nodes[from].output;
    const int64_t all = original->tensors[tensor].dims[channel_dim];
    int64_t n_kept, *kept = hwnas_derivation_kept(&n_kept, s->derivation, tensor, channel_dim);
    const int64_t n_rows = s->teacher->plans[from].n;
    const hwnas_status status =
        hwnas_try_alloc((void **)&out->at, (size_t)(n_rows * n_kept) * sizeof *out->at, "targets");
    out->n_rows = n_rows;
    out->n_columns = n_kept;
    for (int64_t r = 0; r < n_rows && status == HWNAS_OK; r++)
        for (int64_t c = 0; c < n_kept; c++)
            out->at[r * n_kept + c] = s->teacher->targets[from][r * all + kept[c]];
    free(kept);
    return status;
}

/* The windows of channels [begin, end) of an image that a convolution sees at the rows' positions.
 */
static hwnas_status take_windows(hwnas_matrix *out, const student *s, int n, const float *values,
                                 const layout *l, int64_t begin, int64_t end)
{
    const hwnas_node *node = &s->graph->nodes[n];
    const hwnas_tensor *x = hwnas_node_input(s->graph, node, 0);
    const hwnas_tensor *y = hwnas_node_output(s->graph, node);
    const int64_t *window = hwnas_node_attr(node, "kernel")->ints;
    const int64_t *stride = hwnas_node_attr(node, "stride")->ints;
    const int64_t *pad = hwnas_node_attr(node, "pad")->ints;
    const int64_t *dilation = hwnas_node_attr(node, "dilation")->ints;
    const row_plan *p = &s->teacher->plans[s->origin[n]];
    out->n_rows = p->n;
    out->n_columns = (end - begin) * window[0] * window[1];
    TRY(hwnas_try_alloc((void **)&out->at, (size_t)(out->n_rows * out->n_columns) * sizeof *out->at,
                        "windows"));
    float *to = out->at;
    for (int64_t row = 0; row < p->n; row++) {
        int64_t sample, position;
        find_row(&sample, &position, row, l, p);
        const int64_t top = position / y->dims[3] * stride[0] - pad[0];
        const int64_t left = position % y->dims[3] * stride[1] - pad[1];
        for (int64_t c = begin; c < end; c++) {
            const float *plane = values + (sample * x->dims[1] + c) * x->dims[2] * x->dims[3];
            for (int64_t i = 0; i < window[0]; i++)
                for (int64_t k = 0; k < window[1]; k++) {
                    const int64_t yy = top + i * dilation[0], xx = left + k * dilation[1];
                    const bool is_inside = yy >= 0 && yy < x->dims[2] && xx >= 0 && xx < x->dims[3];
                    *to++ = is_inside ? plane[yy * x->dims[3] + xx] : 0;
                }
        }
    }
    return HWNAS_OK;
}

/* The features that a fully connected layer, or a bias, sees at the rows' positions. */
static hwnas_status take_features(hwnas_matrix *out, const student *s, int n, const float *values,
                                  const layout *l, int64_t n_features)
{
    const row_plan *p = &s->teacher->plans[s->origin[n]];
    out->n_rows = p->n;
    out->n_columns = n_features;
    TRY(hwnas_try_alloc((void **)&out->at, (size_t)(p->n * n_features) * sizeof *out->at,
                        "features"));
    for (int64_t row = 0; row < p->n; row++) {
        int64_t sample, position;
        find_row(&sample, &position, row, l, p);
        memcpy(out->at + row * n_features,
               values + (sample * l->n_positions + position) * n_features,
               (size_t)n_features * sizeof *values);
    }
    return HWNAS_OK;
}

/* Values of a weight that may be changed; NULL: others read it as well. */
static float *own_values(const student *s, const hwnas_node *node, int input)
{
    if (input >= node->n_inputs || !is_weight(s->graph, node->inputs[input]) ||
        s->uses[node->inputs[input]].n_inputs != 1)
        return NULL;
    return (float *)s->graph->tensors[node->inputs[input]].data;
}

static hwnas_status recover_conv(const student *s, int n, float *const *values, const layout *l,
                                 const hwnas_matrix *y)
{
    const hwnas_node *node = &s->graph->nodes[n];
    hwnas_matrix x = {0};
    TRY(take_windows(&x, s, n, values[node->inputs[0]], l, 0,
                     hwnas_node_input(s->graph, node, 0)->dims[1]));
    const hwnas_status status =
        hwnas_least_squares(own_values(s, node, 1), own_values(s, node, 2), &x, y, RIDGE);
    free(x.at);
    return status;
}

static hwnas_status recover_depthwise(const student *s, int n, float *const *values,
                                      const layout *l, const hwnas_matrix *y)
{
    const hwnas_node *node = &s->graph->nodes[n];
    float *w = own_values(s, node, 1), *b = own_values(s, node, 2);
    hwnas_matrix one = {y->n_rows, 1, hwnas_alloc((size_t)y->n_rows * sizeof *one.at)};
    hwnas_status status = HWNAS_OK;
    for (int64_t c = 0; c < y->n_columns && status == HWNAS_OK; c++) {
        hwnas_matrix x = {0};
        for (int64_t r = 0; r < y->n_rows; r++)
            one.at[r] = y->at[r * y->n_columns + c];
        status = take_windows(&x, s, n, values[node->inputs[0]], l, c, c + 1);
        if (status == HWNAS_OK)
            status = hwnas_least_squares(w + c * x.n_columns, b ? b + c : NULL, &x, &one, RIDGE);
        free(x.at);
    }
    free(one.at);
    return status;
}

static hwnas_status recover_linear(const student *s, int n, float *const *values, const layout *l,
                                   const hwnas_matrix *y)
{
    const hwnas_node *node = &s->graph->nodes[n];
    hwnas_matrix x = {0};
    TRY(take_features(&x, s, n, values[node->inputs[0]], l,
                      hwnas_node_input(s->graph, node, 1)->dims[1]));
    const hwnas_status status =
        hwnas_least_squares(own_values(s, node, 1), own_values(s, node, 2), &x, y, RIDGE);
    free(x.at);
    return status;
}

static void transpose(float *out, const float *from, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            out[c * rows + r] = from[r * columns + c];
}

static hwnas_status recover_matmul(const student *s, int n, float *const *values, const layout *l,
                                   const hwnas_matrix *y)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_node *node = &s->graph->nodes[n];
    const hwnas_tensor *w = hwnas_node_input(s->graph, node, 1);
    float *own = own_values(s, node, 1), *turned = NULL;
    hwnas_matrix x = {0};
    TRY_OUT(take_features(&x, s, n, values[node->inputs[0]], l, w->dims[0]));
    TRY_OUT(hwnas_try_alloc((void **)&turned, (size_t)hwnas_tensor_bytes(w), w->name));
    transpose(turned, own, w->dims[0], w->dims[1]);
    TRY_OUT(hwnas_least_squares(turned, NULL, &x, y, RIDGE));
    transpose(own, turned, w->dims[1], w->dims[0]);
out:
    free(turned);
    free(x.at);
    return status;
}

/* y = x + b: what is left of y in the mean. */
static hwnas_status recover_bias(const student *s, int n, float *const *values, const layout *l,
                                 hwnas_matrix *y)
{
    const hwnas_node *node = &s->graph->nodes[n];
    const int bias = bias_of(s->graph, node);
    const hwnas_matrix none = {.n_rows = y->n_rows};
    float *b = own_values(s, node, bias);
    hwnas_matrix x = {0};
    if (!b)
        return HWNAS_OK;
    TRY(take_features(&x, s, n, values[node->inputs[!bias]], l, y->n_columns));
    for (int64_t i = 0; i < y->n_rows * y->n_columns; i++)
        y->at[i] -= x.at[i];
    free(x.at);
    return hwnas_least_squares(NULL, b, &none, y, RIDGE);
}

static bool can_recover(const student *s, const hwnas_node *node, layer_kind kind)
{
    return kind == LAYER_BIAS ||
           (own_values(s, node, 1) && inputs_of_layer(s->graph, node, kind) <= MAX_INPUTS);
}

static hwnas_status recover_node(void *context, int n, float *const *values)
{
    const student *s = context;
    const hwnas_node *node = &s->graph->nodes[n];
    const layer_kind kind = kind_of(s->graph, node);
    hwnas_matrix y = {0};
    if (kind == LAYER_NONE || !s->teacher->targets[s->origin[n]] || !can_recover(s, node, kind))
        return HWNAS_OK;
    const layout l = layout_of(s->graph, node, kind, s->teacher->n_chunks);
    if (l.n_positions !=
        s->teacher->plans[s->origin[n]].n_positions) /* rows would not be the same */
        return HWNAS_OK;
    TRY(take_targets(&y, s, n, l.channel_dim));
    const hwnas_status status = kind == LAYER_CONV        ? recover_conv(s, n, values, &l, &y)
                                : kind == LAYER_DEPTHWISE ? recover_depthwise(s, n, values, &l, &y)
                                : kind == LAYER_LINEAR    ? recover_linear(s, n, values, &l, &y)
                                : kind == LAYER_MATMUL    ? recover_matmul(s, n, values, &l, &y)
                                                          : recover_bias(s, n, values, &l, &y);
    free(y.at);
    return status;
}

/* Nodes keep their names and their order. */
static void find_origins(student *s)
{
    const hwnas_graph *original = s->teacher->original->graph;
    size_t at = 0;
    for (size_t n = 0; n < s->graph->n_nodes; n++) {
        while (at < original->n_nodes && strcmp(original->nodes[at].name, s->graph->nodes[n].name))
            at++;
        s->origin[n] = (int)at++;
    }
}

hwnas_status hwnas_recover(hwnas_graph *graph, const hwnas_derivation *derivation,
                           const hwnas_teacher *teacher)
{
    student s = {.graph = graph,
                 .derivation = derivation,
                 .teacher = teacher,
                 .uses = hwnas_graph_uses(graph, NULL, NULL),
                 .origin = hwnas_alloc((graph->n_nodes + 1) * sizeof *s.origin)};
    const hwnas_walker walker = {.graph = graph,
                                 .device = teacher->device,
                                 .n_chunks = teacher->n_chunks,
                                 .inputs = teacher->inputs,
                                 .context = &s,
                                 .before = recover_node};
    find_origins(&s);
    const hwnas_status status = hwnas_inherit_walk(&walker);
    free(s.uses);
    free(s.origin);
    return status;
}
