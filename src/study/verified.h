/* verified.h: what a study knows of the results of its networks (study/verify_front.h finds it
 * out).
 *
 * Kept as a fact beside the trials, which stay as they were told to the strategy: {"trials": {"12":
 * {"cpu": {against, error, tolerance, ...}}}, "skipped": {"null": why}}. A wrong result has a
 * `message` with its error; one with a message alone could not be verified. One whose time is to
 * more than a tenth that of slow code has `slow`. */
#ifndef HWNAS_STUDY_VERIFIED_H
#define HWNAS_STUDY_VERIFIED_H

#include <jansson.h>

#include "measure/verify.h"
#include "profile/slow.h"
#include "store/store.h"
#include "trial/goal.h"

/* An object with both members, empty in a study where nothing was verified. A new reference. */
HWNAS_CHECKED hwnas_status hwnas_verified_load(json_t **out, hwnas_store *store);
HWNAS_CHECKED hwnas_status hwnas_verified_save(hwnas_store *store, const json_t *verified);

/* What is known of a trial on a device: right, wrong, or nothing yet. */
bool hwnas_verified_is_known(const json_t *verified, uint64_t number, const char *device);
/* What is wrong with its result on the first device where it is; NULL: nothing is. Borrowed.
 * Accepts NULL. */
const char *hwnas_verified_wrong(const json_t *verified, uint64_t number);
/* The names of all devices where it is wrong, the first one first, in a list. A new reference. */
json_t *hwnas_verified_wrong_on(const json_t *verified, uint64_t number);
bool hwnas_verified_is_wrong(const json_t *verified, uint64_t number);
/* Notes a result; `message` says that it is wrong or, with `result` NULL, why it is not known. */
void hwnas_verified_note(json_t *verified, uint64_t number, const char *device,
                         const hwnas_verified *result, const char *message);
/* Notes how much of the time of a trial with a result there is slow code, where that matters. */
void hwnas_verified_note_slow(json_t *verified, uint64_t number, const char *device,
                              const hwnas_slow_code *slow);
/* That of a trial on a device as it was noted, {share, step, operators, how, roof_share}; NULL: it
 * does not matter, or is not known. Borrowed. */
const json_t *hwnas_verified_slow(const json_t *verified, uint64_t number, const char *device);
/* Trials that are right on each device that they were tried on, and wrong results. */
void hwnas_verified_count(size_t *n_right, size_t *n_wrong, const json_t *verified);

/* Puts what is known into the details of trials, as `verified` ({against, error, tolerance}, or of
 * several devices such an object for each), and fails those whose result is wrong: where each
 * device of `goals` has a front of its own only there, by taking that device's values away; with
 * NULL as a whole. */
void hwnas_verified_apply(hwnas_trial *trials, size_t n, const json_t *verified,
                          const hwnas_goals *goals);

#endif
