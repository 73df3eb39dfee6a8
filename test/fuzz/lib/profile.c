/* Profiles: read, every address named in some way, and written; what is written is a profile that wants only the other names. The
 * first byte says how many calls there are at most at one address, and with its highest bit that there is little memory, all of which
 * is given back. */
#include <stdlib.h>

#include "base/json.h"
#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good)
        abort();
}

static const struct sl_profile_call calls[] = {{SL_STR("f"), SL_STR("/a/b.c"), 1},
                                               {SL_STR("g<\"x\">"), SL_STR(""), 0},
                                               {SL_STR("main"), SL_STR("/a/b.c"), 3},
                                               {SL_STR("f"), SL_STR("/a/b.c"), 1}};

static void name_all(const struct sl_profile *profile, unsigned most, struct sl_profile_name *names)
{
    for (size_t i = 0; i < profile->address_count; i++) {
        uint64_t address = profile->addresses[i].address;
        must(profile->addresses[i].lib < profile->lib_count);
        names[i] = (struct sl_profile_name){address & ~UINT64_C(3), calls, (address + 1) % (most + 1)};
    }
}

static size_t count_unnamed(const struct sl_profile *profile, const struct sl_profile_name *names)
{
    size_t count = 0;
    for (size_t i = 0; i < profile->address_count; i++)
        count += !names[i].count;
    return count;
}

static void read_again(struct sl_str text, size_t unnamed)
{
    struct sl_arena arena = {0};
    struct sl_profile profile;
    struct sl_json j = sl_json(text, &arena, false);
    sl_json_skip(&j);
    must(sl_json_end(&j));
    must(sl_profile_read(text, &arena, &profile, NULL) == SL_OK && profile.address_count == unnamed);
    sl_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_arena arena = {0};
    struct sl_profile profile;
    enum { LITTLE = 16384 };
    struct sl_budget budget;
    struct sl_buf out = {0};
    if (!size)
        return 0;
    sl_budget_init(&budget, size);
    sl_budget_limit(&budget, LITTLE, NULL, NULL);
    if (data[0] & 0x80)
        out.budget = &budget;
    if (sl_profile_read((struct sl_str){(const char *)data + 1, size - 1}, &arena, &profile, NULL) == SL_OK) {
        struct sl_profile_name *names = SL_ARENA_ARRAY(&arena, struct sl_profile_name, profile.address_count + 1);
        must(names);
        name_all(&profile, data[0] % 5, names);
        enum sl_code code = sl_profile_write(&profile, names, &out, NULL);
        must(code == SL_OK || code == SL_MALFORMED || code == SL_UNSUPPORTED);
        if (code == SL_OK)
            read_again(sl_buf_view(&out), count_unnamed(&profile, names));
    }
    sl_buf_free(&out);
    must(!out.budget || atomic_load(&budget.memory) == LITTLE);
    sl_arena_free(&arena);
    return 0;
}
