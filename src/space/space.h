/* space.h: a search space: named choices and the network that they vary.
 *
 * A space owns everything reached from it. An architecture borrows its space. */
#ifndef HWNAS_SPACE_SPACE_H
#define HWNAS_SPACE_SPACE_H

#include "base/mem.h"
#include "space/lang.h"

/* One position of a choice: the unit that sampling, mutation and encoding work on. */
typedef struct hwnas_gene {
    size_t choice; /* index into the space's choices */
    size_t position;
    size_t n_values;
    const hwnas_value *values;
    const char *const *labels; /* spelling of each value in a code */
    const bool *kept;          /* by value, whether it may be chosen; NULL: all may */
} hwnas_gene;

typedef struct hwnas_choice {
    const char *name;
    hwnas_place place;
    bool is_vector;    /* seen as a list by expressions, even with one position */
    size_t first_gene; /* its positions are consecutive genes */
    size_t n_positions;
    bool short_labels; /* every label is one character, so a code needs no separator */
    hwnas_expr *when;  /* (optional) a position counts only when this holds; slot 0 is `i`, the
                          position; it sees the choices above */
    char separator;    /* of the labels in a code: '.', or ':' when a label has a '.' */
} hwnas_choice;

/* What a user may set and no search chooses: a sequence length, a phase. Expressions have its value
 * in them. */
typedef struct hwnas_setting {
    const char *name;
    hwnas_place place;
    hwnas_value value;
    hwnas_expr *expr; /* (optional) what the file says it is; it sees the settings above */
    bool is_set;      /* by the user, with the space's name; else `value` is the file's */
    size_t n_values;  /* that it may have, the default first; 0: any number */
    const hwnas_value *values;
} hwnas_setting;

enum { HWNAS_MOST_PHASES = 8 };

/* One of several ways to run the networks of a space, as prefill and decode of a language model:
 * the same choices, with other settings. */
typedef struct hwnas_phase {
    const char *name;
    hwnas_place place;
    const char *settings; /* as they follow a space's name: "phase=decode,length=64" */
} hwnas_phase;

/* An input of the network, or several of one shape and name. */
typedef struct hwnas_input {
    const char *name;
    hwnas_place place;
    bool is_integer;     /* whole numbers, such as those of words */
    hwnas_expr *each;    /* (optional) how many there are; slot 0 of `dims` is then `i` of them */
    int n_dims;          /* without the batch */
    hwnas_expr *dims[8]; /* they see the choices */
} hwnas_input;

/* A change of a model, of a space that was derived from one: "- width: {of: conv1, to: c1}". What
 * kinds there are is known by derive/. */
typedef struct hwnas_model_change {
    hwnas_place place;
    const char *kind;
    const char *of; /* what is changed, by its name in the model */
    hwnas_place of_place;
    hwnas_expr *to; /* it sees the choices */
} hwnas_model_change;

/* Who builds the networks of a space that was derived from a model. */
struct hwnas_graph;
struct hwnas_arch;
typedef struct hwnas_space_builder {
    /* As hwnas_graph_build(); `model` is the space's. Without `with_weights` large weights have no
     * values. */
    hwnas_status (*build)(struct hwnas_graph **out, const struct hwnas_arch *arch, int batch,
                          bool with_weights);
    void (*free)(void *model);
} hwnas_space_builder;

struct hwnas_space {
    hwnas_arena *arena;
    const char *path;      /* the file it came from */
    const char *text_path; /* the file that has its network: that of its base, where it has one */
    const char *name;
    const char *about;
    size_t n_settings;
    hwnas_setting *settings;
    size_t n_phases;
    hwnas_phase *phases;
    size_t n_inputs; /* at least one; the network begins with the first */
    hwnas_input *inputs;
    size_t n_choices;
    hwnas_choice *choices;
    size_t n_genes; /* 0 for a fixed network */
    hwnas_gene *genes;
    size_t n_constraints;
    hwnas_expr **constraints;    /* all must hold; they see the choices */
    bool has_rules; /* a condition, a constraint or a list: not every encoding counts */
    struct hwnas_ruleset *rules; /* what is known of them; NULL without any, or with too many */
    const struct hwnas_among *among; /* (optional) the only architectures that count (among.h) */
    size_t n_symbols;
    const char **symbols; /* the words among the values, sorted */
    size_t n_templates;
    hwnas_template **templates;
    hwnas_template *network; /* a template without parameters */
    /* Of a space that was derived from a model, whose network has no statements: */
    const char *model_path; /* NULL: it was not */
    hwnas_place model_place;
    size_t n_changes;
    hwnas_model_change *changes;
    const hwnas_space_builder *builder; /* NULL until derive/ has loaded the model */
    void *model;                        /* the builder's own */
};

/* Reads and checks a space: its grammar, names, choices and templates. What a layer means is
 * checked by hwnas_graph_check(). `name` is a file, or the name of a space that ships or of a
 * network of the zoo; settings may follow it: "gpt:phase=decode,length=64". */
HWNAS_CHECKED hwnas_status hwnas_space_load(hwnas_space **out, const char *name);
/* `settings`: "phase=decode,length=64", or NULL. */
HWNAS_CHECKED hwnas_status hwnas_space_parse(hwnas_space **out, const char *path, const char *text,
                                             size_t length, const char *settings);
/* A space that others are narrowed from; one that has a base itself is refused. */
HWNAS_CHECKED hwnas_status hwnas_space_load_base(hwnas_space **out, const char *name,
                                                 const char *settings);
/* The same of a text. */
HWNAS_CHECKED hwnas_status hwnas_space_parse_base(hwnas_space **out, const char *path,
                                                  const char *text, size_t length,
                                                  const char *settings);
/* Whether a value of a gene may be chosen, as far as one value alone decides. */
bool hwnas_gene_keeps(const hwnas_gene *gene, size_t value);
/* Length of a space's name without the settings that may follow it, after a ':'. */
size_t hwnas_space_name_length(const char *name);
void hwnas_space_free(hwnas_space *space);

/* Finds out what follows from the rules, once choices and constraints are there; a space that was
 * read has it. It takes bounded time, about a second at worst. */
void hwnas_space_prepare(hwnas_space *space);

/* hwnas_space_count() as a number when it is exact and at most `limit`; 0 too when there is none.
 */
uint64_t hwnas_space_count_up_to(const hwnas_space *space, uint64_t limit);

#endif
