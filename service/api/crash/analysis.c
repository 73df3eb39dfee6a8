/* The parts of a crash as JSON; the names are those of rust-minidump's schema. */
#include "api/crash_analysis.h"

struct writing {
    struct json_writer *w;
    unsigned digits;
};

static void put_address(const struct writing *p, const char *key, uint64_t address)
{
    json_key(p->w, key);
    json_hex_padded(p->w, address, p->digits);
}

static void put_name(const struct writing *p, const char *key, const char *text)
{
    json_key(p->w, key);
    if (text)
        json_str(p->w, sl_str(text));
    else
        json_null(p->w);
}

static void put_flag(const struct writing *p, const char *key, bool value)
{
    json_key(p->w, key);
    json_boolean(p->w, value);
}

static void put_adjusted(const struct writing *p, const struct sl_minidump_analysis *analysis)
{
    bool is_null = analysis->adjustment == SL_MINIDUMP_NULL_POINTER;
    json_key(p->w, "adjusted_address");
    if (analysis->adjustment == SL_MINIDUMP_AS_TOLD) {
        json_null(p->w);
        return;
    }
    json_object_begin(p->w);
    put_name(p, "kind", is_null ? "null-pointer" : "non-canonical");
    put_address(p, is_null ? "offset" : "address", analysis->adjusted);
    json_object_end(p->w);
}

static const char *direction_name(unsigned direction)
{
    static const char *const names[] = {NULL, "read", "write", "readwrite"};
    return names[direction & 3];
}

static void put_accesses(const struct writing *p, const struct sl_minidump_analysis *analysis)
{
    json_key(p->w, "memory_accesses");
    if (!analysis->has_instruction || !analysis->effects.has_accesses) {
        json_null(p->w);
        return;
    }
    json_array_begin(p->w);
    for (size_t i = 0; i < analysis->effects.access_count; i++) {
        const struct sl_disasm_access *access = &analysis->effects.accesses[i];
        json_object_begin(p->w);
        put_address(p, "address", access->address);
        json_key(p->w, "size");
        if (access->size)
            json_u64(p->w, access->size);
        else
            json_null(p->w);
        if (analysis->is_guard[i])
            put_flag(p, "is_likely_guard_page", true);
        if (direction_name(access->direction))
            put_name(p, "access_type", direction_name(access->direction));
        json_object_end(p->w);
    }
    json_array_end(p->w);
}

static void put_next(const struct writing *p, const struct sl_minidump_analysis *analysis)
{
    json_key(p->w, "instruction_pointer_update");
    if (!analysis->has_next) {
        json_null(p->w);
        return;
    }
    json_object_begin(p->w);
    put_address(p, "address", analysis->next);
    json_object_end(p->w);
}

static void put_flip(const struct writing *p, const struct sl_minidump_flip *flip)
{
    json_object_begin(p->w);
    put_address(p, "address", flip->address);
    json_key(p->w, "details");
    json_object_begin(p->w);
    put_flag(p, "was_non_canonical", flip->was_non_canonical);
    put_flag(p, "is_null", flip->is_null);
    put_flag(p, "was_low", flip->was_low);
    json_key(p->w, "nearby_registers");
    json_u64(p->w, flip->nearby);
    put_flag(p, "poison_registers", flip->has_poison);
    json_object_end(p->w);
    json_key(p->w, "confidence");
    json_double(p->w, flip->confidence);
    put_name(p, "source_register", flip->source);
    json_object_end(p->w);
}

static void put_flips(const struct writing *p, const struct sl_minidump_analysis *analysis)
{
    json_key(p->w, "possible_bit_flips");
    if (!analysis->flip_count) {
        json_null(p->w);
        return;
    }
    json_array_begin(p->w);
    for (size_t i = 0; i < analysis->flip_count; i++)
        put_flip(p, &analysis->flips[i]);
    json_array_end(p->w);
}

static void put_inconsistencies(const struct writing *p, const struct sl_minidump_analysis *analysis)
{
    static const struct {
        enum sl_minidump_inconsistency bit;
        const char *name;
    } rows[] = {
        {SL_MINIDUMP_NO_DIVISION, "int_div_by_zero_not_possible"},
        {SL_MINIDUMP_NOT_PRIVILEGED, "priv_instruction_crash_without_priv_instruction"},
        {SL_MINIDUMP_IS_CANONICAL, "non_canonical_address_falsely_reported"},
        {SL_MINIDUMP_NOT_ACCESSED, "crashing_access_not_found_in_memory_accesses"},
        {SL_MINIDUMP_ACCESS_ALLOWED, "access_violation_when_access_allowed"},
    };
    json_key(p->w, "crash_inconsistencies");
    if (!analysis->is_of_crash) {
        json_null(p->w);
        return;
    }
    json_array_begin(p->w);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (analysis->inconsistencies & rows[i].bit)
            json_str(p->w, sl_str(rows[i].name));
    json_array_end(p->w);
}

void crash_analysis_write(struct json_writer *w, const struct sl_minidump_analysis *analysis, unsigned digits)
{
    const struct writing p = {w, digits};
    put_adjusted(&p, analysis);
    put_name(&p, "instruction", analysis->has_instruction ? analysis->effects.text : NULL);
    put_accesses(&p, analysis);
    put_next(&p, analysis);
    put_flips(&p, analysis);
    put_inconsistencies(&p, analysis);
}
