/* pytorch_ops.c: the operators, joins and helpers of PyTorch, one row each. */
#include <math.h>
#include <string.h>

#include "export/pytorch.h"
#include "export/pytorch_priv.h"

static const hwnas_torch_row rows[] = {
    {.op = "avg_pool",
     .module = "nn.AvgPool2d",
     .arguments = {{"kernel", NULL, NAN, false},
                   {"stride", "stride", NAN, false}, /* PyTorch's default is the kernel */
                   {"pad", "padding", 0, false},
                   {"count_pad", "count_include_pad", 1, true}},
     .result = HWNAS_TORCH_FRESH,
     .looks_at = HWNAS_TORCH_WINDOW},
    {.op = "batch_norm",
     .module = "nn.BatchNorm%dd",
     .takes_channels = true,
     .arguments = {{"epsilon", "eps", 1e-5, false}, {"affine", "affine", 1, true}},
     .result = HWNAS_TORCH_FRESH,
     .looks_at = HWNAS_TORCH_RANK},
    {.op = "clip",
     .module = "nn.ReLU6",
     .arguments = {{"low", NULL, 0, false}, {"high", NULL, 6, false}},
     .may_overwrite = true,
     .result = HWNAS_TORCH_KEPT,
     .general = "nn.Hardtanh",
     .general_has_none = true},
    {.op = "conv",
     .module = "nn.Conv2d",
     .takes_channels = true,
     .arguments = {{"out", NULL, NAN, false},
                   {"kernel", NULL, NAN, false},
                   {"stride", "stride", 1, false},
                   {"pad", "padding", 0, false},
                   {"dilation", "dilation", 1, false},
                   {"groups", "groups", 1, false},
                   {"bias", "bias", 1, true}},
     .sets_channels = "out",
     .result = HWNAS_TORCH_FRESH},
    {.op = "dropout",
     .module = "nn.Dropout",
     .arguments = {{"rate", NULL, NAN, false}},
     .result = HWNAS_TORCH_PASSED},
    {.op = "flatten",
     .module = "nn.Flatten",
     .result = HWNAS_TORCH_PASSED,
     .looks_at = HWNAS_TORCH_RATIO},
    {.op = "global_avg_pool",
     .module = "nn.AdaptiveAvgPool2d",
     .literal = "1",
     .result = HWNAS_TORCH_FRESH},
    {.op = "hard_sigmoid",
     .module = "nn.Hardsigmoid",
     .arguments = {{"alpha", "alpha", 1.0 / 6, false}, {"beta", "beta", 0.5, false}},
     .result = HWNAS_TORCH_KEPT,
     .general = "HardSigmoid"},
    {.op = "hard_swish",
     .module = "nn.Hardswish",
     .may_overwrite = true,
     .result = HWNAS_TORCH_FRESH},
    {.op = "leaky_relu",
     .module = "nn.LeakyReLU",
     .arguments = {{"alpha", NULL, 0.01, false}},
     .may_overwrite = true,
     .result = HWNAS_TORCH_KEPT},
    {.op = "linear",
     .module = "nn.Linear",
     .takes_channels = true,
     .arguments = {{"out", NULL, NAN, false}, {"bias", "bias", 1, true}},
     .sets_channels = "out",
     .result = HWNAS_TORCH_FRESH},
    {.op = "max_pool",
     .module = "nn.MaxPool2d",
     .arguments = {{"kernel", NULL, NAN, false},
                   {"stride", "stride", NAN, false},
                   {"pad", "padding", 0, false}},
     .result = HWNAS_TORCH_FRESH,
     .looks_at = HWNAS_TORCH_WINDOW},
    {.op = "relu", .module = "nn.ReLU", .may_overwrite = true, .result = HWNAS_TORCH_KEPT},
    {.op = "sigmoid", .module = "nn.Sigmoid", .result = HWNAS_TORCH_KEPT},
    {.op = "softmax",
     .module = "nn.Softmax",
     .arguments = {{"axis", "dim", NAN, false}},
     .result = HWNAS_TORCH_KEPT},
    {.op = "tanh", .module = "nn.Tanh", .result = HWNAS_TORCH_KEPT},
    {.op = "zero",
     .module = "Zero",
     .arguments = {{"stride", "stride", 1, false}},
     .result = HWNAS_TORCH_FRESH},
};

static const hwnas_torch_join joins[] = {
    {.op = "add", .infix = " + ", .helper = "Add", .branch = "branch"},
    {.op = "concat", .infix = NULL, .helper = "Concat", .branch = "branch"},
    {.op = "mul", .infix = " * ", .helper = "Mul", .branch = "gate"},
};

const hwnas_torch_helper hwnas_torch_helpers[] = {
    {"make_divisible",
     "def make_divisible(value, divisor):\n"
     "    \"\"\"The multiple of divisor nearest to value, at most 10 % below it.\"\"\"\n"
     "    rounded = max(divisor, int(value + divisor / 2) // divisor * divisor)\n"
     "    return rounded + divisor if rounded < 0.9 * value else rounded\n"},
    {"HardSigmoid", "class HardSigmoid(nn.Module):\n"
                    "    def __init__(self, alpha=1 / 6, beta=0.5):\n"
                    "        super().__init__()\n"
                    "        self.alpha = alpha\n"
                    "        self.beta = beta\n"
                    "\n"
                    "    def forward(self, x):\n"
                    "        return torch.clamp(self.alpha * x + self.beta, 0, 1)\n"},
    {"Residual", "class Residual(nn.Sequential):\n"
                 "    \"\"\"Adds its input to the output of its layers.\"\"\"\n"
                 "\n"
                 "    def forward(self, x):\n"
                 "        return x + super().forward(x)\n"},
    {"Add", "class Add(nn.ModuleList):\n"
            "    \"\"\"The sum of its branches.\"\"\"\n"
            "\n"
            "    def __init__(self, *branches):\n"
            "        super().__init__(branches)\n"
            "\n"
            "    def forward(self, x):\n"
            "        return sum(branch(x) for branch in self)\n"},
    {"Mul", "class Mul(nn.ModuleList):\n"
            "    \"\"\"The product of its branches.\"\"\"\n"
            "\n"
            "    def __init__(self, *branches):\n"
            "        super().__init__(branches)\n"
            "\n"
            "    def forward(self, x):\n"
            "        first, *others = self\n"
            "        y = first(x)\n"
            "        for branch in others:\n"
            "            y = y * branch(x)\n"
            "        return y\n"},
    {"Concat", "class Concat(nn.ModuleList):\n"
               "    \"\"\"The channels of its branches, one after the other.\"\"\"\n"
               "\n"
               "    def __init__(self, *branches):\n"
               "        super().__init__(branches)\n"
               "\n"
               "    def forward(self, x):\n"
               "        return torch.cat([branch(x) for branch in self], dim=1)\n"},
    {"Zero", "class Zero(nn.Module):\n"
             "    \"\"\"Zeros of the input's shape, or of every stride-th row and column.\"\"\"\n"
             "\n"
             "    def __init__(self, stride=1):\n"
             "        super().__init__()\n"
             "        self.stride = stride\n"
             "\n"
             "    def forward(self, x):\n"
             "        if self.stride > 1:\n"
             "            x = x[:, :, :: self.stride, :: self.stride]\n"
             "        return x * 0\n"},
    {0},
};

const hwnas_torch_row *hwnas_torch_row_of(const char *op)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].op, op))
            return &rows[i];
    return NULL;
}

const hwnas_torch_join *hwnas_torch_join_of(const char *op)
{
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++)
        if (!strcmp(joins[i].op, op))
            return &joins[i];
    return NULL;
}

bool hwnas_pytorch_knows(const char *op)
{
    return hwnas_torch_row_of(op) || hwnas_torch_join_of(op);
}
