#include "predict/spelled_options.h"

#include <string.h>

#include "base/str.h"

static hwnas_status refuse(const char *key, const hwnas_spelled_option *table, const char *whose)
{
    const char *names[HWNAS_MAX_SPELLED_OPTIONS + 1] = {0};
    hwnas_str list = {0};
    for (size_t i = 0; table[i].name && i < HWNAS_MAX_SPELLED_OPTIONS; i++) {
        names[i] = table[i].name;
        hwnas_str_addf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = hwnas_nearest(key, names);
    const hwnas_status status =
        hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "%s has no option '%.40s'", whose, key),
                   near ? "did you mean '%s'?" : "the options are %s", near ? near : list.s);
    hwnas_str_done(&list);
    return status;
}

static hwnas_status set_one(void *to, const char *key, const char *value,
                            const hwnas_spelled_option *table, const char *whose)
{
    for (size_t i = 0; table[i].name; i++)
        if (!strcmp(table[i].name, key))
            return table[i].set(to, table[i].name, value);
    return refuse(key, table, whose);
}

hwnas_status hwnas_spelled_options_set(void *to, char *text, const hwnas_spelled_option *table,
                                       const char *whose, const char *example)
{
    for (char *item; (item = strsep(&text, ","));) {
        char *equals = strchr(item, '=');
        if (!equals)
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                         "'%.60s' after '#' is not an option of %s", item, whose),
                              "write %s", example);
        *equals = '\0';
        TRY(set_one(to, item, equals + 1, table, whose));
    }
    return HWNAS_OK;
}
