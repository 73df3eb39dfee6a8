/* Decodes instructions, to find those that are calls: pads.c makes return pads of them. Private to this folder. */
#pragma once

#include "symbfile/image.h"

enum instruction { INSTRUCTION_BAD, INSTRUCTION_OTHER, INSTRUCTION_CALL };

/* Returns whether the first instruction of `code` is a call, and sets `*length` to its length in bytes; INSTRUCTION_BAD if it is
 * invalid or incomplete. `family` must be x86-64 or ARM64. */
enum instruction pads_instruction(enum sl_cpu_family family, struct sl_bytes code, unsigned *length);
