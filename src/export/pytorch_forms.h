/* pytorch_forms.h: what rows of pytorch_ops.c point to. Private to export/. */
#ifndef HWNAS_EXPORT_PYTORCH_FORMS_H
#define HWNAS_EXPORT_PYTORCH_FORMS_H

#include "export/pytorch_priv.h"

#define HWNAS_TORCH_SPELL(op)                                                                      \
    const hwnas_py *hwnas_torch_spell_##op(hwnas_torch_scope *s, const hwnas_stmt *stmt,           \
                                           const hwnas_torch_observed *seen)
#define HWNAS_TORCH_FORM(op)                                                                       \
    hwnas_torch_form hwnas_torch_form_##op(hwnas_torch_scope *s, const hwnas_stmt *stmt,           \
                                           const hwnas_torch_observed *seen)
HWNAS_TORCH_SPELL(expand);
HWNAS_TORCH_SPELL(gelu);
HWNAS_TORCH_SPELL(group_norm);
HWNAS_TORCH_SPELL(gru);
HWNAS_TORCH_SPELL(layer_norm);
HWNAS_TORCH_SPELL(lstm);
HWNAS_TORCH_SPELL(mean);
HWNAS_TORCH_SPELL(reshape);
HWNAS_TORCH_SPELL(slice);
HWNAS_TORCH_SPELL(tied_linear);
HWNAS_TORCH_SPELL(transpose);
HWNAS_TORCH_SPELL(upsample);
HWNAS_TORCH_SPELL(weight);
HWNAS_TORCH_FORM(erf);
HWNAS_TORCH_FORM(expand);
HWNAS_TORCH_FORM(mean);
HWNAS_TORCH_FORM(reshape);
HWNAS_TORCH_FORM(scale);
HWNAS_TORCH_FORM(slice);
HWNAS_TORCH_FORM(softmax);
HWNAS_TORCH_FORM(transpose);
HWNAS_TORCH_FORM(weight);

#endif
