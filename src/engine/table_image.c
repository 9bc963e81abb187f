/* Taking a change back. Whoever undoes decisions because they could not be made durable cannot be told that there is no
 * memory for it: so all that the row was is kept from before the change. */
#include <stdlib.h>

#include "base/alloc.h"
#include "engine/table_internal.h"

static size_t references(const struct aster_entry *entry)
{
    return (size_t)(entry->holder != 0) + (size_t)(entry->last_holder != 0) + (size_t)(entry->applied_caller != 0);
}

static void drop_identities(struct aster_table *table, const struct aster_entry *entry)
{
    aster_identities_drop(&table->identities, entry->holder);
    aster_identities_drop(&table->identities, entry->last_holder);
    aster_identities_drop(&table->identities, entry->applied_caller);
}

bool aster_image_begin(struct aster_table *table, const struct aster_entry *entry, struct aster_table_image *image)
{
    if (entry == NULL) {
        image->kind = ASTER_IMAGE_CREATED;
        return true;
    }
    image->entry = aster_alloc(sizeof *image->entry);
    if (image->entry == NULL) {
        return false;
    }
    memcpy(image->entry, entry, sizeof *entry); /* the first bytes of the name too, where they fill the struct's end */
    aster_identities_share(&table->identities, entry->holder);
    aster_identities_share(&table->identities, entry->last_holder);
    aster_identities_share(&table->identities, entry->applied_caller);
    table->image_references += references(entry);
    image->kind = ASTER_IMAGE_CHANGED;
    return true;
}

void aster_image_keep_value(struct aster_table_image *image, struct aster_value *value)
{
    image->value = value;
    image->value_replaced = true;
}

void aster_image_keep_removed(struct aster_table *table, struct aster_entry *entry, struct aster_table_image *image)
{
    image->kind = ASTER_IMAGE_REMOVED;
    image->entry = entry;
    table->image_references += references(entry);
    table->removed_images++;
}

static void restore_changed(struct aster_table *table, struct aster_entry *entry, struct aster_table_image *image)
{
    const struct aster_entry later = *entry;
    table->held += (size_t)image->entry->held - (size_t)later.held;
    drop_identities(table, &later);
    table->image_references -= references(image->entry);
    memcpy(entry, image->entry, sizeof *entry);
    entry->next = later.next;
    entry->deadline_slot = later.deadline_slot;
    entry->value = later.value;
    if (image->value_replaced) {
        table->entry_bytes += aster_value_bytes(image->value) - aster_value_bytes(later.value);
        free(later.value);
        entry->value = image->value;
    }
    free(image->entry);
    if (entry->held) {
        aster_deadlines_arm(&table->deadlines, entry);
    }
}

static void restore_removed(struct aster_table *table, struct aster_entry *entry)
{
    table->image_references -= references(entry);
    table->removed_images--;
    table->entry_bytes += aster_entry_size(entry->name_size) + aster_value_bytes(entry->value);
    aster_index_insert(&table->index, entry);
}

static void remove_created(struct aster_table *table, struct aster_entry *entry)
{
    table->held -= entry->held;
    aster_index_remove(&table->index, entry);
    aster_deadlines_remove(&table->deadlines, entry);
    table->entry_bytes -= aster_entry_size(entry->name_size) + aster_value_bytes(entry->value);
    drop_identities(table, entry);
    free(entry->value);
    free(entry);
}

void aster_table_restore(struct aster_table *table, struct aster_bytes resource, struct aster_table_image *image)
{
    struct aster_entry *entry =
        aster_index_find(&table->index, (uint32_t)aster_siphash(&table->key, resource), resource);
    switch (image->kind) {
    case ASTER_IMAGE_CREATED:
        remove_created(table, entry);
        break;
    case ASTER_IMAGE_CHANGED:
        restore_changed(table, entry, image);
        break;
    case ASTER_IMAGE_REMOVED:
        restore_removed(table, image->entry);
        break;
    case ASTER_IMAGE_NONE:
        break;
    }
    *image = (struct aster_table_image){.kind = ASTER_IMAGE_NONE};
}

void aster_table_image_drop(struct aster_table *table, struct aster_table_image *image)
{
    if (image->entry != NULL) {
        table->image_references -= references(image->entry);
        table->removed_images -= image->kind == ASTER_IMAGE_REMOVED;
        drop_identities(table, image->entry);
        if (image->kind == ASTER_IMAGE_REMOVED) {
            free(image->entry->value);
        }
        free(image->entry);
    }
    free(image->value);
    *image = (struct aster_table_image){.kind = ASTER_IMAGE_NONE};
}

void aster_table_reset_floor(struct aster_table *table, int64_t floor)
{
    table->floor = floor;
}
