#include "measure/peak.h"

#include <stdio.h>

bool hwnas_peak_begin(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    bool is_done = f && fputs("5", f) >= 0; /* the greatest resident size becomes today's */
    if (f)
        is_done = !fclose(f) && is_done;
    return is_done;
}

size_t hwnas_peak_bytes(void)
{
    char line[256];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lu kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return (size_t)kib << 10;
}
