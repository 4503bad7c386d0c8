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
HWNAS_INLINE void hwnas_relu(hwnas_half *x, float slope)
{
    const hwnas_half zero = {0}, other = *x * slope;
    hwnas_choose_half(x, &zero, x, x, &other);
}

/* x (1 + erf(x / sqrt 2)) / 2, with erf by Abramowitz and Stegun, 7.1.26: within 1.5e-7. */
HWNAS_INLINE void hwnas_gelu(hwnas_half *x)
{
    const hwnas_half minus = -*x, zero = {0};
    hwnas_half size;
    hwnas_choose_half(&size, x, &zero, &minus, x);
    size *= 0.70710678f;
    const hwnas_half t = 1.0f / (1.0f + 0.3275911f * size), square = -size * size;
    hwnas_half e;
    hwnas_exp_half(&e, &square);
    hwnas_half p = 1.061405429f * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    e *= p * t; /* 1 - erf(size) */
    const hwnas_half other = 2.0f - e;
    hwnas_choose_half(&e, x, &zero, &e, &other);
    *x *= 0.5f * e;
}

/* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2. */
HWNAS_INLINE void hwnas_gelu_tanh(hwnas_half *x)
{
    hwnas_half inner = 0.79788456f * *x * (1.0f + 0.044715f * *x * *x);
    hwnas_tanh_half(&inner, &inner);
    *x *= 0.5f * (1.0f + inner);
}

HWNAS_INLINE void hwnas_onednn_apply_post(hwnas_half *x, const hwnas_onednn_post *p)
{
    hwnas_half gate = *x * p->alpha + p->beta;
    switch ((int)p->alg) {
    case dnnl_eltwise_relu:
        hwnas_relu(x, p->alpha);
        return;
    case dnnl_eltwise_clip:
        hwnas_clamp_half(x, x, p->alpha, p->beta);
        return;
    case dnnl_eltwise_hardsigmoid:
        hwnas_clamp_half(x, &gate, 0, 1);
        return;
    case dnnl_eltwise_hardswish:
        hwnas_clamp_half(&gate, &gate, 0, 1);
        *x *= gate;
        return;
    case dnnl_eltwise_linear:
        *x = gate;
        return;
    case dnnl_eltwise_logistic:
        hwnas_sigmoid_half(x, x);
        return;
    case dnnl_eltwise_swish:
        gate = *x * -p->alpha;
        hwnas_exp_half(&gate, &gate);
        *x /= 1.0f + gate;
        return;
    case dnnl_eltwise_gelu_erf:
        hwnas_gelu(x);
        return;
    case dnnl_eltwise_gelu_tanh:
        hwnas_gelu_tanh(x);
        return;
    default:
        hwnas_tanh_half(x, x);
    }
}

#endif
