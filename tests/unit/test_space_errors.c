/* test_space_errors.c: everything that a user can write wrongly in a space, with the place and the
 * words of the message, and files made to break their reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "tests/unit/space_fixture.h"

/* Reads and checks; the failure, or HWNAS_OK. */
static hwnas_status try_text(const char *text, size_t length)
{
    hwnas_space *space = NULL;
    hwnas_status status = hwnas_space_parse(&space, "test.yaml", text, length, NULL);
    if (status == HWNAS_OK)
        status = hwnas_graph_check(space);
    else
        assert_null(space);
    hwnas_space_free(space);
    return status;
}

/* Counts what is not as expected; HWNAS_SHOW prints every message, to be judged by a reader. */
static int n_wrong;

static void expect_failure(const char *text, size_t length, int line, int column, const char *word,
                           const char *hint)
{
    clock_t start = clock();
    hwnas_status status = try_text(text, length);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    const hwnas_error *e = hwnas_last_error();
    if (getenv("HWNAS_SHOW"))
        fprintf(stderr, "%s\n\n", status == HWNAS_OK ? "nothing" : describe());
    bool right = status == HWNAS_E_INPUT && !strcmp(e->file, "test.yaml") && e->line == line &&
                 e->column == column && strstr(e->message, word) &&
                 (!hint || strstr(e->hint, hint)) && !strchr(e->message, '\n') &&
                 !strchr(e->hint, '\n') && seconds < 10; /* one, and room for sanitizers */
    if (right)
        return;
    n_wrong++;
    print_message("# expected %d:%d '%s' '%s', got after %.1f s:\n# %s\n# of: %.300s\n", line,
                  column, word, hint ? hint : "", seconds,
                  status == HWNAS_OK ? "no failure" : describe(), text);
}

#define HEAD "hwnas: 1\nname: bad\ninput: {image: [3, 8, 8]}\n" /* three lines */
#define NET HEAD "network:\n"                                   /* four lines */
#define SEQUENCE "hwnas: 1\nname: bad\ninput: {x: [16, 64]}\n"      /* three lines */
#define CLIP "hwnas: 1\nname: bad\ninput: {x: [6, 4, 8, 8]}\nnetwork:\n" /* four lines */
#define CHOICES(text) HEAD "choices:\n" text "network:\n  - relu\n"
#define TEMPLATES(text) HEAD "templates:\n" text "network:\n  - relu\n"

static const struct bad_input {
    const char *text;
    int line, column;
    const char *word, *hint;
} bad_inputs[] = {
    /* The file */
    {"", 1, 1, "the file is empty", NULL},
    {"# nothing\n", 1, 1, "the file is empty", NULL},
    {"just a text\n", 1, 1, "a space must be a mapping", NULL},
    {"- a\n- b\n", 1, 1, "a space must be a mapping", NULL},
    {"hwnas: 1\nname: x\n", 1, 1, "a space needs 'input:'", NULL},
    {"name: x\ninput: {image: [3]}\nnetwork: [relu]\n", 1, 1, "a space needs 'hwnas:'", "hwnas: 1"},
    {"hwnas: 2\nname: x\nfuture: y\n", 1, 8, "reads version 1 of the language, not 2", NULL},
    {"hwnas: one\n", 1, 8, "must be a whole number", NULL},
    {"hwnas: -1\n", 1, 8, "not -1", NULL},
    {HEAD "netwrok:\n  - relu\n", 4, 1, "a space has no key 'netwrok'", "did you mean 'network'?"},
    {HEAD "zzz: 1\n", 4, 1, "a space has no key 'zzz'", "its keys are hwnas, name"},
    {"hwnas: 1\nname: x\nname: y\n", 3, 1, "the key 'name' is already on line 2", NULL},
    {"hwnas: 1\nname: 3d-net\ninput: {image: [3]}\nnetwork: [relu]\n", 2, 7, "cannot be the name",
     "letters, digits"},
    {"hwnas: 1\nname:\ninput: {image: [3]}\nnetwork: [relu]\n", 2, 6, "name is empty", NULL},
    {"hwnas: 1\nname: [x]\ninput: {image: [3]}\nnetwork: [relu]\n", 2, 7, "must be a single value",
     NULL},
    /* YAML */
    {HEAD "network:\n\t- relu\n", 5, 1, "a tab may not indent", "blanks"},
    {HEAD "network:\n  - relu\n---\nhwnas: 1\n", 6, 1, "a second document", NULL},
    {HEAD "network: &x\n  - relu\n", 4, 10, "anchors", "template"},
    {HEAD "network:\n  - *x\n", 5, 5, "aliases", "template"},
    {HEAD "network:\n  - !relu x\n", 5, 5, "tags", NULL},
    {HEAD "network:\n  - <<: {}\n", 5, 5, "no layer '<<'", NULL},
    {HEAD "network:\n  - [relu\n", 6, 1, "this is no YAML", NULL},
    {HEAD "network:\n  - conv: {out: in > 3 ? 1 : 2}\n", 5, 28, "this is no YAML", "quote"},
    {HEAD "network:\n  - conv: {out: [8, 16][0]}\n", 5, 24, "this is no YAML", "begins with ["},
    {HEAD "network:\n  - let: {out: [8, 16]}\n  - conv: {out: out[0]}\n", 6, 20, "this is no YAML",
     "inside of { } a comma, [ or ]"},
    {HEAD "network:\n  - conv:\n      out: 3\n     pad: 1\n", 7, 6, "this is no YAML",
     "indentation"},
    {HEAD "network:\n  - \"relu\n", 6, 1, "this is no YAML", NULL},
    {HEAD "? [a]\n: b\n", 4, 3, "a key must be a single word", NULL},
    {"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n", 1, 4, "anchors", NULL}, /* laughs no more */
    /* Input */
    {"hwnas: 1\nname: x\ninput: [3, 8, 8]\nnetwork: [relu]\n", 3, 8, "input must be a mapping",
     NULL},
    {"hwnas: 1\nname: x\ninput: {a: [3], b: [3]}\nnetwork: [relu]\n", 3, 20,
     "nothing reads the input 'b'", "write - from: b"},
    {"hwnas: 1\nname: x\ninput: {image: []}\nnetwork: [relu]\n", 3, 16, "1 to 7 dimensions", NULL},
    {"hwnas: 1\nname: x\ninput: {image: [1,1,1,1,1,1,1,1]}\nnetwork: [relu]\n", 3, 16,
     "1 to 7 dimensions", NULL},
    {"hwnas: 1\nname: x\ninput: {image: [3, 0, 8]}\nnetwork: [relu]\n", 3, 20, "between 1 and",
     NULL},
    {"hwnas: 1\nname: x\ninput: {image: [3, -8, 8]}\nnetwork: [relu]\n", 3, 20, "not -8", NULL},
    {"hwnas: 1\nname: x\ninput: {image: [3, 99999999999999999999]}\nnetwork: [relu]\n", 3, 20,
     "does not fit into 64 bits", NULL},
    {"hwnas: 1\nname: x\ninput: {image: [1073741824, 1073741824, 1073741824]}\nnetwork: [relu]\n",
     3, 16, "more than 2^40 elements", NULL},
    {"hwnas: 1\nname: x\ninput: {image: 3x8x8}\nnetwork: [relu]\n", 3, 16,
     "the shape of the input must be a list", NULL},
    {"hwnas: 1\nname: x\ninput: {im age: [3]}\nnetwork: [relu]\n", 3, 9,
     "cannot be the name of an input", NULL},
    /* Choices */
    {CHOICES("  k: [3, 5]\n"), 5, 6, "a choice must be a mapping", "write k: {values: [1, 2, 3]}"},
    {CHOICES("  k: {value: [3, 5]}\n"), 5, 7, "a choice has no key 'value'",
     "did you mean 'values'?"},
    {CHOICES("  k: {each_of: 3}\n"), 5, 6, "'k' has no values", "{values: [1, 2, 3]}"},
    {CHOICES("  k: {values: 3}\n"), 5, 15, "values must be a list", NULL},
    {CHOICES("  k: {values: []}\n"), 5, 15, "needs 1 to 4096 values, not 0", NULL},
    {CHOICES("  k: {values: [[1], []]}\n"), 5, 21, "needs 1 to 4096 values, not 0", NULL},
    {CHOICES("  k: {values: [[1], 2]}\n"), 5, 21, "the values of a position must be a list", NULL},
    {CHOICES("  k: {values: [3, 5, 3]}\n"), 5, 22, "this value twice: '3' and '3'", NULL},
    {CHOICES("  k: {values: [1, true]}\n"), 5, 19, "'1' and 'true'", NULL},
    {CHOICES("  k: {values: [[1, 2]], each_of: 2}\n"), 5, 34, "for each position already", NULL},
    {CHOICES("  k: {values: [1, 2], each_of: 0}\n"), 5, 32, "between 1 and 4096", NULL},
    {CHOICES("  k: {values: [1, 2], each_of: 100000}\n"), 5, 32, "between 1 and 4096", NULL},
    {CHOICES("  k: {values: [1, 2], each_of: 4000}\n  l: {values: [1, 2], each_of: 97}\n"), 6, 6,
     "at most 4096 positions", NULL},
    {CHOICES("  k: {values: [in, out]}\n"), 5, 16, "must be constant, 'in'", NULL},
    {CHOICES("  k: {values: [a b]}\n"), 5, 18, "an operator was expected", NULL},
    {CHOICES("  k: {values: ['1 + 1', 2]}\n"), 5, 16, "may not hold a blank", NULL},
    {CHOICES("  k: {values: [{a: 1}]}\n"), 5, 16, "a value of a choice must be a single value",
     NULL},
    {CHOICES("  in: {values: [1, 2]}\n"), 5, 3, "has a meaning of its own", "current tensor"},
    {CHOICES("  a-b: {values: [1, 2]}\n"), 5, 3, "cannot be the name of a choice", NULL},
    {CHOICES("  pool: {values: [1, 2]}\n  op: {values: [conv, pool]}\n"), 6, 23,
     "must be constant, 'pool' is a choice", NULL},
    {CHOICES("  op: {values: [conv, pool]}\n  pool: {values: [1, 2]}\n"), 6, 3,
     "name of a choice and a value of one", NULL},
    {CHOICES("  a: {each_of: 2, values: [1, 2], when: b > 1}\n  b: {values: [1, 2]}\n"), 5, 41,
     "the choice 'b' is not known yet", "put it above"},
    {CHOICES("  a: {values: [1, 2], when: a > 1}\n"), 5, 29, "the choice 'a' is not known yet",
     NULL},
    {HEAD "choices:\n  a: {values: [1, 2]}\n  b: {values: [1, 2], when: 1 // (a - 1)}\n"
          "network: [relu, let: {c: b}]\n",
     6, 29, "division by zero", NULL},
    {CHOICES("  a: {values: [1, 2]}\nconstraints: [a > 2]\n"), 6, 15,
     "no architecture meets this constraint", "relax it"},
    {CHOICES("  a: {values: [1, 2]}\nconstraints: [c > 2]\n"), 6, 15, "'c' is not a name", NULL},
    {CHOICES("  a: {values: [1, 2]}\nconstraints: a > 2\n"), 6, 14, "constraints must be a list",
     NULL},
    {HEAD "choices: [k]\nnetwork: [relu]\n", 4, 10, "choices must be a mapping", NULL},
    /* Templates */
    {TEMPLATES("  t(a, a):\n    - relu\n"), 5, 8, "the parameter 'a' stands twice", NULL},
    {TEMPLATES("  t(a:\n    - relu\n"), 5, 3, "do not end with ')'", "write NAME(a, b = 1)"},
    {TEMPLATES("  t(a) b:\n    - relu\n"), 5, 3, "do not end with ')'", NULL},
    {TEMPLATES("  t(a b):\n    - relu\n"), 5, 5, "cannot be the name of a parameter", NULL},
    {TEMPLATES("  t(in):\n    - relu\n"), 5, 5, "has a meaning of its own", NULL},
    {TEMPLATES("  t(a, b = 1 +):\n    - relu\n"), 5, 15, "at the end of '1 +'", NULL},
    {TEMPLATES("  t(b = a, a = 1):\n    - conv: {out: b}\n"), 5, 9, "'a' is not a name",
     "defaults behind it"},
    {TEMPLATES("  t:\n    - relu\n  t():\n    - relu\n"), 7, 3, "template 't' is already on line 5",
     NULL},
    {TEMPLATES("  conv(a):\n    - relu\n"), 5, 3, "'conv' is an operator", NULL},
    {TEMPLATES("  repeat(a):\n    - relu\n"), 5, 3, "a word of the language", NULL},
    {TEMPLATES("  t:\n    relu\n"), 6, 5, "a template must be a list", NULL},
    {TEMPLATES("  t:\n    - t\n"), 6, 7, "'t' contains itself", "repeat"},
    {TEMPLATES("  a:\n    - b\n  b:\n    - residual:\n        - c\n  c:\n    - a\n"), 11, 7,
     "'a' contains itself", "through 'c'"},
    {HEAD "templates:\n  t(n):\n    - conv: {out: n}\nnetwork:\n  - t\n", 8, 5, "'t' needs 'n'",
     "write t: {n: ...}"},
    {HEAD "templates:\n  t(size):\n    - conv: {out: size}\nnetwork:\n  - t: {sise: 3}\n", 8, 9,
     "'t' has no parameter 'sise'", "did you mean 'size'?"},
    {HEAD "templates:\n  t:\n    - relu\nnetwork:\n  - t: {n: 3}\n", 8, 9, "no parameter 'n'",
     "its parameters: none"},
    {HEAD "templates:\n  t:\n    - relu\nnetwork:\n  - t: [[relu]]\n", 8, 8, "a template takes",
     NULL},
    {HEAD "choices:\n  op: {values: [conv, pool]}\ntemplates:\n  t(pool):\n    - relu\nnetwork:\n"
          "  - relu\n",
     7, 5, "'pool' is a value of a choice", NULL},
    /* Layers */
    {HEAD "network:\n", 4, 9, "the network has no layer", NULL},
    {HEAD "network: []\n", 4, 10, "the network has no layer", NULL},
    {HEAD "network: relu\n", 4, 10, "network must be a list", NULL},
    {NET "  - cnov: {out: 3}\n", 5, 5, "there is no layer 'cnov'", "did you mean 'conv'?"},
    {NET "  - maxpool3000\n", 5, 5, "there is no layer 'maxpool3000'", "there are add, avg_pool"},
    {NET "  - resid: [relu]\n", 5, 13, "a branch must be a list", "write resid: [[...], [...]]"},
    {NET "  - conv: {out: 3, kernal: 3}\n", 5, 20, "'conv' has no argument 'kernal'",
     "did you mean 'kernel'?"},
    {NET "  - relu: {slope: 3}\n", 5, 12, "'relu' has no argument 'slope'", "it has none"},
    {NET "  - conv\n", 5, 5, "'conv' needs 'out': output channels", "write conv: {out: ...}"},
    {NET "  - relu\n  - if: 0\n    then:\n      - linear\n", 8, 9, "'linear' needs 'out'", NULL},
    {NET "  - conv: 3\n", 5, 11, "'conv' takes 'name: value', not '3'", "write conv: {NAME: 3}"},
    {NET "  - conv: {out: 3}\n    kernel: 3\n", 6, 5, "the layer 'conv' does not know 'kernel'",
     "indent"},
    {NET "  -\n", 5, 4, "a layer is empty", NULL},
    {NET "  - [relu]\n", 5, 5, "a layer was expected", NULL},
    {NET "  - {}\n", 5, 5, "a layer was expected", NULL},
    {NET "  - conv: {out: 3, out: 4}\n", 5, 20, "the key 'out' is already on line 5", NULL},
    {NET "  - conv: {out: }\n", 5, 17, "'out' is empty", NULL},
    {NET "  - conv: {out: {a: 1}}\n", 5, 17, "'out' must be a single value", NULL},
    {NET "  - conv: {out: three}\n", 5, 17, "'three' is not a name that is known here", NULL},
    {NET "  - let: {channels: 4}\n  - conv: {out: chanels * 2}\n", 6, 17, "'chanels' is not a name",
     "did you mean 'channels'?"},
    {NET "  - conv: {out: 3.5}\n", 5, 17, "'out' of 'conv' must be a whole number, not '3.5'",
     "round()"},
    {NET "  - conv: {out: 20 * 0.5}\n", 5, 17, "must be a whole number, not '10.0'", "round()"},
    {NET "  - swish\n", 5, 5, "no layer 'swish'", "did you mean 'silu'?"},
    {NET "  - dense: {out: 3}\n", 5, 5, "no layer 'dense'", "did you mean 'linear'?"},
    {NET "  - conv: {filters: 3}\n", 5, 12, "no argument 'filters'", "did you mean 'out'?"},
    {NET "  - conv: {out: in / 2}\n", 5, 17, "must be a whole number, not '1.5'", NULL},
    {NET "  - conv: {out: [1, 2]}\n", 5, 17, "must be a whole number, not '[1, 2]'", NULL},
    {NET "  - conv: {out: 0}\n", 5, 17, "between 1 and 1073741824, not 0", "output channels"},
    {NET "  - conv: {out: -3}\n", 5, 17, "not -3", NULL},
    {NET "  - conv: {out: 3, kernel: 0}\n", 5, 28, "'kernel' of 'conv' must be between 1", NULL},
    {NET "  - conv: {out: 3, kernel: [3, 3, 3]}\n", 5, 28, "takes 1 or 2 values, not 3", NULL},
    {NET "  - conv: {out: 3, pad: [1, 1, 1]}\n", 5, 25, "takes 1, 2 or 4 values, not 3", NULL},
    {NET "  - conv: {out: 3, bias: 2}\n", 5, 26, "must be true or false, not '2'", NULL},
    {NET "  - conv: {out: 3, bias: ture}\n", 5, 26, "'ture' is not a name", "did you mean 'true'?"},
    {NET "  - dropout: {rate: 1.5}\n", 5, 21, "between 0 and 1, not 1.5", NULL},
    {NET "  - conv: {out: 9223372036854775807 * 2}\n", 5, 17, "64 bits", NULL},
    {NET "  - conv: {out: 1073741824, kernel: 8}\n  - conv: {out: 1073741824}\n", 6, 5,
     "more than 2^40 elements", NULL},
    {NET "  - conv: {out: depth}\n", 5, 17, "'depth' is not a name", NULL},
    {NET "  - flatten\n  - conv: {out: 3}\n", 6, 5, "'conv' needs an image", NULL},
    {NET "  - flatten\n  - linear: {out: height}\n", 6, 19, "the current tensor has no 'height'",
     NULL},
    /* Shapes that cannot be */
    {NET "  - conv: {out: 4, kernel: 9}\n", 5, 5, "larger than its padded input of 8", NULL},
    {NET "  - conv: {out: 4, groups: 2}\n", 5, 5, "groups", NULL},
    {NET "  - conv: {out: 4, groups: 3}\n", 5, 5,
     "3 groups do not divide both 3 input and 4 output channels", NULL},
    {NET "  - conv3d: {out: 4}\n", 5, 5, "'conv3d' needs a volume", "for images use 'conv'"},
    {CLIP "  - conv: {out: 4}\n", 5, 5, "'conv' needs an image", "'conv3d'"},
    {CLIP "  - max_pool: {kernel: 2}\n", 5, 5, "'max_pool' needs an image", "'conv3d'"},
    {CLIP "  - global_avg_pool\n", 5, 5, "'global_avg_pool' needs an image", "[2, 3, 4]"},
    {CLIP "  - conv3d: {out: 4, kernel: [3, 3]}\n", 5, 30, "takes 1 or 3 values, not 2",
     "depth, height and width"},
    {CLIP "  - conv3d: {out: 4, kernel: 9, pad: [0, 4, 4]}\n", 5, 5,
     "reaches over a depth of 9 is larger than its padded input's of 4", "[depth, height, width]"},
    {CLIP "  - conv3d: {out: 4, kernel: [1, 9, 1]}\n", 5, 5,
     "'conv3d': a kernel that reaches over a height of 9 is larger than its padded input's of 8",
     "[depth, height, width]"},
    {CLIP "  - conv3d: {out: 4, kernel: 65, pad: 32}\n", 5, 5, "of a depth of 64 at most, not 65",
     "dilation"},
    /* 4 divides 6 channels times 2 slices, but not the channels */
    {CLIP "  - conv3d: {out: 4, kernel: [2, 1, 1], groups: 4}\n", 5, 5,
     "4 groups do not divide both 6 input and 4 output channels", NULL},
    {NET "  - linear: {out: 10}\n", 5, 5, "'linear' needs batch x features", "flatten"},
    {NET "  - residual:\n      - conv: {out: 4}\n", 5, 5,
     "'add' cannot join the shapes 1x4x8x8 and "
     "1x3x8x8",
     "when:"},
    {NET "  - add: [[], [flatten]]\n", 5, 5, "cannot join the shapes", NULL},
    {NET "  - flatten: {axis: 7}\n", 5, 5, "axis 7", NULL},
    {HEAD "templates:\n  block(k):\n    - conv: {out: 4, kernel: k}\nnetwork:\n  - block: {k: 3}\n"
          "  - block: {k: 7}\n",
     6, 7, "in block_1: 'conv': a kernel that reaches over 7", NULL},
    {HEAD "choices:\n  k: {values: [1, 9]}\nnetwork:\n  - conv: {out: 4, kernel: k}\n", 7, 5,
     "architecture 9: 'conv'", NULL},
    /* Joins */
    {NET "  - add\n", 5, 5, "'add' needs branches", "write add: [[...], [...]]"},
    {NET "  - add: [[relu]]\n", 5, 5, "'add' joins 2 to 64 branches, not 1", NULL},
    {NET "  - from: x\n", 5, 11, "no 'as' gives a tensor the name 'x'", "write - as: x"},
    {NET "  - as: stem\n  - relu\n  - from: stam\n", 7, 11,
     "no 'as' gives a tensor the name 'stam'", "did you mean 'stem'?"},
    {NET "  - from: x\n  - relu\n  - as: x\n", 5, 5, "'x' names no tensor yet",
     "before it is used"},
    {NET "  - as: x[1\n", 5, 9, "does not end with ']'", "NAME[INDEX]"},
    {NET "  - as: x[5000]\n  - relu\n", 5, 11, "an index is 0 to 4095", NULL},
    {NET "  - frm: x\n", 5, 10, "'frm' takes 'name: value', not 'x'", "did you mean 'from'?"},
    {NET "  - frm\n", 5, 5, "there is no layer 'frm'", "did you mean 'from'?"},
    {CHOICES("  a: {values: [1, 2]}\n"), 5, 3, "nothing uses the choice 'a'", "leave it out"},
    {NET "  - output: x\n", 5, 5, "the output 'x' is not computed: it is 'image'", NULL},
    {NET "  - relu\n  - output: x\n  - output: y\n", 7, 5, "'y' is the output 'x' already", NULL},
    {NET "  - relu\n  - output: x\n  - tanh\n  - output: x\n", 8, 5, "a tensor 'x' already",
     "x[i]"},
    {NET "  - relu\n  - from: image\n", 5, 3, "ends with 'image', which is not computed", NULL},
    {NET "  - relu\n  - as: image\n", 6, 9, "'image' is an input of the network", NULL},
    {NET "  - relu\n  - from: image[0]\n", 6, 11, "there is one 'image'", "write image"},
    {NET "  - transpose: {order: [0, 1]}\n", 5, 5, "each of the dimensions 0 to 3", NULL},
    {NET "  - reshape: {shape: [7, 9]}\n", 5, 5, "do not fit into 1x7x9", NULL},
    {NET "  - slice: {begin: 3}\n", 5, 5, "takes nothing", NULL},
    {NET "  - matmul: [[], [conv: {out: 2}]]\n", 5, 5, "cannot multiply the shapes", NULL},
    {NET "  - embedding: {entries: 9, out: 4}\n", 5, 5, "holds no whole numbers", "type: int64"},
    {NET "  - tied_linear\n", 5, 5, "no embedding of length 8", NULL},
    {NET "  - concat: [[], []]\n    axs: 2\n", 6, 5, "has no argument 'axs'",
     "did you mean 'axis'"},
    {NET "  - as: 3\n", 5, 9, "'3' cannot be the name of a tensor", NULL},
    {NET "  - add: [relu, relu]\n", 5, 11, "a branch must be a list", NULL},
    {NET "  - conv: [[relu], [relu]]\n", 5, 5, "'conv' does not join branches", "no list"},
    /* Statements */
    {NET "  - if: in > 2\n", 5, 5, "'if' needs 'then:'", NULL},
    {NET "  - if: in > 2\n    then: [relu]\n    elif: [relu]\n", 7, 5, "if has no key 'elif'",
     NULL},
    {NET "  - if: in > 2\n    then: relu\n", 6, 11, "then must be a list", NULL},
    {NET "  - if: big\n    then: [relu]\n", 5, 9, "'big' is not a name", NULL},
    {NET "  - if: [1]\n    then: [relu]\n", 5, 9, "a condition is true or false, not a list", NULL},
    {HEAD "choices:\n  op: {values: [conv, pool]}\nnetwork:\n  - if: op\n    then: [relu]\n", 7, 9,
     "a condition is true or false, not a name 'conv'", "a == b"},
    {HEAD "choices:\n  op: {values: [conv, pool]}\nnetwork:\n  - if: op == pol\n    then: [relu]\n",
     7, 15, "nothing can be equal to 'pol'", "did you mean 'pool'?"},
    {NET "  - if\n", 5, 5, "'if' stands alone", NULL},
    {NET "  - switch: in\n", 5, 5, "'switch' needs 'cases:'", NULL},
    {NET "  - switch: in\n    cases: [relu]\n", 6, 12, "cases must be a mapping", NULL},
    {NET "  - switch: in\n    cases: {1: [relu], 2: [relu]}\n", 5, 13, "there is no case for '3'",
     "the cases are 1, 2"},
    {NET "  - switch: in\n    cases: {3: [relu], 3.0: [relu]}\n", 6, 24,
     "'3' and '3.0' have the same", NULL},
    {NET "  - switch: in\n    cases: {in: [relu]}\n", 6, 13, "a case must be constant", NULL},
    {HEAD "choices:\n  op: {values: [1, 2]}\nnetwork:\n  - switch: op\n    cases: {op: [relu]}\n",
     8, 13, "a case must be constant, 'op' is a choice", NULL},
    {NET "  - for: {a: [1, 2], b: [1, 2, 3]}\n    do: [relu]\n", 5, 25,
     "equally long: 'a' has 2, 'b' 3", NULL},
    {NET "  - for: {a: 3}\n    do: [relu]\n", 5, 14,
     "must walk over a list, this is a whole number", "repeat"},
    {NET "  - for: {}\n    do: [relu]\n", 5, 10, "'for' needs a list", NULL},
    {NET "  - for: {a: [1, 2]}\n", 5, 5, "'for' needs 'do:'", NULL},
    {NET "  - for: {a: [1]}\n    do: []\n  - conv: {out: a}\n", 7, 17, "'a' is not a name", NULL},
    {NET "  - repeat: 1000000000\n    do: [relu]\n", 5, 13, "cannot repeat 1000000000 times", NULL},
    {NET "  - repeat: -1\n    do: [relu]\n", 5, 13, "cannot repeat -1 times", NULL},
    {NET "  - repeat: 1.5\n    do: [relu]\n", 5, 13, "a whole number was expected, not 1.5", "//"},
    {NET "  - repeat: 100000\n    do: [relu, relu]\n", 6, 10, "more than 100000 layers", NULL},
    {NET "  - repeat: 100000\n    do: [{repeat: 100000, do: []}]\n", 6, 10, "steps to build",
     "loops"},
    {NET "  - repeat: 3\n    index: 3\n    do: [relu]\n", 6, 12, "cannot be the name", NULL},
    {NET "  - let: 3\n", 5, 10, "let must be a mapping", NULL},
    {NET "  - let: {in: 3}\n", 5, 11, "has a meaning of its own", NULL},
    {NET "  - let: {a: b, b: 1}\n  - conv: {out: a}\n", 5, 14, "'b' is not a name", NULL},
    {NET "  - residual: relu\n", 5, 15, "residual must be a list", NULL},
    {NET "  - residual: [relu]\n    wen: 1\n", 6, 5, "residual has no key 'wen'",
     "did you mean 'when'?"},
    /* Cells, heads, conditions */
    {NET "  - add:\n      - - from: x\n      - - relu\n  - as: x\n", 6, 11,
     "'x' names no tensor yet", "nothing is made of itself"},
    {NET
     "  - as: n[0]\n  - repeat: 2\n    do:\n      - add: [[from: \"n[i]\"], [from: \"n[i + 1]\"]]\n"
     "      - as: n[i + 1]\n",
     8, 32, "'n[1]' names no tensor yet", "nothing is made of itself"},
    {SEQUENCE "choices:\n  heads: {values: [4, 5]}\nnetwork:\n"
              "  - reshape: {shape: [length, heads, in // heads]}\n",
     7, 5, "the 1024 values of the shape 1x16x64 do not fit into 1x16x5x12", "hidden % heads == 0"},
    {SEQUENCE "choices:\n  heads: {values: [4, 5]}\nnetwork:\n"
              "  - reshape: {shape: [length, heads, in / heads]}\n",
     7, 22, "must be a whole number or a list of them, not '12.8'", NULL},
    {CHOICES("  a: {values: [1, 2], when: b == 1}\n  b: {values: [1, 2], when: a == 1}\n"), 5, 29,
     "a condition sees the choices above", "in a circle"},
    /* Fewer values of another space */
    {"hwnas: 1\nname: few\nbase: gpt\n", 1, 1, "needs 'choices:'", NULL},
    {"hwnas: 1\nbase: gpt\nchoices: {}\n", 1, 1, "needs 'name:'", NULL},
    {"name: few\nbase: gpt\nchoices: {}\n", 1, 1, "needs 'hwnas:'", "the version"},
    {"hwnas: 1\nname: few\nbase: [gpt]\nchoices: {}\n", 3, 7, "'base'", NULL},
    {"hwnas: 1\nname: few\nbase: gpt\nchoices:\n  heads: {values: [4, 8, 4]}\n", 5, 26,
     "'heads' has the value '4' twice", NULL},
    {"hwnas: 1\nname: few\nbase: gpt\nnetwork: []\nchoices: {}\n", 4, 1, "has no key 'network'",
     "base, choices"},
    {"hwnas: 1\nname: few\nbase: gpt\nchoices: []\n", 4, 10, "choices must be a mapping", NULL},
    {"hwnas: 1\nname: few\nbase: gpt\nchoices:\n  head: {values: [4]}\n", 5, 3,
     "'gpt' has no choice 'head'", "space show gpt"},
    {"hwnas: 1\nname: few\nbase: gpt\nchoices:\n  heads: [4]\n", 5, 10,
     "a choice must be a mapping", NULL},
    {"hwnas: 1\nname: few\nbase: gpt\nchoices:\n  heads: {}\n", 5, 10, "'heads' has no values",
     NULL},
    {"hwnas: 1\nname: few\nbase: gpt\nchoices:\n  heads: {values: [4, 5]}\n", 5, 23,
     "'heads' of 'gpt' has no value '5'", "space show gpt"},
    {"hwnas: 1\nname: few\nbase: gpt\nchoices:\n  heads: {values: [embed]}\n", 5, 20,
     "must be constant", NULL},
    {"hwnas: 1\nname: few\nbase: gpt\nchoices:\n  heads: {values: []}\n", 5, 19,
     "no value is left for position 1 of 'heads'", NULL},
    {"hwnas: 1\nname: few\nbase: accel_nasbench\nchoices:\n  l: {values: [4]}\n", 5, 15,
     "no value is left for position 1 of 'l'", NULL},
    /* Sizes beyond 64 bits */
    {NET "  - conv: {out: 99999999999999999999}\n", 5, 17, "does not fit into 64 bits", NULL},
    {NET "  - conv: {out: 4294967296 * 4294967296}\n", 5, 17, "does not fit into 64 bits", NULL},
    {NET "  - conv: {out: 9223372036854775807}\n", 5, 17, "must be between 1 and 1073741824",
     "output channels"},
    {NET "  - upsample: {by: 1048576}\n  - upsample: {by: 1048576}\n", 5, 5,
     "more than 2^40 elements", NULL},
    {NET "  - conv: {out: 1073741824}\n  - conv: {out: 1073741824}\n", 6, 5,
     "'conv_1.weight' would have more than 2^40 elements", NULL},
    {NET "  - flatten\n  - reshape: {shape: [1073741824, 1073741824, 1073741824]}\n", 6, 5,
     "do not fit into 1x1073741824x1073741824x1073741824", NULL},
    {"hwnas: 1\nname: bad\ninput: {x: {shape: [8], each: 99999999999}}\nnetwork: [relu]\n", 3, 31,
     "an input comes 0 to 4095 times", NULL},
    {NET "  - conv: {out: \"in + \\\n      foo\"}\n", 5, 17, "'foo' is not a name",
     NULL}, /* no columns */
};

static void bad_input_is_explained(void **state)
{
    (void)state;
    n_wrong = 0;
    for (size_t i = 0; i < COUNT(bad_inputs); i++) {
        const struct bad_input *bad = &bad_inputs[i];
        expect_failure(bad->text, strlen(bad->text), bad->line, bad->column, bad->word, bad->hint);
    }
    assert_int_equal(n_wrong, 0);
}

/* What is wrong with the space that another is narrowed from stands in either file. */
static void bad_bases_are_explained(void **state)
{
    static const struct {
        const char *text;
        hwnas_status status;
        const char *file;
        int line;
        const char *word, *hint;
    } cases[] = {
        {"hwnas: 1\nname: few\nbase: no_such_space\nchoices: {}\n", HWNAS_E_NOT_FOUND, "test.yaml",
         3, "there is no 'no_such_space'", "looked for"},
        {"hwnas: 1\nname: few\nbase: gpt_s\nchoices: {}\n", HWNAS_E_INPUT, "gpt_s.yaml", 6,
         "cannot be the base of another", "name 'gpt' there"},
        {"hwnas: 1\nname: few\nbase: bert\nchoices:\n  heads: {values: [12]}\n"
         "  hidden: {values: [128]}\n",
         HWNAS_E_INPUT, "bert.yaml", 22,
         "with the values of test.yaml:5: no architecture meets this constraint", "relax"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(try_text(cases[i].text, strlen(cases[i].text)), cases[i].status);
        const hwnas_error *e = hwnas_last_error();
        if (!hwnas_ends_with(e->file, cases[i].file) || e->line != cases[i].line ||
            !strstr(e->message, cases[i].word) || !strstr(e->hint, cases[i].hint))
            fail_msg("%s", describe());
    }
}

static void bytes_that_are_no_text(void **state)
{
    (void)state;
    n_wrong = 0;
    static const struct {
        const char *text;
        size_t length;
        int line, column;
        const char *word;
    } cases[] = {
        {"hwnas: 1\nname: \xff\xfe\n", 17, 2, 7, "not text in UTF-8"},
        {"hwnas: 1\nname: a\0b\n", 19, 2, 8, "may not hold the byte 0x00"},
        {"hwnas: 1\nname: a\033b\n", 19, 2, 8, "may not hold the byte 0x1b"},
        {"hwnas: 1\nname: \"a\\0b\"\n", 22, 2, 7, "zero byte"},
        {"h\0w\0n\0a\0s\0", 10, 1, 2, "may not hold the byte 0x00"}, /* UTF-16 */
        {"\xef\xbb\xbfhwnas: 3\n", 12, 1, 9, "version 1"},           /* a byte order mark is fine */
        {"hwnas: 1\r\nname: \xc3\xa9\r\nzzz: 1\r\n", 28, 3, 1, "no key 'zzz'"},
        {"hwnas: 1\nname: \xc3", 16, 2, 7, "not text in UTF-8"},
        /* What is quoted in a message stays one line and cannot steer a terminal. */
        {"\"a\\nb\\e[31m\\x9b\": 1\n", 20, 1, 1, "no key 'a b [31m"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_failure(cases[i].text, cases[i].length, cases[i].line, cases[i].column,
                       cases[i].word, NULL);
    assert_int_equal(n_wrong, 0);
}

static void expect_built(hwnas_str *text, int line, int column, const char *word)
{
    expect_failure(text->s, text->n, line, column, word, NULL);
    hwnas_str_done(text);
}

/* Files that grow while they are read: each must end soon, see expect_failure(). */
static void bombs_end_quickly(void **state)
{
    (void)state;
    n_wrong = 0;
    hwnas_str text = {0};
    enum { MANY = 100000 };
    /* One flow list in another. */
    hwnas_str_add(&text, NET "  - ");
    for (int i = 0; i < MANY; i++)
        hwnas_str_add(&text, "[");
    expect_built(&text, 5, 68, "levels inside each other");
    /* One item in another, and one mapping. */
    hwnas_str_add(&text, NET "  ");
    for (int i = 0; i < MANY; i++)
        hwnas_str_add(&text, "- ");
    expect_built(&text, 5, 131, "levels inside each other");
    hwnas_str_add(&text, NET "  - ");
    for (int i = 0; i < MANY; i++)
        hwnas_str_add(&text, "{a: ");
    expect_built(&text, 5, 254, "levels inside each other");
    /* Ever deeper on lines of their own. */
    hwnas_str_add(&text, HEAD "network:\n");
    for (int i = 1; i < 3000; i++)
        hwnas_str_addf(&text, "%*s- residual:\n", 2 * i, "");
    expect_built(&text, 36, 67, "levels inside each other");
    /* The billion laughs. */
    hwnas_str_add(&text, "l0: &l0 [lol]\n");
    for (int i = 1; i < 30; i++)
        hwnas_str_addf(&text, "l%d: &l%d [*l%d, *l%d, *l%d]\n", i, i, i - 1, i - 1, i - 1);
    expect_built(&text, 1, 5, "anchors");
    /* Templates that double: within the depth, and beyond it. */
    static const int depths[] = {30, 40};
    for (size_t d = 0; d < COUNT(depths); d++) {
        hwnas_str_add(&text, HEAD "templates:\n");
        for (int i = 0; i < depths[d]; i++)
            hwnas_str_addf(&text, "  t%d:\n    - t%d\n    - t%d\n", i, i + 1, i + 1);
        hwnas_str_addf(&text, "  t%d: []\nnetwork:\n  - t0\n", depths[d]);
        assert_int_equal(try_text(text.s, text.n), HWNAS_E_INPUT);
        expect_built(&text, hwnas_last_error()->line, hwnas_last_error()->column,
                     d ? "templates inside each other" : "steps to build");
    }
    /* Many of everything. */
    for (int i = 0; i < MANY; i++)
        hwnas_str_addf(&text, "k%d: 1\n", i);
    expect_built(&text, 1, 1, "a space has no key 'k0'");
    hwnas_str_add(&text, HEAD "templates:\n");
    for (int i = 0; i < MANY; i++)
        hwnas_str_addf(&text, "  t%d: [relu]\n", i);
    hwnas_str_add(&text, "network: [relu]\n");
    expect_built(&text, 5, 3, "at most 1000 templates");
    hwnas_str_add(&text, NET);
    for (int i = 0; i < MANY; i++)
        hwnas_str_addf(&text, "  - let: {v%d: 1}\n", i);
    expect_built(&text, 1005, 11, "more than 1000 variables");
    hwnas_str_add(&text, HEAD "choices:\n");
    for (int i = 0; i < MANY; i++)
        hwnas_str_addf(&text, "  c%d: {values: [1]}\n", i);
    hwnas_str_add(&text, "network: [relu]\n");
    expect_built(&text, 5, 3, "at most 4096 choices");
    hwnas_str_add(&text, HEAD "choices:\n  c: {values: [0");
    for (int i = 1; i < MANY; i++)
        hwnas_str_addf(&text, ", %d", i);
    hwnas_str_add(&text, "]}\nnetwork: [relu]\n");
    expect_built(&text, 5, 15, "1 to 4096 values, not 100000");
    /* A long list that is made again and again. */
    hwnas_str_add(&text, NET "  - repeat: 100000\n    do:\n      - for: {a: [0");
    for (int i = 1; i < 100000; i++)
        hwnas_str_add(&text, ", 1");
    hwnas_str_add(&text, "]}\n        do: []\n");
    expect_built(&text, 7, 9, "steps to build");
    /* A name as long as a file. */
    hwnas_str_add(&text, HEAD "templates:\n  ");
    for (int i = 0; i < 1000; i++)
        hwnas_str_add(&text, "a");
    hwnas_str_add(&text, ":\n    - relu\nnetwork: [relu]\n");
    expect_built(&text, 5, 3, "longer than 64");
    assert_int_equal(n_wrong, 0);
}

/* The most that is let through still adds up. */
static void sums_stay_within_64_bits(void **state)
{
    (void)state;
    hwnas_space *space =
        parse_text("hwnas: 1\nname: big\ninput: {image: [256, 1024, 1024]}\nnetwork:\n"
                   "  - repeat: 100000\n    do:\n"
                   "      - conv: {out: 256, kernel: 31, pad: 15}\n");
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_graph *graph = NULL;
    hwnas_costs costs;
    assert_int_equal(hwnas_graph_build(&graph, arch, 1), HWNAS_OK);
    hwnas_graph_costs(&costs, graph);
    assert_float_equal((double)costs.macs, 1e5 * 0x1p36 * 961, 1e10);
    assert_true(costs.peak_bytes > 0);
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    static const char heavy[] =
        "hwnas: 1\nname: heavy\ninput: {image: [1024, 1024, 1024]}\nnetwork:\n"
        "  - conv: {out: 1024, kernel: 31, pad: 15}\n";
    n_wrong = 0;
    expect_failure(heavy, strlen(heavy), 5, 5, "'conv' would take 1e+15 multiply-accumulates",
                   NULL);
    assert_int_equal(n_wrong, 0);
}

/* What the two sides of a limit do. */
static void large_spaces_are_read(void **state)
{
    (void)state;
    hwnas_str text = {0};
    hwnas_str_add(&text, HEAD "choices:\n  op: {each_of: 4096, values: [a, b, c, d]}\n"
                              "network:\n  - relu\n  - let: {used: op}\n");
    hwnas_space *space = parse_text(text.s);
    hwnas_arch *arch = hwnas_arch_new(space), *same = NULL;
    hwnas_rng rng = hwnas_rng_new(6, 6);
    hwnas_arch_sample(arch, &rng);
    char *code = hwnas_arch_code(arch);
    assert_int_equal(strlen(code), 4096);
    assert_int_equal(hwnas_arch_parse(&same, space, code), HWNAS_OK);
    assert_true(hwnas_arch_equal(arch, same));
    free(code);
    hwnas_arch_free(arch);
    hwnas_arch_free(same);
    hwnas_space_free(space);
    hwnas_str_done(&text);

    hwnas_str_add(&text, HEAD "templates:\n");
    for (int i = 0; i < 30; i++)
        hwnas_str_addf(&text, "  t%d:\n    - t%d\n", i, i + 1);
    hwnas_str_add(&text, "  t30: [relu]\nnetwork:\n  - t0\n");
    hwnas_space_free(parse_text(text.s));
    hwnas_str_done(&text);

    hwnas_str_add(&text, NET "  - repeat: 20000\n    do: [relu]\n");
    hwnas_space_free(parse_text(text.s));
    hwnas_str_done(&text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_input_is_explained),   cmocka_unit_test(bad_bases_are_explained),
        cmocka_unit_test(bytes_that_are_no_text),   cmocka_unit_test(bombs_end_quickly),
        cmocka_unit_test(sums_stay_within_64_bits), cmocka_unit_test(large_spaces_are_read),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
