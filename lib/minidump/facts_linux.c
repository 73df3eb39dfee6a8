/* Reads the copies of Linux' files in a dump. */
#include "minidump/facts_impl.h"

static struct sl_str stream_text(const struct sl_minidump *dump, uint32_t type)
{
    struct sl_bytes bytes = dump_stream(dump, type);
    return (struct sl_str){(const char *)bytes.data, bytes.size};
}

static struct sl_str without_quotes(struct sl_str text)
{
    text = sl_str_trimmed(text);
    if (text.size >= 2 && text.data[0] == '"' && text.data[text.size - 1] == '"')
        return (struct sl_str){text.data + 1, text.size - 2};
    return text;
}

/* Splits "key<separator>value"; removes blanks and quotes around each. False if there is no separator. */
static bool split_line(struct sl_str line, char separator, struct sl_str *key, struct sl_str *value)
{
    const char *at = line.size ? memchr(line.data, separator, line.size) : NULL;
    if (!at)
        return false;
    size_t size = (size_t)(at - line.data);
    *key = without_quotes((struct sl_str){line.data, size});
    *value = without_quotes((struct sl_str){at + 1, line.size - size - 1});
    return true;
}

/* Copies text as valid UTF-8. */
static struct sl_str copy_text(struct dump_reader *d, struct sl_str text)
{
    return text.size ? dump_text(d, (struct sl_bytes){(const uint8_t *)text.data, text.size}) : SL_STR("");
}

/* Returns the value of the first line "key<separator>value" with this key; data NULL if there is none. */
static struct sl_str find_value(struct sl_str text, char separator, struct sl_str wanted)
{
    struct sl_str line, key, value;
    while (sl_str_next_line(&text, &line))
        if (split_line(line, separator, &key, &value) && sl_str_equal(key, wanted))
            return value;
    return (struct sl_str){NULL, 0};
}

/* Reads the microcode version of the processor from /proc/cpuinfo. */
static void read_processor(struct dump_reader *d, struct sl_minidump_facts *facts)
{
    struct sl_str value = find_value(stream_text(d->dump, STREAM_LINUX_CPU_INFO), ':', SL_STR("microcode"));
    if (sl_str_starts(value, SL_STR("0x")))
        facts->has_microcode = sl_parse_hex_u64((struct sl_str){value.data + 2, value.size - 2}, &facts->microcode);
}

/* Takes the process id from /proc/<pid>/status if the dump does not state it elsewhere. */
static void read_status(struct dump_reader *d, struct sl_minidump_facts *facts)
{
    uint64_t id;
    struct sl_str value = find_value(stream_text(d->dump, STREAM_LINUX_STATUS), ':', SL_STR("Pid"));
    if (facts->has_process_id || !sl_parse_u64(value, &id) || id > UINT32_MAX)
        return;
    facts->has_process_id = true;
    facts->process_id = (uint32_t)id;
}

/* Reads /etc/lsb-release or /etc/os-release, whose keys differ. */
static void read_release(struct dump_reader *d, struct sl_minidump_facts *facts)
{
    const struct {
        struct sl_str key;
        struct sl_str *value;
    } keys[] = {
        {SL_STR("DISTRIB_ID"), &facts->lsb_id},
        {SL_STR("ID"), &facts->lsb_id},
        {SL_STR("DISTRIB_RELEASE"), &facts->lsb_release},
        {SL_STR("VERSION_ID"), &facts->lsb_release},
        {SL_STR("DISTRIB_CODENAME"), &facts->lsb_codename},
        {SL_STR("VERSION_CODENAME"), &facts->lsb_codename},
        {SL_STR("DISTRIB_DESCRIPTION"), &facts->lsb_description},
        {SL_STR("PRETTY_NAME"), &facts->lsb_description},
    };
    struct sl_str text = stream_text(d->dump, STREAM_LINUX_RELEASE), line, key, value;
    facts->has_lsb = text.data != NULL;
    facts->lsb_id = facts->lsb_release = facts->lsb_codename = facts->lsb_description = SL_STR("");
    while (sl_str_next_line(&text, &line))
        for (size_t i = 0; split_line(line, '=', &key, &value) && i < sizeof keys / sizeof *keys; i++)
            if (sl_str_equal(key, keys[i].key))
                *keys[i].value = value;
    /* in `keys` two adjacent entries (lsb-release, os-release) set the same value, which is copied once */
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i += 2)
        *keys[i].value = copy_text(d, *keys[i].value);
}

/* ---- limits ---- */

/* Removes the next column of /proc/<pid>/limits from `*rest`; false at the end. Columns are separated by at least two blanks, because names
 * of limits contain single ones. */
static bool take_column(struct sl_str *rest, struct sl_str *column)
{
    *rest = sl_str_trimmed(*rest);
    if (!rest->size)
        return false;
    const char *end = rest->size > 1 ? memmem(rest->data, rest->size, "  ", 2) : NULL;
    size_t size = end ? (size_t)(end - rest->data) : rest->size;
    *column = (struct sl_str){rest->data, size};
    *rest = (struct sl_str){rest->data + size, rest->size - size};
    return true;
}

/* Returns the text if it is "unlimited" or a number, else "0". */
static struct sl_str parse_limit(struct dump_reader *d, struct sl_str text)
{
    uint64_t number;
    bool is_limit = sl_str_equal(text, SL_STR("unlimited")) || sl_parse_u64(text, &number);
    return is_limit ? copy_text(d, text) : SL_STR("0");
}

/* Reads /proc/<pid>/limits: a heading, then name, soft limit, hard limit and unit in columns. */
static void read_limits(struct dump_reader *d, struct sl_minidump_facts *facts)
{
    struct sl_str text = stream_text(d->dump, STREAM_LINUX_LIMITS), line, name, soft, hard, unit;
    struct sl_arena_array array = {.arena = d->arena, .item = sizeof *facts->limits};
    bool is_heading = true;
    facts->has_limits = text.data != NULL;
    while (sl_str_next_line(&text, &line)) {
        struct sl_minidump_limit *limit;
        if (!sl_str_trimmed(line).size)
            continue;
        bool is_limit =
            !is_heading && take_column(&line, &name) && take_column(&line, &soft) && take_column(&line, &hard);
        is_heading = false;
        if (!is_limit)
            continue;
        if (!take_column(&line, &unit))
            unit = SL_STR("n/a");
        if ((limit = sl_arena_array_add(&array)))
            *limit = (struct sl_minidump_limit){.name = copy_text(d, name),
                                                .unit = copy_text(d, unit),
                                                .soft = parse_limit(d, soft),
                                                .hard = parse_limit(d, hard)};
        d->out_of_memory |= !limit;
    }
    facts->limit_count = array.count;
    facts->limits = sl_arena_array_finish(&array);
    d->out_of_memory |= !facts->limits;
}

void facts_read_linux(struct dump_reader *d, struct sl_minidump_facts *facts)
{
    read_processor(d, facts);
    read_status(d, facts);
    read_release(d, facts);
    read_limits(d, facts);
}
