#include "base/intern.h"

#include <pthread.h>
#include <search.h>
#include <string.h>

#include "base/mem.h"

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

const char *hwnas_intern(const char *text)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static void *texts;
    pthread_mutex_lock(&lock);
    void *found = tfind(text, &texts, compare);
    while (!found && !(found = tsearch(hwnas_strdup(text), &texts, compare)))
        hwnas_out_of_memory();
    const char *own = *(char *const *)found;
    pthread_mutex_unlock(&lock);
    return own;
}
