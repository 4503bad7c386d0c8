#define _GNU_SOURCE 1 /* uselocale() */
#include "base/c_locale.h"

#include <threads.h>

#include "base/mem.h"

static locale_t c_locale; /* kept until the process ends */

static void make_c_locale(void)
{
    hwnas_guard_libraries();
    while (!(c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0)))
        hwnas_out_of_memory();
}

locale_t hwnas_c_locale_enter(void)
{
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, make_c_locale);
    return uselocale(c_locale);
}

void hwnas_c_locale_leave(const locale_t *before)
{
    uselocale(*before);
}
