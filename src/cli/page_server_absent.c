/* page_server_absent.c: in the place of page_server.c where libmicrohttpd is not. */
#include "cli/page_server.h"

hwnas_status hwnas_page_server_start(hwnas_page_server **out, int port)
{
    (void)out, (void)port;
    return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                 "this hwnas was built without libmicrohttpd, and serves nothing"),
                      "scripts/install-deps installs it; `hwnas report` writes a file instead");
}

const char *hwnas_page_server_address(const hwnas_page_server *server)
{
    (void)server;
    return "";
}

void hwnas_page_server_show(hwnas_page_server *server, char *data, const char *state)
{
    (void)server, (void)state;
    hwnas_free(data);
}

void hwnas_page_server_stop(hwnas_page_server *server)
{
    (void)server;
}
