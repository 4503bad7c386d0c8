/* training.h: networks that were trained, and predictors of accuracy from their results.
 *
 * A table of results is a CSV with a row for each network, by its code or by its choices
 * (docs/predictors.md). Each function gives a report (hwnas.h), and any thread may call it. */
#ifndef HWNAS_PUBLIC_TRAINING_H
#define HWNAS_PUBLIC_TRAINING_H

#include <hwnas.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Which networks to train ---- */

typedef struct hwnas_suggestion_options {
    size_t size;
    size_t n;           /* networks; 0: 20; at most 1000 */
    const char *folder; /* (optional) made, with each network as ONNX, PyTorch and YAML, and the
                           table as results.csv; nothing of it, or all */
    const char *data;   /* (optional) table of networks with results already: others are picked */
    const char *target; /* the result's column; NULL: "accuracy_pct" */
    const char *proxy;  /* (optional) spread over this proxy as well */
    size_t pool;        /* networks to pick from; 0: 500; at most 5000 */
    uint64_t seed;      /* of the pool */
} hwnas_suggestion_options;
#define HWNAS_SUGGESTION_OPTIONS_INIT                                                              \
    {                                                                                              \
        .size = sizeof(hwnas_suggestion_options)                                                   \
    }

/* Picks the networks of a space whose training would teach most about the others. CSV: the table to
 * fill in; with a folder text: where things are. HWNAS_E_INPUT: the folder is there, or the space
 * has not so many networks. Seconds to minutes. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_suggest(hwnas_report **out, const char *space,
                                                         const hwnas_suggestion_options *options);

typedef struct hwnas_results_options {
    size_t size;
    const char *data;    /* the table with results filled in; rows without one wait */
    const char *space;   /* NULL: the table names it */
    const char *into;    /* file of results, made when it is not there; NULL: SPACE.results.csv */
    const char *target;  /* the result's column; NULL: "accuracy_pct" */
    const char *printed; /* "percent" or "fraction", of an accuracy; NULL: as it looks */
} hwnas_results_options;
#define HWNAS_RESULTS_OPTIONS_INIT                                                                 \
    {                                                                                              \
        .size = sizeof(hwnas_results_options)                                                      \
    }

/* Takes results into a file that hwnas_results_fit() reads: all rows or none. HWNAS_E_INPUT, with
 * the line: a row outside the space, a result that is no number or not the one that is known. Text,
 * JSON ("hwnas.import"). Cheap. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_results_import(hwnas_report **out,
                                                          const hwnas_results_options *options);

/* ---- One network, to the end ---- */

typedef struct hwnas_network_training_options {
    size_t size;
    const char *recipe; /* a file, docs/training.md */
    const char *out;    /* what its files begin with */
    bool overwrite;     /* put new files in the place of those that are there, and begin anew */
    /* (optional) Becomes nonzero, in a signal handler or another thread: the training ends soon.
     * The same call goes on with it. */
    const volatile sig_atomic_t *cancel;
    /* (optional) Each line that the program prints, in the calling thread. */
    void (*says)(void *context, const char *line);
    void *context;
} hwnas_network_training_options;
#define HWNAS_NETWORK_TRAINING_OPTIONS_INIT                                                        \
    {                                                                                              \
        sizeof(hwnas_network_training_options), NULL, NULL, false, NULL, NULL, NULL                \
    }

/* Trains a network of a space with PyTorch, in another process, and writes OUT.onnx with its
 * weights, OUT.pt, the checkpoint, OUT.py, the module that it belongs to, and OUT.csv, the curve.
 * The report is that of hwnas_dataset_evaluate() of the ONNX file on the recipe's test samples; of
 * its validation samples where there are none, which a note says. HWNAS_E_INPUT: the recipe or its
 * data are wrong, or the training diverged. Takes as long as the training. */
HWNAS_API HWNAS_CHECKED hwnas_status
hwnas_network_train(hwnas_report **out, const hwnas_network *network,
                    const hwnas_network_training_options *options);

/* ---- Predictors ---- */

typedef struct hwnas_fitting_options {
    size_t size;
    const char *space;  /* name or file; "any": the table has facts about graphs */
    const char *data;   /* the table */
    const char *target; /* the column that is predicted */
    const char *out;    /* NAME.json, written with a card beside it, both or none */
    const char *kind;   /* "gp", "gbdt", "ensemble"; NULL: "auto", what does best */
    int folds;          /* of the cross-validation, 3 to 100; 0: 5 */
    uint64_t seed;      /* of folds and trees */
} hwnas_fitting_options;
#define HWNAS_FITTING_OPTIONS_INIT                                                                 \
    {                                                                                              \
        .size = sizeof(hwnas_fitting_options)                                                      \
    }

/* Fits a predictor and judges the way of fitting by nested cross-validation. Text, JSON
 * ("hwnas.scores"). Seconds to many minutes, by the rows. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_results_fit(hwnas_report **out,
                                                       const hwnas_fitting_options *options);

/* What a fitted predictor has learned from, beside what its space has: values of each choice,
 * ranges of facts about the graphs, rows. `name`: a file, or the name of one that ships; `space`: a
 * name or file, NULL: the one that the predictor names. HWNAS_E_USAGE: it was not fitted. Text,
 * JSON
 * ("hwnas.predictor"). Milliseconds. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_predictor_show(hwnas_report **out, const char *name,
                                                          const char *space);
/* Compares a predictor with the known results of a table; `target` NULL: its own column. Text, JSON
 * ("hwnas.scores"). Costs what scoring its rows does. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_predictor_judge(hwnas_report **out,
                                                           hwnas_predictor *predictor,
                                                           const char *data, const char *target);
/* Code, mean and standard deviation for each row of a table, as CSV; no deviation where none is
 * claimed. Of a fitted predictor also the choices in which a network has values that it has not
 * learned from. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_predictor_score_table(hwnas_report **out,
                                                                 hwnas_predictor *predictor,
                                                                 const char *data);
/* Each network of a table as a vector, as CSV: what a predictor onnx:FILE gets. `layout`:
 * "one-hot", "values"; NULL: "one-hot". Cheap. */
HWNAS_API HWNAS_CHECKED hwnas_status hwnas_space_encode(hwnas_report **out,
                                                        const hwnas_space *space, const char *data,
                                                        const char *layout);

#ifdef __cplusplus
}
#endif
#endif
