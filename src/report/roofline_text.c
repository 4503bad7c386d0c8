/* roofline_text.c: rooflines as text. */
#include "report/roofline_text.h"

#include <stdlib.h>

#include "report/grid.h"

#define GIGA 1e9
#define MEGA 1e6

/* "143.9 [143.1, 144.3]", in units of 1e9. */
static void put_rate(hwnas_grid *grid, const hwnas_rate *rate)
{
    hwnas_grid_cell(grid, "%.1f [%.1f, %.1f]", rate->p50 / GIGA, rate->low / GIGA,
                    rate->high / GIGA);
}

static void put_headings(hwnas_grid *grid, const hwnas_roofline *r)
{
    hwnas_grid_column(grid, "threads", HWNAS_GRID_RIGHT);
    hwnas_grid_column(grid, "dtype", HWNAS_GRID_LEFT);
    hwnas_grid_column(grid, "GFLOP/s", HWNAS_GRID_RIGHT);
    hwnas_grid_column(grid, "call us", HWNAS_GRID_RIGHT);
    hwnas_grid_column(grid, "memory GB/s", HWNAS_GRID_RIGHT);
    for (int i = HWNAS_N_BANDWIDTHS - 2; i >= 0; i--) {
        char *heading = hwnas_printf("%.2g MB", r->bandwidths[i].bytes / MEGA);
        hwnas_grid_column(grid, heading, HWNAS_GRID_RIGHT);
        free(heading);
    }
}

void hwnas_roofline_text(hwnas_str *out, const hwnas_roofline *rooflines, size_t n)
{
    hwnas_grid grid = {0};
    bool is_unstable = false;
    put_headings(&grid, rooflines);
    for (const hwnas_roofline *r = rooflines; r < rooflines + n; r++) {
        hwnas_grid_cell(&grid, "%d", r->threads);
        hwnas_grid_cell(&grid, "%s%s", hwnas_precision_name(r->precision),
                        r->is_unstable ? " ?" : "");
        put_rate(&grid, &r->flops);
        hwnas_grid_number(&grid, 1, 1e6 * r->call_seconds);
        put_rate(&grid, hwnas_roofline_memory(r));
        for (int i = HWNAS_N_BANDWIDTHS - 2; i >= 0; i--)
            hwnas_grid_number(&grid, 1, r->bandwidths[i].rate.p50 / GIGA);
        is_unstable |= r->is_unstable;
    }
    hwnas_grid_text(out, &grid);
    hwnas_grid_done(&grid);
    if (is_unstable)
        hwnas_str_add(
            out,
            "?: the machine was disturbed meanwhile; `hwnas devices --refresh` measures again\n");
}
