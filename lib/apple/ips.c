/* Crash reports in JSON (`.ips` files). The members of the report's object come in any order and refer to each other: first the text of
 * each member is recorded, then the members are read in the order needed. Members of an unexpected type are treated as absent. */
#include "apple/impl.h"

#include "base/buf.h"
#include "base/json_fields.h"

struct ips_body { /* members as JSON text; data NULL = absent */
    struct sl_str process, path, bundle, incident, parent, launch, uptime, translated, region, termination;
    struct sl_str exception_reason, capture_time, os_version, cpu_type, model, exception, information, faulting_thread;
    struct sl_str threads, images, exception_trace;
};

/* The first EXTRAS fields of this table are also copied, as JSON text, to `extras` of struct sl_crash. */
enum { EXTRAS = 11 };
static const struct sl_field body_fields[] = {
    SL_FIELD(RAW, false, ips_body, process, "procName"),
    SL_FIELD(RAW, false, ips_body, path, "procPath"),
    SL_FIELD(RAW, false, ips_body, bundle, "bundleInfo"),
    SL_FIELD(RAW, false, ips_body, incident, "incident"),
    SL_FIELD(RAW, false, ips_body, parent, "parentProc"),
    SL_FIELD(RAW, false, ips_body, launch, "procLaunch"),
    SL_FIELD(RAW, false, ips_body, uptime, "uptime"),
    SL_FIELD(RAW, false, ips_body, translated, "translated"),
    SL_FIELD(RAW, false, ips_body, region, "vmRegionInfo"),
    SL_FIELD(RAW, false, ips_body, termination, "termination"),
    SL_FIELD(RAW, false, ips_body, exception_reason, "exceptionReason"),
    SL_FIELD(RAW, false, ips_body, capture_time, "captureTime"),
    SL_FIELD(RAW, false, ips_body, os_version, "osVersion"),
    SL_FIELD(RAW, false, ips_body, cpu_type, "cpuType"),
    SL_FIELD(RAW, false, ips_body, model, "modelCode"),
    SL_FIELD(RAW, false, ips_body, exception, "exception"),
    SL_FIELD(RAW, false, ips_body, information, "asi"),
    SL_FIELD(RAW, false, ips_body, faulting_thread, "faultingThread"),
    SL_FIELD(RAW, false, ips_body, threads, "threads"),
    SL_FIELD(RAW, false, ips_body, images, "usedImages"),
    SL_FIELD(RAW, false, ips_body, exception_trace, "lastExceptionBacktrace"),
    SL_FIELDS_END,
};

struct ips_image {
    struct sl_opt_u64 base, size;
    struct sl_str uuid, path, name, arch;
};

static const struct sl_field image_fields[] = {
    SL_FIELD(U64, false, ips_image, base, "base"),
    SL_FIELD(U64, false, ips_image, size, "size"),
    SL_FIELD(TEXT, false, ips_image, uuid, "uuid"),
    SL_FIELD(TEXT, false, ips_image, path, "path"),
    SL_FIELD(TEXT, false, ips_image, name, "name"),
    SL_FIELD(TEXT, false, ips_image, arch, "arch"),
    SL_FIELDS_END,
};

struct ips_reader {
    const struct sl_apple_options *options;
    struct sl_arena *arena;
    struct apple_budget *budget;
    struct sl_crash *crash;
    bool no_memory; /* or the budget is used up */
    struct ips_body body;
    struct ips_image *images;
    size_t image_count;
};

/* Returns a JSON reader for the text of a member of the report; for an absent member (data NULL) it reads `null`. */
static struct sl_json member_reader(const struct ips_reader *r, struct sl_str text)
{
    return sl_json(text.data ? text : SL_STR("null"), r->arena, false);
}

/* Records a failure of a JSON reader for a part of the report. The cause can only be lack of memory or of budget: read_ips_body() has found
 * the whole report well-formed. */
static void record_json_failure(struct ips_reader *r, const struct sl_json *j)
{
    r->no_memory |= j->failed;
}

/* Returns a member that is a string; data NULL for anything else. If memory or budget is used up, data is NULL too and r->no_memory is
 * set. */
static struct sl_str member_text(struct ips_reader *r, struct sl_str member)
{
    struct sl_json j = member_reader(r, member);
    struct sl_str text;
    sl_json_text(&j, &text);
    record_json_failure(r, &j);
    return text;
}

/* Records the JSON text of the report's members in r->body, and adds those of the first EXTRAS fields to the crash's extras. False if the
 * document is malformed or memory is short; `j` has the reason. */
static bool read_ips_body(struct ips_reader *r, struct sl_json *j)
{
    struct sl_crash_extra *extras = SL_ARENA_ARRAY(r->arena, struct sl_crash_extra, EXTRAS);
    if (!extras)
        return sl_json_no_memory(j);
    sl_json_read_object(j, body_fields, &r->body); /* `j` keeps a failure: sl_json_end() then returns false */
    for (size_t i = 0; i < EXTRAS; i++) {
        const struct sl_field *field = &body_fields[i]; /* `offset`: the place of its text in r->body */
        struct sl_str value = *(const struct sl_str *)(const void *)((const char *)&r->body + field->offset);
        if (value.data)
            extras[r->crash->extra_count++] = (struct sl_crash_extra){field->key, value};
    }
    r->crash->extras = extras;
    return sl_json_end(j);
}

/* Reads a member of the report that is an object into the struct `out`, which `fields` describes; anything else leaves it unchanged. */
static void member_object(struct ips_reader *r, struct sl_str member, const struct sl_field *fields, void *out)
{
    struct sl_json j = member_reader(r, member);
    sl_json_read_object(&j, fields, out);
    record_json_failure(r, &j);
}

/* ---- images ---- */

/* Returns the path of an image, else its name; data NULL if it has neither. */
static struct sl_str image_file(const struct ips_image *image)
{
    return image->path.size ? image->path : image->name.size ? image->name : (struct sl_str){NULL, 0};
}

/* Reads all images: frames refer to them by index, so none is left out here. */
static void read_images(struct ips_reader *r)
{
    struct sl_json j = member_reader(r, r->body.images);
    struct sl_arena_array images = {.arena = r->arena, .item = sizeof(struct ips_image)};
    if (sl_json_array(&j))
        while (sl_json_next(&j, &(struct sl_str){NULL, 0})) {
            struct ips_image *image = apple_add(&images, r->budget, COST_PER_IMAGE);
            if (image)
                sl_json_read_object(&j, image_fields, image);
            else
                sl_json_no_memory(&j); /* ends the loop */
        }
    record_json_failure(r, &j);
    r->image_count = images.count;
    r->images = sl_arena_array_finish(&images);
    r->no_memory |= !r->images; /* an empty array is not NULL */
}

/* Makes modules of the images that have an id; without one no debug file can be found. */
static void make_modules(struct ips_reader *r)
{
    struct sl_crash *crash = r->crash;
    /* + 1: the loop fills an item before it knows whether the image has an id, so the last image may need one more */
    crash->modules = SL_ARENA_ARRAY(r->arena, struct sl_crash_module, r->image_count + 1);
    r->no_memory |= !crash->modules;
    for (size_t i = 0; !r->no_memory && i < r->image_count; i++) {
        const struct ips_image *image = &r->images[i];
        struct sl_crash_module *module = &crash->modules[crash->module_count];
        *module = (struct sl_crash_module){.address = image->base.value, .size = image->size.value};
        module->code_file = module->debug_file = image_file(image);
        if (!apple_module_id(image->uuid, r->arena, module) || sl_debug_id_is_nil(&module->debug_id))
            continue; /* the next image overwrites it */
        crash->module_count++;
        r->no_memory |= !module->code_id.data; /* apple_module_id() leaves it NULL only when out of memory */
    }
}

/* ---- threads ---- */

struct ips_frame {
    struct sl_opt_u64 offset, index, into, line;
    struct sl_str function, filename;
    bool is_inlined;
};

static const struct sl_field frame_fields[] = {
    SL_FIELD(U64, false, ips_frame, offset, "imageOffset"),   SL_FIELD(TEXT, false, ips_frame, function, "symbol"),
    SL_FIELD(U64, false, ips_frame, into, "symbolLocation"),  SL_FIELD(U64, false, ips_frame, index, "imageIndex"),
    SL_FIELD(TEXT, false, ips_frame, filename, "sourceFile"), SL_FIELD(U64, false, ips_frame, line, "sourceLine"),
    SL_FIELD(FLAG, false, ips_frame, is_inlined, "inline"),   SL_FIELDS_END,
};

/* Reads a frame: its address is the image's base plus `imageOffset`; only that offset if there is no such image or the sum overflows.
 * False if the frame was inlined or has no offset: the caller then leaves it out. */
static bool read_ips_frame(const struct ips_reader *r, struct sl_fields *s, struct sl_crash_frame *frame)
{
    struct ips_frame read = {.is_inlined = false};
    sl_fields_object(s, NULL, frame_fields, &read);
    uint64_t offset = read.offset.value, index = read.index.set ? read.index.value : UINT64_MAX;
    *frame = (struct sl_crash_frame){.address = offset, .function = read.function, .filename = read.filename};
    frame->line = read.line.value <= SL_CRASH_MAX_LINE ? (uint32_t)read.line.value : 0;
    if (index < r->image_count) {
        if (__builtin_add_overflow(r->images[index].base.value, offset, &frame->address))
            frame->address = offset;
        frame->package = image_file(&r->images[index]);
    }
    if (read.into.set && frame->function.size && r->options->names_from_report) /* `into`: offset in the function */
        sl_crash_set_symbol(frame, read.into.value);
    return read.offset.set && !read.is_inlined;
}

/* The sl_field_read of "frames": reads the array, whose path in the document is `at`, into `out`, a struct sl_crash_thread. Leaves
 * inlined frames out, as symbolication adds them again. False if the value is no array, or if memory or budget is used up. */
static bool read_ips_frames(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct ips_reader *r = s->context;
    struct sl_crash_thread *thread = out;
    struct sl_arena_array frames = {.arena = r->arena, .item = sizeof(struct sl_crash_frame)};
    if (!sl_fields_open(s, at, SL_JSON_ARRAY, "a sequence"))
        return false;
    while (sl_json_next(s->json, &(struct sl_str){NULL, 0})) {
        struct sl_crash_frame frame, *added;
        if (!read_ips_frame(r, s, &frame))
            continue;
        if ((added = apple_add(&frames, r->budget, COST_PER_FRAME)))
            *added = frame;
        else
            sl_json_no_memory(s->json); /* ends the loop */
    }
    thread->frame_count = frames.count;
    thread->frames = sl_arena_array_finish(&frames);
    return thread->frames || sl_json_no_memory(s->json); /* an empty array is not NULL */
}

/* Reads `value` from a register's object like {"value": 1, ...}; false if it has none. */
static bool read_register(struct sl_json *j, uint64_t *value)
{
    static const struct sl_field fields[] = {{.key = SL_STR("value"), .type = SL_FIELD_U64}, SL_FIELDS_END};
    struct sl_opt_u64 number = {.set = false};
    sl_json_read_object(j, fields, &number);
    *value = number.value;
    return number.set;
}

/* Adds a register. `j` fails if memory or budget is used up. It also fails if `name` has no data: then the caller could not allocate the
 * name. */
static void add_register(struct ips_reader *r, struct sl_json *j, struct sl_arena_array *registers, struct sl_str name,
                         uint64_t value)
{
    struct sl_crash_register *added = apple_add(registers, r->budget, COST_PER_REGISTER);
    if (added && name.data)
        *added = (struct sl_crash_register){name, value};
    else
        sl_json_no_memory(j);
}

/* Reads the array of "x": [{"value": 1}, ...] with the name "x": element i is register x<i>. */
static void read_register_array(struct ips_reader *r, struct sl_json *j, struct sl_arena_array *registers,
                                struct sl_str name)
{
    uint64_t value;
    if (!sl_json_array(j))
        return;
    for (size_t i = 0; sl_json_next(j, &(struct sl_str){NULL, 0}); i++)
        if (read_register(j, &value)) {
            struct sl_buf text = {.budget = r->arena->budget};
            sl_buf_str(&text, name);
            sl_buf_printf(&text, "%zu", i);
            add_register(r, j, registers, sl_buf_move_to_arena(&text, r->arena), value);
        }
}

/* The sl_field_read of "threadState": reads the registers into `out`, a struct sl_crash_thread; `at` is the path of the value in the
 * document. A member is one register, like "pc": {"value": 1}, or the array of numbered ones. False if the value is no object, or when
 * memory or budget is used up. */
static bool read_thread_state(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    struct ips_reader *r = s->context;
    struct sl_crash_thread *thread = out;
    struct sl_arena_array registers = {.arena = r->arena, .item = sizeof(struct sl_crash_register)};
    struct sl_json *j = s->json;
    struct sl_str name;
    uint64_t value;
    if (!sl_fields_open(s, at, SL_JSON_OBJECT, "a map"))
        return false;
    while (sl_json_next(j, &name))
        if (sl_json_peek(j) == SL_JSON_ARRAY)
            read_register_array(r, j, &registers, name);
        else if (read_register(j, &value))
            add_register(r, j, &registers, name, value);
    size_t count = registers.count;
    struct sl_crash_register *items = sl_arena_array_finish(&registers);
    return (items && sl_crash_set_registers(thread, items, count, r->arena)) || sl_json_no_memory(j);
}

struct ips_thread {
    struct sl_crash_thread crash;
    struct sl_str queue;
    bool triggered;
};

static const struct sl_field thread_fields[] = {
    SL_FIELD(TEXT, false, ips_thread, crash.name, "name"),
    SL_FIELD(TEXT, false, ips_thread, queue, "queue"),
    SL_FIELD(FLAG, false, ips_thread, triggered, "triggered"),
    SL_FIELD_BY(false, ips_thread, crash, "threadState", read_thread_state),
    SL_FIELD_BY(false, ips_thread, crash, "frames", read_ips_frames),
    SL_FIELDS_END,
};

/* Reads a thread into `*thread`. One without a name gets that of its dispatch queue; the one with "triggered": true has crashed. */
static void read_ips_thread(struct sl_fields *s, struct ips_thread *thread)
{
    sl_fields_object(s, NULL, thread_fields, thread);
    if (!thread->crash.name.size)
        thread->crash.name = thread->queue.size ? thread->queue : (struct sl_str){NULL, 0}; /* an empty name is none */
    if (thread->triggered)
        thread->crash.requesting = SL_REQUESTING_THREAD_YES;
}

/* Reads the threads, and "lastExceptionBacktrace" as one more thread at the end. "faultingThread" is the index of the crashed thread. */
static void read_threads(struct ips_reader *r)
{
    struct sl_arena_array threads = {.arena = r->arena, .item = sizeof(struct sl_crash_thread)};
    struct sl_json j = member_reader(r, r->body.faulting_thread);
    struct sl_fields s = {.json = &j, .context = r, .quiet = true}; /* reads from `j`, which gets other texts below */
    uint64_t faulting;
    bool is_known = sl_json_u64(&j, &faulting);
    j = member_reader(r, r->body.threads);
    if (sl_json_array(&j))
        while (sl_json_next(&j, &(struct sl_str){NULL, 0})) {
            struct ips_thread thread = {.crash = {.id = threads.count, .has_id = true}};
            struct sl_crash_thread *added;
            thread.crash.requesting =
                is_known && threads.count == faulting ? SL_REQUESTING_THREAD_YES : SL_REQUESTING_THREAD_NO;
            read_ips_thread(&s, &thread);
            if ((added = apple_add(&threads, r->budget, COST_PER_THREAD)))
                *added = thread.crash;
            else
                sl_json_no_memory(&j); /* ends the loop */
        }
    record_json_failure(r, &j);
    if (r->body.exception_trace.data) {
        struct sl_crash_thread *thread = apple_add(&threads, r->budget, COST_PER_THREAD);
        j = member_reader(r, r->body.exception_trace);
        if (thread) {
            thread->name = SL_STR(SL_APPLE_LAST_EXCEPTION);
            thread->requesting = SL_REQUESTING_THREAD_NO;
            read_ips_frames(&s, NULL, thread);
            threads.count -= !thread->frame_count; /* a backtrace without frames is no thread */
        } else
            sl_json_no_memory(&j);
        record_json_failure(r, &j);
    }
    r->crash->thread_count = threads.count;
    r->crash->threads = sl_arena_array_finish(&threads);
    r->no_memory |= !r->crash->threads;
}

/* ---- causes, system and extras ---- */

/* Appends the next value if it is a string, or all strings in it if it is an array or object, each on a line of its own. The JSON reader
 * limits the depth of the document and so of this recursion. */
static void add_texts(struct sl_json *j, struct sl_buf *lines)
{
    struct sl_str text;
    enum sl_json_type type = sl_json_peek(j);
    if (type == SL_JSON_ARRAY || type == SL_JSON_OBJECT) {
        sl_json_enter(j);
        while (sl_json_next(j, &text))
            add_texts(j, lines);
    } else if (sl_json_text(j, &text)) {
        if (lines->size)
            sl_buf_u8(lines, '\n');
        sl_buf_str(lines, text);
    }
}

/* Moves the text of `lines` to the arena and frees `lines`. Returns data NULL if there is no text. If memory is short, or was so while the
 * text was written (lines->failed), data is NULL too and r->no_memory is set. */
static struct sl_str move_texts_to_arena(struct ips_reader *r, struct sl_buf *lines)
{
    if (!lines->size && !lines->failed) {
        sl_buf_free(lines);
        return (struct sl_str){NULL, 0};
    }
    struct sl_str text = sl_buf_move_to_arena(lines, r->arena);
    r->no_memory |= !text.data;
    return text;
}

struct ips_termination {
    struct sl_str domain, code, indicator;
    struct sl_buf details;
};

/* The sl_field_read of a termination's "code": reports have it as a number or as a string; it becomes a text. */
static bool read_termination_code(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    return sl_json_peek(s->json) == SL_JSON_NUMBER ? sl_json_number(s->json, out) : sl_fields_text(s, at, out);
}

/* The sl_field_read of "details" and "reasons": appends every string in the value to `out`, a struct sl_buf, a line each. */
static bool read_details(struct sl_fields *s, const struct sl_json_path *at, void *out)
{
    add_texts(s->json, out);
    return true;
}

static const struct sl_field termination_fields[] = {
    SL_FIELD_BY(false, ips_termination, code, "code", read_termination_code),
    SL_FIELD(TEXT, false, ips_termination, domain, "namespace"),
    SL_FIELD(TEXT, false, ips_termination, indicator, "indicator"),
    SL_FIELD_BY(false, ips_termination, details, "details", read_details),
    SL_FIELD_BY(false, ips_termination, details, "reasons", read_details),
    SL_FIELDS_END,
};

/* Returns `<namespace> <code> <indicator>`, without what is empty; data NULL if there is no namespace. */
static struct sl_str termination_reason(struct ips_reader *r, const struct ips_termination *t)
{
    struct sl_buf text = {.budget = r->arena->budget};
    if (!t->domain.size)
        return (struct sl_str){NULL, 0};
    sl_buf_str(&text, t->domain);
    if (t->code.size)
        sl_buf_printf(&text, " " SL_STR_FMT, SL_STR_ARG(t->code));
    if (t->indicator.size)
        sl_buf_printf(&text, " " SL_STR_FMT, SL_STR_ARG(t->indicator));
    return move_texts_to_arena(r, &text);
}

/* The member "exception" (raised by the system) or "exceptionReason" (thrown by a language runtime). Only "exceptionReason" has `name` and
 * `composed`. */
struct ips_exception {
    struct sl_str type, signal, message, subtype, codes, name, composed;
};

static const struct sl_field exception_fields[] = {
    SL_FIELD(TEXT, false, ips_exception, codes, "codes"),
    SL_FIELD(TEXT, false, ips_exception, message, "message"),
    SL_FIELD(TEXT, false, ips_exception, type, "type"),
    SL_FIELD(TEXT, false, ips_exception, signal, "signal"),
    SL_FIELD(TEXT, false, ips_exception, subtype, "subtype"),
    SL_FIELD(TEXT, false, ips_exception, name, "name"),
    SL_FIELD(TEXT, false, ips_exception, composed, "composed_message"),
    SL_FIELDS_END,
};

/* Adds the thrown exception and the termination to `causes`; the caller has set its other members. Returns all these causes, a line
 * each. */
static struct sl_str all_causes(struct ips_reader *r, struct apple_causes *causes,
                                const struct ips_termination *termination)
{
    struct ips_exception thrown = {.type = {NULL, 0}};
    struct sl_buf text = {.budget = r->arena->budget};
    member_object(r, r->body.exception_reason, exception_fields, &thrown);
    causes->exception = thrown.name.size ? thrown.name : thrown.type;
    causes->reason = thrown.composed;
    causes->termination = (struct apple_termination){termination->domain, termination->code, termination->indicator};
    apple_put_causes(causes, &text);
    return move_texts_to_arena(r, &text);
}

/* Returns `<type> (<signal>)`; `type` alone if one of them is empty. */
static struct sl_str exception_reason(struct ips_reader *r, struct sl_str type, struct sl_str signal)
{
    struct sl_buf text = {.budget = r->arena->budget};
    if (!type.size || !signal.size)
        return type;
    sl_buf_printf(&text, SL_STR_FMT " (" SL_STR_FMT ")", SL_STR_ARG(type), SL_STR_ARG(signal));
    return move_texts_to_arena(r, &text);
}

/* Sets the crash's reason (the exception, else the termination) and its details. With the option all_causes these are all causes. Without
 * it, or if that gives no text, they are the first of these that the report has: application information, the exception's message, its
 * subtype, the termination's details, the exception's codes. */
static void read_reason(struct ips_reader *r)
{
    struct ips_exception exception = {.type = {NULL, 0}};
    struct ips_termination termination = {.details = {.budget = r->arena->budget}};
    struct sl_buf information = {.budget = r->arena->budget};
    member_object(r, r->body.exception, exception_fields, &exception);
    member_object(r, r->body.termination, termination_fields, &termination);
    r->crash->reason = exception.type.size ? exception_reason(r, exception.type, exception.signal)
                                           : termination_reason(r, &termination);
    struct sl_json j = member_reader(r, r->body.information);
    add_texts(&j, &information);
    record_json_failure(r, &j);
    /* from the best to the worst; the first that is not empty is used */
    const struct sl_str details[] = {move_texts_to_arena(r, &information), exception.message, exception.subtype,
                                     move_texts_to_arena(r, &termination.details), exception.codes};
    struct apple_causes causes = {.information = details[0],
                                  .message = details[1],
                                  .subtype = details[2],
                                  .codes = details[4],
                                  .explanation = details[3]};
    if (r->options->all_causes)
        r->crash->details = all_causes(r, &causes, &termination);
    for (size_t i = 0; !r->crash->details.size && i < sizeof details / sizeof *details; i++)
        r->crash->details = details[i];
    if (!r->crash->details.size) /* NULL, not an empty text, means that there are none */
        r->crash->details = (struct sl_str){NULL, 0};
}

struct ips_os {
    struct sl_str train, build;
};

static const struct sl_field os_fields[] = {
    SL_FIELD(TEXT, false, ips_os, train, "train"),
    SL_FIELD(TEXT, false, ips_os, build, "build"),
    SL_FIELDS_END,
};

/* Reads the operating system from "osVersion" of the body. The header (the JSON line before it) gives name and version if the body has no
 * name, and the build if the body has none. The architecture is that of "cpuType", else of the first image with a known one. */
static void read_system(struct ips_reader *r, const struct apple_header *header)
{
    struct sl_crash_system *system = &r->crash->system;
    struct ips_os os = {.train = {NULL, 0}};
    member_object(r, r->body.os_version, os_fields, &os);
    apple_os(header->os_version, true, system); /* true: splits names of any system, not only "Mac OS X" */
    if (os.train.size) {
        struct sl_str build = system->os_build;
        *system =
            (struct sl_crash_system){.arch = SL_ARCH_UNKNOWN}; /* name and version of the header are not mixed in */
        apple_os(os.train, true, system);
        if (!system->os_build.size && build.size)
            system->os_build = build;
    }
    if (os.build.size)
        system->os_build = os.build;
    system->device_model = member_text(r, r->body.model);
    system->arch = apple_arch(member_text(r, r->body.cpu_type));
    for (size_t i = 0; system->arch == SL_ARCH_UNKNOWN && i < r->image_count; i++)
        system->arch = sl_arch_parse(r->images[i].arch);
}

bool apple_read_ips(struct sl_str body, const struct apple_header *header, const struct sl_apple_options *options,
                    struct sl_arena *arena, struct apple_budget *budget, struct sl_crash *crash, struct sl_json *failed)
{
    struct ips_reader r = {.options = options, .arena = arena, .budget = budget, .crash = crash};
    *failed = sl_json(body, arena, false);
    if (!read_ips_body(&r, failed))
        return false;
    read_images(&r);
    if (!r.no_memory)
        make_modules(&r);
    if (!r.no_memory)
        read_threads(&r);
    if (!r.no_memory) {
        read_reason(&r);
        read_system(&r, header);
    }
    crash->has_timestamp = apple_time(member_text(&r, r.body.capture_time), &crash->timestamp) ||
                           apple_time(header->timestamp, &crash->timestamp);
    return !r.no_memory || sl_json_no_memory(failed); /* false, with failed->busy set */
}
