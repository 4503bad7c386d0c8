/* refused.c: what cannot be registered. Prints what is wrong; ends with 0 if all of it was refused
 * and nothing of it is there. */
#include <stdio.h>
#include <string.h>

#include "parts.h"

static int refused(hwnas_status got, hwnas_status wanted)
{
    puts(hwnas_last_error()->message);
    return got == wanted;
}

int main(void)
{
    hwnas_device_ops device = naive_device;
    hwnas_strategy_ops strategy = climb_strategy;
    hwnas_predictor_ops predictor = size_predictor;
    int ok = hwnas_register_device(&naive_device) == HWNAS_OK;
    ok &= refused(hwnas_register_device(&naive_device), HWNAS_E_INPUT);
    ok &= refused(hwnas_register_device(NULL), HWNAS_E_USAGE);
    device.name = "cpu";
    ok &= refused(hwnas_register_device(&device), HWNAS_E_INPUT);
    device.name = "gpu:0";
    ok &= refused(hwnas_register_device(&device), HWNAS_E_INPUT);
    device.name = NULL;
    ok &= refused(hwnas_register_device(&device), HWNAS_E_INPUT);
    device.name = (const char *)1; /* of another version, the field may be anything */
    device.abi = HWNAS_DEVICE_ABI + 1;
    ok &= refused(hwnas_register_device(&device), HWNAS_E_UNSUPPORTED);
    strategy.name = "auto";
    ok &= refused(hwnas_register_strategy(&strategy), HWNAS_E_INPUT);
    strategy.abi = 0;
    ok &= refused(hwnas_register_strategy(&strategy), HWNAS_E_UNSUPPORTED);
    predictor.name = "table";
    ok &= refused(hwnas_register_predictor(&predictor), HWNAS_E_INPUT);
    size_t n = 0;
    for (const char *name; (name = hwnas_device_list(n, NULL)); n++)
        ok &= !strstr(name, "gpu:");
    ok &= !strcmp(hwnas_device_list(n - 1, NULL), "naive");
    for (int i = 0; i < 100; i++) { /* a table is not endless */
        static char names[100][16];
        static hwnas_strategy_ops rows[100];
        rows[i] = climb_strategy;
        snprintf(names[i], sizeof names[i], "climb-%d", i);
        rows[i].name = names[i];
        if (hwnas_register_strategy(&rows[i]) != HWNAS_OK)
            return !(ok && i > 20 && hwnas_last_error()->status == HWNAS_E_UNSUPPORTED);
    }
    return 1;
}
