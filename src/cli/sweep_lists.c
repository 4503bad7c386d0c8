#define _GNU_SOURCE 1 /* strsep() */
#include "cli/sweep_lists.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* What may stand in the place of a number. */
typedef struct number_word {
    const char *name; /* NULL: none may */
    int value;
} number_word;

/* The number, or the word, that `at` begins with; false: there is none. */
static bool read_number(int *out, const char **end, const char *at, long most, number_word word)
{
    const size_t n = strcspn(at, ",");
    char *behind;
    *end = at + n;
    if (word.name && strlen(word.name) == n && !strncmp(at, word.name, n)) {
        *out = word.value;
        return true;
    }
    errno = 0;
    const long value = strtol(at, &behind, 10);
    *out = (int)value;
    return n && behind == *end && !errno && value >= 1 && value <= most;
}

/* "1,2,8" */
static hwnas_status read_numbers(int *out, size_t *n, const char *option, const char *text,
                                 long most, number_word word)
{
    *n = 0;
    for (const char *at = text; *n < HWNAS_MAX_LIST;) {
        const char *end;
        if (!read_number(&out[*n], &end, at, most, word))
            break;
        ++*n;
        if (!*end)
            return HWNAS_OK;
        at = end + 1;
    }
    return hwnas_hint(
        hwnas_fail(HWNAS_E_USAGE, NULL, "--%s '%.60s' is not a list of numbers 1 to %ld%s%s",
                   option, text, most, word.name ? ", or of " : "", word.name ? word.name : ""),
        "write --%s 1,2%s%s", option, word.name ? "," : ",4", word.name ? word.name : "");
}

/* "f32,s8", cut at its commas in `room`. */
static hwnas_status read_words(const char **out, size_t *n, char *room, size_t size,
                               const char *option, const char *text)
{
    char *rest = room;
    *n = 0;
    bool is_list = (size_t)snprintf(room, size, "%s", text) < size;
    for (char *word; is_list && (word = strsep(&rest, ","));) {
        is_list = *word && *n < HWNAS_MAX_LIST;
        if (is_list)
            out[(*n)++] = word;
    }
    return is_list ? HWNAS_OK
                   : hwnas_fail(HWNAS_E_USAGE, NULL, "--%s '%.60s' is not a list of 1 to %d words",
                                option, text, HWNAS_MAX_LIST);
}

static hwnas_status read_precisions(hwnas_profile_options *out, hwnas_sweep_lists *lists)
{
    const char *words[HWNAS_MAX_LIST];
    TRY(read_words(words, &out->n_precisions, lists->precision_room, sizeof lists->precision_room,
                   "dtype", lists->precisions));
    const size_t n = out->n_precisions;
    out->n_precisions = 0;
    for (size_t i = 0; i < n; i++)
        if (hwnas_mixing_find(words[i]))
            out->mixings |= 1U << hwnas_mixing_find(words[i]);
        else
            TRY(hwnas_precision_find(&lists->precision_values[out->n_precisions++], words[i]));
    out->precisions = lists->precision_values;
    return HWNAS_OK;
}

hwnas_status hwnas_max_error_read(double *out, double percent, bool is_mixed)
{
    *out = -1;
    if (percent == HWNAS_NO_MAX_ERROR)
        return HWNAS_OK;
    if (!is_mixed)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--max-error goes with --dtype mixed");
    if (!(percent >= 0))
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--max-error is a percentage, 0 or more");
    *out = percent / 100;
    return HWNAS_OK;
}

static hwnas_status read_optimizer(hwnas_optimizer *out, const char *name)
{
    *out = HWNAS_SGD;
    if (name)
        TRY(hwnas_optimizer_find(out, name));
    return *out ? HWNAS_OK : hwnas_fail(HWNAS_E_USAGE, NULL, "--training needs an optimizer");
}

hwnas_status hwnas_training_read(hwnas_profile_options *out, const hwnas_training_words *words,
                                 const char *prices)
{
    const bool has_samples = words->samples != -1, has_epochs = words->epochs != -1;
    const char *lone = words->optimizer ? "optimizer"
                       : has_samples    ? "samples"
                       : has_epochs     ? "epochs"
                                        : NULL;
    if (lone && !words->trains)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--%s belongs to --training", lone),
                          has_samples && !words->optimizer
                              ? "they are those of the training set; how often each network runs "
                                "at least is --runs"
                              : "a training step is measured with it");
    if (!words->trains)
        return HWNAS_OK;
    TRY(read_optimizer(&out->training, words->optimizer));
    if (words->samples == 0 || words->epochs == 0)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--%s must be more than 0",
                          words->samples == 0 ? "samples" : "epochs");
    if (!has_samples && (has_epochs || prices))
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "--%s needs --samples",
                                     has_epochs ? "epochs" : "price"),
                          "--samples N is the size of the training set: 60000 of MNIST");
    if (has_samples)
        out->samples = (double)words->samples;
    if (has_epochs)
        out->epochs = words->epochs;
    return HWNAS_OK;
}

hwnas_status hwnas_sweep_read(hwnas_profile_options *out, hwnas_sweep_lists *lists)
{
    out->devices = lists->device_words;
    out->batches = lists->batch_numbers;
    out->threads = lists->thread_numbers;
    out->streams = lists->stream_numbers;
    if (lists->devices)
        TRY(read_words(lists->device_words, &out->n_devices, lists->device_room,
                       sizeof lists->device_room, "device", lists->devices));
    if (lists->batches)
        TRY(read_numbers(lists->batch_numbers, &out->n_batches, "batch", lists->batches, 1 << 20,
                         (number_word){0}));
    if (lists->threads)
        TRY(read_numbers(lists->thread_numbers, &out->n_threads, "threads", lists->threads, 1024,
                         (number_word){"all", HWNAS_THREADS_ALL}));
    if (lists->streams)
        TRY(read_numbers(lists->stream_numbers, &out->n_streams, "streams", lists->streams, 1024,
                         (number_word){"fill", HWNAS_STREAMS_FILL}));
    if (lists->precisions)
        TRY(read_precisions(out, lists));
    return hwnas_max_error_read(&out->max_error, lists->max_error, out->mixings != 0);
}

hwnas_status hwnas_sweep_samples(hwnas_profile_options *out, hwnas_data_read *read,
                                 const hwnas_data_arguments *data, double max_loss)
{
    *read = (hwnas_data_read){0};
    TRY(hwnas_choice_read(&out->max_loss, max_loss, data, out->mixings != 0));
    TRY(hwnas_data_arguments_read(read, data, false));
    out->data = read->files;
    out->n_data = read->n;
    out->data_options = &read->options;
    return HWNAS_OK;
}
