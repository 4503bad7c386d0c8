/* roofline_cache.h: rooflines that were measured earlier, one file for each. */
#ifndef HWNAS_MEASURE_ROOFLINE_CACHE_H
#define HWNAS_MEASURE_ROOFLINE_CACHE_H

#include <jansson.h>

#include "measure/roofline.h"

/* All that a roofline is a fact about: device, processor with its microcode, library, threads,
 * precision. Yours to free(). */
char *hwnas_roofline_key(const char *device, const hwnas_device_info *info,
                         hwnas_precision precision);
/* false: there is none, its file is cut short, of another version or of another machine; or the
 * machine was disturbed, and may be so no longer. */
bool hwnas_roofline_lookup(hwnas_roofline *out, const char *key);
/* What cannot be written is measured again next time. */
void hwnas_roofline_keep(const hwnas_roofline *roofline, const char *key);

#endif
