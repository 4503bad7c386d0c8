/* The proxy zen. Shortcuts stay in: the paper takes them out of its residual networks, but in a
 * cell a skip is a choice. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predict/proxy.h"
#include "predict/untrained.h"

static const double step_size = 0.01; /* alpha of algorithm 1 */

typedef struct features {
    int node; /* whose first input they are; -1: the network's output */
    float *values;
    int64_t n;
    double log_scales; /* of the batch norms */
} features;

/* The features of a network for images are what its last global pooling sees. */
static int find_features(const hwnas_graph *graph)
{
    for (size_t i = graph->n_nodes; i-- > 0;)
        if (graph->nodes[i].op->id == HWNAS_OP_GLOBAL_AVG_POOL)
            return (int)i;
    return -1;
}

static hwnas_status see(void *context, const hwnas_graph *graph, const hwnas_node *node,
                        const float *input, const float *output)
{
    features *f = context;
    const bool is_it =
        f->node >= 0 ? node == &graph->nodes[f->node] : node->output == graph->outputs[0];
    if (!is_it)
        return HWNAS_OK;
    const hwnas_tensor *tensor =
        f->node >= 0 ? hwnas_node_input(graph, node, 0) : hwnas_node_output(graph, node);
    void *copy = NULL;
    f->n = hwnas_tensor_count(tensor);
    TRY(hwnas_try_alloc(&copy, (size_t)f->n * sizeof(float), "the features of a proxy"));
    memcpy(copy, f->node >= 0 ? input : output, (size_t)f->n * sizeof(float));
    f->values = copy;
    return HWNAS_OK;
}

static void see_variances(void *context, const double *variances, int64_t channels)
{
    features *f = context;
    double mean = 0;
    for (int64_t c = 0; c < channels; c++)
        mean += variances[c] / (double)channels;
    /* A channel group that died has no scale to give back. */
    f->log_scales += 0.5 * log(fmax(mean, 1e-12));
}

static double standard(double fan_in)
{
    (void)fan_in;
    return 1;
}

hwnas_status hwnas_proxy_zen(double *out, const hwnas_graph *graph, hwnas_device *device,
                             uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_tensor *input = &graph->tensors[graph->inputs[0]];
    const int64_t n = hwnas_tensor_count(input), batch = input->dims[0];
    features plain = {.node = find_features(graph)}, moved = {.node = plain.node};
    void *images = NULL;
    TRY_OUT(hwnas_try_alloc(&images, (size_t)n * sizeof(float), "the images of a proxy"));
    hwnas_rng rng = hwnas_rng_new(seed, graph->n_tensors);
    for (int64_t i = 0; i < n; i++)
        ((float *)images)[i] = (float)hwnas_rng_normal(&rng);
    hwnas_untrained_visit walk = {.device = device,
                       .seed = seed,
                       .deviation = standard,
                       .context = &plain,
                       .see = see,
                       .see_variances = see_variances};
    TRY_OUT(hwnas_untrained_walk(graph, images, &walk));
    for (int64_t i = 0; i < n; i++)
        ((float *)images)[i] += (float)(step_size * hwnas_rng_normal(&rng));
    walk.context = &moved;
    TRY_OUT(hwnas_untrained_walk(graph, images, &walk));
    double change = 0;
    for (int64_t i = 0; i < batch; i++) {
        double square = 0;
        for (int64_t j = i * (plain.n / batch); j < (i + 1) * (plain.n / batch); j++) {
            double difference = (double)moved.values[j] - plain.values[j];
            square += difference * difference;
        }
        change += sqrt(square) / (double)batch;
    }
    *out = log(fmax(change, 1e-30)) + plain.log_scales;
out:
    free(images);
    free(plain.values);
    free(moved.values);
    return status;
}
