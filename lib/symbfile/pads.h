/* Instructions, as far as return pads need them. Private to this folder. */
#pragma once

#include "symbfile/image.h"

enum instruction { INSTRUCTION_BAD, INSTRUCTION_OTHER, INSTRUCTION_CALL };

/* What the code begins with, and its length; INSTRUCTION_BAD when it is no whole instruction. `machine` is
 * IMAGE_X86_64 or IMAGE_AARCH64. */
enum instruction pads_instruction(uint16_t machine, struct sl_bytes code, unsigned *length);
