/* layer_table.h: the layers of a profile's rows, for people and spreadsheets. */
#ifndef HWNAS_REPORT_LAYER_TABLE_H
#define HWNAS_REPORT_LAYER_TABLE_H

#include "base/str.h"
#include "profile/profile.h"

/* For each row that has layers a table of them, the slowest first, and what they sum up to. */
void hwnas_layers_text(hwnas_str *out, const hwnas_profile *profile);
void hwnas_layers_markdown(hwnas_str *out, const hwnas_profile *profile);
/* A row for each layer of each row, with the row's setting in front. */
void hwnas_layers_csv(hwnas_str *out, const hwnas_profile *profile);

#endif
