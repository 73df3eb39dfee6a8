/* `symloom llvm-symbolizer`, `llvm-addr2line`: what LLVM's tools print besides the inline chain. Private to this folder. */
#pragma once

#include "cli/lookup/lookup.h"

struct llvm_tables;
void llvm_tables_free(struct llvm_tables *t);

/* True if llvm.c chooses the module's symbols, and the STT_FILE names that go with them. */
bool llvm_chooses_symbols(struct lookup_module *m);

/* Completes element `index` of the answer for an address as requested. `count`: elements of the answer, 0: nothing is known; `all`:
 * elements of the whole chain, even if only one is requested. Texts live until the next call. Does nothing for modules that are not
 * linked ELF files. */
void llvm_complete(struct lookup *l, struct lookup_module *m, uint64_t address, size_t index, size_t count, size_t all,
                   struct lookup_result *e);
