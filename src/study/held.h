/* held.h: a search stays among the values that its predictor has learned from. */
#ifndef HWNAS_STUDY_HELD_H
#define HWNAS_STUDY_HELD_H

#include <jansson.h>

#include "predict/predict.h"
#include "store/store.h"
#include "study/job.h"

/* Narrows what is walked. `held`: {choice: {"kept": [labels], "left_out": n}} of the choices that
 * are held, a new reference; NULL: none is, since all their values were learned from, the predictor
 * is of a kind without a domain, or the job says `domain: free`. A choice none of whose values was
 * learned from is not held. `predictor` may be NULL. */
HWNAS_CHECKED hwnas_status hwnas_held_find(json_t **held, const hwnas_space **walked,
                                           const hwnas_predictor *predictor, const hwnas_job *job);

/* Narrows what is walked as a study's search did, by its note; `held` NULL: nothing was held. */
HWNAS_CHECKED hwnas_status hwnas_held_again(const hwnas_space **walked, const json_t *held);

/* The study's note of it. */
HWNAS_CHECKED hwnas_status hwnas_held_write(hwnas_store *store, const json_t *held);
HWNAS_CHECKED hwnas_status hwnas_held_load(json_t **out, hwnas_store *store);

#endif
