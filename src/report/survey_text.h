/* survey_text.h: what this machine can run, for people and for programs: text and JSON. */
#ifndef HWNAS_REPORT_SURVEY_TEXT_H
#define HWNAS_REPORT_SURVEY_TEXT_H

#include "measure/survey.h"
#include "report/rendering.h"

void hwnas_survey_add(hwnas_rendering *out, const hwnas_device_survey *survey);
/* Behind the devices: whether measurements may take the cores from other programs, and what would
 * allow it. */
void hwnas_survey_add_priority(hwnas_rendering *out);
/* The same of one device, as its runner told; nothing where that did not. */
void hwnas_survey_add_its_priority(hwnas_rendering *out, const hwnas_device_survey *survey);

#endif
