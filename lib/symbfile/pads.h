/* Instructions, as far as return pads need them. Private to this folder. */
#pragma once

#include "symbfile/image.h"

enum instruction { INSTRUCTION_BAD, INSTRUCTION_OTHER, INSTRUCTION_CALL };

/* What the code begins with, and its length; INSTRUCTION_BAD when it is no whole instruction. `family` is that of x86-64 or
 * ARM64. */
enum instruction pads_instruction(enum sl_cpu_family family, struct sl_bytes code, unsigned *length);
