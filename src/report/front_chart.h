/* front_chart.h: a front in characters, for a terminal or a log. */
#ifndef HWNAS_REPORT_FRONT_CHART_H
#define HWNAS_REPORT_FRONT_CHART_H

#include "base/str.h"
#include "report/front_view.h"

/* The least that something can be seen in. */
enum { HWNAS_CHART_COLUMNS = 40, HWNAS_CHART_LINES = 10 };

/* Marks are in `height` lines below `top` others, from column `left` on; all else are words. */
typedef struct hwnas_front_chart {
    hwnas_str text;
    int top, left, height;
} hwnas_front_chart;

/* Draws into lines of at most so many columns (not below the least), with axes, limits, the
 * intervals of the front and a legend of what is there. False: there is nothing to draw. Release
 * the text. */
bool hwnas_front_chart_draw(hwnas_front_chart *out, const hwnas_front_view *view, int columns,
                            int lines);

/* The chart of a study, behind a line that says what it is; or why there is none. */
void hwnas_front_chart_text(hwnas_str *out, const hwnas_summary *summary, int columns);

#endif
