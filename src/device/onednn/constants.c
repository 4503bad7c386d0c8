/* constants.c: oneDNN's cache of constants. */
#include "device/onednn/constants.h"

#include <pthread.h>

/* MB: more than any network has. */
#define CAPACITY (1 << 20)

/* Held by those that need the cache on, and alone by the one that turns it off: what was compiled with
 * it gives wrong results without. */
static pthread_rwlock_t is_on = PTHREAD_RWLOCK_INITIALIZER;

/* With a capacity of 0, which is oneDNN's default, weights are brought into oneDNN's layout again
 * in every run. With one, they are kept under a key made of the partition and the address of the
 * plain weights: entries are never dropped, and a later network whose weights happen to lie at the
 * same address gets the weights of the first. Setting the capacity empties the cache; executables
 * that live on fill it again in their next run. */
dnnl_status_t hwnas_onednn_forget_constants(void)
{
    hwnas_onednn_hold_constants();
    const dnnl_status_t status = dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, CAPACITY);
    hwnas_onednn_release_constants();
    return status;
}

void hwnas_onednn_hold_constants(void)
{
    pthread_rwlock_rdlock(&is_on);
}

void hwnas_onednn_release_constants(void)
{
    pthread_rwlock_unlock(&is_on);
}

void hwnas_onednn_begin_without_constants(void)
{
    pthread_rwlock_wrlock(&is_on);
    dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, 0);
}

void hwnas_onednn_end_without_constants(void)
{
    dnnl_graph_set_constant_tensor_cache_capacity(dnnl_cpu, CAPACITY);
    pthread_rwlock_unlock(&is_on);
}
