/* transfer_text.h: what was carried over from other devices, for people and for programs. */
#ifndef HWNAS_REPORT_TRANSFER_TEXT_H
#define HWNAS_REPORT_TRANSFER_TEXT_H

#include "latency/transfer_table.h"
#include "report/rendering.h"

/* `path` is the file that was written; NULL: none. */
void hwnas_transfer_tell(hwnas_rendering *out, const hwnas_transfer_result *result,
                         const char *device, const char *path);

#endif
