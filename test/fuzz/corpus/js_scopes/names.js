class C{constructor(){return class D{}}}
;deep.assigned.klass = class {}
;const o={p:function n(){},q:function(){},r:()=>{},s(){}}
;class K{static a(){} b(){} #c(){}}
;class A{get foo(){} set foo(x){}}
;a={get foo(){},set foo(x){}}
;a={["foo"+1](){},1.7(){},"bar"(){},1n(){}}
;a=class B{foo(){} get bar(){}}
;({p:function n(){},r:()=>{},s(){}})
;(function(){return ()=>{}})()
;(function(){})({children:(function(){})({onX(){}})})
;K.prototype[42]=()=>{}
;K.prototype["m"]=()=>{}
;K.prototype['m']=()=>{}
;K.prototype['\'"']=()=>{}
;K.prototype[m]=()=>{}
;K.prototype[1+1]=()=>{}
;class A{static async m(){} p=()=>{}; constructor(){(()=>1)()}}
;var o={get b(){return function(){}},'c':function(){}}
;var {q}={r(){}}
;export default class{m(){}}
;x.y=async a=>a
;x||=()=>1
;(x.y)=()=>3
;f().g=()=>1
;a=class B extends (class C{}){}
;deep.obj={foo(){}}
;a['x']={foo(){}}
;k[m]=function n(){}
;var w = c ? function(){} : 1
;z = foo(function(){})
;var a = b = c.d = () => 1, e = () => 2
;a = b, () => 1
;this.x.y = () => 1
;this.#x = () => 1; a.#b.c = () => 2
;a?.b.c(() => 1)
;({a: {get b(){}}}); ({get c(){}})
;({a: {b: [c => 1]}})
;class A{static{class B{m(){}} x = () => 1; function f(){}}}
;class A{constructor(a = () => 1){} 'constructor'(){} static constructor(){} ['constructor'](){}}
;a={async b(){}, *c(){}, async *d(){}, get(){}, set(){}, async(){}, static(){}, get:()=>1}
;class A{get;set;static;async;static async *b(){} static get(){} get 'c'(){} static set #d(e){}}
;export default function(){} 
;export default async () => 1
;export const f = async function*(){}, g = function h(){}