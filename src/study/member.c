#include "study/member.h"

#include "graph/elaborate.h"

hwnas_status hwnas_member_open(hwnas_member *out, const hwnas_trial *trial, const hwnas_job *job,
                               const hwnas_space *space, const hwnas_space *walked)
{
    hwnas_arch *arch;
    *out = (hwnas_member){0};
    TRY(hwnas_arch_parse(&arch, walked, trial->code));
    out->arch = hwnas_settings_strip(arch, space);
    out->candidate.settings = hwnas_settings_of(arch, job);
    hwnas_arch_free(arch);
    TRY(hwnas_graph_build(&out->graph, out->arch, out->candidate.settings.batch));
    out->candidate.arch = out->arch;
    out->candidate.graph = out->graph;
    out->mixes = out->candidate.mixes = hwnas_mixes_of(trial);
    return HWNAS_OK;
}

void hwnas_member_close(hwnas_member *member)
{
    hwnas_arch_free(member->arch);
    hwnas_graph_free(member->graph);
    json_decref(member->mixes);
}
