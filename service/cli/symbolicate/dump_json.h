/* What the files share that write a minidump as rust-minidump's JSON: dump_json.c and dump_facts.c. Private to them. */
#pragma once

#include "base/json_write.h"
#include "cli/symbolicate/dump_print.h"

struct dump_json {
    const struct answer *answer;
    const struct walked_dump *walked;
    struct sl_json_writer *w;
    struct sl_arena *arena; /* of what is made while writing */
};

/* A member; null for an empty text. */
void dump_json_text(struct sl_json_writer *w, const char *key, struct sl_str text);
/* A member: "0x0000000000000045", as wide as a pointer; null when it is not known. */
void dump_json_address(const struct dump_json *d, const char *key, bool known, uint64_t value);
/* Such a value alone. */
void dump_json_put_address(const struct dump_json *d, uint64_t value);

/* A member of `system_info`. */
void dump_json_microcode(const struct dump_json *d);
/* What the dump tells beside the crash. */
void dump_json_facts(const struct dump_json *d);
