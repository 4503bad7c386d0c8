/* inquiry.h: a question to profiles, recorded ones and one that is measured here. */
#ifndef HWNAS_PROFILE_INQUIRY_H
#define HWNAS_PROFILE_INQUIRY_H

#include "profile/compare.h"
#include "profile/sweep.h"

enum { HWNAS_INQUIRY_PROFILES = 32 };

/* What is asked is filled in by the caller, and borrowed; what was found lives until
 * hwnas_inquiry_done(). */
typedef struct hwnas_inquiry {
    hwnas_sweep sweep; /* its models: which rows; where `measures`, all of it */
    bool measures;
    hwnas_query query;
    const char *prices; /* file; NULL: none */
    const char *save;   /* file for what is measured; NULL: it is not kept */
    size_t n_recorded;
    const hwnas_recorded_profile *recorded;

    hwnas_profile *here; /* what was measured; NULL: nothing */
    size_t n_loaded;
    hwnas_profile *loaded[HWNAS_INQUIRY_PROFILES];
    char *names[HWNAS_INQUIRY_PROFILES]; /* heap */
    hwnas_prices *price_list;
    hwnas_comparison *comparison;
} hwnas_inquiry;

/* Reads, measures and judges. Mistakes in files and names are told before anything is measured. */
HWNAS_CHECKED hwnas_status hwnas_inquiry_run(hwnas_inquiry *inquiry);
void hwnas_inquiry_done(hwnas_inquiry *inquiry);

/* HWNAS_E_INFEASIBLE for a model that no device serves as asked. */
HWNAS_CHECKED hwnas_status hwnas_comparison_conclude(const hwnas_comparison *comparison);

#endif
