/* conditions.h: settings and limits of the machine that decide how fast it may be: the frequency
 * governor, turbo, heat, and the CPU quota of the control group. They are recorded beside what is
 * measured, and tell why a measurement was disturbed. */
#ifndef HWNAS_MEASURE_CONDITIONS_H
#define HWNAS_MEASURE_CONDITIONS_H

#include <jansson.h>

typedef struct hwnas_conditions {
    char governor[32];  /* of the cores; "mixed": they differ; "": not known */
    int turbo;          /* 1: allowed, 0: not, -1: not known */
    double celsius;     /* the hottest sensor of the processor; NaN: there is none */
    double quota;       /* cores' worth of time that this control group may use; NaN: no limit */
    double quota_stops; /* periods in which it had used that up, so far; NaN: nobody counts */
    double heat_stops;  /* times that the processor slowed down for heat, so far; NaN: the same */
} hwnas_conditions;

/* Where the system's `sys` and `proc` are: $HWNAS_SYSTEM, or "". Borrowed. */
const char *hwnas_conditions_root(void);
/* Reads what there is under a root, of the cores that this process may use. Takes some 50 us. */
hwnas_conditions hwnas_conditions_read(const char *root);
/* Calls `visit` with the folder of each control group that this process is in, from its own up to
 * the root; of version 1 those of the controller: "cpu", "memory". */
void hwnas_conditions_visit_groups(const char *root, const char *controller,
                                   void (*visit)(void *context, const char *folder), void *context);
/* `governor`, `turbo`, `celsius`, `quota_cores`, `quota_stops`, `heat_stops`; null: not known. */
json_t *hwnas_conditions_json(const hwnas_conditions *conditions);

/* How often it came to a stop between two readings; 0 where nobody counts. */
double hwnas_conditions_count(double before, double after);

#endif
