/* crowd_note.c: a machine that is too busy is told of before hours are spent on it. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "device/device.h"

void hwnas_note_crowd(const char *device, int threads, hwnas_priority priority)
{
    if (strcmp(device, "cpu") != 0)
        return;
    char *warning = hwnas_crowd_warning(threads ? threads : hwnas_device_cores(), priority);
    if (warning)
        hwnas_say(stderr, "hwnas: note: %s\n", warning);
    free(warning);
}
