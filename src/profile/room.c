#include "profile/room.h"

#include <math.h>

#include "base/log.h"
#include "measure/free_memory.h"

/* Of what the order of the nodes has live at once: an epilogue is written over what it reads. */
#define LEAST_SHARE 0.75
#define GIB 0x1p30

hwnas_status hwnas_room_check_in(uint64_t all, uint64_t available, const hwnas_graph *graph,
                                 const char *model, int batch, double share)
{
    hwnas_costs costs;
    hwnas_graph_costs(&costs, graph);
    const double bytes = share * (double)costs.peak_bytes;
    if (LEAST_SHARE * bytes > (double)all)
        return hwnas_hint(hwnas_fail(HWNAS_E_MEMORY, NULL,
                                     "%s with batch %d takes about %.*f GiB for weights and "
                                     "activations, and there are %.1f GiB of memory",
                                     model, batch, bytes < 100 * GIB, bytes / GIB,
                                     (double)all / GIB),
                          "a smaller batch takes less; about %.0f fit into what is free",
                          floor((double)batch * (double)available / bytes));
    if (bytes > (double)available)
        hwnas_log(HWNAS_LOG_NOTE,
                  "%s with batch %d takes about %.1f GiB for weights and activations, and %.1f of "
                  "%.1f GiB of memory are free",
                  model, batch, bytes / GIB, (double)available / GIB, (double)all / GIB);
    return HWNAS_OK;
}

hwnas_status hwnas_room_check(const hwnas_graph *graph, const char *model, int batch, double share)
{
    uint64_t all, available;
    return hwnas_memory_find_now(&all, &available, "")
               ? hwnas_room_check_in(all, available, graph, model, batch, share)
               : HWNAS_OK;
}
