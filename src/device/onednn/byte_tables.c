/* byte_tables.c: the table has what the operators' own loops make of each of the 256 bytes, so it
 * is what `ref` computes, to the last bit. */
#include "device/onednn/byte_tables.h"

#include <stdlib.h>

#if defined __x86_64__
#include <immintrin.h>
#endif

#include "device/onednn/onednn_int8.h"
#include "graph/op.h"

typedef hwnas_onednn_group group;

enum { BYTES = 256, MOST_NODES = HWNAS_FUSION_LONGEST, MOST_TENSORS = 4 };

/* ---- Which nodes ---- */

/* Nodes that lead from tensors of bytes, in the end from one, to a quantisation, which is the
 * first. */
typedef struct path {
    const hwnas_onednn_source *source;
    int n, nodes[MOST_NODES];
    int n_tensors, tensors[MOST_TENSORS];
} path;

static bool has(const path *p, int node)
{
    for (int i = 0; i < p->n; i++)
        if (p->nodes[i] == node)
            return true;
    return false;
}

static bool add_node(path *p, int node)
{
    if (p->n == MOST_NODES)
        return false;
    p->nodes[p->n++] = node;
    return true;
}

static bool add_bytes(path *p, int tensor)
{
    for (int i = 0; i < p->n_tensors; i++)
        if (p->tensors[i] == tensor)
            return true;
    if (p->n_tensors == MOST_TENSORS)
        return false;
    p->tensors[p->n_tensors++] = tensor;
    return true;
}

/* Each value of what it makes comes of the values at that place in its inputs and of numbers. */
static bool works_on_values(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    if (!node->op->is_elementwise || out->dtype != HWNAS_FLOAT32 ||
        hwnas_node_is_whole(graph, node))
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        const hwnas_tensor *in = hwnas_node_input(graph, node, i);
        if (in->kind == HWNAS_TENSOR_WEIGHT ? hwnas_tensor_count(in) != 1
                                            : !hwnas_same_shape(in, out))
            return false;
    }
    return true;
}

/* What makes a tensor of floats, and all before it. */
static bool add_floats(path *p, int tensor)
{
    const hwnas_graph *graph = p->source->graph;
    const int n = graph->tensors[tensor].producer, bytes = hwnas_onednn_behind(p->source, tensor);
    if (n < 0)
        return false;
    if (has(p, n))
        return true;
    if (!add_node(p, n))
        return false;
    if (bytes >= 0)
        return add_bytes(p, bytes);
    const hwnas_node *node = &graph->nodes[n];
    if (!works_on_values(graph, node))
        return false;
    for (int i = 0; i < node->n_inputs; i++)
        if (hwnas_node_input(graph, node, i)->kind != HWNAS_TENSOR_WEIGHT &&
            !add_floats(p, node->inputs[i]))
            return false;
    return true;
}

/* Of several tensors of bytes the last is made of the others, as f(x) is in x f(x) where both are
 * quantised: behind it stands what makes it. That ends in the one that all come of, or fails. */
static bool find_path(path *p, const hwnas_onednn_source *source, int quantize)
{
    const hwnas_graph *graph = source->graph;
    *p = (path){.source = source};
    add_node(p, quantize);
    if (!add_floats(p, graph->nodes[quantize].inputs[0]))
        return false;
    while (p->n_tensors > 1) {
        int last = 0;
        for (int i = 1; i < p->n_tensors; i++)
            if (graph->tensors[p->tensors[i]].producer > graph->tensors[p->tensors[last]].producer)
                last = i;
        const int before = graph->tensors[p->tensors[last]].producer;
        p->tensors[last] = p->tensors[--p->n_tensors];
        if (!add_node(p, before) || !add_floats(p, graph->nodes[before].inputs[0]))
            return false;
    }
    return p->n_tensors == 1;
}

static int n_readings(const hwnas_graph *graph, const path *p, int tensor)
{
    int n = 0;
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < graph->nodes[p->nodes[i]].n_inputs; k++)
            n += graph->nodes[p->nodes[i]].inputs[k] == tensor;
    return n;
}

/* Nobody else reads what a node makes. */
static bool is_inside(const hwnas_fusion *f, const path *p, int node)
{
    const int output = f->graph->nodes[node].output;
    return !f->uses[output].is_output &&
           f->uses[output].n_inputs == n_readings(f->graph, p, output);
}

/* Nodes that are free, and whose results nobody else needs. What dequantises the first bytes may
 * have other readers, since those bytes are there; bytes inside of the path are not. */
static bool may_take(const hwnas_fusion *f, const path *p)
{
    for (int i = 0; i < p->n; i++) {
        const int n = p->nodes[i];
        const hwnas_node *node = &f->graph->nodes[n];
        const bool is_first = node->op->id == HWNAS_OP_DEQUANTIZE_LINEAR &&
                              hwnas_onednn_behind(p->source, node->output) == p->tensors[0];
        if (is_first)
            continue;
        if (f->group_of[n] != HWNAS_FUSION_NO_GROUP || (i > 0 && !is_inside(f, p, n)))
            return false;
    }
    return true;
}

static bool lie_alike(const hwnas_onednn_finder *finder, int a, int b)
{
    return (finder->layouts[a] == HWNAS_ONEDNN_IMAGE) == (finder->layouts[b] == HWNAS_ONEDNN_IMAGE);
}

/* The path of a quantisation that can be a table. */
static bool find_table(path *p, const hwnas_fusion *f, int n)
{
    const hwnas_onednn_finder *finder = hwnas_onednn_finder_of(f);
    const hwnas_node *last = &f->graph->nodes[n];
    return last->op->id == HWNAS_OP_QUANTIZE_LINEAR &&
           hwnas_onednn_is_int8(finder->source, last->output) && !finder->is_refused[n] &&
           hwnas_tensor_count(hwnas_node_input(f->graph, last, 1)) == 1 &&
           find_path(p, finder->source, n) && may_take(f, p) &&
           lie_alike(finder, p->tensors[0], last->output);
}

/* Whether the table of a later quantisation has this one in it, as that of x f(x) has that of f(x)
 * where both are rounded to bytes. Of what stands further apart the smaller table is taken, which
 * costs time alone. */
static bool is_in_larger(const hwnas_fusion *f, int n)
{
    enum { FAR = 2 * MOST_NODES };
    path p;
    for (size_t later = (size_t)n + 1; later < f->graph->n_nodes && later < (size_t)n + FAR;
         later++)
        if (find_table(&p, f, (int)later) && has(&p, n))
            return true;
    return false;
}

bool hwnas_onednn_take_table(hwnas_fusion *f, void *into, int n)
{
    group *g = into;
    path p;
    const hwnas_onednn_finder *finder = hwnas_onednn_finder_of(f);
    const int made = f->graph->nodes[n].output;
    if (!finder->is_refused || !find_table(&p, f, n) || is_in_larger(f, n))
        return false;
    *g = (group){.bias = -1, .scale = -1, .is_table = true, .has_bytes = true};
    g->layout =
        finder->layouts[made] == HWNAS_ONEDNN_IMAGE ? HWNAS_ONEDNN_IMAGE : HWNAS_ONEDNN_PLAIN;
    g->reads[0] = g->reads[1] = p.tensors[0];
    for (int i = 0; i < p.n; i++) {
        const int node = p.nodes[i], output = f->graph->nodes[node].output;
        if (i == 0 || is_inside(f, &p, node))
            hwnas_fusion_take(f, g, node);
        else /* a dequantisation; those that read it here need only the bytes */
            for (int k = n_readings(f->graph, &p, output);
                 k > 0 && g->n_dequantizes < HWNAS_ONEDNN_MAX_DEQUANTIZES; k--)
                g->dequantizes[g->n_dequantizes++] = node;
    }
    g->chain.output = made;
    return true;
}

/* ---- Compiling ---- */

typedef struct table {
    int64_t n; /* bytes of the tensor */
    uint8_t bytes[BYTES];
} table;

/* The nodes in a graph of their own, whose tensors have a value for each byte. */
typedef struct bench {
    const hwnas_graph *from;
    hwnas_graph *graph;
    int *place;     /* by tensor of `from`, in `graph`; -1: not there */
    float **values; /* by tensor of `graph` */
} bench;

/* A number that a node reads. */
static hwnas_status add_number(bench *t, int tensor)
{
    const hwnas_tensor *from = &t->from->tensors[tensor];
    TRY(hwnas_graph_add_weight(&t->place[tensor], t->graph, from->name, 0, NULL, HWNAS_INIT_ZERO,
                               false));
    t->graph->tensors[t->place[tensor]].dtype = from->dtype;
    float *value = t->values[t->place[tensor]] = hwnas_alloc(sizeof *value);
    hwnas_tensor_fill(from, value);
    return HWNAS_OK;
}

/* All bytes, in the order of their bits. */
static hwnas_status add_all_bytes(bench *t, int tensor)
{
    static const int64_t dims[] = {BYTES};
    const bool is_signed = t->from->tensors[tensor].dtype == HWNAS_INT8;
    TRY(hwnas_graph_add_weight(&t->place[tensor], t->graph, "bytes", 1, dims, HWNAS_INIT_ZERO,
                               false));
    t->graph->tensors[t->place[tensor]].dtype = t->from->tensors[tensor].dtype;
    float *values = t->values[t->place[tensor]] = hwnas_alloc(BYTES * sizeof *values);
    for (int i = 0; i < BYTES; i++)
        values[i] = (float)(is_signed ? (int8_t)i : i);
    return HWNAS_OK;
}

static hwnas_status compute_node(bench *t, const hwnas_node *node)
{
    int inputs[HWNAS_MAX_NODE_INPUTS], output;
    const float *operands[HWNAS_MAX_NODE_INPUTS];
    for (int i = 0; i < node->n_inputs; i++) {
        if (t->place[node->inputs[i]] < 0)
            TRY(add_number(t, node->inputs[i]));
        inputs[i] = t->place[node->inputs[i]];
        operands[i] = t->values[inputs[i]];
    }
    TRY(hwnas_graph_add_node(&output, t->graph, node->op, node->name, node->attrs, node->n_inputs,
                             inputs, false));
    t->place[node->output] = output;
    t->values[output] = hwnas_alloc(BYTES * sizeof **t->values);
    node->op->compute(t->graph, &t->graph->nodes[t->graph->n_nodes - 1], operands,
                      t->values[output]);
    return HWNAS_OK;
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static hwnas_status fill(uint8_t bytes[BYTES], const hwnas_graph *graph, path *p)
{
    hwnas_status status = HWNAS_OK;
    const int output = graph->nodes[p->nodes[0]].output;
    enum { MOST = MOST_NODES * (1 + HWNAS_MAX_NODE_INPUTS) + 1 };
    float *values[MOST] = {NULL};
    bench t = {.from = graph, .values = values};
    t.graph = hwnas_graph_new("bytes", 0);
    t.place = hwnas_alloc((graph->n_tensors + 1) * sizeof *t.place);
    for (size_t i = 0; i < graph->n_tensors; i++)
        t.place[i] = -1;
    qsort(p->nodes, (size_t)p->n, sizeof *p->nodes, by_number);
    TRY_OUT(add_all_bytes(&t, p->tensors[0]));
    for (int i = 0; i < p->n; i++)
        TRY_OUT(compute_node(&t, &graph->nodes[p->nodes[i]]));
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)(int)values[t.place[output]][i];
out:
    for (int i = 0; i < MOST; i++)
        free(values[i]);
    free(t.place);
    hwnas_graph_free(t.graph);
    return status;
}

hwnas_status hwnas_onednn_table_compile(hwnas_onednn_step *step, const hwnas_onednn_source *source,
                                        const group *g, hwnas_arena *arena)
{
    path p;
    table *t = step->state = hwnas_alloc(sizeof *t);
    t->n = hwnas_tensor_count(&source->graph->tensors[g->chain.output]);
    step->n_inputs = step->n_outputs = 1;
    step->input_ids = hwnas_arena_copy(arena, g->reads, sizeof *g->reads);
    step->output_ids = hwnas_arena_copy(arena, &g->chain.output, sizeof *step->output_ids);
    if (!find_path(&p, source, g->chain.nodes[0]))
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "'%s' is no function of a byte", step->name);
    return fill(t->bytes, source->graph, &p);
}

/* ---- Running ---- */

#if defined __x86_64__
/* 32 bytes at a time: what each of 16 tables of 16 has for the low half, of which the high half
 * chooses one, bit by bit. 0.135 ns for a byte on Zen 3, where one look-up after the other takes
 * 0.34. */
__attribute__((target("avx2"))) static int64_t look_up_avx2(uint8_t *out, const uint8_t *in,
                                                            int64_t n, const uint8_t *from)
{
    enum { AT_ONCE = 32, TABLES = 16 };
    const __m256i mask = _mm256_set1_epi8(15);
    __m256i tables[TABLES], x[TABLES];
    int64_t i = 0;
    for (int k = 0; k < TABLES; k++)
        tables[k] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(from + 16 * k)));
    for (; i + AT_ONCE <= n; i += AT_ONCE) {
        const __m256i bytes = _mm256_loadu_si256((const __m256i *)(in + i));
        const __m256i low = _mm256_and_si256(bytes, mask);
        for (int k = 0; k < TABLES; k++)
            x[k] = _mm256_shuffle_epi8(tables[k], low);
        /* The bit that is asked for becomes the first of its byte. */
        for (int bit = 3, left = TABLES / 2; bit >= 0; bit--, left /= 2) {
            const __m256i by = _mm256_slli_epi16(bytes, bit);
            for (int k = 0; k < left; k++)
                x[k] = _mm256_blendv_epi8(x[2 * k], x[2 * k + 1], by);
        }
        _mm256_storeu_si256((__m256i *)(out + i), x[0]);
    }
    return i;
}

/* 64 bytes at a time, in two tables of 128. */
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) static int64_t
look_up_vbmi(uint8_t *out, const uint8_t *in, int64_t n, const uint8_t *from)
{
    enum { AT_ONCE = 64 };
    __m512i tables[4];
    int64_t i = 0;
    for (int k = 0; k < 4; k++)
        tables[k] = _mm512_loadu_si512(from + AT_ONCE * k);
    for (; i + AT_ONCE <= n; i += AT_ONCE) {
        const __m512i bytes = _mm512_loadu_si512(in + i);
        const __m512i low = _mm512_permutex2var_epi8(tables[0], bytes, tables[1]);
        const __m512i high = _mm512_permutex2var_epi8(tables[2], bytes, tables[3]);
        _mm512_storeu_si512(out + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(bytes), low, high));
    }
    return i;
}
#endif

void hwnas_onednn_look_up(uint8_t *out, const uint8_t *in, int64_t n, const uint8_t from[BYTES])
{
    int64_t i = 0;
#if defined __x86_64__
    if (__builtin_cpu_supports("avx512vbmi"))
        i = look_up_vbmi(out, in, n, from);
    else if (__builtin_cpu_supports("avx2"))
        i = look_up_avx2(out, in, n, from);
#endif
    for (; i < n; i++)
        out[i] = from[in[i]];
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    enum { PIECE = 1 << 14 };
    const table *t = step->state;
    const uint8_t *in = hwnas_onednn_values(step->inputs[0]);
    uint8_t *out = hwnas_onednn_values(step->outputs[0]);
    const int64_t n_pieces = (t->n + PIECE - 1) / PIECE;
#pragma omp parallel for num_threads(device->threads)                                              \
    schedule(static) if (n_pieces > 1 && device->threads > 1)
    for (int64_t i = 0; i < n_pieces; i++) {
        const int64_t at = i * PIECE, left = t->n - at;
        hwnas_onednn_look_up(out + at, in + at, left < PIECE ? left : PIECE, t->bytes);
    }
    return dnnl_success;
}

const hwnas_onednn_kind hwnas_onednn_byte_tables = {
    .name = "own loops",
    .run = run,
    .free = free,
    .in_place = hwnas_onednn_over_first,
};
