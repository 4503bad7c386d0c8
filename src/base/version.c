/* version.c: the one place that knows configure's version. */
#include "config.h"

#include "hwnas.h"

const char *hwnas_version(void)
{
    return PACKAGE_VERSION;
}
