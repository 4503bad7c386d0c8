/* version.c: the version of the library, whatever headers its user was built with. */
#include <hwnas.h>

const char *hwnas_version(void)
{
    return HWNAS_VERSION;
}

int hwnas_version_number(void)
{
    return HWNAS_VERSION_NUMBER;
}
