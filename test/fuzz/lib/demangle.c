/* Demangling: the first byte chooses the language. */
#include "demangle/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_buf out = {0};
    if (size) {
        struct sl_str name = {(const char *)data + 1, size - 1};
        sl_demangle(name, (enum sl_language)(data[0] % (SL_LANG_FSHARP + 1)), &out);
        sl_demangle_full(name, &out);
    }
    sl_buf_free(&out);
    return 0;
}
