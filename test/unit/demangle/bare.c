/* Names without template arguments: what the fast reader says must be what LLVM's demangler says, less all brackets. */
#include "demangle/demangle.h"
#include "base/file.h"
#include "object/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const char *const known[] = {
    "_Z1fv",
    "_Z1fiz",
    "_ZN1a1bE",
    "_ZNK1A1fEPKcS1_",
    "_ZNVKR1A1gEv",
    "_ZNO1A1gERA_",
    "_ZNSt6vectorIiSaIiEE9push_backEOi",
    "_ZNSt6vectorISt10unique_ptrIN3app5shapeESt14default_deleteIS2_EESaIS5_EE4swapERS7_",
    "_ZSt7forwardIRiEOT_RNSt16remove_referenceIS1_E4typeE",
    "_ZSt7forwardIOiEOT_RNSt16remove_referenceIS1_E4typeE",
    "_Z1fIRiEvRT_OS1_",
    "_Z1fIOiEvRT_OS1_",
    "_ZNSt5tupleIJiRKdEEC2IJiS1_ELb1EEEDpOT_",
    "_ZN1A1fIJEEEvDpT_i",
    "_ZN1A1fIJiEJjcEEEvDpT_DpRKT0_",
    "_Z1fIJiEEvDpSt6vectorIT_E",
    "_Z1fIJiEEvSt5tupleIJDpT_EE",
    "_Z1fIJPFvvEEEvDpT_",
    "_ZNSsC1Ev",
    "_ZNSaIcED2Ev",
    "_ZNSoD0Ev",
    "_ZNSdC1Ev",
    "_ZNSs4_Rep9_S_createEv",
    "_Z1fSsSiSoSdSbIcE",
    "_ZlsRSoRK3Foo",
    "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
    "_ZltIiEbT_",
    "_ZN1AltIiEEbT_",
    "_ZNK3FoossIiEEbT_",
    "_ZNK1AcvbEv",
    "_ZNK1AcvPKcEv",
    "_ZN1AcvT_IiEEv",
    "_ZNK1AcvSt6vectorIiSaIiEEEv",
    "_ZN1AnwEm",
    "_ZN1AdaEPv",
    "_ZN1AptEv",
    "_ZZ4mainENKUlvE_clEv",
    "_ZZN1A1fEiENKUliPKcE0_clEiS1_",
    "_ZZ1fIiEvT_ENKUlS0_E_clEi",
    "_ZZ1fvENKUlRKT_E_clIiEEDaS1_",
    "_ZZ1fIiEvT_E1s_0",
    "_ZZ1fvE1s__12_",
    "_ZZ1fvEs_0",
    "_ZZ1fvEd_N1A1gEv",
    "_ZNSt8functionIFvvEEC2IZ4mainEUlvE_vEEOT_",
    "_ZN12_GLOBAL__N_11AC1Ev",
    "_ZNSt8ios_base7failureB5cxx11D0Ev",
    "_ZN1AB1xB1yC1Ev",
    "_Z1fB1xv",
    "_ZNK1AUt0_1fEv",
    "_ZN1BCI21AIiEEi",
    "_Z1gIiENSt9enable_ifIX14is_something_vIT_EEvE4typeES1_",
    "_Z1gIiENSt9enable_ifIXsr1AIT_E1BE5valueEvE4typeES1_",
    "_Z1gIiENSt9enable_ifIXsrSt11is_integralIT_E5valueEvE4typeES1_",
    "_Z1fILi5ELl12ELln3ELb1ELc97EL1E2EEvPj",
    "_Z1fM1AFvvE",
    "_Z1fPFviE",
    "_Z1fRA10_Kc",
    "_Z1fDnDiDsDu",
    "_Z1fDv4_f",
    "_ZTV1A",
    "_ZThn8_N1A1fEv",
    "_ZGVZ1fvE1x",
    "_ZN3fooIXadL_Z1fvEEE1gEv",
    "_Z8operatorIiEvT_",
    "_Z3foov.isra.0",
    "_Z1fT_",
    "_Z01fv",
    "_ZN1A1fES99_",
    "_ZN1A1fES",
    "_ZN1AC9Ev",
    "_Z",
    "_ZN",
    "_ZNK",
    "_ZZ",
    "_ZS",
    "_ZSt",
    "_Z1fDp",
    "_Z1fL",
    "_Z9999999999999999999fv",
    "_ZNSt1",
};

static void remove_all(struct sl_buf *text, const char *what)
{
    size_t size = strlen(what);
    uint8_t *at;
    while (text->size && (at = memmem(text->data, text->size, what, size))) {
        memmove(at, at + size, (size_t)(text->data + text->size - at) - size);
        text->size -= size;
    }
}

/* Whether the fast reader knew the name. */
static bool compare(struct sl_str name)
{
    struct sl_buf bare = {0}, full = {0};
    bool known_to_us = sl_demangle_bare(name, &bare);
    if (!known_to_us) {
        assert_int_equal(bare.size, 0);
    } else {
        bool good = sl_demangle_full(name, &full);
        remove_all(&full, "<char, std::char_traits<char>, std::allocator<char> >"); /* std::string, spelled out */
        remove_all(&full, "<char, std::char_traits<char> >");
        remove_all(&full, "<>");
        if (!good || !sl_str_equal(sl_buf_view(&bare), sl_buf_view(&full)))
            fail_msg(SL_STR_FMT ": '" SL_STR_FMT "', not '" SL_STR_FMT "'", SL_STR_ARG(name),
                     SL_STR_ARG(sl_buf_view(&full)), SL_STR_ARG(sl_buf_view(&bare)));
    }
    sl_buf_free(&bare);
    sl_buf_free(&full);
    return known_to_us;
}

static void text_of(const char *name, const char *text)
{
    struct sl_buf out = {0};
    assert_true(sl_demangle_bare(sl_str(name), &out));
    sl_buf_u8(&out, 0);
    assert_string_equal((const char *)out.data, text);
    sl_buf_free(&out);
}

static void texts(void **state)
{
    (void)state;
    text_of("_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector::push_back(int&&)");
    text_of("_ZSt7forwardIRiEOT_RNSt16remove_referenceIS1_E4typeE", "int& std::forward(std::remove_reference::type&)");
    text_of("_ZNSt5tupleIJiRKdEEC2IJiS1_ELb1EEEDpOT_", "std::tuple::tuple(int&&, double const&)");
    text_of("_ZNSsC1Ev", "std::basic_string::basic_string()");
    text_of("_ZN1BCI21AIiEEi", "B::B(int)");
    text_of("_ZZN1A1fEiENKUliPKcE0_clEiS1_",
            "A::f(int)::{lambda(int, char const*)#2}::operator()(int, char const*) const");
    text_of("_ZN1AltIiEEbT_", "bool A::operator< (int)");
    text_of("_ZN28_GLOBAL__N_with_longer_nameX3runEv", "(anonymous namespace)::run()");
}

/* Others are not for the fast reader, which says nothing then. */
static void all_as_the_demangler(void **state)
{
    (void)state;
    size_t count = sizeof known / sizeof *known, ours = 0;
    for (size_t i = 0; i < count; i++)
        ours += compare(sl_str(known[i]));
    assert_in_range(ours, 40, count);
}

/* Each name cut short, and with one character changed to each of the grammar's. */
static void broken_names(void **state)
{
    static const char letters[] = "_0129ABCDEFIJKLMNOPRSTUVXZabcdilmnpstvz.<\xff";
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t size = strlen(known[i]);
        char *name = malloc(size); /* of its own, so that reading behind it is found */
        assert_non_null(name);
        for (size_t at = 2; at < size; at++) {
            char *part = malloc(at);
            assert_non_null(part);
            memcpy(part, known[i], at);
            compare((struct sl_str){part, at});
            free(part);
            memcpy(name, known[i], size);
            for (const char *letter = letters; *letter; letter++) {
                name[at] = *letter;
                compare((struct sl_str){name, size});
            }
        }
        free(name);
    }
}

static void deep_and_long_names(void **state)
{
    (void)state;
    static const char *const repeated[] = {"P", "1AI", "N1A",  "Z1f", "KR",   "SaI", "M",
                                           "F", "J",   "1fIJ", "DpP", "UlS_", "XsrE"};
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++) {
        struct sl_buf name = {0};
        sl_buf_cstr(&name, "_Z1fIiEv");
        while (name.size < 5000) {
            sl_buf_cstr(&name, repeated[i]);
            if (name.size % 7 == 0)
                compare(sl_buf_view(&name));
        }
        sl_buf_free(&name);
    }
}

/* Each level reads the one below as often as the pack has elements: without a limit the last of these takes years. */
static void expansions_within_expansions_end(void **state)
{
    (void)state;
    for (unsigned levels = 1; levels <= 14; levels++) {
        struct sl_buf name = {0}, readable = {0};
        sl_buf_cstr(&name, "_Z1fIJLi1ELi1ELi1ELi1ELi1ELi1ELi1ELi1ELi1ELi1ELi1ELi1ELi1ELi1ELi1ELi1EEEvS_I");
        for (unsigned i = 0; i < levels; i++)
            sl_buf_cstr(&name, "DpFS_S_I");
        sl_buf_cstr(&name, "DpT_");
        for (unsigned i = 0; i < levels; i++)
            sl_buf_cstr(&name, "EE");
        sl_buf_cstr(&name, "E");
        assert_int_equal(sl_demangle_bare(sl_buf_view(&name), &readable), levels < 3);
        sl_buf_free(&name);
        sl_buf_free(&readable);
    }
}

/* Every symbol of the C++ library: real names of all kinds. */
static void names_of_a_library(void **state)
{
    (void)state;
    struct sl_mapping mapping;
    struct sl_object *object;
    struct sl_symbol *symbols;
    struct sl_arena arena = {0};
    size_t count = 0, mangled = 0, ours = 0;
    assert_int_equal(sl_map_file("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", &mapping, NULL), SL_OK);
    assert_int_equal(sl_object_open(mapping.bytes, NULL, &object, NULL), SL_OK);
    assert_int_equal(sl_object_symbols(object, &arena, &symbols, &count, NULL), SL_OK);
    for (size_t i = 0; i < count; i++) {
        mangled += sl_str_starts(symbols[i].name, SL_STR("_Z"));
        ours += compare(symbols[i].name);
    }
    assert_in_range(ours, mangled / 2, mangled);
    sl_arena_free(&arena);
    sl_object_close(object);
    sl_unmap(&mapping);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(all_as_the_demangler),
        cmocka_unit_test(broken_names),
        cmocka_unit_test(deep_and_long_names),
        cmocka_unit_test(expansions_within_expansions_end),
        cmocka_unit_test(names_of_a_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
