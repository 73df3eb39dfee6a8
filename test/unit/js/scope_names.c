/* What functions are called. */
#include "scope.h"

struct row {
    const char *source, *scopes;
};

static void check(const struct row *rows, size_t count, bool ranges, const struct sl_js_naming *naming)
{
    struct sl_buf out = {0};
    for (size_t i = 0; i < count; i++) {
        const char *text = scopes_text(rows[i].source, ranges, naming, &out);
        if (strcmp(text, rows[i].scopes) != 0)
            fail_msg("%s\n  is     %s\n  wanted %s", rows[i].source, text, rows[i].scopes);
    }
    sl_buf_free(&out);
}
#define CHECK(rows, ranges, naming) check(rows, sizeof(rows) / sizeof(rows)[0], ranges, naming)

TEST(functions_get_their_names)
{
    static const struct row rows[] = {
        {"class C{constructor(){return class D{}}}", "new C | new D"},
        {"deep.assigned.klass = class {}", "new deep.assigned.klass"},
        {"const o={p:function n(){},q:function(){},r:()=>{},s(){}}", "o.n | o.q | o.r | o.s"},
        {"class K{static a(){} b(){} #c(){}}", "new K | K.a | K.b | K.#c"},
        {"class A{get foo(){} set foo(x){}}", "new A | get A.foo | set A.foo"},
        {"a={get foo(){},set foo(x){}}", "get a.foo | set a.foo"},
        {"a={[\"foo\"+1](){},1.7(){},\"bar\"(){},1n(){}}", "a.<computed> | a.<1.7> | a.<\"bar\"> | a.<1n>"},
        {"a=class B{foo(){} get bar(){}}", "new a.B | a.B.foo | get a.B.bar"},
        {"({p:function n(){},r:()=>{},s(){}})", "<object>.n | <object>.r | <object>.s"},
        {"(function(){return ()=>{}})()", "- | -"},
        {"(function(){})({children:(function(){})({onX(){}})})", "- | <object>.children | <object>.children.onX"},
        {"K.prototype[42]=()=>{}", "K.prototype[42]"},
        {"K.prototype[\"m\"]=()=>{}", "K.prototype[\"m\"]"},
        {"K.prototype['m']=()=>{}", "K.prototype[\"m\"]"},
        {"K.prototype['\\'\"']=()=>{}", "K.prototype[\"'\\\"\"]"},
        {"K.prototype[m]=()=>{}", "K.prototype[m]"},
        {"K.prototype[1+1]=()=>{}", "K.prototype[<computed>]"},
        {"class A{static async m(){} p=()=>{}; constructor(){(()=>1)()}}", "new A | A.m | A.p | -"},
        {"var o={get b(){return function(){}},'c':function(){}}", "get o.b | o | o"},
        {"var {q}={r(){}}", "<object>.r"},
        {"export default class{m(){}}", "- | m"},
        {"x.y=async a=>a", "x.y"},
        {"x||=()=>1", "x"},
        {"(x.y)=()=>3", "-"},
        {"f().g=()=>1", "-"},
        {"a=class B extends (class C{}){}", "new a.B | new a.B.C"},
        {"deep.obj={foo(){}}", "deep.obj.foo"},
        {"a['x']={foo(){}}", "a[\"x\"].foo"},
        {"k[m]=function n(){}", "k.n"},
        {"var w = c ? function(){} : 1", "w"},
        {"z = foo(function(){})", "z"},
        {"var a = b = c.d = () => 1, e = () => 2", "c.d | e"},
        {"a = b, () => 1", "-"},
        {"this.x.y = () => 1", "this.x.y"},
        {"this.#x = () => 1; a.#b.c = () => 2", "this | a.c"},
        {"a?.b.c(() => 1)", "-"},
        {"({a: {get b(){}}}); ({get c(){}})", "get <object>.a.b | get c"},
        {"({a: {b: [c => 1]}})", "<object>.a.b"},
        {"class A{static{class B{m(){}} x = () => 1; function f(){}}}", "new A | new B | B.m | x | f"},
        {"class A{constructor(a = () => 1){} 'constructor'(){} static constructor(){} ['constructor'](){}}",
         "new A | - | A.constructor | A.<computed>"},
        {"a={async b(){}, *c(){}, async *d(){}, get(){}, set(){}, async(){}, static(){}, get:()=>1}",
         "a.b | a.c | a.d | a.get | a.set | a.async | a.static | a.get"},
        {"class A{get;set;static;async;static async *b(){} static get(){} get 'c'(){} static set #d(e){}}",
         "new A | A.b | A.get | get A.<\"c\"> | set A.#d"},
        {"export default function(){} ", "-"},
        {"export default async () => 1", "-"},
        {"export const f = async function*(){}, g = function h(){}", "f | h"},
        {"\\u0061b = () => 1; \\u{63} = () => 2", "ab | c"},
        {"new class A{m(){}}", "new A | A.m"},
        {"class A{a=()=>1;static b=async function(){};c=function n(){};#d=e=>e;'f g'=()=>1;1=()=>1}",
         "new A | A.a | A.b | A.n | A.#d | A.<\"f g\"> | A.<1>"},
        {"class A{a={b(){},c:()=>1};d=e(()=>1);f=class{g=()=>1};h=()=>()=>1}",
         "new A | A.a.b | A.a.c | A.d | new A.f | A.f.g | A.h | -"},
        {"x=class{a=()=>1\nb=c=()=>1;accessor d=()=>1}; export default class{e=()=>1}",
         "new x | x.a | c | x.d | - | e"},
    };
    CHECK(rows, false, NULL);
}

/* What brackets are shows only behind them. */
TEST(functions_in_patterns_get_their_names)
{
    static const struct row rows[] = {
        {"x = (a = () => 1) => 2", "x | -"},
        {"x = (a = () => 1)", "a"},
        {"x = (a.b = () => 1, c)", "a.b"},
        {"x = ({a: b = function n(){}, c = () => 1}) => 2", "x | n | -"},
        {"x = {a: b = () => 1}", "b"},
        {"({a: b = () => 1} = x)", "-"},
        {"({a: {b: [c = () => 1]}} = x)", "-"},
        {"({a: c = {b: () => 1}} = x)", "<object>.b"},
        {"[a = () => 1] = x", "-"},
        {"[a = () => 1]", "a"},
        {"x = async (a = () => 1) => 2", "x | -"},
        {"x = async(a = () => 1)", "a"},
        {"x = (a = b = () => 1) => 2", "x | b"},
        {"function f(a = () => 1, {b: c = () => 2}, [d] = [() => 3]){}", "f | - | - | -"},
        {"var {a = () => 1, b: c = function n(){}} = () => 2", "- | n | -"},
        {"for (const [a = () => 1] of x) y = () => 2", "- | y"},
        {"for (var x = () => 1, y; ; ) z = () => 2", "x | z"},
        {"for ([a = () => 1] of x);", "-"},
        {"for (x of () => 1);", "-"},
        {"try{}catch({a = () => 1}){b = () => 2}", "- | b"},
        {"x[y(() => 1)] = () => 2", "x[<computed>] | x[<computed>]"},
        {"(x[y(() => 1)].z = 2)", "x[<computed>].z"},
        {"x[y(() => 1)].z(2)", "-"},
        {"a={[b(() => 1)](){}, get [b(() => 2)](){}, [b(() => 3)]: () => 4}",
         "a.<computed> | a.<computed> | get a.<computed> | a | a | a"},
        {"class A{[(() => 1)()](){} [(() => 2)()] = () => 3}",
         "new A | A.<computed> | A.<computed> | A | A.<computed>"},
        {"f((a, b = (c = () => 1) => c) => a)", "- | - | -"},
        {"((a)) ; x = ((a) => a)", "x"},
        {"for (var f = (a in b); ; ) g = () => 1", "g"},
    };
    CHECK(rows, false, NULL);
}

TEST(functions_have_their_ranges)
{
    static const struct row rows[] = {
        {"const f = (a) => a; function g() {}", "10..18 f | 20..35 g"},
        {"class A{static async m(){} }", "0..28 new A | 8..26 A.m"},
        {"x = async a => a ;", "4..16 x"},
        {"x = async ( a = () => 1 ) => ( a ) ;", "4..34 x | 16..23 -"},
        {"o={ async * a(){} , get b(){} , [c] ( ) { } }", "4..17 o.a | 20..29 get o.b | 32..43 o.<computed>"},
        {"a => b => c, d => e", "0..11 - | 5..11 - | 13..19 -"},
        {"a ? b => c : d => e", "4..10 - | 13..19 -"},
        {"async function f(){} export default async function(){}", "0..20 f | 36..54 -"},
    };
    CHECK(rows, true, NULL);
}

static struct sl_str in_capitals(void *arg, uint32_t at, struct sl_str text)
{
    static char upper[16];
    for (size_t i = 0; i < text.size && i < sizeof upper; i++)
        upper[i] = (char)(text.data[i] - (text.data[i] >= 'a' ? 32 : 0));
    assert_in_range(at, 0, 40);
    return (struct sl_str){upper, text.size};
}

TEST(names_use_original_identifiers)
{
    static const struct row rows[] = {
        {"a.b[c].d={e:function f(){}}", "A.B[C].D.F"},
        {"class a{get b(){} #c(){}}", "new A | get A.B | A.#C"},
        {"this.a={'b'(){}}", "this.A.<\"b\">"},
        {"class a{#b=()=>1;c=()=>2}", "new A | A.#B | A.C"},
    };
    CHECK(rows, false, (&(struct sl_js_naming){.original = in_capitals}));
}

TEST(compatible_mode_names_as_the_reference)
{
    static const struct row rows[] = {
        {"deep.obj={foo(){}}", "deep.objfoo"},  {"a['x']={foo(){}}", "a[\"x\"]foo"},
        {"k[m]=function n(){}", "k[mn"},        {"k.m=function n(){}", "k.n"},
        {"k={m(){},p:{q(){}}}", "k.m | k.p.q"}, {"class A{p=()=>{};q={r(){}};#s(){}}", "new A | A | A.r | A.#s"},
    };
    CHECK(rows, false, (&(struct sl_js_naming){.compat = true}));
}
