/* host_kernels.h: our GPU kernels compiled for the host, from the same text; see
 * src/device/cudnn/kernels/kernel.h. */
#ifndef HOST_KERNELS_H
#define HOST_KERNELS_H

#include <stdbool.h>

#include "device/cudnn/kernels/kernel_job.h"

/* False: there is no kernel of that name. With `is_backward` the threads of a block come in the
 * opposite order, so that a missing barrier changes the result. */
bool host_kernel_run(const char *name, const hwnas_kernel_job *job, int n_blocks, int n_threads,
                     bool is_backward);

/* One element as the kernels read and write it. */
float host_load(const void *at, int type, int i);
void host_store(void *at, int type, int i, float value);

#endif
