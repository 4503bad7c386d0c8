/* space_text.h: what there is in a space, for people and for programs: text and JSON. */
#ifndef HWNAS_REPORT_SPACE_TEXT_H
#define HWNAS_REPORT_SPACE_TEXT_H

#include "report/rendering.h"
#include "space/space.h"

/* Its choices and settings. */
void hwnas_space_tell_choices(hwnas_rendering *out, const hwnas_space *space);
/* That it is right, and how large. */
void hwnas_space_tell_size(hwnas_rendering *out, const hwnas_space *space);
/* How many encodings it has, and how many networks: builds each where they are few. */
HWNAS_CHECKED hwnas_status hwnas_space_tell_count(hwnas_rendering *out, const hwnas_space *space);
/* Random networks. */
HWNAS_CHECKED hwnas_status hwnas_space_tell_sample(hwnas_rendering *out, const hwnas_space *space,
                                                   size_t n, uint64_t seed);

#endif
