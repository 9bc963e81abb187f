#include "cli/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aster/sqlite.h"
#include "base/error.h"
#include "cli/grantor/grantor.h"
#include "cli/postgres/postgres.h"

#define OPEN_ATTEMPTS 10 /* each waits for the write lock as long as busy_timeout_ms, a second */

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The process may change its directory, and a child surely does: keep an absolute path. */
static aster_status set_path(struct aster_store_name *name, const char *path, struct aster_error *error)
{
    char directory[ASTER_STORE_PATH_MAX] = "";
    if (path[0] == '\0') {
        return aster_error_set(error, ASTER_ERR_INVALID, "sqlite: names no file: write sqlite:PATH");
    }
    if (strcmp(path, ":memory:") == 0) {
        return aster_error_set(
            error, ASTER_ERR_INVALID,
            "sqlite::memory: is private to one process, so it would exclude nobody: write sqlite:PATH");
    }
    if (begins(path, "file:")) {
        return aster_error_set(error, ASTER_ERR_INVALID, "sqlite: takes a path, not a file: URI: write sqlite:PATH");
    }
    if (path[0] != '/') {
        if (getcwd(directory, sizeof directory - 1) == NULL) {
            return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot tell the current directory");
        }
        strcat(directory, "/");
    }
    int length = snprintf(name->text, sizeof name->text, "sqlite:%s%s", directory, path);
    if (length < 0 || (size_t)length > ASTER_STORE_PATH_MAX + strlen("sqlite:")) {
        return aster_error_set(error, ASTER_ERR_INVALID, "the path of the store is longer than %d bytes",
                               ASTER_STORE_PATH_MAX);
    }
    name->kind = ASTER_STORE_SQLITE;
    name->path = name->text + strlen("sqlite:");
    return ASTER_OK;
}

static aster_status set_default(struct aster_store_name *name, struct aster_error *error)
{
    char path[ASTER_STORE_PATH_MAX];
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    int length;
    if (state != NULL && state[0] == '/') {
        length = snprintf(path, sizeof path, "%s/aster/leases.db", state);
    } else if (home != NULL && home[0] == '/') {
        length = snprintf(path, sizeof path, "%s/.local/state/aster/leases.db", home);
    } else {
        return aster_error_set(
            error, ASTER_ERR_INVALID,
            "neither XDG_STATE_HOME nor HOME names a directory: name a store with --store sqlite:PATH");
    }
    if (length < 0 || (size_t)length >= sizeof path) {
        return aster_error_set(error, ASTER_ERR_INVALID, "XDG_STATE_HOME or HOME is too long: use --store sqlite:PATH");
    }
    name->is_default = true;
    return set_path(name, path, error);
}

bool aster_store_is_grantor(const char *store)
{
    return store != NULL && begins(store, ASTER_GRANTOR_SCHEME);
}

static aster_status set_remote(struct aster_store_name *name, enum aster_store_kind kind, const char *store,
                               struct aster_error *error)
{
    int length = snprintf(name->text, sizeof name->text, "%s", store);
    if (length < 0 || (size_t)length >= sizeof name->text) {
        return aster_error_set(error, ASTER_ERR_INVALID, "the store names more than %zu bytes of addresses",
                               sizeof name->text - 1);
    }
    name->kind = kind;
    return ASTER_OK;
}

static aster_status resolve(const char *store, struct aster_store_name *name, struct aster_error *error)
{
    if (store == NULL || store[0] == '\0') {
        return set_default(name, error);
    }
    if (strcmp(store, "mem:") == 0) {
        name->kind = ASTER_STORE_MEMORY;
        snprintf(name->text, sizeof name->text, "mem:");
        return ASTER_OK;
    }
    if (begins(store, "sqlite:")) {
        return set_path(name, store + strlen("sqlite:"), error);
    }
    if (aster_store_is_grantor(store)) {
        return set_remote(name, ASTER_STORE_GRANTOR, store, error);
    }
    if (aster_store_is_postgres(store)) {
        return set_remote(name, ASTER_STORE_POSTGRES, store, error);
    }
    if (begins(store, "postgresql:") || begins(store, "postgres:")) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "a PostgreSQL store is written postgresql://USER@HOST/DATABASE");
    }
    char shown[ASTER_PRINTABLE_MAX];
    aster_printable(aster_text(store), shown);
    return aster_error_set(error, ASTER_ERR_INVALID, "\"%s\" is no store: write sqlite:%s for a file of that name",
                           shown, shown);
}

aster_status aster_store_resolve(const char *store, struct aster_store_name *name, struct aster_error *error)
{
    memset(name, 0, sizeof *name);
    aster_status status = resolve(store, name, error);
    if (status == ASTER_OK && name->kind == ASTER_STORE_POSTGRES) {
        aster_cli_postgres_show(name->text, name->shown, sizeof name->shown);
    } else if (status == ASTER_OK) {
        memcpy(name->shown, name->text, sizeof name->shown);
    }
    return status;
}

/* mkdir -p with mode 0700, for the default store only: a directory that the user names must be there. */
static aster_status make_directories(const char *path, struct aster_error *error)
{
    char part[ASTER_STORE_PATH_MAX + 1];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST) {
            char shown[ASTER_PRINTABLE_MAX];
            return aster_error_set_os(error, ASTER_ERR_IO, errno,
                                      "cannot make the directory %s for the default store; name one with --store",
                                      aster_printable(aster_text(part), shown));
        }
        *slash = '/';
    }
    return ASTER_OK;
}

/* Opening writes (tables, a new boot's ttl), and many commands may start at once: that is no reason to fail. */
static aster_status open_when_free(const char *path, const struct aster_sqlite_options *options,
                                   struct aster_serializer **serializer, struct aster_error *error)
{
    aster_status status = ASTER_ERR_BUSY;
    for (int attempt = 0; status == ASTER_ERR_BUSY && attempt < OPEN_ATTEMPTS; attempt++) {
        status = aster_sqlite_open(path, options, serializer, error);
    }
    return status;
}

static aster_status open_sqlite(const struct aster_store_name *name, enum aster_store_mode mode,
                                struct aster_serializer **serializer, struct aster_error *error)
{
    char shown[ASTER_PRINTABLE_MAX];
    struct aster_sqlite_options options = ASTER_SQLITE_OPTIONS_INIT;
    options.create = mode == ASTER_STORE_CREATE;
    if (!options.create && access(name->path, F_OK) != 0 && errno == ENOENT) {
        return aster_error_set(error, ASTER_ERR_IO,
                               "there is no store %s yet; `aster run` or `aster acquire` makes it, or name one with "
                               "--store",
                               aster_printable(aster_text(name->path), shown));
    }
    if (options.create && name->is_default) {
        aster_status status = make_directories(name->path, error);
        if (status != ASTER_OK) {
            return status;
        }
    }
    return open_when_free(name->path, &options, serializer, error);
}

aster_status aster_store_open_quietly(const char *store, const char *node, enum aster_store_mode mode,
                                      struct aster_store_name *name, struct aster_serializer **serializer,
                                      struct aster_error *error)
{
    struct aster_store_name local;
    name = name != NULL ? name : &local;
    aster_status status = aster_store_resolve(store, name, error);
    if (status == ASTER_OK && name->kind == ASTER_STORE_MEMORY) {
        status = aster_error_set(error, ASTER_ERR_INVALID,
                                 "mem: is private to one process, so it would exclude nobody: use --store sqlite:PATH");
    }
    if (status == ASTER_OK && name->kind == ASTER_STORE_GRANTOR) {
        return aster_cli_grantor_open(name->text, node, serializer, error);
    }
    if (status == ASTER_OK && name->kind == ASTER_STORE_POSTGRES) {
        return aster_cli_postgres_open(name->text, serializer, error);
    }
    return status == ASTER_OK ? open_sqlite(name, mode, serializer, error) : status;
}

int aster_store_open(const struct aster_cli *cli, enum aster_store_mode mode, struct aster_store_name *name,
                     struct aster_serializer **serializer)
{
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_store_open_quietly(cli->store, cli->node, mode, name, serializer, &error) == ASTER_OK) {
        return ASTER_EXIT_OK;
    }
    int code = aster_cli_fail(cli, &error);
    return code == ASTER_EXIT_USAGE ? ASTER_EXIT_CONFIG : code;
}
