/* png.h: a picture in SVG as PNG, by librsvg and cairo where the machine has them. */
#ifndef HWNAS_REPORT_PNG_H
#define HWNAS_REPORT_PNG_H

#include "base/str.h"

/* Twice as large as the SVG says, on white. HWNAS_E_UNSUPPORTED: a library is missing. */
HWNAS_CHECKED hwnas_status hwnas_png_draw(hwnas_str *out, const char *svg);

#endif
