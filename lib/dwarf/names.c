/* Names of subprograms: their own, or that of the specification or abstract origin that they refer to, which may be in another unit or
 * file. */
#include "dwarf/impl.h"

#include "function/undecorate.h"

#include <stdlib.h>

struct entry_names {
    struct sl_str name; /* empty if there is a linkage name */
    struct sl_str linkage;
    struct reference origin;
};

/* Returns `from` if the entry that is referred to is in it. Other units are opened and cached in worker->foreign. */
const struct dwarf_unit *dwarf_find_unit(struct dwarf_worker *w, const struct dwarf_unit *from,
                                         struct reference reference)
{
    if (reference.file == from->file && reference.offset >= from->header->die && reference.offset < from->header->end)
        return from;
    const struct dwarf_unit_header *header = dwarf_unit_at(reference.file, reference.offset);
    if (!header)
        return NULL;
    /* a multiplicative hash; a unit replaces the one in its slot */
    size_t slot = (size_t)(header->offset * 0x9E3779B97F4A7C15u >> 40) % FOREIGN_UNITS;
    struct dwarf_unit *unit = &w->foreign[slot];
    if (w->foreign_used[slot] && unit->header == header)
        return unit;
    w->foreign_used[slot] = false;
    if (!dwarf_unit_open(w, reference.file, header, unit))
        return NULL;
    /* units of a split file have their bases in the skeleton, which is known only for the unit that is being walked */
    if (reference.file == from->file && from->file->split) {
        unit->str_offsets_base = from->str_offsets_base;
        unit->address_file = from->address_file;
        unit->addr_base = from->addr_base;
    }
    w->foreign_used[slot] = true;
    return unit;
}

struct sl_str dwarf_linkage_name(struct dwarf_worker *w, const struct dwarf_unit *unit, const struct attribute *a)
{
    struct sl_str name = dwarf_text(&w->account, unit, a);
    return unit->file->decorates ? sl_undecorate_linkage(name) : name;
}

/* Reads the names of an entry and its reference to another one; the plain name only if there is no linkage name. False if the entry cannot
 * be read, or if the budget is used up: many units may refer to one entry, so every read is charged. */
static bool dwarf_names_read_entry(struct dwarf_worker *w, const struct dwarf_unit *unit, uint64_t offset,
                                   struct entry_names *out)
{
    *out = (struct entry_names){0};
    struct sl_reader r =
        sl_reader((struct sl_bytes){unit->file->info.data, (size_t)unit->header->end}, unit->file->big_endian);
    sl_reader_seek(&r, offset);
    struct attribute name = {0};
    const struct abbrev *abbrev = abbrev_find(unit->abbrevs, dwarf_uleb(&r));
    /* reading the entry costs 8 steps, one per attribute, and one per 16 bytes, charged further down */
    if (!abbrev || r.failed || !sl_account_spend(&w->account, abbrev->step_count + 8))
        return false;
    struct attribute_walk walk = dwarf_attributes(unit, abbrev);
    struct attribute a;
    for (const struct abbrev_step *step; (step = dwarf_next_attribute(&walk, &r, &a));) {
        switch (step->attribute) {
        case DW_AT_name: name = a; break;
        case DW_AT_linkage_name:
        case DW_AT_MIPS_linkage_name: out->linkage = dwarf_linkage_name(w, unit, &a); break;
        case DW_AT_abstract_origin:
        case DW_AT_specification: out->origin = dwarf_reference(unit, &a); break;
        }
    }
    if (walk.failed)
        return false;
    if (!out->linkage.size)
        out->name = dwarf_text(&w->account, unit, &name);
    return sl_account_spend(&w->account, (sl_reader_offset(&r) - offset) / 16);
}

static bool same_reference(const void *names, uint32_t i, const void *key)
{
    return ((const struct dwarf_known_name *)names)[i].key == *(const uint64_t *)key;
}

/* Follows references until an entry has a linkage name or a name. Names are cached per unit, since many entries refer to one. */
struct entry_name dwarf_find_name(struct dwarf_worker *w, const struct dwarf_unit *from, struct reference reference,
                                  enum sl_language *language)
{
    struct entry_name name = {{NULL, 0}, false};
    int found = -1;
    if (!reference.file)
        return name;
    /* entries refer to their own file or to the supplementary file: one bit tells which */
    uint64_t key = reference.offset << 1 | (reference.file != from->file);
    uint32_t hash = (uint32_t)(key * 0x9E3779B97F4A7C15u >> 20);
    struct sl_id_slot *slot = sl_id_table_find(&w->name_table, &w->account, hash, same_reference, w->names, &key);
    if (!slot)
        return name;
    if (sl_id_table_has(&w->name_table, slot)) {
        const struct dwarf_known_name *known = &w->names[sl_id_table_id(&w->name_table, slot)];
        if (known->language >= 0)
            *language = (enum sl_language)known->language;
        return known->name;
    }
    const struct dwarf_unit *unit = from;
    struct dwarf_unit copy; /* the unit's place in the cache may be reused while the chain is followed */
    for (int hops = 0; hops < MAX_REFERENCES && reference.file; hops++) {
        const struct dwarf_unit *next = dwarf_find_unit(w, unit, reference);
        struct entry_names entry;
        if (!next)
            break;
        if (next != unit) {
            copy = *next;
            unit = &copy;
            /* partial units, which others share, may have no language */
            found = unit->has_language ? (int)unit->language : found;
        }
        if (!dwarf_names_read_entry(w, unit, reference.offset, &entry))
            break;
        if (entry.linkage.size || (entry.name.size && !entry.origin.file)) {
            name = (struct entry_name){entry.linkage.size ? entry.linkage : entry.name, entry.linkage.size > 0};
            break;
        }
        if (entry.name.size)
            name.text = entry.name;
        if (entry.origin.file == reference.file && entry.origin.offset == reference.offset)
            break; /* it refers to itself */
        if (name.text.size)
            break;
        reference = entry.origin;
    }
    if (!sl_account_grow(&w->account, &w->names, &w->name_capacity, w->name_count + 1, sizeof *w->names))
        return name;
    w->names[w->name_count] = (struct dwarf_known_name){key, name, found};
    sl_id_table_put(&w->name_table, slot, hash, (uint32_t)w->name_count++);
    if (found >= 0)
        *language = (enum sl_language)found;
    return name;
}
