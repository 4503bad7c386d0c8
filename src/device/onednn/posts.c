/* posts.c: post-operations over values that lie one behind the other. */
#include "device/onednn/posts.h"

#include <string.h>

/* What hwnas_onednn_apply_post() knows. */
#define EACH_FUNCTION(OF)                                                                          \
    OF(dnnl_eltwise_relu)                                                                          \
    OF(dnnl_eltwise_clip)                                                                          \
    OF(dnnl_eltwise_hardswish)                                                                     \
    OF(dnnl_eltwise_hardsigmoid)                                                                   \
    OF(dnnl_eltwise_linear)                                                                        \
    OF(dnnl_eltwise_logistic)                                                                      \
    OF(dnnl_eltwise_swish)                                                                         \
    OF(dnnl_eltwise_tanh)                                                                          \
    OF(dnnl_eltwise_gelu_erf)                                                                      \
    OF(dnnl_eltwise_gelu_tanh)

bool hwnas_onednn_has_post(const hwnas_onednn_post *post)
{
    if (post->operand >= 0)
        return false;
    switch ((int)post->alg) {
#define IS_KNOWN(ALG) case ALG:
        EACH_FUNCTION(IS_KNOWN)
        return true;
    }
    return false;
}

/* AVX-512, oneDNN 3.7: swish takes 0.73 to 1.8 ns a value behind a convolution, 0.6 at most here;
 * what has no exponential takes less than 0.2 there. With AVX2 tanh takes 4 ns there. */
bool hwnas_onednn_is_slow_fused(const hwnas_onednn_post *post)
{
    if (post->operand >= 0)
        return false;
    if (post->alg == dnnl_eltwise_tanh || post->alg == dnnl_eltwise_gelu_tanh)
        return hwnas_onednn_ends_at_avx2();
    return post->alg == dnnl_eltwise_swish || post->alg == dnnl_eltwise_logistic;
}

HWNAS_INLINE void apply(float *values, int64_t whole, const hwnas_onednn_post *post)
{
    for (int64_t i = 0; i < whole; i += HWNAS_HALF_LANES)
        hwnas_onednn_apply_post((hwnas_half *)(values + i), post);
}

/* The function is known in each loop, so that there is no question about each vector. */
HWNAS_INLINE void apply_whole(float *values, int64_t whole, const hwnas_onednn_post *post)
{
    hwnas_onednn_post p = *post;
    switch ((int)post->alg) {
#define APPLY(ALG)                                                                                 \
    case ALG:                                                                                      \
        p.alg = ALG;                                                                               \
        apply(values, whole, &p);                                                                  \
        break;
        EACH_FUNCTION(APPLY)
    }
}

HWNAS_CLONES void hwnas_onednn_apply_posts(float *values, int64_t count, int n,
                                           const hwnas_onednn_post *posts)
{
    const int64_t whole = count / HWNAS_HALF_LANES * HWNAS_HALF_LANES;
    float rest[HWNAS_HALF_LANES] = {0};
    for (int k = 0; k < n; k++) {
        apply_whole(values, whole, &posts[k]);
        if (whole == count)
            continue;
        memcpy(rest, values + whole, (size_t)(count - whole) * sizeof *values);
        apply_whole(rest, HWNAS_HALF_LANES, &posts[k]);
        memcpy(values + whole, rest, (size_t)(count - whole) * sizeof *values);
    }
}

void hwnas_onednn_apply_posts_by(int threads, float *values, int64_t count, int n,
                                 const hwnas_onednn_post *posts)
{
    enum { PIECE = 1 << 12 }; /* values */
    const int64_t n_pieces = (count + PIECE - 1) / PIECE;
#pragma omp parallel for num_threads(threads) schedule(static) if (n_pieces > 1 && threads > 1)
    for (int64_t i = 0; i < n_pieces; i++) {
        const int64_t at = i * PIECE;
        hwnas_onednn_apply_posts(values + at, count - at < PIECE ? count - at : PIECE, n, posts);
    }
}
