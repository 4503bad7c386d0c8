#include "data/dataset_source.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "graph/dtype.h"

typedef hwnas_dataset_source source;

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

static shape turned(shape s, hwnas_layout_change to)
{
    const shape first = {3, {s.dims[2], s.dims[0], s.dims[1]}};
    const shape last = {3, {s.dims[1], s.dims[2], s.dims[0]}};
    return to == HWNAS_TO_CHANNELS_FIRST ? first : last;
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
    if (is_image && fits(turned(have, HWNAS_TO_CHANNELS_FIRST), want))
        hwnas_hint(status, "channels are last in the data: add --layout nhwc");
    else if (is_image && fits(turned(have, HWNAS_TO_CHANNELS_LAST), want))
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
    const hwnas_layout_change turn = is_last ? HWNAS_TO_CHANNELS_FIRST : HWNAS_TO_CHANNELS_LAST;
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

bool hwnas_dataset_has_array(char **names, const char *name)
{
    char *member = hwnas_printf("%s.npy", name);
    bool found = false;
    for (size_t i = 0; names[i]; i++)
        found |= !strcmp(names[i], member);
    free(member);
    return found;
}

hwnas_status hwnas_dataset_no_array(const char *path, char **names, const char *wanted)
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
    const char *name = file->array                             ? file->array
                       : hwnas_dataset_has_array(names, input) ? input
                                                               : "x";
    hwnas_status status = HWNAS_OK;
    if (!hwnas_dataset_has_array(names, name) ||
        (!is_only && !file->array && strcmp(name, input))) {
        char *wanted = file->array || !is_only || !strcmp(input, "x")
                           ? hwnas_printf("'%s'", file->array ? name : input)
                           : hwnas_printf("'%s' or 'x'", input);
        status = hwnas_dataset_no_array(file->path, names, wanted);
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

hwnas_status hwnas_dataset_check_files(const hwnas_dataset_target *target, size_t n_files,
                                       const hwnas_data_file *files)
{
    if (!target->n_inputs)
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          target->n_absent ? "no input of the network has values in this shape"
                                           : "the network has no inputs, only constants");
    for (size_t i = 0; i < n_files; i++)
        if (files[i].input)
            TRY(check_input(target, files[i].input));
        else if (n_files > 1)
            return hwnas_hint(
                hwnas_fail(HWNAS_E_USAGE, NULL,
                           "%s names no input: of several files each says whose it is",
                           files[i].path),
                "write %s=%s", target->inputs[0].name, files[i].path);
    return HWNAS_OK;
}

/* ---- Values ---- */

static hwnas_status wrong_value(const source *s, int64_t sample, double value)
{
    const hwnas_place place = {.file = s->file->path};
    if (s->entries)
        return hwnas_fail(HWNAS_E_INPUT, &place,
                          "sample %" PRId64
                          " of '%s' has the value %.10g; the network's table has the "
                          "numbers 0 to %" PRId64,
                          sample, s->input, value, s->entries - 1);
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                 "sample %" PRId64 " of '%s' has the value "
                                 "%.10g where %s",
                                 sample, s->input, value,
                                 s->is_whole ? "a whole number up to 2^24 is needed"
                                             : "a finite number is needed"),
                      s->is_whole || isfinite(value) ? "look at x[%" PRId64 "]"
                                                     : "look at x[%" PRId64
                                                       "]; 'hwnas run' accepts it",
                      sample);
}

/* Of what it is before it becomes a float, which would make 2^24 of 2^24 + 1. */
static bool is_good(const source *s, double given)
{
    const double most = 1 << 24;
    const float value = (float)given;
    if (!s->is_whole)
        return isfinite(value) || (s->takes_non_finite && !isfinite(given));
    if (!(fabs(given) <= most) || value != truncf(value))
        return false;
    return !s->entries || (value >= (float)-s->entries && value < (float)s->entries);
}

hwnas_status hwnas_dataset_check_value(const source *s, int64_t sample, double value)
{
    return is_good(s, value) ? HWNAS_OK : wrong_value(s, sample, value);
}

/* ---- Opening ---- */

static hwnas_status open_array(source *s, const hwnas_dataset_target *target, size_t input,
                               size_t n_files, const hwnas_data_file *files)
{
    const hwnas_array_info *info = &target->inputs[input];
    const hwnas_data_file *file = NULL;
    char *name;
    TRY(find_file(&file, target, input, n_files, files));
    TRY(find_array(&name, file, info->name, target->n_inputs == 1));
    const hwnas_status status = hwnas_array_open(&s->file, file->path, name);
    free(name);
    TRY(status);
    s->input = info->name;
    s->entries = target->entries[input];
    for (int type = 0; type < HWNAS_N_DTYPES; type++)
        if (!strcmp(hwnas_dtype_name((hwnas_dtype)type), info->type))
            s->is_whole = hwnas_dtype_is_whole((hwnas_dtype)type);
    return HWNAS_OK;
}

static hwnas_status open_whole(source *s, const hwnas_dataset_target *target, size_t input,
                               size_t n_files, const hwnas_data_file *files)
{
    const hwnas_array_info *info = &target->inputs[input];
    TRY(open_array(s, target, input, n_files, files));
    s->takes_non_finite = true;
    shape have = {.rank = s->file->rank}, want = {.rank = info->rank};
    memcpy(have.dims, s->file->dims, (size_t)have.rank * sizeof *have.dims);
    if (want.rank)
        memcpy(want.dims, info->dims, (size_t)want.rank * sizeof *want.dims);
    if (is_same(without_ones(have), without_ones(want)))
        return HWNAS_OK;
    const hwnas_place place = {.file = s->file->path};
    char *mine = hwnas_dims_text(have.rank, have.dims),
         *its = hwnas_dims_text(want.rank, want.dims);
    const hwnas_status status = hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, &place, "the array is %s, input '%s' of the network is %s", mine,
                   s->input, its),
        "the first dimensions of the network's inputs and outputs differ, so none counts samples: "
        "it runs once, with arrays of these shapes");
    free(mine);
    free(its);
    return status;
}

hwnas_status hwnas_dataset_read_whole(float *out, const hwnas_dataset_target *target, size_t input,
                                      size_t n_files, const hwnas_data_file *files)
{
    hwnas_status status = HWNAS_OK;
    source s = {0};
    const int64_t n = target->inputs[input].count;
    TRY_OUT(open_whole(&s, target, input, n_files, files));
    TRY_OUT(hwnas_try_alloc((void **)&s.row, (size_t)n * sizeof *s.row, "an input"));
    TRY_OUT(hwnas_array_read(s.row, s.file, s.file->dims[0]));
    for (int64_t i = 0; i < n; i++) {
        TRY_OUT(hwnas_dataset_check_value(&s, i, s.row[i]));
        out[i] = (float)s.row[i];
    }
out:
    hwnas_dataset_source_close(&s);
    return status;
}

hwnas_status hwnas_dataset_source_open(source *s, const hwnas_dataset_target *target, size_t input,
                                       size_t n_files, const hwnas_data_file *files,
                                       const char *layout)
{
    const hwnas_array_info *info = &target->inputs[input];
    TRY(open_array(s, target, input, n_files, files));
    TRY(match_shape(s, sample_shape(s->file->rank, s->file->dims),
                    sample_shape(info->rank, info->dims), layout));
    return hwnas_try_alloc((void **)&s->row, (size_t)s->count * sizeof *s->row, "a sample");
}

void hwnas_dataset_source_close(source *s)
{
    hwnas_array_close(s->file);
    free(s->row);
}
