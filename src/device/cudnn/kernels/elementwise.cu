/* elementwise.cu: functions of elements, one after the other, read and written wherever they lie;
 * so copies of parts, other orders of dimensions, other types and layouts as well.
 *
 * views: 0 the output, whose dimensions are those of all; then operands. links: the functions, in
 * order; none: a copy of view 1. */
#include "kernel.h"

/* As a tensor of the type would hold it: the codes are graph/dtype.h's. */
DEVICE float kernel_as_dtype(float x, int dtype)
{
    const int bits = dtype == 6 || dtype == 10 ? 16 : dtype == 7 || dtype == 11 ? 8 : 0;
    if (dtype == 2)
        return kernel_from_half(kernel_to_half(x));
    if (dtype == 3)
        return kernel_bits_to_float((unsigned)kernel_to_bfloat(x) << 16);
    if (dtype < 4)
        return x;
    if (dtype == 12)
        return x != 0;
    x = truncf(x);
    if (!bits || x != x)
        return x;
    const float range = bits == 16 ? 65536.0f : 256.0f;
    const float wrapped = x - range * floorf(x / range);
    return dtype < 8 && wrapped >= range / 2 ? wrapped - range : wrapped;
}

DEVICE float kernel_function(int function, const float *operands, float a, float b)
{
    const float x = operands[0], y = operands[1], z = operands[2], u = operands[3], v = operands[4];
    switch (function) {
#define FUNCTION(NAME, VALUE)                                                                      \
    case HWNAS_FUNCTION_##NAME:                                                                    \
        return VALUE;
#include "functions.h"
#undef FUNCTION
    }
    return x;
}

KERNEL(hwnas_elementwise)
{
    FOR_EACH(i) {
        int at[HWNAS_JOB_VIEWS] = {0};
        float values[HWNAS_JOB_VIEWS], last;
        unsigned left = (unsigned)i;
        UNROLL
        for (int d = RANK(0) - 1; d >= 0; d--) {
            const int index = (int)(left % (unsigned)job.views[0].dims[d]);
            left /= (unsigned)job.views[0].dims[d];
            UNROLL
            for (int k = 0; k < N_VIEWS; k++)
                at[k] += index * job.views[k].steps[d];
        }
        UNROLL
        for (int k = 1; k < N_VIEWS; k++)
            values[k] = kernel_load(job.views[k].at, TYPE_OF(k), at[k]);
        last = N_VIEWS > 1 ? values[1] : 0;
        UNROLL
        for (int l = 0; l < N_LINKS; l++) {
            float operands[HWNAS_JOB_OPERANDS] = {0};
            UNROLL
            for (int o = 0; o < HWNAS_JOB_OPERANDS; o++) {
                const int view = job.links[l].operands[o];
                operands[o] = view == HWNAS_OPERAND_LAST ? last : 0;
                UNROLL
                for (int k = 1; k < N_VIEWS; k++) /* no index that is not constant */
                    operands[o] = view == k ? values[k] : operands[o];
            }
            last = kernel_function(FUNCTION_OF(l), operands, job.links[l].a, job.links[l].b);
        }
        STORE(0, at[0], last);
    }
}

/* The same elements in another shape: views 0 and 1 have dimensions of their own. */
KERNEL(hwnas_reshape)
{
    FOR_EACH(i)
        STORE(0, OFFSET(0, i), LOAD(1, OFFSET(1, i)));
}
