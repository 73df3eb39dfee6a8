/* Rust names of both schemes. */
#include "pairs.h"

static void expect(const struct pair *pairs, size_t count)
{
    expect_pairs(pairs, count, SL_LANG_UNKNOWN);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(sl_demangle_detect(sl_str(pairs[i].mangled)), SL_LANG_RUST);
}

/* Nested names with escapes; the hash is not shown. */
TEST(legacy_names_are_demangled)
{
    static const struct pair pairs[] = {
        {"__ZN3std2io4Read11read_to_end17hb85a0f6802e14499E", "std::io::Read::read_to_end"},
        {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
         "<Test + 'static as foo::Bar<Test>>::bar"},
        {"_ZN50_$LT$$RF$mut$u20$W$u20$as$u20$core..fmt..Write$GT$10write_char17h40d2a72f9527ade5E.llvm."
         "5999636307758439825",
         "<&mut W as core::fmt::Write>::write_char"},
        {"_ZN3foo17h05af221e174051e9E", "foo"},
        {"_ZN3foo17h05af221e174051e9E.cold", "foo.cold"},
        {"_ZN3foo5hello17h05af221e174051e9E", "foo::hello"},
        {"_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
         "std::rt::lang_start::{{closure}}"},
        {"__ZN3foo17h05af221e174051e9E", "foo"},
        {"_ZN5$xx$a17h05af221e174051e9E", "$xx$a"},
        {"_ZN8$u7f$aaa17h05af221e174051e9E", "$u7f$aaa"},
        {"_ZN3.a.17h05af221e174051e9E", ".a."},
    };
    expect(pairs, sizeof pairs / sizeof *pairs);
}

/* Paths, types, constants, references (RFC 2603 and the additions for constants). */
TEST(v0_names_are_demangled)
{
    static const struct pair pairs[] = {
        {"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
        {"_RNvC6_123foo3bar", "123foo::bar"},
        {"_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y", "utf8_idents::საჭმელად_გემრიელი_სადილი"},
        {"_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_", "cc::spawn::{closure#0}::{closure#0}"},
        {"_RNCINkXs25_NgCsbmNqQUJIY6D_4core5sliceINyB9_4IterhENuNgNoBb_4iter8iterator8Iterator9rpositionNCNgNpB9_"
         "6memchr7memrchrs_0E0Bb_",
         "<core::slice::Iter<u8> as "
         "core::iter::iterator::Iterator>::rposition::<core::slice::memchr::memrchr::{closure#1}>::{closure#0}"},
        {"_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_ECs1iopQbuBiw2_3std",
         "alloc::alloc::box_free::<dyn alloc::boxed::FnBox<(), Output = ()>>"},
        {"_RINtC8arrayvec8ArrayVechKj7b_E", "arrayvec::ArrayVec::<u8, 123>"},
        {"_RMCs4fqI2P2rA04_13const_genericINtB0_8UnsignedKhb_E", "<const_generic::Unsigned<11>>"},
        {"_RMCs4fqI2P2rA04_13const_genericINtB0_6SignedKs98_E", "<const_generic::Signed<152>>"},
        {"_RMCs4fqI2P2rA04_13const_genericINtB0_6SignedKanb_E", "<const_generic::Signed<-11>>"},
        {"_RMCs4fqI2P2rA04_13const_genericINtB0_4BoolKb0_E", "<const_generic::Bool<false>>"},
        {"_RMCs4fqI2P2rA04_13const_genericINtB0_4BoolKb1_E", "<const_generic::Bool<true>>"},
        {"_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKc76_E", "<const_generic::Char<'v'>>"},
        {"_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKca_E", "<const_generic::Char<'\\n'>>"},
        {"_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKc2202_E", "<const_generic::Char<'∂'>>"},
        {"_RNvNvMCs4fqI2P2rA04_13const_genericINtB4_3FooKpE3foo3FOO", "<const_generic::Foo<_>>::foo::FOO"},
        {"_RIC0KRe616263_E", "::<\"abc\">"},
        {"_RIC0KRe27_E", "::<\"'\">"},
        {"_RIC0KRe090a_E", "::<\"\\t\\n\">"},
        {"_RIC0Ke3132_E", "::<{*\"12\"}>"},
        {"_RINvCs7qp2U7fqm6G_7mycrate4exprNvB2_1fE", "mycrate::expr::<mycrate::f>"},
        {"_RIC0KVNvNtC4core6option4SomeTj1_EE", "::<{core::option::Some(1)}>"},
        {"_RIC0KVNtC3foo3BarS1xRe616263_1yb1_EE", "::<{foo::Bar { x: \"abc\", y: true }}>"},
        {"_RIC0KTj1_b0_EE", "::<{(1, false)}>"},
        {"_RIC0KAc61_c62_EE", "::<{['a', 'b']}>"},
        {"_RIC0FUK3abchEuE", "::<unsafe extern \"abc\" fn(u8)>"},
        {"_RIC0FG_RL0_hEuE", "::<for<'a> fn(&'a u8)>"},
        {"_RIC0DG0_INtC1a1bL1_L0_EEL_E", "::<dyn for<'a, 'b> a::b<'a, 'b>>"},
        {"_RIC0DNtC1a1bp3fooyEL_E", "::<dyn a::b<foo = u64>>"},
        {"_RIC0RL_hE", "::<&u8>"},
        {"_RIC0QhE", "::<&mut u8>"},
        {"_RIC0PhE", "::<*const u8>"},
        {"_RIC0OhE", "::<*mut u8>"},
        {"_RIC0ShE", "::<[u8]>"},
        {"_RIC0TEE", "::<()>"},
        {"_RIC0ThEE", "::<(u8,)>"},
        {"_RIC0ThjEE", "::<(u8, usize)>"},
        {"_RNvYNtC1a1bNtC1c1d1e", "<a::b as c::d>::e"},
        {"_RNvXs_C1aNtB4_1bNtB4_1c1d", "<a::b as a::c>::d"},
        {"_RNSC1as0_6vtable", "a::{shim:vtable#2}"},
        {"_RNvC1a1bB2_", "a::b"},
        {"_RNvC1a1b.llvm.123", "a::b"},
        {"_RNvC1a1b.cold", "a::b.cold"},
        {"_RNvC1a1b.cold.1", "a::b.cold.1"},
        {"__RNvC1a1b", "a::b"},
        {"_RNvC1a0", "a"},
        {"_RC3foo.llvm.9D1C9369@@16", "foo"},
    };
    expect(pairs, sizeof pairs / sizeof *pairs);
}

/* Names of the standard library and the compiler. */
TEST(names_of_compiled_crates_are_demangled)
{
    static const struct pair pairs[] = {
        {"_RNvCs2kG0j3MTwLO_8anstream6stderr", "anstream::stderr"},
        {"_RNCNvNtCsi4IsKQVxMg0_3std5alloc8rust_oom0B5_", "std::alloc::rust_oom::{closure#0}"},
        {"_RNvNtCs3LGw5nGcjh2_19rustc_mir_transform4shim8new_body", "rustc_mir_transform::shim::new_body"},
        {"_RNSINvNtCsi4IsKQVxMg0_3std9panicking11begin_panicReE5reifyB6_",
         "std::panicking::begin_panic::<&str>::{shim:reify#0}"},
        {"_RNvNtCs1NFDuedFL3Y_15rustc_mir_build14check_unsafety14check_unsafety",
         "rustc_mir_build::check_unsafety::check_unsafety"},
        {"_RNvXs0_NtCseQVuubCcFDg_12simd_adler324hashAhj0_NtB7_11Adler32Hash4hash",
         "<[u8; 0] as simd_adler32::Adler32Hash>::hash"},
        {"_RINvNtCs8NwYtU1Mohg_4core9panicking13assert_failedPuBM_ECsdVlYlcEixFp_9dyn_clone",
         "core::panicking::assert_failed::<*const (), *const ()>"},
        {"_RNvMse_Cs6BHtpee92oz_8smallvecINtB5_8SmallVecAoj2_E6resizeCs1stPtnWQKnT_10rustc_lint",
         "<smallvec::SmallVec<[u128; 2]>>::resize"},
        {"_RNvXs1g_NtCs8NwYtU1Mohg_4core3fmtRAbj100_NtB6_5Debug3fmtCsc02ZBFZVF0o_14regex_automata",
         "<&[bool; 256] as core::fmt::Debug>::fmt"},
        {"_RNCNvNvXsa_NtCs8NwYtU1Mohg_4core4timeNtB9_8DurationNtNtBb_3fmt5Debug3fmt11fmt_decimals_0Bb_",
         "<core::time::Duration as core::fmt::Debug>::fmt::fmt_decimal::{closure#1}"},
        {"_RNCINvNtCs5j6XFghYC1j_13rustc_resolve7rustdoc17collect_link_dataQNCNvB4_11parse_links0E0B6_",
         "rustc_resolve::rustdoc::collect_link_data::<&mut "
         "rustc_resolve::rustdoc::parse_links::{closure#0}>::{closure#0}"},
        {"_RNvXNtCs7GcKhkb6nlg_9rustc_abi10extern_abiNtB2_9ExternAbiNtNtCsgEmfK2I1SDS_4core3cmp3Ord3cmp",
         "<rustc_abi::extern_abi::ExternAbi as core::cmp::Ord>::cmp"},
        {"_RNvNvMs1_NtNtCs3MG2ofusW15_21rustc_data_structures4sync4lockINtB7_4LockpE11lock_assume9lock_held",
         "<rustc_data_structures::sync::lock::Lock<_>>::lock_assume::lock_held"},
        {"_RNvXs1j_NtCs8NwYtU1Mohg_4core3fmtQDNtNtB8_5panic12PanicPayloadEL_NtB6_7Display3fmtCsi4IsKQVxMg0_3std",
         "<&mut dyn core::panic::PanicPayload as core::fmt::Display>::fmt"},
        {"_RNvXs1h_NtCs8NwYtU1Mohg_4core3fmtQNtNtCs6IqgnrtlzSn_10rustc_span7hygiene11HygieneDataNtB6_5Debug3fmtBA_",
         "<&mut rustc_span::hygiene::HygieneData as core::fmt::Debug>::fmt"},
        {"_RNvXs_NtCs3LGw5nGcjh2_19rustc_mir_transform4shimNtB4_18DropShimElaboratorNtNtCsgEmfK2I1SDS_"
         "4core3fmt5Debug3fmt",
         "<rustc_mir_transform::shim::DropShimElaborator as core::fmt::Debug>::fmt"},
        {"_RINvNtNtCsi4IsKQVxMg0_3std3sys9backtrace26___rust_end_short_backtraceNCINvNtB6_9panicking11begin_"
         "panicReE0zEB6_",
         "std::sys::backtrace::__rust_end_short_backtrace::<std::panicking::begin_panic<&str>::{closure#0}, !>"},
        {"_RNCNvMs2_NtCs1JQOruJCR77_18rustc_hir_analysis15hir_ty_loweringDNtB7_12HirTyLowererEL_20lower_impl_trait_"
         "ref0B9_",
         "<dyn rustc_hir_analysis::hir_ty_lowering::HirTyLowerer>::lower_impl_trait_ref::{closure#0}"},
        {"_RNvXNvMs_CsfG5peYgram9_10scoped_tlsINtB7_9ScopedKeypE3setNtB2_5ResetNtNtNtCs8NwYtU1Mohg_"
         "4core3ops4drop4Drop4drop",
         "<<scoped_tls::ScopedKey<_>>::set::Reset as core::ops::drop::Drop>::drop"},
        {"_RNvXsd_NtCs7GcKhkb6nlg_9rustc_abi10extern_abiNtB5_9ExternAbiNtNtNtCsgEmfK2I1SDS_"
         "4core3str6traits7FromStr8from_str",
         "<rustc_abi::extern_abi::ExternAbi as core::str::traits::FromStr>::from_str"},
        {"_RNvNCNvXsb_NtCsaNLjxPusdsh_13rustc_type_ir4foldINtB9_12RegionFolderppEINtB9_10TypeFolderpE11fold_region010__"
         "_CALLSITE",
         "<rustc_type_ir::fold::RegionFolder<_, _> as "
         "rustc_type_ir::fold::TypeFolder<_>>::fold_region::{closure#0}::__CALLSITE"},
        {"_RNvYNCNvXsq_NtCsIfCcvQnfy6_12tracing_core5fieldDNtBa_5ValueEL_NtNtCs8NwYtU1Mohg_4core3fmt5Debug3fmt0NtBa_"
         "5Visit10record_strBc_",
         "<<dyn tracing_core::field::Value as core::fmt::Debug>::fmt::{closure#0} as "
         "tracing_core::field::Visit>::record_str"},
        {"_RNvNvXs5_NtCsaNLjxPusdsh_13rustc_type_ir17region_constraintINtB7_11MaxUniversepEINtNtB9_"
         "5visit11TypeVisitorpE8visit_ty10___CALLSITE",
         "<rustc_type_ir::region_constraint::MaxUniverse<_> as "
         "rustc_type_ir::visit::TypeVisitor<_>>::visit_ty::__CALLSITE"},
        {"_RINvNtNtCsdadwybgsbvk_12rustc_middle4thir5visit9walk_exprNtNtCshpzWpLcxOCw_15rustc_mir_build14check_"
         "unsafety29LayoutConstrainedPlaceVisitorEBX_",
         "rustc_middle::thir::visit::walk_expr::<rustc_mir_build::check_unsafety::LayoutConstrainedPlaceVisitor>"},
        {"_RNSNvYNCNCNvNtNtCslKGqiwnqz1t_17rustc_codegen_ssa4back4link14link_staticlib0s1_0INtNtNtCsgEmfK2I1SDS_"
         "4core3ops8function6FnOnceTReEE9call_once6vtableBe_",
         "<rustc_codegen_ssa::back::link::link_staticlib::{closure#0}::{closure#3} as "
         "core::ops::function::FnOnce<(&str,)>>::call_once::{shim:vtable#0}"},
        {"_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeINtNtCslNYArtu3iFV_5alloc5boxed3BoxDG_INtNtNtB4_"
         "3ops8function5FnMutTRL0_eEEp6OutputbEL_EECslKGqiwnqz1t_17rustc_codegen_ssa",
         "core::ptr::drop_in_place::<alloc::boxed::Box<dyn for<'a> core::ops::function::FnMut<(&'a str,), Output = "
         "bool>>>"},
    };
    expect(pairs, sizeof pairs / sizeof *pairs);
}

TEST(unsupported_names_are_left_alone)
{
    static const char *const names[] = {
        "_RIC0KRAe334_AAE",
        "_RIC0KVNvNtNtC4core6option6OptionNvB4_4NoneUE",
        "_RIC0FKC_jEuE",
        "_RIC0AhKj3_E",
        "_RNvC0s",
        "_RNvC1a",
        "_RB_",
        "_RIC0Kc110000_E",
        "_RIC0Kcd800_E",
        "_RIC0KRee_E",
        "_RIC0KRef0_E",
        "_RIC0KReeda080_E",   /* a surrogate, */
        "_RIC0KRec0af_E",     /* an overlong form, */
        "_RIC0KRef7bfbfbf_E", /* beyond the last code point */
        "_RIC0L1_E",
        "_R",
        "_RegisterClass",
        "_RIST_",
        "_ZN96_$LT$core..marker..PhantomData$LT$T$GT$$u20$as$u20$rust_demangle..Foo$GT$3foo17h0123456789abcdefE",
        "_ZN4core3ptr28drop_in_place$LT$..$u5b$T$u5d$$GT$17h0123456789abcdefE",
        "_ZN3foo17h05af221e174051e9",
        "_ZN3foo17h05af221e174051E",
        "_ZN17h05af221e174051e9E",
        "_ZN3foo20h05af221e174051e9E",
        "_ZN99foo17h05af221e174051e9E",
        "_ZN3foo17h05AF221e174051e9E",
        "_ZN4testE",
        "_RustIsNotTheOnlyLangWhoseSymbolsCanStartWith_R",
        "main",
        "_R",
        "",
    };
    struct sl_buf out = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (sl_demangle(sl_str(names[i]), SL_LANG_RUST, &out))
            print_error("understood: %s\n", names[i]);
        assert_int_equal(out.size, 0);
        assert_int_not_equal(sl_demangle_detect(sl_str(names[i])), SL_LANG_RUST);
    }
    sl_buf_free(&out);
}

/* Nesting, references that double the text with each step, and counts without bound end quickly. */
TEST(nested_and_doubling_names_end_quickly)
{
    static const char *const nested[] = {"Nv", "R", "IC1a", "T", "FG_", "Y", "X", "M", "A", "D", "IC0K", "B"};
    struct sl_buf name = {0}, out = {0};
    for (size_t i = 0; i < sizeof nested / sizeof *nested; i++) {
        name.size = 0;
        sl_buf_cstr(&name, "_R");
        for (int n = 0; n < 10000; n++)
            sl_buf_cstr(&name, nested[i]);
        assert_false(sl_demangle(sl_buf_view(&name), SL_LANG_RUST, &out));
    }
    name.size = 0;
    sl_buf_cstr(&name, "_RIC0TuuE"); /* (), () at 3; each tuple holds the one before twice */
    for (int n = 0; n < 8; n++)
        sl_buf_printf(&name, "TB%c_B%c_E", "23456789"[n], "23456789"[n]);
    sl_buf_cstr(&name, "E");
    sl_demangle(sl_buf_view(&name), SL_LANG_RUST, &out);
    out.size = 0;
    assert_false(sl_demangle(SL_STR("_RYFG_FGyG0_RL1_hEuEuNtC1a1b"), SL_LANG_RUST, &out));
    assert_false(sl_demangle(SL_STR("_RIC0FGzzzzzzzzzz_EuE"), SL_LANG_RUST, &out));
    assert_false(sl_demangle(SL_STR("_RNvC1azzzzzzzzzzzzzz_1b"), SL_LANG_RUST, &out));
    assert_false(sl_demangle(SL_STR("_RC99999999999999999999a"), SL_LANG_RUST, &out));
    assert_int_equal(out.size, 0);
    sl_buf_free(&name);
    sl_buf_free(&out);
}

TEST(damaged_names_never_crash)
{
    static const char *const names[] = {
        "_RNCINkXs25_NgCsbmNqQUJIY6D_4core5sliceINyB9_4IterhENuNgNoBb_4iter8iterator8Iterator9rpositionNCNgNpB9_"
        "6memchr7"
        "memrchrs_0E0Bb_",
        "_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
        "_RIC0KVNtC3foo3BarS1xRe616263_1yb1_EE",
        "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
    };
    static const char letters[] = "BCEFGIKLNRSTXY_aeps019$.";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t at = 0; at < strlen(names[i]); at++)
            for (size_t c = 0; c < sizeof letters; c++) { /* the last one cuts the name short */
                char *copy = strndup(names[i], letters[c] ? strlen(names[i]) : at);
                struct sl_buf out = {0};
                copy[at] = letters[c];
                bool good = sl_demangle(sl_str(copy), SL_LANG_RUST, &out);
                assert_true(good || out.size == 0);
                sl_buf_free(&out);
                free(copy);
            }
}
