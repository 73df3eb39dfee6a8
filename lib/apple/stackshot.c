/* Stackshots: the stacks of all processes at one moment, as JSON. Frames are offsets into images, which have no names.
 *
 *     {"build": "iPhone OS 15.0 (19A341)", "product": "iPhone12,1", "frontmostPids": [7],
 *      "binaryImages": [["2d903291-..", 4301258752, "P"], ..],
 *      "processByPid": {"7": {"pid": 7, "procname": "app", "threadById": {
 *          "512": {"id": 512, "dispatch_queue_label": "q", "kernelFrames": [[3, 100]], "userFrames": [[0, 4660], ..]}}}}} */
#include "apple/impl.h"

#include "base/buf.h"
#include "base/json_fields.h"

struct shot_image {
    uint64_t base;
    uint64_t reach; /* 1 + the highest offset of a frame in the image; 0: no frame is in it */
    struct sl_crash_module module;
};

struct shot_process {
    struct sl_opt_u64 pid;
    struct sl_str name, threads; /* `threads`: JSON text */
};

static const struct sl_field process_fields[] = {
    SL_FIELD(U64, false, shot_process, pid, "pid"),
    SL_FIELD(TEXT, false, shot_process, name, "procname"),
    SL_FIELD(RAW, false, shot_process, threads, "threadById"),
    SL_FIELDS_END,
};

struct shot_thread {
    struct sl_opt_u64 id;
    struct sl_str name, queue, kernel, user; /* `kernel`, `user`: JSON text */
};

static const struct sl_field thread_fields[] = {
    SL_FIELD(U64, false, shot_thread, id, "id"),
    SL_FIELD(TEXT, false, shot_thread, name, "name"),
    SL_FIELD(TEXT, false, shot_thread, queue, "dispatch_queue_label"),
    SL_FIELD(RAW, false, shot_thread, kernel, "kernelFrames"),
    SL_FIELD(RAW, false, shot_thread, user, "userFrames"),
    SL_FIELDS_END,
};

struct shot_body { /* members as JSON text; data NULL = absent */
    struct sl_str processes, images, frontmost, build, product, date, reason, panic;
};

static const struct sl_field body_fields[] = {
    SL_FIELD(RAW, false, shot_body, build, "build"),
    SL_FIELD(RAW, false, shot_body, product, "product"),
    SL_FIELD(RAW, false, shot_body, date, "date"),
    SL_FIELD(RAW, false, shot_body, reason, "reason"),
    SL_FIELD(RAW, false, shot_body, frontmost, "frontmostPids"),
    SL_FIELD_AS_IS(ARRAY, false, shot_body, images, "binaryImages"),
    SL_FIELD_AS_IS(OBJECT, false, shot_body, processes, "processByPid"),
    SL_FIELD(RAW, false, shot_body, panic, "panicString"),
    SL_FIELDS_END,
};

struct shot_reader {
    struct sl_arena *arena;
    struct apple_budget *budget;
    struct sl_crash *crash;
    bool no_memory; /* or the budget is used up */
    struct shot_body body;
    struct shot_image *images;
    size_t image_count;
    struct sl_arena_array threads;
};

/* Reports of kernel panics ("panicString") contain a stackshot too, but are another kind of report. */
bool apple_is_stackshot(struct sl_str object, struct sl_arena *arena)
{
    struct sl_json j = sl_json(object, arena, false);
    struct shot_body body = {.processes = {NULL, 0}};
    sl_json_read_object(&j, body_fields, &body);
    return body.processes.data && body.images.data && !body.panic.data;
}

/* Returns a JSON reader for the text of a member; for an absent member (data NULL) it reads `null`. The whole report is known to be
 * well-formed here, so such a reader fails only when memory is short (`busy`). */
static struct sl_json shot_json(const struct shot_reader *r, struct sl_str part)
{
    return sl_json(part.data ? part : SL_STR("null"), r->arena, false);
}

/* Returns the value of a member that is a string; data NULL for anything else. If out of memory, data is NULL too and r->no_memory is
 * set. */
static struct sl_str shot_text(struct shot_reader *r, struct sl_str member)
{
    struct sl_json j = shot_json(r, member);
    struct sl_str text;
    sl_json_text(&j, &text);
    r->no_memory |= j.busy;
    return text;
}

/* ---- images ---- */

/* Parses an image like ["2d903291-..", 4301258752, "P"]: UUID, address, and a letter that is not used. If it is no array, `*image` stays
 * zeroed. */
static void read_shot_image(struct shot_reader *r, struct sl_json *j, struct shot_image *image)
{
    struct sl_str uuid = {NULL, 0};
    if (!sl_json_array(j))
        return;
    for (int i = 0; sl_json_next(j, &(struct sl_str){NULL, 0}); i++)
        if (i == 0)
            sl_json_text(j, &uuid);
        else if (i == 1)
            sl_json_u64(j, &image->base);
        else
            sl_json_skip(j);
    if (apple_module_id(uuid, r->arena, &image->module))
        r->no_memory |= !image->module.code_id.data; /* NULL: apple_module_id() was out of memory */
    image->module.address = image->base;
}

/* Reads all images: frames refer to them by index, so even a malformed one takes its place in the array. Lack of memory or budget is
 * recorded. */
static void read_shot_images(struct shot_reader *r)
{
    struct sl_json j = shot_json(r, r->body.images);
    struct sl_arena_array images = {.arena = r->arena, .item = sizeof(struct shot_image)};
    if (sl_json_array(&j))
        while (sl_json_next(&j, &(struct sl_str){NULL, 0}) && !r->no_memory) {
            struct shot_image *image = apple_add(&images, r->budget, COST_PER_IMAGE), one = {0};
            read_shot_image(r, &j, &one);
            if (image)
                *image = one;
            r->no_memory |= !image;
        }
    r->no_memory |= j.busy;
    r->image_count = images.count;
    r->images = sl_arena_array_finish(&images);
    r->no_memory |= !r->images; /* an empty array is not NULL */
}

/* Makes modules of the images that have a UUID and contain a frame. The report has no sizes of images: a module extends only to its highest
 * frame, so that it does not cover addresses of other images. */
static void add_shot_modules(struct shot_reader *r)
{
    struct sl_arena_array modules = {.arena = r->arena, .item = sizeof(struct sl_crash_module)};
    for (size_t i = 0; i < r->image_count && !r->no_memory; i++) {
        const struct shot_image *image = &r->images[i];
        if (!image->reach || !image->module.has_debug_id || sl_debug_id_is_nil(&image->module.debug_id))
            continue;
        struct sl_crash_module *added = apple_add(&modules, r->budget, COST_PER_IMAGE);
        if (added) {
            *added = image->module;
            added->size = image->reach;
        }
        r->no_memory |= !added;
    }
    r->crash->module_count = modules.count;
    r->crash->modules = sl_arena_array_finish(&modules);
    r->no_memory |= !r->crash->modules;
}

/* ---- threads ---- */

/* Parses [[image, offset], ..], innermost first, and appends the frames. `enters_kernel`: the first frame was in a system call, so its
 * address is exact, not a return address. For an unknown image the offset alone is the address. Raises `reach` of
 * each image to 1 + the highest offset of a frame in it. */
static void read_shot_frames(struct shot_reader *r, struct sl_json *j, bool enters_kernel,
                             struct sl_arena_array *frames)
{
    bool is_first = true;
    if (!sl_json_array(j)) /* no array, or `null`: no frames */
        return;
    while (sl_json_next(j, &(struct sl_str){NULL, 0}) && !r->no_memory) {
        uint64_t numbers[2] = {UINT64_MAX, 0}; /* image and offset; UINT64_MAX: no image has this index */
        if (!sl_json_array(j))
            continue;
        for (size_t i = 0; sl_json_next(j, &(struct sl_str){NULL, 0}); i++)
            if (i < 2)
                sl_json_u64(j, &numbers[i]);
            else
                sl_json_skip(j);
        struct shot_image *image = numbers[0] < r->image_count ? &r->images[numbers[0]] : NULL;
        struct sl_crash_frame *frame = apple_add(frames, r->budget, COST_PER_FRAME + sizeof *frame);
        if (frame)
            *frame = (struct sl_crash_frame){.address = (image ? image->base : 0) + numbers[1],
                                             .is_exact = is_first && enters_kernel};
        if (image && numbers[1] >= image->reach && numbers[1] < UINT32_MAX) /* no image has 4 GiB */
            image->reach = numbers[1] + 1;
        r->no_memory |= !frame;
        is_first = false;
    }
}

/* Reads a thread: its frames in the kernel, which are the innermost, then those of the process. A thread without a name gets that of its
 * dispatch queue. Lack of memory or budget is recorded. */
static void read_shot_thread(struct shot_reader *r, struct sl_json *j)
{
    struct shot_thread read = {.id = {false, 0}};
    struct sl_crash_thread thread = {.requesting = SL_REQUESTING_THREAD_NO}, *added;
    struct sl_arena_array frames = {.arena = r->arena, .item = sizeof(struct sl_crash_frame)};
    if (sl_json_peek(j) != SL_JSON_OBJECT) {
        sl_json_skip(j);
        return;
    }
    sl_json_read_object(j, thread_fields, &read);
    struct sl_json part = shot_json(r, read.kernel);
    read_shot_frames(r, &part, false, &frames);
    r->no_memory |= part.busy;
    part = shot_json(r, read.user);
    read_shot_frames(r, &part, frames.count, &frames); /* with kernel frames, the first user frame entered it */
    r->no_memory |= part.busy;
    thread.has_id = read.id.set;
    thread.id = read.id.value;
    thread.name = read.name.size ? read.name : read.queue.size ? read.queue : (struct sl_str){NULL, 0};
    thread.frame_count = frames.count;
    thread.frames = sl_arena_array_finish(&frames);
    if ((added = apple_add(&r->threads, r->budget, COST_PER_THREAD)))
        *added = thread;
    r->no_memory |= !added || !thread.frames;
}

/* ---- processes ---- */

/* Returns the frontmost process, else the first one with threads that is not the kernel (PID 0); `threads.data` NULL if there is none.
 * `*count` becomes the number of processes in the report. */
static struct shot_process choose_process(struct shot_reader *r, size_t *count)
{
    struct shot_process chosen = {.pid = {false, 0}};
    struct sl_json front = shot_json(r, r->body.frontmost), j = shot_json(r, r->body.processes);
    uint64_t wanted = 0;
    bool is_known =
        sl_json_array(&front) && sl_json_next(&front, &(struct sl_str){NULL, 0}) && sl_json_u64(&front, &wanted);
    *count = 0;
    if (sl_json_object(&j))
        while (sl_json_next(&j, &(struct sl_str){NULL, 0})) {
            struct shot_process process = {.pid = {false, 0}};
            sl_json_read_object(&j, process_fields, &process);
            ++*count;
            if (process.pid.value && process.threads.data &&
                (!chosen.threads.data || (is_known && process.pid.value == wanted)))
                chosen = process;
        }
    r->no_memory |= j.busy;
    return chosen;
}

/* Sets reason, details, time and system, and `crashed` to false. The details name `process`, whose stacks are shown, and say that the
 * report has `count` processes. Lack of memory is recorded. */
static void put_shot_head(struct shot_reader *r, const struct shot_process *process, size_t count,
                          const struct apple_header *header)
{
    struct sl_crash *crash = r->crash;
    struct sl_str reason = shot_text(r, r->body.reason), build = shot_text(r, r->body.build);
    struct sl_buf details = {.budget = r->arena->budget};
    crash->crashed = false;
    crash->reason = reason.size ? reason : SL_STR("stackshot");
    sl_buf_printf(&details, "These are the stacks of " SL_STR_FMT " [%llu], one of %zu processes of the report.",
                  SL_STR_ARG(process->name), (unsigned long long)process->pid.value, count);
    crash->details = sl_buf_move_to_arena(&details, r->arena);
    r->no_memory |= !crash->details.data;
    crash->has_timestamp =
        apple_time(shot_text(r, r->body.date), &crash->timestamp) || apple_time(header->timestamp, &crash->timestamp);
    crash->system.device_model = shot_text(r, r->body.product);
    apple_os(build.size ? build : header->os_version, true, &crash->system);
}

bool apple_read_stackshot(struct sl_str body, const struct apple_header *header, struct sl_arena *arena,
                          struct apple_budget *budget, struct sl_crash *crash, struct sl_json *failed)
{
    struct shot_reader r = {.arena = arena,
                            .budget = budget,
                            .crash = crash,
                            .threads = {.arena = arena, .item = sizeof(struct sl_crash_thread)}};
    size_t count;
    *failed = sl_json(body, arena, false);
    sl_json_read_object(failed, body_fields, &r.body);
    if (!sl_json_end(failed))
        return false;
    read_shot_images(&r); /* before the frames, which refer to images by index */
    const struct shot_process process = choose_process(&r, &count);
    struct sl_json j = shot_json(&r, process.threads);
    if (!r.no_memory && sl_json_object(&j))
        while (!r.no_memory && sl_json_next(&j, &(struct sl_str){NULL, 0}))
            read_shot_thread(&r, &j);
    r.no_memory |= j.busy;
    if (!r.no_memory)
        put_shot_head(&r, &process, count, header);
    crash->thread_count = r.threads.count;
    crash->threads = sl_arena_array_finish(&r.threads);
    add_shot_modules(&r); /* after the frames, which give images their sizes */
    return !r.no_memory && crash->threads ? true : sl_json_no_memory(failed); /* false, with failed->busy set */
}
