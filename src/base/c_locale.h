/* c_locale.h: numbers in files have points, whatever the calling program is used to.
 *
 * strtod() and printf() follow the locale of the program that calls us, in which a number may have
 * a decimal comma; our files never have. Every public function that reads or writes numbers begins
 * with IN_C_LOCALE: it puts its thread into the locale "C" and leaves it in the one before. */
#ifndef HWNAS_BASE_C_LOCALE_H
#define HWNAS_BASE_C_LOCALE_H

#include <locale.h>

locale_t hwnas_c_locale_enter(void);
void hwnas_c_locale_leave(const locale_t *before);

#define IN_C_LOCALE                                                                                \
    __attribute__((cleanup(hwnas_c_locale_leave), unused)) const locale_t before_ =                \
        hwnas_c_locale_enter()

#endif
