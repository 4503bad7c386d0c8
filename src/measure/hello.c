#include "measure/hello.h"

#include <stdio.h>

#include "base/host.h"
#include "measure/energy.h"
#include "measure/priority.h"
#include "measure/runner.h"

hwnas_status hwnas_hello_check(const json_t *request)
{
    const json_t *protocol = json_object_get(request, "protocol");
    if (!protocol || json_integer_value(protocol) == HWNAS_PROTOCOL)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                 "the runner is hwnas %s and speaks version %d of the protocol, "
                                 "and the search speaks another",
                                 hwnas_version(), HWNAS_PROTOCOL),
                      "install the same version on both sides");
}

/* All that there is, but for what the kernel refuses. */
static int list_abilities(void)
{
    const int all = (1 << HWNAS_N_ABILITIES) - 1;
    if (hwnas_priority_check() == HWNAS_OK)
        return all;
    hwnas_error_clear();
    return all & ~(1 << HWNAS_CAN_REALTIME);
}

void hwnas_hello_make(hwnas_hello *out, const hwnas_device *device)
{
    hwnas_energy *energy = hwnas_energy_open(hwnas_energy_root());
    *out = (hwnas_hello){.protocol = HWNAS_PROTOCOL, .abilities = list_abilities()};
    snprintf(out->version, sizeof out->version, "%s", hwnas_version());
    hwnas_host_id(out->machine);
    snprintf(out->priority, sizeof out->priority, "%s",
             out->abilities & 1 << HWNAS_CAN_REALTIME ? "realtime" : "normal");
    device->ops->describe(device, &out->info);
    out->info.has_energy |= energy != NULL && !device->ops->joules;
    hwnas_energy_close(energy);
}
