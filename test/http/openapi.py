"""Requests and answers of tests, held against doc/openapi.yaml: path, method and status must be known, and bodies be as they are
described. A request that is not as described is fine if it is refused: a test wants to see how.

Schemas are compiled when they are first needed. Of a long list only the first and last items are looked at: thousands of frames are
made by the same code. Bodies of more than MOST bytes are not read."""
import functools, gzip, json, os, re, threading, urllib.parse

import jsonschema, yaml

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "doc", "openapi.yaml")
METHODS = ("get", "put", "post", "delete", "options")
FORM, FIELDS = "multipart/form-data", "application/x-www-form-urlencoded"
MOST = 8 << 20
ENDS = 12  # items of a list that are looked at, from each end
# What any path may be answered by, before its API is asked; 404 and 405 also where the configuration does not have the API.
ANYWHERE = (404, 405)
PREFLIGHT = 204


class Mismatch(AssertionError):
    """What was sent or answered is not as described."""


# ---- the document ----

def load(text):
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@functools.lru_cache(None)
def document():
    with open(DOCUMENT, encoding="utf-8") as f:
        return load(f.read())


def referred(reference, root=None):
    """The object that a $ref names."""
    found = document() if root is None else root
    for name in reference.removeprefix("#/").split("/"):
        found = found[name]
    return found


def resolved(value):
    return referred(value["$ref"]) if isinstance(value, dict) and "$ref" in value else value


def choice(schema):
    """The alternatives of a schema with a discriminator, as a chain: what is wrong is then told of the one that was meant."""
    key, mapping = schema["discriminator"]["propertyName"], schema["discriminator"]["mapping"]
    chain = [{"if": {"properties": {key: {"const": value}}}, "then": {"$ref": place}} for value, place in mapping.items()]
    rest = {k: v for k, v in schema.items() if k not in ("oneOf", "discriminator")}
    return {"allOf": [rest, {"type": "object", "required": [key], "properties": {key: {"enum": list(mapping)}}}, *chain]}


def inline(schema, known):
    """The schema without references; no schema refers to itself. `known`: those that were made, by their names."""
    if isinstance(schema, list):
        return [inline(item, known) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        place = schema["$ref"]
        if place not in known:
            known[place] = inline(referred(place), known)
        return known[place]
    if "discriminator" in schema:
        schema = choice(schema)
    return {key: inline(value, known) for key, value in schema.items()}


inlined = {}


@functools.lru_cache(None)
def validator(place):
    """Of the schema at a place of the document, whose names are in a tuple."""
    schema = document()
    for name in place:
        schema = resolved(schema)[name]
    return jsonschema.Draft202012Validator(inline(schema, inlined))


# ---- paths ----

class Path:
    """A path of the document, and the pattern that it is."""

    def __init__(self, template):
        self.template, self.item = template, document()["paths"][template]
        self.names = re.findall(r"\{(\w+)\}", template)
        long = {p["name"] for m in METHODS if m in self.item for p in map(resolved, self.item[m].get("parameters", ())) if p.get("x-slashes")}
        value = lambda name: "(.+)" if name in long else "([^/]+)"
        self.pattern = re.compile("".join(value(part[1:-1]) if part[0] == "{" else re.escape(part)
                                          for part in re.findall(r"\{\w+\}|[^{]+", template)))
        self.literal = len(re.sub(r"\{\w+\}", "", template))


@functools.lru_cache(None)
def paths():
    return sorted(map(Path, document()["paths"]), key=lambda path: (len(path.names), -path.literal))


def places(path):
    """The paths of the document that it may be: one that is literal, or those whose patterns it fits."""
    found = [p for p in paths() if p.pattern.fullmatch(path)]
    return [p for p in found if not p.names] or found


# ---- values ----

def thin(value):
    """The same with long lists cut."""
    if isinstance(value, dict):
        return {key: thin(item) for key, item in value.items()}
    if isinstance(value, list):
        return [thin(item) for item in (value if len(value) <= 2 * ENDS else value[:ENDS] + value[-ENDS:])]
    return value


def complain(place, value):
    """What is wrong with the value; None: nothing."""
    error = jsonschema.exceptions.best_match(validator(place).iter_errors(thin(value)))
    return error and f"{'/'.join(map(str, error.absolute_path)) or 'the whole'}: {error.message[:600]}"


def parse(data):
    """The JSON that it is; raises ValueError."""
    return json.loads(data)


def media_type(headers):
    return (headers.get("content-type") or "").split(";")[0].strip().lower()


def form_parts(data, content_type):
    """The parts of a form: (name, contents). Empty when it is none."""
    boundary = re.search(r'boundary="?([^";]+)', content_type)
    delimiter = b"--" + boundary.group(1).encode() if boundary else None
    for part in data.split(delimiter)[1:-1] if boundary else ():
        head, _, body = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]*)"', head)
        if name:
            yield name.group(1).decode(errors="replace"), body.removesuffix(b"\r\n")


def form_value(data, content_type, schema):
    """A form as an object: JSON where the schema wants more than a text."""
    value = {}
    for name, contents in form_parts(data, content_type):
        member = resolved(schema.get("properties", {}).get(name, {"type": "string"}))
        value[name] = "" if member.get("type") == "string" else parse(contents)
    return value


# ---- one exchange ----

class Exchange:
    """A request, and what it was answered by. `prefixes`: what the configuration puts before paths."""

    def __init__(self, method, target, headers, body, status, answered, data, prefixes=()):
        parts = urllib.parse.urlsplit(target)
        self.method, self.path, self.query = method, parts.path, urllib.parse.parse_qs(parts.query, keep_blank_values=True)
        self.headers = {key.lower(): value for key, value in (headers or {}).items()}
        self.body, self.status, self.answered, self.data = body, status, answered, data
        for prefix in prefixes:
            if prefix and self.path.startswith(prefix):
                self.path = self.path[len(prefix):]

    def fail(self, text):
        raise Mismatch(f"{self.method} {self.path} {self.status}: {text}")

    # ---- the request ----

    def request_problem(self, operation, place):
        """What is not as described; None: nothing."""
        return self.parameter_problem(operation) or self.body_problem(operation, place)

    def parameter_problem(self, operation):
        for parameter in map(resolved, operation.get("parameters", ())):
            name, schema = parameter["name"], parameter["schema"]
            sent = self.query.get(name, ()) if parameter["in"] == "query" else \
                [self.headers[name.lower()]] if parameter["in"] == "header" and name.lower() in self.headers else ()
            if parameter.get("required") and parameter["in"] == "header" and not sent:
                return f"no header {name}"
            if len(sent) > 1:
                return f"{name} twice"
            if schema.get("type") == "integer" and any(not re.fullmatch("[0-9]+", value) for value in sent):
                return f"{name} is no number"
        return None

    def body_problem(self, operation, place):
        described = resolved(operation.get("requestBody", {}))
        if not described:
            return None
        if self.body is None or isinstance(self.body, (bytes, str)) and not self.body:
            return "no body" if described.get("required") else None
        content, kind = described["content"], media_type(self.headers)
        key = kind if kind in content else "application/json" if kind.endswith("+json") and "application/json" in content else \
            "*/*" if "*/*" in content else None
        if not key:
            return f"{kind or 'no media type'} instead of {list(content)}"
        return self.content_problem(key, content[key]["schema"], (*place, "requestBody", "content", key, "schema"))

    def content_problem(self, key, schema, place):
        data = self.body.encode() if isinstance(self.body, str) else self.body
        if "content-encoding" in self.headers or not isinstance(data, (bytes, bytearray)) or len(data) > MOST or \
                resolved(schema).get("type") == "string":
            return None
        try:
            if key == FIELDS:
                value = dict(urllib.parse.parse_qsl(data.decode(), keep_blank_values=True))
            elif key == FORM:
                value = form_value(data, self.headers["content-type"], schema)
            else:
                value = parse(data)
        except ValueError as e:
            return str(e)
        return complain(place, value)

    # ---- the answer ----

    def response(self, operation, place):
        """The response of the document, and its place."""
        responses, status = operation["responses"], str(self.status)
        if status in responses:
            return resolved(responses[status]), (*place, "responses", status)
        default = resolved(responses["default"])
        if self.status in default["x-statuses"]:
            return default, (*place, "responses", "default")
        if self.status in ANYWHERE and not self.data:
            return {}, None
        return self.fail(f"the status is not one of {[*responses, *default['x-statuses']]}")

    def check_answer(self, operation, place):
        response, place = self.response(operation, place)
        for name, header in response.get("headers", {}).items():
            if resolved(header).get("required") and name not in self.answered:
                self.fail(f"no header {name}")
        if not self.data:
            return
        content, kind = response.get("content", {}), media_type(self.answered)
        key = kind if kind in content else "*/*" if "*/*" in content else None
        if not key:
            self.fail(f"a body of {kind or 'no media type'}, described are {list(content)}: {self.data[:200]!r}")
        self.check_body(resolved(content[key]["schema"]), (*place, "content", key, "schema"))

    def check_body(self, schema, place):
        if schema.get("contentMediaType") or self.answered.get("content-encoding", "gzip") != "gzip":
            return
        data = gzip.decompress(self.data) if self.answered.get("content-encoding") == "gzip" else self.data
        if len(data) > MOST:
            return
        try:
            value = data.decode() if schema.get("type") == "string" else parse(data)
        except ValueError as e:
            self.fail(f"the body cannot be read: {e}")
        problem = complain(place, value)
        if problem:
            self.fail(f"the answer is not as described: {problem}")

    # ---- all ----

    def check_operation(self, path, method):
        operation, place = path.item[method], ("paths", path.template, method)
        self.check_answer(operation, place)
        problem = self.status < 400 and self.request_problem(operation, place)
        if problem and not self.is_failed_job():
            self.fail(f"the request is not as described, but it was not refused: {problem}")

    def is_failed_job(self):
        return self.data.startswith(b'{"status":"failed"')

    def check_unknown(self, what):
        """A path or method that nobody has."""
        if self.status == PREFLIGHT and self.method == "OPTIONS":
            return
        refused = referred("#/components/responses/Refused")["x-statuses"]
        if self.status not in (*ANYWHERE, *refused):
            self.fail(f"{what} is not in the document")
        if self.data and media_type(self.answered) == "application/json":
            self.check_some_error()

    def check_some_error(self):
        value = parse(self.data)
        names = ("Detail", "MozillaFailure", "StoreFailure", "SymbfileFailure")
        if all(complain(("components", "schemas", name), value) for name in names):
            self.fail(f"no error that is described: {self.data[:200]!r}")

    def check(self):
        found, method = places(self.path), "get" if self.method == "HEAD" else self.method.lower()
        known, problem = [path for path in found if method in path.item], None
        if not known:
            self.check_unknown("the method" if found else "the path")
        for path in known:
            try:
                return self.check_operation(path, method)
            except Mismatch as e:
                problem = problem or e
        if problem:
            raise problem


checks = {"exchanges": 0}
lock = threading.Lock()


def check(*about):
    with lock:
        checks["exchanges"] += 1
    Exchange(*about).check()
