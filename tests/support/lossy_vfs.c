#include "support/lossy_vfs.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct write {
    sqlite3_int64 offset; /* of the data; with NULL data: the size the file is cut to */
    size_t size;
    unsigned char *data;
};

struct image {
    bool used;
    unsigned char *data;
    size_t size;
    struct write *writes; /* since the last sync */
    size_t count;
    size_t capacity;
};

enum { IMAGE_DATABASE, IMAGE_LOG, IMAGE_COUNT, IMAGE_NONE = -1 };

struct file {
    sqlite3_file base;
    int image;
    sqlite3_file *real; /* follows in memory */
};

static struct {
    pthread_mutex_t mutex;
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    char names[IMAGE_COUNT][64];
    struct image images[IMAGE_COUNT];
    enum lossy_fault fault;
    int64_t sync_us;
    int64_t syncs;
    int countdown; /* 0 = not armed */
    bool fired;
    char cut_path[256];
    unsigned cut_keep;
    uint64_t cut_seed;
} lossy = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void *must(void *memory)
{
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static void put(unsigned char **data, size_t *size, sqlite3_int64 offset, const unsigned char *bytes, size_t count)
{
    size_t end = (size_t)offset + count;
    if (end > *size) {
        *data = must(realloc(*data, end));
        memset(*data + *size, 0, end - *size);
        *size = end;
    }
    memcpy(*data + offset, bytes, count);
}

static void apply(const struct write *write, unsigned char **data, size_t *size, size_t count)
{
    if (write->data != NULL) {
        put(data, size, write->offset, write->data, count);
    } else if ((size_t)write->offset < *size) {
        *size = (size_t)write->offset;
    }
}

static uint64_t random_next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static void cut_image(const struct image *image, const char *path, unsigned keep_percent, uint64_t *seed)
{
    unlink(path);
    if (!image->used) {
        return;
    }
    size_t size = image->size;
    unsigned char *data = must(malloc(size + 1));
    memcpy(data, image->data != NULL ? image->data : data, size);
    for (size_t i = 0; i < image->count; i++) {
        if (random_next(seed) % 100 < keep_percent) {
            bool torn = keep_percent < 100 && random_next(seed) % 8 == 0;
            size_t whole = image->writes[i].size;
            apply(&image->writes[i], &data, &size, torn ? whole / 2 : whole);
        }
    }
    FILE *file = must(fopen(path, "wb"));
    if (fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        abort();
    }
    free(data);
}

static void cut(const char *path, unsigned keep_percent, uint64_t seed)
{
    char other[300];
    cut_image(&lossy.images[IMAGE_DATABASE], path, keep_percent, &seed);
    snprintf(other, sizeof other, "%s-wal", path);
    cut_image(&lossy.images[IMAGE_LOG], other, keep_percent, &seed);
    snprintf(other, sizeof other, "%s-shm", path);
    unlink(other);
}

void lossy_vfs_cut(const char *path, unsigned keep_percent, uint64_t seed)
{
    pthread_mutex_lock(&lossy.mutex);
    cut(path, keep_percent, seed);
    pthread_mutex_unlock(&lossy.mutex);
}

void lossy_vfs_cut_after(int calls, const char *path, unsigned keep_percent, uint64_t seed)
{
    pthread_mutex_lock(&lossy.mutex);
    lossy.countdown = calls;
    lossy.fired = false;
    snprintf(lossy.cut_path, sizeof lossy.cut_path, "%s", path);
    lossy.cut_keep = keep_percent;
    lossy.cut_seed = seed;
    pthread_mutex_unlock(&lossy.mutex);
}

bool lossy_vfs_fired(void)
{
    pthread_mutex_lock(&lossy.mutex);
    bool fired = lossy.fired;
    lossy.fired = false;
    lossy.countdown = 0;
    pthread_mutex_unlock(&lossy.mutex);
    return fired;
}

static void count_call(void)
{
    if (lossy.countdown > 0 && --lossy.countdown == 0) {
        cut(lossy.cut_path, lossy.cut_keep, lossy.cut_seed);
        lossy.fired = true;
    }
}

static void remember(struct image *image, sqlite3_int64 offset, const void *data, size_t size)
{
    if (image->count == image->capacity) {
        image->capacity = image->capacity * 2 + 16;
        image->writes = must(realloc(image->writes, image->capacity * sizeof *image->writes));
    }
    unsigned char *copy = NULL;
    if (data != NULL) {
        copy = must(malloc(size + 1));
        memcpy(copy, data, size);
    }
    image->writes[image->count++] = (struct write){offset, size, copy};
}

static void settle(struct image *image)
{
    for (size_t i = 0; i < image->count; i++) {
        apply(&image->writes[i], &image->data, &image->size, image->writes[i].size);
        free(image->writes[i].data);
    }
    image->count = 0;
}

static sqlite3_file *real_of(sqlite3_file *base)
{
    return ((struct file *)base)->real;
}

static int file_close(sqlite3_file *base)
{
    sqlite3_file *real = real_of(base);
    return real->pMethods != NULL ? real->pMethods->xClose(real) : SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *data, int size, sqlite3_int64 offset)
{
    return real_of(base)->pMethods->xRead(real_of(base), data, size, offset);
}

static int write_locked(struct file *file, const void *data, int size, sqlite3_int64 offset)
{
    sqlite3_int64 end = 0;
    if (lossy.fault == LOSSY_NO_WRITE) {
        return SQLITE_FULL;
    }
    if (lossy.fault == LOSSY_NO_GROWTH && file->real->pMethods->xFileSize(file->real, &end) == SQLITE_OK &&
        offset + size > end) {
        return SQLITE_FULL;
    }
    count_call();
    remember(&lossy.images[file->image], offset, data, (size_t)size);
    return file->real->pMethods->xWrite(file->real, data, size, offset);
}

static int file_write(sqlite3_file *base, const void *data, int size, sqlite3_int64 offset)
{
    struct file *file = (struct file *)base;
    if (file->image == IMAGE_NONE) {
        return file->real->pMethods->xWrite(file->real, data, size, offset);
    }
    pthread_mutex_lock(&lossy.mutex);
    int code = write_locked(file, data, size, offset);
    pthread_mutex_unlock(&lossy.mutex);
    return code;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct file *file = (struct file *)base;
    pthread_mutex_lock(&lossy.mutex);
    if (file->image != IMAGE_NONE) {
        remember(&lossy.images[file->image], size, NULL, 0);
    }
    pthread_mutex_unlock(&lossy.mutex);
    return file->real->pMethods->xTruncate(file->real, size);
}

static int file_sync(sqlite3_file *base, int flags)
{
    (void)flags;
    struct file *file = (struct file *)base;
    pthread_mutex_lock(&lossy.mutex);
    int code = lossy.fault == LOSSY_NO_SYNC ? SQLITE_IOERR_FSYNC : SQLITE_OK;
    int64_t pause_us = lossy.sync_us;
    if (code == SQLITE_OK && file->image != IMAGE_NONE) {
        count_call();
        settle(&lossy.images[file->image]);
        lossy.syncs++;
    }
    pthread_mutex_unlock(&lossy.mutex);
    if (pause_us > 0) {
        usleep((useconds_t)pause_us);
    }
    return code;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size)
{
    return real_of(base)->pMethods->xFileSize(real_of(base), size);
}

static int file_lock(sqlite3_file *base, int lock)
{
    return real_of(base)->pMethods->xLock(real_of(base), lock);
}

static int file_unlock(sqlite3_file *base, int lock)
{
    return real_of(base)->pMethods->xUnlock(real_of(base), lock);
}

static int file_check_reserved(sqlite3_file *base, int *reserved)
{
    return real_of(base)->pMethods->xCheckReservedLock(real_of(base), reserved);
}

static int file_control(sqlite3_file *base, int operation, void *argument)
{
    return real_of(base)->pMethods->xFileControl(real_of(base), operation, argument);
}

static int file_sector_size(sqlite3_file *base)
{
    return real_of(base)->pMethods->xSectorSize(real_of(base));
}

static int file_characteristics(sqlite3_file *base)
{
    return real_of(base)->pMethods->xDeviceCharacteristics(real_of(base));
}

static int file_shm_map(sqlite3_file *base, int page, int size, int extend, void volatile **memory)
{
    return real_of(base)->pMethods->xShmMap(real_of(base), page, size, extend, memory);
}

static int file_shm_lock(sqlite3_file *base, int offset, int count, int flags)
{
    return real_of(base)->pMethods->xShmLock(real_of(base), offset, count, flags);
}

static void file_shm_barrier(sqlite3_file *base)
{
    real_of(base)->pMethods->xShmBarrier(real_of(base));
}

static int file_shm_unmap(sqlite3_file *base, int remove)
{
    return real_of(base)->pMethods->xShmUnmap(real_of(base), remove);
}

static const sqlite3_io_methods methods = {2,
                                           file_close,
                                           file_read,
                                           file_write,
                                           file_truncate,
                                           file_sync,
                                           file_size,
                                           file_lock,
                                           file_unlock,
                                           file_check_reserved,
                                           file_control,
                                           file_sector_size,
                                           file_characteristics,
                                           file_shm_map,
                                           file_shm_lock,
                                           file_shm_barrier,
                                           file_shm_unmap,
                                           NULL,
                                           NULL};

static int image_of(const char *name)
{
    for (int i = 0; name != NULL && i < IMAGE_COUNT; i++) {
        size_t size = strlen(lossy.names[i]);
        if (strlen(name) >= size && strcmp(name + strlen(name) - size, lossy.names[i]) == 0) {
            return i;
        }
    }
    return IMAGE_NONE;
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *out_flags)
{
    (void)vfs;
    struct file *file = (struct file *)base;
    file->real = (sqlite3_file *)(file + 1);
    file->image = image_of(name);
    memset(file->real, 0, (size_t)lossy.real->szOsFile);
    int code = lossy.real->xOpen(lossy.real, name, file->real, flags, out_flags);
    file->base.pMethods = code == SQLITE_OK ? &methods : NULL;
    if (code == SQLITE_OK && file->image != IMAGE_NONE) {
        pthread_mutex_lock(&lossy.mutex);
        lossy.images[file->image].used = true;
        pthread_mutex_unlock(&lossy.mutex);
    }
    return code;
}

void lossy_vfs_install(const char *name)
{
    snprintf(lossy.names[IMAGE_DATABASE], sizeof lossy.names[0], "%s", name);
    snprintf(lossy.names[IMAGE_LOG], sizeof lossy.names[0], "%s-wal", name);
    lossy.real = sqlite3_vfs_find(NULL);
    lossy.vfs = *lossy.real;
    lossy.vfs.pNext = NULL;
    lossy.vfs.zName = "lossy";
    lossy.vfs.szOsFile = (int)sizeof(struct file) + lossy.real->szOsFile;
    lossy.vfs.xOpen = vfs_open;
    sqlite3_vfs_register(&lossy.vfs, 1);
}

void lossy_vfs_reset(void)
{
    for (size_t i = 0; i < IMAGE_COUNT; i++) {
        settle(&lossy.images[i]);
        free(lossy.images[i].data);
        free(lossy.images[i].writes);
        lossy.images[i] = (struct image){0};
    }
    lossy.fault = LOSSY_NO_FAULT;
    lossy.sync_us = 0;
    lossy.countdown = 0;
    lossy.fired = false;
}

void lossy_vfs_set_fault(enum lossy_fault fault)
{
    pthread_mutex_lock(&lossy.mutex);
    lossy.fault = fault;
    pthread_mutex_unlock(&lossy.mutex);
}

void lossy_vfs_set_sync_us(int64_t us)
{
    pthread_mutex_lock(&lossy.mutex);
    lossy.sync_us = us;
    pthread_mutex_unlock(&lossy.mutex);
}

int64_t lossy_vfs_syncs(void)
{
    pthread_mutex_lock(&lossy.mutex);
    int64_t syncs = lossy.syncs;
    pthread_mutex_unlock(&lossy.mutex);
    return syncs;
}
