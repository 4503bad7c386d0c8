/* posts.h: what is done to a step's results, by loops of ours. */
#ifndef HWNAS_DEVICE_ONEDNN_POSTS_H
#define HWNAS_DEVICE_ONEDNN_POSTS_H

#include "device/onednn/groups.h"
#include "device/onednn/simd.h"

/* Whether the loops here have this post-operation: one of those of a single value. */
bool hwnas_onednn_has_post(const hwnas_onednn_post *post);
/* Whether it takes oneDNN, within a primitive, longer than these loops behind it. */
bool hwnas_onednn_is_slow_fused(const hwnas_onednn_post *post);
/* Applies `n` of them to `count` values in place, on this thread. */
void hwnas_onednn_apply_posts(float *values, int64_t count, int n, const hwnas_onednn_post *posts);
/* The same on several threads. */
void hwnas_onednn_apply_posts_by(int threads, float *values, int64_t count, int n,
                                 const hwnas_onednn_post *posts);

/* Negative values times `slope`. */
HWNAS_INLINE void hwnas_relu(hwnas_vector *x, float slope)
{
    const hwnas_vector zero = {0}, other = *x * slope;
    const hwnas_whole_vector is_more = *x > zero;
    *x =
        (hwnas_vector)((is_more & (hwnas_whole_vector)*x) | (~is_more & (hwnas_whole_vector)other));
}

HWNAS_INLINE void hwnas_onednn_apply_post(hwnas_vector *x, const hwnas_onednn_post *p)
{
    hwnas_vector gate = *x * p->alpha + p->beta;
    switch ((int)p->alg) {
    case dnnl_eltwise_relu:
        hwnas_relu(x, p->alpha);
        return;
    case dnnl_eltwise_clip:
        hwnas_clamp(x, x, p->alpha, p->beta);
        return;
    case dnnl_eltwise_hardsigmoid:
        hwnas_clamp(x, &gate, 0, 1);
        return;
    case dnnl_eltwise_hardswish:
        hwnas_clamp(&gate, &gate, 0, 1);
        *x *= gate;
        return;
    case dnnl_eltwise_linear:
        *x = gate;
        return;
    case dnnl_eltwise_logistic:
        hwnas_sigmoid(x, x);
        return;
    case dnnl_eltwise_swish:
        gate = *x * -p->alpha;
        hwnas_exp(&gate, &gate);
        *x /= 1.0f + gate;
        return;
    default:
        hwnas_tanh(x, x);
    }
}

#endif
