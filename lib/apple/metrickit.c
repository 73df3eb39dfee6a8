/* Diagnostics of MetricKit as JSON (developer.apple.com, "MXDiagnosticPayload", "MXCallStackTree"): a payload with several diagnostics, a
 * single one, or only its tree of call stacks.
 *
 *     {"crashDiagnostics": [{"callStackTree": {"callStacks": [
 *         {"threadAttributed": true, "callStackRootFrames": [
 *             {"binaryUUID": "..", "offsetIntoBinaryTextSegment": 5, "address": 4101, "binaryName": "app", "subFrames": [
 *                 {..its caller..}]}]}]}, "diagnosticMetaData": {"osVersion": "iPhone OS 17.0 (21A329)", ..}}]}
 *
 * A tree is as deep as a stack, which exceeds the depth limit of the JSON reader. So this reader handles one bracket at a time and keeps
 * the open ones in an array. Each path from a root, the innermost frame, to a frame without callers becomes a thread. */
#include "apple/impl.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/map.h"

/* Meaning of an open bracket: OPEN_STACKS is the array "callStacks", OPEN_STACK an object in it, OPEN_FRAMES the array
 * "callStackRootFrames" or "subFrames", OPEN_FRAME an object in one of these. */
enum open_kind { OPEN_OTHER, OPEN_STACKS, OPEN_STACK, OPEN_FRAMES, OPEN_FRAME };

struct open_bracket {
    enum open_kind kind;
    size_t frame; /* for OPEN_FRAME the index of its frame, counted from 1; else 0 */
    bool is_object;
};

struct tree_frame {
    uint64_t address, offset;
    size_t callee; /* index of the frame that this one has called, counted from 1; 0: none, this is a root */
    struct sl_str name, uuid;
    bool has_address, has_callers;
};

enum metrickit_text {
    TEXT_OS,
    TEXT_DEVICE,
    TEXT_ARCH,
    TEXT_TERMINATION,
    TEXT_MESSAGE,
    TEXT_EXCEPTION,
    TEXT_HANG,
    TEXT_TIME,
    TEXTS
};

struct metrickit {
    struct sl_str text;
    size_t at;
    struct sl_arena *arena;
    struct apple_budget *budget;
    struct sl_crash *crash;
    bool no_memory;
    struct sl_arena_array threads, modules;
    struct open_bracket *brackets; /* open ones, outermost first; malloc */
    size_t depth, capacity;
    struct tree_frame *frames; /* of the stack that is read; malloc */
    size_t frame_count, frame_capacity;
    struct sl_str key;   /* of the value that comes next */
    struct sl_map known; /* modules that were added, by address and id */
    struct sl_str texts[TEXTS];
    uint64_t exception, signal;
    bool attributed;     /* the open stack has "threadAttributed": true */
    bool any_attributed; /* a thread was added from such a stack */
    bool in_stacks;      /* an array "callStacks" is open; one within it is ignored */
};

/* A text with "usedImages" is an `.ips` file, even if "callStackRootFrames" of MetricKit occurs in it. */
bool sl_apple_is_metrickit(struct sl_str text)
{
    return text.size && text.data[0] == '{' && memmem(text.data, text.size, "\"callStackRootFrames\"", 21) &&
           !memmem(text.data, text.size, "\"usedImages\"", 12);
}

/* True if the budget has `cost` bytes left; otherwise records that it is used up. */
static bool fits_budget(struct metrickit *m, uint64_t cost)
{
    m->budget->used_up |= cost > m->budget->left;
    return cost <= m->budget->left;
}

/* ---- threads ---- */

/* Adds the image of a frame as a module, each image once. The image begins at the frame's address minus the frame's offset in it. A frame
 * without address or valid UUID adds none. */
static void add_image(struct metrickit *m, const struct tree_frame *frame)
{
    struct sl_crash_module module = {0}, *added;
    struct sl_buf key = {.budget = m->arena->budget};
    bool made = false;
    if (!frame->has_address || frame->offset > frame->address || !apple_module_id(frame->uuid, m->arena, &module))
        return;
    module.address = frame->address - frame->offset;
    module.code_file = module.debug_file = frame->name;
    sl_buf_printf(&key, "%llx " SL_STR_FMT, (unsigned long long)module.address, SL_STR_ARG(frame->uuid));
    struct sl_str kept = sl_buf_move_to_arena(&key, m->arena);
    void **slot = kept.data ? sl_map_find_or_add(&m->known, kept, &made) : NULL;
    m->no_memory |= !slot;
    if (!slot || !made)
        return;
    *slot = m; /* any value but NULL marks the image as added */
    if ((added = apple_add(&m->modules, m->budget, COST_PER_IMAGE)))
        *added = module;
    m->no_memory |= !added || !module.code_id.data; /* NULL id: apple_module_id() was out of memory */
}

/* Adds a thread with the path from the root, which is the innermost frame, to frame number `last` (counted from 1), the outermost. The
 * first path of a stack with "threadAttributed" becomes the requesting thread. A frame without address shows its offset in the image. */
static void add_path(struct metrickit *m, size_t last)
{
    size_t count = 0;
    for (size_t at = last; at; at = m->frames[at - 1].callee)
        count++;
    struct sl_crash_thread *thread = apple_add(&m->threads, m->budget, COST_PER_THREAD);
    /* charges the frame's memory in addition: paths repeat the frames that they share */
    uint64_t cost = count * (uint64_t)(COST_PER_FRAME + sizeof(struct sl_crash_frame));
    struct sl_crash_frame *frames =
        thread && fits_budget(m, cost) ? SL_ARENA_ARRAY(m->arena, struct sl_crash_frame, count + 1) : NULL;
    if (!frames) {
        m->no_memory = true;
        return;
    }
    m->budget->left -= cost;
    *thread = (struct sl_crash_thread){.id = m->threads.count - 1,
                                       .has_id = true,
                                       .frames = frames,
                                       .frame_count = count,
                                       .requesting = m->attributed && !m->any_attributed ? SL_REQUESTING_THREAD_YES
                                                                                         : SL_REQUESTING_THREAD_NO};
    m->any_attributed |= m->attributed;
    /* from the outermost frame to the innermost, which becomes frames[0] */
    for (size_t at = last; at; at = m->frames[at - 1].callee) {
        const struct tree_frame *from = &m->frames[at - 1];
        frames[--count] =
            (struct sl_crash_frame){.address = from->has_address ? from->address : from->offset, .package = from->name};
    }
}

/* Ends a tree of calls: adds a thread for each frame without callers, and the modules of all its frames. */
static void close_stack(struct metrickit *m)
{
    for (size_t i = 0; i < m->frame_count && !m->no_memory; i++) {
        add_image(m, &m->frames[i]);
        if (!m->frames[i].has_callers)
            add_path(m, i + 1);
    }
    m->frame_count = 0;
    m->attributed = false;
}

/* ---- brackets ---- */

/* Returns the innermost open bracket; NULL if none is open. */
static struct open_bracket *top(struct metrickit *m)
{
    return m->depth ? &m->brackets[m->depth - 1] : NULL;
}

/* Begins a frame and stores its number in its `bracket`, which is not among m->brackets yet. The frame whose "subFrames" it is in is its
 * callee. */
static void open_frame(struct metrickit *m, struct open_bracket *bracket)
{
    /* The innermost bracket is an array of frames; the one around it (- 2) is its frame, or a stack, which has frame number 0. */
    size_t called = m->brackets[m->depth - 2].frame;
    if (!fits_budget(m, sizeof *m->frames) ||
        !sl_grow_zeroed(&m->frames, &m->frame_capacity, m->frame_count + 1, sizeof *m->frames)) {
        m->no_memory = true;
        return;
    }
    m->budget->left -= sizeof *m->frames;
    m->frames[m->frame_count++] = (struct tree_frame){.callee = called};
    if (called)
        m->frames[called - 1].has_callers = true;
    bracket->frame = m->frame_count;
}

/* Opens an object or array; what it means depends on its key and on the bracket around it. An array "callStacks" within another one means
 * nothing. Lack of memory or budget is recorded. */
static void open_bracket(struct metrickit *m, bool is_object)
{
    const struct open_bracket *outer = top(m);
    enum open_kind in = outer ? outer->kind : OPEN_OTHER;
    struct open_bracket bracket = {.kind = OPEN_OTHER, .is_object = is_object};
    if (is_object)
        bracket.kind = in == OPEN_STACKS ? OPEN_STACK : in == OPEN_FRAMES ? OPEN_FRAME : OPEN_OTHER;
    else if (sl_str_equal(m->key, SL_STR("callStacks")) && !m->in_stacks)
        bracket.kind = OPEN_STACKS;
    else if ((in == OPEN_STACK && sl_str_equal(m->key, SL_STR("callStackRootFrames"))) ||
             (in == OPEN_FRAME && sl_str_equal(m->key, SL_STR("subFrames"))))
        bracket.kind = OPEN_FRAMES;
    if (bracket.kind == OPEN_FRAME)
        open_frame(m, &bracket);
    if (!fits_budget(m, m->depth * sizeof *m->brackets) || /* not charged: brackets are no part of the result */
        !sl_grow(&m->brackets, &m->capacity, m->depth + 1, sizeof *m->brackets)) {
        m->no_memory = true;
        return;
    }
    m->in_stacks |= bracket.kind == OPEN_STACKS;
    m->brackets[m->depth++] = bracket;
    m->key = (struct sl_str){NULL, 0};
}

/* Closes the innermost open bracket. Returns false if that is an array and `is_object` is set, or the reverse, or if none is open. */
static bool close_bracket(struct metrickit *m, bool is_object)
{
    if (!m->depth || top(m)->is_object != is_object)
        return false;
    if (top(m)->kind == OPEN_STACK)
        close_stack(m);
    m->in_stacks &= top(m)->kind != OPEN_STACKS;
    m->depth--;
    m->key = (struct sl_str){NULL, 0};
    return true;
}

/* ---- values ---- */

/* Stores the value of the current key (m->key) in the frame; values of other keys are ignored. */
static void read_frame_value(struct metrickit *m, struct sl_json *j, struct tree_frame *frame)
{
    if (sl_str_equal(m->key, SL_STR("address")))
        frame->has_address = sl_json_u64(j, &frame->address);
    else if (sl_str_equal(m->key, SL_STR("offsetIntoBinaryTextSegment")))
        sl_json_u64(j, &frame->offset);
    else if (sl_str_equal(m->key, SL_STR("binaryName")))
        sl_json_text(j, &frame->name);
    else if (sl_str_equal(m->key, SL_STR("binaryUUID")))
        sl_json_text(j, &frame->uuid);
}

/* Stores a value outside of frames by the current key; other keys are ignored. In a payload with several diagnostics the first value of
 * each key counts, but each stack has its own "threadAttributed". */
static void read_other_value(struct metrickit *m, struct sl_json *j)
{
    static const struct sl_str names[TEXTS] = {
        [TEXT_OS] = SL_STR("osVersion"),
        [TEXT_DEVICE] = SL_STR("deviceType"),
        [TEXT_ARCH] = SL_STR("platformArchitecture"),
        [TEXT_TERMINATION] = SL_STR("terminationReason"),
        [TEXT_MESSAGE] = SL_STR("composedMessage"),
        [TEXT_EXCEPTION] = SL_STR("exceptionName"),
        [TEXT_HANG] = SL_STR("hangDuration"),
        [TEXT_TIME] = SL_STR("timeStampEnd"),
    };
    for (size_t i = 0; i < TEXTS; i++)
        if (sl_str_equal(m->key, names[i]) && !m->texts[i].size)
            sl_json_text(j, &m->texts[i]);
    if (sl_str_equal(m->key, SL_STR("exceptionType")) && !m->exception)
        sl_json_u64(j, &m->exception);
    else if (sl_str_equal(m->key, SL_STR("signal")) && !m->signal)
        sl_json_u64(j, &m->signal);
    else if (sl_str_equal(m->key, SL_STR("threadAttributed")))
        sl_json_bool(j, &m->attributed);
}

/* Reads a string, number or literal from m->at to `end`. Without a key it is an element of an array, and is ignored. */
static void read_value(struct metrickit *m, size_t end)
{
    struct sl_json j = sl_json((struct sl_str){m->text.data + m->at, end - m->at}, m->arena, false);
    const struct open_bracket *bracket = top(m);
    if (bracket && m->key.data && bracket->kind == OPEN_FRAME)
        read_frame_value(m, &j, &m->frames[bracket->frame - 1]);
    else if (bracket && m->key.data)
        read_other_value(m, &j);
    m->no_memory |= j.busy;
    m->key = (struct sl_str){NULL, 0};
    m->at = end;
}

/* Returns the position after the closing quote of the string at `at`; 0 if there is none. */
static size_t end_of_text(struct sl_str text, size_t at)
{
    for (at++; at < text.size && text.data[at] != '"'; at++)
        at += text.data[at] == '\\'; /* the character after a backslash does not end the string */
    return at < text.size ? at + 1 : 0;
}

/* Reads a string: a key if a colon follows, otherwise a value. False if it has no end. */
static bool read_quoted(struct metrickit *m)
{
    size_t end = end_of_text(m->text, m->at), next = end;
    while (next && next < m->text.size && sl_is_blank(m->text.data[next]))
        next++;
    if (!end)
        return false;
    if (next < m->text.size && m->text.data[next] == ':') {
        m->key = (struct sl_str){m->text.data + m->at + 1, end - m->at - 2}; /* without its quotes */
        m->at = next + 1;
    } else {
        read_value(m, end);
    }
    return true;
}

/* Reads the next token: a string, bracket, comma, white space, number or literal. Returns false if a string has no end or a bracket is not
 * the counterpart of the open one; other errors are not noticed. */
static bool read_token(struct metrickit *m)
{
    char c = m->text.data[m->at];
    size_t end = m->at;
    if (c == '"')
        return read_quoted(m);
    if (c == '{' || c == '[') {
        open_bracket(m, c == '{');
        m->at++;
        return true;
    }
    if (c == '}' || c == ']') {
        m->at++;
        return close_bracket(m, c == '}');
    }
    if (c == ',' || sl_is_blank(c)) {
        m->at++;
        return true;
    }
    while (end < m->text.size && !sl_is_blank(m->text.data[end]) && !memchr(",]}", m->text.data[end], 3))
        end++;
    read_value(m, end);
    return true;
}

/* ---- the crash ---- */

/* Returns the name of an exception by its number (osfmk/mach/exception_types.h of XNU); NULL if it has none. */
static const char *exception_name(uint64_t number)
{
    static const char *const names[] = {NULL,
                                        "EXC_BAD_ACCESS",
                                        "EXC_BAD_INSTRUCTION",
                                        "EXC_ARITHMETIC",
                                        "EXC_EMULATION",
                                        "EXC_SOFTWARE",
                                        "EXC_BREAKPOINT",
                                        "EXC_SYSCALL",
                                        "EXC_MACH_SYSCALL",
                                        "EXC_RPC_ALERT",
                                        "EXC_CRASH",
                                        "EXC_RESOURCE",
                                        "EXC_GUARD"};
    return number < sizeof names / sizeof *names ? names[number] : NULL;
}

/* Returns the name of a signal by its number on Apple's systems (sys/signal.h of XNU); NULL if it has none. */
static const char *signal_name(uint64_t number)
{
    static const char *const names[] = {
        [3] = "SIGQUIT", [4] = "SIGILL",   [5] = "SIGTRAP", [6] = "SIGABRT",  [8] = "SIGFPE",  [9] = "SIGKILL",
        [10] = "SIGBUS", [11] = "SIGSEGV", [12] = "SIGSYS", [13] = "SIGPIPE", [15] = "SIGTERM"};
    return number < sizeof names / sizeof *names ? names[number] : NULL;
}

/* Makes reason (exception and signal, else the hang) and details from the values that were read, and sets time and system. Lack of memory
 * is recorded. Sets only the counts of threads and modules: the caller sets the arrays. */
static void finish_metrickit(struct metrickit *m)
{
    struct sl_crash *crash = m->crash;
    const char *exception = exception_name(m->exception), *signal = signal_name(m->signal);
    struct sl_buf reason = {.budget = m->arena->budget}, details = {.budget = m->arena->budget};
    const struct apple_causes causes = {.exception = m->texts[TEXT_EXCEPTION],
                                        .reason = m->texts[TEXT_MESSAGE],
                                        .termination = apple_termination_parse(m->texts[TEXT_TERMINATION])};
    if (exception || signal)
        sl_buf_printf(&reason, "%s%s%s%s", exception ? exception : "", exception && signal ? " (" : "",
                      signal ? signal : "", exception && signal ? ")" : "");
    else if (m->texts[TEXT_HANG].size)
        sl_buf_printf(&reason, "Hang of " SL_STR_FMT, SL_STR_ARG(m->texts[TEXT_HANG]));
    apple_put_causes(&causes, &details);
    bool has_reason = reason.size, has_details = details.size;
    struct sl_str texts[2] = {sl_buf_move_to_arena(&reason, m->arena), sl_buf_move_to_arena(&details, m->arena)};
    m->no_memory |= !texts[0].data || !texts[1].data; /* an empty text has data too */
    crash->reason = has_reason ? texts[0] : (struct sl_str){NULL, 0};
    crash->details = has_details ? texts[1] : (struct sl_str){NULL, 0};
    crash->has_timestamp = apple_time(m->texts[TEXT_TIME], &crash->timestamp);
    apple_os(m->texts[TEXT_OS], true, &crash->system);
    crash->system.device_model = m->texts[TEXT_DEVICE];
    crash->system.arch = apple_arch(m->texts[TEXT_ARCH]);
    crash->thread_count = m->threads.count;
    crash->module_count = m->modules.count;
}

bool apple_read_metrickit(struct sl_str text, struct sl_arena *arena, struct apple_budget *budget,
                          struct sl_crash *crash, size_t *problem_at)
{
    struct metrickit m = {.text = text,
                          .arena = arena,
                          .budget = budget,
                          .crash = crash,
                          .threads = {.arena = arena, .item = sizeof(struct sl_crash_thread)},
                          .modules = {.arena = arena, .item = sizeof(struct sl_crash_module)}};
    bool good = true;
    while (good && !m.no_memory && m.at < text.size)
        good = read_token(&m);
    *problem_at = !m.no_memory && (!good || m.depth) ? m.at + 1 : 0; /* m.depth: a bracket is still open at the end */
    if (!*problem_at && !m.no_memory)
        finish_metrickit(&m);
    /* also after a failure: this frees the arrays */
    crash->threads = sl_arena_array_finish(&m.threads);
    crash->modules = sl_arena_array_finish(&m.modules);
    m.no_memory |= !crash->threads || !crash->modules;
    sl_map_free(&m.known);
    free(m.brackets);
    free(m.frames);
    return !m.no_memory && !*problem_at;
}
