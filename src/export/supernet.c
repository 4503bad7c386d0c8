/* supernet.c: the statements of a space as Python that runs them: choices are known when a network
 * is called, so what pytorch.c works out beforehand is written here as it stands. */
#include "export/supernet.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/home.h"
#include "export/python.h"
#include "space/expr.h"

enum { STEP = 4 };

/* A template on its way. */
typedef struct writer {
    hwnas_str *out;
    hwnas_arena *arena;
    const hwnas_shared *shared;
    const hwnas_template *scope; /* whose statements these are; NULL: none */
    int n_blocks; /* for names that are ours */
    int at;       /* the number of the variable that has the beginning of names; 0: "at" */
} writer;

/* ---- Names ---- */

static const hwnas_py *name(writer *w, const char *text)
{
    hwnas_py_name *made = hwnas_arena_alloc(w->arena, sizeof *made);
    made->text = text;
    return hwnas_py_of(w->arena, made);
}

/* A name of the space's, apart from ours and Python's. */
static const char *free_name(writer *w, const char *text)
{
    static const char *const ours[] = {"x",     "at",   "c",    "net",  "named", "math",
                                       "torch", "nn",   "F",    "fact", "pair",  "sides",
                                       "divide", "padded", "SharedNet", "square_root",
                                       "make_divisible", "index", NULL};
    static const char *const begins[] = {"at_", "entry_", "turn_", "when_", "branches_", NULL};
    bool is_free = hwnas_py_is_free(text);
    for (size_t i = 0; ours[i]; i++)
        is_free = is_free && strcmp(ours[i], text) != 0;
    for (size_t i = 0; begins[i]; i++)
        is_free = is_free && !hwnas_starts_with(text, begins[i]);
    return is_free ? text : hwnas_arena_join(w->arena, text, "_", "");
}

/* A variable. Blocks have variables of their own, and Python's functions have not: the first of a
 * name has it, others the number of their slot behind it. Parameters are the first. */
static const char *variable(writer *w, const char *text, int slot)
{
    for (int i = 0; w->scope && i < slot; i++)
        if (!strcmp(w->scope->slot_names[i], text))
            return hwnas_arena_printf(w->arena, "%s_%d_", text, slot);
    return free_name(w, text);
}

/* The function of a template. */
static const char *function(writer *w, const hwnas_template *t)
{
    return hwnas_arena_join(w->arena, "run_", t->name, "");
}

static const char *prefix(writer *w)
{
    return w->at ? hwnas_arena_printf(w->arena, "at_%d", w->at) : "at";
}

/* ---- Expressions ---- */

static const hwnas_py *convert(writer *w, const hwnas_expr *expr);

static const hwnas_py *call(writer *w, const char *callee, size_t n, const hwnas_py *const *args)
{
    return hwnas_py_make(w->arena, HWNAS_PY_CALL, callee, n, args);
}

static const hwnas_py *word(writer *w, const char *text)
{
    return hwnas_py_value(w->arena, (hwnas_value){.kind = HWNAS_VALUE_SYMBOL, .s = text});
}

static const hwnas_py *convert_operator(writer *w, const hwnas_expr *expr,
                                        const hwnas_py *const *args)
{
    const hwnas_operator op = (hwnas_operator)expr->op;
    if (op == HWNAS_OPERATOR_DIV)
        return call(w, "divide", 2, args);
    const hwnas_py *made = hwnas_py_operator(w->arena, op, expr->n_args, args);
    if (op == HWNAS_OPERATOR_AND || op == HWNAS_OPERATOR_OR) /* Python's give an operand */
        return call(w, "bool", 1, &made);
    return made;
}

static const char *python_function(const char *called)
{
    return !strcmp(called, "ceil")    ? "math.ceil"
           : !strcmp(called, "floor") ? "math.floor"
           : !strcmp(called, "sqrt")  ? "square_root"
                                      : called;
}

static const hwnas_py *convert(writer *w, const hwnas_expr *expr)
{
    const hwnas_py **args = hwnas_arena_alloc(w->arena, (expr->n_args + 1) * sizeof *args);
    for (size_t i = 0; i < expr->n_args; i++)
        args[i] = convert(w, expr->args[i]);
    switch (expr->kind) {
    case HWNAS_EXPR_LITERAL:
        return hwnas_py_value(w->arena, expr->value);
    case HWNAS_EXPR_VARIABLE:
        return name(w, variable(w, expr->name, expr->slot));
    case HWNAS_EXPR_CHOICE:
        return name(w, hwnas_arena_printf(w->arena, "c[\"%s\"]",
                                          w->shared->space->choices[expr->slot].name));
    case HWNAS_EXPR_TENSOR: {
        const hwnas_py *of[] = {name(w, "x"), word(w, hwnas_tensor_names[expr->slot])};
        return call(w, "fact", 2, of);
    }
    case HWNAS_EXPR_LIST:
        return hwnas_py_make(w->arena, HWNAS_PY_LIST, NULL, expr->n_args, args);
    case HWNAS_EXPR_OPERATOR:
        return convert_operator(w, expr, args);
    case HWNAS_EXPR_CALL:
        break;
    }
    return call(w, python_function(hwnas_functions[expr->op].name), expr->n_args, args);
}

/* In one line; of the arena. */
static const char *text_of(writer *w, const hwnas_expr *expr)
{
    char *text = hwnas_py_text(convert(w, expr));
    const char *kept = hwnas_arena_printf(w->arena, "%s", text);
    free(text);
    return kept;
}

/* ---- Statements ---- */

static void write_body(writer *w, int indent, const hwnas_body *body);

/* x = CALLEE(FIRST..., NAME=VALUE, ...) */
static void write_call(writer *w, int indent, const char *callee, const hwnas_stmt *stmt,
                       size_t n_first, const hwnas_py *const *first)
{
    const hwnas_py **args =
        hwnas_arena_alloc(w->arena, (n_first + stmt->n_args + 1) * sizeof *args);
    size_t n = 0;
    for (size_t i = 0; i < n_first; i++)
        args[n++] = first[i];
    for (size_t i = 0; i < stmt->n_args; i++) {
        const hwnas_py *value = convert(w, stmt->args[i].value);
        const char *keyword = stmt->call ? free_name(w, stmt->args[i].name) : stmt->args[i].name;
        args[n++] = hwnas_py_make(w->arena, HWNAS_PY_KEYWORD, keyword, 1, &value);
    }
    hwnas_py_layout(w->out, indent, "x = ", call(w, callee, n, args), "");
}

static const hwnas_py *place_of(writer *w, const hwnas_stmt *stmt, const char *end)
{
    const char *label = hwnas_shared_label(w->shared, stmt);
    const hwnas_py *parts[] = {name(w, prefix(w)),
                               word(w, hwnas_arena_join(w->arena, label, end, ""))};
    return hwnas_py_operator(w->arena, HWNAS_OPERATOR_ADD, 2, parts);
}

static void write_layer(writer *w, int indent, const hwnas_stmt *stmt)
{
    const hwnas_py *first[] = {name(w, "net"), name(w, "x"), NULL, name(w, "c")};
    if (stmt->call) {
        first[2] = place_of(w, stmt, "/");
        write_call(w, indent, function(w, stmt->call), stmt, 4, first);
        return;
    }
    first[2] = place_of(w, stmt, "");
    write_call(w, indent, hwnas_arena_join(w->arena, "net.", stmt->name, ""), stmt, 2, first + 1);
}

static void write_join(writer *w, int indent, const hwnas_stmt *stmt)
{
    const int n = ++w->n_blocks;
    hwnas_py_line(w->out, indent, "entry_%d, branches_%d = x, []", n, n);
    for (size_t i = 0; i < stmt->n_bodies; i++) {
        if (i)
            hwnas_py_line(w->out, indent, "x = entry_%d", n);
        write_body(w, indent, &stmt->bodies[i]);
        hwnas_py_line(w->out, indent, "branches_%d.append(x)", n);
    }
    hwnas_py_line(w->out, indent, "x = entry_%d", n);
    const hwnas_py *first[] = {name(w, hwnas_arena_printf(w->arena, "branches_%d", n)),
                               place_of(w, stmt, "")};
    write_call(w, indent, hwnas_arena_join(w->arena, "net.", stmt->name, ""), stmt, 2, first);
}

static void write_residual(writer *w, int indent, const hwnas_stmt *stmt)
{
    const int n = ++w->n_blocks;
    hwnas_py_line(w->out, indent, "entry_%d = x", n);
    if (stmt->expr)
        hwnas_py_line(w->out, indent, "when_%d = %s", n, text_of(w, stmt->expr));
    write_body(w, indent, &stmt->bodies[0]);
    if (stmt->expr)
        hwnas_py_line(w->out, indent, "if when_%d:", n);
    hwnas_py_line(w->out, indent + (stmt->expr ? STEP : 0), "x = x + entry_%d", n);
}

static void write_block(writer *w, int indent, const hwnas_body *body)
{
    if (!body->n)
        hwnas_py_line(w->out, indent, "pass");
    write_body(w, indent, body);
}

static void write_if(writer *w, int indent, const hwnas_stmt *stmt)
{
    hwnas_py_line(w->out, indent, "if %s:", text_of(w, stmt->expr));
    write_block(w, indent + STEP, &stmt->bodies[0]);
    if (stmt->n_bodies < 2)
        return;
    hwnas_py_line(w->out, indent, "else:");
    write_block(w, indent + STEP, &stmt->bodies[1]);
}

static void write_switch(writer *w, int indent, const hwnas_stmt *stmt)
{
    const char *value = text_of(w, stmt->expr);
    const int n = ++w->n_blocks;
    hwnas_py_line(w->out, indent, "when_%d = %s", n, value);
    for (size_t i = 0; i < stmt->n_bodies; i++) {
        char *label = hwnas_py_text(hwnas_py_value(w->arena, stmt->labels[i]));
        hwnas_py_line(w->out, indent, "%s when_%d == %s:", i ? "elif" : "if", n, label);
        free(label);
        write_block(w, indent + STEP, &stmt->bodies[i]);
    }
    if (!stmt->n_bodies)
        return;
    hwnas_py_line(w->out, indent, "else:");
    hwnas_py_line(w->out, indent + STEP, "raise ValueError(f\"there is no case for {when_%d}\")", n);
}

/* The statements of a loop, whose names begin with its turn. */
static void write_turns(writer *w, int indent, const hwnas_stmt *stmt, int n)
{
    const int outer = w->at;
    const char *before = prefix(w);
    w->at = n;
    hwnas_py_line(w->out, indent, "at_%d = f\"{%s}{turn_%d}/\"", n, before, n);
    write_body(w, indent, &stmt->bodies[0]);
    w->at = outer;
}

static void write_for(writer *w, int indent, const hwnas_stmt *stmt)
{
    const int n = ++w->n_blocks;
    hwnas_str names = {0}, lists = {0};
    for (size_t i = 0; i < stmt->n_args; i++) {
        hwnas_str_addf(&names, "%s%s", i ? ", " : "",
                       variable(w, stmt->args[i].name, stmt->args[i].slot));
        hwnas_str_addf(&lists, "%s%s", i ? ", " : "", text_of(w, stmt->args[i].value));
    }
    hwnas_py_line(w->out, indent, "for turn_%d, (%s,) in enumerate(zip(%s)):", n, names.s,
                  lists.s);
    hwnas_str_done(&names);
    hwnas_str_done(&lists);
    write_turns(w, indent + STEP, stmt, n);
}

static void write_repeat(writer *w, int indent, const hwnas_stmt *stmt)
{
    const int n = ++w->n_blocks;
    hwnas_py_line(w->out, indent, "for turn_%d in range(%s):", n, text_of(w, stmt->expr));
    hwnas_py_line(w->out, indent + STEP, "%s = turn_%d", variable(w, stmt->name, stmt->slot), n);
    write_turns(w, indent + STEP, stmt, n);
}

static void write_let(writer *w, int indent, const hwnas_stmt *stmt)
{
    for (size_t i = 0; i < stmt->n_args; i++)
        hwnas_py_line(w->out, indent, "%s = %s",
                      variable(w, stmt->args[i].name, stmt->args[i].slot),
                      text_of(w, stmt->args[i].value));
}

static void write_tensor(writer *w, int indent, const hwnas_stmt *stmt)
{
    const char *index = stmt->expr ? text_of(w, stmt->expr) : "0";
    if (stmt->kind == HWNAS_STMT_AS)
        hwnas_py_line(w->out, indent, "named[\"%s\", %s] = x", stmt->name, index);
    else if (stmt->kind == HWNAS_STMT_OUTPUT)
        hwnas_py_line(w->out, indent, "net.output = x");
    else if (stmt->is_input)
        hwnas_py_line(w->out, indent, "x = net.input");
    else
        hwnas_py_line(w->out, indent, "x = named[\"%s\", %s]", stmt->name, index);
}

static void write_body(writer *w, int indent, const hwnas_body *body)
{
    static void (*const write[])(writer *, int, const hwnas_stmt *) = {
        [HWNAS_STMT_LAYER] = write_layer,   [HWNAS_STMT_JOIN] = write_join,
        [HWNAS_STMT_RESIDUAL] = write_residual, [HWNAS_STMT_LET] = write_let,
        [HWNAS_STMT_IF] = write_if,         [HWNAS_STMT_SWITCH] = write_switch,
        [HWNAS_STMT_FOR] = write_for,       [HWNAS_STMT_REPEAT] = write_repeat,
        [HWNAS_STMT_AS] = write_tensor,     [HWNAS_STMT_FROM] = write_tensor,
        [HWNAS_STMT_OUTPUT] = write_tensor,
    };
    for (size_t i = 0; i < body->n; i++)
        write[body->stmts[i]->kind](w, indent, body->stmts[i]);
}

/* ---- The file ---- */

static void write_template(writer *w, const hwnas_template *t)
{
    hwnas_str parameters = {0};
    w->scope = t;
    for (size_t i = 0; i < t->n_parameters; i++)
        hwnas_str_addf(&parameters, ", %s%s", free_name(w, t->parameters[i].name),
                       t->parameters[i].fallback ? "=None" : "");
    hwnas_str_addf(w->out, "\n\ndef %s(net, x, at, c%s%s):\n", function(w, t),
                   t->n_parameters ? ", *" : "", parameters.s ? parameters.s : "");
    hwnas_str_done(&parameters);
    for (size_t i = 0; i < t->n_parameters; i++)
        if (t->parameters[i].fallback) {
            const char *parameter = free_name(w, t->parameters[i].name);
            hwnas_py_line(w->out, STEP, "if %s is None:", parameter);
            hwnas_py_line(w->out, 2 * STEP, "%s = %s", parameter, text_of(w, t->parameters[i].fallback));
        }
    if (t->n_tensors)
        hwnas_py_line(w->out, STEP, "named = {}");
    w->n_blocks = w->at = 0;
    write_body(w, STEP, &t->body);
    w->scope = NULL;
    hwnas_py_line(w->out, STEP, "return x");
}

static const hwnas_value *value_of(const hwnas_gene *gene, size_t i)
{
    return &gene->values[i];
}

static void write_value(writer *w, const hwnas_value *value)
{
    char *text = hwnas_py_text(hwnas_py_value(w->arena, *value));
    hwnas_str_add(w->out, text);
    free(text);
}

/* (values, places of the values from the smallest to the greatest or None, labels) */
static void write_gene(writer *w, size_t g)
{
    const hwnas_gene *gene = &w->shared->space->genes[g];
    size_t n = 0, *place = hwnas_arena_alloc(w->arena, gene->n_values * sizeof *place);
    hwnas_str_add(w->out, "([");
    for (size_t v = 0; v < gene->n_values; v++)
        if (hwnas_gene_keeps(gene, v)) {
            hwnas_str_add(w->out, n ? ", " : "");
            write_value(w, value_of(gene, v));
            place[v] = n++;
        }
    hwnas_str_add(w->out, "], ");
    hwnas_str_add(w->out, w->shared->n_ordered[g] ? "[" : "None");
    for (size_t i = 0; i < w->shared->n_ordered[g]; i++)
        hwnas_str_addf(w->out, "%s%zu", i ? ", " : "", place[w->shared->order[g][i]]);
    hwnas_str_add(w->out, w->shared->n_ordered[g] ? "], [" : ", [");
    n = 0;
    for (size_t v = 0; v < gene->n_values; v++)
        if (hwnas_gene_keeps(gene, v))
            hwnas_str_addf(w->out, "%s\"%s\"", n++ ? ", " : "", gene->labels[v]);
    hwnas_str_add(w->out, "])");
}

static void write_choices(writer *w)
{
    const hwnas_space *space = w->shared->space;
    hwnas_str_add(w->out,
                  "\n\n# By choice: whether it is a list, and of each position the values, which of "
                  "them are parts of which\n# (their places, from the smallest to the greatest; "
                  "None: they are alternatives), and their spelling in codes.\nCHOICES = {\n");
    for (size_t i = 0; i < space->n_choices; i++) {
        const hwnas_choice *choice = &space->choices[i];
        hwnas_str_addf(w->out, "    \"%s\": (%s, [\n", choice->name,
                       choice->is_vector ? "True" : "False");
        for (size_t p = 0; p < choice->n_positions; p++) {
            hwnas_str_add(w->out, "        ");
            write_gene(w, choice->first_gene + p);
            hwnas_str_add(w->out, ",\n");
        }
        hwnas_str_add(w->out, "    ]),\n");
    }
    hwnas_str_add(w->out, "}\n\nLARGEST = {\n");
    const hwnas_value *largest = hwnas_arch_values(w->shared->largest, w->arena);
    for (size_t i = 0; i < space->n_choices; i++) {
        hwnas_str_addf(w->out, "    \"%s\": ", space->choices[i].name);
        write_value(w, &largest[i]);
        hwnas_str_add(w->out, ",\n");
    }
    hwnas_str_add(w->out, "}\n\nSHAPES = {\n");
    for (size_t i = 0; i < w->shared->n_weights; i++) {
        const hwnas_shared_weight *weight = &w->shared->weights[i];
        if (!weight->is_learned)
            continue;
        hwnas_str_addf(w->out, "    \"%s\": (", weight->name);
        for (int d = 0; d < weight->rank; d++)
            hwnas_str_addf(w->out, "%s%lld", d ? ", " : "", (long long)weight->dims[d]);
        hwnas_str_addf(w->out, "%s),\n", weight->rank == 1 ? "," : "");
    }
    hwnas_str_add(w->out, "}\n");
}

static void write_rules(writer *w)
{
    const hwnas_space *space = w->shared->space;
    hwnas_str_add(w->out, "\n\ndef settled(c):\n"
                          "    \"\"\"What does not count stands at its first value.\"\"\"\n");
    for (size_t i = 0; i < space->n_choices; i++) {
        const hwnas_choice *choice = &space->choices[i];
        if (!choice->when)
            continue;
        hwnas_py_line(w->out, STEP, "for i in range(%zu):", choice->n_positions);
        hwnas_py_line(w->out, 2 * STEP, "if not %s:", text_of(w, choice->when));
        hwnas_py_line(w->out, 3 * STEP, "c[\"%s\"]%s = CHOICES[\"%s\"][1][i][0][0]", choice->name,
                      choice->is_vector ? "[i]" : "", choice->name);
    }
    hwnas_str_add(w->out, "    return c\n\n\ndef allowed(c):\n"
                          "    \"\"\"Whether the space's constraints hold.\"\"\"\n    return True");
    for (size_t i = 0; i < space->n_constraints; i++)
        hwnas_str_addf(w->out, " and bool(%s)", text_of(w, space->constraints[i]));
    hwnas_str_add(w->out, "\n\n\ndef build():\n    return SharedNet(run_network, CHOICES, LARGEST, "
                          "SHAPES, settled, allowed)\n");
}

static void write_network(writer *w)
{
    hwnas_template network = *w->shared->space->network;
    network.name = "network";
    network.n_parameters = 0;
    write_template(w, &network);
}

hwnas_status hwnas_supernet_write(const char *path, const hwnas_shared *shared)
{
    enum { MAX_BYTES = 1 << 20 };
    const hwnas_space *space = shared->space;
    hwnas_status status = HWNAS_OK;
    char *head = NULL, *from = hwnas_printf("%s/training/shared.py", hwnas_data_root());
    size_t length;
    hwnas_str text = {0};
    writer w = {.out = &text, .arena = hwnas_arena_new(), .shared = shared};
    TRY_OUT(hwnas_file_read_text(&head, &length, from, MAX_BYTES));
    hwnas_str_addf(&text, "# The space %s: all of its networks, which share their weights.\n",
                   space->name);
    hwnas_str_addn(&text, head, length);
    for (size_t i = 0; i < space->n_templates; i++)
        if (space->templates[i] != space->network)
            write_template(&w, space->templates[i]);
    write_network(&w);
    write_choices(&w);
    write_rules(&w);
    TRY_OUT(hwnas_file_write(path, text.s, text.n));
out:
    hwnas_str_done(&text);
    hwnas_arena_free(w.arena);
    free(head);
    free(from);
    return status;
}
