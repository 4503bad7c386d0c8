/* page.h: what was found, as a page for a browser: one file that has all it needs. */
#ifndef HWNAS_PUBLIC_PAGE_H
#define HWNAS_PUBLIC_PAGE_H

#include <hwnas/study.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All that a study has to show: JSON ("hwnas.page"), and the page that draws it. A note says why
 * the page lacks reasons, as the predictor of the job has gone away. Runs nothing; milliseconds to
 * seconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_page_of_study(hwnas_report **out, hwnas_study *study);
/* The same of a file: a study, or what `hwnas profile --save` or `hwnas compare --json` wrote, as
 * which the page says what to choose, and has "sweep" and "roofline" as pictures. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_page_open(hwnas_report **out, const char *path);
/* Adds a file to the page of a study: another study, which it is set beside (one at most), or a
 * profile or comparison with layers, which are shown of the networks that it measured.
 * HWNAS_E_USAGE: this page takes no other; HWNAS_E_INFEASIBLE: no row has layers. On failure the
 * page is as it was. One thread at a time may work on a page. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_page_add(hwnas_report *page, const char *path);
/* The page as HTML, and the same into a file, which appears whole or not at all.
 * HWNAS_E_UNSUPPORTED: there is none of this report; HWNAS_E_INPUT: a name in it is not UTF-8. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_page_html(char **out, const hwnas_report *page);
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_page_save(const hwnas_report *page, const char *path);
/* The data of the page in short form, as the page has them; and a page without data, which gets
 * them from `source`, a path on the server that it came from, every other second: 204 is "not yet",
 * 304 "the same as of this ETag", and the header Hwnas-Study one of "running", "ended", "stopped".
 */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_page_data(char **out, const hwnas_report *page);
HWNAS_API char *hwnas_page_following(const char *source);
/* A picture of a study as SVG, and the same into a file: "front", or "curve" (the best network so
 * far, over the trials); of a recorded file "sweep" (latency and throughput of its rows), or
 * "roofline" (layers of the first row that has them). HWNAS_E_USAGE: there is none of that name;
 * HWNAS_E_INFEASIBLE: there is nothing to show in it yet. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_page_picture(char **out, const hwnas_report *page,
                                                        const char *picture);
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_page_save_picture(const hwnas_report *page,
                                                             const char *picture, const char *path);
/* As PNG, of 1440 x 880 pixels. HWNAS_E_UNSUPPORTED: librsvg, which is opened for it, is missing.
 */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_page_save_png(const hwnas_report *page,
                                                         const char *picture, const char *path);
/* The trials in a file, which appears whole or not at all: "csv", as of hwnas_study_trials(), or
 * "markdown", the front and then all of them; of a recorded file its rows. HWNAS_E_USAGE: another
 * name. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_page_save_tables(const hwnas_report *page,
                                                            const char *format, const char *path);
/* The library was built with uPlot, which draws charts; else a page says where they are missing. */
HWNAS_API bool hwnas_page_has_charts(void);

#ifdef __cplusplus
}
#endif
#endif
