/* picture.h: pictures of a study in SVG, for papers and READMEs. */
#ifndef HWNAS_REPORT_PICTURE_H
#define HWNAS_REPORT_PICTURE_H

#include "base/str.h"
#include "study/summary.h"

/* A kind of picture: a row of hwnas_pictures. */
typedef struct hwnas_picture_kind {
    const char *name; /* NULL behind the last */
    hwnas_status (*draw)(hwnas_str *out, const hwnas_summary *summary);
} hwnas_picture_kind;
extern const hwnas_picture_kind hwnas_pictures[];

/* One SVG document. HWNAS_E_USAGE: there is no picture of that name; HWNAS_E_INFEASIBLE: the study
 * has nothing to show in it yet. */
HWNAS_CHECKED hwnas_status hwnas_picture_draw(hwnas_str *out, const hwnas_summary *summary,
                                              const char *name);

/* ---- Axes, which a kind draws between ---- */

typedef struct hwnas_axes {
    hwnas_str *out;
    double x_low, x_high, y_low, y_high;
    bool is_log_x, is_log_y; /* then the ends are more than 0 */
} hwnas_axes;

/* Between two ticks: 1, 2 or 5 times a power of ten, so that there are about `n` of them. */
double hwnas_axes_step(double low, double high, int n);
/* Draws equal ends apart; those of logarithms (more than 0), where they are near each other. */
void hwnas_axes_widen(double *low, double *high, bool is_log);

/* Text as XML has it. */
void hwnas_svg_text(hwnas_str *out, const char *text);

/* Begins a document with two axes, ticks, their names and a legend; what follows is cut off at
 * their ends. Equal ends of a range are drawn apart. */
void hwnas_axes_begin(hwnas_axes *axes, const char *title, const char *x_name, const char *y_name,
                      const char *legend);
double hwnas_axes_x(const hwnas_axes *axes, double value);
double hwnas_axes_y(const hwnas_axes *axes, double value);
/* A straight line between two points of the picture; `style` is a class. */
void hwnas_axes_line(const hwnas_axes *axes, const char *style, double x1, double y1, double x2,
                     double y2);
void hwnas_axes_text(const hwnas_axes *axes, const char *style, double x, double y,
                     const char *text);
void hwnas_axes_end(hwnas_axes *axes);

#endif
