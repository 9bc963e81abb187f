/* The program asterd: the configuration, the signals and the exit status. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "aster/version.h"
#include "base/error.h"
#include "grantor/log.h"
#include "grantor/server.h"
#include "platform/service.h"

#define CONFIG_DEFAULT "/etc/aster/asterd.conf"

struct arguments {
    const char *config;
    const char *journal; /* instead of the file's; both NULL = the file's */
    const char *store;
    const char *log_format; /* the same */
    bool check;
};

static const char usage[] =
    "usage: asterd [--config FILE] [--journal sqlite:PATH|none] [--store sqlite:PATH]\n"
    "              [--log-format logfmt|json] [--check]\n"
    "\n"
    "Serve leases over QUIC and TCP with mutual TLS 1.3.\n"
    "\n"
    "  --config FILE        default " CONFIG_DEFAULT "\n"
    "  --journal JOURNAL    keep decisions there, instead of where the file says\n"
    "  --store STORE        serve a file that programs of this host share, instead of the one in the file\n"
    "  --log-format FORMAT  logfmt or json, instead of the one in the file\n"
    "  --check              read the configuration, key and certificates, say what is wrong, serve nothing\n"
    "  --version, --help\n"
    "\n"
    "SIGHUP reloads the configuration and the certificate, SIGTERM drains and ends. See asterd(8).\n";

/* Returns an exit status, or -1 to go on. */
static int parse(int argc, char **argv, struct arguments *arguments)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'}, {"journal", required_argument, NULL, 'j'},
        {"store", required_argument, NULL, 's'},  {"log-format", required_argument, NULL, 'l'},
        {"check", no_argument, NULL, 'k'},        {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            arguments->config = optarg;
            break;
        case 'j':
            arguments->journal = optarg;
            break;
        case 's':
            arguments->store = optarg;
            break;
        case 'l':
            arguments->log_format = optarg;
            break;
        case 'k':
            arguments->check = true;
            break;
        case 'v':
            puts("asterd " ASTER_VERSION_TEXT);
            return EX_OK;
        case 'h':
            fputs(usage, stdout);
            return EX_OK;
        default:
            fputs(usage, stderr);
            return EX_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "asterd: \"%s\" is not an option\n%s", argv[optind], usage);
        return EX_USAGE;
    }
    enum grantor_log_format format = GRANTOR_LOGFMT;
    if (arguments->log_format != NULL && !grantor_log_format_named(arguments->log_format, &format)) {
        fprintf(stderr, "asterd: --log-format is \"%s\": write logfmt or json\n", arguments->log_format);
        return EX_USAGE;
    }
    grantor_log_use(format); /* until the configuration has been read */
    return -1;
}

static aster_status read_settings(const struct arguments *arguments, struct grantor_settings **settings,
                                  struct aster_error *error)
{
    const struct grantor_place place = {arguments->journal, arguments->store};
    aster_status status = grantor_settings_read(arguments->config, &place, settings, error);
    if (status == ASTER_OK && arguments->log_format != NULL) {
        grantor_log_format_named(arguments->log_format, &(*settings)->log_format);
    }
    return status;
}

static int fail(const char *what, const struct aster_error *error)
{
    struct grantor_line line;
    grantor_line_init(&line, GRANTOR_ERROR, what);
    grantor_line_text(&line, "error", error->message);
    grantor_line_end(&line);
    return error->status == ASTER_ERR_INVALID ? EX_CONFIG : EX_UNAVAILABLE;
}

static void reload(struct grantor_server *server, const struct arguments *arguments)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct grantor_settings *settings = NULL;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    aster_service_notify("RELOADING=1\nMONOTONIC_USEC=%" PRId64,
                         (int64_t)now.tv_sec * 1000000 + (int64_t)now.tv_nsec / 1000);
    aster_status status = read_settings(arguments, &settings, &error);
    if (status == ASTER_OK) {
        enum grantor_log_format format = settings->log_format;
        status = grantor_server_reload(server, settings, &error);
        if (status != ASTER_OK) {
            grantor_settings_destroy(settings);
        } else {
            grantor_log_use(format);
        }
    }
    if (status != ASTER_OK) {
        fail("not-reloaded", &error);
    }
    aster_service_notify("READY=1\nSTATUS=%s",
                         status == ASTER_OK ? "Serving" : "Serving; the configuration was not reloaded");
}

static void say_ready(const struct grantor_settings *settings)
{
    struct grantor_line line;
    bool forgets = settings->journal != NULL && strcmp(settings->journal, "none") == 0;
    grantor_line_init(&line, forgets ? GRANTOR_WARNING : GRANTOR_INFO, "ready");
    grantor_line_text(&line, settings->journal != NULL ? "journal" : "store",
                      settings->journal != NULL ? settings->journal : settings->store);
    if (forgets) {
        grantor_line_text(&line, "note", "nothing survives this process, epochs included");
    }
    grantor_line_end(&line);
    aster_service_notify("READY=1\nSTATUS=Serving");
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.config = CONFIG_DEFAULT};
    int code = parse(argc, argv, &arguments);
    if (code >= 0) {
        return code;
    }
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    struct aster_error error = ASTER_ERROR_INIT;
    struct grantor_settings *settings = NULL;
    struct grantor_server *server = NULL;
    if (read_settings(&arguments, &settings, &error) != ASTER_OK) {
        fail("configuration", &error);
        return error.status == ASTER_ERR_NOMEM ? EX_UNAVAILABLE : EX_CONFIG; /* also a file that is not there */
    }
    if (arguments.check) {
        code = grantor_server_check(settings, &error) == ASTER_OK ? EX_OK : fail("configuration", &error);
        grantor_settings_destroy(settings);
        return code;
    }
    grantor_log_use(settings->log_format);
    if (grantor_server_start(settings, &server, &error) != ASTER_OK) {
        grantor_settings_destroy(settings);
        return fail("not-started", &error);
    }
    say_ready(settings);
    int signal_number = 0;
    while (sigwait(&signals, &signal_number) == 0 && signal_number == SIGHUP) {
        reload(server, &arguments);
    }
    aster_service_notify("STOPPING=1\nSTATUS=Draining");
    grantor_server_stop(server);
    return EX_OK;
}
