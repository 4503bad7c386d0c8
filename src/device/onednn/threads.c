/* threads.c: what a step has to do, in the time of one thread. */
#include "device/onednn/threads.h"

#include <math.h>

#include "graph/op.h"

static bool is_among(int node, const int *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (nodes[i] == node)
            return true;
    return false;
}

/* Bytes of the k-th input that are read: of a table no more than what is taken from it. */
static double bytes_read(const hwnas_graph *graph, const hwnas_node *node, int k)
{
    const double bytes = (double)hwnas_tensor_bytes(hwnas_node_input(graph, node, k));
    return node->op->id == HWNAS_OP_GATHER && k == 0
               ? fmin(bytes, (double)hwnas_tensor_bytes(hwnas_node_output(graph, node)))
               : bytes;
}

bool hwnas_onednn_is_worth_threads(const hwnas_graph *graph, const int *nodes, size_t n)
{
    /* An Intel Xeon with AVX-512, one core: about what convolutions and what only moves values reach
     * in its second cache. To have another thread begin and to wait for it took 2 to 5 us there. */
    static const double macs_per_second = 40e9, bytes_per_second = 20e9, least = 6e-6;
    double macs = 0, bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const hwnas_node *node = &graph->nodes[nodes[i]];
        macs += node->op->macs ? (double)node->op->macs(graph, node) : 0;
        for (int k = 0; k < node->n_inputs; k++)
            if (!is_among(graph->tensors[node->inputs[k]].producer, nodes, n))
                bytes += bytes_read(graph, node, k);
        if (i == n - 1)
            bytes += (double)hwnas_tensor_bytes(hwnas_node_output(graph, node));
    }
    return macs / macs_per_second + bytes / bytes_per_second >= least;
}
