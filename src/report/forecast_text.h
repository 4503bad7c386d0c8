/* forecast_text.h: what a device would make of a network, for people and for programs. */
#ifndef HWNAS_REPORT_FORECAST_TEXT_H
#define HWNAS_REPORT_FORECAST_TEXT_H

#include <jansson.h>

#include "base/str.h"
#include "profile/forecast.h"

void hwnas_forecast_text(hwnas_str *out, const hwnas_forecast *forecast);
json_t *hwnas_forecast_json(const hwnas_forecast *forecast); /* a new reference */

#endif
