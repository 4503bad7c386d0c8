/* torch_print.c: the file as text: what is said of it, the helpers, the classes, how it is used.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "export/torch_helpers.h"
#include "export/torch_print.h"

/* Text for the inside of a docstring, broken at blanks and commas. */
static void add_prose(hwnas_str *out, const char *text)
{
    enum { WIDTH = 79 };
    size_t column = 0;
    while (*text) {
        size_t n = strcspn(text, " ,\n");
        n += text[n] == ',';
        if (column && column + n > WIDTH) {
            while (out->n && out->s[out->n - 1] == ' ')
                out->s[--out->n] = '\0';
            hwnas_str_add(out, "\n");
            column = 0;
        }
        for (size_t i = 0; i < n; i++) {
            hwnas_str_add(out,
                          text[i] == '\\' || (text[i] == '"' && text[i + 1] == '"') ? "\\" : "");
            hwnas_str_addn(out, text + i, 1);
        }
        column += n;
        text += n;
        if (*text == ' ' || *text == '\n') {
            hwnas_str_add(out, column ? " " : "");
            column++;
            text++;
        }
    }
    hwnas_str_add(out, "\n");
}

static void add_prosef(hwnas_str *out, const char *format, ...) HWNAS_PRINTF(2, 3);
static void add_prosef(hwnas_str *out, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    char *text = hwnas_vprintf(format, ap);
    va_end(ap);
    add_prose(out, text);
    free(text);
}

/* ---- Classes ---- */

/* The classes that were printed, with their bodies: of those that would be written alike there is
 * one. */
typedef struct printed {
    const hwnas_torch_file *module;
    const char *
        *bodies; /* what is behind the name, for each class; NULL: another is written alike */
} printed;

static bool is_name_taken(const printed *p, const char *name)
{
    for (size_t i = 0; i < p->module->n_classes; i++) {
        const char *other = p->module->classes[i]->callee->text;
        if (other && !strcmp(other, name))
            return true;
    }
    for (size_t i = 0; hwnas_torch_helpers[i].name; i++)
        if (!strcmp(hwnas_torch_helpers[i].name, name))
            return true;
    return false;
}

/* After the template or the network, numbered where one template is several classes. */
static const char *new_name(const printed *p, const hwnas_class *class)
{
    hwnas_arena *arena = p->module->arena;
    const char *name = hwnas_py_class_name(arena, class->label);
    size_t n_same = 0;
    for (size_t i = 0; i < p->module->n_classes; i++)
        n_same += p->bodies[i] && p->module->classes[i]->is_network == class->is_network &&
                  !strcmp(p->module->classes[i]->label, class->label);
    if (n_same)
        name = hwnas_arena_printf(arena,
                                  strchr("0123456789", name[strlen(name) - 1]) ? "%s_%zu" : "%s%zu",
                                  name, n_same + 1);
    while (is_name_taken(p, name) || !hwnas_py_is_free(name)) /* None */
        name = hwnas_arena_printf(arena, "%s%s", name, class->is_network ? "Net" : "Block");
    return name;
}

static const char *body_of(const hwnas_class *class)
{
    const bool has_init = class->n_parts || class->out_variable;
    const bool is_plain = hwnas_class_is_plain(class);
    hwnas_str body = {0};
    hwnas_str_addf(&body, "(nn.%s):\n", is_plain ? "Sequential" : "Module");
    if (has_init)
        hwnas_class_print_init(&body, class);
    if (!is_plain) {
        hwnas_str_add(&body, has_init ? "\n" : "");
        hwnas_class_print_forward(&body, class);
    }
    const char *copy = hwnas_arena_string(class->module->arena, body.s, body.n);
    hwnas_str_done(&body);
    return copy;
}

/* Gives the class its name, which those that use it have in their bodies. */
static void print_class(hwnas_str *out, printed *p, size_t index)
{
    hwnas_class *class = p->module->classes[index];
    const char *body = body_of(class);
    for (size_t i = 0; i < index; i++) {
        const hwnas_class *other = p->module->classes[i];
        if (p->bodies[i] && other->is_network == class->is_network &&
            !strcmp(other->label, class->label) && !strcmp(p->bodies[i], body)) {
            class->callee->text = other->callee->text;
            return;
        }
    }
    class->callee->text = new_name(p, class);
    p->bodies[index] = body;
    hwnas_str_addf(out, "\n\nclass %s%s", class->callee->text, body);
}

/* ---- Before and behind them ---- */

static void print_head(hwnas_str *out, const hwnas_torch_file *module, const char *classes)
{
    hwnas_str_add(out, "\"\"\"");
    add_prosef(out, "%s", module->title);
    if (module->about) {
        hwnas_str_add(out, "\n");
        add_prosef(out, "%s.", module->about);
    }
    hwnas_str_add(out, "\n");
    add_prosef(out, "%s.", module->facts);
    add_prosef(out, "Written by hwnas %s.", hwnas_version());
    hwnas_str_add(out, "\"\"\"\n\n");
    hwnas_str_add(out, module->weights ? "import json\nimport pathlib\n\n" : "");
    hwnas_str_add(out, strstr(classes, "math.") ? "import math\n\n" : "");
    hwnas_str_add(out, "import torch\n");
    hwnas_str_add(out, strstr(classes, "F.") ? "import torch.nn.functional as F\n" : "");
    hwnas_str_add(out, "from torch import nn\n");
    for (size_t i = 0; hwnas_torch_helpers[i].name; i++)
        if (module->needs[i])
            hwnas_str_addf(out, "\n\n%s", hwnas_torch_helpers[i].text);
}

static void print_build(hwnas_str *out, const hwnas_torch_file *module, const hwnas_class *network)
{
    const char *class = network->callee->text;
    if (module->weights) {
        hwnas_str_addf(out,
                       "\n\ndef build(weights=\"%s\"):\n"
                       "    \"\"\"The network, with the weights of a file beside this one.\"\"\"\n"
                       "    model = %s()\n"
                       "    if weights:\n"
                       "        path = pathlib.Path(__file__).parent / weights\n"
                       "        model.load_state_dict(load_weights(path))\n"
                       "    return model\n",
                       module->weights, class);
    } else if (network->n_outputs) {
        char *value = hwnas_py_text(network->n_outputs_value);
        const char *name = network->n_outputs->text;
        hwnas_str_addf(out, "\n\ndef build(%s=%s):\n", name, value);
        hwnas_str_add(out, "    \"\"\"The network with fresh weights.\"\"\"\n");
        hwnas_str_addf(out, "    return %s(%s)\n", class, name);
        free(value);
    } else {
        hwnas_str_add(out, "\n\ndef build():\n    \"\"\"The network with fresh weights.\"\"\"\n");
        hwnas_str_addf(out, "    return %s()\n", class);
    }
}

/* python3 FILE tries the network. */
static void print_main(hwnas_str *out, const hwnas_torch_file *module, const char *classes)
{
    hwnas_str_add(out, "\n\n"
                       "if __name__ == \"__main__\":\n"
                       "    model = build().eval()\n");
    if (!module->is_by_name) {
        hwnas_str_addf(out, "    with torch.no_grad():\n        output = model(%s)\n",
                       module->examples[0].text);
    } else {
        hwnas_str_add(out, "    inputs = dict(\n");
        for (size_t i = 0; i < module->n_examples; i++)
            hwnas_str_addf(out, "        %s=%s,\n", module->examples[i].name,
                           module->examples[i].text);
        hwnas_str_add(out, "    )\n"
                           "    with torch.no_grad():\n"
                           "        output = model(**inputs)\n");
    }
    hwnas_str_addf(out, "    parameters = sum(p.numel() for p in model.parameters()%s)\n",
                   strstr(classes, "biases=") ? " if p.requires_grad" : "");
    hwnas_str_add(
        out, module->has_many_outputs
                 ? "    shapes = \", \".join(str(tuple(y.shape)) for y in output)\n"
                   "    print(f\"outputs {shapes}, {parameters:,} parameters\")\n"
                 : "    print(f\"output {tuple(output.shape)}, {parameters:,} parameters\")\n");
}

void hwnas_torch_file_print(hwnas_str *out, const hwnas_torch_file *module)
{
    printed p = {.module = module};
    hwnas_str classes = {0};
    p.bodies = hwnas_arena_alloc(module->arena, module->n_classes * sizeof *p.bodies);
    for (size_t i = 0; i < module->n_classes; i++)
        if (!module->classes[i]->is_empty)
            print_class(&classes, &p, i);
    print_head(out, module, classes.s);
    hwnas_str_add(out, classes.s);
    print_build(out, module, module->classes[module->n_classes - 1]);
    print_main(out, module, classes.s);
    hwnas_str_done(&classes);
}
