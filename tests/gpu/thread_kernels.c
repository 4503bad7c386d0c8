/* thread_kernels.c: host_kernels.h by threads. All blocks of a launch run at once, so
 * ThreadSanitizer sees what is not kept apart: threads of a block by a barrier, blocks by what they
 * write. */
#include "thread_kernels.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "device/cudnn/kernels/kernel.h"
#include "host_kernels.h"

static bool (*const blocks[MOST_THREAD_BLOCKS])(const char *, const hwnas_kernel_job *,
                                                const block_thread *) = {
    kernel_block_run_0, kernel_block_run_1, kernel_block_run_2};

/* Two in turns: who comes late out of the first wait would seem to know what others have done by
 * the second, if that were the same barrier. */
typedef struct barrier_of_block {
    pthread_barrier_t turns[2];
} barrier_of_block;

typedef struct job_thread {
    block_thread at;
    barrier_of_block *barrier;
    int n_waits;
    const char *name;
    const hwnas_kernel_job *job;
    pthread_t thread;
    bool is_known;
} job_thread;

static void *run(void *context)
{
    job_thread *t = context;
    t->is_known = blocks[t->at.block](t->name, t->job, &t->at);
    return NULL;
}

static void wait_for_block(void *context)
{
    job_thread *t = context;
    pthread_barrier_wait(&t->barrier->turns[t->n_waits++ % 2]);
}

bool host_kernel_run(const char *name, const hwnas_kernel_job *job, int n_blocks, int n_threads,
                     bool is_backward)
{
    bool is_known = true;
    pthread_attr_t small;
    barrier_of_block barriers[MOST_THREAD_BLOCKS];
    (void)n_threads; /* as many as on a GPU where threads work together */
    n_blocks = n_blocks < MOST_THREAD_BLOCKS ? n_blocks : MOST_THREAD_BLOCKS;
    const int n = n_blocks * N_THREADS;
    job_thread *all = hwnas_alloc((size_t)n * sizeof *all);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    for (int b = 0; b < 2 * n_blocks; b++)
        pthread_barrier_init(&barriers[b / 2].turns[b % 2], NULL, N_THREADS);
    for (int i = 0; i < n; i++) {
        const int thread = i % N_THREADS, block = i / N_THREADS;
        all[i] = (job_thread){.name = name,
                              .job = job,
                              .barrier = &barriers[block],
                              .at = {n_blocks, block, N_THREADS,
                                     is_backward ? N_THREADS - 1 - thread : thread, wait_for_block,
                                     &all[i]}};
        if (pthread_create(&all[i].thread, &small, run, &all[i]))
            abort();
    }
    for (int i = 0; i < n; i++) {
        pthread_join(all[i].thread, NULL);
        is_known = is_known && all[i].is_known;
    }
    for (int b = 0; b < 2 * n_blocks; b++)
        pthread_barrier_destroy(&barriers[b / 2].turns[b % 2]);
    pthread_attr_destroy(&small);
    free(all);
    return is_known;
}

float host_load(const void *at, int type, int i)
{
    return kernel_load(at, type, i);
}

void host_store(void *at, int type, int i, float value)
{
    kernel_store(at, type, i, value);
}
