/* str.h: a growing string, and the few questions asked of plain ones. */
#ifndef HWNAS_BASE_STR_H
#define HWNAS_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* `s` is NUL-terminated once anything was added, NULL before; release with hwnas_str_done(). */
typedef struct hwnas_str {
    char *s;
    size_t n, capacity;
} hwnas_str;

void hwnas_str_add(hwnas_str *str, const char *text);
void hwnas_str_addn(hwnas_str *str, const char *text, size_t n);
void hwnas_str_addf(hwnas_str *str, const char *format, ...) HWNAS_PRINTF(2, 3);
/* A word of a command: in single quotes where a shell would see more than a word (POSIX, Shell
 * Command Language, 2.2.2). */
void hwnas_str_add_word(hwnas_str *str, const char *word);
void hwnas_str_done(hwnas_str *str);

bool hwnas_starts_with(const char *text, const char *prefix);
bool hwnas_ends_with(const char *text, const char *suffix);

/* HWNAS_E_USAGE unless the text is UTF-8, as JSON has to be; `what` begins the message. */
HWNAS_CHECKED hwnas_status hwnas_text_check(const char *what, const char *text);

#endif
