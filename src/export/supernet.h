/* supernet.h: a space as a PyTorch module whose networks share weights (graph/shared.h). */
#ifndef HWNAS_EXPORT_SUPERNET_H
#define HWNAS_EXPORT_SUPERNET_H

#include "graph/shared.h"

/* Writes a whole file or none: training/shared.py, and behind it the space's statements as Python,
 * its choices and the sizes of the weights. */
HWNAS_CHECKED hwnas_status hwnas_supernet_write(const char *path, const hwnas_shared *shared);

#endif
