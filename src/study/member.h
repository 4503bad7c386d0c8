/* member.h: a trial of a study as a candidate again: its architecture and graph. */
#ifndef HWNAS_STUDY_MEMBER_H
#define HWNAS_STUDY_MEMBER_H

#include "graph/graph.h"
#include "study/evaluate.h"

typedef struct hwnas_member {
    hwnas_arch *arch;
    hwnas_graph *graph;
    json_t *mixes;
    hwnas_candidate candidate; /* borrows all of it */
} hwnas_member;

/* `space` is without settings, `walked` with. To be closed even after a failure. */
HWNAS_CHECKED hwnas_status hwnas_member_open(hwnas_member *out, const hwnas_trial *trial,
                                             const hwnas_job *job, const hwnas_space *space,
                                             const hwnas_space *walked);
void hwnas_member_close(hwnas_member *member);

#endif
