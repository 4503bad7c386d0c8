/* trees.c: XGBoost's C API (1.7 of Debian 12 and 3.0 of Debian 13) fits and writes its JSON model.
 *
 * Reading it back is not left to XGBoost: given a model with a wrong index it writes out of bounds
 * (1.7 and 3.0: a child beyond the nodes ends in SIGSEGV, a child that is its own parent never
 * ends), and a call for one row costs it more than 400 trees do. The schema is published and
 * stable: doc/tutorials/saving_model.rst and doc/model.schema of its repository. */
#include "predict/trees.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xgboost/c_api.h>

#include "base/mem.h"

/* A leaf is its own child, so that a walk may go on to the tree's depth without asking. */
typedef struct node {
    float split; /* inputs below it go to the first child, others to the second */
    int input;
    int children[2]; /* counted from the root; a split's come after it, so it has no cycle */
    float value;     /* a leaf's share of the estimate */
    int level;
} node;

typedef struct tree {
    size_t root;
    int depth;
} tree;

struct hwnas_trees {
    BoosterHandle booster; /* of fitted trees, which have no nodes: most of them only judge others,
                            * and to write and to read a model takes half as long as to fit it */
    float base; /* what every estimate begins with */
    size_t n_inputs, n_trees, n_nodes;
    tree *trees;
    node *nodes;
};

const hwnas_trees_setting hwnas_trees_settings[] = {
    {"objective", "reg:squarederror"},
    {"tree_method", "hist"},
    {"max_bin", "64"},
    {"max_depth", "5"},
    {"eta", "0.1"},
    {"subsample", "0.7"},
    {"colsample_bytree", "0.5"},
    {"min_child_weight", "5"},
    {"base_score", "0"},
    {NULL, NULL},
};

static hwnas_status damaged(const char *what)
{
    return hwnas_fail(HWNAS_E_INPUT, NULL, "the trees are damaged: %s", what);
}

/* Item i of a list, if it is an integer from `low` to `high`. */
static bool int_at(int *out, const json_t *list, size_t i, json_int_t low, json_int_t high)
{
    const json_t *item = json_array_get(list, i);
    json_int_t value = json_integer_value(item);
    *out = (int)value;
    return json_is_integer(item) && value >= low && value <= high;
}

/* Reads one tree behind the nodes that there are. */
static hwnas_status load_tree(hwnas_trees *trees, json_t *file)
{
    json_t *left, *right, *inputs, *values;
    json_error_t error;
    if (json_unpack_ex(file, &error, 0, "{s:o, s:o, s:o, s:o}", "left_children", &left,
                       "right_children", &right, "split_indices", &inputs, "split_conditions",
                       &values))
        return damaged(error.text);
    size_t n = json_array_size(left);
    if (n < 1 || n > 1 << 20 || json_array_size(right) != n || json_array_size(inputs) != n ||
        json_array_size(values) != n)
        return damaged("a tree's lists differ in length");
    json_int_t last = (json_int_t)n - 1, last_input = (json_int_t)trees->n_inputs - 1;
    trees->nodes = hwnas_realloc(trees->nodes, (trees->n_nodes + n) * sizeof *trees->nodes);
    tree *out = &trees->trees[trees->n_trees++];
    *out = (tree){.root = trees->n_nodes};
    node *nodes = trees->nodes + out->root;
    memset(nodes, 0, n * sizeof *nodes);
    trees->n_nodes += n;
    for (size_t i = 0; i < n; i++) {
        node *at = &nodes[i];
        const json_t *value = json_array_get(values, i);
        if (!json_is_number(value))
            return damaged("a split is not a number");
        if (json_integer_value(json_array_get(left, i)) == -1) {
            at->value = (float)json_number_value(value);
            at->children[0] = at->children[1] = (int)i;
            continue;
        }
        at->split = (float)json_number_value(value);
        if (!int_at(&at->children[0], left, i, (json_int_t)i + 1, last) ||
            !int_at(&at->children[1], right, i, (json_int_t)i + 1, last))
            return damaged("a node's child is not among the nodes after it");
        if (!int_at(&at->input, inputs, i, 0, last_input))
            return damaged("a split looks at an input that does not exist");
        for (int c = 0; c < 2; c++)
            nodes[at->children[c]].level = at->level + 1;
        if (at->level + 1 > out->depth)
            out->depth = at->level + 1;
    }
    return HWNAS_OK;
}

hwnas_status hwnas_trees_load(hwnas_trees **out, const json_t *model, size_t n_inputs)
{
    const char *base, *n_features, *name;
    json_t *list;
    json_error_t error;
    if (json_unpack_ex((json_t *)model, &error, 0, "{s:{s:{s:s, s:s}, s:{s:s, s:{s:o}}}}",
                       "learner", "learner_model_param", "base_score", &base, "num_feature",
                       &n_features, "gradient_booster", "name", &name, "model", "trees", &list))
        return damaged(error.text);
    if (strcmp(name, "gbtree") || !json_is_array(list))
        return damaged("this is not a model of trees");
    if (strtoull(n_features, NULL, 10) != n_inputs)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the trees have %s inputs, %zu are needed",
                          n_features, n_inputs);
    hwnas_trees *trees = hwnas_alloc(sizeof *trees);
    trees->n_inputs = n_inputs;
    trees->base = strtof(base + (*base == '['), NULL); /* "5E-1", since 3.1 "[5E-1]" */
    trees->trees = hwnas_alloc(json_array_size(list) * sizeof *trees->trees);
    hwnas_status status = isfinite(trees->base) ? HWNAS_OK : damaged("'base_score' is not a number");
    for (size_t i = 0; status == HWNAS_OK && i < json_array_size(list); i++)
        status = load_tree(trees, json_array_get(list, i));
    if (status == HWNAS_OK)
        *out = trees;
    else
        hwnas_trees_free(trees);
    return status;
}

void hwnas_trees_free(hwnas_trees *trees)
{
    if (!trees)
        return;
    if (trees->booster)
        XGBoosterFree(trees->booster);
    free(trees->trees);
    free(trees->nodes);
    free(trees);
}

static void ask_booster(float *out, const hwnas_trees *trees, const float *inputs, size_t n)
{
    static const char how[] = "{\"type\": 0, \"training\": false, \"iteration_begin\": 0, "
                              "\"iteration_end\": 0, \"strict_shape\": false}";
    DMatrixHandle data;
    const bst_ulong *shape;
    bst_ulong n_dims;
    const float *estimates;
    while (XGDMatrixCreateFromMat(inputs, n, trees->n_inputs, NAN, &data))
        hwnas_out_of_memory();
    while (XGBoosterPredictFromDMatrix(trees->booster, data, how, &shape, &n_dims, &estimates))
        hwnas_out_of_memory();
    memcpy(out, estimates, n * sizeof *out);
    XGDMatrixFree(data);
}

void hwnas_trees_predict(float *out, const hwnas_trees *trees, const float *inputs, size_t n)
{
    if (trees->booster) {
        ask_booster(out, trees, inputs, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = trees->base;
    /* Trees outside, rows inside: a tree stays in the first cache while the rows pass. A walk has
     * no branch that the processor could guess wrong: measured on accel_nasbench, 6 times as many
     * networks a second as with a walk that stops at the leaf. */
    for (size_t t = 0; t < trees->n_trees; t++) {
        const node *root = trees->nodes + trees->trees[t].root;
        for (size_t i = 0; i < n; i++) {
            const float *row = inputs + i * trees->n_inputs;
            const node *at = root;
            for (int d = 0; d < trees->trees[t].depth; d++)
                at = root + at->children[!(row[at->input] < at->split)];
            out[i] += at->value;
        }
    }
}

/* Leaves only these members of an object. */
static void prune(json_t *object, const char *const *names)
{
    void *next;
    const char *key;
    json_t *value;
    json_object_foreach_safe(object, next, key, value)
    {
        size_t i = 0;
        while (names[i] && strcmp(names[i], key))
            i++;
        if (!names[i])
            json_object_del(object, key);
    }
}

json_t *hwnas_trees_write(const hwnas_trees *trees)
{
    static const char *const of_model[] = {"learner", NULL};
    static const char *const of_learner[] = {"learner_model_param", "gradient_booster", NULL};
    static const char *const of_param[] = {"base_score", "num_feature", NULL};
    static const char *const of_booster[] = {"name", "model", NULL};
    static const char *const of_trees[] = {"trees", NULL};
    static const char *const of_tree[] = {"left_children", "right_children", "split_indices",
                                          "split_conditions", NULL};
    const char *text;
    bst_ulong length;
    while (XGBoosterSaveModelToBuffer(trees->booster, "{\"format\": \"json\"}", &length, &text))
        hwnas_out_of_memory();
    json_t *model = json_loadb(text, length, 0, NULL);
    json_t *learner = json_object_get(model, "learner");
    json_t *booster = json_object_get(learner, "gradient_booster"), *one;
    size_t i;
    prune(model, of_model);
    prune(learner, of_learner);
    prune(json_object_get(learner, "learner_model_param"), of_param);
    prune(booster, of_booster);
    prune(json_object_get(booster, "model"), of_trees);
    json_array_foreach(json_object_get(json_object_get(booster, "model"), "trees"), i, one)
        prune(one, of_tree);
    return model;
}

/* XGBoost's messages go on with a stack trace: the first line says what is wrong. */
static hwnas_status check(int rc)
{
    if (rc == 0)
        return HWNAS_OK;
    const char *text = XGBGetLastError();
    return hwnas_fail(HWNAS_E_LIBRARY, NULL, "XGBoost: %.*s", (int)strcspn(text, "\n"), text);
}

hwnas_status hwnas_trees_fit(hwnas_trees **out, const float *inputs, const float *targets, size_t n,
                             size_t n_inputs, uint64_t seed)
{
    hwnas_status status = HWNAS_OK;
    DMatrixHandle data = NULL;
    BoosterHandle booster = NULL;
    char seed_text[16];
    TRY_OUT(check(XGDMatrixCreateFromMat(inputs, n, n_inputs, NAN, &data)));
    TRY_OUT(check(XGDMatrixSetFloatInfo(data, "label", targets, n)));
    TRY_OUT(check(XGBoosterCreate(&data, 1, &booster)));
    /* One thread: the order of sums, and with it the trees, do not depend on the machine. */
    TRY_OUT(check(XGBoosterSetParam(booster, "nthread", "1")));
    TRY_OUT(check(XGBoosterSetParam(booster, "verbosity", "0")));
    for (const hwnas_trees_setting *s = hwnas_trees_settings; s->name; s++)
        TRY_OUT(check(XGBoosterSetParam(booster, s->name, s->value)));
    snprintf(seed_text, sizeof seed_text, "%u", (unsigned)(seed & 0x7fffffff)); /* an int there */
    TRY_OUT(check(XGBoosterSetParam(booster, "seed", seed_text)));
    for (int i = 0; i < HWNAS_N_TREES; i++)
        TRY_OUT(check(XGBoosterUpdateOneIter(booster, i, data)));
    *out = hwnas_alloc(sizeof **out);
    **out = (hwnas_trees){.booster = booster, .n_inputs = n_inputs};
    booster = NULL;
out:
    if (booster)
        XGBoosterFree(booster);
    if (data)
        XGDMatrixFree(data);
    return status;
}
