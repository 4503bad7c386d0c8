/* random_operators.c: operators and blocks of them; each makes a step of `x`, or -1. */
#include "tests/fuzz/random_recipe.h"

#include <stdlib.h>
#include <string.h>

static int make_function(maker *m, int x)
{
    static const char *const plain[] = {"relu",       "sigmoid",      "tanh", "hard_swish", "gelu",
                                        "leaky_relu", "hard_sigmoid", "erf",  "abs",        "relu",
                                        "softsign",   "neg",          "mish"};
    switch (random_below(m, 12)) {
    case 0:
        return random_node(m, "clip", x, -1, "low=-0.5 high=0.75");
    case 1:
        return random_node(m, "gelu", x, -1, "tanh=1");
    case 2:
        return random_function(m, "exp", random_function(m, "tanh", x));
    case 3:
        return random_function(m, "sqrt", random_function(m, "sigmoid", x));
    case 4:
        return random_join(m, "mul", x, random_function(m, "sigmoid", x));
    case 5:
        return random_join(m, "mul", random_function(m, "hard_sigmoid", x), x);
    case 6:
        return random_node(m, "scale", x, -1, "by=0.3");
    }
    return random_function(m, ONE_OF(m, plain), x);
}

static int make_conv(maker *m, int x)
{
    static const int outs[] = {1, 3, 4, 8, 16, 17};
    const int channels = (int)random_dims(m, x)[1], bias = random_below(m, 2),
              out = ONE_OF(m, outs);
    switch (random_below(m, 6)) {
    case 0:
        return random_node(m, "conv", x, -1, "out=%d kernel=3 pad=1 bias=%d", out, bias);
    case 1:
        return random_node(m, "conv", x, -1, "out=%d kernel=3 pad=1 stride=2 bias=%d", out, bias);
    case 2:
        return random_node(m, "conv", x, -1, "out=%d kernel=3 pad=1 groups=%d bias=%d", channels,
                           channels, bias);
    case 3:
        return random_node(m, "conv", x, -1, "out=8 kernel=3 pad=2 dilation=2 groups=2");
    }
    return random_node(m, "conv", x, -1, "out=%d bias=%d", out, bias);
}

static int make_pool(maker *m, int x)
{
    const char *op = random_maybe(m, 50) ? "max_pool" : "avg_pool";
    switch (random_below(m, 4)) {
    case 0:
        return random_node(m, op, x, -1, "kernel=2 stride=2");
    case 1:
        return random_node(m, op, x, -1, "kernel=3 pad=1");
    case 2:
        return random_node(m, "avg_pool", x, -1, "kernel=3 stride=2 pad=1 count_pad=1");
    }
    return random_function(m, "global_avg_pool", x);
}

static int make_image(maker *m, int x)
{
    switch (random_below(m, 4)) {
    case 0:
        return random_node(m, "upsample", x, -1, "by=2 linear=%d", random_below(m, 2));
    case 1:
        return random_node(m, "zero", x, -1, "stride=%d", 1 + random_below(m, 2));
    }
    return random_function(m, "batch_norm", x);
}

static int make_with_constant(maker *m, int x)
{
    static const char *const joins[] = {"add", "add", "mul", "sub", "div"};
    const char *op = ONE_OF(m, joins);
    const int c = random_constant_for(m, x);
    if (random_maybe(m, 70))
        return random_join(m, op, x, c);
    return random_join(m, op, c, strcmp(op, "div") ? x : random_function(m, "sigmoid", x));
}

static int make_join(maker *m, int x)
{
    static const char *const joins[] = {"add", "add", "add", "mul", "sub"};
    int other = random_earlier(m, x, random_maybe(m, 80));
    if (other < 0)
        other = make_function(m, x);
    return random_maybe(m, 50) ? random_join(m, ONE_OF(m, joins), x, other)
                               : random_join(m, ONE_OF(m, joins), other, x);
}

static int make_slice(maker *m, int x)
{
    const int axis = random_below(m, random_rank(m, x)), n = (int)random_dims(m, x)[axis],
              begin = random_below(m, n);
    return random_node(m, "slice", x, -1, "begin=%d end=%d axis=%d step=%d", begin,
                       begin + 1 + random_below(m, n - begin), axis, 1 + random_below(m, 2));
}

static int make_concat(maker *m, int x)
{
    int other = random_earlier(m, x, random_maybe(m, 50));
    if (other < 0 || random_rank(m, other) != random_rank(m, x))
        other = make_function(m, x);
    if (other < 0)
        return -1;
    return random_node(m, "concat", x, other, "axis=%d",
                       random_maybe(m, 60) ? 1 : random_below(m, random_rank(m, x)));
}

/* Halves, each with a function, joined again: GLU, cross-stage blocks. */
static int make_halves(maker *m, int x)
{
    const int axis = random_maybe(m, 50) ? 1 : random_rank(m, x) - 1,
              n = (int)random_dims(m, x)[axis];
    if (n % 2)
        return -1;
    int a = random_node(m, "slice", x, -1, "end=%d axis=%d", n / 2, axis);
    int b = random_node(m, "slice", x, -1, "begin=%d axis=%d", n / 2, axis);
    if (a < 0 || b < 0)
        return -1;
    a = random_maybe(m, 50) ? make_function(m, a) : a;
    b = random_maybe(m, 50) ? make_function(m, b) : b;
    if (a < 0 || b < 0 || random_maybe(m, 50))
        return random_join(m, "mul", a, b);
    return random_node(m, "concat", b, a, "axis=%d", axis);
}

static int make_flat(maker *m, int x)
{
    const int64_t *d = random_dims(m, x);
    switch (random_below(m, 3)) {
    case 0:
        return random_node(m, "flatten", x, -1, "axis=%d",
                           1 + random_below(m, random_rank(m, x) - 1));
    case 1:
        return random_node(m, "reshape", x, -1, "shape=-1,%d", (int)d[random_rank(m, x) - 1]);
    }
    if (random_rank(m, x) == 4) /* an image as a sequence */
        return random_node(m, "transpose",
                           random_node(m, "reshape", x, -1, "shape=%d,-1", (int)d[1]), -1,
                           "order=0,2,1");
    return random_node(m, "reshape", x, -1, "shape=-1");
}

/* A sequence or a vector as an image. */
static int make_raised(maker *m, int x)
{
    const int64_t *d = random_dims(m, x);
    if (random_rank(m, x) == 2)
        return random_node(m, "reshape", x, -1, "shape=%d,1,1", (int)d[1]);
    return random_rank(m, x) == 3 ? random_node(m, "reshape", x, -1, "shape=%d,-1,%d",
                                                1 + random_below(m, 2), (int)d[2])
                                  : -1;
}

static int make_transpose(maker *m, int x)
{
    int order[HWNAS_MAX_RANK], n = 0;
    const int rank = random_rank(m, x), first = random_maybe(m, 80);
    char text[64] = "order=";
    for (int i = 0; i < rank; i++)
        order[i] = i;
    for (int i = first; i < rank; i++) {
        const int other = first + random_below(m, rank - first), old = order[i];
        order[i] = order[other];
        order[other] = old;
    }
    for (; n < rank; n++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", n ? "," : "", order[n]);
    return random_node(m, "transpose", x, -1, "%s", text);
}

static int make_reduction(maker *m, int x)
{
    static const char *const ops[] = {"mean", "mean", "reduce_max", "reduce_sum", "reduce_l2"};
    const int rank = random_rank(m, x), axis = random_below(m, rank), keep = random_below(m, 2);
    if (rank == 4 && random_maybe(m, 50))
        return random_node(m, ONE_OF(m, ops), x, -1, "axes=2,3 keep=%d", keep);
    if (!keep && rank == 1)
        return -1;
    return random_node(m, ONE_OF(m, ops), x, -1, "axes=%d keep=%d", axis, keep);
}

static int make_norm(maker *m, int x)
{
    switch (random_below(m, 5)) {
    case 0:
        return random_node(m, "softmax", x, -1, "axis=%d", random_below(m, random_rank(m, x)));
    case 1:
        return random_node(m, "softmax", x, -1, "axis=-1");
    case 2:
        return random_node(m, "rms_norm", x, -1, "axis=%d epsilon=0.001",
                           random_maybe(m, 80) ? -1 : random_below(m, random_rank(m, x)));
    }
    return random_node(m, "layer_norm", x, -1, "axis=%d bias=%d epsilon=0.001",
                       random_maybe(m, 80) ? -1 : random_below(m, random_rank(m, x)),
                       random_maybe(m, 70));
}

/* ---- Operators that are written as several, or nearly ---- */

/* Now and then another number. */
static int roughly(maker *m, float value)
{
    return random_number(m, random_maybe(m, 10) ? 1.25F * value : value, HWNAS_FLOAT32);
}

/* Now and then another tensor. */
static int mostly(maker *m, int x)
{
    const int other = random_maybe(m, 5) ? random_earlier(m, x, true) : -1;
    return other < 0 ? x : other;
}

static int either_way(maker *m, const char *op, int a, int b)
{
    return random_maybe(m, 50) ? random_join(m, op, a, b) : random_join(m, op, b, a);
}

/* Mean or another reduction over the last dimension, or another one. */
static int spell_reduction(maker *m, const char *op, int x)
{
    const int rank = x < 0 ? 0 : random_rank(m, x);
    if (rank < 1)
        return -1;
    if (rank > 1 && random_maybe(m, 10))
        return random_node(m, op, x, -1, "axes=%d,%d keep=1", rank - 2, rank - 1);
    return random_node(m, op, x, -1, "axes=%d keep=1",
                       random_maybe(m, 90) ? rank - 1 : random_below(m, rank));
}

static int spell_quotient(maker *m, int x, int square)
{
    const int sum = either_way(m, "add", square, random_number(m, 0.01F, HWNAS_FLOAT32));
    switch (random_below(m, 4)) {
    case 0:
        return either_way(m, "mul", x, random_join(m, "pow", sum, roughly(m, -0.5F)));
    case 1:
        return either_way(m, "mul", x,
                          random_function(m, "reciprocal", random_function(m, "sqrt", sum)));
    case 2:
        return either_way(m, "mul", x,
                          random_join(m, "div", roughly(m, 1), random_function(m, "sqrt", sum)));
    }
    return random_join(m, "div", x, random_function(m, "sqrt", sum));
}

/* One for each value of the last dimension, or something else. */
static int weight_for(maker *m, int x)
{
    if (x < 0 || random_maybe(m, 15))
        return x < 0 ? -1 : random_constant_for(m, x);
    return random_constant(m, 1, random_dims(m, x) + random_rank(m, x) - 1);
}

static int spell_norm(maker *m, int x)
{
    int y = x;
    if (random_maybe(m, 70))
        y = random_join(m, "sub", x, spell_reduction(m, "mean", mostly(m, x)));
    const int base = y < 0 ? -1 : mostly(m, y);
    const int square = random_maybe(m, 50)
                           ? random_join(m, "mul", base, base)
                           : random_join(m, "pow", base, random_number(m, 2, HWNAS_FLOAT32));
    const int variance = spell_reduction(m, "mean", square);
    y = spell_quotient(m, y, variance);
    if (random_maybe(m, 75))
        y = either_way(m, "mul", y, weight_for(m, y));
    if (random_maybe(m, 60))
        y = either_way(m, "add", y, weight_for(m, y));
    return random_maybe(m, 10) ? random_join(m, "add", y, variance) : y;
}

static int spell_softmax(maker *m, int x)
{
    if (random_maybe(m, 70))
        x = random_join(m, "sub", x, spell_reduction(m, "reduce_max", mostly(m, x)));
    const int e = random_function(m, "exp", x);
    return e < 0 ? -1 : random_join(m, "div", e, spell_reduction(m, "reduce_sum", mostly(m, e)));
}

/* x or something else, times its gate and a number, in any order. */
static int spell_gated(maker *m, int x, int gate, float number)
{
    const int factor = roughly(m, number);
    x = mostly(m, x);
    switch (random_below(m, 3)) {
    case 0:
        return either_way(m, "mul", gate, either_way(m, "mul", x, factor));
    case 1:
        return either_way(m, "mul", x, either_way(m, "mul", gate, factor));
    }
    return either_way(m, "mul", factor, either_way(m, "mul", gate, x));
}

static int spell_function(maker *m, int x)
{
    int y = x;
    switch (random_below(m, 4)) {
    case 0:
        y = random_function(m, "erf", either_way(m, "mul", x, roughly(m, 0.70710678F)));
        return spell_gated(m, x, either_way(m, "add", y, roughly(m, 1)), 0.5F);
    case 1:
        y = random_join(m, "pow", x, random_number(m, 3, HWNAS_FLOAT32));
        y = either_way(m, "add", mostly(m, x), either_way(m, "mul", y, roughly(m, 0.044715F)));
        y = random_function(m, "tanh", either_way(m, "mul", y, roughly(m, 0.79788456F)));
        return spell_gated(m, x, either_way(m, "add", y, roughly(m, 1)), 0.5F);
    case 2:
        y = random_node(m, "clip", either_way(m, "add", x, roughly(m, 3)), -1, "low=0 high=%d",
                        random_maybe(m, 90) ? 6 : 5);
        return spell_gated(m, x, y, 1.0F / 6);
    }
    y = random_function(m, "softplus", x);
    return either_way(m, "mul", mostly(m, x), random_function(m, "tanh", y));
}

static int make_spelled(maker *m, int x)
{
    switch (random_below(m, 4)) {
    case 0:
        return spell_function(m, x);
    case 1:
        return spell_softmax(m, x);
    }
    return spell_norm(m, x);
}

/* ---- Products and what is made of them ---- */

static int make_linear(maker *m, int x)
{
    static const int outs[] = {1, 5, 8, 16, 33};
    const int rank = random_rank(m, x), out = ONE_OF(m, outs);
    if (rank <= 3 && random_maybe(m, 70))
        return random_node(m, "linear", x, -1, "out=%d bias=%d", out, random_below(m, 2));
    const int64_t dims[] = {random_dims(m, x)[rank - 1], out};
    return random_node(m, "scale", random_join(m, "matmul", x, random_constant(m, 2, dims)), -1,
                       "by=0.2");
}

/* Softmax of q k' with something added or not, times v, of any rank that has heads. */
static int attend(maker *m, int q, int k, int v)
{
    int x = random_join(m, "matmul", q, k);
    if (x >= 0 && random_maybe(m, 70))
        x = random_node(m, "scale", x, -1, "by=0.35");
    if (x >= 0 && random_maybe(m, 50))
        x = random_join(m, "add", x, random_constant_for(m, x));
    return random_join(m, "matmul", random_function(m, "softmax", x), v);
}

static int make_attention(maker *m, int x)
{
    const int length = (int)random_dims(m, x)[1], width = (int)random_dims(m, x)[2];
    const int heads = 1 + random_below(m, 2);
    int parts[3];
    if (random_rank(m, x) != 3 || width % heads)
        return -1;
    for (int i = 0; i < 3; i++) {
        int y = random_maybe(m, 90) ? random_node(m, "linear", x, -1, "out=%d", width) : x;
        y = random_node(m, "reshape", y, -1, "shape=%d,%d,%d", length, heads, width / heads);
        parts[i] = random_node(m, "transpose", y, -1, "order=%s", i == 1 ? "0,2,3,1" : "0,2,1,3");
    }
    if (parts[0] < 0 || parts[1] < 0 || parts[2] < 0)
        return -1;
    int y = attend(m, parts[0], parts[1], parts[2]);
    if (y < 0)
        return -1;
    y = random_node(m, "transpose", y, -1, "order=0,2,1,3");
    y = y < 0 ? -1 : random_node(m, "reshape", y, -1, "shape=%d,%d", length, width);
    return y >= 0 && random_maybe(m, 70) ? random_node(m, "linear", y, -1, "out=%d", width) : y;
}

static int make_sequence(maker *m, int x)
{
    switch (random_below(m, 6)) {
    case 0:
        return random_node(m, "lstm", x, -1, "out=%d", 5 + random_below(m, 2) * 11);
    case 1:
        return random_node(m, "gru", x, -1, "out=8 bidirectional=%d last=%d", random_below(m, 2),
                           random_below(m, 2));
    }
    return make_attention(m, x);
}

static int make_excited(maker *m, int x)
{
    int s = random_function(
        m, "relu", random_node(m, "conv", random_function(m, "global_avg_pool", x), -1, "out=3"));
    if (s < 0)
        return -1;
    s = random_node(m, "conv", s, -1, "out=%d", (int)random_dims(m, x)[1]);
    return random_join(m, "mul", x,
                       random_function(m, random_maybe(m, 50) ? "sigmoid" : "hard_sigmoid", s));
}

static int make_shuffled(maker *m, int x)
{
    const int64_t *d = random_dims(m, x);
    if (d[1] % 4)
        return -1;
    int y =
        random_node(m, "reshape", x, -1, "shape=%d,2,2,%d,%d", (int)d[1] / 4, (int)d[2], (int)d[3]);
    y = y < 0 ? -1 : random_node(m, "transpose", y, -1, "order=0,1,4,2,5,3");
    d = random_dims(m, x);
    return y < 0 ? -1
                 : random_node(m, "reshape", y, -1, "shape=%d,%d,%d", (int)d[1] / 4, 2 * (int)d[2],
                               2 * (int)d[3]);
}

static int make_quantized(maker *m, int x)
{
    const bool is_signed = random_maybe(m, 50);
    const hwnas_dtype dtype = is_signed ? HWNAS_INT8 : HWNAS_UINT8;
    const float scale = random_maybe(m, 50) ? 0.02F : 0.05F;
    const int s = random_number(m, scale, HWNAS_FLOAT32);
    const int z = random_number(m, is_signed ? (random_maybe(m, 50) ? 0 : 5) : 128, dtype);
    step q = {.op = "quantize_linear", .attrs = "axis=0", .n_inputs = 3, .inputs = {x, s, z}};
    const int bytes = s < 0 || z < 0 ? -1 : random_append(m, &q);
    step back = {
        .op = "dequantize_linear", .attrs = "axis=0", .n_inputs = 3, .inputs = {bytes, s, z}};
    return random_append(m, &back);
}

/* Of the same shape. */
static int make_alike(maker *m, int x)
{
    const int rank = random_rank(m, x), width = (int)random_dims(m, x)[rank > 1 ? 1 : 0];
    const int last = (int)random_dims(m, x)[rank - 1];
    switch (random_below(m, 7)) {
    case 0:
        return make_function(m, x);
    case 1:
        return random_node(m, "layer_norm", x, -1, "bias=%d epsilon=0.001", random_below(m, 2));
    case 2:
        return rank == 3 ? make_attention(m, x) : make_function(m, x);
    case 3:
        return make_with_constant(m, x);
    case 4:
        return rank == 4 ? make_excited(m, x) : make_function(m, x);
    }
    if (rank == 4)
        return random_node(m, "conv", x, -1, "out=%d kernel=3 pad=1", width);
    return rank <= 3 ? random_node(m, "linear", x, -1, "out=%d", last)
                     : random_function(m, "relu", x);
}

static int make_residual(maker *m, int x)
{
    int y = make_alike(m, x);
    for (int n = random_below(m, 3); n > 0 && y >= 0; n--)
        y = make_alike(m, y);
    return random_maybe(m, 50) ? random_join(m, "add", x, y) : random_join(m, "add", y, x);
}

static const struct {
    int (*make)(maker *m, int x);
    int min_rank, max_rank, weight;
} makers[] = {
    {make_alike, 1, 8, 3},     {make_attention, 3, 3, 4},     {make_concat, 1, 8, 3},
    {make_conv, 4, 4, 8},      {make_excited, 4, 4, 2},       {make_flat, 2, 8, 3},
    {make_function, 0, 8, 5},  {make_halves, 2, 8, 2},        {make_image, 4, 4, 2},
    {make_join, 0, 8, 4},      {make_linear, 2, 8, 5},        {make_norm, 1, 8, 4},
    {make_pool, 4, 4, 3},      {make_quantized, 0, 8, 1},     {make_raised, 2, 3, 2},
    {make_reduction, 1, 8, 2}, {make_residual, 1, 8, 6},      {make_sequence, 3, 3, 2},
    {make_shuffled, 4, 4, 1},  {make_slice, 1, 8, 4},         {make_spelled, 1, 8, 6},
    {make_transpose, 2, 8, 3}, {make_with_constant, 0, 8, 5},
};

int random_make_any(maker *m, int x)
{
    int total = 0, rank = random_rank(m, x);
    for (int turn = 0, at = 0; turn < 2; turn++) {
        const int wanted = turn ? random_below(m, total) : 0;
        for (size_t i = 0; i < COUNT(makers); i++) {
            if (rank < makers[i].min_rank || rank > makers[i].max_rank)
                continue;
            at += makers[i].weight;
            if (turn && at > wanted)
                return makers[i].make(m, x);
        }
        total = at;
        at = 0;
    }
    return -1;
}
