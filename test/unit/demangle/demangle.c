/* Readable names: the style of C++ in crash reports, detection, and names that are left alone. */
#include "../check.h"

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

TEST(itanium_names_are_demangled)
{
    expect("_ZN12_GLOBAL__N_15startEv", SL_LANG_UNKNOWN, "(anonymous namespace)::start()");
    expect("__ZN12_GLOBAL__N_15startEv", SL_LANG_CPP, "(anonymous namespace)::start()");
    expect("_ZZN12_GLOBAL__N_15helloEvENK3$_0clEv", SL_LANG_UNKNOWN,
           "(anonymous namespace)::hello()::$_0::operator()() const");
    expect("_Z3MinIiiEDTqultfp_fp0_cl7forwardIT_Efp_Ecl7forwardIT0_Efp0_EEOS0_OS1_", SL_LANG_UNKNOWN,
           "Min<int, int>(int&&, int&&)");
    expect("_ZN7content11ContentMainERKNS_17ContentMainParamsE", SL_LANG_UNKNOWN,
           "content::ContentMain(content::ContentMainParams const&)");
    expect("_ZL29SupportsTextureSampleCountMTLPU19objcproto9MTLDevice11objc_objectm", SL_LANG_OBJCPP,
           "SupportsTextureSampleCountMTL(objc_object objcproto9MTLDevice*, unsigned long)");
    expect(
        "___ZN19URLConnectionClient33_clientInterface_cancelConnectionEP16dispatch_queue_sU13block_pointerFvvE_block_"
        "invoke14",
        SL_LANG_UNKNOWN,
        "invocation function for block in URLConnectionClient::_clientInterface_cancelConnection(dispatch_queue_s*, "
        "void () block_pointer)");
    expect("_Z3foov$0123456789abcdef0123456789ABCDEF", SL_LANG_CPP, "foo()");
    expect("_Z3foov$0123456789abcdef0123456789ABCDE", SL_LANG_CPP, NULL);
    expect("a", SL_LANG_CPP, NULL);
    expect("_Z", SL_LANG_CPP, NULL);
    expect("_____Z3foov", SL_LANG_CPP, NULL);
    expect("invalid", SL_LANG_OBJCPP, NULL);
    expect("_ZN12_GLOBAL__N_15startEv", SL_LANG_C, NULL);
}

TEST(itanium_names_follow_llvm_style)
{
    expect("_Z1fSt6vectorIS_IiSaIiEESaIS1_EE", SL_LANG_CPP,
           "f(std::vector<std::vector<int, std::allocator<int> >, std::allocator<std::vector<int, std::allocator<int> "
           "> > >)");
    expect("_Z1gRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", SL_LANG_CPP,
           "g(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const&)");
    expect("_Z1fILi5ELl12ELln3ELj4ELm6ELx7ELy8ELb1ELc97EL1E2EEvPj", SL_LANG_CPP,
           "f<5, (long)12, (long)-3, (unsigned int)4, (unsigned long)6, (long long)7, (unsigned long long)8, true, "
           "(char)97, (E)2>(unsigned int*)");
    expect("_Z1fILDn0EEvv", SL_LANG_CPP, "f<nullptr>()");
    expect("_Z1hIXadL_Z1fIiEvT_EEEvv", SL_LANG_CPP, "h<&f<int>(int)>()");
    expect("_ZZ4mainENKUliE_clEi", SL_LANG_CPP, "main::{lambda(int)#1}::operator()(int) const");
    expect("_ZZ1fIiEvT_ENKUlvE0_clEv", SL_LANG_CPP, "f<int>(int)::{lambda()#2}::operator()() const");
    expect("_ZNK1AUt0_1fEv", SL_LANG_CPP, "A::{unnamed type#2}::f() const");
    expect("_ZlsIiEvT_", SL_LANG_CPP, "operator<< <int>(int)");
    expect("_Z3foov.isra.0", SL_LANG_CPP, "foo() [clone .isra.0]");
    expect("_Z3foov.constprop.0.isra.2.cold", SL_LANG_CPP, "foo() [clone .constprop.0] [clone .isra.2] [clone .cold]");
    expect("_ZN29_GLOBAL__N__foo.cpp_12345678_3barEv", SL_LANG_CPP, "(anonymous namespace)::bar()");
    expect("_ZNSt8ios_base7failureB5cxx11D0Ev", SL_LANG_CPP, "std::ios_base::failure[abi:cxx11]::~failure()");
    expect(
        "_ZNK4llvm5MachO6TargetcvNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEEv", SL_LANG_CPP,
        "llvm::MachO::Target::operator std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> "
        ">() const");
    expect("_ZN1ApmEv", SL_LANG_CPP, "A::operator->*()");
    expect("_ZNSsC1Ev", SL_LANG_CPP,
           "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::basic_string()");
    /* What LLVM's parser does not know by itself. */
    expect(
        "_ZSt14__relocate_a_1IiiENSt9enable_ifIXsrSt24__is_bitwise_relocatableIT_vE5valueEPS2_E4typeES4_S4_S4_RSaIT0_E",
        SL_LANG_CPP, "std::__relocate_a_1<int, int>(int*, int*, int*, std::allocator<int>&)");
    expect("_ZSt4swapIiENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EESt21is_move_constructibleIS4_"
           "ESt18is_move_assignableIS4_EEE5valueEvE4typeERS4_SE_",
           SL_LANG_CPP, "std::swap<int>(int&, int&)");
    /* Packs and members of types as older ABIs and GCC write them. */
    expect("_Z1fIIicRKlEEvDpOT_", SL_LANG_CPP, "f<int, char, long const&>(int&&, char&&, long const&)");
    expect("_ZNSt5dequeINSt10filesystem7__cxx114pathESaIS2_EE12emplace_backIIS2_EEERS2_DpOT_", SL_LANG_CPP,
           "std::deque<std::filesystem::__cxx11::path, std::allocator<std::filesystem::__cxx11::path> "
           ">::emplace_back<std::filesystem::__cxx11::path>(std::filesystem::__cxx11::path&&)");
    expect(
        "_Z10multiple_pILj1EljEN10if_nonpolyIT1_bXsr15poly_int_traitsIS1_E7is_polyEE4typeERK12poly_int_podIXT_ET0_ES1_",
        SL_LANG_CPP,
        "multiple_p<(unsigned int)1, long, unsigned int>(poly_int_pod<(unsigned int)1, long> const&, unsigned int)");
    expect(
        "_ZN2wi7bit_andI16generic_wide_intI16wide_int_storageES3_EENS_13binary_traitsIT_T0_XsrNS_10int_traitsIS5_EE14"
        "precision_typeEXsrNS7_IS6_EE14precision_typeEE11result_typeERKS5_RKS6_",
        SL_LANG_CPP,
        "wi::bit_and<generic_wide_int<wide_int_storage>, generic_wide_int<wide_int_storage> "
        ">(generic_wide_int<wide_int_storage> const&, generic_wide_int<wide_int_storage> const&)");
    expect("_ZGTt1fv", SL_LANG_CPP, "transaction clone for f()");
    expect("_ZGTn1fv", SL_LANG_CPP, "non-transaction clone for f()");
    /* Constrained templates of C++20. */
    expect("_Z1fITkSt8integraliEvT_", SL_LANG_CPP, "f<int>(int)");
    expect("_Z1gIiQsr3stdE8integralIT_EEvi", SL_LANG_CPP, "g<int>(int)");
    struct sl_buf out = {0};
    assert_true(sl_demangle_full(SL_STR("_Z1fILl12EEi1SIcE"), &out));
    sl_buf_u8(&out, 0);
    assert_string_equal((char *)out.data, "int f<>(S<>)");
    sl_buf_free(&out);
}

/* As c++filt and addr2line of the binutils write it. */
TEST(gnu_style_follows_binutils)
{
    static const struct {
        const char *mangled, *readable;
    } names[] = {
        /* arguments that say nothing: a comma behind each, but behind the last */
        {"_Z1fIiJEvEvv", "void f<int, , void>()"},
        {"_Z1fISaIiEJEEvv", "void f<std::allocator<int>>()"},
        {"_Z1fISaIiEJS0_EEvv", "void f<std::allocator<int>, std::allocator<int> >()"},
        {"_Z1fIJEEvv", "void f<>()"},
        {"_Z3getILm1ESaIiEJEERT0_R5tupleIXT_EJS1_DpT1_EE",
         "std::allocator<int>& get<1ul, std::allocator<int>>(tuple<1ul, std::allocator<int>>&)"},
        /* a qualifier of the parameter and of the argument */
        {"_Z1fIKiERKT_v", "int const& f<int const>()"},
        /* an inherited constructor */
        {"_ZN1DCI11BEi", "D::B(int)"},
        {"_Z1fDn", "f(decltype(nullptr))"},
        /* addresses of functions as arguments */
        {"_Z1fIXadL_Z1giEEEvv", "void f<&(g(int))>()"},
        {"_Z1fIXadL_ZN1n1gEiEEEvv", "void f<&n::g>()"},
        {"_ZTHN1n1xE", "TLS init function for n::x"},
        {"_ZTWN1n1xE", "TLS wrapper function for n::x"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct sl_buf out = {0};
        assert_true(sl_demangle_styled(sl_str(names[i].mangled), SL_LANG_CPP, SL_DEMANGLE_GNU, &out));
        sl_buf_u8(&out, 0);
        assert_string_equal((char *)out.data, names[i].readable);
        sl_buf_free(&out);
    }
}

TEST(microsoft_names_are_demangled)
{
    expect("??3@YAXPEAX@Z", SL_LANG_UNKNOWN, "operator delete(void*)");
    expect("?LoadV8Snapshot@V8Initializer@gin@@SAXXZ", SL_LANG_UNKNOWN, "gin::V8Initializer::LoadV8Snapshot(void)");
    expect("??9@YA_NAEBVGURL@@0@Z", SL_LANG_UNKNOWN, "operator!=(GURL const&, GURL const&)");
    expect("??_GAtomSandboxedRenderFrameObserver@?A0x77c58568@atom@@UEAAPEAXI@Z", SL_LANG_UNKNOWN,
           "atom::`anonymous namespace'::AtomSandboxedRenderFrameObserver::`scalar deleting destructor'(unsigned int)");
    expect("@?f@@YAXXZ", SL_LANG_UNKNOWN, "f(void)");
    expect("?g@A@@QEBAHXZ", SL_LANG_UNKNOWN, "A::g(void) const");
    expect("??R<lambda_1>@@QEBAXXZ", SL_LANG_UNKNOWN, "<lambda_1>::operator()(void) const");
    expect("??$f@HH@@YAXHH@Z", SL_LANG_UNKNOWN, "f<int, int>(int, int)");
    expect("?f@@YAXP6AXH@Z@Z", SL_LANG_UNKNOWN, "f(void (*)(int))");
    expect("?f@@YAXP8A@@EAAXH@Z@Z", SL_LANG_UNKNOWN, "f(void (A::*)(int))");
    expect("?f@@YAXPEAPEAX$$QEAVA@@@Z", SL_LANG_UNKNOWN, "f(void**, A&&)");
    expect("?catch$0@?0??f@@YAXXZ@4HA", SL_LANG_UNKNOWN, "`f(void)'::`1'::catch$0");
    expect("?x@?1??f@A@@SAHXZ@4HA", SL_LANG_UNKNOWN, "`A::f(void)'::`2'::x");
    expect("?x@?1???BA@@QEAAHXZ@4HA", SL_LANG_UNKNOWN, "`A::operator int(void)'::`2'::x");
    expect("??__Ex@@YAXXZ", SL_LANG_UNKNOWN, "`dynamic initializer for 'x''(void)");
    expect("??__E?x@A@@2HA@@YAXXZ", SL_LANG_UNKNOWN, "`dynamic initializer for 'A::x''(void)");
    expect("??$f@$00V?$S@V?$S@H@@@@@A@@QEGBAXPEAY03$$CBDZZ", SL_LANG_UNKNOWN,
           "A::f<1, S<S<int> > >(char const (*)[4], ...) const &");
    expect("??_FA@@QAEXXZ", SL_LANG_UNKNOWN, "A::`default constructor closure'(void)");
    expect("??_7A@@6BB@@@", SL_LANG_UNKNOWN, "const A::`vftable'{for `B'}");
    expect("?f@A@@W7EAAXXZ", SL_LANG_UNKNOWN, "[thunk]: A::f`adjustor{8}'(void)");
    expect("?f@A@@$4PPPPPPPM@A@EAAXXZ", SL_LANG_UNKNOWN, "[thunk]: A::f`vtordisp{-4, 0}'(void)");
    expect("?f@B@@QAAXP$AAVA@@_J@Z", SL_LANG_UNKNOWN, "B::f(A&*, int64_t)");
    expect("?f@@YAXQEBHPEQA@@H@Z", SL_LANG_UNKNOWN, "f(int const* const, int A::*)");
    expect("?f@@YAXAEBU4A1@@@Z", SL_LANG_UNKNOWN, NULL);
    expect("?f@@YAXAEBUA1@@@Z", SL_LANG_UNKNOWN, "f(A1const&)");
    expect("??@8ba8d245c9eca390356129098dbe9f73@", SL_LANG_UNKNOWN, "??@8ba8d245c9eca390356129098dbe9f73@");
    expect("?", SL_LANG_UNKNOWN, NULL);
}

/* Parts that name themselves again and again would say gigabytes. */
TEST(self_referring_names_are_limited)
{
    struct sl_buf name = {0}, out = {0};
    sl_buf_cstr(&name, "_Z1fI1AS_");
    for (unsigned i = 0; i < 200; i++) /* each pair holds the one before twice */
        sl_buf_printf(&name, "1PI%s%s", "S_S_", "E");
    sl_buf_cstr(&name, "EvT_");
    sl_demangle(sl_buf_view(&name), SL_LANG_CPP, &out);
    assert_in_range(out.size, 0, 4096);
    sl_buf_free(&name);
    sl_buf_free(&out);
    /* Each function type has the one before as result and as parameter. */
    sl_buf_cstr(&name, "?f@@YAX");
    for (unsigned i = 0; i < 9; i++)
        sl_buf_printf(&name, i ? "P6A%c%u%u%u@Z" : "P6AXXZ", '?', i - 1, i - 1, i - 1);
    sl_buf_cstr(&name, "@Z");
    sl_demangle(sl_buf_view(&name), SL_LANG_CPP, &out);
    assert_in_range(out.size, 0, 4096);
    sl_buf_free(&name);
    sl_buf_free(&out);
}

TEST(names_of_other_languages_are_handled)
{
    expect("+[Foo bar:blub:]", SL_LANG_UNKNOWN, "+[Foo bar:blub:]");
    expect("-[Foo bar]", SL_LANG_OBJCPP, "-[Foo bar]");
    expect("_Z3foov", SL_LANG_OBJCPP, "foo()");
    expect("main", SL_LANG_UNKNOWN, NULL);
    expect("main", SL_LANG_GO, NULL);
    expect("_ZN3foo17h05af221e174051e9E", SL_LANG_CPP, "foo::h05af221e174051e9");
    expect("_Z3foov", SL_LANG_RUST, NULL);
    expect("_Z3foov", SL_LANG_SWIFT, NULL);
    expect("$s4main1fyyF", SL_LANG_CPP, NULL);
    expect("", SL_LANG_UNKNOWN, NULL);
}

TEST(language_is_detected_from_the_name)
{
    static const struct {
        const char *name;
        enum sl_language language;
    } names[] = {
        {"_Z1hic", SL_LANG_CPP},
        {"____Z1hic", SL_LANG_CPP},
        {"_____Z1hic", SL_LANG_UNKNOWN},
        {"?h@@YAXH@Z", SL_LANG_CPP},
        {"@?h@@YAXH@Z", SL_LANG_CPP},
        {"_ZN7content11ContentMainERKNS_17ContentMainParamsE", SL_LANG_CPP},
        {"__ZN3std2io4Read11read_to_end17hb85a0f6802e14499E", SL_LANG_RUST},
        {"_RNvNtCs1234_7mycrate3foo3bar", SL_LANG_RUST},
        {"_RTLEnterCriticalSection", SL_LANG_UNKNOWN},
        {"_T08mangling3barSiyKF", SL_LANG_SWIFT},
        {"$S8mangling6curry1yyF", SL_LANG_SWIFT},
        {"_$S8mangling6curry1yyF", SL_LANG_SWIFT},
        {"$s8mangling6curry1yyF", SL_LANG_SWIFT},
        {"_$s8mangling6curry1yyF", SL_LANG_SWIFT},
        {"$e8mangling6curry1yyF", SL_LANG_SWIFT},
        {"@__swiftmacro_1a", SL_LANG_SWIFT},
        {"+[Foo bar:blub:]", SL_LANG_OBJC},
        {"-[Foo bar:blub:]", SL_LANG_OBJC},
        {"-[Foo bar", SL_LANG_UNKNOWN},
        {"xxxxxxxxxxx", SL_LANG_UNKNOWN},
        {"_", SL_LANG_UNKNOWN},
        {"", SL_LANG_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(sl_demangle_detect(sl_str(names[i].name)), names[i].language);
}

/* Names made to nest deeply or to expand without bound end quickly, without a result. */
TEST(hostile_names_end_quickly)
{
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
