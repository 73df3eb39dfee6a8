/* Readable names: the style of crash reports, detection, and names that are left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "demangle/demangle.h"

static void expect(const char *mangled, enum sl_language language, const char *readable)
{
    struct sl_buf out = {0};
    bool ok = sl_demangle(sl_str(mangled), language, &out);
    sl_buf_u8(&out, 0);
    if (readable) {
        assert_string_equal((char *)out.data, readable);
        assert_true(ok);
    } else {
        assert_false(ok);
        assert_int_equal(out.size, 1);
    }
    sl_buf_free(&out);
}

static void itanium(void **state)
{
    (void)state;
    expect("_ZN12_GLOBAL__N_15startEv", SL_LANG_UNKNOWN, "(anonymous namespace)::start()");
    expect("__ZN12_GLOBAL__N_15startEv", SL_LANG_CPP, "(anonymous namespace)::start()");
    expect("_ZZN12_GLOBAL__N_15helloEvENK3$_0clEv", SL_LANG_UNKNOWN,
           "(anonymous namespace)::hello()::$_0::operator()() const");
    expect("_Z3MinIiiEDTqultfp_fp0_cl7forwardIT_Efp_Ecl7forwardIT0_Efp0_EEOS0_OS1_", SL_LANG_UNKNOWN,
           "Min<int, int>(int&&, int&&)");
    expect("_Z3foov$0123456789abcdef0123456789ABCDEF", SL_LANG_CPP, "foo()");
    expect("_Z3foov.isra.0", SL_LANG_CPP, "foo() [clone .isra.0]");
    expect("_ZN7content11ContentMainERKNS_17ContentMainParamsE", SL_LANG_UNKNOWN,
           "content::ContentMain(content::ContentMainParams const&)");
    expect("a", SL_LANG_CPP, NULL);
    expect("_Z", SL_LANG_CPP, NULL);
    expect("invalid", SL_LANG_OBJCPP, NULL);
    expect("_ZN12_GLOBAL__N_15startEv", SL_LANG_C, NULL);
}

static void microsoft(void **state)
{
    (void)state;
    expect("??3@YAXPEAX@Z", SL_LANG_UNKNOWN, "operator delete(void*)");
    expect("?LoadV8Snapshot@V8Initializer@gin@@SAXXZ", SL_LANG_UNKNOWN, "gin::V8Initializer::LoadV8Snapshot(void)");
    expect("??9@YA_NAEBVGURL@@0@Z", SL_LANG_UNKNOWN, "operator!=(GURL const&, GURL const&)");
    expect("??_GAtomSandboxedRenderFrameObserver@?A0x77c58568@atom@@UEAAPEAXI@Z", SL_LANG_UNKNOWN,
           "atom::`anonymous namespace'::AtomSandboxedRenderFrameObserver::`scalar deleting destructor'(unsigned int)");
    expect("??@8ba8d245c9eca390356129098dbe9f73@", SL_LANG_UNKNOWN, "??@8ba8d245c9eca390356129098dbe9f73@");
}

static void rust(void **state)
{
    (void)state;
    expect("__ZN3std2io4Read11read_to_end17hb85a0f6802e14499E", SL_LANG_UNKNOWN, "std::io::Read::read_to_end");
    expect("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
           SL_LANG_UNKNOWN, "<Test + 'static as foo::Bar<Test>>::bar");
    expect("_ZN3foo17h05af221e174051e9E.llvm.1234", SL_LANG_RUST, "foo");
    expect("_RNvCskwGfYPst2Cb_3foo16example_function", SL_LANG_UNKNOWN, "foo::example_function");
    assert_int_equal(sl_demangle_detect(SL_STR("_ZN7content11ContentMainERKNS_17ContentMainParamsE")), SL_LANG_CPP);
}

static void others(void **state)
{
    (void)state;
    expect("+[Foo bar:blub:]", SL_LANG_UNKNOWN, "+[Foo bar:blub:]");
    expect("-[Foo bar]", SL_LANG_OBJCPP, "-[Foo bar]");
    expect("main", SL_LANG_UNKNOWN, NULL);
    expect("main", SL_LANG_GO, NULL);
    assert_int_equal(sl_demangle_detect(SL_STR("$s4main3fooyyF")), SL_LANG_SWIFT);
}

/* Names made to nest deeply or to expand without bound end quickly, without a result. */
static void hostile(void **state)
{
    (void)state;
    struct sl_buf name = {0}, out = {0};
    sl_buf_cstr(&name, "_Z1f");
    sl_buf_fill(&name, 'P', 4000);
    sl_buf_u8(&name, 'i');
    sl_demangle(sl_buf_view(&name), SL_LANG_CPP, &out);
    sl_buf_clear(&name);
    sl_buf_cstr(&name, "_Z1fSt4pairIiiE");
    for (int i = 0; i < 200; i++)
        sl_buf_cstr(&name, "St4pairIS_S_E");
    sl_demangle(sl_buf_view(&name), SL_LANG_CPP, &out);
    sl_buf_clear(&name);
    sl_buf_cstr(&name, "_Z1fIiE");
    for (int i = 0; i < 60; i++)
        sl_buf_printf(&name, "1aIS%c_S%c_E", i < 36 ? "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i] : 'Z',
                      i < 36 ? "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i] : 'Z');
    sl_demangle(sl_buf_view(&name), SL_LANG_CPP, &out);
    sl_buf_clear(&name);
    sl_buf_cstr(&name, "?f@@YAX");
    for (int i = 0; i < 1000; i++)
        sl_buf_cstr(&name, "PEA");
    sl_demangle(sl_buf_view(&name), SL_LANG_CPP, &out);
    sl_buf_free(&name);
    sl_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(itanium), cmocka_unit_test(microsoft), cmocka_unit_test(rust),
        cmocka_unit_test(others),  cmocka_unit_test(hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
