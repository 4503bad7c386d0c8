#include "cli/sweep_lists.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/cli.h"

/* "1,2,8" */
static hwnas_status read_numbers(int *out, int *n, const char *option, const char *text, long most)
{
    *n = 0;
    for (const char *at = text; *n < HWNAS_SWEEP_LIST;) {
        char *end;
        errno = 0;
        const long value = strtol(at, &end, 10);
        if (end == at || errno || value < 1 || value > most || (*end && *end != ','))
            break;
        out[(*n)++] = (int)value;
        if (!*end)
            return HWNAS_OK;
        at = end + 1;
    }
    return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                 "--%s '%.60s' is not a list of numbers 1 to %ld", option, text,
                                 most),
                      "write --%s 1,2,4", option);
}

/* "f32,s8", each word yours to free(). */
static hwnas_status read_words(char **out, int *n, const char *option, const char *text)
{
    *n = 0;
    for (const char *at = text;;) {
        const size_t length = strcspn(at, ",");
        if (!length || *n == HWNAS_SWEEP_LIST)
            return hwnas_fail(HWNAS_E_USAGE, NULL, "--%s '%.60s' is not a list of 1 to %d words",
                              option, text, HWNAS_SWEEP_LIST);
        out[(*n)++] = hwnas_printf("%.*s", (int)length, at);
        if (!at[length])
            return HWNAS_OK;
        at += length + 1;
    }
}

static hwnas_status read_precisions(hwnas_sweep *out, const char *text)
{
    char *words[HWNAS_SWEEP_LIST];
    hwnas_status status = read_words(words, &out->n_precisions, "dtype", text);
    for (int i = 0; i < out->n_precisions && status == HWNAS_OK; i++)
        status = hwnas_precision_find(&out->precisions[i], words[i]);
    for (int i = 0; i < out->n_precisions; i++)
        free(words[i]);
    return status;
}

hwnas_status hwnas_sweep_read(hwnas_sweep *out, const hwnas_sweep_lists *lists)
{
    const hwnas_device_ops *ops;
    const char *argument;
    TRY(read_words(out->devices, &out->n_devices, "device", lists->devices));
    for (int i = 0; i < out->n_devices; i++)
        TRY(hwnas_device_find(&ops, &argument, out->devices[i]));
    TRY(read_numbers(out->batches, &out->n_batches, "batch", lists->batches, 1 << 20));
    TRY(read_numbers(out->threads, &out->n_threads, "threads", lists->threads, 1024));
    out->n_streams = 1;
    if (lists->streams && !strcmp(lists->streams, "fill"))
        out->streams[0] = HWNAS_SWEEP_FILL;
    else if (lists->streams)
        TRY(read_numbers(out->streams, &out->n_streams, "streams", lists->streams, 1024));
    return read_precisions(out, lists->precisions);
}

void hwnas_sweep_print_skipped(const char *model, const char *list)
{
    hwnas_say(stderr, "%s is not measured whole; left out, with what depends on it:\n%s", model,
              list);
}
