// Examples with the files that explain them: they work on any service, without symbols from anywhere.

const SCRIPT = `function checkStock(item) {
  if (item.left < 1) throw new Error('sold out');
}

export function order(items) {
  items.forEach(checkStock);
}

order([{left: 0}]);
`;

const MINIFIED = `(()=>{function r(o){if(o.left<1)throw new Error("sold out")}function t(o){o.forEach(r)}t([{left:0}]);})();
//# sourceMappingURL=app.min.js.map
`;

const MAP = JSON.stringify({
  version: 3, sources: ["app.js"], sourcesContent: [SCRIPT], names: ["checkStock", "item", "order", "items"],
  mappings: "MAAA,SAASA,EAAWC,EAAM,CACxB,GAAIA,EAAK,KAAO,EAAG,MAAM,IAAI,MAAM,UAAU,CAC/C,CAEO,SAASC,EAAMC,EAAO,CAC3BA,EAAM,QAAQH,CAAU,CAC1B,CAEAE,EAAM,CAAC,CAAC,KAAM,CAAC,CAAC,CAAC",
});

export const EXAMPLES = {
  js: {
    text: `Error: sold out
    at r (https://shop.example/app.min.js:1:39)
    at t (https://shop.example/app.min.js:1:77)
    at https://shop.example/app.min.js:1:88
`,
    files: [["app.min.js", MINIFIED], ["app.min.js.map", MAP]],
  },
  jvm: {
    text: `java.lang.IllegalStateException: no stock
    at a.b.c(SourceFile:1)
    at a.b.d(SourceFile:12)
Caused by: a.e: sold out
    at a.e.a(SourceFile:3)
`,
    files: [["mapping.txt", `# compiler: R8
com.example.Shop -> a.b:
    1:1:void com.example.Stock.check(int):7:7 -> c
    1:1:void order(java.util.List):20 -> c
    12:12:void main(java.lang.String[]):31:31 -> d
com.example.SoldOut -> a.e:
    3:3:com.example.SoldOut of(java.lang.String):12:12 -> a
`]],
  },
};
