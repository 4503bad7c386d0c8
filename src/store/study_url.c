#include "store/study_url.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { MAX_NAME = 59 }; /* 63 bytes has a name in PostgreSQL, and a draft "-new" at its end */

static const char *const schemes[] = {"postgresql://", "postgres://"};
static const char default_name[] = "hwnas";

bool hwnas_study_is_url(const char *path)
{
    return hwnas_starts_with(path, schemes[0]) || hwnas_starts_with(path, schemes[1]);
}

/* "%77" is "w" to libpq. In place. */
static void decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        const char hex[] = {from[0] == '%' ? from[1] : '\0', '\0', '\0'};
        if (*hex && isxdigit((unsigned char)from[1]) && isxdigit((unsigned char)from[2])) {
            const char digits[] = {from[1], from[2], '\0'};
            *to++ = (char)strtol(digits, NULL, 16);
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

hwnas_status hwnas_study_url_check(const char *path)
{
    if (!hwnas_study_is_url(path))
        return HWNAS_OK;
    char *text = hwnas_strdup(strstr(path, "://") + 3);
    char *query = strchr(text, '?');
    if (query)
        *query++ = '\0';
    if (query)
        decode(query);
    char *at = strrchr(text, '@');
    if (at)
        *at = '\0';
    /* Also of "sslpassword". */
    const bool is_there = (at && strchr(text, ':')) || (query && strstr(query, "password="));
    free(text);
    if (!is_there)
        return HWNAS_OK;
    return hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, NULL, "a password stands in the address of the study"),
        "take it out, as all who list processes can read it, and put it into ~/.pgpass, a service "
        "file or PGPASSWORD");
}

static hwnas_status check_name(const char *name, const char *path)
{
    const hwnas_place place = {.file = path};
    const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-");
    if (*name && !name[n] && n <= MAX_NAME && !hwnas_starts_with(name, "pg_"))
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "no study can have the name '%.80s'", name),
                      "a name has up to %d letters, digits, '.', '_' and '-', and does not begin "
                      "with pg_",
                      MAX_NAME);
}

hwnas_status hwnas_study_url_split(char **conninfo, char **name, const char *path)
{
    static const char key[] = "study=";
    TRY(hwnas_study_url_check(path));
    char *copy = hwnas_strdup(path), *found = NULL;
    char *rest = strchr(copy, '?'), *part;
    hwnas_str kept = {0};
    if (rest)
        *rest++ = '\0';
    hwnas_str_add(&kept, copy);
    for (const char *mark = "?"; (part = strsep(&rest, "&"));) {
        if (hwnas_starts_with(part, key)) {
            free(found);
            found = hwnas_strdup(part + strlen(key));
            decode(found);
        } else if (*part) {
            hwnas_str_addf(&kept, "%s%s", mark, part);
            mark = "&";
        }
    }
    free(copy);
    if (!found)
        found = hwnas_strdup(default_name);
    const hwnas_status status = check_name(found, path);
    if (status == HWNAS_OK) {
        *conninfo = kept.s;
        *name = found;
    } else {
        hwnas_str_done(&kept);
        free(found);
    }
    return status;
}
