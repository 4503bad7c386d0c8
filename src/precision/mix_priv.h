/* mix_priv.h: what mix.c and mix_layers.c share. */
#ifndef HWNAS_PRECISION_MIX_PRIV_H
#define HWNAS_PRECISION_MIX_PRIV_H

#include "precision/answers.h"
#include "precision/mix.h"

typedef struct hwnas_mix_chooser {
    const hwnas_mix_options *options;
    hwnas_mix *mix;
    hwnas_answers *answers;
    hwnas_runner *runner;
    bool takes_bf16;         /* asked for, and there are instructions for it */
    hwnas_precision *kinds;  /* by node, of what is being tried: f32, bf16 or s8; of layers only */
    hwnas_precision *kinds_in_way[HWNAS_MIX_WAYS]; /* of ways that are mixed; NULL: there is none */
    double one_try; /* seconds that one run of all samples took at most */
} hwnas_mix_chooser;

/* For so many tries, and the measurement of what they found; if not, something is left out. */
bool hwnas_mix_has_time(hwnas_mix_chooser *c, int n);

/* Says what is being done; HWNAS_E_INTERRUPTED where the user wants no more. */
HWNAS_CHECKED hwnas_status hwnas_mix_tell(const hwnas_mix_chooser *c, const char *phase,
                                          size_t done, size_t of);
/* How to measure in what is left of the time. */
hwnas_measure_options hwnas_mix_measuring(const hwnas_mix_chooser *c);
/* Noise powers of layers add up, nearly. */
static inline double hwnas_mix_power(hwnas_output_error e)
{
    return e.noise * e.noise;
}
/* All layers in one precision. */
void hwnas_mix_set_all(hwnas_mix_chooser *c, hwnas_precision kind);
/* What c->kinds loses with the rest in way->floats, and whether it may; `way` gets the figures. */
HWNAS_CHECKED hwnas_status hwnas_mix_judge(bool *fits, hwnas_mix_way *way, hwnas_mix_chooser *c);

/* ---- mix_layers.c ---- */

/* Runs layers alone, in each precision that is to be had. */
HWNAS_CHECKED hwnas_status hwnas_mix_judge_alone(hwnas_mix_chooser *c);
/* How many choices are tried for a way of so many layers, about, where time is no matter. */
double hwnas_mix_tries(double n_layers);
/* Chooses the layers of a way that mixes; their times are known. */
HWNAS_CHECKED hwnas_status hwnas_mix_choose_layers(hwnas_mix_chooser *c, int way);

/* ---- mix_few.c ---- */

/* Of few layers, better than what c->kinds has, which fits: of all choices that fit those that are
 * fast by the times of their layers are measured, and the fastest is in c->kinds, with its figures
 * in `way`. Of many layers, or a quick choice: nothing. */
HWNAS_CHECKED hwnas_status hwnas_mix_choose_of_all(hwnas_mix_way *way, hwnas_mix_chooser *c,
                                                   bool with_bf16);

#endif
