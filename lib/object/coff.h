/* COFF object files: structures shared by the coff*.c files. Private to this folder. */
#pragma once

#include "object/pe.h"

/* Sections and symbols have the layout of PE images, so the functions of pe.h read them. All sections of an object file have address 0:
 * those with code get addresses one after the other, in file order. */
struct coff {
    struct pe pe; /* must be first: functions of pe.h read object->impl as a struct pe */
    uint16_t machine;
    uint32_t code_size; /* end of the code sections, at the addresses they got */
    uint64_t read; /* bytes of sections and relocation tables read so far; more than the file has if they overlap */
};

/* Kinds of files with the anonymous header (0, 0xFFFF): an object with more than 65,279 sections (/bigobj), an import, or another
 * anonymous object (link-time code generation). COFF_NAMED: it has the ordinary header. */
enum coff_anonymous { COFF_BIG, COFF_IMPORT, COFF_OTHER, COFF_NAMED };

/* coff.c: classifies a file by its header. False if it is not COFF. */
bool coff_detect(struct sl_bytes bytes, enum coff_anonymous *anonymous);

/* coff_relocate.c: returns the contents of a section, which live as long as the object; in sections without code, relocations are
 * applied. Empty when the section has no contents in the file or they cannot be read. */
struct sl_bytes coff_contents(struct sl_object *object, struct pe_section *section);
