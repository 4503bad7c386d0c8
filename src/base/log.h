/* log.h: what the library has to tell while it works, to whoever has asked for it
 * (hwnas_set_log()). */
#ifndef HWNAS_BASE_LOG_H
#define HWNAS_BASE_LOG_H

#include "base/status.h"

/* One line without a full stop. The recorded failure stays as it is. */
void hwnas_log(hwnas_log_level level, const char *format, ...) HWNAS_PRINTF(2, 3);

#endif
