#include "store/libpq.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define LIBRARY "libpq.so.5"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static hwnas_libpq functions;
static bool is_open;

static hwnas_status load(void)
{
    static const struct {
        const char *name;
        size_t at;
    } rows[] = {
#define ROW(name) {#name, offsetof(hwnas_libpq, name)},
        HWNAS_LIBPQ_FUNCTIONS(ROW)
#undef ROW
    };
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                     "PostgreSQL's client library is missing: %.300s", dlerror()),
                          "install libpq5, or keep the study in a file");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *address = dlsym(library, rows[i].name);
        if (!address)
            return hwnas_hint(
                hwnas_fail(HWNAS_E_LIBRARY, NULL, LIBRARY " lacks the function %s", rows[i].name),
                "install libpq of PostgreSQL 12 or newer");
        memcpy((char *)&functions + rows[i].at, &address, sizeof address);
    }
    return HWNAS_OK;
}

hwnas_status hwnas_libpq_open(const hwnas_libpq **out)
{
    hwnas_status status = HWNAS_OK;
    pthread_mutex_lock(&mutex);
    if (!is_open)
        status = load();
    is_open = status == HWNAS_OK;
    pthread_mutex_unlock(&mutex);
    if (status == HWNAS_OK)
        *out = &functions;
    return status;
}
