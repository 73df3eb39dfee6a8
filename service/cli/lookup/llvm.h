/* `symloom llvm-symbolizer`, `llvm-addr2line`: what LLVM's tools print besides the inline chain. Private to this folder. */
#pragma once

#include "cli/lookup/lookup.h"

struct llvm_tables;
void llvm_tables_free(struct llvm_tables *t);

/* True for linked ELF files. For these llvm_complete takes the name of a function that is not inlined from the symbol table, as LLVM's
 * tools do, and its source file too (STT_FILE) if none is known. False for all other files. */
bool llvm_chooses_symbols(struct lookup_module *m);

/* Changes `e`, a function of the inline chain found at `address`, to what LLVM's tools print: sets its discriminator and its declaration's
 * file and line from DWARF, its name and start address from the symbol table. `index`: its position, 0 is the innermost; `count`: how many
 * functions are printed, 0: none was found; `all`: how many the whole chain has, even if only one is printed. Texts in `e` live until the
 * next call. Changes nothing for modules that are not linked ELF files. */
void llvm_complete(struct lookup *l, struct lookup_module *m, uint64_t address, size_t index, size_t count, size_t all,
                   struct lookup_result *e);
