/* graph.c: building a graph, node by node, with every shape checked on the way. */
#include "graph/graph.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "graph/codes.h"
#include "graph/op.h"

/* More elements than this in one tensor is a mistake, and keeps all products within 64 bits. */
#define MAX_ELEMENTS ((int64_t)1 << 40)

hwnas_graph *hwnas_graph_new(const char *name, uint64_t seed)
{
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_graph *graph = hwnas_arena_alloc(arena, sizeof *graph);
    graph->arena = arena;
    graph->name = hwnas_arena_string(arena, name, strlen(name));
    graph->seed = seed;
    return graph;
}

void hwnas_graph_free(hwnas_graph *graph)
{
    if (!graph)
        return;
    free(graph->absent);
    free(graph->inputs);
    free(graph->outputs);
    hwnas_arena_free(graph->arena);
}

bool hwnas_same_shape(const hwnas_tensor *a, const hwnas_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

int64_t hwnas_tensor_count(const hwnas_tensor *tensor)
{
    int64_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= tensor->dims[i];
    return count;
}

int64_t hwnas_tensor_bytes(const hwnas_tensor *tensor)
{
    return hwnas_tensor_count(tensor) * (int64_t)sizeof(float);
}

hwnas_shape_text hwnas_tensor_shape(const hwnas_tensor *tensor)
{
    hwnas_shape_text text = {.s = "scalar"};
    size_t n = 0;
    for (int i = 0; i < tensor->rank && n < sizeof text.s; i++)
        n += (size_t)snprintf(text.s + n, sizeof text.s - n, "%s%lld", i ? "x" : "",
                              (long long)tensor->dims[i]);
    return text;
}

static hwnas_status check_dims(const hwnas_tensor *tensor)
{
    int64_t count = 1;
    for (int i = 0; i < tensor->rank; i++) {
        if (tensor->dims[i] < 1)
            return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' would have the shape %s", tensor->name,
                              hwnas_tensor_shape(tensor).s);
        if (__builtin_mul_overflow(count, tensor->dims[i], &count) || count > MAX_ELEMENTS)
            return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' would have more than 2^40 elements (%s)",
                              tensor->name, hwnas_tensor_shape(tensor).s);
    }
    return HWNAS_OK;
}

/* Appends a copy of `tensor`, whose name lives as long as the graph, and gives its index. */
static hwnas_status add_tensor(int *out, hwnas_graph *graph, const hwnas_tensor *tensor)
{
    TRY(check_dims(tensor));
    HWNAS_ARENA_GROW(graph->arena, graph->tensors, graph->n_tensors, graph->tensor_capacity);
    graph->tensors[graph->n_tensors] = *tensor;
    *out = (int)graph->n_tensors++;
    return HWNAS_OK;
}

static const char *own_name(hwnas_graph *graph, const char *name)
{
    return hwnas_arena_string(graph->arena, name, strlen(name));
}

static void append_index(int **list, size_t *n, int index)
{
    *list = hwnas_realloc(*list, (*n + 1) * sizeof **list);
    (*list)[(*n)++] = index;
}

hwnas_status hwnas_graph_add_input(int *out, hwnas_graph *graph, const char *name,
                                   hwnas_dtype dtype, int rank, const int64_t *dims)
{
    hwnas_tensor tensor = {.name = own_name(graph, name),
                           .kind = HWNAS_TENSOR_INPUT,
                           .dtype = dtype,
                           .rank = rank,
                           .producer = -1};
    memcpy(tensor.dims, dims, (size_t)rank * sizeof *dims);
    TRY(add_tensor(out, graph, &tensor));
    append_index(&graph->inputs, &graph->n_inputs, *out);
    return HWNAS_OK;
}

/* FNV-1a goes on with a text. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

/* The hash of a weight's name begins so: weights differ between tensors and graphs. */
static uint64_t hash_begin(const hwnas_graph *graph)
{
    return 14695981039346656037u ^ graph->seed;
}

/* The name lives as long as the graph. */
static hwnas_status add_weight(int *out, hwnas_graph *graph, const char *name, uint64_t seed,
                               int rank, const int64_t *dims, hwnas_init init, bool is_parameter)
{
    hwnas_tensor tensor = {.name = name,
                           .kind = HWNAS_TENSOR_WEIGHT,
                           .rank = rank,
                           .producer = -1,
                           .is_parameter = is_parameter,
                           .init = init,
                           .seed = seed};
    if (rank)
        memcpy(tensor.dims, dims, (size_t)rank * sizeof *dims);
    return add_tensor(out, graph, &tensor);
}

hwnas_status hwnas_graph_add_weight(int *out, hwnas_graph *graph, const char *name, int rank,
                                    const int64_t *dims, hwnas_init init, bool is_parameter)
{
    return add_weight(out, graph, own_name(graph, name), hash_text(hash_begin(graph), name), rank,
                      dims, init, is_parameter);
}

hwnas_status hwnas_node_add_weight(hwnas_graph *graph, hwnas_node *node, const char *suffix,
                                   int rank, const int64_t *dims, hwnas_init init,
                                   bool is_parameter)
{
    if (!node->prefix_hash)
        node->prefix_hash = hash_text(hash_text(hash_begin(graph), node->name), ".");
    return add_weight(&node->inputs[node->n_inputs++], graph,
                      hwnas_arena_join(graph->arena, node->name, ".", suffix),
                      hash_text(node->prefix_hash, suffix), rank, dims, init, is_parameter);
}

hwnas_status hwnas_graph_add_constant(int *out, hwnas_graph *graph, const char *name, int rank,
                                      const int64_t *dims, const float *values)
{
    TRY(hwnas_graph_add_weight(out, graph, name, rank, dims, HWNAS_INIT_ZERO, false));
    hwnas_tensor *tensor = &graph->tensors[*out];
    tensor->data = hwnas_arena_copy(graph->arena, values, (size_t)hwnas_tensor_bytes(tensor));
    return HWNAS_OK;
}

void hwnas_graph_add_output(hwnas_graph *graph, int tensor)
{
    append_index(&graph->outputs, &graph->n_outputs, tensor);
}

bool hwnas_graph_is_output(const hwnas_graph *graph, int tensor)
{
    for (size_t i = 0; i < graph->n_outputs; i++)
        if (graph->outputs[i] == tensor)
            return true;
    return false;
}

void hwnas_graph_add_absent(hwnas_graph *graph, const char *name)
{
    graph->absent = hwnas_realloc(graph->absent, (graph->n_absent + 1) * sizeof *graph->absent);
    graph->absent[graph->n_absent++] = hwnas_arena_string(graph->arena, name, strlen(name));
}

int64_t hwnas_graph_table_rows(const hwnas_graph *graph, int tensor)
{
    enum { TABLE, INDICES };
    int64_t below = 0;
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const hwnas_node *node = &graph->nodes[n];
        if (node->op->id != HWNAS_OP_GATHER || node->inputs[INDICES] != tensor)
            continue;
        const hwnas_tensor *table = &graph->tensors[node->inputs[TABLE]];
        const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
        const int64_t entries = table->dims[axis < 0 ? axis + table->rank : axis];
        below = below && below < entries ? below : entries;
    }
    return below;
}

int64_t hwnas_graph_input_below(const hwnas_graph *graph, int tensor)
{
    if (!hwnas_dtype_is_whole(graph->tensors[tensor].dtype))
        return 0;
    const int64_t rows = hwnas_graph_table_rows(graph, tensor);
    return rows ? rows : 2;
}

static void set_fallback(hwnas_attr *attr, const hwnas_attr_row *row)
{
    attr->is_set = true;
    attr->number = row->fallback;
    attr->n = row->kind == HWNAS_ATTR_INTS ? row->count : row->kind == HWNAS_ATTR_NUMBER ? 0 : 1;
    for (int i = 0; i < attr->n; i++)
        attr->ints[i] = (int64_t)row->fallback;
}

/* What a file says may come here from readers that have looked at nothing: within its range an
 * attribute divides nothing by zero and overflows no sum. */
static hwnas_status check_range(const hwnas_op *op, const hwnas_attr_row *row,
                                const hwnas_attr *attr)
{
    const bool is_number = row->kind == HWNAS_ATTR_NUMBER;
    const int n = row->kind != HWNAS_ATTR_INTS ? 1 : row->count ? row->count : attr->n;
    for (int i = 0; i < n; i++) {
        const double value = is_number ? attr->number : (double)attr->ints[i];
        if (!(value >= row->low && value <= row->high))
            return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' of '%s' is %.12g, not from %.12g to %.12g",
                              row->name, op->name, value, row->low, row->high);
    }
    return HWNAS_OK;
}

/* Copies the given attributes and fills in what was left out. */
static hwnas_status set_attrs(hwnas_node *node, hwnas_graph *graph, const hwnas_attr *given,
                              bool make_weights)
{
    const hwnas_attr_row *rows = node->op->attrs;
    int n = 0;
    while (rows[n].name)
        n++;
    node->attrs = hwnas_arena_alloc(graph->arena, (size_t)(n ? n : 1) * sizeof *node->attrs);
    for (int i = 0; i < n; i++) {
        if (given && given[i].is_set) {
            TRY(check_range(node->op, &rows[i], &given[i]));
            node->attrs[i] = given[i];
            continue;
        }
        if (rows[i].is_required && make_weights)
            return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' needs '%s': %s", node->op->name,
                              rows[i].name, rows[i].help);
        set_fallback(&node->attrs[i], &rows[i]);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_graph_add_node(int *out_tensor, hwnas_graph *graph, const hwnas_op *op,
                                  const char *name, const hwnas_attr *attrs, int n_inputs,
                                  const int *inputs, bool make_weights)
{
    int low = op->min_inputs, high = op->max_inputs;
    if (!make_weights) {
        low += op->min_weights;
        high += op->max_weights;
    }
    if (n_inputs < low || n_inputs > high)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' takes %d to %d inputs, not %d", op->name, low,
                          high, n_inputs);
    hwnas_node node = {.name = own_name(graph, name),
                       .op = op,
                       .n_inputs = n_inputs,
                       .n_data_inputs = make_weights ? n_inputs : n_inputs - op->min_weights};
    if (!make_weights && node.n_data_inputs > op->max_inputs)
        node.n_data_inputs = op->max_inputs; /* the rest are optional weights */
    node.inputs = hwnas_arena_alloc(graph->arena,
                                    (size_t)(n_inputs + op->max_weights + 1) * sizeof *node.inputs);
    memcpy(node.inputs, inputs, (size_t)n_inputs * sizeof *inputs);
    TRY(set_attrs(&node, graph, attrs, make_weights));
    if (make_weights && op->build) {
        int built = -1;
        TRY(op->build(&built, graph, &node));
        if (built >= 0) {
            *out_tensor = built;
            return HWNAS_OK;
        }
    }
    if (op->settle)
        op->settle(graph, &node);
    if (make_weights && op->make_weights)
        TRY(op->make_weights(graph, &node));
    if (!make_weights && op->read_weights)
        op->read_weights(graph, &node);

    hwnas_tensor output = {.name = node.name,
                           .kind = HWNAS_TENSOR_ACTIVATION,
                           .dtype = graph->tensors[node.inputs[0]].dtype};
    TRY(op->infer(graph, &node, &output));
    output.producer = (int)graph->n_nodes;
    TRY(add_tensor(&node.output, graph, &output));
    HWNAS_ARENA_GROW(graph->arena, graph->nodes, graph->n_nodes, graph->node_capacity);
    graph->nodes[graph->n_nodes++] = node;
    *out_tensor = node.output;
    return HWNAS_OK;
}

/* Uniform in [low, high), from the top of 24 bits so that every float is exact on every machine. */
static float uniform(hwnas_rng *rng, float low, float high)
{
    return low + (high - low) * ((float)(hwnas_rng_u32(rng) >> 8) * 0x1p-24f);
}

void hwnas_tensor_fill(const hwnas_tensor *tensor, float *out)
{
    assert(tensor->kind == HWNAS_TENSOR_WEIGHT);
    int64_t n = hwnas_tensor_count(tensor);
    if (tensor->data) {
        memcpy(out, tensor->data, (size_t)n * sizeof *out);
        return;
    }
    if (tensor->codes.numbers) {
        hwnas_codes_fill(out, &tensor->codes, n, tensor->rank ? tensor->dims[tensor->rank - 1] : 1);
        return;
    }
    float low = -0.1f, high = 0.1f;
    if (tensor->init == HWNAS_INIT_ZERO || tensor->init == HWNAS_INIT_ONE) {
        low = high = tensor->init == HWNAS_INIT_ONE;
    } else if (tensor->init == HWNAS_INIT_NEAR_ONE) {
        low = 0.8f;
        high = 1.2f;
    } else if (tensor->init == HWNAS_INIT_FAN_IN || tensor->init == HWNAS_INIT_FAN_FIRST) {
        const double first = (double)tensor->dims[0];
        const double fan_in = tensor->init == HWNAS_INIT_FAN_FIRST ? first : (double)n / first;
        high = (float)sqrt(6.0 / fan_in); /* a uniform of this half-width has variance 2 / fan-in */
        low = -high;
    }
    hwnas_rng rng = hwnas_rng_new(tensor->seed, 0);
    for (int64_t i = 0; i < n; i++)
        out[i] = uniform(&rng, low, high);
}
