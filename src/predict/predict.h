/* predict.h: architecture -> accuracy estimate, mean and standard deviation.
 *
 * A predictor comes in kinds (a table in predict.c lists them): `table` looks published results up,
 * `fitted` is a model that hwnas_predictor_fit() wrote, of one of the kinds in model.h. A fitted
 * predictor is one JSON file with a card (Markdown) beside it that says data, command and held-out
 * scores. */
#ifndef HWNAS_PREDICT_PREDICT_H
#define HWNAS_PREDICT_PREDICT_H

#include <hwnas/predictor.h>

#include "space/arch.h"

/* `name`: a file, the name of a predictor that ships, or "table:FILE#COLUMN". A predictor fitted on
 * another space is HWNAS_E_INPUT, unless it was fitted for any. The space is borrowed. */
HWNAS_CHECKED hwnas_status hwnas_predictor_load(hwnas_predictor **out, const char *name,
                                                const hwnas_space *space);
void hwnas_predictor_free(hwnas_predictor *predictor);

const char *hwnas_predictor_kind(const hwnas_predictor *predictor); /* "table", "ensemble" */
const hwnas_space *hwnas_predictor_space(const hwnas_predictor *predictor);

/* Its mean orders networks and is not an estimate of the target: a proxy. */
bool hwnas_predictor_ranks_only(const hwnas_predictor *predictor);
/* The same of a predictor's name, which is not opened. */
bool hwnas_predictor_name_ranks(const char *name);

/* Of the kind `samples`: what it judges by, borrowed; NULL: of another kind. */
struct hwnas_samples *hwnas_predictor_samples_of(const hwnas_predictor *predictor);

/* Of the kind `samples`: in which precision it runs networks from now on; f32 at first. Of others
 * it means nothing. */
void hwnas_predictor_use_precision(hwnas_predictor *predictor, hwnas_precision precision);

/* What it estimates is what a network reaches in floats, whatever it is run in: it is of a kind
 * that neither runs nor trains networks, and no ranking. */
bool hwnas_predictor_is_of_floats(const hwnas_predictor *predictor);

/* Of the kind `samples`: a network whose accuracy is clearly below `floor`, in percent, is not run
 * on all of them; 0: each is. */
void hwnas_predictor_stop_below(hwnas_predictor *predictor, double floor);
/* Whether the last score was of a part of what there is, *n of *n_all: of the kind `samples` of
 * fewer samples, which is a result; of a program that trains of fewer epochs, which is an estimate
 * of the end. Others never are. */
bool hwnas_predictor_was_stopped(int64_t *n, int64_t *n_all, const hwnas_predictor *predictor);

/* Of a program that trains: ends a whole training when it hardly will reach `floor`, in the unit of
 * the target, and estimates where it would end (predict/epochs.h); -INFINITY, as at first: each is
 * trained to its end. Of others it means nothing. */
void hwnas_predictor_give_up_below(hwnas_predictor *predictor, double floor);
/* It would do so. */
bool hwnas_predictor_gives_up(const hwnas_predictor *predictor);

/* Which values of each choice it has learned from (domain.h), borrowed; NULL: it is of a kind that
 * has no such thing, or was fitted before that was kept. */
struct json_t;
const struct json_t *hwnas_predictor_domain(const hwnas_predictor *predictor);

/* The sizes of networks that it has learned from (domain.h), borrowed; NULL: it does not look. */
struct hwnas_sizes;
const struct hwnas_sizes *hwnas_predictor_sizes(const hwnas_predictor *predictor); /* NULL: NULL */

/* Whether it has learned from each value of a network, of which only the size may be outside; so it
 * is where the predictor has no such thing. */
bool hwnas_predictor_has_seen_values(const hwnas_predictor *predictor, const hwnas_arch *arch);

/* Adds the names of the choices in which a network has values outside that, and "macs" and
 * "params" where these are, by blanks; nothing where it is inside, or the predictor has no such
 * thing. Builds the network. */
struct hwnas_str;
void hwnas_predictor_outside(struct hwnas_str *out, const hwnas_predictor *predictor,
                             const hwnas_arch *arch);

/* The file of a fitted predictor: format and version are right, the rest is not checked. Another
 * kind is HWNAS_E_USAGE. A new reference. */
HWNAS_CHECKED hwnas_status hwnas_predictor_read(struct json_t **out, const char *name);

/* What a column of that name has is the better the smaller it is, by its name: val_ppl, top1_error.
 * Not what says to be negated: negative_perplexity. */
bool hwnas_column_is_minimised(const char *column);

/* What a predictor trains; false: nothing. */
bool hwnas_predictor_trainings(hwnas_trainings *out, const hwnas_predictor *predictor);

/* Whether its trainings can begin, which may take a while: of the kind `train`, whether recipe,
 * data and PyTorch are right. Others say so when they are opened. */
HWNAS_CHECKED hwnas_status hwnas_predictor_check(hwnas_predictor *predictor);

/* Of a kind whose answers follow from a file that its name does not tell apart, as the weights of a
 * supernet: the file, and a hash of what is in it and beside it (NULL: it is not made yet). Yours
 * to free(). False: it is of another kind. */
bool hwnas_predictor_weights(char **file, char **hash, const hwnas_predictor *predictor);

void hwnas_predictor_watch(hwnas_predictor *predictor, const hwnas_training_watch *watch);

void hwnas_predictor_train_mode(hwnas_predictor *predictor, hwnas_training_mode mode);

/* Ways to train a network, from the whole one, 0, to the cheapest (a recipe's `rungs`); 1: no
 * other. One that is not there is not used, whoever asks. */
enum { HWNAS_RUNG_REDUCTION = 3 }; /* of so many networks at a rung one goes on to the next */
int hwnas_predictor_rungs(const hwnas_predictor *predictor); /* NULL: 1 */
void hwnas_predictor_use_rung(hwnas_predictor *predictor, int rung);

/* How many networks the search has looked at; a predictor with a budget of trainings
 * spreads them. */
void hwnas_predictor_advance(hwnas_predictor *predictor, uint64_t n_asked);

/* HWNAS_E_NOT_FOUND when a table has no row for one of them. A predictor has scratch memory: one
 * thread at a time. */
HWNAS_CHECKED hwnas_status hwnas_predictor_score(hwnas_estimate *out, hwnas_predictor *predictor,
                                                 const hwnas_arch *const *archs, size_t n);

/* Rank correlation and error on rows with known results. */
typedef struct hwnas_predictor_scores {
    size_t n_rows;
    double kendall_tau;
    double rmse, mean_absolute_error; /* NaN for a predictor that only ranks */
    double top_tenth_tau; /* among the highest tenth by known result; NaN below 20 rows */
    double coverage_90;   /* share of rows inside the 90 % interval; NaN when no sd is claimed */
} hwnas_predictor_scores;

typedef struct hwnas_fit_options {
    const char *space;   /* name or file; "any": the CSV has facts about graphs (sample.h) */
    const char *data;    /* CSV */
    const char *target;  /* column */
    const char *out;     /* JSON; the card goes beside it with the suffix .md */
    const char *command; /* the command line, for the card */
    const char *kind;    /* "gp", "gbdt", "ensemble"; "auto" or NULL: what does best, ensemble */
    int folds;           /* of the cross-validation, at least 3; 0: 5 */
    uint64_t seed;
} hwnas_fit_options;

typedef struct hwnas_fit_result {
    hwnas_predictor_scores scores; /* of the cross-validation */
    char *chosen;                  /* what was fitted, in words; yours to free() */
} hwnas_fit_result;

/* Fits, judges the way of fitting by nested cross-validation, writes file and card (both
 * or none). */
HWNAS_CHECKED hwnas_status hwnas_predictor_fit(hwnas_fit_result *out,
                                               const hwnas_fit_options *options);
/* Scores a predictor on the rows of a CSV. `target` NULL: the predictor's own. */
HWNAS_CHECKED hwnas_status hwnas_predictor_eval(hwnas_predictor_scores *out,
                                                hwnas_predictor *predictor,
                                                const hwnas_space *space, const char *data,
                                                const char *target);

#endif
