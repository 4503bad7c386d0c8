/* training_costs_text.h: what a training takes, by setting, for people. */
#ifndef HWNAS_REPORT_TRAINING_COSTS_TEXT_H
#define HWNAS_REPORT_TRAINING_COSTS_TEXT_H

#include "base/str.h"
#include "profile/profile.h"

/* A table of hours and money, and for each network and device its cheapest setting. Nothing where
 * the profile has no plan. How many threads pay: thread_notes.h. */
void hwnas_training_costs_text(hwnas_str *out, const hwnas_profile *profile);

/* "50000 samples, 90 epochs". Yours to free(). */
char *hwnas_training_plan_words(const hwnas_training_plan *plan);

#endif
