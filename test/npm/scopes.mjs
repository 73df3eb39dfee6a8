// The scopes of a script as another parser sees it: a line each, start, end and name, as bench_scopes prints them.
//
// usage: node scopes.mjs tree-sitter|swc NODE_MODULES FILE
//
// Names are inferred from the tree, from a node outwards, which is the other way round than symloom does it.
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";

const [kind, modules, file] = process.argv.slice(2);
const require = createRequire(path.resolve(modules) + "/");
const bytes = fs.readFileSync(file);
const text = bytes.toString("utf8");
const lines = [];

// ---- Names. What lies around a node is a list {kind, name, outer}.

const STOP = { kind: "stop" };
const OUTSIDE = { kind: "outside" };

// The segments of the name, first to last: each has its text and whether a dot stands before it.
function infer(around) {
  let segments = [], crossed = false;
  for (; around.kind !== "stop" && around.kind !== "outside"; around = around.outer) {
    if (around.kind === "object") crossed = true;
    else segments.unshift(...around.segments);
    if (around.last) return segments;
  }
  return crossed && segments.length ? [{ text: "<object>", prefix: true }, ...segments] : segments;
}

function write(segments) {
  return segments.map((s, i) => (i && !s.index ? "." : "") + s.text).join("");
}

const named = (name) => [{ text: name }];

function scope(start, end, segments, { own = null, before = "" } = {}) {
  if (own) segments = [...segments.slice(0, -1), { text: own }];
  const name = write(segments);
  lines.push({ start, end, name: name && before + name });
}

function literal(source) {
  if (source[0] !== "'") return source;
  return '"' + source.slice(1, -1).replaceAll("\\'", "'").replaceAll('"', '\\"') + '"';
}

// Functions of the two trees:
//   around(what, outer): a new link; names come from the caller.
const link = (outer, segments, last = false) => ({ kind: "name", segments, last, outer });
const object = (outer) => ({ kind: "object", outer });

// ---- tree-sitter-javascript

async function treeSitter() {
  const { Parser, Language } = await import(require.resolve("web-tree-sitter"));
  await Parser.init();
  const parser = new Parser();
  parser.setLanguage(await Language.load(require.resolve("tree-sitter-javascript/tree-sitter-javascript.wasm")));
  const tree = parser.parse((index) => text.slice(index, index + 65536));
  const at = offsets();
  const range = (node) => [at(node.startIndex), at(node.endIndex)];

  const plain = (node) => node?.text.replace(/\\u(?:\{([0-9a-f]+)\}|([0-9a-f]{4}))/gi,
    (_, long, short) => String.fromCodePoint(parseInt(long ?? short, 16)));

  function key(node) {
    switch (node.type) {
      case "property_identifier": return plain(node);
      case "private_property_identifier": return node.text;
      case "computed_property_name": return "<computed>";
      default: return `<${literal(node.text)}>`;
    }
  }

  function chain(node) {
    if (node.type === "identifier" || node.type === "this" || node.type === "undefined") return named(plain(node));
    if (node.children.some((child) => child.type === "optional_chain")) return null;
    if (node.type === "member_expression") {
      const from = chain(node.childForFieldName("object"));
      const property = node.childForFieldName("property");
      if (!from || property.type === "private_property_identifier") return from;
      return [...from, { text: plain(property) }];
    }
    if (node.type === "subscript_expression") {
      const from = chain(node.childForFieldName("object"));
      const index = node.childForFieldName("index");
      const simple = index.type === "identifier" || index.type === "undefined" ? index.text
        : index.type === "number" || index.type === "string" ? literal(index.text) : "<computed>";
      return from && [...from, { text: `[${simple}]`, index: true }];
    }
    return null;
  }

  function method(node, around) {
    const name = node.childForFieldName("name");
    const tokens = node.children.map((child) => child.type);
    const accessor = tokens.includes("get") ? "get " : tokens.includes("set") ? "set " : "";
    const inClass = node.parent.type === "class_body";
    if (inClass && !tokens.includes("static") && ["constructor", "'constructor'", '"constructor"'].includes(name.text))
      return STOP;
    const whole = link(around, named(key(name)));
    if (accessor && !inClass)
      scope(...range(node), [...infer(around), ...named(key(name))], { before: accessor });
    else
      scope(...range(node), infer(whole), { before: accessor });
    return accessor && !inClass ? around : { ...STOP, key: whole };
  }

  // What lies around the children of a node; scopes are noted on the way.
  function enter(node, around) {
    switch (node.type) {
      case "function_declaration":
      case "generator_function_declaration":
      case "function_expression":
      case "generator_function":
        scope(...range(node), infer(around), { own: plain(node.childForFieldName("name")) });
        return STOP;
      case "arrow_function":
        scope(...range(node), infer(around));
        return STOP;
      case "class_declaration":
      case "class": {
        const name = plain(node.childForFieldName("name"));
        const inside = name ? link(around, named(name), node.type === "class_declaration") : around;
        const first = node.children.find((child) => child.type === "class");
        scope(at(first.startIndex), at(node.endIndex), infer(inside), { before: "new " });
        return inside;
      }
      case "method_definition": return method(node, around);
      case "field_definition": return link(around, named(key(node.childForFieldName("property"))));
      case "computed_property_name": return around.key ?? around; // of a method: not behind its boundary
      case "object": return object(around);
      case "pair": {
        const name = node.childForFieldName("key");
        return name.type === "property_identifier" ? link(around, named(name.text)) : around;
      }
      case "variable_declarator": {
        const name = node.childForFieldName("name");
        return name.type === "identifier" ? link(around, named(name.text), true) : around;
      }
      case "assignment_expression":
      case "augmented_assignment_expression": {
        const segments = chain(node.childForFieldName("left"));
        return segments ? link(around, segments, true) : around;
      }
      default: return around;
    }
  }

  const looked = new Set(["function_declaration", "generator_function_declaration", "function_expression", "generator_function",
    "arrow_function", "class_declaration", "class", "method_definition", "field_definition", "computed_property_name", "object", "pair", "variable_declarator",
    "assignment_expression", "augmented_assignment_expression"]);
  const cursor = tree.walk();
  const stack = [];
  let around = OUTSIDE;
  for (;;) {
    let inside = around;
    if (looked.has(cursor.nodeType) && cursor.nodeIsNamed) {
      inside = enter(cursor.currentNode, around);
    }
    if (cursor.gotoFirstChild()) {
      stack.push(around);
      around = inside;
    } else {
      while (!cursor.gotoNextSibling()) {
        if (!cursor.gotoParent()) return tree.rootNode.hasError;
        around = stack.pop();
      }
    }
  }
}

// Byte offsets of offsets in UTF-16 units.
function offsets() {
  if (bytes.length === text.length) return (index) => index;
  const table = new Uint32Array(text.length + 1);
  let offset = 0;
  for (let i = 0; i < text.length; i++) {
    table[i] = offset;
    const code = text.charCodeAt(i);
    offset += code < 0x80 ? 1 : code < 0x800 ? 2 : code >= 0xd800 && code < 0xe000 ? 2 : 3;
  }
  table[text.length] = offset;
  return (index) => table[index];
}

// ---- swc

function swc() {
  const { parseSync } = require("@swc/core");
  const program = parseSync(text, { syntax: "ecmascript", decorators: true, target: "esnext", isModule: true });
  const source = (span) => bytes.subarray(span.start - 1, span.end - 1).toString("utf8");
  const range = (node) => [node.span.start - 1, node.span.end - 1];

  function key(node) {
    switch (node.type) {
      case "Identifier": return node.value;
      case "PrivateName": return "#" + (node.id?.value ?? node.value);
      case "Computed": return "<computed>";
      default: return `<${literal(source(node.span))}>`;
    }
  }

  function chain(node) {
    if (node.type === "Identifier") return named(node.value);
    if (node.type === "ThisExpression") return named("this");
    if (node.type !== "MemberExpression") return null;
    const from = chain(node.object), property = node.property;
    if (!from || property.type === "PrivateName") return from;
    if (property.type !== "Computed") return [...from, { text: property.value }];
    const index = property.expression;
    const simple = index.type === "Identifier" ? index.value
      : index.type === "NumericLiteral" || index.type === "StringLiteral" || index.type === "BigIntLiteral"
        ? literal(source(index.span)) : "<computed>";
    return [...from, { text: `[${simple}]`, index: true }];
  }

  // Pairs of a child and what lies around it.
  function method(node, around, inClass) {
    const accessor = node.kind === "getter" || node.type === "GetterProperty" ? "get "
      : node.kind === "setter" || node.type === "SetterProperty" ? "set " : "";
    const whole = link(around, named(key(node.key)));
    if (accessor && !inClass)
      scope(...range(node), [...infer(around), ...named(key(node.key))], { before: accessor });
    else
      scope(...range(node), infer(whole), { before: accessor });
    const body = accessor && !inClass ? around : STOP, keyed = accessor && !inClass ? around : whole;
    const rest = inClass ? [node.function.params, node.function.body, node.function.decorators] : [node.params, node.param, node.body, node.function?.params, node.function?.body];
    return [[node.key, keyed], ...rest.map((child) => [child, body])];
  }

  function enter(node, around) {
    switch (node.type) {
      case "FunctionDeclaration":
      case "FunctionExpression":
        scope(...range(node), infer(around), { own: node.identifier?.value });
        return STOP;
      case "ArrowFunctionExpression":
        scope(...range(node), infer(around));
        return STOP;
      case "ClassDeclaration":
      case "ClassExpression": {
        const name = node.identifier?.value;
        const inside = name ? link(around, named(name), node.type === "ClassDeclaration") : around;
        scope(...range(node), infer(inside), { before: "new " });
        return inside;
      }
      case "ClassMethod":
      case "PrivateMethod": return method(node, around, true);
      case "ClassProperty":
      case "PrivateProperty": return link(around, named(key(node.key)));
      case "MethodProperty":
      case "GetterProperty":
      case "SetterProperty": return method(node, around, false);
      case "Constructor": return STOP;
      case "ObjectExpression": return object(around);
      case "KeyValueProperty": return node.key.type === "Identifier" ? link(around, named(node.key.value)) : around;
      case "VariableDeclarator": return node.id.type === "Identifier" ? link(around, named(node.id.value), true) : around;
      case "AssignmentExpression": {
        const segments = chain(node.left);
        return segments ? link(around, segments, true) : around;
      }
      default: return around;
    }
  }

  const stack = [[program.body, OUTSIDE]];
  while (stack.length) {
    const [node, around] = stack.pop();
    if (!node || typeof node !== "object") continue;
    if (Array.isArray(node)) {
      for (const child of node) stack.push([child, around]);
      continue;
    }
    const inside = node.type ? enter(node, around) : around;
    if (Array.isArray(inside)) stack.push(...inside);
    else for (const name in node) if (name !== "span") stack.push([node[name], inside]);
  }
  return false;
}

const damaged = kind === "swc" ? swc() : await treeSitter();
lines.sort((a, b) => a.start - b.start || b.end - a.end);
process.stdout.write(lines.map((s) => `${s.start} ${s.end} ${s.name}\n`).join(""));
if (damaged) {
  process.stderr.write("the tree has errors\n");
  process.exitCode = 2;
}
