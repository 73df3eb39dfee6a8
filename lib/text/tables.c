/* Reads the lines that list the modules and mappings of a process. They tell in which module the address of a frame is, and the build id
 * of a module that frames only name. */
#include "text/impl.h"

#include "base/grow.h"
#include "base/search.h"

enum { MAX_RANGES = 4096, MAX_MODULES = 10000, MAX_NAME = 4096 };

/* ---- the tables ---- */

/* Copies the text to the reader's arena. When out of memory, sets t->out_of_memory and returns an empty text. */
static struct sl_str copy_text(struct sl_text *t, struct sl_str text)
{
    const char *copy = sl_arena_strndup(&t->arena, text.data, text.size);
    t->out_of_memory |= !copy;
    return (struct sl_str){copy, copy ? text.size : 0};
}

/* Adds a module and returns its index. SL_TEXT_NO_MODULE if there are MAX_MODULES already, or if out of memory, which is noted in
 * t->out_of_memory. */
static uint32_t add_module(struct sl_text *t, struct sl_str name, struct sl_str id)
{
    if (t->module_count >= MAX_MODULES)
        return SL_TEXT_NO_MODULE;
    if (!sl_grow_in_arena(&t->arena, &t->modules, &t->module_capacity, t->module_count + 1, sizeof *t->modules)) {
        t->out_of_memory = true;
        return SL_TEXT_NO_MODULE;
    }
    t->modules[t->module_count] = (struct sl_text_module){.name = copy_text(t, name), .id = copy_text(t, id)};
    return (uint32_t)t->module_count++;
}

uint32_t sl_text_module(struct sl_text *t, struct sl_str name, struct sl_str id)
{
    char key[MAX_NAME + 1 + 128]; /* NAME, a line feed, ID of at most 128 digits */
    if (!name.size || name.size > MAX_NAME || id.size > 128)
        return SL_TEXT_NO_MODULE;
    memcpy(key, name.data, name.size);
    key[name.size] = '\n';
    if (id.size)
        memcpy(key + name.size + 1, id.data, id.size);
    struct sl_str whole = {key, name.size + 1 + id.size};
    /* the map stores index + 1, because NULL means "not found" */
    size_t index = (uintptr_t)sl_map_get(&t->by_name, whole);
    if (index)
        return (uint32_t)index - 1;
    uint32_t made = add_module(t, name, id);
    struct sl_str copy = made == SL_TEXT_NO_MODULE ? (struct sl_str){NULL, 0} : copy_text(t, whole);
    if (copy.data && !sl_map_put(&t->by_name, copy, (void *)(uintptr_t)(made + 1)))
        t->out_of_memory = true;
    return made;
}

/* Returns the number of ranges that end at or before the address. */
static size_t ranges_before(const struct sl_text *t, uint64_t address)
{
    return SL_COUNT_UP_TO(t->ranges, t->range_count, end, address);
}

void sl_text_add_range(struct sl_text *t, const struct sl_text_range *range)
{
    if (range->end <= range->start)
        return;
    size_t first = ranges_before(t, range->start), last = first; /* `first`: the first range that ends behind `start` */
    while (last < t->range_count && t->ranges[last].start < range->end)
        last++;
    size_t count = t->range_count - (last - first) + 1;
    if (count > MAX_RANGES) /* the new range is ignored, the older ones stay */
        return;
    if (!sl_grow_in_arena(&t->arena, &t->ranges, &t->range_capacity, count, sizeof *t->ranges)) {
        t->out_of_memory = true;
        return;
    }
    /* the new range takes the place of ranges [first, last), which overlap it */
    memmove(t->ranges + first + 1, t->ranges + last, (t->range_count - last) * sizeof *t->ranges);
    t->ranges[first] = *range;
    t->range_count = count;
}

bool sl_text_map_module(struct sl_text *t, uint64_t address, uint64_t size)
{
    if (!sl_grow_in_arena(&t->arena, &t->modules, &t->module_capacity, t->module_count + 1, sizeof *t->modules))
        return false;
    uint32_t index = (uint32_t)t->module_count++;
    uint64_t end = size && address + size > address ? address + size : UINT64_MAX;
    t->modules[index] = (struct sl_text_module){.base = address, .size = size};
    if (address)
        sl_text_add_range(t, &(struct sl_text_range){.start = address, .end = end, .module = index});
    return !t->out_of_memory;
}

bool sl_text_is_nearly_full(const struct sl_text *t)
{
    return t->module_count > MAX_MODULES / 4 * 3 || t->range_count > MAX_RANGES / 4 * 3;
}

bool sl_text_find(const struct sl_text *t, uint64_t address, uint32_t *module, uint64_t *value, bool *of_file)
{
    size_t at = ranges_before(t, address); /* the first range that ends above the address */
    if (at == t->range_count || address < t->ranges[at].start)
        return false;
    const struct sl_text_range *range = &t->ranges[at];
    *module = range->module;
    *value = address - range->start + range->value;
    *of_file = range->of_file;
    return true;
}

/* ---- /proc/PID/maps, also in hs_err: "5580fdeb6000-5580fdeb7000 r-xp 00001000 fe:00 1097   /tmp/t" ---- */

/* Adds a mapping of a file. The module's load address is the start of the mapping of file offset 0; until that one is listed, it is
 * computed from the offset of the first one listed. The module's size grows to the end of its last mapping. */
static void add_mapping(struct sl_text *t, struct sl_str path, uint64_t start, uint64_t end, uint64_t offset)
{
    uint32_t module = sl_text_module(t, path, (struct sl_str){NULL, 0});
    if (module == SL_TEXT_NO_MODULE)
        return;
    struct sl_text_module *m = &t->modules[module];
    if (!offset || !m->base)
        m->base = start - offset;
    if (end > m->base && m->size < end - m->base)
        m->size = end - m->base;
    sl_text_add_range(t,
                      &(struct sl_text_range){.start = start, .end = end, .value = start - m->base, .module = module});
}

/* Reads a line of /proc/PID/maps: "7f00-7f10 r-xp 00001000 08:01 123 /lib/libc.so". True for such a line even if no path follows: then
 * the mapping is of no file and adds no module. */
static bool read_mapping(struct sl_text *t, struct sl_scan s)
{
    uint64_t start, end, offset;
    if (!sl_scan_hex(&s, &start) || !sl_scan_char(&s, '-') || !sl_scan_hex(&s, &end) || !sl_scan_char(&s, ' ') ||
        sl_scan_left(&s) < 5 || (s.at[0] != 'r' && s.at[0] != '-') || (s.at[1] != 'w' && s.at[1] != '-'))
        return false;
    s.at += 4; /* the permissions, "r-xp" */
    if (!sl_scan_blanks(&s) || !sl_scan_hex(&s, &offset) || !sl_scan_blanks(&s))
        return false;
    const char *path = memchr(s.at, '/', sl_scan_left(&s));
    if (path)
        add_mapping(t, sl_scan_between(path, s.end), start, end, offset);
    return true;
}

/* ---- gdb's `info proc mappings`: "0x555555555000     0x555555556000     0x1000     0x1000  r-xp   /tmp/t" ---- */

bool sl_text_is_gdb_mapping(struct sl_scan s, uint64_t numbers[4])
{
    for (int i = 0; i < 4; i++) {
        sl_scan_blanks(&s);
        if (!sl_scan_0x(&s, &numbers[i]) || (s.at < s.end && !sl_is_blank(*s.at)))
            return false;
    }
    return numbers[1] > numbers[0] && numbers[2] == numbers[1] - numbers[0];
}

/* Reads a line of gdb's `info proc mappings`: start, end, size, offset, path. True for such a line even if no path follows: then the
 * mapping is of no file and adds no module. */
static bool read_gdb_mapping(struct sl_text *t, struct sl_scan s)
{
    uint64_t numbers[4];
    if (!sl_text_is_gdb_mapping(s, numbers))
        return false;
    const char *path = memchr(s.at, '/', sl_scan_left(&s));
    if (path)
        add_mapping(t, sl_str_trimmed(sl_scan_between(path, s.end)), numbers[0], numbers[1], numbers[3]);
    return true;
}

/* ---- Apple's images: "0x10211c000 - 0x1024b3fff App arm64  <debeff4e...> /path", and hs_err of Windows ---- */

/* Copies a build id or UUID to `id` without its hyphens; `*out` is the copy. False if the text has other characters than hex digits and
 * hyphens, or not 32 to 64 digits. */
static bool plain_id(struct sl_str text, char id[64], struct sl_str *out)
{
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '-')
            continue;
        if (sl_hex_digit(text.data[i]) < 0 || size == 64)
            return false;
        id[size++] = text.data[i];
    }
    *out = (struct sl_str){id, size};
    return size >= 32;
}

/* Reads a line of "Binary Images" in Apple's crash logs: "0x1000 - 0x1fff libfoo.dylib arm64 <uuid> /usr/lib/libfoo.dylib", where 0x1fff
 * is the last address. Without an id all text behind the addresses is the name, as in hs_err files of Windows. */
static bool read_image(struct sl_text *t, struct sl_scan s)
{
    uint64_t start, end;
    char id[64];
    struct sl_str hex = {NULL, 0};
    sl_scan_blanks(&s);
    if (!sl_scan_0x(&s, &start) || !sl_scan_word(&s, SL_STR(" - ")) || (sl_scan_blanks(&s), !sl_scan_0x(&s, &end)) ||
        !sl_scan_blanks(&s))
        return false;
    struct sl_str rest = sl_scan_rest(&s);
    const char *open = memchr(rest.data, '<', rest.size);
    const char *close = open ? memchr(open, '>', (size_t)(s.end - open)) : NULL;
    const char *path = close ? close + 1 : rest.data;
    if (close && !plain_id(sl_scan_between(open + 1, close), id, &hex))
        hex = (struct sl_str){NULL, 0};
    struct sl_str name = sl_str_trimmed(sl_scan_between(path, s.end));
    uint32_t module = sl_text_module(t, name, hex);
    if (module == SL_TEXT_NO_MODULE) /* too many modules or out of memory: but the line is one of this format */
        return true;
    t->modules[module].base = start;
    t->modules[module].size = end - start + 1;
    /* the id in `<>` is a UUID of a Mach-O file */
    t->modules[module].is_macho = hex.size > 0;
    end += end < UINT64_MAX; /* now the address behind the last one */
    sl_text_add_range(t, &(struct sl_text_range){.start = start, .end = end, .module = module});
    return true;
}

/* ---- systemd: "Module /usr/bin/x with build-id 93ac61" ---- */

/* Reads "Module /lib/libc.so.6 with build-id 12ab", as systemd-coredump logs it. An id has 1 to 64 bytes. */
static bool read_systemd_module(struct sl_text *t, struct sl_str line)
{
    static const struct sl_str words = SL_STR("Module "), with = SL_STR(" with build-id ");
    const char *at = memmem(line.data, line.size, words.data, words.size), *end = line.data + line.size;
    const char *name = at ? at + words.size : end;
    const char *behind = at ? memmem(name, (size_t)(end - name), with.data, with.size) : NULL;
    if (!behind)
        return false;
    const char *id = behind + with.size, *id_end = id;
    while (id_end < end && sl_hex_digit(*id_end) >= 0)
        id_end++;
    if (id_end - id < 2 || id_end - id > 128)
        return false;
    sl_text_module(t, sl_scan_between(name, behind), sl_scan_between(id, id_end));
    return true;
}

/* ---- lists of modules: a name, an id and a base in any order; a size or an end may follow the base ---- */

struct module_words {
    struct sl_str name, id;
    uint64_t numbers[2];
    unsigned number_count;
    char buffer[64];
};

/* Stores a word of a line that lists a module: "0x" and digits is a number, of which the first two are kept; the first text of 32 to 64 hex
 * digits (and hyphens) is the id, the first other word with a letter the name. Other words are ignored. */
static void classify_word(struct module_words *words, struct sl_str word)
{
    struct sl_scan s = sl_scan(word);
    uint64_t number;
    struct sl_str id;
    char buffer[64];
    if (sl_scan_0x(&s, &number) && s.at == s.end) {
        if (words->number_count < 2)
            words->numbers[words->number_count++] = number;
    } else if (!words->id.size && plain_id(word, buffer, &id)) {
        memcpy(words->buffer, buffer, id.size);
        words->id = (struct sl_str){words->buffer, id.size};
    } else if (!words->name.size) {
        for (size_t i = 0; i < word.size && !words->name.size; i++)
            if ((word.data[i] | 0x20) >= 'a' && (word.data[i] | 0x20) <= 'z')
                words->name = word;
    }
}

/* True if the line has 32 hex digits or hyphens in a row, as an id has: a cheap test before the line is split into words. */
static bool may_have_id(struct sl_str line)
{
    enum { LEAST = 32 };
    size_t at = LEAST - 1;
    /* tests the 32 characters that end at `at` backwards; the next 32 tested begin behind the first other character found */
    while (at < line.size) {
        size_t count = 0;
        while (count < LEAST && (sl_hex_digit(line.data[at - count]) >= 0 || line.data[at - count] == '-'))
            count++;
        if (count == LEAST)
            return true;
        at += LEAST - count;
    }
    return false;
}

/* Reads a line that lists a module in an unknown format: a name, an id and one or two numbers with 0x (load address; size or end) in any
 * order, separated by blanks, `,` or `|`. False if one of the three is missing, or if the line has more than MAX_WORDS words. */
static bool read_module_list(struct sl_text *t, struct sl_str line)
{
    enum { MAX_WORDS = 8 };
    struct module_words words = {.number_count = 0};
    const char *at = line.data, *end = line.data + line.size;
    unsigned count = 0;
    for (; at < end && count <= MAX_WORDS; count++) {
        const char *begin;
        while (at < end && (sl_is_blank(*at) || *at == ',' || *at == '|'))
            at++;
        for (begin = at; at < end && !sl_is_blank(*at) && *at != ',' && *at != '|';)
            at++;
        if (at > begin)
            classify_word(&words, sl_scan_between(begin, at));
    }
    if (at < end || !words.name.size || !words.id.size || !words.number_count)
        return false;
    uint32_t module = sl_text_module(t, words.name, words.id);
    if (module == SL_TEXT_NO_MODULE) /* too many modules or out of memory: but the line does list one */
        return true;
    struct sl_text_module *m = &t->modules[module];
    uint64_t other = words.numbers[1], start = words.numbers[0];
    m->base = start;
    /* the second number is the end if it is above the first, otherwise the size */
    m->size = words.number_count < 2 ? 0 : other > start ? other - start : other;
    uint64_t stop = m->size && start + m->size > start ? start + m->size : UINT64_MAX;
    sl_text_add_range(t, &(struct sl_text_range){.start = start, .end = stop, .module = module});
    return true;
}

/* ---- all ---- */

bool sl_text_read_table(struct sl_text *t, struct sl_str line, unsigned marks)
{
    /* each format is tried at the line's start and behind a log prefix as long as that of the last frame */
    size_t prefix = t->prefix < line.size ? t->prefix : 0;
    struct sl_scan whole = sl_scan(line), rest = {line.data + prefix, line.data + line.size};
    if (line.size < 16) /* shorter than any of these formats */
        return false;
    if (read_mapping(t, whole) || (prefix && read_mapping(t, rest)))
        return true;
    if ((marks & HAS_0X) && (read_gdb_mapping(t, whole) || (prefix && read_gdb_mapping(t, rest))))
        return true;
    if ((marks & HAS_0X) && (read_image(t, whole) || (prefix && read_image(t, rest))))
        return true;
    if ((marks & HAS_ID) && read_systemd_module(t, line))
        return true;
    /* an unknown format, of which only short lines are split into words */
    return (marks & HAS_0X) && line.size < 1024 && may_have_id(line) && read_module_list(t, line);
}
