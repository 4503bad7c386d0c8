#include "study/patience.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/log.h"

#define VARIABLE "HWNAS_WORKER_PATIENCE"

/* Seconds. */
enum { USUAL = 3600, MOST = 1000000000 };

hwnas_status hwnas_patience_read(hwnas_patience *out)
{
    const char *text = getenv(VARIABLE);
    unsigned long long seconds = USUAL;
    char *end = "";
    if (text && *text)
        seconds = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
    if (*end || seconds < 1 || seconds > MOST)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                     "$" VARIABLE
                                     " is '%s', not a whole number of seconds from 1 to %d",
                                     text, MOST),
                          "write 3600 for an hour");
    *out = (hwnas_patience){.seconds = (double)seconds};
    return HWNAS_OK;
}

void hwnas_patience_renew(hwnas_patience *patience)
{
    patience->silence = 0;
    patience->has_warned = false;
}

hwnas_status hwnas_patience_spend(hwnas_patience *p, double seconds, const char *tasks,
                                  const char *study)
{
    const hwnas_place place = {.file = study};
    p->silence += seconds;
    if (p->silence > p->seconds)
        return hwnas_hint(hwnas_fail(HWNAS_E_TIMEOUT, &place,
                                     "no worker that does %s was here for %g s", tasks, p->seconds),
                          "start one with --only, and this one again: what was done is in the "
                          "study; $" VARIABLE " says how many seconds it waits");
    if (p->silence > p->seconds / 60 && !p->has_warned) {
        p->has_warned = true;
        hwnas_log(HWNAS_LOG_NOTE, "no worker that does %s is here; waiting for one", tasks);
    }
    return HWNAS_OK;
}
