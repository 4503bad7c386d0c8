/* exports.h: where a job writes its winner. */
#ifndef HWNAS_STUDY_EXPORTS_H
#define HWNAS_STUDY_EXPORTS_H

#include "study/job.h"

typedef struct hwnas_job_export {
    const char *format, *path; /* NULL: not wanted */
} hwnas_job_export;

enum { HWNAS_N_EXPORTS = 3 };
void hwnas_job_exports(hwnas_job_export out[HWNAS_N_EXPORTS], const hwnas_job *job);

/* "best.onnx"; of the front of a device of its own, "best-pi.onnx", -1: of none. Yours to free(). */
char *hwnas_job_export_path(const char *path, const hwnas_job *job, int device);

/* That the winner can be written, and over no file that the job is about, is seen before the search
 * and not after it. */
HWNAS_CHECKED hwnas_status hwnas_job_check_exports(const hwnas_job *job);

#endif
