#include "study/tasks.h"

#include <string.h>

#include "base/str.h"
#include "device/device.h"

int hwnas_tasks_first(hwnas_tasks tasks)
{
    int task = 0;
    while (task < HWNAS_N_TRIAL_TASKS && !hwnas_tasks_have(tasks, task))
        task++;
    return task;
}

/* The rows of the job's devices that networks run on; of those named so, where a name is given. */
static hwnas_status find_devices(hwnas_tasks *out, const char *name, size_t length,
                                 const hwnas_job *job)
{
    *out = 0;
    for (int i = 0; i < job->goals.devices.n; i++) {
        const hwnas_job_device *d = &job->goals.devices.rows[i];
        const hwnas_device_ops *ops;
        const char *argument;
        if (name && (strlen(d->name) != length || strncmp(d->name, name, length) != 0))
            continue;
        TRY(hwnas_device_find(&ops, &argument, d->spelling));
        if (ops->open && !ops->lookup)
            *out |= 1U << i;
    }
    return HWNAS_OK;
}

/* What --only may name, of this job. */
static hwnas_status list_words(char **out, const hwnas_job *job)
{
    hwnas_str words = {0};
    hwnas_tasks runs;
    TRY(find_devices(&runs, NULL, 0, job));
    hwnas_str_add(&words, runs ? "measure, train" : "train");
    for (int i = 0; i < job->goals.devices.n; i++)
        if (hwnas_tasks_have(runs, i) && (i == 0 || strcmp(job->goals.devices.rows[i - 1].name,
                                                           job->goals.devices.rows[i].name) != 0))
            hwnas_str_addf(&words, ", %s", job->goals.devices.rows[i].name);
    *out = words.s;
    return HWNAS_OK;
}

static bool names_device(const hwnas_job *job, const char *word, size_t length)
{
    for (int i = 0; i < job->goals.devices.n; i++)
        if (strlen(job->goals.devices.rows[i].name) == length &&
            !strncmp(job->goals.devices.rows[i].name, word, length))
            return true;
    return false;
}

static hwnas_status refuse_word(const char *word, size_t length, const hwnas_job *job)
{
    char *words = NULL;
    TRY(list_words(&words, job));
    const hwnas_status status = hwnas_hint(
        hwnas_fail(HWNAS_E_USAGE, NULL,
                   names_device(job, word, length)
                       ? "--only: the device '%.*s' runs no networks: its numbers are given"
                       : "--only: '%.*s' is no task of this job's trials",
                   (int)length, word),
        "it has %s; a task is a run on a device, or the training", words);
    free(words);
    return status;
}

static hwnas_status read_word(hwnas_tasks *out, const char *word, size_t length,
                              const hwnas_job *job)
{
    hwnas_tasks found = 1U << HWNAS_TASK_TRAINING;
    if (length == strlen("measure") && !strncmp(word, "measure", length))
        TRY(find_devices(&found, NULL, 0, job));
    else if (length != strlen("train") || strncmp(word, "train", length) != 0)
        TRY(find_devices(&found, word, length, job));
    *out |= found;
    return found ? HWNAS_OK : refuse_word(word, length, job);
}

hwnas_status hwnas_tasks_parse(hwnas_tasks *out, const char *words, const hwnas_job *job)
{
    hwnas_tasks tasks = 0;
    for (const char *at = words;; at++) {
        at += strspn(at, " ");
        const size_t n = strcspn(at, ",");
        size_t length = n;
        while (length && at[length - 1] == ' ')
            length--;
        TRY(read_word(&tasks, at, length, job));
        at += n;
        if (!*at)
            break;
    }
    *out = tasks;
    return HWNAS_OK;
}

char *hwnas_tasks_words(hwnas_tasks tasks, const hwnas_job *job)
{
    hwnas_str words = {0};
    for (int i = 0; i < job->goals.devices.n; i++)
        if (hwnas_tasks_have(tasks, i))
            hwnas_str_addf(&words, "%s%s", words.n ? ", " : "",
                           hwnas_job_row_name(&job->goals.devices, i).text);
    if (hwnas_tasks_have(tasks, HWNAS_TASK_TRAINING))
        hwnas_str_addf(&words, "%strain", words.n ? ", " : "");
    hwnas_str_add(&words, "");
    return words.s;
}
