#include "study/exports.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "derive/derive.h"
#include "predict/predict.h"
#include "space/space.h"
#include "study/job_data.h"
#include "store/store.h"
#include "store/study_url.h"
#include "study/phases.h"
#include "study/settings.h"

void hwnas_job_exports(hwnas_job_export out[HWNAS_N_EXPORTS], const hwnas_job *job)
{
    out[0] = (hwnas_job_export){"onnx", job->export_onnx, &job->onnx_place, true};
    out[1] = (hwnas_job_export){"pytorch", job->export_pytorch, &job->pytorch_place, true};
    out[2] = (hwnas_job_export){"yaml", job->export_yaml, &job->yaml_place, false};
}

/* Of the front of a device of its own (-1: of none), in a phase (NULL: as the space's settings
 * say). */
static char *path_of(const char *path, const hwnas_job *job, int device, const char *phase)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    const size_t stem = dot && (!slash || dot > slash + 1) ? (size_t)(dot - path) : strlen(path);
    const hwnas_row_name row =
        device < 0 ? (hwnas_row_name){""} : hwnas_job_row_name(&job->goals.devices, device);
    return hwnas_printf("%.*s%s%s%s%s%s", (int)stem, path, device < 0 ? "" : "-", row.text,
                        phase ? "-" : "", phase ? phase : "", path + stem);
}

/* ---- Checking ---- */

/* An export's file, and where the job says so. */
typedef struct export_path {
    char *text;
    const hwnas_place *place;
} export_path;

static hwnas_status check_other(export_path path, const char *what, const char *file)
{
    if (!file || !hwnas_file_is_same(path.text, file))
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, path.place,
                                 "the export %s would be written over the %s", path.text, what),
                      "give the export another name");
}

/* KIND:FILE#COLUMN and KIND:FILE#cache=FILE: neither is to be written over. */
static hwnas_status check_spelling(export_path path, const char *what, const char *spelling)
{
    hwnas_status status = HWNAS_OK;
    const char *colon = spelling ? strchr(spelling, ':') : NULL;
    if (!spelling)
        return HWNAS_OK;
    char *text = hwnas_strdup(colon ? colon + 1 : spelling), *rest = text;
    for (char *part; status == HWNAS_OK && (part = strsep(&rest, "#,"));) {
        const char *equals = strchr(part, '=');
        status = check_other(path, what, equals ? equals + 1 : part);
    }
    free(text);
    return status;
}

static hwnas_status check_space(const hwnas_job *job, export_path path)
{
    char *name = hwnas_printf("%.*s", (int)hwnas_space_name_length(job->space), job->space);
    const hwnas_status status = check_other(path, "space", name);
    free(name);
    return status;
}

static hwnas_status check_data(const hwnas_job *job, export_path path)
{
    char *spelling = job->data ? hwnas_printf("data:%s", job->data) : NULL;
    const hwnas_status status = check_spelling(path, "file of the data", spelling);
    free(spelling);
    return status;
}

static hwnas_status check_writable(const char *path, const hwnas_place *place)
{
    if (hwnas_file_try(path) == HWNAS_OK)
        return HWNAS_OK;
    const hwnas_error error = *hwnas_last_error();
    return hwnas_hint(hwnas_fail(HWNAS_E_IO, place, "%s: %s", path, error.message), "%s",
                      error.hint);
}

static hwnas_status check_path(const hwnas_job *job, export_path path)
{
    TRY(check_other(path, "job", job->path));
    TRY(check_other(path, "study", job->study));
    TRY(check_other(path, "study of the warm start", job->warm_start));
    TRY(check_space(job, path));
    TRY(check_spelling(path, "file of the accuracy", job->predictor));
    TRY(check_data(job, path));
    for (int i = 0; i < job->goals.devices.n; i++)
        TRY(check_spelling(path, "file of the device", job->goals.devices.rows[i].spelling));
    return check_writable(path.text, path.place);
}

hwnas_status hwnas_job_check_study(const hwnas_job *job)
{
    bool is_there;
    TRY(hwnas_store_exists(&is_there, job->study));
    return is_there || hwnas_study_is_url(job->study)
               ? HWNAS_OK
               : check_writable(job->study, &job->study_place);
}

/* All files that the exports may be. */
typedef struct all_paths {
    size_t n;
    export_path list[HWNAS_N_EXPORTS * (1 + HWNAS_MOST_PHASES) * HWNAS_MAX_DEVICES];
} all_paths;

static void add_paths(all_paths *out, const hwnas_job *job, const hwnas_job_export *export)
{
    const char *phases[HWNAS_MOST_PHASES];
    const int n_phases = export->is_of_phase ? hwnas_phases_named(phases, job) : 0;
    const int n_fronts = job->goals.is_front_per_device ? job->goals.devices.n : 1;
    for (int f = 0; f < n_fronts; f++)
        for (int p = -1; p < n_phases; p++)
            out->list[out->n++] =
                (export_path){path_of(export->path, job, job->goals.is_front_per_device ? f : -1,
                                      p < 0 ? NULL : phases[p]),
                              export->place};
}

hwnas_status hwnas_job_check_exports(const hwnas_job *job)
{
    hwnas_status status = HWNAS_OK;
    hwnas_job_export exports[HWNAS_N_EXPORTS];
    all_paths paths = {0};
    hwnas_job_exports(exports, job);
    for (int i = 0; i < HWNAS_N_EXPORTS; i++)
        if (exports[i].path)
            add_paths(&paths, job, &exports[i]);
    for (size_t i = 0; i < paths.n && status == HWNAS_OK; i++) {
        status = check_path(job, paths.list[i]);
        for (size_t k = 0; k < i && status == HWNAS_OK; k++)
            status = check_other(paths.list[i], "other export", paths.list[k].text);
    }
    for (size_t i = 0; i < paths.n; i++)
        free(paths.list[i].text);
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

/* What a winner is written with. */
typedef struct winner {
    const hwnas_job *job;
    int device; /* of its front; -1: of none */
    hwnas_network_file file;
    hwnas_arch *arch;
    hwnas_job_phases phases;
    const hwnas_job_phase *plain; /* where the network is as the space's settings say; or NULL */
    const hwnas_trial *trial;
    void (*written)(void *context, const hwnas_network_file *file);
    void *context;
} winner;

static hwnas_status write_one(winner *w, const hwnas_job_export *export, const hwnas_arch *arch,
                              const char *phase)
{
    char *path = path_of(export->path, w->job, w->device, phase);
    w->file.path = path;
    w->file.format = export->format;
    const hwnas_precision before = w->file.precision;
    char *layers = hwnas_trial_layers(&w->file.precision, w->trial, w->job, w->device, phase);
    if (!layers && !phase && w->plain)
        layers =
            hwnas_trial_layers(&w->file.precision, w->trial, w->job, w->device, w->plain->name);
    w->file.layers = layers;
    const hwnas_status status = hwnas_network_write(&w->file, arch);
    if (status == HWNAS_OK)
        w->written(w->context, &w->file);
    w->file.layers = NULL;
    w->file.precision = before;
    free(layers);
    free(path);
    return status;
}

static hwnas_status write_phases(winner *w, const hwnas_job_export *export)
{
    for (int i = 0; i < w->phases.n; i++) {
        const hwnas_job_phase *phase = &w->phases.rows[i];
        bool is_wanted;
        TRY(hwnas_phase_is_other(&is_wanted, phase, w->arch));
        if (!is_wanted)
            continue;
        hwnas_arch *arch = hwnas_phase_arch(phase, w->arch);
        const hwnas_status status = write_one(w, export, arch, phase->name);
        hwnas_arch_free(arch);
        if (status != HWNAS_OK)
            return status;
    }
    return HWNAS_OK;
}

/* `w` has what does not depend on the front. */
static hwnas_status write_winner(winner *w, const hwnas_summary *summary,
                                 const hwnas_summary_front *front)
{
    hwnas_job_export exports[HWNAS_N_EXPORTS];
    hwnas_status status = HWNAS_OK;
    hwnas_space *space = NULL;
    hwnas_predictor *judge = NULL;
    hwnas_job_data data = {0};
    char *code = NULL;
    hwnas_job_exports(exports, w->job);
    if (!is_any_wanted(exports))
        return HWNAS_OK;
    TRY_OUT(hwnas_load_space(&space, w->job->space));
    if (w->job->predictor && hwnas_starts_with(w->job->predictor, "samples:"))
        TRY_OUT(hwnas_predictor_load(&judge, w->job->predictor, space));
    TRY_OUT(hwnas_job_data_read(&data, w->job));
    code = hwnas_strdup(summary->trials[front->winner].code);
    const hwnas_settings settings = hwnas_settings_cut(code, w->job);
    TRY_OUT(hwnas_arch_parse(&w->arch, space, code));
    TRY_OUT(hwnas_phases_open(&w->phases, w->job, space));
    TRY_OUT(hwnas_phases_find_plain(&w->plain, &w->phases, w->arch));
    w->device = front->device;
    w->trial = &summary->trials[front->winner];
    w->file = (hwnas_network_file){
        .precision = hwnas_trial_precision(&summary->job, settings, front->device),
        .batch = settings.batch,
        .data = &data.mix,
        .samples = judge ? hwnas_predictor_samples_of(judge) : NULL};
    for (size_t i = 0; i < HWNAS_N_EXPORTS; i++) {
        if (!exports[i].path)
            continue;
        TRY_OUT(write_one(w, &exports[i], w->arch, NULL));
        if (exports[i].is_of_phase)
            TRY_OUT(write_phases(w, &exports[i]));
    }
out:
    free(code);
    hwnas_phases_close(&w->phases);
    hwnas_arch_free(w->arch);
    w->arch = NULL;
    hwnas_predictor_free(judge);
    hwnas_job_data_done(&data);
    hwnas_space_free(space);
    return status;
}

hwnas_status hwnas_job_write_exports(const hwnas_job *job, const hwnas_summary *summary,
                                     void (*written)(void *context, const hwnas_network_file *file),
                                     void *context)
{
    winner w = {.job = job, .written = written, .context = context};
    for (int f = 0; f < summary->n_fronts; f++)
        if (summary->fronts[f].winner >= 0)
            TRY(write_winner(&w, summary, &summary->fronts[f]));
    return HWNAS_OK;
}
