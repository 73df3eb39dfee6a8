/* Archives of object files: members lie inside of the file, and come to an end. */
#include "object/ar.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sl_bytes bytes = {data, size};
    struct sl_ar ar;
    struct sl_ar_member m;
    size_t count = 0;
    if (!sl_ar_detect(bytes))
        return 0;
    sl_ar_open(bytes, &ar);
    while (sl_ar_next(&ar, &m)) {
        const uint8_t *name = (const uint8_t *)m.name.data;
        bool inside = m.bytes.size <= size &&
                      (!m.bytes.size || (m.bytes.data >= data && m.bytes.data <= data + size - m.bytes.size));
        if (!inside || !m.name.size || name < data || name + m.name.size > data + size || ++count > size)
            __builtin_trap();
    }
    return 0;
}
