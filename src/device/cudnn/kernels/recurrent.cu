/* recurrent.cu: LSTM and GRU for what cuDNN refuses. A block has one sequence in one direction, a
 * thread some values of the state. Gates are in ONNX's order; the reset of a GRU comes after the
 * product. */
#include "kernel.h"

DEVICE float kernel_sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* Row `row` of W times the input plus that of R times the state, with their biases; `parts` holds
 * both. */
#define GATE(parts, g)                                                                             \
    do {                                                                                           \
        const int row_ = (g)*hidden + i;                                                           \
        parts[0] = has_bias ? LOAD(4, bias + row_ * job.views[4].steps[1]) : 0;                    \
        parts[1] =                                                                                 \
            has_bias ? LOAD(4, bias + (n_gates * hidden + row_) * job.views[4].steps[1]) : 0;      \
        for (int k = 0; k < job.views[1].dims[2]; k++)                                             \
            parts[0] += LOAD(2, w + row_ * job.views[2].steps[1] + k * job.views[2].steps[2]) *    \
                        LOAD(1, x + k * job.views[1].steps[2]);                                    \
        for (int k = 0; k < hidden; k++)                                                           \
            parts[1] += LOAD(3, r + row_ * job.views[3].steps[1] + k * job.views[3].steps[2]) *    \
                        h[step % 2][k];                                                            \
    } while (0)

/* views: 0 the output (steps, directions, batch, hidden), 1 x (steps, batch, features), 2 W, 3 R
 * (directions, gates times hidden, columns); with ints[1], 4 the biases (directions, W's and R's).
 * ints: [0] the kind, [2] one direction, which is backward. n: directions times batch. */
KERNEL(hwnas_recurrent)
{
    SHARED float h[2][HWNAS_RNN_MOST_HIDDEN]; /* of this step and the next, by turns */
    SHARED float cell[HWNAS_RNN_MOST_HIDDEN];
    const hwnas_view *out = &job.views[0];
    const int n_steps = out->dims[0], hidden = out->dims[3], has_bias = job.ints[1];
    const int n_gates = CODE == HWNAS_RNN_LSTM ? 4 : 3;
    FOR_BLOCKS(sequence) {
        const int d = sequence / out->dims[2], sample = sequence % out->dims[2];
        const int w = d * job.views[2].steps[0], r = d * job.views[3].steps[0];
        const int bias = has_bias ? d * job.views[4].steps[0] : 0;
        THREADS(t)
            for (int i = t; i < hidden; i += N_THREADS)
                h[0][i] = cell[i] = 0;
        for (int step = 0; step < n_steps; step++) {
            const int at = d == 1 || job.ints[2] ? n_steps - 1 - step : step;
            const int x = at * job.views[1].steps[0] + sample * job.views[1].steps[1];
            THREADS(t)
                for (int i = t; i < hidden; i += N_THREADS) {
                    float parts[2], first, second, next;
                    GATE(parts, 0); /* LSTM: in; GRU: update */
                    first = kernel_sigmoid(parts[0] + parts[1]);
                    GATE(parts, 1); /* LSTM: out; GRU: reset */
                    second = kernel_sigmoid(parts[0] + parts[1]);
                    GATE(parts, 2); /* LSTM: forget; GRU: hidden */
                    if (CODE == HWNAS_RNN_LSTM) {
                        cell[i] *= kernel_sigmoid(parts[0] + parts[1]);
                        GATE(parts, 3); /* cell */
                        cell[i] += first * tanhf(parts[0] + parts[1]);
                        next = second * tanhf(cell[i]);
                    } else {
                        next = (1 - first) * tanhf(parts[0] + second * parts[1]) +
                               first * h[step % 2][i];
                    }
                    h[(step + 1) % 2][i] = next;
                    STORE(0, at * out->steps[0] + d * out->steps[1] + sample * out->steps[2] +
                                 i * out->steps[3], next);
                }
        }
    }
}
