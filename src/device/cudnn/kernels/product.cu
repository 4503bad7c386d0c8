/* product.cu: products and convolutions for what cuDNN refuses. A thread has one value of the
 * output and adds in fp32: right, and slow. */
#include "kernel.h"

/* views: 0 the output; 1 and 2 the factors over the output's dimensions, without the one that is
 * summed; with ints[4], 3 the bias, the same. ints: [1] the length of the sum, [2], [3] its steps
 * in the factors. */
KERNEL(hwnas_matmul)
{
    FOR_EACH(i) {
        const int x = OFFSET(1, i), y = OFFSET(2, i);
        float sum = job.ints[4] ? LOAD(3, OFFSET(3, i)) : 0;
        for (int k = 0; k < job.ints[1]; k++)
            sum += LOAD(1, x + k * job.ints[2]) * LOAD(2, y + k * job.ints[3]);
        STORE(0, OFFSET(0, i), sum);
    }
}

/* views: 0 the output, 1 the image, 2 the kernel (outputs, inputs of a group, height, width); with
 * ints[8], 3 the bias. ints: [1] stride, [3] pad, [5] dilation (down, right each); [7] groups. */
KERNEL(hwnas_conv)
{
    const hwnas_view *in = &job.views[1], *w = &job.views[2], *out = &job.views[0];
    FOR_EACH(i) {
        const int x = i % out->dims[3], y = i / out->dims[3] % out->dims[2];
        const int o = i / out->dims[3] / out->dims[2] % out->dims[1];
        const int sample = i / out->dims[3] / out->dims[2] / out->dims[1];
        const int first = o / (out->dims[1] / job.ints[7]) * w->dims[1];
        float sum = job.ints[8] ? LOAD(3, o * job.views[3].steps[0]) : 0;
        for (int c = 0; c < w->dims[1]; c++)
            for (int k = 0; k < w->dims[2] * w->dims[3]; k++) {
                const int ky = k / w->dims[3], kx = k % w->dims[3];
                const int row = y * job.ints[1] - job.ints[3] + ky * job.ints[5];
                const int column = x * job.ints[2] - job.ints[4] + kx * job.ints[6];
                if (row < 0 || row >= in->dims[2] || column < 0 || column >= in->dims[3])
                    continue;
                sum += LOAD(1, sample * in->steps[0] + (first + c) * in->steps[1] +
                                   row * in->steps[2] + column * in->steps[3]) *
                       LOAD(2, o * w->steps[0] + c * w->steps[1] + ky * w->steps[2] +
                                   kx * w->steps[3]);
            }
        STORE(0, OFFSET(0, i), sum);
    }
}

/* As hwnas_conv, but the kernel is inputs, outputs of a group, height, width. */
KERNEL(hwnas_conv_transpose)
{
    const hwnas_view *in = &job.views[1], *w = &job.views[2], *out = &job.views[0];
    FOR_EACH(i) {
        const int x = i % out->dims[3], y = i / out->dims[3] % out->dims[2];
        const int o = i / out->dims[3] / out->dims[2] % out->dims[1];
        const int sample = i / out->dims[3] / out->dims[2] / out->dims[1];
        const int per_group = in->dims[1] / job.ints[7], first = o / w->dims[1] * per_group;
        float sum = job.ints[8] ? LOAD(3, o * job.views[3].steps[0]) : 0;
        for (int c = first; c < first + per_group; c++)
            for (int k = 0; k < w->dims[2] * w->dims[3]; k++) {
                const int ky = k / w->dims[3], kx = k % w->dims[3];
                const int down = y + job.ints[3] - ky * job.ints[5];
                const int right = x + job.ints[4] - kx * job.ints[6];
                const int row = down / job.ints[1], column = right / job.ints[2];
                if (down < 0 || right < 0 || down % job.ints[1] || right % job.ints[2] ||
                    row >= in->dims[2] || column >= in->dims[3])
                    continue;
                sum += LOAD(1, sample * in->steps[0] + c * in->steps[1] + row * in->steps[2] +
                                   column * in->steps[3]) *
                       LOAD(2, c * w->steps[0] + o % w->dims[1] * w->steps[1] + ky * w->steps[2] +
                                   kx * w->steps[3]);
            }
        STORE(0, OFFSET(0, i), sum);
    }
}
