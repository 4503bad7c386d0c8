/* pytorch_channels.c: the number of channels where branches meet. */
#include <string.h>

#include "export/pytorch_priv.h"
#include "space/expr.h"

static const char *const entry_wishes[] = {"entry_channels", "block_in", NULL};
static const char *const joined_wishes[] = {"joined", "joined_channels", NULL};

/* The channels of branches that follow each other. */
static const hwnas_py *sum_of(hwnas_torch_scope *s, size_t n, const hwnas_py *const *terms)
{
    const hwnas_py *sum = terms[0];
    bool are_equal = true;
    for (size_t i = 1; i < n; i++)
        are_equal = are_equal && /* in meaning */
                    hwnas_py_equal(hwnas_py_replace(s->arena, terms[i], 0, NULL, NULL),
                                   hwnas_py_replace(s->arena, terms[0], 0, NULL, NULL));
    for (size_t i = are_equal ? n - 1 : 1; i < n; i++) {
        const hwnas_py *sides[] = {sum, are_equal ? hwnas_py_int(s->arena, (int64_t)n) : terms[i]};
        sum = hwnas_torch_fold(
            s, hwnas_py_operator(s->arena, are_equal ? HWNAS_OPERATOR_MUL : HWNAS_OPERATOR_ADD, 2,
                                 sides));
    }
    return sum;
}

/* Goes on with so many channels: a formula gets a name, since what follows may need it often. */
static void set_channels(hwnas_torch_scope *s, hwnas_sequence *to, const hwnas_py *channels)
{
    s->in = channels;
    if (hwnas_py_is_plain(channels))
        return;
    if (hwnas_py_mentions(channels, s->channels)) {
        hwnas_torch_assign_channels(s, hwnas_torch_target(s, to), channels);
        return;
    }
    hwnas_py_name *name = hwnas_torch_name(s, joined_wishes, true);
    name->meaning = channels;
    hwnas_torch_assign(s, hwnas_torch_target(s, to), name, channels);
    s->in = hwnas_py_of(s->arena, name);
}

void hwnas_torch_pin_channels(hwnas_torch_scope *s, hwnas_sequence *to)
{
    if (!hwnas_torch_is_running(s, s->in))
        return;
    hwnas_py_name *entry = hwnas_torch_name(s, entry_wishes, true);
    hwnas_torch_assign(s, hwnas_torch_target(s, to), entry, s->in);
    s->in = hwnas_py_of(s->arena, entry);
}

/* The widest of branches that are added: others are repeated. Where they are not known, the one
 * that was the widest in the graph. */
static const hwnas_py *widest_of(const hwnas_torch_scope *s, const hwnas_stmt *stmt,
                                 const hwnas_py *const *exits)
{
    const hwnas_py *widest = exits[0];
    for (size_t i = 0; i < stmt->n_bodies; i++) {
        if (!hwnas_py_is_value(exits[i]))
            return exits[hwnas_export_saw(s->export, stmt)->value];
        if (exits[i]->value.i > widest->value.i)
            widest = exits[i];
    }
    return widest;
}

int64_t hwnas_torch_join_axis(hwnas_torch_scope *s, const hwnas_stmt *stmt)
{
    const hwnas_torch_observed *seen = hwnas_export_seen(s->export, stmt);
    const hwnas_attr_row *row = hwnas_op_by_name(stmt->name)->attrs;
    int64_t axis = 1;
    if (row->name && !strcmp(row->name, "axis"))
        axis = hwnas_torch_known(s, stmt, "axis");
    return axis < 0 && seen ? axis + seen->after.n + 1 : axis;
}

/* Those that are added or follow each other are known from the branches. */
void hwnas_torch_join_channels(hwnas_torch_scope *s, const hwnas_stmt *stmt, int64_t axis,
                               const hwnas_py *const *exits, hwnas_sequence *to)
{
    const hwnas_torch_observed seen = hwnas_torch_seen(s, stmt, stmt->name);
    const bool is_along = axis == hwnas_tensor_dimension(0, seen.after.n) + 1; /* 0 is the batch */
    if (!strcmp(stmt->name, "concat"))
        set_channels(s, to, is_along ? sum_of(s, stmt->n_bodies, exits) : exits[0]);
    else if (hwnas_torch_join_of(stmt->name)->infix && strcmp(stmt->name, "matmul"))
        set_channels(s, to, widest_of(s, stmt, exits));
    else
        set_channels(s, to, hwnas_torch_channels(s, &seen));
}
