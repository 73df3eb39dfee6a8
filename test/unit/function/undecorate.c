/* The decoration of C names, as the linkers of 32-bit Windows know it. */
#include "../check.h"

#include "function/undecorate.h"

struct expected {
    const char *name, *plain;
    uint32_t parameters;
};

TEST(symbols_lose_windows_decoration)
{
    static const struct expected expected[] = {
        {"_cdecl", "cdecl", 0},
        {"_stdcall@12", "stdcall", 12},
        {"@fastcall@8", "fastcall", 8},
        {"vectorcall@@16", "vectorcall", 16},
        {"__tmainCRTStartup", "_tmainCRTStartup", 0},
        {"_RtlUnwind@16", "RtlUnwind", 16}, /* no Rust */
        {"_RtlUnwind", "RtlUnwind", 0},
        {"_RNvC1a1b", "_RNvC1a1b", 0},
        {"__RNvC1a1b", "_RNvC1a1b", 0},
        {"_ZwClose@4", "ZwClose", 4}, /* no C++ */
        {"_ZwClose", "ZwClose", 0},
        {"_Z1fv", "_Z1fv", 0},
        {"__Z1fi@4", "_Z1fi", 4},
        {"?f@@YGHH@Z", "?f@@YGHH@Z", 0},
        {"_f(int)@4", "_f(int)@4", 0},
        {"_f@x", "f@x", 0},
        {"_f@", "f@", 0},
        {"_f@99999999999", "f@99999999999", 0},
        {"f@4", "f@4", 0},
        {"plain", "plain", 0},
        {"_", "", 0},
        {"", "", 0},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        uint32_t parameters;
        struct sl_str plain = sl_undecorate(sl_str(expected[i].name), &parameters);
        if (!sl_str_equal(plain, sl_str(expected[i].plain)) || parameters != expected[i].parameters)
            fail_msg("%s: " SL_STR_FMT " %u", expected[i].name, SL_STR_ARG(plain), parameters);
    }
}

TEST(linkage_names_lose_only_their_suffix)
{
    static const struct expected expected[] = {
        {"stdcall@12", "stdcall", 0},
        {"@fastcall@8", "fastcall", 0},
        {"vectorcall@@16", "vectorcall", 0},
        {"_Z1fi@4", "_Z1fi", 0},
        {"__tmain", "__tmain", 0},
        {"_lopen@8", "_lopen", 0},
        {"?f@@YGHH@Z", "?f@@YGHH@Z", 0},
        {"f@x", "f@x", 0},
        {"@4", "@4", 0},
        {"@@4", "@@4", 0},
        {"", "", 0},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct sl_str plain = sl_undecorate_linkage(sl_str(expected[i].name));
        if (!sl_str_equal(plain, sl_str(expected[i].plain)))
            fail_msg("%s: " SL_STR_FMT, expected[i].name, SL_STR_ARG(plain));
    }
}
