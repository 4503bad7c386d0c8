/* identity.h: what makes two studies the same search, as JSON: all of a job but budget, measuring
 * and files that are written. */
#ifndef HWNAS_STUDY_IDENTITY_H
#define HWNAS_STUDY_IDENTITY_H

#include "study/job.h"

/* For people and programs: files by their paths. A new reference. */
json_t *hwnas_job_identity(const hwnas_job *job);

/* For comparing: files by the hash of their contents, so that it is the same wherever they lie. The
 * space is left out; it has a fingerprint of its own. A new reference. */
json_t *hwnas_job_fingerprint(const hwnas_job *job);

/* Of a study's fingerprint: older studies knew tables whose columns have other names by their
 * paths. Where such a file is, its contents take the place of its path. Says whether there was one.
 */
bool hwnas_fingerprint_renew(json_t *fingerprint);

/* Goals, devices and settings from what hwnas_job_identity() wrote; strings are borrowed from it.
 */
HWNAS_CHECKED hwnas_status hwnas_job_goals(hwnas_job *out, const json_t *identity);

#endif
