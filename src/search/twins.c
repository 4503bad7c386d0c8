#include "search/twins.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int by_digest(const void *a, const void *b)
{
    return strcmp(((const hwnas_told *)a)->encoding->digest.hex,
                  ((const hwnas_told *)b)->encoding->digest.hex);
}

void hwnas_twins_done(hwnas_twins *twins)
{
    while (twins->by_digest) {
        hwnas_told *first = *(hwnas_told **)twins->by_digest;
        tdelete(first, &twins->by_digest, by_digest);
        free(first);
    }
}

static void compare(hwnas_twins *twins, const hwnas_told *first, const hwnas_told *second,
                    int n_objectives)
{
    bool is_same = !memcmp(first->score.objectives, second->score.objectives,
                           (size_t)n_objectives * sizeof(double));
    twins->n_same += is_same;
    twins->n_different += !is_same;
}

void hwnas_twins_add(hwnas_twins *twins, const hwnas_told *told, int n_objectives)
{
    if (!*told->encoding->digest.hex || told->score.violation > 0)
        return;
    hwnas_told **found = tfind(told, &twins->by_digest, by_digest);
    if (!found) {
        hwnas_told *first = hwnas_alloc(sizeof *first);
        *first = *told;
        tsearch(first, &twins->by_digest, by_digest);
        return;
    }
    if ((*found)->score.is_estimate && !told->score.is_estimate)
        (*found)->score = told->score;
    else if (!told->score.is_estimate)
        compare(twins, *found, told, n_objectives);
}

bool hwnas_twins_has(const hwnas_twins *twins, const hwnas_encoding *encoding)
{
    hwnas_told key = {.encoding = encoding};
    return twins->n_same > 0 && twins->n_different == 0 && *encoding->digest.hex &&
           tfind(&key, &twins->by_digest, by_digest);
}
