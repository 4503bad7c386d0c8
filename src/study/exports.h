/* exports.h: where a job writes its winner. */
#ifndef HWNAS_STUDY_EXPORTS_H
#define HWNAS_STUDY_EXPORTS_H

#include "study/summary.h"
#include "study/write_network.h"

typedef struct hwnas_job_export {
    const char *format, *path; /* NULL: not wanted */
    const hwnas_place *place;
    bool is_of_phase;          /* each phase that a goal names has a file of its own besides */
} hwnas_job_export;

enum { HWNAS_N_EXPORTS = 3 };
void hwnas_job_exports(hwnas_job_export out[HWNAS_N_EXPORTS], const hwnas_job *job);

/* That the winner can be written, and over no file that the job is about, is seen before the search
 * and not after it. */
HWNAS_CHECKED hwnas_status hwnas_job_check_exports(const hwnas_job *job);
/* The same of the study, where there is none yet. */
HWNAS_CHECKED hwnas_status hwnas_job_check_study(const hwnas_job *job);

/* Writes the winner of each front that has one to the files that the job wants: "best.onnx", of the
 * front of a device of its own "best-pi.onnx", in a phase in which it is another network
 * "best-decode.onnx". `written` is told each file. */
HWNAS_CHECKED hwnas_status hwnas_job_write_exports(
    const hwnas_job *job, const hwnas_summary *summary,
    void (*written)(void *context, const hwnas_network_file *file), void *context);

#endif
