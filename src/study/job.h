/* job.h: a search as its user describes it: one YAML file, whose keys are also flags. */
#ifndef HWNAS_STUDY_JOB_H
#define HWNAS_STUDY_JOB_H

#include <jansson.h>

#include "base/mem.h"
#include "search/pareto.h"
#include "study/metric.h"

enum { HWNAS_MAX_LIMITS = 16 };

/* Strings live in the arena. What a job reads is named as seen from the directory of the job, and
 * kept as an absolute path, so that a study knows it wherever it is looked at from; what it writes
 * goes into the current directory. */
typedef struct hwnas_job {
    hwnas_arena *arena;
    const char *path;      /* of the YAML file */
    const char *space;     /* name or file */
    const char *predictor; /* of the accuracy; NULL: none */
    const char *device;    /* "cpu", "replay:FILE#COLUMN"; NULL: nothing is measured */
    hwnas_place space_place, predictor_place, device_place, strategy_place; /* of a flag: no file */
    int threads, batch;
    const char *strategy;
    int population; /* 0: the strategy's own */
    uint64_t seed;
    int n_objectives, n_limits;
    const hwnas_metric *objectives[HWNAS_MAX_OBJECTIVES];
    hwnas_limit limits[HWNAS_MAX_LIMITS];
    int64_t max_trials;                                     /* 0: no limit */
    double max_minutes;                                     /* 0: no limit */
    double interval;                                        /* of a measurement, relative */
    double max_seconds;                                     /* of a measurement */
    double timeout;                                         /* of a runner's silence, seconds */
    int64_t memory_limit;                                   /* of a runner, bytes; 0: none */
    const char *study;                                      /* SQLite file */
    const char *export_onnx, *export_pytorch, *export_yaml; /* NULL: not wanted */
} hwnas_job;

/* Values that replace the job's; NULL or negative: the job's own. */
typedef struct hwnas_job_flags {
    const char *study, *device, *strategy;
    long threads, trials, seed;
    double minutes;
} hwnas_job_flags;
#define HWNAS_NO_FLAGS                                                                             \
    {                                                                                              \
        .threads = -1, .trials = -1, .seed = -1, .minutes = -1                                     \
    }

/* Reads a job, replaces what flags say, and checks that it can be run: a space, objectives that the
 * job's predictor and device can give, a budget. */
HWNAS_CHECKED hwnas_status hwnas_job_load(hwnas_job **out, const char *path,
                                          const hwnas_job_flags *flags);
void hwnas_job_free(hwnas_job *job);

/* What makes two studies the same search: all but budget, measuring and files. A new reference. */
json_t *hwnas_job_identity(const hwnas_job *job);
/* Objectives and limits from what hwnas_job_identity() wrote. */
HWNAS_CHECKED hwnas_status hwnas_job_goals(hwnas_job *out, const json_t *identity);

#endif
