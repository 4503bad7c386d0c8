/* indexed.cu: values from, or to, places that another tensor names. A place beyond a dimension is
 * taken for the nearest in it. */
#include "kernel.h"

/* views: 0 the output, seen as before x indices x after; 1 the table as before x after, without its
 * axis; 2 the indices, of dimensions of their own. ints: [1] the first of the output's dimensions
 * that belong to the indices, [2] how many do, [3] the axis' length, [4] its step. */
KERNEL(hwnas_gather)
{
    FOR_EACH(i) {
        unsigned left = (unsigned)i, number = 0, scale = 1;
        int to = 0, from = 0;
        UNROLL
        for (int d = RANK(0) - 1; d >= 0; d--) {
            const int n = job.views[0].dims[d], index = (int)(left % (unsigned)n);
            left /= (unsigned)n;
            to += index * job.views[0].steps[d];
            if (d >= job.ints[1] && d < job.ints[1] + job.ints[2]) {
                number += (unsigned)index * scale;
                scale *= (unsigned)n;
            } else {
                from += index * job.views[1].steps[d < job.ints[1] ? d : d - job.ints[2]];
            }
        }
        const float index = LOAD(2, OFFSET(2, (int)number));
        STORE(0, to, LOAD(1, from + kernel_place(index, job.ints[3]) * job.ints[4]));
    }
}

/* Like elements of the indices, but for one axis. views: 0 the output, 1 the data, 2 the indices.
 * ints: [1] the axis. */
KERNEL(hwnas_gather_elements)
{
    FOR_EACH(i) {
        const float index = LOAD(2, OFFSET(2, i));
        unsigned left = (unsigned)i;
        int from = 0;
        UNROLL
        for (int d = RANK(0) - 1; d >= 0; d--) {
            const int n = job.views[0].dims[d], at = (int)(left % (unsigned)n);
            left /= (unsigned)n;
            from += (d == job.ints[1] ? kernel_place(index, job.views[1].dims[d]) : at) *
                    job.views[1].steps[d];
        }
        STORE(0, OFFSET(0, i), LOAD(1, from));
    }
}

DEVICE float kernel_scatter(int code, float old, float update)
{
    switch (code) {
    case HWNAS_SCATTER_ADD:
        return old + update;
    case HWNAS_SCATTER_MUL:
        return old * update;
    case HWNAS_SCATTER_MAX:
        return old > update ? old : update;
    case HWNAS_SCATTER_MIN:
        return old < update ? old : update;
    }
    return update;
}

/* Into a copy of the data, which is there. A thread has a whole line along the axis, and no other
 * thread writes to it; so equal places are no race, and come in order. views: 0 the output, 1 the
 * indices, 2 the updates. ints: [1] the axis. n: lines of the indices. */
KERNEL(hwnas_scatter_elements)
{
    const int axis = job.ints[1];
    FOR_EACH(line) {
        int to = 0, from = 0, what = 0;
        unsigned left = (unsigned)line;
        UNROLL
        for (int d = RANK(1) - 1; d >= 0; d--) {
            const unsigned n = d == axis ? 1 : (unsigned)job.views[1].dims[d];
            const int at = (int)(left % n);
            left /= n;
            to += at * job.views[0].steps[d];
            from += at * job.views[1].steps[d];
            what += at * job.views[2].steps[d];
        }
        for (int i = 0; i < job.views[1].dims[axis]; i++) {
            const float index = LOAD(1, from + i * job.views[1].steps[axis]);
            const int at =
                to + kernel_place(index, job.views[0].dims[axis]) * job.views[0].steps[axis];
            STORE(0, at,
                  kernel_scatter(CODE, LOAD(0, at), LOAD(2, what + i * job.views[2].steps[axis])));
        }
    }
}

/* views: 0 the output, 1 the data, 2 the indices, whose last dimension is a place in the data's
 * dimensions behind the common ones. The output has the indices' dimensions but for that one, then
 * the rest of the data's. ints: [1] dimensions in common, [2] dimensions that an index names. */
KERNEL(hwnas_gather_nd)
{
    const int common = job.ints[1], named = job.ints[2];
    FOR_EACH(i) {
        const int n_before =
            RANK(2) - 1; /* of the output's dimensions that come from the indices */
        unsigned left = (unsigned)i;
        int to = 0, from = 0, index = 0;
        UNROLL
        for (int d = RANK(0) - 1; d >= 0; d--) {
            const int at = (int)(left % (unsigned)job.views[0].dims[d]);
            left /= (unsigned)job.views[0].dims[d];
            to += at * job.views[0].steps[d];
            if (d >= n_before)
                from += at * job.views[1].steps[d - n_before + common + named];
            else
                index += at * job.views[2].steps[d];
            if (d < common)
                from += at * job.views[1].steps[d];
        }
        for (int k = 0; k < named; k++)
            from += kernel_place(LOAD(2, index + k * job.views[2].steps[n_before]),
                                 job.views[1].dims[common + k]) *
                    job.views[1].steps[common + k];
        STORE(0, to, LOAD(1, from));
    }
}

/* Into a copy of the data. A thread has one place of the parts that are put, and goes through all
 * indices in order. views: 0 the output, 1 the indices without their last dimension, 2 the updates.
 * ints: [1] dimensions that an index names, [2] the step of the indices' last dimension, [3] how
 * many indices. n: values in a part. */
KERNEL(hwnas_scatter_nd)
{
    const int named = job.ints[1];
    FOR_EACH(part) {
        int inside = 0;
        unsigned left = (unsigned)part;
        UNROLL
        for (int d = RANK(0) - 1; d >= 0; d--)
            if (d >= named) {
                inside += (int)(left % (unsigned)job.views[0].dims[d]) * job.views[0].steps[d];
                left /= (unsigned)job.views[0].dims[d];
            }
        for (int i = 0; i < job.ints[3]; i++) {
            const int index = OFFSET(1, i);
            int to = inside;
            for (int k = 0; k < named; k++)
                to += kernel_place(LOAD(1, index + k * job.ints[2]), job.views[0].dims[k]) *
                      job.views[0].steps[k];
            STORE(0, to, kernel_scatter(CODE, LOAD(0, to), LOAD(2, OFFSET(2, i * job.n + part))));
        }
    }
}
