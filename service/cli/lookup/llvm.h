/* `symloom llvm-symbolizer`, `llvm-addr2line`: what LLVM's tools print besides the inline chain. Private to this folder. */
#pragma once

#include "cli/lookup/lookup.h"

struct llvm_tables;
void llvm_tables_free(struct llvm_tables *t);

/* True for linked ELF files. For these llvm_complete takes the name of a physical function, and an unknown file (STT_FILE), from the
 * symbol table by the rules of LLVM's tools. False for all other files. */
bool llvm_chooses_symbols(struct lookup_module *m);

/* Changes `e`, one function of the inline chain found at `address`, to what LLVM's tools print: adds the discriminator and the place of
 * the declaration from DWARF, and the name and entry from the symbol table. `index`: its position, 0 is the innermost; `count`: functions
 * that are printed, 0: none was found; `all`: functions in the whole chain, even if only one is printed. Texts in `e` live until the next
 * call. Changes nothing for modules that are not linked ELF files. */
void llvm_complete(struct lookup *l, struct lookup_module *m, uint64_t address, size_t index, size_t count, size_t all,
                   struct lookup_result *e);
