#include "store/names.h"

#include <string.h>

#include <jansson.h>

#include "base/intern.h"

enum { LONGEST = 63 };

bool hwnas_is_text(const char *text)
{
    const char *at = text;
    while (at && *at && !(*at & 0x80))
        at++;
    if (!at || !*at) /* it is ASCII */
        return at != NULL;
    json_t *json = json_string(text);
    json_decref(json);
    return json != NULL;
}

const char *hwnas_names_read(hwnas_names *known, hwnas_statement *row, int column)
{
    const char *text = hwnas_row_text(row, column);
    for (int i = 0; text && i < known->n; i++)
        if (!strcmp(known->names[i], text))
            return known->names[i];
    if (!hwnas_is_text(text) || strlen(text) > LONGEST)
        return NULL;
    text = hwnas_intern(text);
    if (known->n < (int)(sizeof known->names / sizeof *known->names))
        known->names[known->n++] = text;
    return text;
}
