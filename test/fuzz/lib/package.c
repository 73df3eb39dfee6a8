/* Packages: members come to an end, are as long as they say, have paths that do not climb, and are found again at their offset. */
#include <string.h>

#include "package/package.h"

struct last_member { /* the last one that was passed on whole */
    char path[SL_PACKAGE_MAX_PATH + 2];
    size_t path_size;
    uint64_t size, offset, passed;
    bool is_whole, again;
};

static enum sl_package_choice begin(void *arg, const struct sl_package_member *member)
{
    struct last_member *m = arg;
    bool bad = member->path.size < 2 || member->path.data[0] != '/' || member->path.size > SL_PACKAGE_MAX_PATH + 1 ||
               memmem(member->path.data, member->path.size, "/../", 4) || sl_str_ends(member->path, SL_STR("/..")) ||
               !sl_str_is_utf8(member->path);
    if (bad)
        __builtin_trap();
    sl_package_is_source_path(member->path);
    if (m->again) { /* the package may have several at one place; the first is that of the offset */
        m->again = false;
        if (m->offset == member->offset && (m->size != member->size || m->path_size != member->path.size))
            __builtin_trap();
        return SL_PACKAGE_STOP;
    }
    memcpy(m->path, member->path.data, member->path.size);
    m->path_size = member->path.size;
    m->size = member->size;
    m->offset = member->offset;
    m->passed = 0;
    return SL_PACKAGE_READ;
}

static enum sl_package_choice piece(void *arg, struct sl_bytes bytes)
{
    struct last_member *m = arg;
    m->passed += bytes.size;
    if (m->passed > m->size)
        __builtin_trap();
    return m->passed > 1 << 22 ? SL_PACKAGE_SKIP : SL_PACKAGE_READ;
}

static enum sl_package_choice end(void *arg)
{
    struct last_member *m = arg;
    if (m->passed != m->size)
        __builtin_trap();
    m->is_whole = true;
    return SL_PACKAGE_READ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sl_bytes file = {data, size};
    struct last_member member = {.is_whole = false};
    struct sl_package_source source;
    struct sl_budget budget;
    struct sl_error error;
    const struct sl_package_visitor visitor = {&member, begin, piece, end};
    const struct sl_package_limits limits = {&budget, 100};
    sl_budget_init(&budget, size);
    sl_package_walk(file, 0, &visitor, &limits, &error);
    sl_package_source(file, SL_STR("a_1.orig.tar.xz"), &source);
    sl_package_is_seekable(file);
    if (member.is_whole && member.offset) {
        member.again = true;
        sl_budget_init(&budget, size);
        sl_package_walk(file, member.offset, &visitor, &limits, &error);
    }
    return 0;
}
