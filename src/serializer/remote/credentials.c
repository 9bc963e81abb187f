/* Who we are: loaded when the serializer is opened, and again before every connection, so that a certificate that was
 * renewed meanwhile is used. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "serializer/remote/remote.h"

static aster_status keep(const char *text, char **copy, struct aster_error *error)
{
    *copy = text != NULL ? strdup(text) : NULL;
    return text == NULL || *copy != NULL ? ASTER_OK : aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a path");
}

static aster_status load(const struct remote *remote, struct aster_credentials **credentials, struct aster_error *error)
{
    const struct remote_files *files = &remote->files;
    if (files->node != NULL) {
        return aster_credentials_load_node(files->node, credentials, error);
    }
    if (files->key == NULL || files->certificate == NULL || files->roots == NULL) {
        return aster_error_set(
            error, ASTER_ERR_INVALID,
            "who we are is not said: give the directory of a node, or a key, a certificate and roots");
    }
    const struct aster_credentials_files named = {files->key, files->certificate, files->roots};
    return aster_credentials_load(&named, credentials, error);
}

aster_status remote_credentials_init(struct remote *remote, const struct aster_grantor_options *options,
                                     struct aster_error *error)
{
    struct remote_files *files = &remote->files;
    aster_status status = keep(options->node, &files->node, error);
    if (status == ASTER_OK) {
        status = keep(options->key, &files->key, error);
    }
    if (status == ASTER_OK) {
        status = keep(options->certificate, &files->certificate, error);
    }
    if (status == ASTER_OK) {
        status = keep(options->roots, &files->roots, error);
    }
    if (status == ASTER_OK) {
        status = load(remote, &remote->credentials, error);
    }
    if (status == ASTER_OK) {
        remote->identity = aster_credentials_identity(remote->credentials);
    }
    return status;
}

/* Files that are being replaced, or name somebody else, are left alone: the leases belong to who we were. */
void remote_credentials_reload(struct remote *remote)
{
    struct aster_credentials *fresh = NULL;
    if (load(remote, &fresh, NULL) != ASTER_OK) {
        return;
    }
    if (aster_bytes_equal(aster_credentials_identity(fresh), remote->identity)) {
        aster_transport_reload(remote->quic, fresh);
        if (remote->tcp != NULL) {
            aster_transport_reload(remote->tcp, fresh);
        }
    }
    aster_credentials_unref(fresh);
}

void remote_credentials_fini(struct remote *remote)
{
    aster_credentials_unref(remote->credentials);
    free(remote->files.node);
    free(remote->files.key);
    free(remote->files.certificate);
    free(remote->files.roots);
}
