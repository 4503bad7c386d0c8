/* The proxy naswot. K[i][j] is the number of activations on which inputs i and j agree; inputs that
 * a network tells apart make the kernel diagonal and its determinant large. Inputs are standard
 * normal: no data are needed, and Mellor et al. find the score little changed by what the images
 * are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predict/proxy.h"
#include "predict/ridge.h"
#include "predict/untrained.h"

typedef struct kernel {
    int64_t batch;
    double *agreements; /* batch x batch */
    size_t n_gates;
} kernel;

/* Bits of one input's pattern; `out` has room for n / 64 words, rounded up. */
static void pack(uint64_t *out, const float *values, int64_t n)
{
    memset(out, 0, (size_t)((n + 63) / 64) * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        out[i / 64] |= (uint64_t)(values[i] > 0) << (i % 64);
}

static hwnas_status see(void *context, const hwnas_graph *graph, const hwnas_node *node,
                        const float *input, const float *output)
{
    kernel *k = context;
    const int64_t n = hwnas_tensor_count(hwnas_node_input(graph, node, 0)) / k->batch;
    const int64_t n_words = (n + 63) / 64;
    (void)output;
    /* The sign of what goes into an activation is its pattern. The paper has ReLUs alone. */
    if (node->op->class != HWNAS_CLASS_ACTIVATION)
        return HWNAS_OK;
    uint64_t *patterns = hwnas_alloc((size_t)(k->batch * n_words) * sizeof *patterns);
    for (int64_t i = 0; i < k->batch; i++)
        pack(patterns + i * n_words, input + i * n, n);
    for (int64_t i = 0; i < k->batch; i++)
        for (int64_t j = 0; j <= i; j++) {
            int64_t differ = 0;
            for (int64_t w = 0; w < n_words; w++)
                differ +=
                    __builtin_popcountll(patterns[i * n_words + w] ^ patterns[j * n_words + w]);
            k->agreements[i * k->batch + j] += (double)(n - differ);
        }
    free(patterns);
    k->n_gates++;
    return HWNAS_OK;
}

/* He et al. 2015. Batch norms undo it; networks without need it. */
static double deviation(double fan_in)
{
    return sqrt(2 / fan_in);
}

hwnas_status hwnas_proxy_naswot(double *out, const hwnas_graph *graph, hwnas_device *device,
                                uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_tensor *input = &graph->tensors[graph->inputs[0]];
    const int64_t n = hwnas_tensor_count(input), batch = input->dims[0];
    kernel k = {.batch = batch, .agreements = NULL};
    double *ones = hwnas_alloc((size_t)batch * sizeof *ones);
    void *images = NULL;
    k.agreements = hwnas_alloc((size_t)(batch * batch) * sizeof *k.agreements);
    TRY_OUT(hwnas_try_alloc(&images, (size_t)n * sizeof(float), "the images of a proxy"));
    hwnas_rng rng = hwnas_rng_new(seed, graph->n_tensors);
    for (int64_t i = 0; i < n; i++)
        ((float *)images)[i] = (float)hwnas_rng_normal(&rng);
    const hwnas_untrained_visit walk = {
        .device = device, .seed = seed, .deviation = deviation, .context = &k, .see = see};
    TRY_OUT(hwnas_untrained_walk(graph, images, &walk));
    if (!k.n_gates) {
        status = hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                       "naswot needs activations (ReLU, GELU, SiLU, tanh ...), "
                                       "the network has none"),
                            "proxy:zen and proxy:synflow need none");
        goto out;
    }
    /* Inputs that no activation tells apart would make the determinant zero; the penalty keeps it
     * finite and at the end of the ranking. */
    for (int64_t i = 0; i < batch; i++)
        ones[i] = 1;
    hwnas_ridge_factor(k.agreements, (size_t)batch, 1e-6, ones);
    double sum = 0;
    for (int64_t i = 0; i < batch; i++)
        sum += 2 * log(k.agreements[i * batch + i]);
    *out = sum;
out:
    free(images);
    free(ones);
    free(k.agreements);
    return status;
}
