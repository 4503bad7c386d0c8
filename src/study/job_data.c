#include "study/job_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

/* ---- Reading ---- */

static hwnas_status read_limit(void *context, const char *key, const char *value)
{
    return hwnas_data_key_count(&((hwnas_job_data *)context)->spelling.options.limit, key, value);
}

static hwnas_status read_calibrate(void *context, const char *key, const char *value)
{
    return hwnas_data_key_count(&((hwnas_job_data *)context)->mix.calibrate, key, value);
}

static const hwnas_data_key own_keys[] = {
    {"calibrate", read_calibrate}, {"limit", read_limit}, {0}};

/* A failure that is about a file has the place of the key that names it. */
static hwnas_status at_key(hwnas_status status, const hwnas_job *job)
{
    const hwnas_error error = *hwnas_last_error();
    if (status == HWNAS_OK || !*error.file || !job->data_place.file)
        return status == HWNAS_OK ? status : hwnas_fail_at(status, &job->data_place);
    return hwnas_hint(hwnas_fail(status, &job->data_place, "%s: %s", error.file, error.message),
                      "%s", error.hint);
}

static hwnas_status read_spelling(hwnas_job_data *out, const hwnas_job *job)
{
    const bool has_loss = !isnan(job->max_loss);
    TRY(hwnas_data_spelling_read(&out->spelling, job->data, own_keys, out));
    if (out->spelling.options.labels && !has_loss)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "labels go with max-loss"),
                          "max-loss: 1 limits the points of accuracy that may be lost; without it "
                          "outputs are compared with those in f32");
    out->spelling.options.ignores_labels = !has_loss;
    out->file = (hwnas_data_file){.path = out->spelling.path, .array = out->spelling.array};
    out->mix.n = 1;
    out->mix.files = &out->file;
    out->mix.options = out->spelling.options;
    out->mix.max_loss = has_loss ? job->max_loss : 0;
    return HWNAS_OK;
}

hwnas_status hwnas_job_data_read(hwnas_job_data *out, const hwnas_job *job)
{
    *out = (hwnas_job_data){0};
    return job->data ? at_key(read_spelling(out, job), job) : HWNAS_OK;
}

void hwnas_job_data_done(hwnas_job_data *data)
{
    hwnas_data_spelling_done(&data->spelling);
}

/* ---- Checking ---- */

static hwnas_status check(const hwnas_job_data *data, const hwnas_job *job,
                          const hwnas_graph *graph, int batch)
{
    hwnas_dataset *dataset;
    const hwnas_place place = {.file = data->file.path};
    TRY(hwnas_graph_dataset_open(&dataset, graph, data->mix.n, data->mix.files,
                                 &data->mix.options));
    hwnas_status status = hwnas_mix_samples_check(graph, job->space, batch, dataset);
    if (status == HWNAS_OK && !isnan(job->max_loss) && !hwnas_dataset_has_labels(dataset))
        status = hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "max-loss needs labels"),
                            "an array y in the .npz, or data: FILE#labels=FILE; max-error needs "
                            "none");
    hwnas_dataset_close(dataset);
    return status;
}

hwnas_status hwnas_job_data_check(const hwnas_job_data *data, const hwnas_job *job,
                                  const hwnas_graph *graph, int batch)
{
    return at_key(check(data, job, graph, batch), job);
}

char *hwnas_job_data_name(const hwnas_job *job)
{
    char *path = hwnas_printf("%.*s", (int)hwnas_file_name_length(job->data), job->data);
    const char *slash = strrchr(path, '/');
    char *name = hwnas_strdup(slash ? slash + 1 : path);
    free(path);
    return name;
}
