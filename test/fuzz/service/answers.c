/* What stores answer: XML, segments of indexes, pointers. An index finds all it holds, in any case, and nothing else. */
#include <stdlib.h>

#include "objectstore/impl.h"
#include "origin/impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
    if (!ok)
        abort();
}

static void index_of(struct sl_bytes segment, struct sl_arena *arena)
{
    struct sl_buf lines = {0};
    origin_index_read(segment, &lines);
    check(origin_index_sort(&lines));
    struct sl_str rest = sl_buf_view(&lines), last = {NULL, 0};
    for (const char *end; rest.size && (end = memchr(rest.data, '\n', rest.size));) {
        struct sl_str line = {rest.data, (size_t)(end - rest.data)};
        check(!last.data || sl_str_compare(last, line) < 0);
        check(sl_str_equal(origin_index_find(sl_buf_bytes(&lines), line), line));
        char *other = sl_arena_strndup(arena, line.data, line.size);
        for (size_t i = 0; other && i < line.size; i++)
            other[i] = (char)((other[i] | 32) >= 'a' && (other[i] | 32) <= 'z' ? other[i] ^ 32 : other[i]);
        struct sl_str found = origin_index_find(sl_buf_bytes(&lines), (struct sl_str){other, line.size});
        check(!found.data || sl_str_equal_nocase(found, line));
        last = line;
        rest.data += line.size + 1;
        rest.size -= line.size + 1;
    }
    sl_buf_free(&lines);
    /* As if it were an index: whatever is in it, look-ups end. */
    origin_index_find(segment, SL_STR("crash.pdb/1/crash.pdb"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_arena arena = {0};
    struct sl_str text = {(const char *)data, size}, root, relative;
    struct sl_error error;
    check(s3_explain(403, text, &error) == error.code && error.code != SL_OK);
    struct sl_str path = pointer_parse(text);
    check(path.size <= size);
    check(!pointer_local(&arena, path, &root, &relative));
    index_of((struct sl_bytes){data, size}, &arena);
    sl_arena_free(&arena);
    return 0;
}
