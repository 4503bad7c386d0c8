#include "data/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/dataset_source.h"

typedef hwnas_dataset_source source;

struct hwnas_dataset {
    size_t n_inputs;
    source *sources;
    hwnas_array_file *labels;
    int64_t n_samples, next;
    double scale;
    size_t n_mean, n_std;
    double *mean, *std;
};

/* ---- Opening ---- */

static hwnas_status check_length(const hwnas_dataset *d, const hwnas_array_file *a,
                                 const char *what)
{
    const hwnas_array_file *first = d->sources[0].file;
    const hwnas_place place = {.file = a->path};
    if (a->dims[0] == first->dims[0])
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_INPUT, &place,
                      "%s has %" PRId64 " rows, but there are %" PRId64 " samples in %s", what,
                      a->dims[0], first->dims[0], first->path);
}

static hwnas_status open_labels(hwnas_dataset *d, const char *samples,
                                const hwnas_dataset_options *o)
{
    const char *path = o->labels ? o->labels : samples;
    const char *name = o->label_array ? o->label_array : "y";
    bool is_zip;
    char **names;
    TRY(hwnas_is_zip(&is_zip, path));
    if (!is_zip && !o->labels)
        return HWNAS_OK;
    if (!is_zip)
        return hwnas_array_open(&d->labels, path, NULL);
    TRY(hwnas_zip_list(&names, path));
    const bool is_there = hwnas_dataset_has_array(names, name);
    hwnas_status status = HWNAS_OK;
    if (!is_there && (o->labels || o->label_array)) {
        char *wanted = hwnas_printf("'%s'", name);
        status = hwnas_dataset_no_array(path, names, wanted);
        free(wanted);
    }
    hwnas_zip_list_free(names);
    return is_there ? hwnas_array_open(&d->labels, path, name) : status;
}

static double *copy_numbers(const double *from, size_t n)
{
    double *out = hwnas_alloc((n + 1) * sizeof *out);
    if (n)
        memcpy(out, from, n * sizeof *out);
    return out;
}

static hwnas_status check_channels(const source *s, size_t n, const char *what)
{
    if (n <= 1 || (int64_t)n == s->n_channels)
        return HWNAS_OK;
    return hwnas_fail(HWNAS_E_USAGE, NULL, "%zu values of %s; input '%s' has %" PRId64 " channels",
                      n, what, s->input, s->n_channels);
}

static hwnas_status take_preprocessing(hwnas_dataset *d, const hwnas_dataset_options *o)
{
    const bool is_asked = o->scale != 0 || o->n_mean || o->n_std || o->layout;
    if (is_asked && d->n_inputs > 1)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                     "scale, mean, std and layout go with a "
                                     "network of one input"),
                          "bring the arrays into range before you save them");
    d->scale = o->scale != 0 ? o->scale : 1;
    d->n_mean = o->n_mean;
    d->n_std = o->n_std;
    d->mean = copy_numbers(o->mean, o->n_mean);
    d->std = copy_numbers(o->std, o->n_std);
    for (size_t i = 0; i < o->n_std; i++)
        if (!(o->std[i] > 0))
            return hwnas_fail(HWNAS_E_USAGE, NULL, "a standard deviation of %g", o->std[i]);
    TRY(check_channels(&d->sources[0], o->n_mean, "the mean"));
    return check_channels(&d->sources[0], o->n_std, "the standard deviation");
}

static hwnas_status open_all(hwnas_dataset *d, const hwnas_dataset_target *target, size_t n_files,
                             const hwnas_data_file *files, const hwnas_dataset_options *o)
{
    if (o->layout && strcmp(o->layout, "nchw") && strcmp(o->layout, "nhwc"))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "the layout is nchw or nhwc, not '%s'", o->layout);
    TRY(hwnas_dataset_check_files(target, n_files, files));
    for (size_t i = 0; i < target->n_inputs; i++) {
        TRY(hwnas_dataset_source_open(&d->sources[i], target, i, n_files, files, o->layout));
        d->sources[i].takes_non_finite = o->takes_non_finite;
        TRY(check_length(d, d->sources[i].file, target->inputs[i].name));
    }
    if (!o->ignores_labels)
        TRY(open_labels(d, files[0].path, o));
    if (d->labels)
        TRY(check_length(d, d->labels, "the array of labels"));
    d->n_samples = d->sources[0].file->dims[0];
    if (o->limit > 0 && o->limit < d->n_samples)
        d->n_samples = o->limit;
    return take_preprocessing(d, o);
}

hwnas_status hwnas_dataset_open_for(hwnas_dataset **out, const hwnas_dataset_target *target,
                                    size_t n_files, const hwnas_data_file *files,
                                    const hwnas_dataset_options *options)
{
    hwnas_dataset *d = hwnas_alloc(sizeof *d);
    d->n_inputs = target->n_inputs;
    d->sources = hwnas_alloc((d->n_inputs + 1) * sizeof *d->sources);
    const hwnas_status status = open_all(d, target, n_files, files, options);
    if (status == HWNAS_OK)
        *out = d;
    else
        hwnas_dataset_close(d);
    return status;
}

void hwnas_dataset_close(hwnas_dataset *data)
{
    if (!data)
        return;
    for (size_t i = 0; i < data->n_inputs; i++)
        hwnas_dataset_source_close(&data->sources[i]);
    hwnas_array_close(data->labels);
    free(data->sources);
    free(data->mean);
    free(data->std);
    free(data);
}

/* ---- Reading ---- */

static double of_channel(const double *values, size_t n, int64_t channel, double fallback)
{
    return n > 1 ? values[channel] : n ? values[0] : fallback;
}

/* Where value `i` of the network's order is in the file's. */
static int64_t place_in_file(const source *s, int64_t i)
{
    const int64_t n_places = s->count / s->n_channels;
    if (s->order == HWNAS_TO_CHANNELS_FIRST)
        return i % n_places * s->n_channels + i / n_places;
    if (s->order == HWNAS_TO_CHANNELS_LAST)
        return i % s->n_channels * n_places + i / s->n_channels;
    return i;
}

/* One sample, from the file's order and range into the network's. */
static hwnas_status take_sample(float *out, const hwnas_dataset *d, source *s, int64_t sample)
{
    TRY(hwnas_array_read(s->row, s->file, 1));
    const bool is_plain = s->order == HWNAS_LAYOUT_KEPT && d->n_mean <= 1 && d->n_std <= 1;
    const double mean = of_channel(d->mean, d->n_mean, 0, 0);
    const double std = of_channel(d->std, d->n_std, 0, 1);
    for (int64_t i = 0; i < s->count; i++) {
        const int64_t channel = is_plain ? 0 : i / s->channel_step % s->n_channels;
        const double value = s->row[is_plain ? i : place_in_file(s, i)] * d->scale;
        const double scaled = is_plain ? (value - mean) / std
                                       : (value - of_channel(d->mean, d->n_mean, channel, 0)) /
                                             of_channel(d->std, d->n_std, channel, 1);
        TRY(hwnas_dataset_check_value(s, sample, scaled));
        out[i] = (float)scaled;
    }
    return HWNAS_OK;
}

hwnas_status hwnas_dataset_take(float *const *inputs, double *labels, hwnas_dataset *data,
                                int64_t n)
{
    for (size_t i = 0; i < data->n_inputs; i++)
        for (int64_t k = 0; k < n; k++)
            TRY(take_sample(inputs[i] + k * data->sources[i].count, data, &data->sources[i],
                            data->next + k));
    if (labels)
        TRY(hwnas_array_read(labels, data->labels, n));
    data->next += n;
    return HWNAS_OK;
}

hwnas_status hwnas_dataset_rewind(hwnas_dataset *data)
{
    for (size_t i = 0; i < data->n_inputs; i++)
        TRY(hwnas_array_rewind(data->sources[i].file));
    if (data->labels)
        TRY(hwnas_array_rewind(data->labels));
    data->next = 0;
    return HWNAS_OK;
}

hwnas_status hwnas_dataset_read_labels(double **out, hwnas_dataset *data)
{
    hwnas_status status = HWNAS_OK;
    double *labels = NULL;
    TRY(hwnas_dataset_rewind(data));
    TRY(hwnas_try_alloc((void **)&labels,
                        (size_t)(data->n_samples * data->labels->row_count) * sizeof *labels,
                        "labels"));
    TRY_OUT(hwnas_array_read(labels, data->labels, data->n_samples));
    TRY_OUT(hwnas_dataset_rewind(data));
    *out = labels;
    return HWNAS_OK;
out:
    free(labels);
    return status;
}

int64_t hwnas_dataset_samples(const hwnas_dataset *data)
{
    return data->n_samples;
}

bool hwnas_dataset_has_labels(const hwnas_dataset *data)
{
    return data->labels != NULL;
}

size_t hwnas_dataset_n_inputs(const hwnas_dataset *data)
{
    return data->n_inputs;
}

const char *hwnas_dataset_path(const hwnas_dataset *data)
{
    return data->sources[0].file->path;
}

int64_t hwnas_dataset_count(const hwnas_dataset *data, size_t input)
{
    return data->sources[input].count;
}

const hwnas_array_file *hwnas_dataset_labels(const hwnas_dataset *data)
{
    return data->labels;
}
