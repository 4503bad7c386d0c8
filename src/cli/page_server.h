/* page_server.h: a page that changes, served to this machine alone: on 127.0.0.1, to those who know
 * its address, which has a token in it. It is read-only: it has a page, the data of the page, and
 * nothing else. */
#ifndef HWNAS_CLI_PAGE_SERVER_H
#define HWNAS_CLI_PAGE_SERVER_H

#include "cli/cli.h"

typedef struct hwnas_page_server hwnas_page_server;

/* `port` 0: any that is free. HWNAS_E_IO: it is taken; HWNAS_E_UNSUPPORTED: built without
 * libmicrohttpd. */
HWNAS_CHECKED hwnas_status hwnas_page_server_start(hwnas_page_server **out, int port);
/* "http://127.0.0.1:PORT/TOKEN/"; borrowed. */
const char *hwnas_page_server_address(const hwnas_page_server *server);
/* What is served from now on: `data`, which is taken (NULL: those of before), and what is to be
 * said of the study (hwnas/page.h), static. */
void hwnas_page_server_show(hwnas_page_server *server, char *data, const char *state);
void hwnas_page_server_stop(hwnas_page_server *server);

#endif
