#include "search/duplicates.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int by_digest(const void *a, const void *b)
{
    return strcmp(((const hwnas_told *)a)->encoding->digest.hex,
                  ((const hwnas_told *)b)->encoding->digest.hex);
}

void hwnas_duplicates_done(hwnas_duplicates *duplicates)
{
    while (duplicates->by_digest) {
        hwnas_told *first = *(hwnas_told **)duplicates->by_digest;
        tdelete(first, &duplicates->by_digest, by_digest);
        free(first);
    }
}

static void compare(hwnas_duplicates *duplicates, const hwnas_told *first, const hwnas_told *second,
                    int n_objectives)
{
    bool is_same = !memcmp(first->score.objectives, second->score.objectives,
                           (size_t)n_objectives * sizeof(double));
    duplicates->n_same += is_same;
    duplicates->n_different += !is_same;
}

void hwnas_duplicates_add(hwnas_duplicates *duplicates, const hwnas_told *told, int n_objectives)
{
    if (!*told->encoding->digest.hex || told->score.violation > 0)
        return;
    hwnas_told **found = tfind(told, &duplicates->by_digest, by_digest);
    if (!found) {
        hwnas_told *first = hwnas_alloc(sizeof *first);
        *first = *told;
        tsearch(first, &duplicates->by_digest, by_digest);
        return;
    }
    if ((*found)->score.is_estimate && !told->score.is_estimate)
        (*found)->score = told->score;
    else if (!told->score.is_estimate)
        compare(duplicates, *found, told, n_objectives);
}

bool hwnas_duplicates_has(const hwnas_duplicates *duplicates, const hwnas_encoding *encoding)
{
    hwnas_told key = {.encoding = encoding};
    return duplicates->n_same > 0 && duplicates->n_different == 0 && *encoding->digest.hex &&
           tfind(&key, &duplicates->by_digest, by_digest);
}
