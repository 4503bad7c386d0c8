/* codes.c: whole numbers of a byte as the floats that they stand for, as a dequantize_linear
 * (ops/quantize.c) computes them. */
#include "graph/codes.h"

/* One row of a matrix as floats, with a scale for each `block` of its numbers. */
static void fill_row(float *out, const int8_t *numbers, int64_t n, const float *scales,
                     const float *zeros, int64_t block)
{
    for (int64_t first = 0, b = 0; first < n; first += block, b++) {
        const int64_t end = first + block < n ? first + block : n;
        const float zero = zeros ? zeros[b] : 0;
        for (int64_t i = first; i < end; i++)
            out[i] = ((float)numbers[i] - zero) * scales[b];
    }
}

/* The same where each number of the row has a scale of its own. */
static void fill_across(float *out, const int8_t *numbers, int64_t n, const float *scales,
                        const float *zeros)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = ((float)numbers[i] - (zeros ? zeros[i] : 0)) * scales[i];
}

void hwnas_codes_fill(float *out, const hwnas_codes *c, int64_t n, int64_t width)
{
    if (!c->scales) {
        for (int64_t i = 0; i < n; i++)
            out[i] = c->numbers[i];
        return;
    }
    const int64_t n_blocks = (width + c->block - 1) / c->block;
    for (int64_t row = 0, at = 0; at < n; row++, at += width) {
        const int64_t s = c->axis ? row * n_blocks : row / c->block * width;
        const float *zeros = c->zeros ? c->zeros + s : NULL;
        if (c->axis)
            fill_row(out + at, c->numbers + at, width, c->scales + s, zeros, c->block);
        else
            fill_across(out + at, c->numbers + at, width, c->scales + s, zeros);
    }
}
