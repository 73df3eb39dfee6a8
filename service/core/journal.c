/* The journal: the file format, writing it from pool threads, and reading that of a dead process. */
#include "core/journal.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* The journal file: a head, then a slot per thread, in native byte order. For example, after a crash of the first of four threads:
 *
 *     0x000  "SLLEDG1\0"  pid 4711  number 11 (SIGSEGV)  slot 0  on_purpose 0  slots 4  unused 0
 *     0x020  busy 1  kind "symcaches"  key "0123456789abcdef0123456789abcdef"  about "source: test location: http://..."
 *     0x120  busy 0  ... */
struct journal_head {
    char magic[8];
    int32_t pid, number, slot; /* process; signal that ended it; slot of the thread that crashed, -1 = not known */
    uint32_t on_purpose, slots, unused;
};
struct journal_slot {
    uint32_t busy;
    struct journal_work work;
};
static const char magic[8] = "SLLEDG1";

static struct {
    int fd;
    struct journal_head head;
    struct journal_slot *slots;
    atomic_uint taken;
} journal = {.fd = -1};

static _Thread_local int own_slot = -1;

/* ---- describing ---- */
/* Copies text for logs, cut to `size`: without the queries of URLs (from '?' to the next blank), which may have tokens, and with blanks
 * instead of control characters. */
static void describe_text(char *out, size_t size, struct sl_str text)
{
    size_t used = 0;
    bool query = false;
    for (size_t i = 0; i < text.size && used + 1 < size; i++) {
        char c = text.data[i];
        query = c == '?' || (query && (uint8_t)c > ' ');
        if (!query)
            out[used++] = (uint8_t)c < ' ' || c == 0x7F ? ' ' : c;
    }
    out[used] = '\0';
}

void journal_describe(struct journal_work *work, const char *kind, const uint8_t key[16], struct sl_str about)
{
    static const char hex[] = "0123456789abcdef";
    *work = (struct journal_work){.key = ""};
    snprintf(work->kind, sizeof work->kind, "%s", kind);
    for (size_t i = 0; i < 16; i++) {
        work->key[2 * i] = hex[key[i] >> 4];
        work->key[2 * i + 1] = hex[key[i] & 15];
    }
    describe_text(work->about, sizeof work->about, about);
}

/* ---- writing ---- */
/* Writes bytes to the journal file, if there is one. Without a lock: each thread writes only its own slot. */
static void journal_put(const void *data, size_t size, off_t at)
{
    if (journal.fd >= 0 && pwrite(journal.fd, data, size, at) < 0)
        return; /* harmless: only a note for the next process is lost */
}

static off_t slot_at(size_t i)
{
    return (off_t)(sizeof(struct journal_head) + i * sizeof(struct journal_slot));
}

void journal_open(const char *path, unsigned slots)
{
    if (!journal.slots) { /* a later call keeps the slots of the first: threads have indexes of them in `own_slot` */
        slots = slots > JOURNAL_MAX_SLOTS ? JOURNAL_MAX_SLOTS : slots;
        journal.slots = calloc(slots, sizeof *journal.slots);
        journal.head.slots = journal.slots ? slots : 0;
    }
    /* slot -1: no thread has crashed yet */
    journal.head = (struct journal_head){.pid = (int32_t)getpid(), .slot = -1, .slots = journal.head.slots};
    memcpy(journal.head.magic, magic, sizeof magic);
    journal.fd = path ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640) : -1;
    journal_put(&journal.head, sizeof journal.head, 0);
}

void journal_close(void)
{
    sl_close(journal.fd);
    journal.fd = -1; /* the slots stay allocated: idle threads keep their indexes */
}

/* A thread gets its slot at the first call; if none is left, it notes nothing. `busy` is set last, as a crash report in a signal handler
 * must not find a half-written slot. */
void journal_begin(const struct journal_work *work)
{
    if (own_slot < 0 && journal.head.slots)
        own_slot = (int)atomic_fetch_add(&journal.taken, 1);
    if (!work || own_slot < 0 || (unsigned)own_slot >= journal.head.slots)
        return;
    struct journal_slot *slot = &journal.slots[own_slot];
    slot->work = *work;
    atomic_signal_fence(memory_order_release);
    slot->busy = 1;
    journal_put(slot, sizeof *slot, slot_at((size_t)own_slot));
}

/* Marks the work of this thread as done. Writes only `busy`, the first field of the slot: journal_begin overwrites the others. */
void journal_end(void)
{
    const struct journal_work *work = journal_current();
    if (!work)
        return;
    journal.slots[own_slot].busy = 0;
    journal_put(&journal.slots[own_slot].busy, sizeof journal.slots[own_slot].busy, slot_at((size_t)own_slot));
}

/* Takes no lock, as a crash report calls it in a signal handler: so the slot's thread may be changing the slot meanwhile. */
bool journal_slot_work(unsigned i, const struct journal_work **work)
{
    if (i >= journal.head.slots)
        return false;
    *work = journal.slots[i].busy ? &journal.slots[i].work : NULL;
    return true;
}

const struct journal_work *journal_current(void)
{
    const struct journal_work *work = NULL;
    if (own_slot >= 0)
        journal_slot_work((unsigned)own_slot, &work);
    return work;
}

/* `slot` of the head is the one thread whose work is to blame; -1 = not known, or the thread was not working on anything. */
void journal_note_end(int number, bool own_fault)
{
    journal.head.number = number;
    journal.head.on_purpose = number == 0;
    journal.head.slot = own_fault && journal_current() ? own_slot : -1;
    journal_put(&journal.head, sizeof journal.head, 0);
}

/* ---- reading what another process left ---- */
static bool is_hex_key(const char *key)
{
    return strspn(key, "0123456789abcdef") == 32 && key[32] == '\0';
}

static bool is_kind(const char *kind)
{
    return *kind && kind[strspn(kind, "abcdefghijklmnopqrstuvwxyz_")] == '\0';
}

/* True if the record has the work already: several threads may have worked for the same kind and key. */
static bool has_work(const struct journal_record *death, const struct journal_work *work)
{
    for (unsigned i = 0; i < death->count; i++)
        if (strcmp(death->works[i].kind, work->kind) == 0 && strcmp(death->works[i].key, work->key) == 0)
            return true;
    return false;
}

/* Adds the work of one thread of the dead process to the record, if the slot is busy and has valid texts: the crash may have damaged it.
 * Work that the record has already, as several threads did it together, is not added again. */
static void take_slot(struct journal_record *death, struct journal_slot *slot)
{
    struct journal_work *work = &slot->work;
    work->kind[sizeof work->kind - 1] = work->key[sizeof work->key - 1] = work->about[sizeof work->about - 1] = '\0';
    if (slot->busy && is_kind(work->kind) && is_hex_key(work->key) && !has_work(death, work) &&
        death->count < sizeof death->works / sizeof *death->works)
        death->works[death->count++] = *work;
}

/* Reads the journal of a dead process: the signal that ended it (`number`), or that it was a normal exit (`on_purpose`). If the head names
 * the slot of the thread that crashed, the record has only this thread's work, else the work of all threads. False if the file is not a
 * journal. */
bool journal_read(int fd, struct journal_record *death)
{
    struct journal_head head;
    struct journal_slot slot;
    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head || memcmp(head.magic, magic, sizeof magic) != 0)
        return false;
    *death = (struct journal_record){.pid = head.pid, .number = head.number, .on_purpose = head.on_purpose != 0};
    for (unsigned i = 0; i < head.slots && i < JOURNAL_MAX_SLOTS; i++)
        if ((head.slot < 0 || head.slot == (int32_t)i) &&
            pread(fd, &slot, sizeof slot, slot_at(i)) == (ssize_t)sizeof slot)
            take_slot(death, &slot);
    return true;
}
