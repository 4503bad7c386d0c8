/* window.cu: images: pools, padding, enlarging. Views 0 and 1 are the output and the input. */
#include "kernel.h"

/* Of images. ints: [0] the mean, not the greatest; [1] kernel, [3] stride, [5] pad (down, right
 * each); [7] padding counts. */
KERNEL(hwnas_pool)
{
    const hwnas_view *in = &job.views[1], *out = &job.views[0];
    FOR_EACH(i) {
        const int x = i % out->dims[3], y = i / out->dims[3] % out->dims[2];
        const int plane = i / out->dims[3] / out->dims[2];
        const int from = plane % in->dims[1] * in->steps[1] + plane / in->dims[1] * in->steps[0];
        const int top = y * job.ints[3] - job.ints[5], left = x * job.ints[4] - job.ints[6];
        float all = CODE ? 0 : -INFINITY;
        int n = 0;
        for (int r = top; r < top + job.ints[1]; r++)
            for (int c = left; c < left + job.ints[2]; c++) {
                if (r < 0 || r >= in->dims[2] || c < 0 || c >= in->dims[3])
                    continue;
                const float value = LOAD(1, from + r * in->steps[2] + c * in->steps[3]);
                all = CODE ? all + value : fmaxf(all, value);
                n++;
            }
        n = job.ints[7] ? job.ints[1] * job.ints[2] : n;
        STORE(0, OFFSET(0, i), CODE ? all / (float)n : all);
    }
}

/* Where the value at `i` of `n` comes from; -1: from nowhere. */
DEVICE int kernel_pad_source(int code, int i, int n)
{
    if (i >= 0 && i < n)
        return i;
    switch (code) {
    case HWNAS_PAD_EDGE:
        return i < 0 ? 0 : n - 1;
    case HWNAS_PAD_REFLECT:
        return i < 0 ? -i : 2 * (n - 1) - i;
    case HWNAS_PAD_WRAP:
        return i < 0 ? i + n : i - n;
    }
    return -1;
}

/* ints: [0] where new values come from; from [1] on, how many come before, by dimension. numbers:
 * [0] the value of what is new. */
KERNEL(hwnas_pad)
{
    FOR_EACH(i) {
        unsigned left = (unsigned)i;
        int to = 0, from = 0, is_new = 0;
        UNROLL
        for (int d = RANK(0) - 1; d >= 0; d--) {
            const int n = job.views[0].dims[d], at = (int)(left % (unsigned)n);
            const int source = kernel_pad_source(CODE, at - job.ints[1 + d], job.views[1].dims[d]);
            left /= (unsigned)n;
            to += at * job.views[0].steps[d];
            from += source * job.views[1].steps[d];
            is_new |= source < 0;
        }
        STORE(0, to, is_new ? job.numbers[0] : LOAD(1, from));
    }
}

/* The two pixels between which the centre of an output pixel lies, and how near it is to the
 * second. */
DEVICE float kernel_between(int *first, int *second, int at, int by, int n)
{
    const float centre = ((float)at + 0.5f) / (float)by - 0.5f;
    *first = centre < 0 ? 0 : (int)centre;
    *second = *first + 1 < n ? *first + 1 : n - 1;
    return centre < 0 ? 0 : centre - (float)*first;
}

/* ints: [0] interpolate; [1], [2] the factors of height and width. */
KERNEL(hwnas_upsample)
{
    const hwnas_view *in = &job.views[1], *out = &job.views[0];
    FOR_EACH(i) {
        const int x = i % out->dims[3], y = i / out->dims[3] % out->dims[2];
        const int plane = i / out->dims[3] / out->dims[2];
        const int from = plane % in->dims[1] * in->steps[1] + plane / in->dims[1] * in->steps[0];
        int top = y / job.ints[1], left = x / job.ints[2], bottom = top, right = left;
        float v = 0, u = 0;
        if (CODE) {
            v = kernel_between(&top, &bottom, y, job.ints[1], in->dims[2]);
            u = kernel_between(&left, &right, x, job.ints[2], in->dims[3]);
        }
        const int a = from + top * in->steps[2], b = from + bottom * in->steps[2];
        float value = LOAD(1, a + left * in->steps[3]);
        if (CODE)
            value = (1 - v) * ((1 - u) * value + u * LOAD(1, a + right * in->steps[3])) +
                    v * ((1 - u) * LOAD(1, b + left * in->steps[3]) +
                         u * LOAD(1, b + right * in->steps[3]));
        STORE(0, OFFSET(0, i), value);
    }
}

/* The pixel at `i` of `n`, which may be beyond the image; -1: none. */
DEVICE int kernel_sample_source(int i, int n, int padding, int is_aligned)
{
    const int period = is_aligned ? 2 * (n - 1) : 2 * n;
    if (i >= 0 && i < n)
        return i;
    if (padding == HWNAS_SAMPLE_ZEROS)
        return -1;
    if (padding == HWNAS_SAMPLE_BORDER)
        return i < 0 ? 0 : n - 1;
    if (!period)
        return 0;
    i = (i % period + period) % period;
    return i < n ? i : period - i - !is_aligned;
}

/* Of a pixel that is so far away. */
DEVICE float kernel_sample_weight(int mode, float x)
{
    const float a = -0.75f;
    x = x < 0 ? -x : x;
    if (mode != HWNAS_SAMPLE_CUBIC)
        return mode == HWNAS_SAMPLE_NEAREST ? 1 : 1 - x;
    return x <= 1  ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                   : 0;
}

/* The place of a grid in pixels; what is too far away for an int, or NaN, is beyond the image. */
DEVICE float kernel_sample_place(float x, int n, int is_aligned)
{
    const float far = 1073741824.0f;
    const float at = is_aligned ? (x + 1) / 2 * (float)(n - 1) : ((x + 1) * (float)n - 1) / 2;
    return !(at > -far) ? -far : at < far ? at : far;
}

/* views: 0 the output, 1 the images, 2 the grid. ints: [0] the mode, [1] the padding, [2] whether
 * corners are aligned. */
KERNEL(hwnas_grid_sample)
{
    const hwnas_view *in = &job.views[1], *out = &job.views[0], *grid = &job.views[2];
    const int n = CODE == HWNAS_SAMPLE_CUBIC ? 4 : CODE == HWNAS_SAMPLE_LINEAR ? 2 : 1;
    FOR_EACH(i) {
        const int x = i % out->dims[3], y = i / out->dims[3] % out->dims[2];
        const int plane = i / out->dims[3] / out->dims[2];
        const int image = plane / in->dims[1];
        const int from = plane % in->dims[1] * in->steps[1] + image * in->steps[0];
        const int at = image * grid->steps[0] + y * grid->steps[1] + x * grid->steps[2];
        const float u = kernel_sample_place(LOAD(2, at), in->dims[3], job.ints[2]);
        const float v = kernel_sample_place(LOAD(2, at + grid->steps[3]), in->dims[2], job.ints[2]);
        const int is_cubic = CODE == HWNAS_SAMPLE_CUBIC, is_nearest = CODE == HWNAS_SAMPLE_NEAREST;
        const int left = (int)(is_nearest ? rintf(u) : floorf(u)) - is_cubic;
        const int top = (int)(is_nearest ? rintf(v) : floorf(v)) - is_cubic;
        float sum = 0;
        for (int k = 0; k < n * n; k++) {
            const int row = top + k / n, column = left + k % n;
            const int a = kernel_sample_source(row, in->dims[2], job.ints[1], job.ints[2]);
            const int b = kernel_sample_source(column, in->dims[3], job.ints[1], job.ints[2]);
            const float weight = kernel_sample_weight(CODE, v - (float)row) *
                                 kernel_sample_weight(CODE, u - (float)column);
            if (a >= 0 && b >= 0)
                sum += weight * LOAD(1, from + a * in->steps[2] + b * in->steps[3]);
        }
        STORE(0, OFFSET(0, i), sum);
    }
}
