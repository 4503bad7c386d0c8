/* hello.h: what a runner says of itself when it is opened (hwnas_hello, wire.h). */
#ifndef HWNAS_MEASURE_HELLO_H
#define HWNAS_MEASURE_HELLO_H

#include "device/device.h"
#include "measure/wire.h"

/* HWNAS_E_UNSUPPORTED: whoever sent the request speaks another version of the protocol. */
HWNAS_CHECKED hwnas_status hwnas_hello_check(const json_t *request);
/* Of this process, with the device open. For the thread that will measure: it asks what priority
 * that may have. */
void hwnas_hello_make(hwnas_hello *out, const hwnas_device *device);

#endif
