#include "inherit/recover.h"

#include <stdlib.h>
#include <string.h>

#include "graph/rewrite.h"
#include "inherit/examples.h"
#include "inherit/layer.h"
#include "inherit/least_squares.h"
#include "inherit/walk.h"

/* More weights than these take too long: such a layer keeps what it inherited. */
enum { MAX_INPUTS = 2304 };
/* For what has far more examples than weights. */
#define RIDGE 1e-4

static bool is_weight(const hwnas_graph *graph, int tensor)
{
    return graph->tensors[tensor].kind == HWNAS_TENSOR_WEIGHT;
}

/* ---- The teacher ---- */

struct hwnas_teacher {
    const hwnas_original *original;
    hwnas_device *device;
    const float *const *inputs;
    int64_t n_chunks;
    hwnas_row_plan *plans; /* by node */
    float **targets;       /* by node: rows x channels; NULL: none */
};

static hwnas_status note_target(void *context, int n, float *const *values)
{
    hwnas_teacher *t = context;
    const hwnas_graph *graph = t->original->graph;
    const hwnas_node *node = &graph->nodes[n];
    const hwnas_layer_kind kind = hwnas_layer_kind_of(graph, node);
    if (kind == HWNAS_LAYER_NONE)
        return HWNAS_OK;
    const hwnas_layer_layout l = hwnas_layer_layout_of(graph, node, kind, t->n_chunks);
    const hwnas_row_plan p = hwnas_layer_plan(&l, hwnas_layer_inputs(graph, node, kind));
    TRY(hwnas_try_alloc((void **)&t->targets[n], (size_t)(p.n * l.n_channels) * sizeof(float),
                        node->name));
    t->plans[n] = p;
    for (int64_t row = 0; row < p.n; row++) {
        int64_t sample, position;
        hwnas_layer_row(&sample, &position, row, &l, &p);
        for (int64_t c = 0; c < l.n_channels; c++)
            t->targets[n][row * l.n_channels + c] =
                hwnas_layer_value(values[node->output], &l, sample, position, c);
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

/* ---- Rows that are left ---- */

/* By index of an original's dimension which one it has become, -1: none; yours to free(). */
static int64_t *new_indices(int64_t *n_kept, const student *s, int tensor, int dim)
{
    const int64_t size = s->teacher->original->graph->tensors[tensor].dims[dim];
    int64_t *kept = hwnas_derivation_kept(n_kept, s->derivation, tensor, dim);
    int64_t *to = hwnas_alloc((size_t)size * sizeof *to);
    for (int64_t i = 0; i < size; i++)
        to[i] = -1;
    for (int64_t k = 0; k < *n_kept; k++)
        to[kept[k]] = k;
    free(kept);
    return to;
}

/* The same of all dimensions but the first and that of the channels, as one. */
static int64_t *map_positions(int64_t *n_kept, const student *s, int tensor,
                              const hwnas_layer_layout *l)
{
    const hwnas_tensor *t = &s->teacher->original->graph->tensors[tensor];
    int64_t *map = hwnas_alloc((size_t)l->n_positions * sizeof *map), behind = 1;
    *n_kept = 1;
    for (int d = t->rank - 1; d > 0; d--) {
        int64_t n, *to = d == l->channel_dim ? NULL : new_indices(&n, s, tensor, d);
        if (!to)
            continue;
        for (int64_t p = 0; p < l->n_positions; p++) {
            const int64_t at = to[p / behind % t->dims[d]];
            map[p] = map[p] < 0 || at < 0 ? -1 : map[p] + at * *n_kept;
        }
        behind *= t->dims[d];
        *n_kept *= n;
        free(to);
    }
    return map;
}

/* Of a smaller image each position has the target of the one that lies where it does. */
static void scale_positions(int64_t *positions, const hwnas_tensor *from, const hwnas_tensor *to)
{
    for (int64_t p = 0; p < from->dims[2] * from->dims[3]; p++) {
        const int64_t y = p / from->dims[3], x = p % from->dims[3];
        positions[p] = (2 * y + 1) * to->dims[2] / (2 * from->dims[2]) * to->dims[3] +
                       (2 * x + 1) * to->dims[3] / (2 * from->dims[3]);
    }
}

/* Positions may go as channels do, as those that a mixer's layers over tokens see: where a row of
 * the original's is in the targets, and in the values that the smaller network has. None where
 * these lie otherwise. */
static hwnas_row_list find_rows(const student *s, int n, hwnas_layer_kind kind,
                                const hwnas_layer_layout *now)
{
    const hwnas_graph *original = s->teacher->original->graph;
    const hwnas_node *node = &original->nodes[s->origin[n]];
    const hwnas_row_plan *p = &s->teacher->plans[s->origin[n]];
    const hwnas_layer_layout l = hwnas_layer_layout_of(original, node, kind, s->teacher->n_chunks);
    const int64_t batch = hwnas_node_output(original, node)->dims[0];
    int64_t n_samples, n_positions;
    int64_t *samples = new_indices(&n_samples, s, node->output, 0);
    int64_t *positions = map_positions(&n_positions, s, node->output, &l);
    const hwnas_tensor *y = hwnas_node_output(original, node);
    const bool is_image = kind == HWNAS_LAYER_CONV || kind == HWNAS_LAYER_DEPTHWISE;
    if (is_image && now->n_positions != n_positions) {
        scale_positions(positions, y, hwnas_node_output(s->graph, &s->graph->nodes[n]));
        n_positions = now->n_positions;
    }
    hwnas_row_list found = {.at = hwnas_alloc((size_t)p->n * sizeof *found.at)};
    const bool is_same =
        now->n_positions == n_positions && now->n_samples == n_samples * s->teacher->n_chunks;
    for (int64_t r = 0; r < p->n && is_same; r++) {
        int64_t sample, position;
        hwnas_layer_row(&sample, &position, r, &l, p);
        if (samples[sample % batch] >= 0 && positions[position] >= 0)
            found.at[found.n++] = (hwnas_row){
                r, sample / batch * n_samples + samples[sample % batch], positions[position]};
    }
    free(samples);
    free(positions);
    return found;
}

/* ---- Examples ---- */

/* What the original has at the channels that are kept. */
static hwnas_status take_targets(hwnas_matrix *out, const student *s, int n,
                                 const hwnas_row_list *rows, int channel_dim)
{
    const hwnas_graph *original = s->teacher->original->graph;
    const int from = s->origin[n], tensor = original->nodes[from].output;
    const int64_t all = original->tensors[tensor].dims[channel_dim];
    int64_t n_kept, *kept = hwnas_derivation_kept(&n_kept, s->derivation, tensor, channel_dim);
    const hwnas_status status =
        hwnas_try_alloc((void **)&out->at, (size_t)(rows->n * n_kept) * sizeof *out->at, "targets");
    out->n_rows = rows->n;
    out->n_columns = n_kept;
    for (int64_t r = 0; r < rows->n && status == HWNAS_OK; r++)
        for (int64_t c = 0; c < n_kept; c++)
            out->at[r * n_kept + c] = s->teacher->targets[from][rows->at[r].target * all + kept[c]];
    free(kept);
    return status;
}

/* Values of a weight that may be changed; NULL: others read it as well. */
static float *own_values(const student *s, const hwnas_node *node, int input)
{
    if (input >= node->n_inputs || !is_weight(s->graph, node->inputs[input]) ||
        s->uses[node->inputs[input]].n_inputs != 1)
        return NULL;
    return (float *)s->graph->tensors[node->inputs[input]].data;
}

static hwnas_status recover_conv(const student *s, int n, float *const *values,
                                 const hwnas_row_list *rows, const hwnas_matrix *y)
{
    const hwnas_node *node = &s->graph->nodes[n];
    hwnas_matrix x = {0};
    TRY(hwnas_examples_windows(&x, s->graph, node, values[node->inputs[0]], rows, 0,
                               hwnas_node_input(s->graph, node, 0)->dims[1]));
    const hwnas_status status =
        hwnas_least_squares_checked(own_values(s, node, 1), own_values(s, node, 2), &x, y);
    free(x.at);
    return status;
}

static hwnas_status recover_depthwise(const student *s, int n, float *const *values,
                                      const hwnas_row_list *rows, const hwnas_matrix *y)
{
    const hwnas_node *node = &s->graph->nodes[n];
    float *w = own_values(s, node, 1), *b = own_values(s, node, 2);
    hwnas_matrix one = {y->n_rows, 1, hwnas_alloc((size_t)y->n_rows * sizeof *one.at)};
    hwnas_status status = HWNAS_OK;
    for (int64_t c = 0; c < y->n_columns && status == HWNAS_OK; c++) {
        hwnas_matrix x = {0};
        for (int64_t r = 0; r < y->n_rows; r++)
            one.at[r] = y->at[r * y->n_columns + c];
        status =
            hwnas_examples_windows(&x, s->graph, node, values[node->inputs[0]], rows, c, c + 1);
        if (status == HWNAS_OK)
            status = hwnas_least_squares(w + c * x.n_columns, b ? b + c : NULL, &x, &one, RIDGE);
        free(x.at);
    }
    free(one.at);
    return status;
}

static hwnas_status recover_linear(const student *s, int n, float *const *values,
                                   const hwnas_layer_layout *l, const hwnas_row_list *rows,
                                   const hwnas_matrix *y)
{
    const hwnas_node *node = &s->graph->nodes[n];
    hwnas_matrix x = {0};
    TRY(hwnas_examples_features(&x, rows, values[node->inputs[0]], l,
                                hwnas_node_input(s->graph, node, 1)->dims[1]));
    const hwnas_status status =
        hwnas_least_squares_checked(own_values(s, node, 1), own_values(s, node, 2), &x, y);
    free(x.at);
    return status;
}

static void transpose(float *out, const float *from, int64_t rows, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            out[c * rows + r] = from[r * columns + c];
}

static hwnas_status recover_matmul(const student *s, int n, float *const *values,
                                   const hwnas_layer_layout *l, const hwnas_row_list *rows,
                                   const hwnas_matrix *y)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_node *node = &s->graph->nodes[n];
    const hwnas_tensor *w = hwnas_node_input(s->graph, node, 1);
    float *own = own_values(s, node, 1), *turned = NULL;
    hwnas_matrix x = {0};
    TRY_OUT(hwnas_examples_features(&x, rows, values[node->inputs[0]], l, w->dims[0]));
    TRY_OUT(hwnas_try_alloc((void **)&turned, (size_t)hwnas_tensor_bytes(w), w->name));
    transpose(turned, own, w->dims[0], w->dims[1]);
    TRY_OUT(hwnas_least_squares_checked(turned, NULL, &x, y));
    transpose(own, turned, w->dims[1], w->dims[0]);
out:
    free(turned);
    free(x.at);
    return status;
}

/* y = x + b: what is left of y in the mean. */
static hwnas_status recover_bias(const student *s, int n, float *const *values,
                                 const hwnas_layer_layout *l, const hwnas_row_list *rows,
                                 hwnas_matrix *y)
{
    const hwnas_node *node = &s->graph->nodes[n];
    const int bias = hwnas_layer_bias(s->graph, node);
    const hwnas_matrix none = {.n_rows = y->n_rows};
    float *b = own_values(s, node, bias);
    hwnas_matrix x = {0};
    if (!b)
        return HWNAS_OK;
    TRY(hwnas_examples_features(&x, rows, values[node->inputs[!bias]], l, y->n_columns));
    for (int64_t i = 0; i < y->n_rows * y->n_columns; i++)
        y->at[i] -= x.at[i];
    free(x.at);
    return hwnas_least_squares(NULL, b, &none, y, RIDGE);
}

/* A bias that other layers read as well stays as it is, and is no matter of the weights. */
static void subtract_shared_bias(hwnas_matrix *y, const student *s, const hwnas_node *node,
                                 hwnas_layer_kind kind, float *const *values)
{
    const bool may_have = kind != HWNAS_LAYER_MATMUL && kind != HWNAS_LAYER_BIAS;
    if (!may_have || node->n_inputs < 3 || own_values(s, node, 2))
        return;
    const float *bias = values[node->inputs[2]];
    for (int64_t i = 0; i < y->n_rows * y->n_columns; i++)
        y->at[i] -= bias[i % y->n_columns];
}

static bool can_recover(const student *s, const hwnas_node *node, hwnas_layer_kind kind)
{
    return kind == HWNAS_LAYER_BIAS ||
           (own_values(s, node, 1) && hwnas_layer_inputs(s->graph, node, kind) <= MAX_INPUTS);
}

static hwnas_status recover_node(void *context, int n, float *const *values)
{
    const student *s = context;
    const hwnas_node *node = &s->graph->nodes[n];
    const hwnas_layer_kind kind = hwnas_layer_kind_of(s->graph, node);
    hwnas_matrix y = {0};
    if (kind == HWNAS_LAYER_NONE || !s->teacher->targets[s->origin[n]] ||
        !can_recover(s, node, kind))
        return HWNAS_OK;
    const hwnas_layer_layout l = hwnas_layer_layout_of(s->graph, node, kind, s->teacher->n_chunks);
    hwnas_row_list rows = find_rows(s, n, kind, &l);
    hwnas_status status = take_targets(&y, s, n, &rows, l.channel_dim);
    if (status == HWNAS_OK)
        subtract_shared_bias(&y, s, node, kind, values);
    if (status == HWNAS_OK && rows.n)
        status = kind == HWNAS_LAYER_CONV        ? recover_conv(s, n, values, &rows, &y)
                 : kind == HWNAS_LAYER_DEPTHWISE ? recover_depthwise(s, n, values, &rows, &y)
                 : kind == HWNAS_LAYER_LINEAR    ? recover_linear(s, n, values, &l, &rows, &y)
                 : kind == HWNAS_LAYER_MATMUL    ? recover_matmul(s, n, values, &l, &rows, &y)
                                                 : recover_bias(s, n, values, &l, &rows, &y);
    free(rows.at);
    free(y.at);
    return status;
}

/* Nodes keep their names and their order; one that the original lacks has its number of nodes. */
static void find_origins(student *s)
{
    const hwnas_graph *original = s->teacher->original->graph;
    size_t at = 0;
    for (size_t n = 0; n < s->graph->n_nodes; n++) {
        size_t found = at;
        while (found < original->n_nodes &&
               strcmp(original->nodes[found].name, s->graph->nodes[n].name))
            found++;
        s->origin[n] = (int)found;
        if (found < original->n_nodes)
            at = found + 1;
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
