/* `symloom llvm-symbolizer`, `llvm-addr2line`: what LLVM's tools say besides the chain of functions. Private to this folder. */
#pragma once

#include "cli/lookup/lookup.h"

struct llvm_tables;
void llvm_tables_free(struct llvm_tables *t);

/* Whether symbols of the module are chosen here, and with them the files that they are said to come from. */
bool llvm_chooses_symbols(struct lookup_module *m);

/* Completes one link of the answer about an address, as it was asked for; of `count`, 0: nothing is known of it; of `all` that there are,
 * where one alone is asked for. Texts live until the
 * next call. Without effect for modules that are no linked ELF files. */
void llvm_complete(struct lookup *l, struct lookup_module *m, uint64_t address, size_t index, size_t count, size_t all,
                   struct element *e);
