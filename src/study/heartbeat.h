/* heartbeat.h: renews a worker's leases as long as its process lives. */
#ifndef HWNAS_STUDY_HEARTBEAT_H
#define HWNAS_STUDY_HEARTBEAT_H

#include "base/status.h"

typedef struct hwnas_heartbeat hwnas_heartbeat;

/* A thread with a connection of its own, which it opens again whenever it is lost. */
hwnas_heartbeat *hwnas_heartbeat_start(const char *study, const char *worker);
void hwnas_heartbeat_stop(hwnas_heartbeat *heartbeat);

#endif
