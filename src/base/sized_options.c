#include "base/sized_options.h"

#include <string.h>

hwnas_status hwnas_sized_options_take(void *out, size_t size, const void *given)
{
    memset(out, 0, size);
    memcpy(out, &size, sizeof size);
    if (!given)
        return HWNAS_OK;
    size_t given_size;
    memcpy(&given_size, given, sizeof given_size);
    if (!given_size)
        given_size = size;
    if (given_size < sizeof given_size)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL, "options of %zu bytes", given_size),
                          "begin options with HWNAS_..._OPTIONS_INIT");
    for (size_t i = size; i < given_size; i++)
        if (((const char *)given)[i])
            return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                         "the options have fields that libhwnas %s does not know",
                                         hwnas_version()),
                              "the program was built with the header of a newer version");
    const size_t known = given_size < size ? given_size : size;
    memcpy((char *)out + sizeof size, (const char *)given + sizeof size, known - sizeof size);
    return HWNAS_OK;
}
