#include "base/registry.h"

#include <string.h>

hwnas_status hwnas_registry_check(const char *what, unsigned known, unsigned abi, const char *name)
{
    if (abi != known)
        return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                     "a %s of version %u of the interface, this library has %u",
                                     what, abi, known),
                          "build it with the headers of libhwnas %s", hwnas_version());
    if (!name || !*name || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != strlen(name))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "a %s cannot have the name '%.60s'", what,
                                     name ? name : ""),
                          "a name is of a-z, 0-9, '-' and '_'");
    return HWNAS_OK;
}

hwnas_status hwnas_registry_taken(const char *what, const char *name)
{
    return hwnas_fail(HWNAS_E_INPUT, NULL, "there is a %s '%s' already", what, name);
}

hwnas_status hwnas_registry_full(const char *what)
{
    return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "more than %d: there is no room for a %s",
                      HWNAS_MAX_ROWS - 1, what);
}
