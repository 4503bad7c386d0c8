/* packed_rows.c: a word of each lane holds the weights of one result for 8 or 4 inputs in a row.
 * They are not shifted to the word's beginning, but masked and taken as they stand, 16^k or 256^k
 * times as large; the input is divided by that instead, once for all results. Whole numbers are
 * kept as unsigned ones, with half of their range added: what that makes of a group's sum is known
 * beforehand, as it is the same for all results. */
#include "device/onednn/packed_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/onednn/group.h"
#include "device/onednn/simd.h"
#include "graph/op.h"
#include "graph/pack_weights.h"

enum { CODES, SCALES, ZEROS };
enum {
    MAX_VECTORS = HWNAS_PACKED_VECTORS,
    WORD = 32,
    AHEAD = 8192, /* bytes of codes that are asked for early; docs/engine.md */
};

struct hwnas_packed_rows {
    int64_t n_vectors, n_in, n_out, n_groups, n_tiles;
    int bits, group;
    bool is_by_halves; /* sums of eight floats */
    uint32_t *codes; /* by tile, group and word of inputs: one for each lane */
    float *scales;   /* by tile and group: one for each lane */
    float *zeros;    /* the same: what zero is kept as; NULL: everywhere half of the range */
    float *in;       /* by vector: n_groups * group inputs, divided as above */
    float *sums;     /* by vector and group: minus the sum of the inputs themselves */
};

/* ---- Packing ---- */

bool hwnas_packed_rows_fit(const hwnas_graph *graph, const hwnas_node *dequantize)
{
    const hwnas_tensor *codes = hwnas_node_input(graph, dequantize, CODES);
    const int64_t group = hwnas_node_attr(dequantize, "block_size")->ints[0];
    return group % 8 == 0 && group <= 4096 && hwnas_packed_bits(codes);
}

/* How a matrix lies: results by inputs, or turned. */
typedef struct matrix {
    const float *values;
    int64_t per_result, per_input;
} matrix;

static matrix matrix_of(const float *values, int64_t n_in, int64_t n_out, bool is_turned)
{
    return is_turned ? (matrix){values, 1, n_out} : (matrix){values, n_in, 1};
}

static float at(const matrix *m, int64_t result, int64_t input)
{
    return m->values[result * m->per_result + input * m->per_input];
}

/* `per_result`, `per_input`: how far the numbers of neighbours lie apart. */
static void pack_codes(hwnas_packed_rows *r, const hwnas_tensor *codes, int64_t per_result,
                       int64_t per_input)
{
    const int per_word = WORD / r->bits, half = 1 << (r->bits - 1);
    uint32_t *to = r->codes;
    for (int64_t first = 0; first < r->n_tiles * HWNAS_LANES; first += HWNAS_LANES)
        for (int64_t i = 0; i < r->n_groups * r->group; i += per_word)
            for (int64_t o = first; o < first + HWNAS_LANES; o++, to++)
                for (int k = 0; k < per_word; k++) {
                    const bool is_there = o < r->n_out && i + k < r->n_in;
                    const int64_t from = o * per_result + (i + k) * per_input;
                    const int code = half + (is_there ? hwnas_packed_number(codes, from) : 0);
                    *to |= (uint32_t)code << (k * r->bits);
                }
}

/* One value for each lane of each group; `added` to all, 0 where there is no result. */
static void pack_groups(float *to, const hwnas_packed_rows *r, const matrix *from, float added)
{
    for (int64_t first = 0; first < r->n_tiles * HWNAS_LANES; first += HWNAS_LANES)
        for (int64_t g = 0; g < r->n_groups; g++)
            for (int64_t o = first; o < first + HWNAS_LANES; o++)
                *to++ = o < r->n_out ? at(from, o, g) + added : 0;
}

static hwnas_status alloc(hwnas_packed_rows *r, bool has_zeros, const char *name)
{
    const size_t n_in = (size_t)(r->n_groups * r->group), n_vectors = (size_t)r->n_vectors;
    const size_t n_lanes = (size_t)r->n_tiles * HWNAS_LANES, n_groups = (size_t)r->n_groups;
    void *made[5] = {0};
    const size_t bytes[5] = {
        n_lanes * n_in * (size_t)r->bits / 8,
        n_lanes * n_groups * sizeof(float),
        has_zeros ? n_lanes * n_groups * sizeof(float) : 0,
        n_vectors * n_in * sizeof(float),
        n_vectors * n_groups * sizeof(float),
    };
    hwnas_status status = HWNAS_OK;
    for (int i = 0; i < 5 && status == HWNAS_OK; i++)
        if (bytes[i])
            status = hwnas_try_alloc(&made[i], bytes[i], name);
    r->codes = made[0];
    r->scales = made[1];
    r->zeros = made[2];
    r->in = made[3];
    r->sums = made[4];
    return status;
}

hwnas_status hwnas_packed_rows_new(hwnas_packed_rows **out, const hwnas_graph *graph,
                                   const hwnas_node *dequantize, bool is_turned, int64_t n_vectors,
                                   const char *name)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_tensor *codes = hwnas_node_input(graph, dequantize, CODES);
    const bool has_zeros = dequantize->n_inputs > ZEROS;
    hwnas_packed_rows *r = hwnas_alloc(sizeof *r);
    float *scales = NULL, *zeros = NULL;
    r->n_vectors = n_vectors;
    r->is_by_halves = hwnas_onednn_ends_at_avx2();
    r->n_in = codes->dims[!is_turned];
    r->n_out = codes->dims[is_turned];
    r->group = (int)hwnas_node_attr(dequantize, "block_size")->ints[0];
    r->bits = hwnas_packed_bits(codes);
    r->n_groups = (r->n_in + r->group - 1) / r->group;
    r->n_tiles = (r->n_out + HWNAS_LANES - 1) / HWNAS_LANES;
    TRY_OUT(alloc(r, has_zeros, name));

    pack_codes(r, codes, is_turned ? 1 : r->n_in, is_turned ? r->n_out : 1);
    const hwnas_tensor *scale = hwnas_node_input(graph, dequantize, SCALES);
    scales = hwnas_alloc((size_t)hwnas_tensor_bytes(scale));
    hwnas_tensor_fill(scale, scales);
    matrix from = matrix_of(scales, r->n_groups, r->n_out, is_turned);
    pack_groups(r->scales, r, &from, 0);
    if (has_zeros) {
        zeros = hwnas_alloc((size_t)hwnas_tensor_bytes(scale));
        hwnas_tensor_fill(hwnas_node_input(graph, dequantize, ZEROS), zeros);
        from = matrix_of(zeros, r->n_groups, r->n_out, is_turned);
        pack_groups(r->zeros, r, &from, (float)(1 << (r->bits - 1)));
    }
    *out = r;
    r = NULL;
out:
    free(scales);
    free(zeros);
    hwnas_packed_rows_free(r);
    return status;
}

void hwnas_packed_rows_free(hwnas_packed_rows *r)
{
    if (!r)
        return;
    free(r->codes);
    free(r->scales);
    free(r->zeros);
    free(r->in);
    free(r->sums);
    free(r);
}

size_t hwnas_packed_rows_bytes(const hwnas_packed_rows *r)
{
    const int64_t n_lanes = r->n_tiles * HWNAS_LANES, n_in = r->n_groups * r->group;
    const int64_t n_floats = n_lanes * r->n_groups * (r->zeros ? 2 : 1) +
                             r->n_vectors * (n_in + r->n_groups);
    return (size_t)(n_lanes * n_in * r->bits / 8) + (size_t)n_floats * sizeof(float);
}

/* ---- Running ---- */

void hwnas_packed_rows_take(hwnas_packed_rows *r, const float *in)
{
    const int per_word = WORD / r->bits;
    const int64_t n_padded = r->n_groups * r->group;
    const float half = (float)(1 << (r->bits - 1));
    float factors[8];
    for (int k = 0; k < per_word; k++) /* the last is shifted */
        factors[k] = ldexpf(1, k < per_word - 1 ? -k * r->bits : 0);
    for (int64_t v = 0; v < r->n_vectors; v++)
        for (int64_t g = 0; g < r->n_groups; g++) {
            const int64_t first = g * r->group;
            const int64_t n = r->n_in - first < r->group ? r->n_in - first : r->group;
            const float *from = in + v * r->n_in + first;
            float *to = r->in + v * n_padded + first, sum = 0;
            for (int64_t i = 0; i < n; i++) {
                sum += from[i];
                to[i] = from[i] * factors[i % per_word];
            }
            r->sums[v * r->n_groups + g] = r->zeros ? -sum : -sum * half;
        }
}

/* One tile times `n` vectors; `n` and `bits` are constants where it is called. Halves for AVX2, as
 * in rows.c: both of a line of codes at once, so that memory is read in one stream. */
#define MULTIPLY_TILE(NAME, PARTS, FLOATS, WHOLES, WORDS)                                          \
    HWNAS_INLINE void NAME(hwnas_vector *out, const hwnas_packed_rows *r, int64_t tile, int n,     \
                           int bits)                                                               \
    {                                                                                              \
        enum { CHAINS = MAX_VECTORS, LENGTH = HWNAS_LANES / PARTS };                               \
        const int per_word = WORD / bits, apart = CHAINS / n;                                      \
        const int64_t n_in = r->n_groups * r->group, n_words = r->group / per_word;                \
        const uint32_t *at = r->codes + tile * HWNAS_LANES * r->n_groups * n_words;                \
        int64_t lanes = tile * HWNAS_LANES * r->n_groups;                                          \
        FLOATS totals[CHAINS][PARTS] = {{{0}}};                                                    \
        for (int64_t g = 0; g < r->n_groups; g++, lanes += HWNAS_LANES) {                          \
            const float *in = r->in + g * r->group;                                                \
            FLOATS sums[CHAINS][PARTS] = {{{0}}};                                                  \
            for (int i = 0; i < r->group; i += per_word, at += HWNAS_LANES) {                      \
                WHOLES words[PARTS];                                                               \
                for (int p = 0; p < PARTS; p++)                                                    \
                    words[p] = *(const WHOLES *)(at + p * LENGTH);                                 \
                hwnas_prefetch((const char *)at + AHEAD);                                          \
                _Pragma("GCC unroll 8") for (int k = 0; k < per_word; k++)                         \
                    _Pragma("GCC unroll 2") for (int p = 0; p < PARTS; p++)                        \
                {                                                                                  \
                    WHOLES one = words[p] & (int32_t)(((1U << bits) - 1) << (k * bits));           \
                    if (k == per_word - 1)                                                         \
                        one = (WHOLES)((WORDS)words[p] >> (WORD - bits));                          \
                    const FLOATS weight = __builtin_convertvector(one, FLOATS);                    \
                    _Pragma("GCC unroll 4") for (int v = 0; v < n; v++)                            \
                        sums[v * apart + k % apart][p] += weight * in[v * n_in + i + k];           \
                }                                                                                  \
            }                                                                                      \
            for (int p = 0; p < PARTS; p++) {                                                      \
                const FLOATS scale = *(const FLOATS *)(r->scales + lanes + p * LENGTH);            \
                FLOATS zero = (FLOATS){0} + 1;                                                     \
                if (r->zeros)                                                                      \
                    zero = *(const FLOATS *)(r->zeros + lanes + p * LENGTH);                       \
                _Pragma("GCC unroll 4") for (int v = 0; v < n; v++)                                \
                {                                                                                  \
                    FLOATS sum = zero * r->sums[v * r->n_groups + g];                              \
                    for (int k = 0; k < apart; k++)                                                \
                        sum += sums[v * apart + k][p];                                             \
                    totals[v][p] += scale * sum;                                                   \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        memcpy(out, totals, (size_t)n * sizeof *out);                                              \
    }

MULTIPLY_TILE(multiply_whole, 1, hwnas_vector, hwnas_whole_vector, hwnas_word_vector)
MULTIPLY_TILE(multiply_halves, 2, hwnas_half, hwnas_whole_half, hwnas_word_half)

HWNAS_INLINE void multiply_tile(hwnas_vector *out, const hwnas_packed_rows *r, int64_t tile, int n,
                                int bits)
{
    if (r->is_by_halves)
        multiply_halves(out, r, tile, n, bits);
    else
        multiply_whole(out, r, tile, n, bits);
}

HWNAS_INLINE void multiply_by_vectors(hwnas_vector *out, const hwnas_packed_rows *r, int64_t tile,
                                      int bits)
{
    switch (r->n_vectors) {
    case 1:
        multiply_tile(out, r, tile, 1, bits);
        break;
    case 2:
        multiply_tile(out, r, tile, 2, bits);
        break;
    case 3:
        multiply_tile(out, r, tile, 3, bits);
        break;
    default:
        multiply_tile(out, r, tile, 4, bits);
    }
}

HWNAS_CLONES void hwnas_packed_rows_multiply(float *out, const hwnas_packed_rows *r, int64_t first,
                                             int64_t end)
{
    hwnas_vector results[MAX_VECTORS];
    for (int64_t t = first; t < end; t++) {
        const int64_t begin = t * HWNAS_LANES, rest = r->n_out - begin;
        const size_t n = (size_t)(rest < HWNAS_LANES ? rest : HWNAS_LANES);
        if (r->bits == 4)
            multiply_by_vectors(results, r, t, 4);
        else
            multiply_by_vectors(results, r, t, 8);
        for (int64_t v = 0; v < r->n_vectors; v++)
            memcpy(out + v * r->n_out + begin, &results[v], n * sizeof *out);
    }
}

/* One tile as floats, with the inputs' rows `apart`; `bits` is a constant where it is called. */
HWNAS_INLINE void unpack_tile(float *to, const hwnas_packed_rows *r, int64_t tile, int64_t apart,
                              int bits)
{
    const int per_word = WORD / bits;
    const uint32_t *codes = r->codes + tile * HWNAS_LANES * (r->n_groups * r->group / per_word);
    const int64_t lanes = tile * HWNAS_LANES * r->n_groups;
    hwnas_vector zero = (hwnas_vector){0} + (float)(1 << (bits - 1)), scale;
    for (int64_t g = 0; g < r->n_groups; g++) {
        hwnas_load(&scale, r->scales + lanes + g * HWNAS_LANES);
        if (r->zeros)
            hwnas_load(&zero, r->zeros + lanes + g * HWNAS_LANES);
        for (int i = 0; i < r->group; i += per_word, codes += HWNAS_LANES) {
            const hwnas_word_vector word = *(const hwnas_word_vector *)codes;
            hwnas_prefetch((const char *)codes + AHEAD);
#pragma GCC unroll 8
            for (int k = 0; k < per_word; k++, to += apart) {
                const hwnas_whole_vector one =
                    (hwnas_whole_vector)((word >> (k * bits)) & ((1U << bits) - 1));
                const hwnas_vector value =
                    (__builtin_convertvector(one, hwnas_vector) - zero) * scale;
                hwnas_store(to, &value);
            }
        }
    }
}

HWNAS_CLONES void hwnas_packed_rows_unpack(float *to, const hwnas_packed_rows *r, int64_t first,
                                           int64_t width)
{
    const int64_t tile = first / HWNAS_LANES, n_tiles = width / HWNAS_LANES;
    for (int64_t t = 0; t < n_tiles && tile + t < r->n_tiles; t++)
        if (r->bits == 4)
            unpack_tile(to + t * HWNAS_LANES, r, tile + t, width, 4);
        else
            unpack_tile(to + t * HWNAS_LANES, r, tile + t, width, 8);
}

int64_t hwnas_packed_rows_inputs(const hwnas_packed_rows *r)
{
    return r->n_groups * r->group;
}
