/* Swift names in the style of crash reports. The pairs are those of the Swift documentation and the public tests of its
 * mangling, the readable side simplified: no modules, no private discriminators, no results. */
#include "pairs.h"

#include <sys/resource.h>

static void expect(const struct pair *pairs, size_t count)
{
    expect_pairs(pairs, count, SL_LANG_SWIFT);
}

/* Functions, their labels and types. */
TEST(functions_and_labels_are_demangled)
{
    static const struct pair pairs[] = {
        {"$s8mangling12GenericUnionO3FooACyxGSicAEmlF", "GenericUnion.Foo<A>(GenericUnion<A>.Type)"},
        {"$s8mangling12GenericUnionO3FooyACyxGSicAEmlF", "GenericUnion.Foo<A>(GenericUnion<A>.Type)"},
        {"$s8mangling14varargsVsArray3arr1nySid_SStF", "varargsVsArray(arr: Int..., n: String)"},
        {"$s8mangling14varargsVsArray3arr1nySaySiGd_SStF", "varargsVsArray(arr: [Int]..., n: String)"},
        {"$s8mangling0022egbpdajGbuEbxfgehfvwxnyyF", "ليهمابتكلموشعربي؟()"},
        {"$s8mangling0030Proprostnemluvesky_uybCEdmaEBayyF", "Pročprostěnemluvíčesky()"},
        {"$s8mangling9r137577441xySaySiG_tF", "r13757744(x: [Int])"},
        {"$s8mangling2psopyyxlF", "+- prefix<A>(A)"},
        {"$s8mangling2psoPyyx1a_x1bt_tlF", "+- postfix<A>((a: A, b: A))"},
        {"$S8mangling2psoiyyx_xtlF", "+- infix<A>(A, A)"},
        {"$s8mangling007p_qcaDcoiyS2i_SitF", "«+» infix(Int, Int)"},
        {"$s8mangling12any_protocolyyypF", "any_protocol(Any)"},
        {"$s8mangling18one_protocol_twiceyyAA3Foo_p_AaC_ptF", "one_protocol_twice(Foo, Foo)"},
        {"$s8mangling12two_protocolyyAA3Bar_AA3FoopF", "two_protocol(Bar & Foo)"},
        {"$s8mangling3ZimC4zangyyx_qd__tlF", "Zim.zang<A>(A, A1)"},
        {"$s8mangling28uses_objc_class_and_protocol1o1p2p2ySo8NSObjectC_So8NSAnsing_pSo14NSBetterAnsing_ptF",
         "uses_objc_class_and_protocol(o: NSObject, p: NSAnsing, p2: NSBetterAnsing)"},
        {"$s8mangling14uses_optionals1xs7UnicodeO6ScalarVSgSiSg_tF", "uses_optionals(x: Int?)"},
        {"$s8mangling19autoClosureOverload1fySiyXK_tF", "autoClosureOverload(f: @autoclosure ())"},
        {"$s8mangling19autoClosureOverload1fySiyXE_tF", "autoClosureOverload(f: ())"},
        {"$s8mangling4fooByyxAA12HasAssocTypeRzAA0D4Reqt0D0RpzlF", "fooB<A>(A)"},
        {"$s8mangling12curry3ThrowsyyKcyKF", "curry3Throws()"},
        {"$s4test6testitySiyt_tF", "testit(())"},
        {"$s4main1SV1fyyFZ", "static S.f()"},
        {"$s4main1fyyxzlF", "f<A>(inout A)"},
        {"$s4main1fyySi_SitSgF", "f((Int, Int)?)"},
        {"$s4main1fyyyycSgF", "f((())?)"},
        {"$s4main1fyySo8NSObjectCXoF", "f(unowned NSObject)"},
        {"$s7example1fyyYaKF", "f()"},
        {"$s5async1hyyS2iYbXEF", "h(@Sendable (Int))"},
        {"$s4diff1hyyS2iYjlXEF", "h(@differentiable(_linear) (Int))"},
        {"$s4test3fooyyS2f_SfYktYaYbYjrXEF", "foo(@differentiable(reverse) @Sendable (Float, @noDerivative Float))"},
        {"$s4main1fyyyyScMYccF", "f(@MainActor ())"},
        {"$s1t10globalFuncyyAA7MyActorCYiF", "globalFunc(isolated MyActor)"},
        {"$s1A3bar1aySSYt_tF", "bar(a: _const String)"},
        {"$s12typed_throws15rethrowConcreteyyAA7MyErrorOYKF", "rethrowConcrete()"},
        {"$s3red3use2fnySiyYAXE_tF", "use(fn: @isolated(any) ())"},
        {"$s5test24testyyAA5KlassCnYuF", "test(sending __owned Klass)"},
        {"$s4testAAyAA5KlassC_ACtACnYTF", "test(__owned Klass)"},
        {"$s3red7MyActorC3runyxxyYaKYCXEYaKlFZ", "static MyActor.run<A>(nonisolated(nonsending) ())"},
        {"$s4main12testCallOnceyyyyXOnF", "testCallOnce(__owned @called(once) ())"},
        {"$s4main20receiveInstantiationyySo34__CxxTemplateInst12MagicWrapperIiEVzF",
         "receiveInstantiation(inout __CxxTemplateInst12MagicWrapperIiE)"},
        {"_$s15raw_identifiers0020foospace_liaADEDGcjayyF", "`foo space`()"},
        {"$e4main1fyyF", "f()"},
        {"_$e4main1fyyF", "f()"},
    };
    expect(pairs, sizeof pairs / sizeof *pairs);
}

/* Variables, accessors, initialisers, closures, pieces of code. */
TEST(variables_accessors_and_closures_are_demangled)
{
    static const struct pair pairs[] = {
        {"$s8mangling24InstanceAndClassPropertyV8propertySivg", "InstanceAndClassProperty.property.getter"},
        {"$s8mangling24InstanceAndClassPropertyV8propertySivsZ", "static InstanceAndClassProperty.property.setter"},
        {"$s4main1SVyS2icig", "S.subscript.getter"},
        {"$sSlsE5first7ElementQzSgvg", "Collection.first.getter"},
        {"$s4main1CCACycfC", "C.__allocating_init()"},
        {"$s4main1CCACycfc", "C.init()"},
        {"$s4main1SVACycfC", "S.init()"},
        {"$s4main1CCfD", "C.__deallocating_deinit"},
        {"$s4main1SVfD", "S.deinit"},
        {"$s4main1CCfd", "C.deinit"},
        {"$S4main4TestC1xACSi_tc6_PRIV_Llfc", "Test.init(x: Int)"},
        {"$s4main1fSiyFfA_", "default argument 0 of f()"},
        {"$s4main1xSivpfi", "variable initialization expression of x"},
        {"$s17property_wrappers10WithTuplesV9fractionsSd_S2dtvpfP",
         "property wrapper backing initializer of WithTuples.fractions"},
        {"$s4main6myFuncyyF1xL_SivpfF", "property wrapped field init accessor of x #1 in myFunc()"},
        {"$s8mangling10HasVarInitV5stateSbvpZfiSbyKXKfu_",
         "implicit closure #1 in variable initialization expression of static HasVarInit.state"},
        {"$s7ranking22propertyVersusFunctionyyAA1P_p_xtAaCRzlFyAaC_pcAaC_pcfu_",
         "implicit closure #1 (P) in propertyVersusFunction<A>(P, A)"},
        {"$s4main1fyyF1SL_V1gyyFyycfU_", "closure #1 () in g() in S #1 in f()"},
        {"$s4main1gyySiXCvp", "g"},
        {"$s2hi1SV1iSivx", "S.i.yielding_mutate"},
        {"$s2hi1SV1iSivy", "S.i.yielding_borrow"},
        {"$s4main1x_WZ", "one-time initialization function for x"},
        {"$s4main1x_1y_Wz", "one-time initialization token for (x, y)"},
        {"_T0s24_UnicodeScalarExceptions33_0E4228093681F6920F0AB2E48B4F1C69LLVACycfC",
         "_UnicodeScalarExceptions.init()"},
        {"$sSC9SomeErrorLeVD", "related decl 'e' for SomeError"},
        {"$s14swift_ide_test14myColorLiteral3red5green4blue5alphaAA0E0VSf_S3ftcfm",
         "myColorLiteral(red: Float, green: Float, blue: Float, alpha: Float)"},
        {"$s9MacroUser13testStringify1a1bySi_SitF9stringifyfMf1_",
         "freestanding macro expansion #3 of stringify in testStringify(a: Int, b: Int)"},
        {"$s9MacroUser016testFreestandingA9ExpansionyyF4Foo3L_V23bitwidthNumberedStructsfMf_6methodfMu0_",
         "unique name #2 of method in freestanding macro expansion #1 of bitwidthNumberedStructs in Foo3 #1 in "
         "testFreestandingMacroExpansion()"},
        {"@__swiftmacro_18macro_expand_peers1SV1f20addCompletionHandlerfMp_",
         "peer macro @addCompletionHandler expansion #1 of f in S"},
        {"@__swiftmacro_9MacroUser16MemberNotCoveredV33_4361AD9339943F52AE6186DD51E04E91Ll0dE0fMf0_",
         "freestanding macro expansion #2 of NotCovered in MemberNotCovered"},
        {"$s9MacroUser0023macro_expandswift_elFCffMX436_4_23bitwidthNumberedStructsfMf_",
         "freestanding macro expansion #1 of bitwidthNumberedStructs in file macro_expand.swift line 437 column 5"},
    };
    expect(pairs, sizeof pairs / sizeof *pairs);
}

/* Types by themselves, generics, existential and opaque types. */
TEST(types_are_demangled)
{
    static const struct pair pairs[] = {
        {"$sBf32_", "Builtin.FPIEEE32"},
        {"$sSqySiG", "Int?"},
        {"$sSDySSSiG", "[String : Int]"},
        {"$sScGySiG", "TaskGroup<Int>"},
        {"$sypXmTD", "@thick Any.Type"},
        {"$s4main1fyyyXlSgF", "f(Swift.AnyObject?)"},
        {"$s4main1fyyAA1P_AA1QpSgF", "f((P & Q)?)"},
        {"$s4main1fyyAA1P_pmF", "f(P.Protocol)"},
        {"$sSiXMoD", "@objc_metatype Int.Type"},
        {"$S4blah8PatatinoaySiGD", "Patatino<Int>"},
        {"$S7TestMod5OuterV3Fooayx_SiGD", "Outer<A>.Foo<Int>"},
        {"$S3nix8MystructV1xACyxGx_tcfc7MyaliasL_ayx__GD", "Myalias #1 in Mystruct<A>.init(x: A)"},
        {"$S3nix8MystructVyS2icig7MyaliasL_ayx__GD", "Myalias #1 in Mystruct<A>.subscript.getter"},
        {"$S3nix8MystructV6testit1x1u1vyx_qd__qd_0_tr0_lF7MyaliasL_ayx_qd__qd_0__GD",
         "Myalias #1 in Mystruct<A>.testit<A1, B1>(x: A, u: A1, v: B1)"},
        {"$S2t21QP22ProtocolTypeAliasThingayAA4BlahV5SomeQa_GSgD", "Blah.SomeQ as Q.ProtocolTypeAliasThing?"},
        {"$s4Test5ProtoP8IteratorV10collectionAEy_qd__Gqd___tcfc", "Proto.Iterator.init(collection: A1)"},
        {"$s4test3fooV4blahyAA1SV1fQryFQOy_Qo_AHF", "foo.blah(<<opaque return type of S.f()>>.0)"},
        {"$s20mangling_retroactive5test0yyAA1ZVy12RetroactiveB1XVSiAE1YVAG0D1A1PAAyHCg_AiJ1QAAyHCg1_GF",
         "test0(Z<X, Int, Y>)"},
        {"$s3red4testyAA7OurTypeOy4them05TheirD0Vy5AssocQzGAjE0F8ProtocolAAxAA0c7DerivedH0HD1_AA0c4BaseH0HI1_AieKHA2__"
         "HCg_GxmAaLRzlF",
         "test<A>(A.Type)"},
        {"$sSa4mainSiRszlE1fyyF", "Array<A>.f()"},
        {"$s5assoc6HolderVAARi_z7ElementRj_zrlE02ncC0yyqd__AA1PRd__ADRj_d__lF", "Holder<>.ncElement<A>(A1)"},
        {"$s1M2f5yyxxQpRvzRlzAlF", "f5<each A>(repeat A)"},
        {"$s4test3fooyyAA1P_px1TRts_XPlF", "foo<A>(any P<Self.T == A>)"},
        {"$s1m1kyyypRlsA_XPXpF", "k(any Any<Self: AnyReference>.Type)"},
        {"$s4main4SlabVy$1_SiG", "Slab<2, Int>"},
        {"$s$n3_SSBV", "Builtin.FixedArray<-4, String>"},
        {"$sSvSgA3ASbIetCyyd_SgSbIetCyyyd_SgD",
         "(@escaping @convention(thin) @convention(c) (@unowned UnsafeMutableRawPointer?, @unowned "
         "UnsafeMutableRawPointer?, @unowned (@escaping @convention(thin) @convention(c) (@unowned "
         "UnsafeMutableRawPointer?, @unowned UnsafeMutableRawPointer?) -> (@unowned Bool))?) -> (@unowned Bool))?"},
        {"$sS5fIertyyywddw_D", "@escaping @differentiable(reverse) @convention(thin) (@unowned Float, @unowned Float, "
                               "@unowned @noDerivative Float) -> (@unowned Float, @unowned @noDerivative Float)"},
        {"$s2hi1SVIetMIy_TC", "coroutine continuation prototype for @escaping @convention(thin) @convention(method) "
                              "@yield_once_2 (@unowned S) -> ()"},
        {"$sx1td_t", "(t: A...)"},
    };
    expect(pairs, sizeof pairs / sizeof *pairs);
}

/* Metadata, witnesses, outlined operations. */
TEST(metadata_and_witnesses_are_demangled)
{
    static const struct pair pairs[] = {
        {"$sSqMn", "nominal type descriptor for Optional"},
        {"$s4main1fQryFQOMQ", "opaque type descriptor for <<opaque return type of f()>>"},
        {"$sSiSHsWP", "protocol witness table for Int"},
        {"$s4main1SVyxGAA1PAAlWP", "protocol witness table for <A> S<A>"},
        {"$S28protocol_conformance_records15NativeValueTypeVAA8RuncibleAAMc",
         "protocol conformance descriptor for NativeValueType"},
        {"$ss6SimpleHr", "protocol descriptor runtime record for Simple"},
        {"$ss5OtherVs6SimplesHc", "protocol conformance descriptor runtime record for Other"},
        {"$s18opaque_return_type3fooQryFQOHo",
         "opaque type descriptor runtime record for <<opaque return type of foo()>>"},
        {"_T013call_protocol1CCAA1PA2aDP3fooSiyFTW", "protocol witness for P.foo() in conformance C"},
        {"_T0SqWOy.17", "outlined copy of Optional"},
        {"$sypWOb", "outlined init with take of Any"},
        {"$sSo7UIImageCSgIegg_SgWOe",
         "outlined consume of (@escaping @callee_guaranteed (@guaranteed UIImage?) -> ())?"},
        {"$s3Bar3FooVAA5DrinkVyxGs5Error_pSeRzSERzlyShy4AbcdAHO6MemberVGALSeHPAKSeAAyHC_HCg_ALSEHPAKSEAAyHC_HCg0_"
         "Iseggozo_SgWOe",
         "outlined consume of (@escaping @callee_guaranteed @substituted <A> (@guaranteed Foo) -> (@owned Drink<A>, "
         "@error @owned Error) for <Set<Abcd.Member>>)?"},
        {"$s4main1SVwal", "allocateBuffer for S"},
        {"_T04test1SVyxGAA1RA2A1ZRzAA1Y2ZZRpzl1A_AhaGPWT",
         "associated type witness table accessor for A.ZZ : Y in <A> S<A>"},
        {"$S1T19protocol_resilience17ResilientProtocolPTl", "associated type descriptor for ResilientProtocol.T"},
        {"$S18resilient_protocol21ResilientBaseProtocolTL",
         "protocol requirements base descriptor for ResilientBaseProtocol"},
        {"$S1t1PP10AssocType2_AA1QTn", "associated conformance descriptor for P.AssocType2: Q"},
        {"$s4mini3SeqPxAA06BorrowB0TN", "default associated conformance accessor for Seq.A: BorrowSeq"},
        {"$s18keypaths_inlinable13KeypathStructV8computedSSvpACTKq",
         "key path getter for KeypathStruct.computed : KeypathStruct, serialized"},
        {"$sSixlTh", "key path index hash operator for <A>(Int, A)"},
    };
    expect(pairs, sizeof pairs / sizeof *pairs);
}

/* Thunks, specialisations, pieces of coroutines; what is hidden. */
TEST(thunks_and_specialisations_are_demangled)
{
    static const struct pair pairs[] = {
        {"_$s3foo3barC3bas3zimyAaEC_tFTo", "@objc bar.bas(zim: zim)"},
        {"$sSC3fooyS2d_SdtFTO", "@nonobjc foo(Double, Double)"},
        {"$s4main1fyyFTA", "partial apply for f()"},
        {"$s4main1fyyFTA.123", "partial apply for f()"},
        {"$s4main1fyyFSi_Tg5Tf4n_n", "specialized f()"},
        {"$s4main1fyyFSiSiTf4pSSi1_n", "specialized f()"}, /* a struct in a struct */
        {"$sSUss17FixedWidthIntegerRzrlEyxqd__cSzRd__lufCSu_SiTg5", "specialized UnsignedInteger<>.init<A>(A1)"},
        {"$s4test7genFuncyyx_q_tr0_lFSi_SbTtt1g5", "specialized genFunc<A, B>(A, B)"},
        {"_$S4main5inneryys5Int32Vz_yADctF25closure_with_box_argumentxz_Bi32__lXXTf1nc_n",
         "specialized inner(inout Int32, (Int32))"},
        {"$s1t1fyyFSiAA3StrVcs7KeyPathCyADSiGcfu_SiADcfu0_33_556644b740b1b333fecb81e55a7cce98ADSiTf3npk_n",
         "specialized implicit closure #2 (Str) in implicit closure #1 (KeyPath<Str, Int>) in f()"},
        {"$sS2iIegyd_S2iIegnr_TR", "thunk for @escaping @callee_guaranteed (@unowned Int) -> (@unowned Int)"},
        {"$s7ElementSTQzqd__s5Error_pIgnrzo_ABqd__sAC_pIegnrzr_SlRzr__lTR",
         "thunk for @callee_guaranteed (@in_guaranteed A.Sequence.Element) -> (@out A1, @error @owned Error)"},
        {"$sxIeghHr_xs5Error_pIegHrzo_s8SendableRzs5NeverORs_r0_lTRTATQ0_",
         "partial apply for thunk for @escaping @callee_guaranteed @Sendable @async () -> (@out A)"},
        {"$s5Actor02MyA0C17testAsyncFunctionyyYaKFTY0_", "MyActor.testAsyncFunction()"},
        {"$s4main6testityyYaFTu", "async function pointer to testit()"},
        {"$S3abc6testityySiFTm", "testit(Int)"},
        {"_T03nix6testitSaySiGyFTv0_", "outlined variable #1 of testit()"},
        {"$sSo5GizmoC11doSomethingyypSgSaySSGSgFToTembgnn_",
         "outlined bridged method (mbgnn) of @objc Gizmo.doSomething([String]?)"},
        {"$s17distributed_thunk2DAC1fyyFTE", "DA.f()"},
        {"$s27distributed_actor_accessors7MyActorC7simple2ySSSiFTETFHF", "MyActor.simple2(Int)"},
        {"$s21back_deploy_attribute0A12DeployedFuncyyFTwb", "backDeployedFunc()"},
        {"$s7Library3fooyyFTwS", "#_hasSymbol query for foo()"},
        {"$s7Library1BC1iSivxTwdTwc", "coro function pointer to default override of B.i.yielding_mutate"},
        {"$s13test_mangling3fooyS2f_xq_t16_Differentiation14DifferentiableR_r0_lFAcDRzAcDR_r0_lTJpUSSpSrTj",
         "dispatch thunk of pullback of foo<A, B>(Float, A, B)"},
        {"$s13TangentVector16_Differentiation14DifferentiablePQzAaDQy_SdAFIegnnnr_TJSdSSSpSrSUSP",
         "autodiff subset parameters thunk for differential from @escaping @callee_guaranteed (@in_guaranteed "
         "A.Differentiable.TangentVector, @in_guaranteed B.Differentiable.TangentVector, @in_guaranteed Double) -> "
         "(@out B.Differentiable.TangentVector)"},
    };
    expect(pairs, sizeof pairs / sizeof *pairs);
}

/* Swift 4.0 wrote labels behind the types. */
TEST(swift_4_0_labels_in_types_are_demangled)
{
    static const struct pair pairs[] = {
        {"_T08mangling9r13757744ySaySiG1x_tF", "r13757744(x: [Int])"},
        {"_T08mangling14varargsVsArrayySi3arrd_SS1ntF", "varargsVsArray(arr: Int..., n: String)"},
        {"_T08mangling2psopyx1a_x1bt_tlF", "+- prefix<A>((a: A, b: A))"},
        {"_T08mangling27single_protocol_compositionyAA3Foo_p1x_tF", "single_protocol_composition(x: Foo)"},
        {"_T08mangling17uses_clang_structySC6NSRectV1r_tF", "uses_clang_struct(r: NSRect)"},
        {"_T08mangling12GenericUnionO3FooACyxGSicAEmlF", "GenericUnion.Foo<A>(GenericUnion<A>.Type)"},
        {"_T08mangling10HasVarInitV5stateSbvpZfiSbyKXKfu_",
         "implicit closure #1 in variable initialization expression of static HasVarInit.state"},
        {"_T04main1fySi_Si1atF", "f(_: Int, a: Int)"},
        {"_T04main4TestCACSi1x_tc6_PRIV_Llfc", "Test.init(x: Int)"},
        {"_T0s10DictionaryV3t17E6Index2V1loiSbAEyxq__G_AGtFZ",
         "static Dictionary.Index2.< infix([A : B].Index2, [A : B].Index2)"},
    };
    expect(pairs, sizeof pairs / sizeof *pairs);
}

/* The mangling of Swift 1 to 3. */
TEST(swift_1_to_3_names_are_demangled)
{
    static const struct pair pairs[] = {
        {"_TtBf80_", "Builtin.FPIEEE80"},
        {"_TtBv4Bi8_", "Builtin.Vec4xInt8"},
        {"_TtGVs10DictionarySSSi_", "[String : Int]"},
        {"_TtGSQSS_", "String!"},
        {"_TtbTSiSc_Su", "@convention(block) (Int, UnicodeScalar)"},
        {"_TtFSiFScSu", "(Int)"},
        {"_TtTP3foo3barS_3bas_PS1__PS1_S_3zimS0___", "(bar & bas, bas, bas & zim & bar)"},
        {"_TttSiSu_", "(Int, UInt...)"},
        {"_Ttu_z_rFxqd0__", "<A><><A2>(A)"},
        {"_Ttu0_Rxs8Runcible_S_wx5Minces8Fungiblew_S0_S1_rFxq_", "<A, B>(A)"},
        {"_TtuRxlE64_16rFxwx5Mince", "<A>(A)"},
        {"_TtXwC10attributes10SwiftClass", "weak SwiftClass"},
        {"_TtERR", "<ERROR TYPE>"},
        {"_TtPMP_", "Any.Type"},
        {"_TtaC9typealias5DWARF9DIEOffset", "DWARF.DIEOffset"},
        {"_TF3fooau3barSi", "bar.unsafeMutableAddressor"},
        {"_TF3foog3barSi", "bar.getter"},
        {"_TToFC3foo3bar3basfT3zimCS_3zim_T_", "@objc bar.bas(zim: zim)"},
        {"_TF3foooi1pFTCS_3barVS_3bas_OS_3zim", "+ infix(bar, bas)"},
        {"_TFC3foo3barCfT_S0_", "bar.__allocating_init()"},
        {"_TFC3foo3barD", "bar.__deallocating_deinit"},
        {"_TFCSo1AE", "A.__ivar_destroyer"},
        {"_TMPC3foo3bar", "generic type metadata pattern for bar"},
        {"_TMps10Comparable", "protocol descriptor for Comparable"},
        {"_TwalC3foo3bar", "allocateBuffer for bar"},
        {"_TWvdvC3foo3bar3basSi", "direct field offset for bar.bas"},
        {"_TWPC3foo3barS_8barrables", "protocol witness table for bar"},
        {"_TWlC3foo3barS0_S_8barrableS_", "lazy protocol witness table accessor for type bar and conformance bar"},
        {"_TWTC3foo3barS_8barrableS_4fredS_6thomas", "associated type witness table accessor for fred : thomas in bar"},
        {"_TIF1t1fFT1iSi1sSS_T_A0_", "default argument 1 of f(i: Int, s: String)"},
        {"_TFVCC6nested6AClass12AnotherClass7AStruct9aFunctionfT1aSi_S2_",
         "AClass.AnotherClass.AStruct.aFunction(a: Int)"},
        {"_TTRGrXFo_iV18switch_abstraction1A_ix_XFo_dS0__ix_", "thunk for @callee_owned (@unowned A) -> (@out A)"},
        {"_TTRXFo_iT__iT_zoPs5Error__XFo__dT_zoPS___",
         "thunk for @callee_owned () -> (@unowned (), @error @owned Error)"},
        {"_TTRXFo_oCSo13SKPhysicsBodydVSC7CGPointdVSC8CGVectordGSpV10ObjectiveC8ObjCBool___XFdCb_dS_dS0_dS1_dGSpS3____",
         "thunk for @callee_unowned @convention(block) (@unowned SKPhysicsBody, @unowned CGPoint, @unowned CGVector, "
         "@unowned UnsafeMutablePointer<ObjCBool>) -> ()"},
        {"_TFCF5types1gFT1bSb_T_L0_10Collection3zimfT_T_", "zim() in Collection #2 in g(b: Bool)"},
        {"_TFF17capture_promotion22test_capture_promotionFT_FT_SiU_FT_Si_promote0",
         "closure #1 () in test_capture_promotion()"},
        {"_TFIvVs8_Process10_argumentsGSaSS_iU_FT_GSaSS_",
         "closure #1 () in variable initialization expression of _Process._arguments"},
        {"_TFIZvV8mangling10HasVarInit5stateSbiu_KT_Sb",
         "implicit closure #1 in variable initialization expression of static HasVarInit.state"},
        {"_TFFV23interface_type_mangling18GenericTypeContext23closureInGenericContexturFqd__T_L_3fooFTqd__x_T_",
         "foo #1 (A1, A) in GenericTypeContext.closureInGenericContext<A>(A1)"},
        {"_TTWurGV23interface_type_mangling18GenericTypeContextx_S_18GenericWitnessTestS_FS1_"
         "23closureInGenericContextuRxS1_rfqd__T_",
         "protocol witness for GenericWitnessTest.closureInGenericContext<A>(A1) in conformance <A> "
         "GenericTypeContext<A>"},
        {"_TTSg5SiSis3Foos_Sf___TFSqcfT_GSqx_", "specialized Optional.init()"},
        {"_TTSg5Si___TTSf1cl35_TFF7specgen6callerFSiT_U_FTSiSi_T_Si___TF7specgen12take_closureFFTSiSi_T_T_",
         "specialized take_closure((Int, Int))"},
        {"_TTSf1cpi0_cpfl0_cpse0v4u123_cpg53globalinit_33_06E7F1D906492AE070936A9B58CBAE1C_token8_cpfr36_TFtest_"
         "capture_propagation2_closure___TF7specgen12take_closureFFTSiSi_T_T_",
         "specialized take_closure((Int, Int))"},
        {"_TTSf2dgs___TTSf2s_d___TFVs17_LegacyStringCoreCfVs13_StringBufferS_",
         "specialized _LegacyStringCore.init(_StringBuffer)"},
        {"_TPA__TTRXFo_oSSoSS_dSb_XFo_iSSiSS_dSb_31",
         "partial apply for thunk for @callee_owned (@in String, @in String) -> (@unowned Bool)"},
        {"_TiC4Meow5MyCls9subscriptFT1iSi_Sf", "MyCls.subscript(i: Int)"},
        {"_TF8manglingX24ihqwcrbEcvIaIdqgAFGpqjyeFT_T_", "他们为什么不说中文()"},
        {"_TF4mainP5_mainX3wxaFT_T_", "λ()"},
        {"_TFE11ext_structAV11def_structA1A4testfT_T_", "A.test()"},
        {"_TFe27mangling_generic_extensionsRxS_8RunciblerVS_3Foog1aSi", "Foo<A>.a.getter"},
        {"_TFVV15nested_generics5Lunch6DinnerCfT11firstCoursex12secondCourseGSqqd___9leftoversx14transformationFxqd___"
         "GS1_x_qd___",
         "Lunch.Dinner.init(firstCourse: A, secondCourse: A1?, leftovers: A, transformation: (A))"},
        {"_TFVFC15nested_generics7HotDogs11applyRelishFT_T_L_6RelishCfT8materialx_GS1_x_",
         "init(material: A) in Relish #1 in HotDogs.applyRelish()"},
        {"_TFC3red11BaseClassEHcfzT1aSi_S0_", "BaseClassEH.init(a: Int)"},
    };
    expect(pairs, sizeof pairs / sizeof *pairs);
}

/* Tools show results and effects as well. */
TEST(results_and_effects_are_shown_on_request)
{
    static const struct pair pairs[] = {
        {"$s4main1fSiyKF", "f() throws -> Int"},
        {"$s7example1fyyYaKF", "f() async throws -> ()"},
        {"$s12typed_throws15rethrowConcreteyyAA7MyErrorOYKF", "rethrowConcrete() throws(MyError) -> ()"},
        {"$s4testA2A5KlassCyYTF", "test() -> sending Klass"},
        {"$s4main1fyyyyYaYbKcF", "f(@Sendable () async throws -> ()) -> ()"},
        {"$s8mangling12curry2ThrowsyycyKF", "curry2Throws() throws -> () -> ()"},
        {"_TFC3red11BaseClassEHcfzT1aSi_S0_", "BaseClassEH.init(a: Int) throws -> BaseClassEH"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct sl_buf out = {0};
        assert_true(sl_demangle_full(sl_str(pairs[i].mangled), &out));
        sl_buf_u8(&out, 0);
        assert_string_equal((char *)out.data, pairs[i].readable);
        sl_buf_free(&out);
    }
}

/* What is not understood completely is left as it is. */
TEST(unsupported_names_are_left_alone)
{
    static const char *const names[] = {
        "$sTB",
        "$s",
        "$S",
        "_T",
        "_T0",
        "$s4main",
        "$s4main1f",
        "$s4main1fyy",
        "$s4main1fyyF_",
        "$s4main1fyyFSi",
        "$s4main1fyyFZZZc",
        "$s9999f",
        "$s01aF",
        "$s00_F",
        "$s0099zz",
        "$sA_",
        "$sAzZ",
        "$sS9999999999i",
        "$sSg",
        "$sG",
        "$syQo",
        "$s_TJO",
        "$s__TJO",
        "$sTJSdSSSpSrSUSP",
        "$sD",
        "$sxxxIxzCXxxxesy",
        "$SSD1BySSSBsg_G",
        "$S3BBBBf0602365061_",
        "$sSD5IndexVy__GD",
        "$s4mainPTf9_",
        "_T0D",
        "_T0Rml",
        "_T0Tk",
        "_T0A8",
        "_T0XZ",
        "_T0iW",
        "_T0LiteralAByxGxd_tcfC",
        "_T0s18ReversedCollectionVyxGs04LazyB8ProtocolfC",
        "_T0s3SetVyxGs10CollectiotySivm",
        "_TtZZ",
        "_TtB",
        "_TtBSi",
        "_TtC",
        "_TtT",
        "_TtTSi",
        "_TtQd_",
        "_TtU__FQo_Si",
        "_TTSf",
        "_TTSgS",
        "_TTSg5Si",
        "_TTSgSi__xyz",
        "_TtW0_j",
        "_TtW_4m3a3v",
        "_TVGVGSS_2v0",
        "_TFE1a",
        "_TWvx",
        "_Tw",
        "_TFIVs8_Processi10_argumentsGSaSS_U_FT_GSaSS_",
        "_TFC3foo3barxyz",
        "_SocketJoinOrLeaveMulticast",
        "_TSomething",
        "$something",
        "main",
    };
    struct sl_buf out = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (sl_demangle(sl_str(names[i]), SL_LANG_SWIFT, &out))
            print_error("understood: %s\n", names[i]);
        assert_int_equal(out.size, 0);
    }
    /* References to memory of the running program. */
    assert_false(sl_demangle(SL_STR("$s4main1fyy\x01\0\0\0\0F"), SL_LANG_SWIFT, &out));
    assert_false(sl_demangle(SL_STR("$s4main1fyy\xFF\x80"), SL_LANG_SWIFT, &out));
    sl_buf_free(&out);
}

/* ---- hostile names ---- */

static void try(struct sl_buf *name)
{
    struct sl_buf out = {0};
    bool good = sl_demangle(sl_buf_view(name), SL_LANG_SWIFT, &out);
    assert_true(good || out.size == 0);
    assert_true(out.size < 4096);
    sl_buf_free(&out);
    sl_buf_free(name);
    *name = (struct sl_buf){0};
}

static void repeat(struct sl_buf *name, const char *text, int count)
{
    while (count--)
        sl_buf_cstr(name, text);
}

/* Names that nest deeply, double with each reference, or count to millions end quickly. */
TEST(nested_and_doubling_names_end_quickly)
{
    static const char *const nested[] = {"Sg", "m",    "z",  "XDXoXw",  "ySaG",    "_Si_t", "yc", "Sixc",
                                         "Xp", "1aQa", "_p", "1A_1BQX", "1aL_1aC", "1AV",   "Qp"};
    struct sl_buf name = {0};
    for (size_t i = 0; i < sizeof nested / sizeof *nested; i++) {
        sl_buf_cstr(&name, "$sSi");
        repeat(&name, nested[i], 4000);
        sl_buf_cstr(&name, "D");
        try(&name);
        sl_buf_cstr(&name, "_Tt");
        repeat(&name, nested[i], 4000);
        try(&name);
    }
    static const char *const old_nested[] = {"GSq", "M",  "R", "FSi", "T",   "XFo_i", "u_r",
                                             "VV",  "FF", "P", "w",   "E1a", "PA__T"};
    for (size_t i = 0; i < sizeof old_nested / sizeof *old_nested; i++) {
        sl_buf_cstr(&name, "_Tt");
        repeat(&name, old_nested[i], 4000);
        try(&name);
        sl_buf_cstr(&name, "_T");
        repeat(&name, old_nested[i], 4000);
        try(&name);
    }
    sl_buf_cstr(&name, "$s1a1bVACACt"); /* each tuple holds the one before twice */
    for (int i = 0; i < 24; i++)
        sl_buf_printf(&name, "A%c_A%ctSg", 'D' + i - (i > 0), 'D' + i - (i > 0));
    sl_buf_cstr(&name, "D");
    try(&name);
    sl_buf_cstr(&name, "$s");
    repeat(&name, "S2000i", 10000);
    try(&name);
    sl_buf_cstr(&name, "$s1aC");
    repeat(&name, "A2000A", 10000);
    sl_buf_cstr(&name, "tD");
    try(&name);
    sl_buf_cstr(&name, "$s4main1fyyxr16777215_16777215_16777215_lF");
    try(&name);
    sl_buf_cstr(&name, "$s1a1bCyxG");
    repeat(&name, "_yxG", 300);
    try(&name);
    sl_buf_cstr(&name, "$s004095");
    repeat(&name, "z", 4095);
    try(&name);
    sl_buf_cstr(&name, "$s");
    repeat(&name, "02abaA", 10000);
    try(&name);
}

/* A word of 30000 letters, and 30000 letters that stand for it. */
TEST(word_substitutions_end_quickly)
{
    struct sl_buf name = {0};
    struct rusage before, after;
    sl_buf_cstr(&name, "$s30000");
    repeat(&name, "a", 30000);
    sl_buf_cstr(&name, "0");
    repeat(&name, "a", 30000);
    sl_buf_cstr(&name, "A0");
    getrusage(RUSAGE_SELF, &before);
    try(&name);
    getrusage(RUSAGE_SELF, &after);
    assert_in_range(after.ru_maxrss - before.ru_maxrss, 0, 64 << 10); /* KiB */
}

/* Names of many constructs, cut short or with a character that does not belong there. */
TEST(damaged_names_never_crash)
{
    static const char *const names[] = {
        "$s3Bar3FooVAA5DrinkVyxGs5Error_pSeRzSERzlyShy4AbcdAHO6MemberVGALSeHPAKSeAAyHC_HCg_ALSEHPAKSEAAyHC_HCg0_"
        "Iseggozo_SgWOe",
        "_$Ss17MutableCollectionP1asAARzs012RandomAccessB0RzsAA11SubSequences013BidirectionalB0PRpzsAdHRQlE06rotatecD0"
        "15shiftingToStart5Indexs01_A9IndexablePQzAN_tFAKs01_M4BasePQzAQcfU_",
        "_TTWurGV23interface_type_mangling18GenericTypeContextx_S_18GenericWitnessTestS_FS1_23closureInGenericContextu"
        "RxS1_rfqd__T_",
        "$s4test3fooyyAA1P_pSS1TAaCPRts_Si1UAERtsXPF",
        "$s1t1fyyFSiAA3StrVcs7KeyPathCyADSiGcfu_SiADcfu0_33_556644b740b1b333fecb81e55a7cce98ADSiTf3npk_n",
        "$s13TangentVector16_Differentiation14DifferentiablePQzAaDQy_SdAFIegnnnr_TJSdSSSpSrSUSP",
        "_TTSf1cpi0_cpfl0_cpse0v4u123_cpg3abc_cpfr3abc_cl3abcSi__TF7specgen12take_closureFFTSiSi_T_T_",
    };
    static const char letters[] = "AGSTQRXYZ_aglmpqrstuxyz019$.";
    struct sl_buf name = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t at = 0; at <= strlen(names[i]); at++) {
            sl_buf_add(&name, names[i], at);
            try(&name);
            for (size_t c = 0; at < strlen(names[i]) && c < sizeof letters - 1; c++) {
                sl_buf_cstr(&name, names[i]);
                name.data[at] = (uint8_t)letters[c];
                try(&name);
            }
        }
}

/* The longest form is 4095 bytes. */
TEST(demangled_length_is_limited)
{
    struct sl_buf name = {0}, out = {0};
    sl_buf_cstr(&name, "$s1m4093");
    repeat(&name, "a", 4093);
    sl_buf_cstr(&name, "yyF");
    assert_true(sl_demangle(sl_buf_view(&name), SL_LANG_SWIFT, &out));
    assert_int_equal(out.size, 4095);
    name.size = 0;
    sl_buf_cstr(&name, "$s1m4094");
    repeat(&name, "a", 4094);
    sl_buf_cstr(&name, "yyF");
    assert_false(sl_demangle(sl_buf_view(&name), SL_LANG_SWIFT, &out));
    assert_int_equal(out.size, 4095);
    sl_buf_free(&name);
    sl_buf_free(&out);
}
