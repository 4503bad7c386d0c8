#include "measure/occupancy.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *hwnas_core_ticks_next(hwnas_core_ticks *out, const char *text)
{
    enum { IDLE = 3, IOWAIT, STEAL = 7, N_FIELDS };
    while (!strncmp(text, "cpu", 3)) {
        const char *line = text + 3;
        char *end;
        *out = (hwnas_core_ticks){.core = strtol(line, &end, 10)};
        const bool is_core = end > line && *line != ' '; /* the first line is the sum of all */
        for (int i = 0; i < N_FIELDS; i++) {
            const unsigned long long ticks = strtoull(end, &end, 10);
            if (i == STEAL)
                out->stolen = ticks;
            else if (i != IDLE && i != IOWAIT)
                out->busy += ticks;
        }
        end = strchr(end, '\n');
        text = end ? end + 1 : "";
        if (is_core)
            return text;
    }
    return NULL;
}

void hwnas_occupancy_look(hwnas_occupancy *o, const char *text, double hertz,
                          const hwnas_look *look)
{
    const double elapsed = look->now - o->last.now;
    hwnas_core_ticks t;
    while ((text = hwnas_core_ticks_next(&t, text))) {
        if (t.core < 0 || t.core >= HWNAS_MAX_CORES)
            continue;
        const double seconds = (double)(t.busy + t.stolen) / hertz;
        const double ours = (t.core == look->core ? look->own - o->last.own : 0) +
                            (look->other - o->last.other);
        if (o->last.now > 0 && elapsed > 0)
            o->others[t.core] =
                fmin(1, fmax(0, (seconds - o->seconds[t.core] - ours) / elapsed));
        o->seconds[t.core] = seconds;
    }
    o->last = *look;
}
