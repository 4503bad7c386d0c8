/* pytorch_flat_images.c: pools, and images made of others by interpolation, as functions of
 * PyTorch. */
#include "export/pytorch_flat.h"
#include "graph/ops/pool.h"

static int64_t number_of(const hwnas_node *node, const char *attr)
{
    return hwnas_node_attr(node, attr)->ints[0];
}

#define TEXT(...) hwnas_arena_printf(f->s.arena, __VA_ARGS__)

/* "3, stride=2, padding=1" */
static const char *window(hwnas_flat *f, const hwnas_node *node, bool has_padding)
{
    const int64_t *stride = node->attrs[HWNAS_POOL_STRIDE].ints,
                  *pad = node->attrs[HWNAS_POOL_PAD].ints;
    const char *text =
        TEXT("%s, stride=%s", hwnas_flat_pair(f, node->attrs[HWNAS_POOL_KERNEL].ints),
             hwnas_flat_pair(f, stride));
    return has_padding && (pad[0] || pad[1]) ? TEXT("%s, padding=%s", text, hwnas_flat_pair(f, pad))
                                             : text;
}

HWNAS_FLAT_TEXT(max_pool)
{
    const bool is_lopsided = hwnas_export_is_lopsided(node, true);
    const char *in = is_lopsided ? TEXT("F.pad($0, %s, value=float(\"-inf\"))",
                                        hwnas_flat_sides(f, node->attrs[HWNAS_POOL_PAD].ints))
                                 : "$0";
    return TEXT("F.max_pool2d(%s, %s)", in, window(f, node, !is_lopsided));
}

HWNAS_FLAT_TEXT(avg_pool)
{
    const int64_t *pad = node->attrs[HWNAS_POOL_PAD].ints;
    const char *sides = hwnas_flat_sides(f, pad);
    if (!hwnas_export_is_lopsided(node, true))
        return TEXT(
            "F.avg_pool2d($0, %s%s)", window(f, node, true),
            (pad[0] || pad[1]) && !number_of(node, "count_pad") ? ", count_include_pad=False" : "");
    const char *mean = TEXT("F.avg_pool2d(F.pad($0, %s), %s)", sides, window(f, node, false));
    if (number_of(node, "count_pad"))
        return mean;
    return TEXT("%s / F.avg_pool2d(F.pad(torch.ones_like($0), %s), %s)", mean, sides,
                window(f, node, false));
}

HWNAS_FLAT_TEXT(upsample)
{
    return TEXT("F.interpolate($0, scale_factor=(%s), mode=\"%s\")",
                hwnas_flat_list(f, 2, hwnas_node_attr(node, "by")->ints),
                number_of(node, "linear") ? "bilinear" : "nearest");
}

HWNAS_FLAT_TEXT(grid_sample)
{
    static const char *const modes[] = {"bilinear", "nearest", "bicubic"}, *const paddings[] = {
                                                                               "zeros", "border",
                                                                               "reflection"};
    return TEXT("F.grid_sample($0, $1, mode=\"%s\", padding_mode=\"%s\", align_corners=%s)",
                modes[number_of(node, "mode")], paddings[number_of(node, "padding")],
                number_of(node, "align_corners") ? "True" : "False");
}
