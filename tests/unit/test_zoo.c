/* The networks that everybody knows: as files of the zoo, and as points of the spaces that have
 * them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "graph/elaborate.h"

static hwnas_space *load(const char *name)
{
    hwnas_space *space;
    if (hwnas_graph_load_space(&space, name))
        fail_msg("%s: %s:%d: %s", name, hwnas_last_error()->file, hwnas_last_error()->line,
                 hwnas_last_error()->message);
    return space;
}

/* The network of a code of a space; "" for a fixed network. `folded`: without its BatchNorm. */
static hwnas_costs costs_of(const char *name, const char *code, hwnas_digest *digest,
                            hwnas_costs *folded)
{
    hwnas_space *space = load(name);
    hwnas_arch *arch;
    hwnas_graph *graph;
    hwnas_costs costs;
    if (hwnas_arch_parse(&arch, space, code))
        fail_msg("%s", hwnas_last_error()->message);
    if (hwnas_graph_build(&graph, arch, 1))
        fail_msg("%s: %s", name, hwnas_last_error()->message);
    hwnas_graph_costs(&costs, graph);
    if (digest)
        *digest = hwnas_graph_digest(graph);
    if (folded) {
        hwnas_graph *deployed;
        if (hwnas_graph_fold(&deployed, graph))
            fail_msg("%s", hwnas_last_error()->message);
        hwnas_graph_costs(folded, deployed);
        hwnas_graph_free(deployed);
    }
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    return costs;
}

static void zoo_has_the_published_costs(void **state)
{
    static const struct {
        const char *name;
        int64_t params, macs;
        double published, rounding; /* MACs and the last digit given; 0: none were published */
    } zoo[] = {
        /* torchvision.models: num_params and _ops of the weights */
        {"resnet50", 25557032, 4089184256, 4.089e9, 1e6},
        {"resnet152", 60192808, 11513626624, 11.514e9, 1e6},
        {"vgg16", 138357544, 15470264320, 15.47e9, 1e7},
        {"mobilenet_v2", 3504872, 300774272, 0.301e9, 1e6},
        {"mobilenet_v3_large", 5483032, 216589760, 0.217e9, 1e6},
        {"efficientnet_b0", 5288548, 385814752, 0.386e9, 1e6},
        {"efficientnet_b2", 9109994, 1087529456, 1.088e9, 1e6},
        {"ssd_mobilenet", 3440060, 583171904, 0.583e9, 1e6},
        /* He et al. 2016, table 6: 0.46 M parameters */
        {"resnet32_cifar", 464154, 68862592, 0, 0},
        /* Keras's examples */
        {"mnist_mlp", 669706, 668672, 0, 0},
        {"mnist_cnn", 1199882, 11992448, 0, 0},
        {"cifar10_cnn", 1250858, 20741120, 0, 0},
        {"imdb_fasttext", 1000051, 50, 0, 0},
        {"imdb_bilstm", 2658945, 9830528, 0, 0},
        {"lstm_text_generation", 102585, 3796096, 0, 0},
        /* Hugging Face's BertModel and GPT2Model; 128 tokens */
        {"bert_base", 109482240, 11174215680, 0, 0},
        {"gpt2_small", 124439808, 16114089984, 0, 0},
        {"gpt2_small:phase=decode", 124439808, 125891328, 0, 0},
        /* Hugging Face's LlamaForCausalLM; 128 tokens, and one more after 128 */
        {"smollm_135m", 134515008, 17779654656, 0, 0},
        {"smollm_135m:phase=decode", 134515008, 138938112, 0, 0},
        /* timm, whose MACs have the layer norms in them */
        {"deit_tiny", 5717416, 1253683200, 1.26e9, 2e7},
        {"vit_b16", 86567656, 17563828224, 17.564e9, 1e6}, /* torchvision */
    };
    (void)state;
    for (size_t i = 0; i < sizeof zoo / sizeof *zoo; i++) {
        hwnas_costs costs = costs_of(zoo[i].name, "", NULL, NULL);
        if (costs.params != zoo[i].params || costs.macs != zoo[i].macs)
            fail_msg("%s: %lld params, %lld MACs; expected %lld, %lld", zoo[i].name,
                     (long long)costs.params, (long long)costs.macs, (long long)zoo[i].params,
                     (long long)zoo[i].macs);
        if (zoo[i].published > 0 &&
            fabs((double)costs.macs - zoo[i].published) > zoo[i].rounding / 2)
            fail_msg("%s: %lld MACs are not the published %g", zoo[i].name, (long long)costs.macs,
                     zoo[i].published);
    }
}

#define YOLO(n, width)                                                                             \
    "backbone=" n n n n ",neck=" n n n n ",width=" width width width width width                   \
    ",act=silu,size=640"

/* Detectors publish parameters after BatchNorm is folded, and FLOPs, two for each
 * multiply-accumulate. */
static void detectors_have_the_published_costs(void **state)
{
    static const struct {
        const char *name, *code;
        int64_t params, folded;
        double gflops; /* to a digit after the point */
    } detectors[] = {
        /* ultralytics/yolov5, tutorial.ipynb: both counts of YOLOv5s, and the folded one's FLOPs */
        {"yolov5s", "", 7235389, 7225885, 16.4},
        {"yolo_like", YOLO("1", "2"), 7235389, 7225885, 16.4},
        /* WongKinYiu/yolov7, tools/YOLOv7onnx.ipynb; FLOPs from the paper's table 2 */
        {"yolov7_tiny", "", 6227101, 6219709, 13.7},
    };
    (void)state;
    for (size_t i = 0; i < sizeof detectors / sizeof *detectors; i++) {
        hwnas_costs folded, costs = costs_of(detectors[i].name, detectors[i].code, NULL, &folded);
        assert_int_equal(costs.params, detectors[i].params);
        assert_int_equal(folded.params, detectors[i].folded);
        assert_int_equal(folded.macs, costs.macs);
        assert_true(fabs(2e-9 * (double)costs.macs - detectors[i].gflops) <= 0.05);
    }
}

/* The README of ultralytics/yolov5: millions of parameters, folded, to a digit after the point. */
static void yolo_like_has_the_sizes_of_yolov5(void **state)
{
    static const struct {
        const char *code;
        double millions;
    } sizes[] = {
        {YOLO("1", "1"), 1.9},  {YOLO("1", "2"), 7.2},  {YOLO("2", "3"), 21.2},
        {YOLO("3", "4"), 46.5}, {YOLO("4", "5"), 86.7},
    };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        hwnas_costs folded;
        costs_of("yolo_like", sizes[i].code, NULL, &folded);
        assert_true(fabs((double)folded.params / 1e6 - sizes[i].millions) <= 0.05);
    }
}

#define SIX(x) x ":" x ":" x ":" x ":" x ":" x
#define RESNET50_WIDTHS "e=" SIX("0.25") ":" SIX("0.25") ":" SIX("0.25") ",w=" SIX("1")
#define VGG16_LAYERS "layers=22333,kernel=3333333333333333,quarters=44444,hidden=2,features=4096"

#define TWELVE(x) x x x x x x x x x x x x
#define TWELVE_BY(by, x) x by x by x by x by x by x by x by x by x by x by x by x
#define AS_GPT2 "gpt:vocabulary=50257,positions=learned,blocks=serial,ffn=plain,head=tied"
#define GPT2_SMALL "embed=768,layers=12,heads=" TWELVE_BY(".", "12") ",ratio=" TWELVE("4") ",bias=1"

#define TEN(x) x "." x "." x "." x "." x "." x "." x "." x "." x "." x
#define SMOLLM_135M                                                                                \
    "embed=576,layers=30,heads=9,groups=3,inner=" TEN("1536") "." TEN("1536") "." TEN("1536")

/* The same graph, layer by layer. */
static void points_of_spaces_are_networks_of_the_zoo(void **state)
{
    static const struct {
        const char *space, *code, *zoo;
    } points[] = {
        {"ofa_resnet50", "d=3463,stem=1,pool=0,r=224," RESNET50_WIDTHS, "resnet50"},
        {"vgg_like", "norm=0," VGG16_LAYERS, "vgg16"},
        {"bert", "layers=12,hidden=768,heads=12,ffn=" TWELVE("4"), "bert_base"},
        {AS_GPT2, GPT2_SMALL, "gpt2_small"},
        {AS_GPT2 ",phase=decode", GPT2_SMALL, "gpt2_small:phase=decode"},
        {"llama", SMOLLM_135M, "smollm_135m"},
        {"llama:phase=decode", SMOLLM_135M, "smollm_135m:phase=decode"},
        {"vit",
         "patch=16,embed=192,depth=12,heads=" TWELVE_BY(".", "3") ",ratio=" TWELVE_BY(":", "4"),
         "deit_tiny"},
        {"vit",
         "patch=16,embed=768,depth=12,heads=" TWELVE_BY(".", "12") ",ratio=" TWELVE_BY(":", "4"),
         "vit_b16"},
        {"lstm_text", "embed=128,layers=1,cell=lstm,units=64,both=1,read=last", "imdb_bilstm"},
        {"lstm_text:length=400", "embed=50,layers=0", "imdb_fasttext"},
        {"yolo_like", YOLO("1", "2"), "yolov5s"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        hwnas_digest point, zoo;
        costs_of(points[i].space, points[i].code, &point, NULL);
        costs_of(points[i].zoo, "", &zoo, NULL);
        assert_string_equal(point.hex, zoo.hex);
    }
}

/* Relatives of theirs in the same spaces: timm gives 25.58 M for the first, torchvision
 * the second. */
static void points_of_spaces_have_the_published_params(void **state)
{
    (void)state;
    assert_int_equal(
        costs_of("ofa_resnet50", "d=3463,stem=3,pool=1,r=224," RESNET50_WIDTHS, NULL, NULL).params,
        25576264); /* ResNet-50-D */
    assert_int_equal(costs_of("vgg_like", "norm=1," VGG16_LAYERS, NULL, NULL).params,
                     138365992); /* VGG-16 with batch normalisation */
}

/* torchvision.models.video: num_params and _ops of the weights. Folded, a batch norm is a bias: of
 * 4,800 channels in R3D-18. */
static void videos_have_the_published_costs(void **state)
{
    static const struct {
        const char *code;
        int64_t params;
        double gmacs; /* to three digits after the point */
    } points[] = {
        {"stem=volume,depth=2222,kind=volume.volume.volume.volume", 33371472, 40.697},
        {"stem=volume,depth=2222,kind=volume.image.image.image", 11695440, 43.343},
        {"stem=split,depth=2222,kind=split.split.split.split", 31505325, 40.519},
    };
    hwnas_costs folded;
    (void)state;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        char code[128];
        snprintf(code, sizeof code, "length=16,size=112,width=64,%s", points[i].code);
        const hwnas_costs costs = costs_of("video_resnet", code, NULL, i ? NULL : &folded);
        assert_int_equal(costs.params, points[i].params);
        assert_true(fabs(1e-9 * (double)costs.macs - points[i].gmacs) <= 0.0005);
    }
    assert_int_equal(folded.params, points[0].params - 4800);
}

/* The space's nearest network has layers expanded to 240 channels instead of 200, 184 and 184, and
 * no bias in the layer before the last; the rest is the same. */
static void mobilenet_v3_large_is_near_the_space_of_once_for_all(void **state)
{
    enum { MORE = 40 + 56 + 56, SIDE = 14, CHANNELS = 80, KERNEL = 9, NORMS = 2 + 2, BIAS = 1280 };
    hwnas_costs zoo = costs_of("mobilenet_v3_large", "", NULL, NULL);
    hwnas_costs point =
        costs_of("ofa_mobilenet_v3",
                 "d=23423,ks=33335553333333335553,e=43333333633366336663,r=224,w=1", NULL, NULL);
    (void)state;
    assert_int_equal(point.params, zoo.params + MORE * (2 * CHANNELS + KERNEL + NORMS) - BIAS);
    assert_int_equal(point.macs, zoo.macs + MORE * (2 * CHANNELS + KERNEL) * SIDE * SIDE);
}

static void check_count(const char *name, const char *expected)
{
    hwnas_space *space = load(name);
    bool is_exact;
    char *count = hwnas_space_count(space, &is_exact);
    assert_true(is_exact);
    assert_string_equal(count, expected);
    free(count);
    hwnas_space_free(space);
}

static void spaces_have_their_sizes(void **state)
{
    (void)state;
    /* Cai et al. 2020, section 3.3: ((3*3)^2 + (3*3)^3 + (3*3)^4)^5, "roughly 2 * 10^19", which is
     * 21758655492572485851; and 25 resolutions and 2 widths. */
    check_count("ofa_mobilenet_v3", "1087932774628624292550");
    /* expansions 117^2 * 1053 * 117; widths 3^5 * (1 + 2 * 3) with the stem;
     * shortcuts; resolutions */
    check_count("ofa_resnet50", "28687339297890");
    /* kernels 6^2 * 30^3; channels 4^5; norm; head 1 + 2 * 4 */
    check_count("vgg_like", "17915904000");
    /* depths 4^4 * 4^4; widths 5^5; activations; sizes */
    check_count("yolo_like", "2457600000");
    /* stem, and of each of three stages widths, layers, kernel, kind of layer, excitation */
    check_count("fashion_mnist", "2654208");
    /* clips 2 * 2; widths 3; stems 2; depths 3^4; kinds 3^4 */
    check_count("video_resnet", "157464");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zoo_has_the_published_costs),
        cmocka_unit_test(detectors_have_the_published_costs),
        cmocka_unit_test(yolo_like_has_the_sizes_of_yolov5),
        cmocka_unit_test(points_of_spaces_are_networks_of_the_zoo),
        cmocka_unit_test(points_of_spaces_have_the_published_params),
        cmocka_unit_test(videos_have_the_published_costs),
        cmocka_unit_test(mobilenet_v3_large_is_near_the_space_of_once_for_all),
        cmocka_unit_test(spaces_have_their_sizes),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
