/* percent.h: results of a column in %, of which whoever gives them may mean fractions of 1. */
#ifndef HWNAS_PREDICT_PERCENT_H
#define HWNAS_PREDICT_PERCENT_H

#include "predict/results.h"

typedef enum hwnas_printed {
    HWNAS_PRINTED_UNKNOWN,
    HWNAS_PRINTED_PERCENT,
    HWNAS_PRINTED_FRACTION,
} hwnas_printed;

/* "percent" or "fraction"; UNKNOWN: another word. */
hwnas_printed hwnas_printed_of(const char *word);

/* Who gives results, and the words to ask them with. */
typedef struct hwnas_giver {
    const char *column;      /* in % or not, as its name says */
    hwnas_printed printed;   /* as the user said */
    bool has_percentage;     /* a result above 1 is known, so all are percentages */
    const char *said;        /* "'./train' printed" */
    const char *how_to_say;  /* hint: how to say which of both it is */
    const char *how_to_name; /* hint: how to name a column that is not in % */
} hwnas_giver;

/* A result above 1. */
bool hwnas_has_percentage(const hwnas_results *results);
/* HWNAS_E_INPUT for a file of results that may be fractions, all of them. */
HWNAS_CHECKED hwnas_status hwnas_percent_check(const hwnas_results *results,
                                               const hwnas_giver *giver);
/* Brings a result, and its deviation, into the unit of its column; `has_sign`: it had a '%' with
 * it. HWNAS_E_INPUT: it is out of range, or nobody knows whether it is a fraction. */
HWNAS_CHECKED hwnas_status hwnas_percent_convert(double *value, double *sd, bool has_sign,
                                                 const hwnas_giver *giver);

#endif
