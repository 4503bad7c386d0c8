#include "data/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "graph/dtype.h"

typedef enum order { AS_IT_IS, TO_CHANNELS_FIRST, TO_CHANNELS_LAST } order;

/* Where an input's samples come from. */
typedef struct source {
    hwnas_array_file *file;
    const char *input; /* its name */
    int64_t count;     /* values of a sample */
    order order;
    int64_t n_channels;   /* value i is of channel i / channel_step % n_channels, as the network */
    int64_t channel_step; /* has them */
    int64_t entries;      /* 0: it is no index */
    bool is_whole;
    double *row; /* one sample as it is in the file */
} source;

struct hwnas_dataset {
    size_t n_inputs;
    source *sources;
    hwnas_array_file *labels;
    int64_t n_samples, next;
    double scale;
    size_t n_mean, n_std;
    double *mean, *std;
};

/* ---- Shapes ---- */

typedef struct shape {
    int rank;
    int64_t dims[HWNAS_MAX_RANK];
} shape;

/* Without the first dimension. */
static shape sample_shape(int rank, const int64_t *dims)
{
    shape s = {.rank = rank > 0 ? rank - 1 : 0};
    for (int i = 0; i < s.rank; i++)
        s.dims[i] = dims[i + 1];
    return s;
}

static bool is_same(shape a, shape b)
{
    return a.rank == b.rank && !memcmp(a.dims, b.dims, (size_t)a.rank * sizeof *a.dims);
}

static shape without_ones(shape s)
{
    shape out = {0};
    for (int i = 0; i < s.rank; i++)
        if (s.dims[i] != 1)
            out.dims[out.rank++] = s.dims[i];
    return out;
}

static int64_t count_of(shape s)
{
    int64_t n = 1;
    for (int i = 0; i < s.rank; i++)
        n *= s.dims[i];
    return n;
}

static shape turned(shape s, order to)
{
    const shape first = {3, {s.dims[2], s.dims[0], s.dims[1]}};
    const shape last = {3, {s.dims[1], s.dims[2], s.dims[0]}};
    return to == TO_CHANNELS_FIRST ? first : last;
}

/* Values in the same order mean the same: a channel axis more or less, or all in a row. */
static bool fits(shape have, shape want)
{
    const shape a = without_ones(have), b = without_ones(want);
    return is_same(a, b) || (count_of(a) == count_of(b) && (a.rank <= 1 || b.rank <= 1));
}

static hwnas_status wrong_shape(const source *s, shape have, shape want)
{
    const hwnas_place place = {.file = s->file->path};
    const bool is_image = have.rank == 3 && want.rank == 3;
    char *mine = hwnas_dims_text(have.rank, have.dims),
         *its = hwnas_dims_text(want.rank, want.dims);
    hwnas_status status =
        hwnas_fail(HWNAS_E_INPUT, &place, "a sample is %s, input '%s' of the network takes %s",
                   mine, s->input, its);
    if (is_image && fits(turned(have, TO_CHANNELS_FIRST), want))
        hwnas_hint(status, "channels are last in the data: add --layout nhwc");
    else if (is_image && fits(turned(have, TO_CHANNELS_LAST), want))
        hwnas_hint(status, "channels are first in the data: add --layout nchw");
    else if (count_of(have) == count_of(want))
        hwnas_hint(status, "as many values in another order: x.transpose(...), x.reshape(...)");
    else if (s->file->dims[0] == (want.rank ? want.dims[0] : 0) && have.rank + 1 == want.rank)
        hwnas_hint(status, "is it one sample? x[None] adds the dimension that counts them");
    else
        hwnas_hint(status, "resize or crop the samples as for the network's training");
    free(mine);
    free(its);
    return status;
}

/* How the data's layout becomes the network's. */
static hwnas_status match_shape(source *s, shape have, shape want, const char *layout)
{
    const bool is_last = layout && !strcmp(layout, "nhwc");
    const order turn = is_last ? TO_CHANNELS_FIRST : TO_CHANNELS_LAST;
    bool is_last_there = is_last && have.rank == 3;
    s->count = count_of(want);
    if (layout && have.rank == 3 && (is_last || !is_same(have, want)) &&
        is_same(turned(have, turn), want)) {
        s->order = turn;
        is_last_there = !is_last;
    } else if (!fits(have, want)) {
        return wrong_shape(s, have, want);
    }
    s->n_channels = !want.rank ? 1 : want.dims[is_last_there ? want.rank - 1 : 0];
    s->channel_step = is_last_there ? 1 : s->count / s->n_channels;
    return HWNAS_OK;
}

/* ---- Which array is whose ---- */

static bool is_listed(char **names, const char *name)
{
    char *member = hwnas_printf("%s.npy", name);
    bool found = false;
    for (size_t i = 0; names[i]; i++)
        found |= !strcmp(names[i], member);
    free(member);
    return found;
}

static hwnas_status no_such_array(const char *path, char **names, const char *wanted)
{
    const hwnas_place place = {.file = path};
    hwnas_str list = {0};
    for (size_t i = 0; names[i]; i++)
        hwnas_str_addf(&list, "%s%.*s", i ? ", " : "",
                       (int)strlen(names[i]) - (hwnas_ends_with(names[i], ".npy") ? 4 : 0),
                       names[i]);
    const hwnas_status status =
        hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "there is no array %s; there are %s", wanted,
                              list.n ? list.s : "none"),
                   "--x names the array of the samples, --y that of the labels");
    hwnas_str_done(&list);
    return status;
}

/* The name of an input's array in an archive: as it is called, like the input, or x. `out` stays
 * NULL for a file of one array. */
static hwnas_status find_array(char **out, const hwnas_data_file *file, const char *input,
                               bool is_only)
{
    bool is_zip;
    char **names;
    *out = NULL;
    TRY(hwnas_is_zip(&is_zip, file->path));
    if (!is_zip)
        return HWNAS_OK;
    if (!is_only && file->array && !file->input)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "'%s' is one array, the network has several inputs",
                          file->array);
    TRY(hwnas_zip_list(&names, file->path));
    const char *name = file->array ? file->array : is_listed(names, input) ? input : "x";
    hwnas_status status = HWNAS_OK;
    if (!is_listed(names, name) || (!is_only && !file->array && strcmp(name, input))) {
        char *wanted = file->array || !is_only ? hwnas_printf("'%s'", file->array ? name : input)
                                               : hwnas_printf("'%s' or 'x'", input);
        status = no_such_array(file->path, names, wanted);
        free(wanted);
    } else {
        *out = hwnas_strdup(name);
    }
    hwnas_zip_list_free(names);
    return status;
}

/* The file that is given for an input; one without a name is for all. */
static hwnas_status find_file(const hwnas_data_file **out, const hwnas_dataset_target *target,
                              size_t input, size_t n_files, const hwnas_data_file *files)
{
    const char *name = target->inputs[input].name;
    for (size_t i = 0; i < n_files; i++)
        if (!files[i].input || !strcmp(files[i].input, name)) {
            *out = &files[i];
            return HWNAS_OK;
        }
    return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "there is no file for input '%s'", name),
                      "give it as %s=FILE, or all inputs in one .npz", name);
}

static hwnas_status check_input(const hwnas_dataset_target *target, const char *name)
{
    const char *names[HWNAS_MAX_NODE_INPUTS + 1] = {0};
    for (size_t i = 0; i < target->n_inputs; i++) {
        if (!strcmp(name, target->inputs[i].name))
            return HWNAS_OK;
        if (i < HWNAS_MAX_NODE_INPUTS)
            names[i] = target->inputs[i].name;
    }
    for (size_t i = 0; i < target->n_absent; i++)
        if (!strcmp(name, target->absent[i]))
            return hwnas_hint(
                hwnas_fail(HWNAS_E_USAGE, NULL, "input '%s' has no values in this shape", name),
                "leave %s=FILE out", name);
    const char *near = hwnas_nearest(name, names);
    return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "the network has no input '%s'", name),
                      near ? "did you mean '%s'?" : "its first is '%s'",
                      near ? near : target->inputs[0].name);
}

static hwnas_status check_files(const hwnas_dataset_target *target, size_t n_files,
                                const hwnas_data_file *files)
{
    for (size_t i = 0; i < n_files; i++)
        if (files[i].input)
            TRY(check_input(target, files[i].input));
        else if (n_files > 1)
            return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                         "%s is for no input: of several files each has a name",
                                         files[i].path),
                              "write %s=%s", target->inputs[0].name, files[i].path);
    return HWNAS_OK;
}

/* ---- Opening ---- */

static hwnas_status open_source(source *s, const hwnas_dataset_target *target, size_t input,
                                const hwnas_data_file *file, const char *layout)
{
    const hwnas_array_info *info = &target->inputs[input];
    char *name;
    TRY(find_array(&name, file, info->name, target->n_inputs == 1));
    const hwnas_status status = hwnas_array_open(&s->file, file->path, name);
    free(name);
    TRY(status);
    s->input = info->name;
    s->entries = target->entries[input];
    for (int type = 0; type < HWNAS_N_DTYPES; type++)
        if (!strcmp(hwnas_dtype_name((hwnas_dtype)type), info->type))
            s->is_whole = hwnas_dtype_is_whole((hwnas_dtype)type);
    TRY(match_shape(s, sample_shape(s->file->rank, s->file->dims),
                    sample_shape(info->rank, info->dims), layout));
    return hwnas_try_alloc((void **)&s->row, (size_t)s->count * sizeof *s->row, "a sample");
}

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
    const bool is_there = is_listed(names, name);
    hwnas_status status = HWNAS_OK;
    if (!is_there && (o->labels || o->label_array)) {
        char *wanted = hwnas_printf("'%s'", name);
        status = no_such_array(path, names, wanted);
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
    if (!target->n_inputs)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the network has no inputs, only constants");
    TRY(check_files(target, n_files, files));
    for (size_t i = 0; i < target->n_inputs; i++) {
        const hwnas_data_file *file = NULL;
        TRY(find_file(&file, target, i, n_files, files));
        TRY(open_source(&d->sources[i], target, i, file, o->layout));
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
    for (size_t i = 0; i < data->n_inputs; i++) {
        hwnas_array_close(data->sources[i].file);
        free(data->sources[i].row);
    }
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
    if (s->order == TO_CHANNELS_FIRST)
        return i % n_places * s->n_channels + i / n_places;
    if (s->order == TO_CHANNELS_LAST)
        return i % s->n_channels * n_places + i / s->n_channels;
    return i;
}

static hwnas_status wrong_value(const source *s, int64_t sample, double value)
{
    const hwnas_place place = {.file = s->file->path};
    if (s->entries)
        return hwnas_fail(HWNAS_E_INPUT, &place,
                          "sample %" PRId64
                          " of '%s' has the value %g; the network's table has the "
                          "numbers 0 to %" PRId64,
                          sample, s->input, value, s->entries - 1);
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                 "sample %" PRId64 " of '%s' has the value "
                                 "%g where %s",
                                 sample, s->input, value,
                                 s->is_whole ? "a whole number up to 2^24 is needed"
                                             : "a finite number is needed"),
                      "look at x[%" PRId64 "]", sample);
}

static bool is_good(const source *s, float value)
{
    const float most = 1 << 24;
    if (!s->is_whole)
        return isfinite(value);
    if (!(fabsf(value) <= most) || value != truncf(value))
        return false;
    return !s->entries || (value >= (float)-s->entries && value < (float)s->entries);
}

/* One sample, from the file's order and range into the network's. */
static hwnas_status take_sample(float *out, const hwnas_dataset *d, source *s, int64_t sample)
{
    TRY(hwnas_array_read(s->row, s->file, 1));
    const bool is_plain = s->order == AS_IT_IS && d->n_mean <= 1 && d->n_std <= 1;
    const double mean = of_channel(d->mean, d->n_mean, 0, 0);
    const double std = of_channel(d->std, d->n_std, 0, 1);
    for (int64_t i = 0; i < s->count; i++) {
        const int64_t channel = is_plain ? 0 : i / s->channel_step % s->n_channels;
        const double value = s->row[is_plain ? i : place_in_file(s, i)] * d->scale;
        out[i] = is_plain ? (float)((value - mean) / std)
                          : (float)((value - of_channel(d->mean, d->n_mean, channel, 0)) /
                                    of_channel(d->std, d->n_std, channel, 1));
        if (!is_good(s, out[i]))
            return wrong_value(s, sample, (double)out[i]);
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
