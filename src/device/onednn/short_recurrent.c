/* short_recurrent.c: an LSTM or GRU over one or two sequences, from a state of zeros.
 *
 * The products with the inputs are one matrix product over all steps. What is left for each step is
 * R times the state: 32 units of all gates are summed in registers, and made into the new state
 * before they leave these. For that, the rows of W and R are ordered by such blocks of units, and
 * within a block by gate as ONNX has them: input, output, forget, cell; of a GRU update, reset,
 * hidden. What a GRU's reset is multiplied with has a bias of its own ("linear before reset"). */
#include <omp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device/onednn/group.h"
#include "device/onednn/primitive.h"
#include "device/onednn/simd.h"
#include "graph/op.h"
#include "graph/ops/recurrent.h"

enum { PER_BLOCK = 2, UNITS = PER_BLOCK * HWNAS_LANES, MAX_SEQUENCES = 2 };
enum { INPUT, OUTPUT, FORGET, CELL, LSTM_GATES };
enum { UPDATE, RESET, HIDDEN, GRU_GATES };

typedef struct recurrence {
    hwnas_onednn_primitive product; /* of the inputs with W, biases added */
    int64_t steps, batch, features, hidden, directions;
    int n_gates;       /* LSTM_GATES or GRU_GATES */
    bool is_reverse;   /* the first direction */
    bool is_by_halves; /* sums of eight floats */
    float *recurrent;  /* directions x blocks x hidden x gates x UNITS */
    float *gates;      /* steps x batch x directions x blocks x gates x UNITS */
    float *states;     /* directions x batch x 3 x hidden: h, the next h, c */
    float *inner;      /* of a GRU: directions x hidden, the bias behind its reset */
} recurrence;

bool hwnas_onednn_is_short_recurrent(const hwnas_graph *graph, const hwnas_node *node)
{
    const int64_t *y = hwnas_node_output(graph, node)->dims;
    for (int i = HWNAS_RNN_W; i < node->n_inputs; i++)
        if (hwnas_node_input(graph, node, i)->kind != HWNAS_TENSOR_WEIGHT)
            return false;
    return y[2] <= MAX_SEQUENCES && y[3] % UNITS == 0;
}

static hwnas_status take(float **out, int64_t n, hwnas_onednn_step *step)
{
    void *buffer;
    const size_t bytes = (size_t)n * sizeof **out;
    TRY(hwnas_try_alloc(&buffer, bytes, step->name));
    *out = buffer;
    step->bytes += bytes;
    return HWNAS_OK;
}

/* Where the row of a unit's gate stands in our order. */
static int64_t place_of(const recurrence *l, int64_t direction, int64_t gate, int64_t unit)
{
    const int64_t blocks = l->hidden / UNITS;
    return ((direction * blocks + unit / UNITS) * l->n_gates + gate) * UNITS + unit % UNITS;
}

/* Calls for each row of W, R or the biases: its place in ours, and where it is in ONNX's. */
#define EACH_ROW(l, to, from)                                                                      \
    for (int64_t d_ = 0, from = 0; d_ < (l)->directions; d_++)                                     \
        for (int64_t g_ = 0; g_ < (l)->n_gates; g_++)                                              \
            for (int64_t u_ = 0, to; u_ < (l)->hidden && (to = place_of(l, d_, g_, u_), true);     \
                 u_++, from++)

/* R, its columns one after the other within a block. */
static hwnas_status order_recurrent(recurrence *l, hwnas_onednn_step *step,
                                    const hwnas_tensor *tensor)
{
    void *given;
    const int64_t row = l->n_gates * UNITS;
    TRY(hwnas_try_alloc(&given, (size_t)hwnas_tensor_bytes(tensor), step->name));
    hwnas_tensor_fill(tensor, given);
    const float *values = given;
    EACH_ROW(l, to, from)
    for (int64_t k = 0; k < l->hidden; k++)
        l->recurrent[to / row * row * l->hidden + k * row + to % row] =
            values[from * l->hidden + k];
    free(given);
    return HWNAS_OK;
}

/* W with its rows in our order, and the sum of both biases; the one of a GRU's hidden gate and the
 * state stays by itself. */
static hwnas_status order_inputs(recurrence *l, float *w, float *b, const hwnas_graph *graph,
                                 const hwnas_node *node)
{
    const hwnas_tensor *tensor = hwnas_node_input(graph, node, HWNAS_RNN_W);
    const int64_t n = l->n_gates * l->hidden;
    void *given;
    TRY(hwnas_try_alloc(&given, (size_t)hwnas_tensor_bytes(tensor), node->name));
    hwnas_tensor_fill(tensor, given);
    EACH_ROW(l, to, from)
    memcpy(w + to * l->features, (float *)given + from * l->features,
           (size_t)l->features * sizeof *w);
    free(given);
    if (node->n_inputs <= HWNAS_RNN_B)
        return HWNAS_OK;
    tensor = hwnas_node_input(graph, node, HWNAS_RNN_B);
    TRY(hwnas_try_alloc(&given, (size_t)hwnas_tensor_bytes(tensor), node->name));
    hwnas_tensor_fill(tensor, given);
    const float *values = given;
    EACH_ROW(l, to, from)
    {
        const int64_t at = from / n * 2 * n + from % n;
        const bool is_inner = l->inner && g_ == HIDDEN;
        b[to] = values[at] + (is_inner ? 0 : values[at + n]);
        if (is_inner)
            l->inner[d_ * l->hidden + u_] = values[at + n];
    }
    free(given);
    return HWNAS_OK;
}

typedef struct product {
    dnnl_memory_desc_t in, weights, given, bias, out;
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t desc;
} product;

/* W's rows are results. With AVX2 the product is a convolution, as in group.c: rows are pixels. */
static hwnas_status describe_product(product *p, const recurrence *l, const onednn_device *device,
                                     const char *name)
{
    const bool is_by_conv = hwnas_onednn_ends_at_avx2();
    const int64_t rows = l->steps * l->batch, n_out = l->directions * l->n_gates * l->hidden;
    const dnnl_dims_t in = {rows, l->features}, image = {1, l->features, 1, rows};
    const dnnl_dims_t w = {l->features, n_out}, kernel = {n_out, l->features, 1, 1};
    const dnnl_dims_t out = {rows, n_out}, out_image = {1, n_out, 1, rows};
    const dnnl_dims_t bias = {is_by_conv ? n_out : 1, n_out}, none = {0}, one = {1, 1};
    const int rank = is_by_conv ? 4 : 2;
    const dnnl_format_tag_t lies = is_by_conv ? dnnl_acdb : dnnl_ab;
    TRY(hwnas_onednn_attr(&p->attr, name));
    TRY(hwnas_onednn_describe_floats(&p->in, name, rank, is_by_conv ? image : in, lies));
    TRY(hwnas_onednn_describe_floats(&p->out, name, rank, is_by_conv ? out_image : out, lies));
    TRY(hwnas_onednn_describe_floats(&p->weights, name, rank, is_by_conv ? kernel : w,
                                     dnnl_format_tag_any));
    TRY(hwnas_onednn_describe_floats(&p->given, name, rank, is_by_conv ? kernel : w,
                                     is_by_conv ? dnnl_abcd : dnnl_ba));
    TRY(hwnas_onednn_describe_floats(&p->bias, name, is_by_conv ? 1 : 2, bias,
                                     is_by_conv ? dnnl_a : dnnl_ab));
    return hwnas_onednn_status(
        is_by_conv ? dnnl_convolution_forward_primitive_desc_create(
                         &p->desc, device->engine, dnnl_forward_inference, dnnl_convolution_direct,
                         p->in, p->weights, p->bias, p->out, one, none, none, none, p->attr)
                   : dnnl_matmul_primitive_desc_create(&p->desc, device->engine, p->in, p->weights,
                                                       p->bias, p->out, p->attr),
        "describe", name);
}

/* The product of the inputs with W. */
static hwnas_status make_product(recurrence *l, hwnas_onednn_step *step,
                                 const onednn_device *device, const float *w, const float *b)
{
    hwnas_status status = HWNAS_OK;
    hwnas_onednn_primitive *p = &l->product;
    product made = {0};
    p->name = step->name;
    p->device = device;
    TRY_OUT(describe_product(&made, l, device, p->name));
    TRY_OUT(hwnas_onednn_primitive_init(p, made.desc));
    TRY_OUT(hwnas_onednn_primitive_add(p, DNNL_ARG_SRC, made.in));
    TRY_OUT(hwnas_onednn_primitive_add(p, DNNL_ARG_DST, made.out));
    TRY_OUT(hwnas_onednn_primitive_add_weights(
        p, DNNL_ARG_WEIGHTS, dnnl_primitive_desc_query_md(made.desc, dnnl_query_weights_md, 0), w,
        made.given));
    TRY_OUT(hwnas_onednn_primitive_add_weights(p, DNNL_ARG_BIAS, made.bias, b, made.bias));
    step->bytes += p->bytes;
out:
    dnnl_primitive_desc_destroy(made.desc);
    dnnl_primitive_attr_destroy(made.attr);
    dnnl_memory_desc_destroy(made.in);
    dnnl_memory_desc_destroy(made.weights);
    dnnl_memory_desc_destroy(made.given);
    dnnl_memory_desc_destroy(made.bias);
    dnnl_memory_desc_destroy(made.out);
    return status;
}

static hwnas_status compile(hwnas_onednn_step *step, const onednn_device *device,
                            const hwnas_graph *graph, const hwnas_node *node)
{
    hwnas_status status = HWNAS_OK;
    const int64_t *x = hwnas_node_input(graph, node, HWNAS_RNN_X)->dims;
    const int64_t *y = hwnas_node_output(graph, node)->dims;
    recurrence *l = step->state = hwnas_alloc(sizeof *l);
    void *w = NULL, *b = NULL;
    *l = (recurrence){
        .steps = x[0], .batch = x[1], .features = x[2], .hidden = y[3], .directions = y[1]};
    l->is_by_halves = hwnas_onednn_ends_at_avx2();
    l->n_gates = node->op->id == HWNAS_OP_GRU_CORE ? GRU_GATES : LSTM_GATES;
    l->is_reverse = node->attrs[HWNAS_RNN_DIRECTION].ints[0] == HWNAS_RNN_REVERSE;
    const int64_t rows = l->directions * l->n_gates * l->hidden;
    TRY_OUT(take(&l->recurrent, rows * l->hidden, step));
    TRY_OUT(take(&l->gates, l->steps * l->batch * rows, step));
    if (l->n_gates == GRU_GATES)
        TRY_OUT(take(&l->inner, l->directions * l->hidden, step));
    TRY_OUT(take(&l->states, l->directions * l->batch * 3 * l->hidden, step));
    TRY_OUT(hwnas_try_alloc(&w, (size_t)(rows * l->features) * sizeof(float), step->name));
    TRY_OUT(hwnas_try_alloc(&b, (size_t)rows * sizeof(float), step->name));
    TRY_OUT(order_recurrent(l, step, hwnas_node_input(graph, node, HWNAS_RNN_R)));
    TRY_OUT(order_inputs(l, w, b, graph, node));
    TRY_OUT(make_product(l, step, device, w, b));
    step->n_inputs = 1; /* the weights are ours now */
out:
    free(w);
    free(b);
    return status;
}

/* Adds R's rows of one block times the state to `sums`: `n` vectors for each of its columns. */
HWNAS_INLINE void add_whole_products(hwnas_vector *sums, const float *recurrent, const float *h,
                                     int64_t hidden, int n)
{
    hwnas_vector w;
    for (int64_t k = 0; k < hidden; k++, recurrent += n * HWNAS_LANES)
        for (int i = 0; i < n; i++) {
            hwnas_load(&w, recurrent + i * HWNAS_LANES);
            sums[i] += w * h[k];
        }
}

/* The same with the registers of AVX2, which hold half as much and are half as many: first one half
 * of the sums, then the other. */
HWNAS_INLINE void add_products_by_halves(hwnas_vector *sums, const float *recurrent, const float *h,
                                         int64_t hidden, int n)
{
    enum { MOST = LSTM_GATES * PER_BLOCK };
    hwnas_half *all = (hwnas_half *)sums, some[MOST];
    for (int first = 0; first < 2 * n; first += n) {
        for (int i = 0; i < n; i++)
            some[i] = all[first + i];
        for (int64_t k = 0; k < hidden; k++) {
            const hwnas_half *w = (const hwnas_half *)(recurrent + k * n * HWNAS_LANES) + first;
            for (int i = 0; i < n; i++)
                some[i] += w[i] * h[k];
        }
        for (int i = 0; i < n; i++)
            all[first + i] = some[i];
    }
}

HWNAS_INLINE void add_products(hwnas_vector *sums, const float *recurrent, const float *h,
                               int64_t hidden, int n, bool is_by_halves)
{
    if (is_by_halves)
        add_products_by_halves(sums, recurrent, h, hidden, n);
    else
        add_whole_products(sums, recurrent, h, hidden, n);
}

/* One block of units: the next state of the gates' sums. `out` may be the output's row. */
HWNAS_INLINE void run_lstm_block(float *next, float *c, float *out, const float *gates,
                                 const float *recurrent, const float *h, int64_t hidden,
                                 bool is_by_halves)
{
    enum { N = LSTM_GATES * PER_BLOCK };
    hwnas_vector sums[N], x, state;
    for (int i = 0; i < N; i++)
        hwnas_load(&sums[i], gates + i * HWNAS_LANES);
    add_products(sums, recurrent, h, hidden, N, is_by_halves);
    for (int i = 0; i < PER_BLOCK; i++) {
        hwnas_vector gate[LSTM_GATES];
        for (int g = 0; g < CELL; g++)
            hwnas_sigmoid(&gate[g], &sums[g * PER_BLOCK + i]);
        hwnas_tanh(&gate[CELL], &sums[CELL * PER_BLOCK + i]);
        hwnas_load(&state, c + i * HWNAS_LANES);
        state = gate[FORGET] * state + gate[INPUT] * gate[CELL];
        hwnas_store(c + i * HWNAS_LANES, &state);
        hwnas_tanh(&x, &state);
        x = gate[OUTPUT] * x;
        hwnas_store(next + i * HWNAS_LANES, &x);
        hwnas_store(out + i * HWNAS_LANES, &x);
    }
}

/* The same of a GRU; `at` is the block's first unit. */
HWNAS_INLINE void run_gru_block(float *next, float *out, const float *inner, const float *gates,
                                const float *recurrent, const float *h, int64_t hidden, int64_t at,
                                bool is_by_halves)
{
    enum { N = GRU_GATES * PER_BLOCK };
    hwnas_vector sums[N], given, last;
    for (int i = 0; i < N; i++)
        hwnas_load(&sums[i], i < HIDDEN * PER_BLOCK ? gates + i * HWNAS_LANES
                                                    : inner + i * HWNAS_LANES - HIDDEN * UNITS);
    add_products(sums, recurrent, h, hidden, N, is_by_halves);
    for (int i = 0; i < PER_BLOCK; i++) {
        hwnas_vector update, reset, made;
        hwnas_sigmoid(&update, &sums[UPDATE * PER_BLOCK + i]);
        hwnas_sigmoid(&reset, &sums[RESET * PER_BLOCK + i]);
        hwnas_load(&given, gates + HIDDEN * UNITS + i * HWNAS_LANES);
        made = given + reset * sums[HIDDEN * PER_BLOCK + i];
        hwnas_tanh(&made, &made);
        hwnas_load(&last, h + at + i * HWNAS_LANES);
        made += update * (last - made);
        hwnas_store(next + i * HWNAS_LANES, &made);
        hwnas_store(out + i * HWNAS_LANES, &made);
    }
}

/* Where the threads of a team wait for each other after each step. The barrier of GNU's OpenMP
 * calls the kernel each time, even if nobody sleeps: 1.2 us for 0.05 on a Zen 5 guest, where a step
 * takes two. */
typedef struct meeting {
    _Alignas(64) atomic_int arrived;
    _Alignas(64) atomic_int round;
    int all;
} meeting;

static void meet(meeting *m)
{
    enum { PATIENCE = 1 << 12 }; /* then the thread that we wait for may want our processor */
    const int round = atomic_load_explicit(&m->round, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&m->arrived, 1, memory_order_acq_rel) == m->all - 1) {
        atomic_store_explicit(&m->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&m->round, round + 1, memory_order_release);
        return;
    }
    for (int i = 0; atomic_load_explicit(&m->round, memory_order_acquire) == round; i++)
        if (i >= PATIENCE)
            sched_yield();
}

/* All steps of one sequence in one direction, of the units from `first` to `end`. Where other
 * threads of a team have the others, they meet after each step; NULL: this thread has all. */
HWNAS_CLONES static void run_sequence(const recurrence *l, float *y, int64_t which, int64_t first,
                                      int64_t end, meeting *others)
{
    const int64_t direction = which / l->batch, sequence = which % l->batch;
    const int64_t hidden = l->hidden, row = l->n_gates * hidden;
    float *h = l->states + which * 3 * hidden, *next = h + hidden;
    float *c = next + hidden;
    const bool is_reverse = direction ? true : l->is_reverse;
    for (int64_t i = 0; i < l->steps; i++) {
        const int64_t t = is_reverse ? l->steps - 1 - i : i;
        const float *gates =
            l->gates + ((t * l->batch + sequence) * l->directions + direction) * row;
        float *out = y + ((t * l->directions + direction) * l->batch + sequence) * hidden;
        for (int64_t u = first; u < end; u += UNITS) {
            const float *r = l->recurrent + direction * row * hidden + l->n_gates * u * hidden;
            if (l->inner)
                run_gru_block(next + u, out + u, l->inner + direction * hidden + u,
                              gates + GRU_GATES * u, r, h, hidden, u, l->is_by_halves);
            else
                run_lstm_block(next + u, c + u, out + u, gates + LSTM_GATES * u, r, h, hidden,
                               l->is_by_halves);
        }
        float *const last = h;
        h = next;
        next = last;
        if (others)
            meet(others);
    }
}

/* How many threads share a sequence: so many that each has some microseconds of products between
 * two steps. */
static int threads_of_sequence(const recurrence *l, int threads)
{
    enum { LEAST_PRODUCTS = 1 << 14 };
    const int64_t of_work = l->n_gates * l->hidden * l->hidden / LEAST_PRODUCTS;
    const int64_t most = of_work < l->hidden / UNITS ? of_work : l->hidden / UNITS;
    return most < threads ? (int)most : threads;
}

static void run_sequences(const recurrence *l, float *y, int threads)
{
    const int64_t n = l->directions * l->batch, blocks = l->hidden / UNITS;
    const int sharing = n == 1 ? threads_of_sequence(l, threads) : 1;
    memset(l->states, 0, (size_t)(n * 3 * l->hidden) * sizeof *l->states);
    if (sharing > 1) {
        meeting team = {.all = 1};
#pragma omp parallel num_threads(sharing)
        {
            const int64_t i = omp_get_thread_num(), all = omp_get_num_threads();
#pragma omp single
            team.all = (int)all;
            run_sequence(l, y, 0, i * blocks / all * UNITS, (i + 1) * blocks / all * UNITS, &team);
        }
        return;
    }
#pragma omp parallel for num_threads(threads) if (n > 1 && threads > 1)
    for (int64_t i = 0; i < n; i++)
        run_sequence(l, y, i, 0, l->hidden, NULL);
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    const recurrence *l = step->state;
    void *const values[] = {hwnas_onednn_values(step->inputs[0]), l->gates};
    dnnl_status_t status = hwnas_onednn_primitive_run(&l->product, 2, values);
    if (status == dnnl_success)
        status = dnnl_stream_wait(device->stream);
    if (status == dnnl_success)
        run_sequences(l, hwnas_onednn_values(step->outputs[0]), device->threads);
    return status;
}

static void free_short(void *state)
{
    recurrence *l = state;
    if (!l)
        return;
    hwnas_onednn_primitive_done(&l->product);
    free(l->recurrent);
    free(l->gates);
    free(l->states);
    free(l->inner);
    free(l);
}

const hwnas_onednn_kind hwnas_onednn_short_recurrent = {
    .name = "own loops",
    .compile = compile,
    .run = run,
    .free = free_short,
};
