/* lines.h: padding, and sums of all values so far, as steps of loops of ours: both go along one
 * dimension, line by line. */
#ifndef HWNAS_DEVICE_ONEDNN_LINES_H
#define HWNAS_DEVICE_ONEDNN_LINES_H

#include "device/onednn/onednn_steps.h"

extern const hwnas_onednn_kind hwnas_onednn_pads, hwnas_onednn_cum_sums;

#endif
