/* phases.h: the phases of a space that a job judges by, and the networks of a candidate in them. */
#ifndef HWNAS_STUDY_PHASES_H
#define HWNAS_STUDY_PHASES_H

#include "graph/graph.h"
#include "space/arch.h"
#include "study/job.h"

typedef struct hwnas_job_phase {
    char name[HWNAS_PHASE_NAME];
    char *space_name; /* "gpt:phase=decode", as the program takes it */
    hwnas_space *space;
} hwnas_job_phase;

/* Zero: none. */
typedef struct hwnas_job_phases {
    int n;
    hwnas_job_phase rows[HWNAS_MOST_PHASES];
} hwnas_job_phases;

/* The names of the phases that goals of the job are of, each once; returns how many. Borrowed. */
int hwnas_phases_named(const char *out[HWNAS_MOST_PHASES], const hwnas_job *job);

/* Loads the space in each phase that a goal of the job names. HWNAS_E_INPUT: it has no such phase,
 * or other choices in it. `out` is to be closed then, too. */
HWNAS_CHECKED hwnas_status hwnas_phases_open(hwnas_job_phases *out, const hwnas_job *job,
                                             const hwnas_space *space);
void hwnas_phases_close(hwnas_job_phases *phases); /* accepts none */

/* NULL: it is not among them. */
const hwnas_job_phase *hwnas_phases_find(const hwnas_job_phases *phases, const char *name);

/* The same architecture in a phase, and its network there; the architecture is yours to free. */
hwnas_arch *hwnas_phase_arch(const hwnas_job_phase *phase, const hwnas_arch *arch);
HWNAS_CHECKED hwnas_status hwnas_phase_build(hwnas_graph **out, const hwnas_job_phase *phase,
                                             const hwnas_arch *arch, int batch);

/* Whether the network is another one in the phase than as the settings of the space say. */
HWNAS_CHECKED hwnas_status hwnas_phase_is_other(bool *out, const hwnas_job_phase *phase,
                                                const hwnas_arch *arch);
/* The first phase in which it is the same one; NULL: none is. */
HWNAS_CHECKED hwnas_status hwnas_phases_find_plain(const hwnas_job_phase **out,
                                                   const hwnas_job_phases *phases,
                                                   const hwnas_arch *arch);

/* What tells networks apart: the digest of `graph`, and with phases that of the network in each. */
HWNAS_CHECKED hwnas_status hwnas_phases_digest(char out[33], const hwnas_job_phases *phases,
                                               const hwnas_graph *graph, const hwnas_arch *arch,
                                               int batch);

#endif
