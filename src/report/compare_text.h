/* compare_text.h: a comparison for people, for spreadsheets and for programs. */
#ifndef HWNAS_REPORT_COMPARE_TEXT_H
#define HWNAS_REPORT_COMPARE_TEXT_H

#include <jansson.h>

#include "base/str.h"
#include "profile/compare.h"
#include "report/grid.h"

/* Each device once, as a table: what it is, where its figures and its price come from. */
void hwnas_comparison_devices(hwnas_str *out, const hwnas_comparison *comparison);
/* How a row of either table begins: a mark of winner and runner-up, device, batch, threads. */
void hwnas_choice_begin_row(hwnas_grid *grid, const hwnas_answer *answer,
                            const hwnas_device_choice *choice);
/* That of training steps; hwnas_comparison_text() is of either. */
void hwnas_training_comparison_text(hwnas_str *out, const hwnas_comparison *comparison);
void hwnas_comparison_text(hwnas_str *out, const hwnas_comparison *comparison);
/* The table of one network, and what follows from it. */
void hwnas_training_comparison_fill(hwnas_grid *grid, const hwnas_comparison *comparison,
                                    const hwnas_answer *answer);
void hwnas_training_comparison_verdict(hwnas_str *out, const hwnas_comparison *comparison,
                                       const hwnas_answer *answer);
/* Of either: a table for each network, and its verdict. */
void hwnas_comparison_markdown(hwnas_str *out, const hwnas_comparison *comparison);
void hwnas_comparison_csv(hwnas_str *out, const hwnas_comparison *comparison);
json_t *hwnas_comparison_json(const hwnas_comparison *comparison); /* a new reference */

#endif
