/* Demangling: the first byte chooses the language. A name that is not understood must leave the output as it was. */
#include <stdlib.h>

#include "demangle/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_buf out = {0};
    if (size) {
        struct sl_str name = {(const char *)data + 1, size - 1};
        bool good = sl_demangle(name, (enum sl_language)(data[0] % (SL_LANG_FSHARP + 1)), &out);
        if (!good && out.size)
            abort();
        size_t before = out.size;
        bool full = sl_demangle_full(name, &out);
        if (!full && out.size != before)
            abort();
    }
    sl_buf_free(&out);
    return 0;
}
