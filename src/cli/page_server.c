#include "cli/page_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <hwnas/page.h>
#include <microhttpd.h>

enum { TOKEN_BYTES = 16, PATIENCE = 30 /* seconds of silence */ };

struct hwnas_page_server {
    struct MHD_Daemon *daemon;
    char token[2 * TOKEN_BYTES + 1], address[80], tag[24];
    struct MHD_Response *page, *refusal;
    /* What the thread that answers shares with the one that looks. */
    pthread_mutex_t mutex;
    struct MHD_Response *data; /* NULL: there is none yet */
    const char *state;
    unsigned long n_shown;
};

static hwnas_status make_token(char token[2 * TOKEN_BYTES + 1])
{
    unsigned char bytes[TOKEN_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return hwnas_fail(HWNAS_E_IO, NULL, "there are no random numbers: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return HWNAS_OK;
}

/* How long it takes tells nothing of the token. */
static bool is_token(const char *given, const char *token)
{
    unsigned char difference = 0;
    for (size_t i = 0; i < 2 * TOKEN_BYTES; i++) {
        difference |= (unsigned char)(*given ^ token[i]);
        given += *given != '\0';
    }
    return !difference;
}

/* ---- Responses ---- */

/* Takes the text. */
static struct MHD_Response *respond(char *text, const char *type)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    if (!response)
        free(text);
    if (response && type) {
        MHD_add_response_header(response, "Content-Type", type);
        MHD_add_response_header(response, "Cache-Control", "no-store");
        MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
        MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        MHD_add_response_header(response, "X-Frame-Options", "DENY");
    }
    return response;
}

static struct MHD_Response *respond_with_nothing(void)
{
    return MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result answer_data(hwnas_page_server *server, struct MHD_Connection *connection)
{
    const char *known =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
    pthread_mutex_lock(&server->mutex);
    const bool is_same = known && !strcmp(known, server->tag);
    struct MHD_Response *nothing = !server->data || is_same ? respond_with_nothing() : NULL;
    if (nothing) {
        MHD_add_response_header(nothing, "Hwnas-Study", server->state);
        MHD_add_response_header(nothing, MHD_HTTP_HEADER_ETAG, server->tag);
    }
    const enum MHD_Result result =
        server->data && !is_same
            ? MHD_queue_response(connection, MHD_HTTP_OK, server->data)
            : MHD_queue_response(
                  connection, server->data ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_NO_CONTENT, nothing);
    pthread_mutex_unlock(&server->mutex);
    if (nothing)
        MHD_destroy_response(nothing);
    return result;
}

static enum MHD_Result refuse_method(struct MHD_Connection *connection)
{
    struct MHD_Response *response = respond_with_nothing();
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    const enum MHD_Result result =
        MHD_queue_response(connection, MHD_HTTP_METHOD_NOT_ALLOWED, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **memory)
{
    (void)version, (void)upload, (void)memory;
    hwnas_page_server *server = context;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        *upload_size = 0;
        return refuse_method(connection);
    }
    if (*url != '/' || !is_token(url + 1, server->token))
        return MHD_queue_response(connection, MHD_HTTP_FORBIDDEN, server->refusal);
    const char *rest = url + 1 + strlen(server->token);
    if (!strcmp(rest, "/"))
        return MHD_queue_response(connection, MHD_HTTP_OK, server->page);
    if (!strcmp(rest, "/data"))
        return answer_data(server, connection);
    return MHD_queue_response(connection, MHD_HTTP_NOT_FOUND, server->refusal);
}

/* ---- Starting and stopping ---- */

static hwnas_status listen_on(int *out, int *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)*port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof to;
    const int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) ||
        bind(fd, (struct sockaddr *)&to, size) || listen(fd, 128) ||
        getsockname(fd, (struct sockaddr *)&to, &size)) {
        const int why = errno;
        if (fd >= 0)
            close(fd);
        return hwnas_hint(hwnas_fail(HWNAS_E_IO, NULL, "cannot serve on 127.0.0.1, port %d: %s",
                                     *port, strerror(why)),
                          "without --port a free one is taken");
    }
    *port = ntohs(to.sin_port);
    *out = fd;
    return HWNAS_OK;
}

static char *copy(const char *text)
{
    char *made = hwnas_need(strlen(text) + 1, 1);
    memcpy(made, text, strlen(text));
    return made;
}

hwnas_status hwnas_page_server_start(hwnas_page_server **out, int port)
{
    hwnas_status status = HWNAS_OK;
    int fd = -1;
    char source[TOKEN_BYTES * 2 + sizeof "//data"];
    hwnas_page_server *server = hwnas_need(1, sizeof *server);
    pthread_mutex_init(&server->mutex, NULL);
    server->state = "running";
    TRY_OUT(make_token(server->token));
    TRY_OUT(listen_on(&fd, &port));
    snprintf(server->address, sizeof server->address, "http://127.0.0.1:%d/%s/", port,
             server->token);
    snprintf(source, sizeof source, "/%s/data", server->token);
    server->page = respond(hwnas_page_following(source), "text/html; charset=utf-8");
    server->refusal =
        respond(copy("This is not the address that hwnas watch printed.\n"), "text/plain");
    if (server->page && server->refusal)
        server->daemon =
            MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, answer,
                             server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_TIMEOUT,
                             (unsigned)PATIENCE, MHD_OPTION_END);
    if (!server->daemon) {
        status = hwnas_fail(HWNAS_E_LIBRARY, NULL, "libmicrohttpd does not serve on port %d", port);
        goto out;
    }
    fd = -1; /* the daemon's now */
    *out = server;
    server = NULL;
out:
    if (fd >= 0)
        close(fd);
    hwnas_page_server_stop(server);
    return status;
}

const char *hwnas_page_server_address(const hwnas_page_server *server)
{
    return server->address;
}

void hwnas_page_server_show(hwnas_page_server *server, char *data, const char *state)
{
    struct MHD_Response *made = data ? respond(data, "application/json") : NULL;
    pthread_mutex_lock(&server->mutex);
    server->state = state;
    if (made) {
        snprintf(server->tag, sizeof server->tag, "\"%lu\"", ++server->n_shown);
        MHD_add_response_header(made, MHD_HTTP_HEADER_ETAG, server->tag);
        MHD_add_response_header(made, "Hwnas-Study", state);
        if (server->data)
            MHD_destroy_response(server->data);
        server->data = made;
    }
    pthread_mutex_unlock(&server->mutex);
}

void hwnas_page_server_stop(hwnas_page_server *server)
{
    if (!server)
        return;
    struct MHD_Response *const responses[] = {server->page, server->refusal, server->data};
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    for (size_t i = 0; i < sizeof responses / sizeof *responses; i++)
        if (responses[i])
            MHD_destroy_response(responses[i]);
    pthread_mutex_destroy(&server->mutex);
    free(server);
}
