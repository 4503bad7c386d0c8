/* tasks.h: the tasks of a trial that take a device or a training, which processes on different
 * machines may do, one after the other: a run on each device of the job, in its order, then the
 * training. What is free to know is found out by whoever proposes the trial. */
#ifndef HWNAS_STUDY_TASKS_H
#define HWNAS_STUDY_TASKS_H

#include "study/job.h"

/* A task below is the device of that number. */
enum { HWNAS_TASK_TRAINING = HWNAS_MAX_DEVICES, HWNAS_N_TRIAL_TASKS };

/* Several of them: a bit for each. */
typedef unsigned hwnas_tasks;
enum { HWNAS_ALL_TASKS = (1 << HWNAS_N_TRIAL_TASKS) - 1 };

static inline bool hwnas_tasks_have(hwnas_tasks tasks, int task)
{
    return tasks >> task & 1;
}

/* The lowest; HWNAS_N_TRIAL_TASKS: there is none. */
int hwnas_tasks_first(hwnas_tasks tasks);

/* Whether who does `tasks` of `all` that a trial has proposes trials: its first one is theirs. */
static inline bool hwnas_tasks_propose(hwnas_tasks tasks, hwnas_tasks all)
{
    return !all || hwnas_tasks_have(tasks, hwnas_tasks_first(all));
}

/* Reads "measure" (on all devices), "train", or the name of a device of the job, or several of
 * them with commas between. HWNAS_E_USAGE: it is something else, or a device that runs nothing. */
HWNAS_CHECKED hwnas_status hwnas_tasks_parse(hwnas_tasks *out, const char *words,
                                             const hwnas_job *job);
/* The same as words; yours to free(). */
char *hwnas_tasks_words(hwnas_tasks tasks, const hwnas_job *job);

#endif
