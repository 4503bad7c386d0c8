#include "study/exports.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "derive/derive.h"
#include "predict/predict.h"
#include "space/space.h"
#include "study/settings.h"

void hwnas_job_exports(hwnas_job_export out[HWNAS_N_EXPORTS], const hwnas_job *job)
{
    out[0] = (hwnas_job_export){"onnx", job->export_onnx};
    out[1] = (hwnas_job_export){"pytorch", job->export_pytorch};
    out[2] = (hwnas_job_export){"yaml", job->export_yaml};
}

char *hwnas_job_export_path(const char *path, const hwnas_job *job, int device)
{
    if (device < 0)
        return hwnas_strdup(path);
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    size_t stem = dot && (!slash || dot > slash + 1) ? (size_t)(dot - path) : strlen(path);
    return hwnas_printf("%.*s-%s%s", (int)stem, path,
                        hwnas_job_row_name(&job->goals.devices, device).text, path + stem);
}

/* ---- Checking ---- */

static hwnas_status check_other(const hwnas_job *job, const char *path, const char *what,
                                const char *file)
{
    const hwnas_place place = {.file = job->path};
    if (!file || !hwnas_file_is_same(path, file))
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, job->path ? &place : NULL,
                                 "the export %s would be written over the %s", path, what),
                      "give the export another name");
}

/* KIND:FILE#COLUMN and KIND:FILE#cache=FILE: neither is to be written over. */
static hwnas_status check_spelling(const hwnas_job *job, const char *path, const char *what,
                                   const char *spelling)
{
    hwnas_status status = HWNAS_OK;
    const char *colon = spelling ? strchr(spelling, ':') : NULL;
    if (!spelling)
        return HWNAS_OK;
    char *text = hwnas_strdup(colon ? colon + 1 : spelling), *rest = text;
    for (char *part; status == HWNAS_OK && (part = strsep(&rest, "#,"));) {
        const char *equals = strchr(part, '=');
        status = check_other(job, path, what, equals ? equals + 1 : part);
    }
    free(text);
    return status;
}

static hwnas_status check_space(const hwnas_job *job, const char *path)
{
    char *name = hwnas_printf("%.*s", (int)hwnas_space_name_length(job->space), job->space);
    const hwnas_status status = check_other(job, path, "space", name);
    free(name);
    return status;
}

static hwnas_status check_path(const hwnas_job *job, const char *path)
{
    TRY(check_other(job, path, "job", job->path));
    TRY(check_other(job, path, "study", job->study));
    TRY(check_other(job, path, "study of the warm start", job->warm_start));
    TRY(check_space(job, path));
    TRY(check_spelling(job, path, "file of the accuracy", job->predictor));
    for (int i = 0; i < job->goals.devices.n; i++)
        TRY(check_spelling(job, path, "file of the device", job->goals.devices.rows[i].spelling));
    if (hwnas_file_try(path) == HWNAS_OK)
        return HWNAS_OK;
    const hwnas_error error = *hwnas_last_error();
    const hwnas_place place = {.file = job->path};
    return hwnas_hint(
        hwnas_fail(HWNAS_E_IO, job->path ? &place : NULL, "%s: %s", path, error.message), "%s",
        error.hint);
}

hwnas_status hwnas_job_check_exports(const hwnas_job *job)
{
    hwnas_status status = HWNAS_OK;
    hwnas_job_export exports[HWNAS_N_EXPORTS];
    const int last = job->goals.is_front_per_device ? job->goals.devices.n : 0;
    hwnas_job_exports(exports, job);
    for (int i = 0; i < HWNAS_N_EXPORTS; i++)
        for (int device = last ? 0 : -1; exports[i].path && device < last; device++) {
            char *path = hwnas_job_export_path(exports[i].path, job, device);
            status = check_path(job, path);
            for (int k = 0; k < i && status == HWNAS_OK; k++)
                status = check_other(job, exports[i].path, "other export", exports[k].path);
            free(path);
            if (status != HWNAS_OK)
                return status;
        }
    return status;
}

/* ---- Writing ---- */

static bool is_any_wanted(const hwnas_job_export exports[HWNAS_N_EXPORTS])
{
    for (size_t i = 0; i < HWNAS_N_EXPORTS; i++)
        if (exports[i].path)
            return true;
    return false;
}

static hwnas_status write_winner(const hwnas_job *job, const hwnas_summary *summary,
                                 const hwnas_summary_front *front,
                                 void (*written)(void *context, const hwnas_network_file *file),
                                 void *context)
{
    hwnas_job_export exports[HWNAS_N_EXPORTS];
    hwnas_status status = HWNAS_OK;
    hwnas_space *space = NULL;
    hwnas_arch *arch = NULL;
    hwnas_predictor *judge = NULL;
    char *code = NULL;
    hwnas_job_exports(exports, job);
    if (!is_any_wanted(exports))
        return HWNAS_OK;
    TRY_OUT(hwnas_load_space(&space, job->space));
    if (job->predictor && hwnas_starts_with(job->predictor, "samples:"))
        TRY_OUT(hwnas_predictor_load(&judge, job->predictor, space));
    code = hwnas_strdup(summary->trials[front->winner].code);
    hwnas_settings settings = hwnas_settings_cut(code, job);
    TRY_OUT(hwnas_arch_parse(&arch, space, code));
    for (size_t i = 0; i < HWNAS_N_EXPORTS; i++) {
        if (!exports[i].path)
            continue;
        char *path = hwnas_job_export_path(exports[i].path, job, front->device);
        const hwnas_network_file file = {
            .path = path,
            .format = exports[i].format,
            .precision = hwnas_trial_precision(&summary->job, settings, front->device),
            .batch = settings.batch,
            .samples = judge ? hwnas_predictor_samples_of(judge) : NULL};
        status = hwnas_network_write(&file, arch);
        if (status == HWNAS_OK)
            written(context, &file);
        free(path);
        TRY_OUT(status);
    }
out:
    free(code);
    hwnas_predictor_free(judge);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    return status;
}

hwnas_status hwnas_job_write_exports(const hwnas_job *job, const hwnas_summary *summary,
                                     void (*written)(void *context, const hwnas_network_file *file),
                                     void *context)
{
    for (int f = 0; f < summary->n_fronts; f++)
        if (summary->fronts[f].winner >= 0)
            TRY(write_winner(job, summary, &summary->fronts[f], written, context));
    return HWNAS_OK;
}
