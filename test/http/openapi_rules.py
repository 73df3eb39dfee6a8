"""What an OpenAPI document of version 3.1 looks like (OpenAPI Specification 3.1.0, 4.8), as far as doc/openapi.yaml goes: a schema for its
structure, and what a schema cannot say."""
import re

import jsonschema

from openapi import METHODS, inline, referred

TEXT, FLAG = {"type": "string", "minLength": 1}, {"type": "boolean"}
SCHEMA = {"$ref": "#/$defs/schema"}


def record(needed=(), **properties):
    """An object of these members alone, and of extensions."""
    return {"type": "object", "required": list(needed), "properties": properties, "patternProperties": {"^x-": {}}, "additionalProperties": False}


def of(names, value):
    """An object whose members have names of a pattern, and are alike."""
    return {"type": "object", "propertyNames": {"pattern": names}, "additionalProperties": value}


def either(kind):
    """A reference to a component of a kind, or what it would refer to."""
    reference = {"type": "object", "required": ["$ref"], "additionalProperties": False,
                 "properties": {"$ref": {"type": "string", "pattern": rf"^#/components/{kind}/[A-Za-z0-9._-]+$"}}}
    return {"if": {"type": "object", "required": ["$ref"]}, "then": reference, "else": {"$ref": f"#/$defs/{kind}"}}


def components(kind):
    return of("^[A-Za-z0-9._-]+$", {"$ref": f"#/$defs/{kind}"})


OPERATION = record(["operationId", "tags", "summary", "responses"], operationId={"type": "string", "pattern": "^[a-z][A-Za-z0-9]*$"},
                   tags={"type": "array", "items": TEXT, "minItems": 1, "maxItems": 1}, summary=TEXT, description=TEXT, deprecated=FLAG,
                   security={"$ref": "#/$defs/security"}, parameters={"type": "array", "items": either("parameters")},
                   requestBody=either("requestBodies"), responses=of("^([1-5][0-9][0-9]|default)$", either("responses")))
SECURITY_SCHEME = {
    "oneOf": [
        record(["type", "scheme"], type={"const": "http"}, scheme={"enum": ["basic", "bearer"]}, description=TEXT),
        record(["type", "in", "name"], type={"const": "apiKey"}, name=TEXT, description=TEXT, **{"in": {"enum": ["header", "query", "cookie"]}}),
    ]}
STRUCTURE = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **record(["openapi", "info", "paths", "components"],
             openapi={"type": "string", "pattern": r"^3\.1\.[0-9]+$"},
             info=record(["title", "version"], title=TEXT, summary=TEXT, description=TEXT, version=TEXT,
                         license=record(["name"], name=TEXT, identifier=TEXT)),
             servers={"type": "array", "items": record(["url"], url=TEXT, description=TEXT)},
             security={"$ref": "#/$defs/security"},
             tags={"type": "array", "items": record(["name", "description"], name=TEXT, description=TEXT)},
             paths=of("^/", record(**{method: OPERATION for method in (*METHODS, "head", "patch", "trace")})),
             components=record(schemas=of("^[A-Za-z0-9._-]+$", SCHEMA), securitySchemes=components("securitySchemes"),
                               **{kind: components(kind) for kind in ("headers", "parameters", "requestBodies", "responses")})),
    "$defs": {
        "schema": {"type": ["object", "boolean"]},
        "security": {"type": "array", "items": of("^[A-Za-z0-9._-]+$", {"type": "array", "items": TEXT})},
        "content": of("^([a-z0-9.+-]+|[*])/([a-z0-9.+-]+|[*])$", record(["schema"], schema=SCHEMA)),
        "headers": record(["schema"], description=TEXT, required=FLAG, schema=SCHEMA),
        "parameters": {
            **record(["name", "in", "schema", "description"], name=TEXT, description=TEXT, required=FLAG, schema=SCHEMA,
                     **{"in": {"enum": ["query", "header", "path", "cookie"]}}),
            "if": {"properties": {"in": {"const": "path"}}}, "then": {"required": ["required"], "properties": {"required": {"const": True}}}},
        "requestBodies": record(["content"], description=TEXT, required=FLAG, content={"$ref": "#/$defs/content"}),
        "responses": record(["description"], description=TEXT, headers=of("^[A-Za-z0-9-]+$", either("headers")), content={"$ref": "#/$defs/content"}),
        "securitySchemes": SECURITY_SCHEME,
    },
}


def walk(value, place=()):
    """Every object and list of the document, and its place."""
    yield place, value
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from walk(item, (*place, key))


def shown(place):
    return "/".join(map(str, place))


def operations(document):
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield path, method, item[method]


# ---- the rules: each yields what is wrong ----

def structure(document):
    for error in jsonschema.Draft202012Validator(STRUCTURE).iter_errors(document):
        yield f"{shown(error.absolute_path)}: {error.message[:300]}"


def references(document):
    """Every reference leads somewhere, and every component is referred to."""
    used = {value["$ref"] for _, value in walk(document) if isinstance(value, dict) and isinstance(value.get("$ref"), str)}
    for name in sorted(used):
        try:
            referred(name, document)
        except (KeyError, TypeError):
            yield f"{name} is not there"
    for kind, members in document["components"].items():
        for name in members:
            if kind != "securitySchemes" and f"#/components/{kind}/{name}" not in used:
                yield f"nothing refers to the component {kind}/{name}"


def schemas(document):
    """Every schema is one."""
    places = [(place, value) for place, value in walk(document) if place[-1:] == ("schema",) or place[:2] == ("components", "schemas") and len(place) == 3]
    for place, value in places:
        try:
            jsonschema.Draft202012Validator.check_schema(value)
        except jsonschema.exceptions.SchemaError as e:
            yield f"{shown(place)}: {e.message[:300]}"


def members(document):
    """What must be there is described, and an object that may have no other members says so by `properties`."""
    for place, value in walk(document):
        if isinstance(value, dict) and isinstance(value.get("required"), list) and "properties" in value:
            for name in set(value["required"]) - set(value["properties"]):
                yield f"{shown(place)}: {name} is required, but not described"


def examples(document):
    """What a schema shows as an example is as it says."""
    for place, value in walk(document):
        for example in value.get("examples", ()) if isinstance(value, dict) and not {"type", "enum", "anyOf", "oneOf"}.isdisjoint(value) else ():
            for error in jsonschema.Draft202012Validator(inline(value, {})).iter_errors(example):
                yield f"{shown(place)}: {error.message[:300]}"


def values(document):
    """No member lacks its value: a text with a comma that is not quoted becomes such members, `{description: one, two}`."""
    for place, value in walk(document):
        for key in [key for key, item in value.items() if item is None] if isinstance(value, dict) else ():
            yield f"{shown(place)}: {key} has no value"


def discriminators(document):
    """The alternatives of a discriminator are those of its oneOf, and each says the value itself."""
    for place, value in walk(document):
        if not (isinstance(value, dict) and "discriminator" in value and "oneOf" in value):
            continue
        key, mapping = value["discriminator"]["propertyName"], value["discriminator"]["mapping"]
        if set(mapping.values()) != {choice["$ref"] for choice in value["oneOf"]}:
            yield f"{shown(place)}: the mapping is not of the alternatives"
        for word, reference in mapping.items():
            alternatives = [choice["$ref"] for choice in referred(reference, document).get("anyOf", ()) if "$ref" in choice]
            for alternative in alternatives or [reference]:
                said = referred(alternative, document)["properties"].get(key, {})
                if said.get("const") != word and word not in said.get("enum", ()):
                    yield f"{shown(place)}: {alternative} does not say {key}: {word}"


def names(document):
    """Operations have names of their own and tags that are described; paths have the parameters that they name."""
    seen, tags = {}, {tag["name"] for tag in document["tags"]}
    for path, method, operation in operations(document):
        where = f"{method} {path}"
        if operation["operationId"] in seen:
            yield f"{where}: {operation['operationId']} is the name of {seen[operation['operationId']]} too"
        seen[operation["operationId"]] = where
        if not set(operation["tags"]) <= tags:
            yield f"{where}: the tag {operation['tags']} is not described"
        named = re.findall(r"\{(\w+)\}", path)
        parameters = [referred(p["$ref"], document) if "$ref" in p else p for p in operation.get("parameters", ())]
        if sorted(p["name"] for p in parameters if p["in"] == "path") != sorted(named):
            yield f"{where}: the parameters of the path are not those of the operation"
        if len({(p["name"].lower(), p["in"]) for p in parameters}) < len(parameters):
            yield f"{where}: a parameter twice"
    for tag in tags - {tag for _, _, operation in operations(document) for tag in operation["tags"]}:
        yield f"no operation has the tag {tag}"
    shapes = [re.sub(r"\{\w+\}", "{}", path) for path in document["paths"]]
    for shape in {shape for shape in shapes if shapes.count(shape) > 1}:
        yield f"the paths {shape} are the same"


def security(document):
    known = set(document["components"]["securitySchemes"])
    asked = [document["security"], *(operation["security"] for _, _, operation in operations(document) if "security" in operation)]
    for name in {name for alternatives in asked for alternative in alternatives for name in alternative} ^ known:
        yield f"the security scheme {name} is not described, or not used"


def responses(document):
    """A response `default` says which statuses it stands for."""
    for path, method, operation in operations(document):
        default = operation["responses"].get("default")
        if not default:
            yield f"{method} {path}: no response `default`"
        elif not referred(default["$ref"], document).get("x-statuses"):
            yield f"{method} {path}: the response `default` does not say for which statuses"
        if not any(status[0] in "23" for status in operation["responses"]) and operation["operationId"] != "dockerflowBroken":
            yield f"{method} {path}: it never succeeds"


RULES = (references, schemas, members, examples, values, discriminators, names, security, responses)


def problems(document):
    found = list(structure(document))
    return found or [f"{rule.__name__}: {problem}" for rule in RULES for problem in rule(document)]
