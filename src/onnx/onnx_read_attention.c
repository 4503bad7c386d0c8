/* onnx_read_attention.c: Attention and EmbedLayerNormalization, as ONNX Runtime's optimiser writes
 * encoders. */
#include <math.h>
#include <string.h>

#include "onnx/onnx_build.h"

typedef hwnas_onnx_builder builder;

/* ---- Attention ---- */

typedef struct attention {
    int64_t batch, length, width, heads; /* width: of queries, keys and values, all heads */
    double scale, masked;                /* masked: what is added where nothing may be seen */
} attention;

enum { X, WEIGHTS, BIAS, MASK, PAST }; /* inputs */

static bool check(attention *a, builder *b, int x, int weights)
{
    static const char *const refused[] = {"do_rotary", "past_present_share_buffer",
                                          "qkv_hidden_sizes"};
    const hwnas_tensor in = hwnas_onnx_tensor(b, x), w = hwnas_onnx_tensor(b, weights);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const Onnx__AttributeProto *given = hwnas_onnx_attribute(b->node, refused[i]);
        if (given && (given->i || given->n_ints))
            hwnas_onnx_refuse(b, refused[i], "has a value that we cannot compute");
    }
    for (size_t i = PAST; i < b->node->n_input; i++)
        if (hwnas_onnx_has_input(b->node, i))
            hwnas_onnx_refuse(b, b->node->input[i],
                              "is a past or a bias, which we do not add here");
    *a = (attention){.heads = hwnas_onnx_int(b->node, "num_heads", 0)};
    if (in.rank != 3 || w.rank != 2 || w.dims[1] % 3 || a->heads < 1 || w.dims[1] / 3 % a->heads) {
        hwnas_onnx_refuse(b, "weights", "do not fit the input and num_heads");
        return false;
    }
    a->batch = in.dims[0];
    a->length = in.dims[1];
    a->width = w.dims[1] / 3;
    a->scale = hwnas_onnx_float(b->node, "scale", 0);
    if (a->scale == 0)
        a->scale = 1 / sqrt((double)(a->width / a->heads));
    a->masked = hwnas_onnx_float(b->node, "mask_filter_value", -10000);
    return b->status == HWNAS_OK;
}

/* One of the three parts of the product: batch x heads x length x width of a head. */
static int take_part(builder *b, const attention *a, int all, int64_t which)
{
    const int part = hwnas_onnx_cut(b, all, 2, which * a->width, (which + 1) * a->width, 1);
    const int split = hwnas_onnx_reshape(
        b, part, 4, (int64_t[]){a->batch, a->length, a->heads, a->width / a->heads});
    return hwnas_onnx_transpose(b, split, 4, (int64_t[]){0, 2, 1, 3});
}

/* 0 where a word may be seen, else `masked`: of a mask for each word, or of the sequences' lengths.
 */
static int mask_of(builder *b, const attention *a)
{
    const int given = hwnas_onnx_build_input(b, MASK);
    const hwnas_tensor in = hwnas_onnx_tensor(b, given);
    int is_seen;
    if (in.rank == 2 && in.dims[0] == a->batch && in.dims[1] == a->length) {
        is_seen =
            hwnas_onnx_make(b, HWNAS_OP_GREATER, NULL, given, hwnas_onnx_number(b, 0, in.dtype));
    } else if (in.rank == 1 && in.dims[0] == a->batch) {
        int places;
        float *values = hwnas_onnx_values_of(&places, b, 2, (int64_t[]){1, a->length}, in.dtype);
        for (int64_t i = 0; values && i < a->length; i++)
            values[i] = (float)i;
        is_seen = hwnas_onnx_make(b, HWNAS_OP_LESS, NULL, places,
                                  hwnas_onnx_reshape(b, given, 2, (int64_t[]){a->batch, 1}));
    } else {
        hwnas_onnx_refuse(b, "mask_index", "is of a form that we cannot compute");
        return given;
    }
    const int terms[] = {is_seen, hwnas_onnx_number(b, 0, HWNAS_FLOAT32),
                         hwnas_onnx_number(b, a->masked, HWNAS_FLOAT32)};
    return hwnas_onnx_reshape(b, hwnas_onnx_make_n(b, HWNAS_OP_WHERE, NULL, 3, terms), 4,
                              (int64_t[]){a->batch, 1, 1, a->length});
}

/* Words see those before them alone. */
static int causal(builder *b, const attention *a)
{
    int made;
    float *values =
        hwnas_onnx_values_of(&made, b, 4, (int64_t[]){1, 1, a->length, a->length}, HWNAS_FLOAT32);
    for (int64_t i = 0; values && i < a->length; i++)
        for (int64_t k = i + 1; k < a->length; k++)
            values[i * a->length + k] = (float)a->masked;
    return made;
}

hwnas_status hwnas_onnx_read_attention(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                       const char *name)
{
    const hwnas_attr last = hwnas_attr_int(-1);
    attention a;
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const int weights = hwnas_onnx_build_input(&b, WEIGHTS);
    if (!check(&a, &b, x, weights))
        return hwnas_onnx_built(out, &b, x);
    x = hwnas_onnx_make(&b, HWNAS_OP_MATMUL, NULL, x, weights);
    if (hwnas_onnx_has_input(node, BIAS))
        x = hwnas_onnx_make(&b, HWNAS_OP_ADD, NULL, x, hwnas_onnx_build_input(&b, BIAS));
    const int queries = take_part(&b, &a, x, 0), keys = take_part(&b, &a, x, 1),
              values = take_part(&b, &a, x, 2);
    int scores = hwnas_onnx_make(&b, HWNAS_OP_MATMUL, NULL, queries,
                                 hwnas_onnx_transpose(&b, keys, 4, (int64_t[]){0, 1, 3, 2}));
    scores = hwnas_onnx_make(&b, HWNAS_OP_MUL, NULL, scores,
                             hwnas_onnx_number(&b, a.scale, HWNAS_FLOAT32));
    if (hwnas_onnx_has_input(node, MASK))
        scores = hwnas_onnx_make(&b, HWNAS_OP_ADD, NULL, scores, mask_of(&b, &a));
    if (hwnas_onnx_int(node, "unidirectional", 0))
        scores = hwnas_onnx_make(&b, HWNAS_OP_ADD, NULL, scores, causal(&b, &a));
    scores = hwnas_onnx_make(&b, HWNAS_OP_SOFTMAX, &last, scores, -1);
    x = hwnas_onnx_make(&b, HWNAS_OP_MATMUL, NULL, scores, values);
    x = hwnas_onnx_transpose(&b, x, 4, (int64_t[]){0, 2, 1, 3});
    x = hwnas_onnx_reshape(&b, x, 3, (int64_t[]){a.batch, a.length, a.width});
    return hwnas_onnx_built(out, &b, x);
}

/* ---- EmbedLayerNormalization ---- */

/* Rows of a table by the numbers. */
static int look_up(builder *b, size_t table, int numbers)
{
    const hwnas_attr axis = hwnas_attr_int(0);
    return hwnas_onnx_make(b, HWNAS_OP_GATHER, &axis, hwnas_onnx_build_input(b, table), numbers);
}

/* Words, positions and segments are looked up and added up, and the sum is normalised. */
hwnas_status hwnas_onnx_read_embed_norm(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                        const char *name)
{
    enum {
        SEGMENTS = 1,
        WORD_TABLE,
        POSITION_TABLE,
        SEGMENT_TABLE,
        SCALE,
        SHIFT,
        PRESENT,
        POSITIONS
    };
    enum { LENGTHS = 1, SUM }; /* outputs */
    const hwnas_attr attrs[] = {
        hwnas_attr_int(-1), hwnas_attr_number(hwnas_onnx_float(node, "epsilon", 1e-12)), {0}};
    const int64_t last = 1;
    builder b;
    int ids;
    TRY(hwnas_onnx_build(&b, &ids, r, node, name));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, ids);
    if (in.rank != 2)
        hwnas_onnx_refuse(&b, "input_ids", "is not batch x length");
    if (b.status != HWNAS_OK)
        return hwnas_onnx_built(out, &b, ids);
    int x = look_up(&b, WORD_TABLE, ids), positions;
    if (hwnas_onnx_has_input(node, POSITIONS)) {
        positions = look_up(&b, POSITION_TABLE, hwnas_onnx_build_input(&b, POSITIONS));
    } else {
        positions =
            hwnas_onnx_cut(&b, hwnas_onnx_build_input(&b, POSITION_TABLE), 0, 0, in.dims[1], 1);
    }
    x = hwnas_onnx_make(&b, HWNAS_OP_ADD, NULL, x, positions);
    if (hwnas_onnx_has_input(node, SEGMENT_TABLE) && hwnas_onnx_has_input(node, SEGMENTS))
        x = hwnas_onnx_make(&b, HWNAS_OP_ADD, NULL, x,
                            look_up(&b, SEGMENT_TABLE, hwnas_onnx_build_input(&b, SEGMENTS)));
    if (b.status == HWNAS_OK && hwnas_onnx_is_read(r, node, SUM))
        TRY(hwnas_onnx_give(r, node->output[SUM], x));
    if (b.status == HWNAS_OK && hwnas_onnx_is_read(r, node, LENGTHS) &&
        hwnas_onnx_has_input(node, PRESENT)) {
        const int lengths = hwnas_onnx_reduce(&b, HWNAS_OP_REDUCE_SUM,
                                              hwnas_onnx_build_input(&b, PRESENT), 1, &last, false);
        if (b.status == HWNAS_OK)
            TRY(hwnas_onnx_give(r, node->output[LENGTHS], lengths));
    }
    const int inputs[] = {x, hwnas_onnx_build_input(&b, SCALE), hwnas_onnx_build_input(&b, SHIFT)};
    return hwnas_onnx_built(out, &b, hwnas_onnx_make_n(&b, HWNAS_OP_LAYER_NORM, attrs, 3, inputs));
}
