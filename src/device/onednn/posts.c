/* posts.c: post-operations over values that lie one behind the other. */
#include "device/onednn/posts.h"

#include <string.h>

bool hwnas_onednn_has_post(const hwnas_onednn_post *post)
{
    if (post->operand >= 0)
        return false;
    switch ((int)post->alg) {
    case dnnl_eltwise_relu:
    case dnnl_eltwise_clip:
    case dnnl_eltwise_hardswish:
    case dnnl_eltwise_hardsigmoid:
    case dnnl_eltwise_linear:
    case dnnl_eltwise_logistic:
    case dnnl_eltwise_swish:
    case dnnl_eltwise_tanh:
    case dnnl_eltwise_gelu_erf:
    case dnnl_eltwise_gelu_tanh:
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

HWNAS_CLONES void hwnas_onednn_apply_posts(float *values, int64_t count, int n,
                                           const hwnas_onednn_post *posts)
{
    const int64_t whole = count / HWNAS_LANES * HWNAS_LANES;
    float rest[HWNAS_LANES] = {0};
    hwnas_vector x;
    for (int k = 0; k < n; k++) {
        for (int64_t i = 0; i < whole; i += HWNAS_LANES) {
            hwnas_load(&x, values + i);
            hwnas_onednn_apply_post(&x, &posts[k]);
            hwnas_store(values + i, &x);
        }
        memcpy(rest, values + whole, (size_t)(count - whole) * sizeof *values);
        hwnas_load(&x, rest);
        hwnas_onednn_apply_post(&x, &posts[k]);
        hwnas_store(rest, &x);
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
