/* parts.h: what the example program adds to hwnas. */
#ifndef PARTS_H
#define PARTS_H

#include <hwnas/device.h>
#include <hwnas/predictor.h>
#include <hwnas/strategy.h>

extern const hwnas_device_ops naive_device;
extern const hwnas_strategy_ops climb_strategy;
extern const hwnas_predictor_ops size_predictor;

#endif
