#include "data/data_spelling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

hwnas_status hwnas_data_key_fail(const char *key, const char *value, const char *wanted)
{
    return hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' of samples cannot be '%.60s'", key, value), "%s",
        wanted);
}

hwnas_status hwnas_data_key_count(int64_t *out, const char *key, const char *value)
{
    char *end;
    const long long n = strtoll(value, &end, 10);
    if (n <= 0 || n >= 1 << 30 || *end)
        return hwnas_data_key_fail(key, value, "how many samples");
    *out = n;
    return HWNAS_OK;
}

/* "0.5", "1/255". */
static bool read_number(double *out, const char *text, char **end)
{
    double value = strtod(text, end);
    bool is_good = *end != text;
    if (is_good && **end == '/') {
        const char *below = *end + 1;
        value /= strtod(below, end);
        is_good = *end != below;
    }
    *out = value;
    return is_good && isfinite(value);
}

/* "0.485:0.456:0.406" */
static bool read_list(double *out, size_t *n, const char *text)
{
    char *end = NULL;
    for (*n = 0; *n < HWNAS_MOST_CHANNEL_VALUES; text = end + 1) {
        if (!read_number(&out[(*n)++], text, &end) || (*end && *end != ':'))
            return false;
        if (!*end)
            return true;
    }
    return false;
}

static const char *const own_names[] = {"labels", "layout", "mean", "scale", "std", "x", "y"};
enum { N_OWN = sizeof own_names / sizeof *own_names, MOST_OTHERS = 16 };

static hwnas_status no_key(const char *key, const hwnas_data_key *others)
{
    const char *names[N_OWN + MOST_OTHERS + 1];
    hwnas_str list = {0};
    size_t n = 0;
    for (; n < N_OWN; n++)
        names[n] = own_names[n];
    for (; others && others->name && n < N_OWN + MOST_OTHERS; others++)
        names[n++] = others->name;
    names[n] = NULL;
    for (size_t i = 0; i < n; i++)
        hwnas_str_addf(&list, "%s%s", i ? ", " : "", names[i]);
    const char *near = hwnas_nearest(key, names);
    const hwnas_status status =
        hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "samples have no option '%.40s'", key),
                   near ? "did you mean '%s'?" : "the options are %s", near ? near : list.s);
    hwnas_str_done(&list);
    return status;
}

static hwnas_status set_option(hwnas_data_spelling *s, const char *key, const char *value,
                               const hwnas_data_key *others, void *context)
{
    hwnas_dataset_options *data = &s->options;
    const struct {
        const char *name;
        const char **to;
    } texts[] = {{"labels", &data->labels},
                 {"layout", &data->layout},
                 {"x", &s->array},
                 {"y", &data->label_array}};
    char *end;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(key, texts[i].name)) {
            *texts[i].to = value;
            return HWNAS_OK;
        }
    if (!strcmp(key, "scale"))
        return read_number(&data->scale, value, &end) && !*end && data->scale != 0
                   ? HWNAS_OK
                   : hwnas_data_key_fail(key, value, "a number, such as 1/255");
    if (!strcmp(key, "mean") || !strcmp(key, "std")) {
        const bool is_mean = *key == 'm';
        return read_list(is_mean ? s->mean : s->std, is_mean ? &data->n_mean : &data->n_std, value)
                   ? HWNAS_OK
                   : hwnas_data_key_fail(key, value,
                                         "a number, or one for each channel: 0.485:0.456:0.406");
    }
    for (const hwnas_data_key *k = others; k && k->name; k++)
        if (!strcmp(key, k->name))
            return k->read(context, key, value);
    return no_key(key, others);
}

/* The next of "KEY=VALUE,..." in place, or NULL; "\\," in it is a comma of a file's name. */
static char *next_item(char **text)
{
    char *item = *text, *to = item;
    if (!item)
        return NULL;
    for (const char *at = item;; at++) {
        if (!*at || *at == ',') {
            *text = *at ? (char *)at + 1 : NULL;
            *to = '\0';
            return item;
        }
        at += *at == '\\' && (at[1] == ',' || at[1] == '\\');
        *to++ = *at;
    }
}

static hwnas_status set_options(hwnas_data_spelling *s, char *text, const hwnas_data_key *others,
                                void *context)
{
    for (char *item; (item = next_item(&text));) {
        char *equals = strchr(item, '=');
        if (!equals)
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                         "'%.60s' after '#' is not an option of samples", item),
                              "write val.npz#scale=1/255,mean=0.286");
        *equals = '\0';
        TRY(set_option(s, item, equals + 1, others, context));
    }
    return HWNAS_OK;
}

hwnas_status hwnas_data_spelling_read(hwnas_data_spelling *out, const char *text,
                                      const hwnas_data_key *others, void *context)
{
    const size_t n = hwnas_file_name_length(text);
    *out = (hwnas_data_spelling){.path = hwnas_printf("%.*s", (int)n, text),
                                 .text = text[n] ? hwnas_strdup(text + n + 1) : NULL};
    out->options.mean = out->mean;
    out->options.std = out->std;
    if (!n)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                     "samples are in a file, which '%.60s' does not name", text),
                          "write val.npz#scale=1/255,mean=0.286");
    if (out->text)
        TRY(set_options(out, out->text, others, context));
    if (out->options.labels && access(out->options.labels, F_OK))
        out->options.labels = out->labels = hwnas_file_beside(out->path, out->options.labels);
    return HWNAS_OK;
}

void hwnas_data_spelling_done(hwnas_data_spelling *spelling)
{
    free(spelling->path);
    free(spelling->text);
    free(spelling->labels);
    *spelling = (hwnas_data_spelling){0};
}
