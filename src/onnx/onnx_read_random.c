/* onnx_read_random.c: values that are drawn at random. A network that is measured and compared has
 * to give the same of the same inputs, so they are drawn once, while the file is read, and are
 * constants from then on; a line of the graph's `doubts` says so. */
#include <hwnas/space.h>

#include <math.h>
#include <string.h>

#include "onnx/onnx_build.h"

typedef hwnas_onnx_builder builder;

/* Two numbers that a distribution has, and how a value is drawn by them. */
struct distribution {
    const char *type;
    const char *names[2];
    double (*draw)(hwnas_rng *rng, double a, double b);
    double absent[2];
};

static double draw_uniform(hwnas_rng *rng, double low, double high)
{
    return low + (high - low) * hwnas_rng_double(rng);
}

/* Box and Muller 1958 */
static double draw_normal(hwnas_rng *rng, double mean, double scale)
{
    const double radius = sqrt(-2 * log(1 - hwnas_rng_double(rng)));
    return mean + scale * radius * cos(2 * M_PI * hwnas_rng_double(rng));
}

static const struct distribution *distribution_of(const Onnx__NodeProto *node)
{
    static const struct distribution rows[] = {
        {"RandomNormal", {"mean", "scale"}, draw_normal, {0, 1}},
        {"RandomUniform", {"low", "high"}, draw_uniform, {0, 1}},
        {"Bernoulli", {"", ""}, draw_uniform, {0, 1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strncmp(rows[i].type, node->op_type, strlen(rows[i].type))) /* ...Like as well */
            return &rows[i];
    return NULL;
}

/* As the node's seed says, or else by its place: nodes differ, and the file is the same each time.
 */
static hwnas_rng rng_of(const hwnas_onnx_reader *r, const Onnx__NodeProto *node)
{
    const Onnx__AttributeProto *given = hwnas_onnx_attribute(node, "seed");
    uint32_t bits = 0;
    if (given)
        memcpy(&bits, &given->f, sizeof bits);
    return hwnas_rng_new(bits, given ? 0 : 1 + r->n_random);
}

/* A constant of the shape. */
static int draw(builder *b, int rank, const int64_t *dims)
{
    const struct distribution *row = distribution_of(b->node);
    double with[2];
    int made;
    for (int i = 0; i < 2; i++)
        with[i] = hwnas_onnx_float(b->node, row->names[i], row->absent[i]);
    hwnas_rng rng = rng_of(b->r, b->node);
    float *values = hwnas_onnx_values_of(&made, b, rank, dims, HWNAS_FLOAT32);
    if (!values)
        return made;
    for (int64_t i = 0, n = hwnas_tensor_count(&b->r->graph->tensors[made]); i < n; i++)
        values[i] = (float)row->draw(&rng, with[0], with[1]);
    if (!b->r->n_random++)
        b->r->first_random = hwnas_onnx_describe(b->node);
    return made;
}

/* Floats of any length are floats of 32 bits here. */
static hwnas_status check_type(const Onnx__NodeProto *node, int64_t type)
{
    hwnas_dtype dtype;
    TRY(hwnas_onnx_dtype(&dtype, (int32_t)type, "the result of", node->output[0]));
    return hwnas_dtype_is_whole(dtype)
               ? hwnas_onnx_unsupported(node, "dtype", "is no type of floats")
               : HWNAS_OK;
}

hwnas_status hwnas_onnx_read_random(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                    const char *name)
{
    const Onnx__AttributeProto *shape = hwnas_onnx_attribute(node, "shape");
    builder b = {.r = r, .node = node, .name = name};
    if (!shape || shape->n_ints > HWNAS_MAX_RANK)
        return hwnas_onnx_unsupported(node, "shape", "is absent, or of more than 8 dimensions");
    TRY(check_type(node, hwnas_onnx_int(node, "dtype", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT)));
    if (hwnas_onnx_give_nothing(r, node->output[0], (int)shape->n_ints, shape->ints))
        return HWNAS_OK;
    const int made = draw(&b, (int)shape->n_ints, shape->ints);
    if (b.status != HWNAS_OK)
        return hwnas_context(b.status, "%s", hwnas_onnx_describe(node).s);
    *out = made;
    return HWNAS_OK;
}

hwnas_status hwnas_onnx_read_random_like(int *out, hwnas_onnx_reader *r,
                                         const Onnx__NodeProto *node, const char *name)
{
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_tensor like = hwnas_onnx_tensor(&b, x);
    const int64_t type = hwnas_onnx_int(node, "dtype", 0);
    if (type)
        TRY(check_type(node, type));
    else if (hwnas_dtype_is_whole(like.dtype))
        hwnas_onnx_refuse(&b, "input", "has no type of floats");
    return hwnas_onnx_built(out, &b, draw(&b, like.rank, like.dims));
}

/* Each input is how likely a 1 is. */
hwnas_status hwnas_onnx_read_bernoulli(int *out, hwnas_onnx_reader *r, const Onnx__NodeProto *node,
                                       const char *name)
{
    const int64_t type = hwnas_onnx_int(node, "dtype", 0);
    builder b;
    int x;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const hwnas_tensor in = hwnas_onnx_tensor(&b, x);
    hwnas_dtype dtype = in.dtype;
    if (type)
        TRY(hwnas_onnx_dtype(&dtype, (int32_t)type, "the result of", node->output[0]));
    const int drawn = draw(&b, in.rank, in.dims);
    return hwnas_onnx_built(
        out, &b, hwnas_onnx_cast(&b, hwnas_onnx_make(&b, HWNAS_OP_GREATER, NULL, x, drawn), dtype));
}
