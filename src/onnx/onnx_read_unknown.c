/* onnx_read_unknown.c: what is said of an operator that is not read. */
#include <string.h>

#include "base/str.h"
#include "onnx/onnx_reader.h"

/* Operators that no fixed plan of a network can hold, and why. */
static const struct {
    const char *type, *why;
} never[] = {
    {"Loop", "how often its body runs is found in the run"},
    {"Multinomial", "what it gives is drawn at random"},
    {"NonMaxSuppression", "how many boxes are left depends on the input"},
    {"NonZero", "how many values it gives depends on the input"},
    {"Scan", "its body is a network of its own"},
    {"SequenceAt", "a sequence of tensors has no shape"},
    {"SequenceConstruct", "a sequence of tensors has no shape"},
    {"SequenceEmpty", "a sequence of tensors has no shape"},
    {"SequenceInsert", "a sequence of tensors has no shape"},
    {"SplitToSequence", "a sequence of tensors has no shape"},
    {"StringNormalizer", "texts are no numbers"},
    {"TfIdfVectorizer", "texts are no numbers"},
    {"Unique", "how many values it gives depends on the input"},
};

/* "'a', 'b'": names of what is computed, of the first few. */
static void add_names(hwnas_str *out, const hwnas_onnx_reader *r, const Onnx__NodeProto *node)
{
    enum { MOST = 3 };
    int n = 0;
    for (size_t i = 0; i < node->n_input && n < MOST; i++) {
        const hwnas_onnx_named *value = hwnas_onnx_find_value(r, node->input[i]);
        if (value && !value->constant && !value->input && !value->is_missing)
            hwnas_str_addf(out, "%s'%.60s'", n++ ? ", " : "", node->input[i]);
    }
}

/* Where a network can be cut in front of the node, else nothing. */
static void add_cut(hwnas_str *out, const hwnas_onnx_reader *r, const Onnx__NodeProto *node)
{
    hwnas_str names = {0};
    add_names(&names, r, node);
    if (names.n)
        hwnas_str_addf(out,
                       "export the network without what follows %s "
                       "(onnx.utils.extract_model cuts a file there), or ",
                       names.s);
    hwnas_str_done(&names);
}

hwnas_status hwnas_onnx_refuse_unknown(const hwnas_onnx_reader *r, const Onnx__NodeProto *node)
{
    const bool is_standard = hwnas_onnx_is_standard(node);
    const hwnas_onnx_text who = hwnas_onnx_describe(node);
    const char *why = NULL;
    hwnas_str cut = {0};
    for (size_t i = 0; is_standard && i < sizeof never / sizeof *never; i++)
        why = strcmp(never[i].type, node->op_type) ? why : never[i].why;
    hwnas_status status =
        why ? hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s cannot be in a network here: %s", who.s,
                         why)
            : hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "%s: the operator %s%s%s is unknown to us",
                         who.s, is_standard ? "" : node->domain, is_standard ? "" : ".",
                         node->op_type);
    if (is_standard)
        add_cut(&cut, r, node);
    status = hwnas_hint(status,
                        "%s%s'hwnas profile FILE --skip-unsupported' measures the rest; "
                        "docs/operators.md has what is read",
                        is_standard ? "" : "take the file from before an optimiser rewrote it; ",
                        cut.n ? cut.s : "");
    hwnas_str_done(&cut);
    return status;
}
