/* thread_kernels.h: our GPU kernels by threads of the host, one for each of the GPU's. */
#ifndef THREAD_KERNELS_H
#define THREAD_KERNELS_H

#include <stdbool.h>

#include "device/cudnn/kernels/kernel_job.h"

enum { MOST_THREAD_BLOCKS = 3 }; /* at once: each is a file, kernel_block_0.c and so on */

/* Which thread of a launch this is. */
typedef struct block_thread {
    int n_blocks, block, n_threads, thread;
    void (*wait)(void *barrier);
    void *barrier;
} block_thread;

/* False: there is no kernel of that name. */
bool kernel_block_run_0(const char *name, const hwnas_kernel_job *job, const block_thread *at);
bool kernel_block_run_1(const char *name, const hwnas_kernel_job *job, const block_thread *at);
bool kernel_block_run_2(const char *name, const hwnas_kernel_job *job, const block_thread *at);

#endif
