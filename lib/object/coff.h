/* COFF object files: structures shared by the coff*.c files. Private to this folder. */
#pragma once

#include "object/pe.h"

/* An object file has sections and symbols as images have, so that the same code reads them. Each section begins at 0: those with code
 * are laid out one after the other, in the order of the file, as of ELF. */
struct coff {
    struct pe pe; /* first: the functions of pe.h take it */
    uint16_t machine;
    uint32_t code_size; /* of the sections with code, laid out */
    uint64_t read;      /* bytes of sections and of their relocations, so far */
};

/* A file that begins like one with more sections than 16 bits count, and is none. */
enum coff_anonymous { COFF_BIG, COFF_IMPORT, COFF_OTHER, COFF_NAMED };

/* coff.c: what the header says; COFF_NAMED: it is an ordinary object. False when it is none of these. */
bool coff_detect(struct sl_bytes bytes, enum coff_anonymous *anonymous);

/* coff_relocate.c: what is in a section, with its relocations applied; lives as long as the object. Empty when the file has nothing. */
struct sl_bytes coff_contents(struct sl_object *object, struct pe_section *section);
