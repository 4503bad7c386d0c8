/* study_facts.h: what a study's file says of itself, so that it is continued only by the same search. */
#ifndef HWNAS_STUDY_STUDY_FACTS_H
#define HWNAS_STUDY_STUDY_FACTS_H

#include "space/arch.h"
#include "store/store.h"
#include "study/evaluate.h"
#include "study/setup.h"

/* "NAME COUNT CODE DIGEST", and of a space with a base a hash of the values that may be chosen: to
 * know a space again that has changed under its name. Yours to free(). */
char *hwnas_space_fingerprint(const hwnas_space *space);

HWNAS_CHECKED hwnas_status hwnas_facts_write(hwnas_store *store, const hwnas_job *job,
                                             const hwnas_space *space);
/* HWNAS_E_INPUT when the study is of another search, or its tables have more or fewer of its
 * networks; says what differs. Where only files have moved, the study learns their new places. */
HWNAS_CHECKED hwnas_status hwnas_facts_check(hwnas_store *store, const hwnas_job *job,
                                             const hwnas_setup *setup);
/* Notes that another version of hwnas began it, or one of this version with other code to propose
 * with, as between releases: what a strategy proposes may change. */
HWNAS_CHECKED hwnas_status hwnas_facts_note_version(hwnas_store *store, const char *study);
/* HWNAS_E_INPUT when what a device says of itself is not what it said when the study's trials were
 * measured: two machines' latencies are not to be compared. */
HWNAS_CHECKED hwnas_status hwnas_facts_check_devices(hwnas_store *store, const hwnas_job *job,
                                                     const hwnas_evaluator *evaluator);
/* The devices that run, by their names. */
HWNAS_CHECKED hwnas_status hwnas_facts_write_devices(hwnas_store *store, const hwnas_job *job,
                                                     const hwnas_evaluator *evaluator);

/* HWNAS_E_INPUT when the weights of a supernet (hwnas_evaluator_weights(); `file` NULL: nobody
 * judges by any) are not those that the study's accuracies are of. Without any so far (`is_used`:
 * they have judged a network by now) they are noted. */
HWNAS_CHECKED hwnas_status hwnas_facts_check_weights(hwnas_store *store, const char *study,
                                                     const char *file, const char *hash,
                                                     bool is_used);
/* The fact that says so: a hash. */
#define HWNAS_WEIGHTS_FACT "weights"

/* The machine's settings and limits at the beginning of a session. */
HWNAS_CHECKED hwnas_status hwnas_facts_write_conditions(hwnas_store *store);

/* An object: how many "networks" a session left without the measurement that they need, how many of
 * them are "trained", and whether it "has_time" for one. Empty while a session runs. */
#define HWNAS_WAITING_FACT "waiting"

/* What the study's strategy was made for; false: the study does not say. */
HWNAS_CHECKED hwnas_status hwnas_facts_choice(hwnas_choice_of_strategy *out, bool *is_there,
                                              hwnas_store *store);
HWNAS_CHECKED hwnas_status hwnas_facts_write_choice(hwnas_store *store,
                                                    const hwnas_choice_of_strategy *choice);

/* A fact that is JSON, a new reference; NULL in `out` when it was never set. */
HWNAS_CHECKED hwnas_status hwnas_facts_json(json_t **out, hwnas_store *store, const char *key);
HWNAS_CHECKED hwnas_status hwnas_facts_set_json(hwnas_store *store, const char *key,
                                                const json_t *value);

#endif
