/* onnx_read_recurrent.c: LSTM, GRU and RNN in all forms that the cores do not compute: from a given
 * state, with the last cell's state, lengths, peepholes or other activations. Each step is nodes of
 * its own. */
#include <math.h>
#include <string.h>

#include "onnx/onnx_build.h"

enum { MAX_STEPS = 4096, X = 0, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES };
enum { RNN = 1, GRU = 3, LSTM = 4 }; /* by their gates */

typedef hwnas_onnx_builder builder;

typedef struct rnn {
    int kind;
    int64_t steps, batch, hidden, directions;
    bool is_linear_first; /* GRU: the reset gate comes after the product */
    bool has_lengths;     /* less than all steps, or computed */
    const float *lengths; /* that are known; NULL: they are computed */
    int computed_lengths; /* batch x 1 */
    double clip;          /* of what goes into an activation; infinite: none */
    hwnas_op_id activations[6];
    int zero;
} rnn;

/* What is the same in each step of a direction. */
typedef struct direction {
    int x; /* W x and the biases, steps x batch x gates*hidden */
    int r; /* transposed */
    int reset_bias;   /* GRU: of the candidate, where it is linear first; -1 for none */
    int peephole[3];  /* input, output, forget; -1 for none */
    const hwnas_op_id *activations;
} direction;

typedef struct state {
    int h, c;
} state;

/* Part `d` of the first axis, of which nothing is left. */
static int part(builder *b, int x, int64_t d)
{
    x = hwnas_onnx_cut(b, x, 0, d, d + 1, 1);
    const hwnas_tensor in = hwnas_onnx_tensor(b, x);
    return hwnas_onnx_reshape(b, x, in.rank - 1, in.dims + 1);
}

static int gates(builder *b, int x, const rnn *n, int64_t begin, int64_t end)
{
    return hwnas_onnx_cut(b, x, 1, begin * n->hidden, end * n->hidden, 1);
}

static int add(builder *b, int x, int y)
{
    return hwnas_onnx_make(b, HWNAS_OP_ADD, NULL, x, y);
}

static int mul(builder *b, int x, int y)
{
    return hwnas_onnx_make(b, HWNAS_OP_MUL, NULL, x, y);
}

static int activate(builder *b, const rnn *n, hwnas_op_id op, int x)
{
    const hwnas_attr bounds[] = {hwnas_attr_number(-n->clip), hwnas_attr_number(n->clip)};
    if (n->clip < INFINITY)
        x = hwnas_onnx_make(b, HWNAS_OP_CLIP, bounds, x, -1);
    return hwnas_onnx_make(b, op, NULL, x, -1);
}

static state step_lstm(builder *b, const rnn *n, const direction *d, int x, state s)
{
    const int all = add(b, x, hwnas_onnx_make(b, HWNAS_OP_MATMUL, NULL, s.h, d->r));
    int g[4];
    for (int i = 0; i < 4; i++)
        g[i] = gates(b, all, n, i, i + 1);
    for (int i = 0; i <= 2; i += 2)
        if (d->peephole[i] >= 0)
            g[i] = add(b, g[i], mul(b, d->peephole[i], s.c));
    const int in = activate(b, n, d->activations[0], g[0]),
              forget = activate(b, n, d->activations[0], g[2]);
    const int c = add(b, mul(b, forget, s.c), mul(b, in, activate(b, n, d->activations[1], g[3])));
    if (d->peephole[1] >= 0)
        g[1] = add(b, g[1], mul(b, d->peephole[1], c));
    /* What clips is gates alone, as in ONNX Runtime. */
    const int open = hwnas_onnx_make(b, d->activations[2], NULL, c, -1);
    return (state){mul(b, activate(b, n, d->activations[0], g[1]), open), c};
}

static state step_gru(builder *b, const rnn *n, const direction *d, int x, state s)
{
    const int r_gates = hwnas_onnx_cut(b, d->r, 1, 0, 2 * n->hidden, 1);
    const int r_new = hwnas_onnx_cut(b, d->r, 1, 2 * n->hidden, 3 * n->hidden, 1);
    const int both = activate(
        b, n, d->activations[0],
        add(b, gates(b, x, n, 0, 2), hwnas_onnx_make(b, HWNAS_OP_MATMUL, NULL, s.h, r_gates)));
    const int update = gates(b, both, n, 0, 1), reset = gates(b, both, n, 1, 2);
    int new = hwnas_onnx_make(b, HWNAS_OP_MATMUL, NULL,
                              n->is_linear_first ? s.h : mul(b, reset, s.h), r_new);
    if (n->is_linear_first)
        new = mul(b, reset, d->reset_bias < 0 ? new : add(b, new, d->reset_bias));
    new = activate(b, n, d->activations[1], add(b, gates(b, x, n, 2, 3), new));
    const int old = hwnas_onnx_make(b, HWNAS_OP_SUB, NULL, s.h, new);
    return (state){add(b, new, mul(b, update, old)), s.c};
}

static state step_rnn(builder *b, const rnn *n, const direction *d, int x, state s)
{
    return (state){activate(b, n, d->activations[0],
                            add(b, x, hwnas_onnx_make(b, HWNAS_OP_MATMUL, NULL, s.h, d->r))),
                   s.c};
}

/* 1 for each sequence that has a step `t`. */
static int mask_of(builder *b, const rnn *n, int64_t t)
{
    int mask;
    if (!n->lengths)
        return hwnas_onnx_make(b, HWNAS_OP_LESS, NULL, hwnas_onnx_number(b, (double)t, HWNAS_INT64),
                               n->computed_lengths);
    float *values = hwnas_onnx_values_of(&mask, b, 2, (int64_t[]){n->batch, 1}, HWNAS_BOOL);
    for (int64_t i = 0; values && i < n->batch; i++)
        values[i] = (float)t < n->lengths[i];
    return mask;
}

static int choose(builder *b, int mask, int x, int otherwise)
{
    return hwnas_onnx_make_n(b, HWNAS_OP_WHERE, NULL, 3, (const int[]){mask, x, otherwise});
}

/* All steps of a direction: the last state, and steps x 1 x batch x hidden. */
static state run(int *all, builder *b, const rnn *n, const direction *d, state s, bool is_reverse)
{
    int *each = hwnas_arena_alloc(b->r->graph->arena, (size_t)n->steps * sizeof *each);
    for (int64_t i = 0; i < n->steps && b->status == HWNAS_OK; i++) {
        const int64_t t = is_reverse ? n->steps - 1 - i : i;
        const int x = part(b, d->x, t);
        const state next = n->kind == LSTM  ? step_lstm(b, n, d, x, s)
                           : n->kind == GRU ? step_gru(b, n, d, x, s)
                                            : step_rnn(b, n, d, x, s);
        int y = next.h;
        if (n->has_lengths) {
            const int mask = mask_of(b, n, t);
            s.h = choose(b, mask, next.h, s.h);
            s.c = n->kind == LSTM ? choose(b, mask, next.c, s.c) : s.c;
            y = choose(b, mask, y, n->zero);
        } else {
            s = next;
        }
        each[t] = hwnas_onnx_reshape(b, y, 4, (int64_t[]){1, 1, n->batch, n->hidden});
    }
    *all = b->status == HWNAS_OK ? hwnas_onnx_concat(b, (int)n->steps, each, 0) : b->fallback;
    return s;
}

/* Biases of W and of R, which are added to W x but for what a reset gate comes before. */
static int add_biases(int *reset_bias, builder *b, const rnn *n, int x, int64_t d)
{
    *reset_bias = -1;
    if (!hwnas_onnx_has_input(b->node, B))
        return x;
    const int all = part(b, hwnas_onnx_build_input(b, B), d);
    const int64_t rows = n->kind * n->hidden, last = 2 * rows - n->hidden;
    x = add(b, x, hwnas_onnx_cut(b, all, 0, 0, rows, 1));
    int own = hwnas_onnx_cut(b, all, 0, rows, 2 * rows, 1);
    if (n->kind == GRU && n->is_linear_first) {
        *reset_bias = hwnas_onnx_cut(b, all, 0, last, 2 * rows, 1);
        own = hwnas_onnx_pad(b, hwnas_onnx_cut(b, all, 0, rows, last, 1), 0, 0, n->hidden, 0, 0);
    }
    return add(b, x, own);
}

static direction make_direction(builder *b, const rnn *n, int x, int64_t d)
{
    const int64_t swap[] = {1, 0};
    direction made = {.peephole = {-1, -1, -1}};
    const int w = hwnas_onnx_transpose(b, part(b, hwnas_onnx_build_input(b, W), d), 2, swap);
    made.x = add_biases(&made.reset_bias, b, n, hwnas_onnx_make(b, HWNAS_OP_MATMUL, NULL, x, w), d);
    made.r = hwnas_onnx_transpose(b, part(b, hwnas_onnx_build_input(b, R), d), 2, swap);
    if (n->kind == LSTM && hwnas_onnx_has_input(b->node, PEEPHOLES)) {
        const int all = part(b, hwnas_onnx_build_input(b, PEEPHOLES), d);
        for (int64_t i = 0; i < 3; i++)
            made.peephole[i] = hwnas_onnx_cut(b, all, 0, i * n->hidden, (i + 1) * n->hidden, 1);
    }
    made.activations = n->activations + d * (n->kind == LSTM ? 3 : n->kind == GRU ? 2 : 1);
    return made;
}

/* Activations of each direction. */
static void read_activations(rnn *n, builder *b)
{
    static const hwnas_op_id known[] = {HWNAS_OP_SIGMOID, HWNAS_OP_TANH, HWNAS_OP_RELU,
                                        HWNAS_OP_SOFTSIGN, HWNAS_OP_SOFTPLUS};
    const Onnx__AttributeProto *given = hwnas_onnx_attribute(b->node, "activations");
    const int each = n->kind == LSTM ? 3 : n->kind == GRU ? 2 : 1;
    for (int i = 0; i < 2 * each; i++)
        n->activations[i] = i % each || n->kind == RNN ? HWNAS_OP_TANH : HWNAS_OP_SIGMOID;
    if (given && given->n_strings != (size_t)(each * n->directions)) {
        hwnas_onnx_refuse(b, "activations", "are not those of each direction");
        return;
    }
    for (size_t i = 0; given && i < given->n_strings; i++) {
        bool is_found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            const char *name = hwnas_ops[known[k]]->onnx;
            if (given->strings[i].len != strlen(name) ||
                memcmp(given->strings[i].data, name, given->strings[i].len))
                continue;
            n->activations[i] = known[k];
            is_found = true;
        }
        if (!is_found)
            hwnas_onnx_refuse(b, "activations", "name one that we cannot compute");
    }
}

static int initial(builder *b, const rnn *n, size_t input, int64_t d, bool is_batch_first)
{
    if (!hwnas_onnx_has_input(b->node, input))
        return n->zero;
    int all = hwnas_onnx_build_input(b, input);
    if (is_batch_first)
        all = hwnas_onnx_transpose(b, all, 3, (int64_t[]){1, 0, 2});
    return part(b, all, d);
}

/* How many steps each sequence has. */
static void read_lengths(rnn *n, builder *b)
{
    if (!hwnas_onnx_has_input(b->node, LENGTHS))
        return;
    const hwnas_tensor *known = NULL;
    const int given = hwnas_onnx_build_input(b, LENGTHS);
    if (b->status == HWNAS_OK)
        b->status = hwnas_onnx_constant(&known, b->r, b->node->input[LENGTHS],
                                        hwnas_onnx_describe(b->node).s);
    if (b->status != HWNAS_OK)
        return;
    const hwnas_tensor lengths = hwnas_onnx_tensor(b, given);
    if (hwnas_tensor_count(&lengths) != n->batch || !hwnas_dtype_is_whole(lengths.dtype)) {
        hwnas_onnx_refuse(b, "sequence_lens", "are not one for each sequence");
        return;
    }
    n->lengths = known ? known->data : NULL;
    n->has_lengths = !known;
    for (int64_t i = 0; known && i < n->batch; i++)
        n->has_lengths |= n->lengths[i] < (float)n->steps;
    if (!known)
        n->computed_lengths = hwnas_onnx_cast(
            b, hwnas_onnx_reshape(b, given, 2, (int64_t[]){n->batch, 1}), HWNAS_INT64);
}

static bool check(rnn *n, builder *b, const hwnas_tensor *x)
{
    static const char *const refused[] = {"input_forget", "activation_alpha", "activation_beta"};
    const hwnas_tensor r = hwnas_onnx_tensor(b, hwnas_onnx_build_input(b, R));
    const bool is_both = hwnas_onnx_is_word(b->node, "direction", "bidirectional", false);
    *n = (rnn){.kind = !strcmp(b->node->op_type, "LSTM")  ? LSTM
                       : !strcmp(b->node->op_type, "GRU") ? GRU
                                                          : RNN,
               .directions = is_both ? 2 : 1,
               .clip = hwnas_onnx_float(b->node, "clip", INFINITY),
               .is_linear_first = hwnas_onnx_int(b->node, "linear_before_reset", 0)};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (hwnas_onnx_attribute(b->node, refused[i]) &&
            (i || hwnas_onnx_int(b->node, refused[i], 0)))
            hwnas_onnx_refuse(b, refused[i], "has a value that we cannot compute");
    if (x->rank != 3 || r.rank != 3 || r.dims[0] != n->directions) {
        hwnas_onnx_refuse(b, "R", "does not fit the input");
        return false;
    }
    n->steps = x->dims[0];
    n->batch = x->dims[1];
    n->hidden = r.dims[2];
    if (n->steps * n->directions > MAX_STEPS)
        hwnas_onnx_refuse(b, "X", "has more steps than we compute one by one, which are 4096");
    if (!(n->clip >= 0))
        hwnas_onnx_refuse(b, "clip", "is less than 0");
    read_lengths(n, b);
    read_activations(n, b);
    return b->status == HWNAS_OK;
}

/* Of three dimensions, as four would be an image whose channels are joined: that is oneDNN's, which
 * then looks at all steps for what it may fuse, for seconds. */
static int join_directions(builder *b, const rnn *n, const int *y)
{
    int flat[2];
    for (int d = 0; d < 2; d++)
        flat[d] = hwnas_onnx_reshape(b, y[d], 3, (int64_t[]){n->steps, 1, n->batch * n->hidden});
    return hwnas_onnx_reshape(b, hwnas_onnx_concat(b, 2, flat, 1), 4,
                              (int64_t[]){n->steps, 2, n->batch, n->hidden});
}

hwnas_status hwnas_onnx_read_steps(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                   const char *name)
{
    const bool is_batch_first = hwnas_onnx_int(node, "layout", 0);
    builder b;
    rnn n;
    state last[2] = {0};
    int x, y[2] = {0}, zeros;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    if (is_batch_first)
        x = hwnas_onnx_transpose(&b, x, 3, (int64_t[]){1, 0, 2});
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    if (!check(&n, &b, &in))
        return hwnas_onnx_built(out, &b, x);
    (void)hwnas_onnx_values_of(&zeros, &b, 2, (int64_t[]){n.batch, n.hidden}, HWNAS_FLOAT32);
    n.zero = zeros;
    for (int64_t d = 0; d < n.directions; d++) {
        const bool is_reverse = d == 1 || hwnas_onnx_is_word(node, "direction", "reverse", false);
        const direction made = make_direction(&b, &n, x, d);
        const state first = {initial(&b, &n, INITIAL_H, d, is_batch_first),
                             initial(&b, &n, INITIAL_C, d, is_batch_first)};
        last[d] = run(&y[d], &b, &n, &made, first, is_reverse);
    }
    for (size_t o = 1; o < 3 && o < node->n_output && b.status == HWNAS_OK; o++) {
        int ends[2];
        if (is_empty(node->output[o]))
            continue;
        for (int64_t d = 0; d < n.directions; d++)
            ends[d] = hwnas_onnx_reshape(&b, o == 1 ? last[d].h : last[d].c, 3,
                                         (int64_t[]){1, n.batch, n.hidden});
        int given = n.directions == 1 ? ends[0] : hwnas_onnx_concat(&b, 2, ends, 0);
        if (is_batch_first)
            given = hwnas_onnx_transpose(&b, given, 3, (int64_t[]){1, 0, 2});
        if (b.status == HWNAS_OK)
            TRY(hwnas_onnx_give(r, node->output[o], given));
    }
    int all = n.directions == 1 ? y[0] : join_directions(&b, &n, y);
    if (is_batch_first && !is_empty(node->output[0]))
        all = hwnas_onnx_transpose(&b, all, 4, (int64_t[]){2, 0, 1, 3});
    return hwnas_onnx_built(out, &b, all);
}
