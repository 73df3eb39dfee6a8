/* A record of a symbfile, read quickly and by protobuf-c: both must say the same. The first byte tells ranges from pads. */
#include "../../unit/symbfile/same_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct sl_bytes body = {data + 1, size - 1};
    if ((data[0] & 1 ? same_pad(body) : same_range(body)) == DIFFERENT)
        __builtin_trap();
    return 0;
}
