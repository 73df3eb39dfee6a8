/* COFF object files: structures shared by the coff*.c files. Private to this folder. */
#pragma once

#include "object/pe.h"

/* Sections and symbols have the layout of PE images, so the code of pe.h reads them. All sections of an object file have address 0:
 * those with code are laid out one after the other, in file order, as for ELF. */
struct coff {
    struct pe pe; /* first: the functions of pe.h take it */
    uint16_t machine;
    uint32_t code_size; /* bytes of the code sections, laid out */
    uint64_t read;      /* bytes of sections and relocation tables read so far */
};

/* Kinds of files with the anonymous header (0, 0xFFFF): an object with more than 65,279 sections (/bigobj), an import, or another
 * anonymous object (link-time code generation). COFF_NAMED: it has the ordinary header. */
enum coff_anonymous { COFF_BIG, COFF_IMPORT, COFF_OTHER, COFF_NAMED };

/* coff.c: classifies a file by its header. False if it is not COFF. */
bool coff_detect(struct sl_bytes bytes, enum coff_anonymous *anonymous);

/* coff_relocate.c: returns the contents of a section, for data with relocations applied; they live as long as the object. Empty when
 * the file has none or they cannot be read. */
struct sl_bytes coff_contents(struct sl_object *object, struct pe_section *section);
