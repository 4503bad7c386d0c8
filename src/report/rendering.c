#include "report/rendering.h"

void hwnas_rendering_done(hwnas_rendering *told)
{
    hwnas_str_done(&told->text);
    hwnas_str_done(&told->csv);
    json_decref(told->json);
    *told = (hwnas_rendering){0};
}
