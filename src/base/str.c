#include "base/str.h"

#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void hwnas_str_addn(hwnas_str *str, const char *text, size_t n)
{
    if (str->n + n + 1 > str->capacity) {
        str->capacity = 2 * (str->n + n + 1) + 64;
        str->s = hwnas_realloc(str->s, str->capacity);
    }
    memcpy(str->s + str->n, text, n);
    str->n += n;
    str->s[str->n] = '\0';
}

void hwnas_str_add(hwnas_str *str, const char *text)
{
    hwnas_str_addn(str, text, strlen(text));
}

void hwnas_str_addf(hwnas_str *str, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    char *text = hwnas_vprintf(format, ap);
    va_end(ap);
    hwnas_str_add(str, text);
    free(text);
}

void hwnas_str_done(hwnas_str *str)
{
    free(str->s);
    *str = (hwnas_str){0};
}

bool hwnas_starts_with(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

bool hwnas_ends_with(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);
    return n >= m && !strcmp(text + n - m, suffix);
}

/* Levenshtein distance of two short words; words longer than the table count as far apart. */
static unsigned distance(const char *a, const char *b)
{
    enum { MAX = 48 };
    size_t n = strlen(a), m = strlen(b);
    if (n >= MAX || m >= MAX)
        return UINT_MAX;
    unsigned row[MAX];
    for (size_t j = 0; j <= m; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m];
}

const char *hwnas_nearest(const char *wrong, const char *const *names)
{
    const char *best = NULL;
    unsigned least = (unsigned)strlen(wrong) / 3 + 2; /* that far is another word */
    for (; *names; names++) {
        unsigned d = distance(wrong, *names);
        if (d < least && 2 * (size_t)d <= strlen(*names)) {
            least = d;
            best = *names;
        }
    }
    return best;
}

hwnas_status hwnas_text_check(const char *what, const char *text)
{
    json_t *json = json_string(text);
    const bool is_good = json != NULL;
    json_decref(json);
    return is_good ? HWNAS_OK : hwnas_fail(HWNAS_E_USAGE, NULL, "%s is not UTF-8", what);
}
