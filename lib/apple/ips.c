/* JSON reports. Members come in any order and refer to each other, so the body is looked through once for where its members
 * are, and then they are read. Members of another type than theirs count as absent. */
#include "apple/impl.h"

#include "base/buf.h"

enum ips_member {
    IPS_CAPTURE_TIME,
    IPS_OS_VERSION,
    IPS_CPU_TYPE,
    IPS_MODEL,
    IPS_EXCEPTION,
    IPS_TERMINATION,
    IPS_INFORMATION,
    IPS_FAULTING_THREAD,
    IPS_THREADS,
    IPS_IMAGES,
    IPS_EXCEPTION_TRACE,
    IPS_EXCEPTION_REASON,
    IPS_MEMBERS
};

static const struct sl_str member_names[IPS_MEMBERS] = {
    [IPS_CAPTURE_TIME] = SL_STR("captureTime"),
    [IPS_OS_VERSION] = SL_STR("osVersion"),
    [IPS_CPU_TYPE] = SL_STR("cpuType"),
    [IPS_MODEL] = SL_STR("modelCode"),
    [IPS_EXCEPTION] = SL_STR("exception"),
    [IPS_TERMINATION] = SL_STR("termination"),
    [IPS_INFORMATION] = SL_STR("asi"),
    [IPS_FAULTING_THREAD] = SL_STR("faultingThread"),
    [IPS_THREADS] = SL_STR("threads"),
    [IPS_IMAGES] = SL_STR("usedImages"),
    [IPS_EXCEPTION_TRACE] = SL_STR("lastExceptionBacktrace"),
    [IPS_EXCEPTION_REASON] = SL_STR("exceptionReason"),
};

/* What a crash has as its extras, as it is written. */
static const struct sl_str extra_names[] = {
    SL_STR("procName"),     SL_STR("procPath"),    SL_STR("bundleInfo"),      SL_STR("incident"),
    SL_STR("parentProc"),   SL_STR("procLaunch"),  SL_STR("uptime"),          SL_STR("translated"),
    SL_STR("vmRegionInfo"), SL_STR("termination"), SL_STR("exceptionReason"),
};

enum { EXTRAS = sizeof extra_names / sizeof *extra_names };

struct ips_image {
    uint64_t base, size;
    struct sl_str uuid, path, name, arch;
};

struct ips_reader {
    const struct sl_apple_options *options;
    struct sl_arena *arena;
    struct apple_room *room;
    struct sl_crash *crash;
    bool no_memory;                     /* or no room */
    struct sl_str members[IPS_MEMBERS]; /* as written; data NULL = absent */
    struct ips_image *images;
    size_t image_count;
};

static struct sl_json member_reader(const struct ips_reader *r, enum ips_member member)
{
    struct sl_str text = r->members[member];
    return sl_json(text.data ? text : SL_STR("null"), r->arena, false);
}

/* To be called with readers of parts of the body, which is known to be well-formed: they can fail for want of memory only. */
static void done_with(struct ips_reader *r, const struct sl_json *j)
{
    r->no_memory |= j->failed;
}

static struct sl_str member_text(struct ips_reader *r, enum ips_member member)
{
    struct sl_json j = member_reader(r, member);
    struct sl_str text = {NULL, 0};
    sl_json_text(&j, &text);
    done_with(r, &j);
    return text;
}

static bool read_ips_body(struct ips_reader *r, struct sl_json *j)
{
    struct sl_crash_extra *extras = SL_ARENA_ARRAY(r->arena, struct sl_crash_extra, EXTRAS);
    struct sl_str key, value, extra[EXTRAS] = {{NULL, 0}};
    if (!extras)
        return sl_json_no_memory(j);
    sl_json_enter(j);
    while (sl_json_next(j, &key) && sl_json_value(j, &value)) {
        for (size_t i = 0; i < IPS_MEMBERS; i++)
            if (sl_str_equal(key, member_names[i]))
                r->members[i] = value;
        for (size_t i = 0; i < EXTRAS; i++)
            if (sl_str_equal(key, extra_names[i]))
                extra[i] = value;
    }
    for (size_t i = 0; i < EXTRAS; i++)
        if (extra[i].data)
            extras[r->crash->extra_count++] = (struct sl_crash_extra){extra_names[i], extra[i]};
    r->crash->extras = extras;
    return sl_json_end(j);
}

/* ---- images ---- */

static void read_used_image(struct sl_json *j, struct ips_image *image)
{
    struct sl_str key;
    if (!sl_json_object(j))
        return;
    while (sl_json_next(j, &key))
        if (sl_str_equal(key, SL_STR("base")))
            sl_json_u64(j, &image->base);
        else if (sl_str_equal(key, SL_STR("size")))
            sl_json_u64(j, &image->size);
        else if (sl_str_equal(key, SL_STR("uuid")))
            sl_json_text(j, &image->uuid);
        else if (sl_str_equal(key, SL_STR("path")))
            sl_json_text(j, &image->path);
        else if (sl_str_equal(key, SL_STR("name")))
            sl_json_text(j, &image->name);
        else if (sl_str_equal(key, SL_STR("arch")))
            sl_json_text(j, &image->arch);
        else
            sl_json_skip(j);
}

static struct sl_str image_file(const struct ips_image *image)
{
    return image->path.size ? image->path : image->name.size ? image->name : (struct sl_str){NULL, 0};
}

static void read_images(struct ips_reader *r)
{
    struct sl_json j = member_reader(r, IPS_IMAGES);
    struct sl_arena_array images = {.arena = r->arena, .item = sizeof(struct ips_image)};
    if (sl_json_array(&j))
        while (sl_json_next(&j, &(struct sl_str){NULL, 0})) {
            struct ips_image *image = apple_add(&images, r->room, ROOM_OF_IMAGE);
            if (image)
                read_used_image(&j, image);
            else
                sl_json_no_memory(&j);
        }
    done_with(r, &j);
    r->image_count = images.count;
    r->images = sl_arena_array_keep(&images);
    r->no_memory |= !r->images;
}

static void make_modules(struct ips_reader *r)
{
    struct sl_crash *crash = r->crash;
    crash->modules = SL_ARENA_ARRAY(r->arena, struct sl_crash_module, r->image_count + 1);
    r->no_memory |= !crash->modules;
    for (size_t i = 0; !r->no_memory && i < r->image_count; i++) {
        const struct ips_image *image = &r->images[i];
        struct sl_crash_module *module = &crash->modules[crash->module_count];
        *module = (struct sl_crash_module){.address = image->base, .size = image->size};
        module->code_file = module->debug_file = image_file(image);
        if (!apple_module_id(image->uuid, r->arena, module) || sl_debug_id_is_nil(&module->debug_id))
            continue;
        crash->module_count++;
        r->no_memory |= !module->code_id.data;
    }
}

/* ---- threads ---- */

/* False when the frame is none of its own: it was inlined, or says no address. */
static bool read_ips_frame(const struct ips_reader *r, struct sl_json *j, struct sl_crash_frame *frame)
{
    struct sl_str key;
    uint64_t offset = 0, index = UINT64_MAX, line = 0, into = 0;
    bool has_offset = false, is_inlined = false, has_into = false;
    if (!sl_json_object(j))
        return false;
    while (sl_json_next(j, &key))
        if (sl_str_equal(key, SL_STR("imageOffset")))
            has_offset = sl_json_u64(j, &offset);
        else if (sl_str_equal(key, SL_STR("imageIndex")))
            sl_json_u64(j, &index);
        else if (sl_str_equal(key, SL_STR("symbol")))
            sl_json_text(j, &frame->function);
        else if (sl_str_equal(key, SL_STR("symbolLocation")))
            has_into = sl_json_u64(j, &into);
        else if (sl_str_equal(key, SL_STR("sourceFile")))
            sl_json_text(j, &frame->filename);
        else if (sl_str_equal(key, SL_STR("sourceLine")))
            sl_json_u64(j, &line);
        else if (sl_str_equal(key, SL_STR("inline")))
            sl_json_bool(j, &is_inlined);
        else
            sl_json_skip(j);
    frame->address = offset;
    frame->line = line <= SL_CRASH_MAX_LINE ? (uint32_t)line : 0;
    if (index < r->image_count) {
        if (__builtin_add_overflow(r->images[index].base, offset, &frame->address))
            frame->address = offset;
        frame->package = image_file(&r->images[index]);
    }
    if (has_into && frame->function.size && r->options->names_from_report)
        sl_crash_set_symbol(frame, into);
    return has_offset && !is_inlined;
}

static void read_ips_frames(struct ips_reader *r, struct sl_json *j, struct sl_crash_thread *thread)
{
    struct sl_arena_array frames = {.arena = r->arena, .item = sizeof(struct sl_crash_frame)};
    if (!sl_json_array(j))
        return;
    while (sl_json_next(j, &(struct sl_str){NULL, 0})) {
        struct sl_crash_frame frame = {0}, *added;
        if (!read_ips_frame(r, j, &frame))
            continue;
        if ((added = apple_add(&frames, r->room, ROOM_OF_FRAME)))
            *added = frame;
        else
            sl_json_no_memory(j);
    }
    thread->frame_count = frames.count;
    if (!(thread->frames = sl_arena_array_keep(&frames)))
        sl_json_no_memory(j);
}

/* {"value": 1, ...} */
static bool read_register(struct sl_json *j, uint64_t *value)
{
    struct sl_str key;
    bool found = false;
    if (!sl_json_object(j))
        return false;
    while (sl_json_next(j, &key))
        if (sl_str_equal(key, SL_STR("value")))
            found = sl_json_u64(j, value);
        else
            sl_json_skip(j);
    return found;
}

static void add_register(struct ips_reader *r, struct sl_json *j, struct sl_arena_array *registers, struct sl_str name,
                         uint64_t value)
{
    struct sl_crash_register *added = apple_add(registers, r->room, ROOM_OF_REGISTER);
    if (added && name.data)
        *added = (struct sl_crash_register){name, value};
    else
        sl_json_no_memory(j);
}

/* "x": [{"value": 1}, ...] is x0 and so on. */
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
            add_register(r, j, registers, sl_buf_keep(&text, r->arena), value);
        }
}

static void read_thread_state(struct ips_reader *r, struct sl_json *j, struct sl_crash_thread *thread)
{
    struct sl_arena_array registers = {.arena = r->arena, .item = sizeof(struct sl_crash_register)};
    struct sl_str name;
    uint64_t value;
    if (!sl_json_object(j))
        return;
    while (sl_json_next(j, &name))
        if (sl_json_peek(j) == SL_JSON_ARRAY)
            read_register_array(r, j, &registers, name);
        else if (read_register(j, &value))
            add_register(r, j, &registers, name, value);
    size_t count = registers.count;
    struct sl_crash_register *items = sl_arena_array_keep(&registers);
    if (!items || !sl_crash_set_registers(thread, items, count, r->arena))
        sl_json_no_memory(j);
}

static void read_ips_thread(struct ips_reader *r, struct sl_json *j, struct sl_crash_thread *thread)
{
    struct sl_str key, queue = {NULL, 0};
    bool triggered = false;
    if (!sl_json_object(j))
        return;
    while (sl_json_next(j, &key))
        if (sl_str_equal(key, SL_STR("name")))
            sl_json_text(j, &thread->name);
        else if (sl_str_equal(key, SL_STR("queue")))
            sl_json_text(j, &queue);
        else if (sl_str_equal(key, SL_STR("triggered")))
            sl_json_bool(j, &triggered);
        else if (sl_str_equal(key, SL_STR("threadState")))
            read_thread_state(r, j, thread);
        else if (sl_str_equal(key, SL_STR("frames")))
            read_ips_frames(r, j, thread);
        else
            sl_json_skip(j);
    if (!thread->name.size)
        thread->name = queue.size ? queue : (struct sl_str){NULL, 0};
    if (triggered)
        thread->requesting = SL_REQUESTING_YES;
}

static void read_threads(struct ips_reader *r)
{
    struct sl_arena_array threads = {.arena = r->arena, .item = sizeof(struct sl_crash_thread)};
    struct sl_json j = member_reader(r, IPS_FAULTING_THREAD);
    uint64_t faulting;
    bool is_known = sl_json_u64(&j, &faulting);
    j = member_reader(r, IPS_THREADS);
    if (sl_json_array(&j))
        while (sl_json_next(&j, &(struct sl_str){NULL, 0})) {
            struct sl_crash_thread thread = {.id = threads.count, .has_id = true}, *added;
            thread.requesting = is_known && thread.id == faulting ? SL_REQUESTING_YES : SL_REQUESTING_NO;
            read_ips_thread(r, &j, &thread);
            if ((added = apple_add(&threads, r->room, ROOM_OF_THREAD)))
                *added = thread;
            else
                sl_json_no_memory(&j);
        }
    done_with(r, &j);
    if (r->members[IPS_EXCEPTION_TRACE].data) {
        struct sl_crash_thread *thread = apple_add(&threads, r->room, ROOM_OF_THREAD);
        j = member_reader(r, IPS_EXCEPTION_TRACE);
        if (thread) {
            thread->name = SL_STR(SL_APPLE_LAST_EXCEPTION);
            thread->requesting = SL_REQUESTING_NO;
            read_ips_frames(r, &j, thread);
            threads.count -= !thread->frame_count;
        } else
            sl_json_no_memory(&j);
        done_with(r, &j);
    }
    r->crash->thread_count = threads.count;
    r->crash->threads = sl_arena_array_keep(&threads);
    r->no_memory |= !r->crash->threads;
}

/* ---- what happened, and where ---- */

/* A text or all texts of arrays and objects in it, a line each. The reader does not go deeper than JSON may. */
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

static struct sl_str keep_texts(struct ips_reader *r, struct sl_buf *lines)
{
    if (!lines->size && !lines->failed) {
        sl_buf_free(lines);
        return (struct sl_str){NULL, 0};
    }
    struct sl_str text = sl_buf_keep(lines, r->arena);
    r->no_memory |= !text.data;
    return text;
}

struct ips_termination {
    struct sl_str domain, code, indicator;
    struct sl_buf details;
};

static void read_termination_member(struct sl_json *j, struct sl_str key, struct ips_termination *t)
{
    if (sl_str_equal(key, SL_STR("namespace")))
        sl_json_text(j, &t->domain);
    else if (sl_str_equal(key, SL_STR("indicator")))
        sl_json_text(j, &t->indicator);
    else if (sl_str_equal(key, SL_STR("code")) && sl_json_peek(j) == SL_JSON_NUMBER)
        sl_json_number(j, &t->code);
    else if (sl_str_equal(key, SL_STR("code")))
        sl_json_text(j, &t->code);
    else if (sl_str_equal(key, SL_STR("details")) || sl_str_equal(key, SL_STR("reasons")))
        add_texts(j, &t->details);
    else
        sl_json_skip(j);
}

static void read_termination(struct ips_reader *r, struct ips_termination *t)
{
    struct sl_json j = member_reader(r, IPS_TERMINATION);
    struct sl_str key;
    if (sl_json_object(&j))
        while (sl_json_next(&j, &key))
            read_termination_member(&j, key, t);
    done_with(r, &j);
}

/* `<namespace> <code> <indicator>` */
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
    return keep_texts(r, &text);
}

/* All causes, a line each. */
static struct sl_str all_causes(struct ips_reader *r, struct apple_causes *causes,
                                const struct ips_termination *termination)
{
    static const struct sl_str names[] = {SL_STR("name"), SL_STR("composed_message"), SL_STR("type")};
    struct sl_str texts[3] = {{NULL, 0}};
    struct sl_buf text = {.budget = r->arena->budget};
    struct sl_json j = member_reader(r, IPS_EXCEPTION_REASON);
    sl_json_texts(&j, names, texts, 3);
    done_with(r, &j);
    causes->exception = texts[0].size ? texts[0] : texts[2];
    causes->reason = texts[1];
    causes->termination = (struct apple_termination){termination->domain, termination->code, termination->indicator};
    apple_put_causes(causes, &text);
    return keep_texts(r, &text);
}

/* `<type> (<signal>)` */
static struct sl_str exception_reason(struct ips_reader *r, struct sl_str type, struct sl_str signal)
{
    struct sl_buf text = {.budget = r->arena->budget};
    if (!type.size || !signal.size)
        return type;
    sl_buf_printf(&text, SL_STR_FMT " (" SL_STR_FMT ")", SL_STR_ARG(type), SL_STR_ARG(signal));
    return keep_texts(r, &text);
}

static void read_reason(struct ips_reader *r)
{
    enum { TYPE, SIGNAL, MESSAGE, SUBTYPE, CODES, COUNT };
    static const struct sl_str names[COUNT] = {SL_STR("type"), SL_STR("signal"), SL_STR("message"), SL_STR("subtype"),
                                               SL_STR("codes")};
    struct sl_str texts[COUNT] = {{NULL, 0}};
    struct ips_termination termination = {.details = {.budget = r->arena->budget}};
    struct sl_buf information = {.budget = r->arena->budget};
    struct sl_json j = member_reader(r, IPS_EXCEPTION);
    sl_json_texts(&j, names, texts, COUNT);
    done_with(r, &j);
    read_termination(r, &termination);
    r->crash->reason =
        texts[TYPE].size ? exception_reason(r, texts[TYPE], texts[SIGNAL]) : termination_reason(r, &termination);
    j = member_reader(r, IPS_INFORMATION);
    add_texts(&j, &information);
    done_with(r, &j);
    const struct sl_str details[] = {keep_texts(r, &information), texts[MESSAGE], texts[SUBTYPE],
                                     keep_texts(r, &termination.details), texts[CODES]};
    struct apple_causes causes = {.information = details[0],
                                  .message = details[1],
                                  .subtype = details[2],
                                  .codes = details[4],
                                  .explanation = details[3]};
    if (r->options->all_causes)
        r->crash->details = all_causes(r, &causes, &termination);
    for (size_t i = 0; !r->crash->details.size && i < sizeof details / sizeof *details; i++)
        r->crash->details = details[i];
    if (!r->crash->details.size)
        r->crash->details = (struct sl_str){NULL, 0};
}

static void read_system(struct ips_reader *r, const struct apple_header *header)
{
    static const struct sl_str names[] = {SL_STR("train"), SL_STR("build")};
    struct sl_crash_system *system = &r->crash->system;
    struct sl_str texts[2] = {{NULL, 0}};
    struct sl_json j = member_reader(r, IPS_OS_VERSION);
    sl_json_texts(&j, names, texts, 2);
    done_with(r, &j);
    apple_os(header->os_version, true, system);
    if (texts[0].size) {
        struct sl_str build = system->os_build;
        *system = (struct sl_crash_system){.arch = SL_ARCH_UNKNOWN};
        apple_os(texts[0], true, system);
        if (!system->os_build.size && build.size)
            system->os_build = build;
    }
    if (texts[1].size)
        system->os_build = texts[1];
    system->device_model = member_text(r, IPS_MODEL);
    system->arch = apple_arch(member_text(r, IPS_CPU_TYPE));
    for (size_t i = 0; system->arch == SL_ARCH_UNKNOWN && i < r->image_count; i++)
        system->arch = sl_arch_parse(r->images[i].arch);
}

bool apple_read_ips(struct sl_str body, const struct apple_header *header, const struct sl_apple_options *options,
                    struct sl_arena *arena, struct apple_room *room, struct sl_crash *crash, struct sl_json *failed)
{
    struct ips_reader r = {.options = options, .arena = arena, .room = room, .crash = crash};
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
    crash->has_timestamp = apple_time(member_text(&r, IPS_CAPTURE_TIME), &crash->timestamp) ||
                           apple_time(header->timestamp, &crash->timestamp);
    return !r.no_memory || sl_json_no_memory(failed);
}
