/* pytorch.h: an architecture as a PyTorch module, ready to train. */
#ifndef HWNAS_EXPORT_PYTORCH_H
#define HWNAS_EXPORT_PYTORCH_H

#include "base/str.h"
#include "space/arch.h"

/* Writes a Python file with one class for each template that the architecture uses and a function
 * build() that makes the network. Parameters and buffers come in the order of the graph's weights.
 * What has no spelling in PyTorch is HWNAS_E_UNSUPPORTED at its place in the space. */
HWNAS_CHECKED hwnas_status hwnas_pytorch_write(hwnas_str *out, const hwnas_arch *arch);

/* Can the operator be written? For the test that walks the table of operators. */
bool hwnas_pytorch_knows(const char *op);

#endif
