#include "serializer/sqlite/inherited.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"

/* Entries are used again and never freed, so that a reader needs no lock. */
struct aster_opened {
    struct aster_opened *next;
    _Atomic(bool) taken;
    _Atomic(uint64_t) generation; /* 0 = not open */
    struct aster_file_identity file;
};

static _Atomic(struct aster_opened *) first;

static bool is_inherited(const struct aster_file_identity *file, uint64_t generation)
{
    for (struct aster_opened *entry = atomic_load(&first); entry != NULL; entry = entry->next) {
        uint64_t other = atomic_load(&entry->generation);
        if (other != 0 && other != generation && entry->file.device == file->device &&
            entry->file.inode == file->inode) {
            return true;
        }
    }
    return false;
}

static struct aster_opened *take_entry(void)
{
    for (struct aster_opened *entry = atomic_load(&first); entry != NULL; entry = entry->next) {
        bool taken = false;
        if (atomic_compare_exchange_strong(&entry->taken, &taken, true)) {
            return entry;
        }
    }
    struct aster_opened *made = calloc(1, sizeof *made);
    if (made != NULL) {
        atomic_init(&made->taken, true);
        made->next = atomic_load(&first);
        while (!atomic_compare_exchange_weak(&first, &made->next, made)) {
        }
    }
    return made;
}

aster_status aster_opened_note(const struct aster_file_identity *file, uint64_t generation,
                               struct aster_opened **opened, struct aster_error *error)
{
    if (is_inherited(file, generation)) {
        return aster_error_set(error, ASTER_ERR_FORKED,
                               "the file was open when this process was forked, and SQLite would trust locks that it "
                               "does not have: open it in the child only after exec(), or fork before opening it");
    }
    struct aster_opened *entry = take_entry();
    if (entry == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a store");
    }
    entry->file = *file;
    atomic_store(&entry->generation, generation);
    *opened = entry;
    return ASTER_OK;
}

void aster_opened_forget(struct aster_opened *opened)
{
    if (opened != NULL) {
        atomic_store(&opened->generation, 0);
        atomic_store(&opened->taken, false);
    }
}
