/* pytorch.h: an architecture as a PyTorch module, ready to train. */
#ifndef HWNAS_EXPORT_PYTORCH_H
#define HWNAS_EXPORT_PYTORCH_H

#include "base/str.h"
#include "graph/graph.h"
#include "space/arch.h"

/* Writes a Python file with one class for each template that the architecture uses and a function
 * build() that makes the network. Parameters and buffers come in the order of the graph's weights.
 * Where templates cannot say the network, it is one class with a line for each node. */
HWNAS_CHECKED hwnas_status hwnas_pytorch_write(hwnas_str *out, const hwnas_arch *arch);

/* The same of a graph, always as one class. Its build() loads the weights from a file of the name
 * `weights_name` beside the Python file; `weights` gets that file's bytes (safetensors). */
HWNAS_CHECKED hwnas_status hwnas_pytorch_write_graph(hwnas_str *out, hwnas_str *weights,
                                                     const char *weights_name,
                                                     const hwnas_graph *graph);

/* Can the operator be written? For the test that walks the table of operators. */
bool hwnas_pytorch_knows(const char *op);

#endif
