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

void hwnas_str_add_word(hwnas_str *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./,:=@%+#";
    if (*word && *word != '#' && !word[strspn(word, plain)]) {
        hwnas_str_add(out, word);
        return;
    }
    hwnas_str_add(out, "'");
    for (; *word; word++)
        hwnas_str_addf(out, *word == '\'' ? "'\\''" : "%c", *word);
    hwnas_str_add(out, "'");
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

/* What other programs call it. */
static const struct synonym {
    const char *theirs, *ours;
} synonyms[] = {
    {"bfloat16", "bf16"},       {"bn", "batch_norm"}, {"channels", "out"},
    {"concatenate", "concat"},  {"cudnn", "cuda"},    {"dense", "linear"},
    {"dwconv", "conv"},         {"fc", "linear"},     {"filters", "out"},
    {"flops", "macs"},          {"float", "f32"},     {"float16", "f16"},
    {"float32", "f32"},         {"fp16", "f16"},      {"fp32", "f32"},
    {"gap", "global_avg_pool"}, {"gpu", "cuda"},      {"half", "f16"},
    {"hswish", "hard_swish"},   {"i8", "s8"},         {"int8", "s8"},
    {"int4", "w4"},
    {"kernel_size", "kernel"},  {"onednn", "cpu"},    {"onnxruntime", "ort"},
    {"parameters", "params"},   {"single", "f32"},    {"size", "memory"},
    {"swish", "silu"},          {"top1", "accuracy"}, {"uint8", "s8"},
    {"units", "out"},
};

static const char *translate(const char *theirs, const char *const *names)
{
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        for (size_t k = 0; names[k] && !strcmp(synonyms[i].theirs, theirs); k++)
            if (!strcmp(names[k], synonyms[i].ours))
                return names[k];
    return NULL;
}

/* One letter off a word that others use: "fp16x". */
static const char *translate_nearly(const char *theirs, const char *const *names)
{
    const char *found = NULL;
    for (size_t i = 0; !found && i < sizeof synonyms / sizeof *synonyms; i++)
        if (strlen(synonyms[i].theirs) > 3 && distance(theirs, synonyms[i].theirs) == 1)
            found = translate(synonyms[i].theirs, names);
    return found;
}

const char *hwnas_nearest(const char *wrong, const char *const *names)
{
    const char *meant = translate(wrong, names);
    if (meant)
        return meant;
    const char *best = NULL;
    const char *const *first = names;
    unsigned least = (unsigned)strlen(wrong) / 3 + 2; /* that far is another word */
    for (; *names; names++) {
        unsigned d = distance(wrong, *names);
        if (d < least && 2 * (size_t)d <= strlen(*names)) {
            least = d;
            best = *names;
        }
    }
    return best ? best : translate_nearly(wrong, first);
}

hwnas_status hwnas_text_check(const char *what, const char *text)
{
    json_t *json = json_string(text);
    const bool is_good = json != NULL;
    json_decref(json);
    return is_good ? HWNAS_OK : hwnas_fail(HWNAS_E_USAGE, NULL, "%s is not UTF-8", what);
}

/* Bytes of the character at `text`, or 0 when it is none that may be printed. */
static size_t printable(const unsigned char *text)
{
    if (*text < 0x80)
        return *text >= 0x20 && *text != 0x7F;
    size_t n = *text >= 0xF0 ? 4 : *text >= 0xE0 ? 3 : 2;
    if (*text < 0xC2 || *text > 0xF4 || (*text == 0xC2 && text[1] < 0xA0))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

void hwnas_clean(char *text, const char *kept)
{
    for (size_t n; *text; text += n) {
        n = strchr(kept, *text) ? 1 : printable((const unsigned char *)text);
        if (n == 0) {
            *text = (unsigned char)*text < 0x80 ? ' ' : '?';
            n = 1;
        }
    }
}
