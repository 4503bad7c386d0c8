/* kernel_block.h: one block's compilation of our GPU kernels, for thread_kernels.c; the file that
 * includes this says which, in HWNAS_KERNEL_BLOCK. */
#include "kernel_rows.h"
#include "thread_kernels.h"

/* As softmax would be if a barrier of its were missing: what one thread has found, others read. */
static void test_race(hwnas_kernel_job job, kernel_launch launch)
{
    SHARED float all[N_THREADS];
    SHARED float first;
    THREADS(t)
    {
        all[t] = (float)t;
    }
    if (launch.thread == 0)
        first = all[1];
    THREADS(t)
    {
        all[t] -= first;
    }
    if (launch.thread == 0)
        STORE(0, 0, all[1]);
}

#define RUN(BLOCK) RUN_(BLOCK)
#define RUN_(BLOCK) kernel_block_run_##BLOCK

bool RUN(HWNAS_KERNEL_BLOCK)(const char *name, const hwnas_kernel_job *job, const block_thread *at)
{
    kernel_of_host *run = strcmp(name, "test_race") ? kernel_named(name) : test_race;
    if (run)
        run(*job, (kernel_launch){at->n_blocks, at->block, at->n_threads, at->thread, at->wait,
                                  at->barrier});
    return run != NULL;
}
