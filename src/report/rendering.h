/* rendering.h: something found, written in several formats at one go. */
#ifndef HWNAS_REPORT_RENDERING_H
#define HWNAS_REPORT_RENDERING_H

#include <jansson.h>

#include "base/str.h"

/* Zeroed at first; release with hwnas_rendering_done(). What stays empty has no such format. */
typedef struct hwnas_rendering {
    hwnas_str text, csv;
    json_t *json;
} hwnas_rendering;

void hwnas_rendering_done(hwnas_rendering *told);

#endif
