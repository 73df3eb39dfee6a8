/* Writes the crash analysis as JSON, with the member names of rust-minidump's schema. */
#include "conversion/crash_analysis.h"

struct crash_analysis_writing {
    struct sl_json_writer *w;
    unsigned digits; /* least number of hex digits of an address */
};

static void put_address(const struct crash_analysis_writing *p, const char *key, uint64_t address)
{
    sl_json_put_key(p->w, key);
    sl_json_put_hex_padded(p->w, address, p->digits);
}

static void put_name(const struct crash_analysis_writing *p, const char *key, const char *text)
{
    sl_json_member_or_null(p->w, key, sl_str(text));
}

static void put_flag(const struct crash_analysis_writing *p, const char *key, bool value)
{
    sl_json_member_boolean(p->w, key, value);
}

/* Writes the address that the program really accessed, if it differs from the reported one: an offset from a null pointer,
 * or the non-canonical address that the CPU does not report. */
static void put_adjusted(const struct crash_analysis_writing *p, const struct sl_minidump_analysis *analysis)
{
    bool is_null = analysis->adjustment == SL_MINIDUMP_NULL_POINTER;
    sl_json_put_key(p->w, "adjusted_address");
    if (analysis->adjustment == SL_MINIDUMP_AS_REPORTED) {
        sl_json_put_null(p->w);
        return;
    }
    sl_json_begin_object(p->w);
    put_name(p, "kind", is_null ? "null-pointer" : "non-canonical");
    put_address(p, is_null ? "offset" : "address", analysis->adjusted);
    sl_json_end_object(p->w);
}

/* Returns the word for a set of the bits 1 (read) and 2 (write); NULL for none. */
static const char *direction_name(unsigned direction)
{
    static const char *const names[] = {NULL, "read", "write", "readwrite"};
    return names[direction & 3];
}

/* Writes the memory accesses of the crashing instruction; null if they could not be determined. An unknown size of an access is null. */
static void put_accesses(const struct crash_analysis_writing *p, const struct sl_minidump_analysis *analysis)
{
    sl_json_put_key(p->w, "memory_accesses");
    if (!analysis->has_instruction || !analysis->effects.has_accesses) {
        sl_json_put_null(p->w);
        return;
    }
    sl_json_begin_array(p->w);
    for (size_t i = 0; i < analysis->effects.access_count; i++) {
        const struct sl_disasm_access *access = &analysis->effects.accesses[i];
        sl_json_begin_object(p->w);
        put_address(p, "address", access->address);
        sl_json_put_key(p->w, "size");
        if (access->size)
            sl_json_put_u64(p->w, access->size);
        else
            sl_json_put_null(p->w);
        if (analysis->is_guard[i])
            put_flag(p, "is_likely_guard_page", true);
        if (direction_name(access->direction))
            put_name(p, "access_type", direction_name(access->direction));
        sl_json_end_object(p->w);
    }
    sl_json_end_array(p->w);
}

/* Writes the address that the instruction would jump to; null if it is no jump, or its target is unknown. */
static void put_next(const struct crash_analysis_writing *p, const struct sl_minidump_analysis *analysis)
{
    sl_json_put_key(p->w, "instruction_pointer_update");
    if (!analysis->has_next) {
        sl_json_put_null(p->w);
        return;
    }
    sl_json_begin_object(p->w);
    put_address(p, "address", analysis->next);
    sl_json_end_object(p->w);
}

/* Writes an address that the program may have meant, if a hardware error has changed one bit of it to the crash address. The details say
 * how likely that is: `was_low`: a small number became null, often without an error; `nearby_registers`: how many registers have addresses
 * close to it; `poison_registers`: a register has a pattern with which allocators fill freed memory. */
static void put_flip(const struct crash_analysis_writing *p, const struct sl_minidump_flip *flip)
{
    sl_json_begin_object(p->w);
    put_address(p, "address", flip->address);
    sl_json_member_object(p->w, "details");
    put_flag(p, "was_non_canonical", flip->was_non_canonical);
    put_flag(p, "is_null", flip->is_null);
    put_flag(p, "was_low", flip->was_low);
    sl_json_member_u64(p->w, "nearby_registers", flip->nearby);
    put_flag(p, "poison_registers", flip->has_poison);
    sl_json_end_object(p->w);
    sl_json_member_double(p->w, "confidence", flip->confidence);
    put_name(p, "source_register", flip->source);
    sl_json_end_object(p->w);
}

/* Writes all addresses that differ from the crash address in one bit and may have been meant; null if there are none, as in
 * rust-minidump. */
static void put_flips(const struct crash_analysis_writing *p, const struct sl_minidump_analysis *analysis)
{
    sl_json_put_key(p->w, "possible_bit_flips");
    if (!analysis->flip_count) {
        sl_json_put_null(p->w);
        return;
    }
    sl_json_begin_array(p->w);
    for (size_t i = 0; i < analysis->flip_count; i++)
        put_flip(p, &analysis->flips[i]);
    sl_json_end_array(p->w);
}

/* Writes the names of the facts that contradict the reported exception; null if the dump has no exception to check. */
static void put_inconsistencies(const struct crash_analysis_writing *p, const struct sl_minidump_analysis *analysis)
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
    sl_json_put_key(p->w, "crash_inconsistencies");
    if (!analysis->has_exception) {
        sl_json_put_null(p->w);
        return;
    }
    sl_json_begin_array(p->w);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (analysis->inconsistencies & rows[i].bit)
            sl_json_put_str(p->w, sl_str(rows[i].name));
    sl_json_end_array(p->w);
}

void crash_analysis_write(struct sl_json_writer *w, const struct sl_minidump_analysis *analysis, unsigned digits)
{
    const struct crash_analysis_writing p = {w, digits};
    put_adjusted(&p, analysis);
    put_name(&p, "instruction", analysis->has_instruction ? analysis->effects.text : NULL);
    put_accesses(&p, analysis);
    put_next(&p, analysis);
    put_flips(&p, analysis);
    put_inconsistencies(&p, analysis);
}
