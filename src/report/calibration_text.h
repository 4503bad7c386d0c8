/* calibration_text.h: what a calibration has come to, for people and for programs. */
#ifndef HWNAS_REPORT_CALIBRATION_TEXT_H
#define HWNAS_REPORT_CALIBRATION_TEXT_H

#include "latency/calibrate.h"
#include "report/rendering.h"

void hwnas_calibration_tell(hwnas_rendering *out, const hwnas_calibration *calibration);
/* How far it is, in a line; yours to free(). */
char *hwnas_calibration_words(const hwnas_calibration *calibration);

#endif
