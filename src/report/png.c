/* png.c: librsvg draws what desktops have it for. It is opened when a picture is asked for, so that
 * nobody needs it or its headers, which bring those of GLib and of cairo; the functions are few,
 * and are as they were when the libraries got their numbers. */
#include "report/png.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { WIDTH = 1440, HEIGHT = 880, ARGB32 = 0 };

typedef struct rectangle {
    double x, y, width, height;
} rectangle;

typedef struct functions {
    /* librsvg 2.46 and later */
    void *(*rsvg_handle_new_from_data)(const uint8_t *data, size_t n, void **error);
    int (*rsvg_handle_render_document)(void *handle, void *cairo, const rectangle *where,
                                       void **error);
    /* GLib */
    void (*g_object_unref)(void *object);
    /* cairo */
    void *(*cairo_image_surface_create)(int format, int width, int height);
    void *(*cairo_create)(void *surface);
    void (*cairo_set_source_rgb)(void *cairo, double red, double green, double blue);
    void (*cairo_paint)(void *cairo);
    void (*cairo_destroy)(void *cairo);
    int (*cairo_surface_write_to_png_stream)(
        void *surface, int (*write)(void *to, const unsigned char *bytes, unsigned n), void *to);
    void (*cairo_surface_destroy)(void *surface);
} functions;

static const struct {
    const char *library, *name;
    size_t at;
} rows[] = {
#define ROW(library, name)                                                                         \
    {                                                                                              \
        library, #name, offsetof(functions, name)                                                  \
    }
    ROW("librsvg-2.so.2", rsvg_handle_new_from_data),
    ROW("librsvg-2.so.2", rsvg_handle_render_document),
    ROW("libgobject-2.0.so.0", g_object_unref),
    ROW("libcairo.so.2", cairo_image_surface_create),
    ROW("libcairo.so.2", cairo_create),
    ROW("libcairo.so.2", cairo_set_source_rgb),
    ROW("libcairo.so.2", cairo_paint),
    ROW("libcairo.so.2", cairo_destroy),
    ROW("libcairo.so.2", cairo_surface_write_to_png_stream),
    ROW("libcairo.so.2", cairo_surface_destroy),
#undef ROW
};

/* The libraries stay open: GLib cannot be closed. */
static hwnas_status open_functions(functions *out)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *library = dlopen(rows[i].library, RTLD_NOW | RTLD_LOCAL);
        void *address = library ? dlsym(library, rows[i].name) : NULL;
        if (!address)
            return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                         "PNG is drawn by librsvg, which cannot be used: %.300s",
                                         dlerror()),
                              "install librsvg2-2 (2.46 or newer), or write SVG: --svg");
        memcpy((char *)out + rows[i].at, &address, sizeof address);
    }
    return HWNAS_OK;
}

static int add_bytes(void *to, const unsigned char *bytes, unsigned n)
{
    hwnas_str_addn(to, (const char *)bytes, n);
    return 0;
}

static bool draw(hwnas_str *out, const functions *f, void *handle)
{
    const rectangle all = {0, 0, WIDTH, HEIGHT};
    void *surface = f->cairo_image_surface_create(ARGB32, WIDTH, HEIGHT);
    void *cairo = f->cairo_create(surface);
    f->cairo_set_source_rgb(cairo, 1, 1, 1);
    f->cairo_paint(cairo);
    const bool is_good = f->rsvg_handle_render_document(handle, cairo, &all, NULL) &&
                         !f->cairo_surface_write_to_png_stream(surface, add_bytes, out);
    f->cairo_destroy(cairo);
    f->cairo_surface_destroy(surface);
    return is_good;
}

hwnas_status hwnas_png_draw(hwnas_str *out, const char *svg)
{
    functions f;
    hwnas_str png = {0};
    TRY(open_functions(&f));
    void *handle = f.rsvg_handle_new_from_data((const uint8_t *)svg, strlen(svg), NULL);
    const bool is_good = handle && draw(&png, &f, handle);
    if (handle)
        f.g_object_unref(handle);
    if (!is_good) {
        hwnas_str_done(&png);
        return hwnas_hint(hwnas_fail(HWNAS_E_LIBRARY, NULL, "librsvg could not draw the picture"),
                          "--svg writes it as SVG");
    }
    *out = png;
    return HWNAS_OK;
}
