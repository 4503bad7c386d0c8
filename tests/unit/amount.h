/* amount.h: how much of a long list a test goes through. */
#ifndef TESTS_UNIT_AMOUNT_H
#define TESTS_UNIT_AMOUNT_H

/* Each; under a sanitizer, where all takes five to ten times as long and the first rows find what the others would,
 * every `step`-th. */
#ifdef HWNAS_SANITIZED
#define EVERY(step) (step)
#else
#define EVERY(step) 1
#endif

#endif
