/* Contents of shared blobs that are moved out of memory are appended to one file until it is full, then to a new one. A file is closed when
 * the last of its contents is released. Released contents return their disk space at once, as a hole (fallocate(2)). */
#include "core/shared_blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "core/pool.h"

enum { FILE_FULL = 1 << 30 };

struct spill_file {
    int fd;
    unsigned users; /* number of contents in it, plus 1 while it is `current` */
    uint64_t end;
};

struct shared_blob {
    unsigned holds, pins; /* number of references; number of users of `bytes` (shared_blob_pin) */
    bool moving;          /* being written to a file */
    struct sl_buf bytes;
    size_t size;
    struct memory_reservation memory;
    struct spill_file *file;      /* NULL: in memory only */
    uint64_t offset;              /* within the file */
    struct fiber_wait_list moved; /* fibers that wait until the bytes are written to the file */
};

static struct spill_file *current; /* the file to which contents are appended now; NULL = none yet */
static bool opening;               /* a fiber is creating the next file */
static struct fiber_wait_list opened;

struct shared_blob *shared_blob_new(struct sl_buf *bytes)
{
    struct shared_blob *content = calloc(1, sizeof *content);
    if (!content)
        return NULL;
    /* shrinks a buffer of which more than 1/8 is unused */
    if (bytes->capacity > bytes->size + bytes->size / 8 && bytes->size) {
        uint8_t *fitting = realloc(bytes->data, bytes->size);
        bytes->data = fitting ? fitting : bytes->data;
        bytes->capacity = fitting ? bytes->size : bytes->capacity;
    }
    content->holds = 1;
    sl_buf_detach_budget(bytes); /* from now on charged to content->memory */
    content->bytes = *bytes;
    content->size = bytes->size;
    memory_resize(&content->memory, bytes->capacity);
    *bytes = (struct sl_buf){0};
    return content;
}

struct shared_blob *shared_blob_retain(struct shared_blob *content)
{
    content->holds++;
    return content;
}

/* Ends one use of a file; the last one closes it. The current file is emptied when no content is left in it, so that the next is written at
 * 0. */
static void file_release(struct spill_file *file)
{
    file->users--;
    if (file->users == 1 && file == current && ftruncate(file->fd, 0) == 0) /* 1: for being `current` */
        file->end = 0;
    if (file->users > 0)
        return;
    close(file->fd);
    free(file);
}

/* First half of a release: frees memory and disk space of the content; may run on the pool. If the file system cannot punch holes, the
 * space is freed when the file is closed. */
static void give_back(void *arg)
{
    struct shared_blob *content = arg;
    sl_buf_free(&content->bytes);
    if (content->file)
        fallocate(content->file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)content->offset,
                  (off_t)content->size);
}

/* Second half of a release, on the loop, whose thread alone changes the memory counts and the file's `users`. */
static void given_back(void *arg)
{
    struct shared_blob *content = arg;
    memory_resize(&content->memory, 0);
    if (content->file)
        file_release(content->file);
    free(content);
}

/* Drops a reference; the last one frees the content, on the pool if it is large: giving pages back to the kernel takes time. */
void shared_blob_release(struct shared_blob *content)
{
    if (!content || --content->holds > 0)
        return;
    if (content->size > MAX_FREED_ON_LOOP) {
        pool_run_detached(give_back, given_back, content);
    } else {
        give_back(content);
        given_back(content);
    }
}

size_t shared_blob_size(const struct shared_blob *content)
{
    return content->size;
}

struct sl_bytes shared_blob_bytes(const struct shared_blob *content)
{
    return content->file ? (struct sl_bytes){NULL, content->size} : sl_buf_bytes(&content->bytes);
}

struct sl_bytes shared_blob_pin(struct shared_blob *content)
{
    struct sl_bytes bytes = shared_blob_bytes(content);
    content->pins += bytes.data != NULL;
    return bytes;
}

/* Drops a pin (a user of the bytes in memory). After the last one the bytes are freed if they are also in a file; on the pool if they are
 * many, as that takes time. */
void shared_blob_unpin(struct shared_blob *content)
{
    if (--content->pins > 0 || !content->file)
        return;
    if (content->size > MAX_FREED_ON_LOOP)
        pool_run_detached(free, NULL, content->bytes.data);
    else
        free(content->bytes.data);
    content->bytes = (struct sl_buf){0};
    memory_resize(&content->memory, 0);
}

/* ---- files ---- */
struct spill_transfer {
    int fd;
    void *data;
    uint64_t offset;
    size_t size;
    bool good;
};

/* On the pool: writes the content to the file. */
static void write_out(void *arg)
{
    struct spill_transfer *t = arg;
    t->good = sl_write_all_at(t->fd, (struct sl_bytes){t->data, t->size}, t->offset);
}

/* On the pool: reads a part of the content. */
static void read_back(void *arg)
{
    struct spill_transfer *t = arg;
    size_t done = 0;
    while (done < t->size) {
        ssize_t n = pread(t->fd, (uint8_t *)t->data + done, t->size - done, (off_t)(t->offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    t->good = done == t->size;
}

struct spill_file_opening {
    const char *directory;
    int fd, error; /* errno */
};

/* On the pool: creates a file without a name in the directory. */
static void content_open_file(void *arg)
{
    struct spill_file_opening *o = arg;
    o->fd = sl_unlinked_file(o->directory);
    o->error = errno;
}

/* Creates the next file, which becomes `current`; wakes the fibers that wait for it, also on failure. SL_BUSY when out of memory;
 * SL_CANCELLED; or the code for the errno of open(2). */
static enum sl_code begin_file(const char *directory, struct sl_error *error)
{
    struct spill_file_opening o = {directory, -1, 0};
    opening = true;
    enum sl_code code = pool_run(POOL_IO, content_open_file, &o, error);
    opening = false;
    fiber_wake_all(&opened); /* they run later, when this fiber has set `current` */
    if (code == SL_OK && o.fd < 0) {
        char what[256];
        snprintf(what, sizeof what, "cannot create a temporary file in %s", directory);
        code = sl_fail_errno(error, o.error, what);
    }
    struct spill_file *file = code == SL_OK ? calloc(1, sizeof *file) : NULL;
    if (!file) {
        sl_close(o.fd);
        return code ? code : sl_fail(error, SL_BUSY, "out of memory while creating a temporary file in %s", directory);
    }
    *file = (struct spill_file){.fd = o.fd, .users = 1};
    current = file;
    return SL_OK;
}

/* Makes `current` a file with free space: if it is full, or there is none, creates another one. Waits if another fiber is creating one. */
static enum sl_code find_file(const char *directory, struct sl_error *error)
{
    while (opening)
        if (fiber_wait_on(&opened, UINT64_MAX) != FIBER_WOKEN)
            return SL_CANCELLED;
    if (current && current->end < FILE_FULL)
        return SL_OK;
    struct spill_file *full = current;
    current = NULL;
    if (full)
        file_release(full);
    return begin_file(directory, error);
}

/* Writes the content to the current file and counts it in the file's `users`. Reserves its place in the file before the write, so that
 * other fibers can write behind it meanwhile; if the write fails, the place stays unused. */
static enum sl_code move_out(struct shared_blob *content, const char *directory, struct sl_error *error)
{
    enum sl_code code = find_file(directory, error);
    if (code)
        return code;
    struct spill_file *file = current;
    struct spill_transfer t = {.fd = file->fd, .data = content->bytes.data, .offset = file->end, .size = content->size};
    file->users++;
    file->end += content->size;
    code = pool_run(POOL_IO, write_out, &t, error);
    if (code == SL_OK && !t.good)
        code = sl_fail(error, SL_INTERNAL, "cannot write a response to a temporary file in %s", directory);
    if (code) {
        file_release(file);
        return code;
    }
    content->file = file;
    content->offset = t.offset;
    return SL_OK;
}

/* If another request is moving the same content, waits for it: then the content is in a file, or this call tries again. The content is
 * pinned so that its bytes stay in memory while they are written; the unpin frees them, unless others have pinned them. */
enum sl_code shared_blob_spill(struct shared_blob *content, const char *directory, struct sl_error *error)
{
    while (content->moving)
        if (fiber_wait_on(&content->moved, UINT64_MAX) != FIBER_WOKEN)
            return SL_CANCELLED;
    if (content->file || content->size == 0)
        return SL_OK;
    content->moving = true;
    shared_blob_pin(content);
    enum sl_code code = move_out(content, directory, error);
    content->moving = false;
    shared_blob_unpin(content);
    fiber_wake_all(&content->moved);
    return code;
}

enum sl_code shared_blob_read(struct shared_blob *content, uint64_t offset, void *to, size_t size,
                              struct sl_error *error)
{
    struct spill_transfer t = {.fd = content->file->fd, .data = to, .offset = content->offset + offset, .size = size};
    enum sl_code code = pool_run(POOL_IO, read_back, &t, error);
    if (code == SL_OK && !t.good)
        code = sl_fail(error, SL_INTERNAL, "cannot read a response back from its temporary file");
    return code;
}
