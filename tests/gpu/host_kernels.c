#include "host_kernels.h"

#include "kernel_rows.h"

bool host_kernel_run(const char *name, const hwnas_kernel_job *job, int n_blocks, int n_threads,
                     bool is_backward)
{
    kernel_of_host *run = kernel_named(name);
    if (run)
        run(*job, (kernel_launch){n_blocks, n_threads, is_backward});
    return run != NULL;
}

float host_load(const void *at, int type, int i)
{
    return kernel_load(at, type, i);
}

void host_store(void *at, int type, int i, float value)
{
    kernel_store(at, type, i, value);
}
