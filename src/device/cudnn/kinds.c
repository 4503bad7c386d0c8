/* kinds.c: the kinds of steps that have no file of their own. */
#include "device/cudnn/cudnn_steps.h"

static hwnas_status nothing_to_compile(hwnas_cudnn_step *step, hwnas_cudnn_net *net)
{
    (void)step;
    (void)net;
    return HWNAS_OK;
}

static void nothing_to_free(hwnas_cudnn_step *step)
{
    (void)step;
}

const hwnas_cudnn_kind hwnas_cudnn_view = {
    .name = "view", .compile = nothing_to_compile, .free = nothing_to_free};
