/* `symloom stress`: converts the workloads of the YAML file to requests that can be repeated:
 *
 *     workloads:
 *       - concurrency: 10
 *         minidump: crash.dmp
 *       - concurrency: 2
 *         js: {source: lookup.json, event: event.json} */
#include "cli/stress/stress.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/grow.h"
#include "base/json.h"
#include "config/tree.h"

/* Appends the contents of a file. */
static enum sl_code append_file(const char *path, struct sl_buf *out, struct sl_error *error)
{
    struct sl_mapping mapping;
    enum sl_code code = sl_map_file(path, &mapping, error);
    if (code != SL_OK)
        return code;
    sl_buf_add(out, mapping.bytes.data, mapping.bytes.size);
    sl_unmap(&mapping);
    return out->failed ? sl_fail(error, SL_BUSY, "out of memory") : SL_OK;
}

/* ---- bodies ---- */

/* Copies the list of frames in reverse order: Sentry's events have callers first, requests callees first. */
static void put_reversed(struct sl_json *j, struct sl_json_writer *w)
{
    struct sl_str key, *frames = NULL;
    size_t count = 0, capacity = 0;
    sl_json_begin_array(w);
    bool good = sl_json_array(j);
    while (good && sl_json_next(j, &key))
        if (!sl_grow_in_arena(j->arena, &frames, &capacity, count + 1, sizeof *frames))
            good = sl_json_no_memory(j);
        else
            count += sl_json_value(j, &frames[count]);
    while (count)
        sl_json_put_raw(w, frames[--count]);
    sl_json_end_array(w);
}

/* Copies a JSON object from `j` to `w`; the value of the member `name` is read and written by `put` instead. */
static void put_object(struct sl_json *j, struct sl_str name, void (*put)(struct sl_json *j, struct sl_json_writer *w),
                       struct sl_json_writer *w)
{
    struct sl_str key, value;
    if (!sl_json_object(j)) {
        sl_json_fail(j, "expected a JSON object");
        return;
    }
    sl_json_begin_object(w);
    while (sl_json_next(j, &key)) {
        sl_json_put_key_str(w, key);
        if (sl_str_equal(key, name))
            put(j, w);
        else if (sl_json_value(j, &value))
            sl_json_put_raw(w, value);
    }
    sl_json_end_object(w);
}

/* Copies the list of stacks, each with its frames in reverse order. */
static void put_stacktraces(struct sl_json *j, struct sl_json_writer *w)
{
    struct sl_str key;
    sl_json_begin_array(w);
    if (sl_json_array(j))
        while (sl_json_next(j, &key))
            put_object(j, SL_STR("frames"), put_reversed, w);
    sl_json_end_array(w);
}

/* Converts the Sentry event in the file `path` to the body of a request to /symbolicate: the same members, but the frames of each stack in
 * reverse order, since requests have callees first. */
static enum sl_code event_body(const char *path, struct sl_arena *arena, struct sl_buf *body, struct sl_error *error)
{
    struct sl_buf text = {0};
    enum sl_code code = append_file(path, &text, error);
    struct sl_json j = sl_json(sl_buf_view(&text), arena, false);
    if (code == SL_OK) {
        struct sl_json_writer w = sl_json_writer(body);
        put_object(&j, SL_STR("stacktraces"), put_stacktraces, &w);
        if (!sl_json_end(&j))
            code = sl_fail(error, sl_json_code(&j), "%s: %s", path, j.problem ? j.problem : "not valid JSON");
    }
    sl_buf_free(&text);
    return code;
}

#define BOUNDARY "symloom-stress-5a1d0c7e"

/* Writes a multipart form whose only part, called `part`, is the file `path`. */
static enum sl_code form_body(const char *path, const char *part, struct sl_buf *body, struct sl_error *error)
{
    sl_buf_printf(body,
                  "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"crash\"\r\n"
                  "Content-Type: application/octet-stream\r\n\r\n",
                  part);
    enum sl_code code = append_file(path, body, error);
    sl_buf_cstr(body, "\r\n--" BOUNDARY "--\r\n");
    return code;
}

/* ---- kinds ---- */

static const struct stress_kind {
    const char *name, *path,
        *part;         /* path: of the URL, "": as the workload says; part: the body is a form with this part */
    bool event, plain; /* event: the body is an event to be converted; plain: the body is the file, unchanged */
    bool scoped, completes, uploads; /* as in struct stress_workload */
} kinds[] = {
    {"event", "/symbolicate", NULL, true, false, true, true, false},
    {"minidump", "/minidump", "upload_file_minidump", false, false, true, true, false},
    {"apple", "/applecrashreport", "apple_crash_report", false, false, true, true, false},
    {"jvm", "/symbolicate-jvm", NULL, false, true, true, true, false},
    {"mozilla", "/symbolicate/v5", NULL, false, true, false, false, false},
    {"symbfile", "/api/symbols-ranges", NULL, false, true, false, false, true},
    {"proxy", "", NULL, false, false, false, false, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Builds the request of a workload, whose `file` is a path of this machine or, for kind proxy, the path to request from the service. All
 * its requests send the same bytes. */
static enum sl_code fill_workload(const struct stress_kind *kind, const char *file, struct sl_arena *arena,
                                  struct stress_workload *workload, struct sl_error *error)
{
    workload->name = kind->name;
    workload->path = *kind->path ? kind->path : file; /* proxy: the path to request */
    workload->scoped = kind->scoped;
    workload->completes = kind->completes;
    workload->uploads = kind->uploads;
    workload->type = kind->part      ? "multipart/form-data; boundary=" BOUNDARY
                     : kind->uploads ? "application/octet-stream"
                     : *kind->path   ? "application/json"
                                     : NULL;
    if (kind->part)
        return form_body(file, kind->part, &workload->body, error);
    if (kind->event)
        return event_body(file, arena, &workload->body, error);
    return kind->plain ? append_file(file, &workload->body, error) : SL_OK;
}

/* ---- scripts ---- */

/* Makes the body of a request to /symbolicate-js: the event in the file `path`, but with the emulated Sentry at the URL `lookup` as its
 * source, and with a release, without which no files are looked up by name. */
static enum sl_code script_body(const char *path, const char *lookup, struct sl_arena *arena, struct sl_buf *body,
                                struct sl_error *error)
{
    struct sl_buf text = {0};
    struct sl_str key, value;
    enum sl_code code = append_file(path, &text, error);
    struct sl_json j = sl_json(sl_buf_view(&text), arena, false);
    struct sl_json_writer w = sl_json_writer(body);
    sl_json_begin_object(&w);
    sl_json_member_object(&w, "source");
    sl_json_member_str(&w, "id", SL_STR("stress"));
    sl_json_member_str(&w, "url", sl_str(lookup));
    sl_json_member_str(&w, "token", SL_STR("stress"));
    sl_json_end_object(&w);
    sl_json_member_str(&w, "release", SL_STR("some-release"));
    if (code == SL_OK && sl_json_object(&j))
        while (sl_json_next(&j, &key))
            if (sl_json_value(&j, &value) && !sl_str_equal(key, SL_STR("source")) &&
                !sl_str_equal(key, SL_STR("release"))) {
                sl_json_put_key_str(&w, key);
                sl_json_put_raw(&w, value);
            }
    sl_json_end_object(&w);
    if (code == SL_OK && !sl_json_end(&j))
        code = sl_fail(error, sl_json_code(&j), "%s: %s", path, j.problem ? j.problem : "not valid JSON");
    sl_buf_free(&text);
    return code;
}

/* Returns the string member `name` of a map, copied into the arena; NULL if there is none, or out of memory. */
static const char *member_text(const struct value *map, const char *name, struct sl_arena *arena)
{
    const struct value *value = value_get(map, name);
    return value && value->type == VALUE_STRING ? sl_arena_strndup(arena, value->string.data, value->string.size)
                                                : NULL;
}

/* Fills in a workload of kind js, {source: FILE, event: FILE}: the service gets scripts and source maps from the emulated Sentry at `sink`,
 * HOST:PORT, which answers lookups with the contents of `source`. `number`: index of the workload. */
static enum sl_code fill_scripts(const struct value *js, const char *sink, size_t number, struct sl_arena *arena,
                                 struct stress_workload *workload, struct sl_error *error)
{
    const char *source = member_text(js, "source", arena), *event = member_text(js, "event", arena);
    struct sl_buf answers = {0};
    char lookup[128];
    if (!source || !event)
        return sl_fail(error, SL_MALFORMED, "workloads file, line %u: js needs 'source' and 'event'", js->line);
    const char *slash = strrchr(source, '/');
    snprintf(lookup, sizeof lookup, "http://%s/scripts/%zu/lookup", sink, number);
    *workload = (struct stress_workload){.name = "js",
                                         .concurrency = workload->concurrency,
                                         .path = "/symbolicate-js",
                                         .type = "application/json",
                                         .scoped = true,
                                         .completes = true};
    /* the files are in the directory of the lookup's answer */
    workload->directory = slash ? sl_arena_strndup(arena, source, (size_t)(slash - source)) : ".";
    enum sl_code code = append_file(source, &answers, error);
    if (code == SL_OK)
        workload->answers = sl_str(sl_arena_strndup(arena, (const char *)answers.data, answers.size));
    if (code == SL_OK && (!workload->directory || !workload->answers.data))
        code = sl_fail(error, SL_BUSY, "out of memory");
    sl_buf_free(&answers);
    return code == SL_OK ? script_body(event, lookup, arena, &workload->body, error) : code;
}

/* ---- the list ---- */

/* Reads a workload from its YAML map; `number` is its index in the list, `sink` the HOST:PORT of the emulated Sentry. */
static enum sl_code read_workload(const struct value *map, const char *sink, size_t number, struct sl_arena *arena,
                                  struct stress_workload *workload, struct sl_error *error)
{
    const struct value *concurrency = value_get(map, "concurrency"), *js = value_get(map, "js");
    workload->concurrency = concurrency && concurrency->type == VALUE_INT ? (unsigned)concurrency->integer : 1;
    if (workload->concurrency == 0 || workload->concurrency > 1000)
        return sl_fail(error, SL_MALFORMED, "workloads file, line %u: concurrency must be 1 to 1000", map->line);
    if (js)
        return fill_scripts(js, sink, number, arena, workload, error);
    for (size_t i = 0; i < KINDS; i++) {
        const struct value *file = value_get(map, kinds[i].name);
        if (file && file->type == VALUE_STRING) {
            const char *path = sl_arena_strndup(arena, file->string.data, file->string.size);
            return path ? fill_workload(&kinds[i], path, arena, workload, error)
                        : sl_fail(error, SL_BUSY, "out of memory");
        }
    }
    return sl_fail(error, SL_MALFORMED,
                   "workloads file, line %u: expected one of event, minidump, apple, js, jvm, mozilla, symbfile, proxy",
                   map->line);
}

enum sl_code stress_read_workloads(const char *path, const char *sink, struct sl_arena *arena,
                                   struct stress_workload **workloads, size_t *count, struct sl_error *error)
{
    struct sl_buf text = {0};
    struct value root;
    struct value_problems problems = {.arena = arena};
    bool empty;
    enum sl_code code = append_file(path, &text, error);
    if (code == SL_OK && !yaml_read(arena, sl_buf_view(&text), &root, &empty, &problems))
        code = sl_fail(error, SL_MALFORMED, "%s: the workloads file is not a YAML map", path);
    const struct value *list = code == SL_OK ? value_get(&root, "workloads") : NULL;
    if (code == SL_OK && (!list || list->type != VALUE_LIST || !list->count))
        code = sl_fail(error, SL_MALFORMED, "%s: the list 'workloads' is missing", path);
    *count = code == SL_OK ? list->count : 0;
    *workloads = SL_ARENA_ARRAY(arena, struct stress_workload, *count + 1);
    if (!*workloads) {
        *count = 0;
        code = sl_fail(error, SL_BUSY, "out of memory");
    }
    for (size_t i = 0; i < *count; i++)
        (*workloads)[i] = (struct stress_workload){.name = NULL};
    for (size_t i = 0; i < *count && code == SL_OK; i++)
        code = read_workload(&list->items[i], sink, i, arena, &(*workloads)[i], error);
    sl_buf_free(&text);
    return code;
}
