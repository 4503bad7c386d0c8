/* spelled_options.h: options in the spelling of a predictor: "KIND:...#KEY=VALUE,KEY=VALUE". */
#ifndef HWNAS_PREDICT_SPELLED_OPTIONS_H
#define HWNAS_PREDICT_SPELLED_OPTIONS_H

#include "base/status.h"

enum { HWNAS_MAX_SPELLED_OPTIONS = 15 };

/* A row of a kind's table; the table ends with a row without a name. */
typedef struct hwnas_spelled_option {
    const char *name;
    /* Takes the value into `to`, or refuses it: HWNAS_E_INPUT. `name` is the row's. */
    hwnas_status (*set)(void *to, const char *name, const char *value);
} hwnas_spelled_option;

/* Takes the options of `text`, which is cut, into `to` one after another. HWNAS_E_INPUT: one is
 * none of the table or has no value, of which a message tells: `whose` option it is ("a command"),
 * and as a hint the names of the table or `example`, a spelling with an option. */
HWNAS_CHECKED hwnas_status hwnas_spelled_options_set(void *to, char *text,
                                                     const hwnas_spelled_option *table,
                                                     const char *whose, const char *example);

#endif
