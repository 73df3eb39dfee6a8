/* What a minidump tells beside the crash, as rust-minidump's JSON has it. */
#include "cli/symbolicate/dump_json.h"

/* ---- values ---- */

void dump_json_text(struct sl_json_writer *w, const char *key, struct sl_str text)
{
    sl_json_member_or_null(w, key, text.size ? text : (struct sl_str){NULL, 0});
}

void dump_json_put_address(const struct dump_json *d, uint64_t value)
{
    enum sl_cpu_family family = d->walked->dump.family;
    bool is_narrow = family != SL_CPU_UNKNOWN && sl_cpu_pointer_size(family) == 4;
    sl_json_put_hex_padded(d->w, value, is_narrow ? 8 : 16);
}

void dump_json_address(const struct dump_json *d, const char *key, bool known, uint64_t value)
{
    sl_json_put_key(d->w, key);
    if (known)
        dump_json_put_address(d, value);
    else
        sl_json_put_null(d->w);
}

/* ---- the processor, handles ---- */

void dump_json_microcode(const struct dump_json *d)
{
    const struct sl_minidump_facts *facts = &d->walked->facts;
    sl_json_put_key(d->w, "cpu_microcode_version");
    if (facts->has_microcode)
        sl_json_put_hex(d->w, facts->microcode);
    else
        sl_json_put_null(d->w);
}

static void put_handles(const struct dump_json *d)
{
    const struct sl_minidump_facts *facts = &d->walked->facts;
    sl_json_begin_array(d->w);
    for (size_t i = 0; i < facts->handle_count; i++) {
        sl_json_begin_object(d->w);
        sl_json_member_u64(d->w, "handle", facts->handles[i].handle);
        sl_json_member_or_null(d->w, "type_name", facts->handles[i].type);
        sl_json_member_or_null(d->w, "object_name", facts->handles[i].object);
        sl_json_end_object(d->w);
    }
    sl_json_end_array(d->w);
}

/* ---- Linux ---- */

static void put_release(const struct dump_json *d)
{
    const struct sl_minidump_facts *facts = &d->walked->facts;
    sl_json_begin_object(d->w);
    sl_json_member_or_null(d->w, "id", facts->lsb_id);
    sl_json_member_or_null(d->w, "release", facts->lsb_release);
    sl_json_member_or_null(d->w, "codename", facts->lsb_codename);
    sl_json_member_or_null(d->w, "description", facts->lsb_description);
    sl_json_end_object(d->w);
}

/* A number, or "unlimited". */
static void put_limit(struct sl_json_writer *w, const char *key, struct sl_str limit)
{
    if (limit.size && sl_is_digit(limit.data[0])) {
        sl_json_put_key(w, key);
        while (limit.size > 1 && limit.data[0] == '0')
            limit = (struct sl_str){limit.data + 1, limit.size - 1};
        sl_json_put_raw(w, limit);
    } else {
        sl_json_member_or_null(w, key, limit);
    }
}

static void put_limits(const struct dump_json *d)
{
    const struct sl_minidump_facts *facts = &d->walked->facts;
    sl_json_begin_object(d->w);
    sl_json_member_array(d->w, "limits");
    for (size_t i = 0; i < facts->limit_count; i++) {
        sl_json_begin_object(d->w);
        sl_json_member_or_null(d->w, "name", facts->limits[i].name);
        put_limit(d->w, "soft", facts->limits[i].soft);
        put_limit(d->w, "hard", facts->limits[i].hard);
        sl_json_member_or_null(d->w, "unit", facts->limits[i].unit);
        sl_json_end_object(d->w);
    }
    sl_json_end_array(d->w);
    sl_json_end_object(d->w);
}

static void put_mapping_count(const struct dump_json *d)
{
    sl_json_put_u64(d->w, d->walked->dump.mapping_count);
}

/* ---- macOS ---- */

static void put_mac_records(const struct dump_json *d)
{
    const struct sl_minidump_facts *facts = &d->walked->facts;
    sl_json_begin_object(d->w);
    sl_json_member_u64(d->w, "num_records", facts->mac_record_count);
    sl_json_member_array(d->w, "records");
    for (size_t i = 0; i < facts->mac_record_count; i++) {
        const struct sl_minidump_mac_record *record = &facts->mac_records[i];
        sl_json_begin_object(d->w);
        dump_json_address(d, "thread", record->version >= 4, record->thread);
        dump_json_address(d, "dialog_mode", record->version >= 4, record->dialog_mode);
        dump_json_address(d, "abort_cause", record->version >= 5, record->abort_cause);
        sl_json_member_or_null(d->w, "module", record->module);
        sl_json_member_or_null(d->w, "message", record->message);
        sl_json_member_or_null(d->w, "signature_string", record->signature);
        sl_json_member_or_null(d->w, "backtrace", record->backtrace);
        sl_json_member_or_null(d->w, "message2", record->message2);
        sl_json_end_object(d->w);
    }
    sl_json_end_array(d->w);
    sl_json_end_object(d->w);
}

static void put_boot_args(const struct dump_json *d)
{
    sl_json_put_str(d->w, d->walked->facts.boot_args);
}

/* ---- all ---- */

static void put_soft_errors(const struct dump_json *d)
{
    sl_json_put_raw(d->w, d->walked->facts.soft_errors);
}

void dump_json_facts(const struct dump_json *d)
{
    const struct sl_minidump_facts *facts = &d->walked->facts;
    const struct {
        const char *key;
        bool known;
        void (*put)(const struct dump_json *d);
    } members[] = {
        {"handles", facts->has_handles, put_handles},
        {"lsb_release", facts->has_lsb, put_release},
        {"proc_limits", facts->has_limits, put_limits},
        {"linux_memory_map_count", facts->has_mappings, put_mapping_count},
        {"mac_crash_info", facts->has_mac_records, put_mac_records},
        {"mac_boot_args", facts->boot_args.data != NULL, put_boot_args},
        {"soft_errors", facts->soft_errors.data != NULL, put_soft_errors},
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        sl_json_put_key(d->w, members[i].key);
        if (members[i].known)
            members[i].put(d);
        else
            sl_json_put_null(d->w);
    }
}
