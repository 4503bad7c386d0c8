/* job.h: a search as its user describes it: one YAML file, whose keys are also flags. */
#ifndef HWNAS_STUDY_JOB_H
#define HWNAS_STUDY_JOB_H

#include <jansson.h>

#include "base/yaml.h"
#include "measure/measure.h"
#include "trial/goal.h"

enum { HWNAS_MAX_SETTING_VALUES = 16 };

/* In the order of their words. */
typedef enum hwnas_estimate_use {
    HWNAS_ESTIMATE_OFF,
    HWNAS_ESTIMATE_AUTO,
    HWNAS_ESTIMATE_AGGRESSIVE,
} hwnas_estimate_use;

/* Values of a setting of the measurement; with more than one it is a choice of the search. */
typedef struct hwnas_setting_values {
    int n, values[HWNAS_MAX_SETTING_VALUES];
    hwnas_place place;
} hwnas_setting_values;

/* Strings live in the arena. What a job reads is named as seen from the directory of the job, and
 * kept as an absolute path, so that a study knows it wherever it is looked at from; what it writes
 * goes into the current directory. */
typedef struct hwnas_job {
    hwnas_arena *arena;
    const char *path;            /* of the YAML file; NULL: flags alone */
    const char *text;            /* of that file */
    const char *directory;       /* from which flags name files; NULL: the current one */
    const hwnas_job_flag *flags; /* up to one without a name */
    const char *space;           /* name or file */
    const char *predictor;       /* of the accuracy; NULL: none */
    bool trains; /* a predictor `command` may run its program; not for a plan, or to explain */
    int64_t train_budget; /* trainings that a predictor `command` may make; 0: one for each trial */
    hwnas_goals goals;
    bool is_domain_free; /* the predictor's domain holds no choice (held.h) */
    bool has_no_int8_loss; /* what is predicted of s8 networks holds as it is (int8_loss.h) */
    hwnas_place space_place, predictor_place, train_budget_place, strategy_place, budget_place;
    hwnas_place max_error_place, data_place, max_loss_place;
    hwnas_place study_place, onnx_place, pytorch_place, yaml_place; /* no file: not given */
    hwnas_setting_values threads, batch, dtype; /* study/settings.h */
    double max_error; /* of networks whose layers have a precision each, %; NaN: not given */
    const char *data; /* samples by which these get it, study/job_data.h; NULL: random inputs */
    double max_loss;  /* points of accuracy that they may lose, by labels; NaN: they do not count */
    double price; /* an hour, of devices that give none; NaN: not given */
    const char *strategy;
    int population; /* 0: the strategy's own */
    uint64_t seed;
    int64_t max_trials;      /* 0: no limit */
    double max_minutes;      /* 0: no limit */
    double money;            /* that all devices may cost; NaN: no limit */
    double hourly;           /* what they cost an hour, where `money` is what ends the search: then
                                `max_minutes` are what it buys; NaN: it is not */
    double improvement;      /* the search ends when the front improves by less; 0: never */
    int estimate;            /* hwnas_estimate_use: may a table of latencies spare measurements? */
    bool stops_early;        /* a measurement, when it is clear that the network is beaten */
    double interval;         /* of a measurement, relative */
    double max_seconds;      /* of a measurement */
    hwnas_priority priority; /* of its threads */
    double ties;             /* time for measuring near ties again, as a part of the search's */
    double confirm;          /* time for confirming the front's end, the same */
    bool verifies;           /* the front's networks are compared with a reference */
    int parallel;            /* trials that are open at a time; 0: as the devices suit */
    double timeout;          /* of a runner's silence, seconds */
    int64_t memory_limit;    /* of a runner, bytes; 0: none */
    const char *study;       /* SQLite file */
    const char *warm_start;  /* another study, whose trials are taken over; NULL: none */
    const char *export_onnx, *export_pytorch, *export_yaml; /* NULL: not wanted */
} hwnas_job;

typedef enum hwnas_key_type {
    HWNAS_KEY_SPECIAL,  /* it has a reader of its own */
    HWNAS_KEY_INTEGER,  /* in [low, high] units; kept as int or 64 bits */
    HWNAS_KEY_NUMBER,   /* double in [low, high] */
    HWNAS_KEY_POSITIVE, /* double in (0, high] */
    HWNAS_KEY_TEXT,     /* const char *, in the job's arena */
    HWNAS_KEY_PATH,     /* the same; what of it is a path becomes absolute */
    HWNAS_KEY_WORD,     /* bool or int: which of `words` */
    HWNAS_KEY_SETTING,  /* hwnas_setting_values of the setting of that name */
} hwnas_key_type;

/* A key of a job, and the flag of the same meaning. */
typedef struct hwnas_job_key {
    const char *group; /* key of the mapping that it is in; NULL: of the job itself */
    const char *name;  /* NULL ends the table */
    char letter;       /* short form of the flag; 0: none */
    bool is_rare;      /* the flag is named but not explained by --help */
    bool is_text;      /* the flag's value is taken as it is; otherwise it is read as YAML */
    hwnas_key_type type;
    size_t offset, size; /* of the value in hwnas_job */
    size_t place;        /* offset of a hwnas_place that is to be kept; 0: none */
    double low, high;
    int64_t unit;            /* of an integer; 0: 1 */
    double preset;           /* what holds without the key */
    const char *preset_text; /* the same of a text */
    const char *words[4];    /* the first says no; NULL ends them */
    const char *hint;        /* for a wrong value */
    hwnas_status (*read)(hwnas_job *job, const hwnas_yaml *node); /* HWNAS_KEY_SPECIAL */
    const char *argument; /* of the flag; NULL: the key has none */
    const char *help;
} hwnas_job_key;
extern const hwnas_job_key hwnas_job_keys[];

/* Reads a key's value into the job; HWNAS_E_INPUT at the node. */
HWNAS_CHECKED hwnas_status hwnas_job_key_read(hwnas_job *job, const hwnas_job_key *key,
                                              const hwnas_yaml *node);
/* What holds where nothing is said. */
void hwnas_job_preset(hwnas_job *job);
/* Both keys say the same thing, as `strategy` and `strategy: {name}` do. */
bool hwnas_job_key_is_same(const hwnas_job_key *a, const hwnas_job_key *b);

/* Reads a job (`path` NULL: from flags alone), replaces what flags say (NULL: none), and checks
 * that it can be run: a space, objectives that the job's predictor and devices can give, limits
 * that do not exclude each other. A flag's mistake has the place "--NAME". */
HWNAS_CHECKED hwnas_status hwnas_job_load(hwnas_job **out, const char *path,
                                          const hwnas_job_flag *flags);
/* Reads a job whose file is not here: `text` is what it says (NULL: nothing), `path` and
 * `directory` are what files are named from. */
HWNAS_CHECKED hwnas_status hwnas_job_load_text(hwnas_job **out, const char *path, const char *text,
                                               const char *directory, const hwnas_job_flag *flags);
void hwnas_job_free(hwnas_job *job);

/* The job's setting is a choice of the search. */
bool hwnas_setting_is_open(const hwnas_setting_values *setting);

#endif
