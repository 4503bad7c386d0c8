/* axes.c: two axes in SVG (picture.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/picture.h"

enum { WIDTH = 720, HEIGHT = 440, LEFT = 72, RIGHT = 20, TOP = 36, BOTTOM = 56, TICKS = 10 };

/* Colours are those of the page (page/page.css). */
static const char *const style =
    "text{font:13px system-ui,'DejaVu Sans',sans-serif;fill:#1c2430}.soft,.tick{fill:#5b6675}"
    ".tick{font-size:12px}.legend{text-anchor:end}.title{font-weight:600;font-size:15px}line{"
    "stroke:#dde1e7}"
    ".frame{fill:none;stroke:#5b6675}.front{fill:#1f5fbf;stroke:#1f5fbf}.path{fill:none;"
    "stroke:#1f5fbf;stroke-width:1.6}.thin{fill:none;stroke:#1f5fbf;opacity:.4}.whisker{stroke:"
    "#1f5fbf;opacity:.6}.dominated{fill:#8a94a3;opacity:.55}.missed{stroke:#c2640c;opacity:.7}"
    ".estimated{fill:none;stroke:#8457b8;opacity:.6}.limit{stroke:#b3261e;stroke-dasharray:6 "
    "4}.winner{fill:none;stroke:#b3261e;stroke-width:2}.word{fill:#b3261e;font-weight:600;"
    "text-anchor:end}circle.compute,circle.cache,circle.memory,circle.unknown{fill-opacity:.6}"
    ".compute{fill:#1f5fbf}.memory{fill:#c2640c}.cache{fill:#8457b8}.unknown{fill:#8a94a3}"
    ".roof{stroke:#5b6675;stroke-width:1.6}.roof.cache{stroke-dasharray:4 4}"
    "@media(prefers-color-scheme:dark){text{fill:#e6eaf0}.soft,.tick{fill:#9aa6b5}"
    "line{stroke:#303947}.frame{stroke:#9aa6b5}.front{fill:#7fb2ff;stroke:#7fb2ff}.path,.thin,"
    ".whisker{stroke:#7fb2ff}.compute{fill:#7fb2ff}.memory{fill:#f0a04b}.cache{fill:#bb96ea}"
    ".roof{stroke:#9aa6b5}.limit,.winner{stroke:#ff8a80}.word{fill:#ff8a80}}";

void hwnas_svg_text(hwnas_str *out, const char *text)
{
    static const struct {
        const char *text, *as;
    } rows[] = {
        {"&", "&amp;"},        {"<", "&lt;"},         {">", "&gt;"},
        {"\xef\xbf\xbe", " "}, {"\xef\xbf\xbf", " "}, /* no characters of XML */
    };
    for (const char *at = text; *at;) {
        size_t i = 0;
        while (i < sizeof rows / sizeof *rows && !hwnas_starts_with(at, rows[i].text))
            i++;
        if (i < sizeof rows / sizeof *rows) {
            hwnas_str_add(out, rows[i].as);
            at += strlen(rows[i].text);
        } else {
            hwnas_str_addn(out, (unsigned char)*at < ' ' ? " " : at, 1);
            at++;
        }
    }
}

static double share(double value, double low, double high, bool is_log)
{
    return is_log ? log(value / low) / log(high / low) : (value - low) / (high - low);
}

double hwnas_axes_x(const hwnas_axes *a, double value)
{
    return LEFT + share(value, a->x_low, a->x_high, a->is_log_x) * (WIDTH - LEFT - RIGHT);
}

double hwnas_axes_y(const hwnas_axes *a, double value)
{
    return HEIGHT - BOTTOM -
           share(value, a->y_low, a->y_high, a->is_log_y) * (HEIGHT - TOP - BOTTOM);
}

void hwnas_axes_line(const hwnas_axes *a, const char *line_style, double x1, double y1, double x2,
                     double y2)
{
    hwnas_str_addf(a->out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                   line_style, x1, y1, x2, y2);
}

void hwnas_axes_text(const hwnas_axes *a, const char *text_style, double x, double y,
                     const char *text)
{
    hwnas_str_addf(a->out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", text_style, x, y);
    hwnas_svg_text(a->out, text);
    hwnas_str_add(a->out, "</text>\n");
}

double hwnas_axes_step(double low, double high, int n)
{
    const double rough = (high - low) / (n < 1 ? 1 : n), power = pow(10, floor(log10(rough)));
    const double factor = rough / power;
    return power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
}

void hwnas_axes_widen(double *low, double *high, bool is_log)
{
    if (is_log && *high < 1.5 * *low) {
        *low /= 1.25;
        *high *= 1.25;
    }
    const double room = *high > *low ? 0 : fabs(*high) > 0 ? fabs(*high) / 10 : 1;
    *low -= room;
    *high += room;
}

static void add_tick(const hwnas_axes *a, bool is_x, double value)
{
    const double at = is_x ? hwnas_axes_x(a, value) : hwnas_axes_y(a, value);
    char *word = hwnas_printf("%.10g", value + 0.0) /* no -0 */;
    if (is_x)
        hwnas_axes_line(a, "grid", at, TOP, at, HEIGHT - BOTTOM);
    else
        hwnas_axes_line(a, "grid", LEFT, at, WIDTH - RIGHT, at);
    hwnas_str_addf(a->out,
                   "<text class=\"tick\" text-anchor=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                   is_x ? "middle" : "end", is_x ? at : LEFT - 8.0,
                   is_x ? HEIGHT - BOTTOM + 18.0 : at + 4, word);
    free(word);
}

/* 1, 2 and 5 times each power of ten, of many decades the powers alone; returns how many lie
 * inside. `a` NULL: they are counted. */
static int add_log_ticks(const hwnas_axes *a, bool is_x, double low, double high)
{
    const int step = high > 2000 * low ? 3 : 1;
    int n = 0;
    for (int k = 3 * (int)floor(log10(low)); k <= 3 * (int)ceil(log10(high)); k += step) {
        static const double factors[] = {1, 2, 5};
        const double value = factors[(k % 3 + 3) % 3] * pow(10, floor(k / 3.0));
        if (value < low || value > high)
            continue;
        n++;
        if (a)
            add_tick(a, is_x, value);
    }
    return n;
}

static void add_ticks(const hwnas_axes *a, bool is_x)
{
    const double low = is_x ? a->x_low : a->y_low, high = is_x ? a->x_high : a->y_high;
    /* Between 2.6 and 4 there is none, and one alone says nothing of the scale. */
    if ((is_x ? a->is_log_x : a->is_log_y) && add_log_ticks(NULL, is_x, low, high) > 1) {
        add_log_ticks(a, is_x, low, high);
        return;
    }
    const double step = hwnas_axes_step(low, high, TICKS);
    for (double k = ceil(low / step); k * step <= high; k++)
        add_tick(a, is_x, k * step);
}

void hwnas_axes_begin(hwnas_axes *a, const char *title, const char *x_name, const char *y_name,
                      const char *legend)
{
    hwnas_axes_widen(&a->x_low, &a->x_high, a->is_log_x);
    hwnas_axes_widen(&a->y_low, &a->y_high, a->is_log_y);
    hwnas_str_addf(a->out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
                   "height=\"%d\" role=\"img\">\n<title>",
                   WIDTH, HEIGHT, WIDTH, HEIGHT);
    hwnas_svg_text(a->out, title);
    hwnas_str_addf(a->out, "</title>\n<style>%s</style>\n", style);
    hwnas_axes_text(a, "title", LEFT, 22, title);
    hwnas_axes_text(a, "soft legend", WIDTH - RIGHT, 22, legend);
    add_ticks(a, true);
    add_ticks(a, false);
    hwnas_str_addf(a->out, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n",
                   LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    hwnas_str_addf(a->out, "<text text-anchor=\"middle\" x=\"%d\" y=\"%d\">",
                   (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14);
    hwnas_svg_text(a->out, x_name);
    hwnas_str_addf(a->out,
                   "</text>\n<text text-anchor=\"middle\" transform=\"translate(18 %d) "
                   "rotate(-90)\">",
                   (TOP + HEIGHT - BOTTOM) / 2);
    hwnas_svg_text(a->out, y_name);
    hwnas_str_addf(a->out,
                   "</text>\n<clipPath id=\"inside\"><rect x=\"%d\" y=\"%d\" width=\"%d\" "
                   "height=\"%d\"/></clipPath>\n<g clip-path=\"url(#inside)\">\n",
                   LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
}

void hwnas_axes_end(hwnas_axes *a)
{
    hwnas_str_add(a->out, "</g>\n</svg>\n");
}
