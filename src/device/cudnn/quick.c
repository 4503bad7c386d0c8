/* quick.c: cuDNN's caches of kernels, by form. There are some dozens in a search. */
#include "device/cudnn/quick.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct cache {
    char *form;
    cudnnBackendDescriptor_t made; /* NULL: cuDNN makes none */
} cache;

struct hwnas_cudnn_caches {
    size_t n, capacity;
    cache *all;
};

static cudnnBackendDescriptor_t make(const hwnas_cudnn_api *api, cudnnBackendDescriptor_t graph)
{
    cudnnBackendDescriptor_t made = NULL;
    if (api->create(CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR, &made))
        return NULL;
    if (!api->set(made, CUDNN_ATTR_KERNEL_CACHE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                  &graph) &&
        !api->finalize(made))
        return made;
    api->destroy(made);
    return NULL;
}

cudnnBackendDescriptor_t hwnas_cudnn_cache_of(hwnas_cuda_device *device,
                                              const hwnas_cudnn_operation *o,
                                              cudnnBackendDescriptor_t graph)
{
    if (!device->caches)
        device->caches = hwnas_alloc(sizeof *device->caches);
    hwnas_cudnn_caches *c = device->caches;
    char *form = hwnas_cudnn_form_text(o);
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->all[i].form, form)) {
            free(form);
            return c->all[i].made;
        }
    const cudnnBackendDescriptor_t made = make(device->cudnn, graph);
    if (!made) { /* perhaps for want of memory, which another network has */
        free(form);
        return NULL;
    }
    HWNAS_GROW(c->all, c->n, c->capacity);
    c->all[c->n++] = (cache){.form = form, .made = made};
    return made;
}

size_t hwnas_cudnn_caches_count(const hwnas_cudnn_caches *caches)
{
    return caches ? caches->n : 0;
}

void hwnas_cudnn_caches_free(hwnas_cudnn_caches *caches, const hwnas_cudnn_api *api)
{
    if (!caches)
        return;
    for (size_t i = 0; i < caches->n; i++) {
        if (caches->all[i].made)
            api->destroy(caches->all[i].made);
        free(caches->all[i].form);
    }
    free(caches->all);
    free(caches);
}
