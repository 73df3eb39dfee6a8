/* Finds the original frames of an obfuscated frame like R8's retrace.
 *
 * The members of a method (its lines in the mapping) are in the order of the mapping. Adjacent members with equal ranges are a *group*:
 * calls inlined into each other, the innermost first. Adjacent groups whose last members are the same original method are an *overload*:
 * one of the original methods that share the obfuscated name:
 *
 *     1:1:void inlined():7 -> a        group 1, overload 1
 *     1:1:void f():8 -> a
 *     2:2:void f():9 -> a              group 2, overload 1
 *     1:1:void g(int):20 -> a          group 3, overload 2
 *
 * A line selects at most one group of each overload. If several are selected, they are alternatives. The source lines of a
 * group are alternatives too if it has more of them than its range has lines. */
#include <stdlib.h>

#include "base/grow.h"
#include "jvm/members.h"
#include "jvm/names.h"
#include "jvm/signatures.h"

enum { NO_LINE = -1, MAX_ALTERNATIVES = 128, MEMBERS_PER_STEP = 8 };

/* Members that were picked from those of one overload (an original method): one group of inlined calls, or all without a range. */
struct picked {
    const struct jvm_member *members;
    size_t count;
    bool only_name; /* only the method name of the last member is used, no line */
};

struct retrace {
    const struct sl_jvm_mapper *mapper;
    const struct sl_jvm_query *query;
    struct jvm_original_class own; /* original class of the frame */
    struct jvm_members all;
    int64_t line;               /* NO_LINE: unknown */
    bool has_callsite;          /* the frame before was in an outline (code that R8 moved out of several methods) */
    uint32_t outline_line;      /* with `has_callsite`: the line in that outline */
    struct jvm_member *members; /* all members, or those of the line */
    size_t member_count;
    struct jvm_member few_members[8]; /* enough for most frames */
    struct picked few_picked[1];
    struct picked *picked;
    size_t picked_count, picked_capacity;
    bool ambiguous;
    bool is_outline; /* the last alternative is an outline */
    struct sl_jvm_frames *out;
    size_t first;          /* index of the first frame of this look-up */
    uint32_t alternatives; /* number of alternatives so far */
};

/* ---- members ---- */

static bool has_own_range(const struct jvm_member *m)
{
    return m->flags & JVM_RANGE;
}

static bool range_holds(const struct jvm_member *m, int64_t line)
{
    return has_own_range(m) && m->start <= line && line <= m->end;
}

static bool same_range(const struct jvm_member *a, const struct jvm_member *b)
{
    return has_own_range(a) && has_own_range(b) && a->start == b->start && a->end == b->end;
}

/* True for the range 0 to 65535, which R8 gives to methods all of whose lines are mapped alike. */
static bool is_catch_all(const struct jvm_member *m)
{
    return has_own_range(m) && m->start == 0 && m->end == UINT16_MAX;
}

/* True if both members are of the same original method: class, name, arguments. */
static bool same_signature(const struct jvm_member *a, const struct jvm_member *b)
{
    return a->receiver == b->receiver && a->name == b->name && a->arguments == b->arguments &&
           (a->flags & JVM_INLINED_FROM_OTHER_CLASS) == (b->flags & JVM_INLINED_FROM_OTHER_CLASS);
}

/* True if the member stands for several source lines and nothing tells which one is meant: it has no range, or one of another length. */
static bool is_ambiguous(const struct jvm_member *m)
{
    if (!(m->flags & JVM_LINE) || !(m->flags & JVM_LAST_LINE) || m->last_line == m->line)
        return false;
    return !has_own_range(m) || m->end - m->start != m->last_line - m->line;
}

/* Appends a member to r->members; false, with out->busy set, when out of memory. */
static bool add_member(struct retrace *r, size_t *capacity, const struct jvm_member *m)
{
    if (!sl_grow_in_arena(r->out->arena, &r->members, capacity, r->member_count + 1, sizeof *r->members)) {
        r->out->busy = true;
        return false;
    }
    r->members[r->member_count++] = *m;
    return true;
}

/* Reads all members of the method into r->members. When out of memory, sets out->busy. */
static void read_members(struct retrace *r)
{
    struct jvm_members all = r->all;
    struct jvm_member m;
    size_t capacity = sizeof r->few_members / sizeof *r->few_members;
    r->members = r->few_members;
    r->member_count = 0;
    while (jvm_next_member(&all, &m) && add_member(r, &capacity, &m)) {
    }
    r->out->steps += all.read / MEMBERS_PER_STEP; /* for the caller's work budget */
}

/* Returns the end of the group (adjacent members with equal ranges) that begins with member `at`; at most `end`. */
static size_t group_end(const struct retrace *r, size_t at, size_t end)
{
    size_t next = at + 1;
    while (next < end && same_range(&r->members[at], &r->members[next]))
        next++;
    return next;
}

/* Returns the end of the overload that begins with member `at`. It consists of groups of inlined calls whose outermost method, the last
 * member of each, is the same original method. A group of another method ends it. */
static size_t overload_end(const struct retrace *r, size_t at)
{
    size_t end = group_end(r, at, r->member_count);
    const struct jvm_member *method = &r->members[end - 1];
    /* the usual case: the name belongs to one method, so the members in between need not be looked at */
    if (at == 0 && same_signature(method, &r->members[r->member_count - 1]))
        return r->member_count;
    while (end < r->member_count) {
        size_t next = group_end(r, end, r->member_count);
        if (!same_signature(method, &r->members[next - 1]))
            break;
        end = next;
    }
    return end;
}

/* ---- selection ---- */

/* Picks `count` members from `first` on. With `only_name` no range contains the line, so only the method name of the last one is used. When
 * out of memory, sets out->busy. */
static void add_picked(struct retrace *r, size_t first, size_t count, bool only_name)
{
    if (!sl_grow_in_arena(r->out->arena, &r->picked, &r->picked_capacity, r->picked_count + 1, sizeof *r->picked)) {
        r->out->busy = true;
        return;
    }
    r->picked[r->picked_count++] = (struct picked){r->members + first, count, only_name};
}

/* Picks some of the members of one overload, those from `first` to before `end`, or none. */
typedef void pick_from_overload(struct retrace *r, size_t first, size_t end);

/* Picks the group of inlined calls whose range contains the line. For an unknown line, or line 0: the group whose range contains 0, else
 * the first member without a range. */
static void pick_group(struct retrace *r, size_t first, size_t end)
{
    int64_t line = r->line > 0 ? r->line : 0;
    for (size_t i = first; i < end; i++)
        if (range_holds(&r->members[i], line)) {
            add_picked(r, i, group_end(r, i, end) - i, false);
            return;
        }
    for (size_t i = first; i < end && r->line <= 0; i++)
        if (!has_own_range(&r->members[i])) {
            add_picked(r, i, 1, false);
            return;
        }
}

/* Picks the members without a range, which are moved to `first` and after. */
static void pick_without_range(struct retrace *r, size_t first, size_t end)
{
    size_t count = 0;
    for (size_t i = first; i < end; i++)
        if (!has_own_range(&r->members[i]))
            r->members[first + count++] = r->members[i];
    if (count)
        add_picked(r, first, count, false);
}

/* Picks all members of an overload, for an unknown line that no range contains. Only the method name is used then, unless it is a single
 * member that holds for all lines. */
static void pick_name(struct retrace *r, size_t first, size_t end)
{
    add_picked(r, first, end - first, end - first != 1 || !is_catch_all(&r->members[first]));
}

/* Calls `pick_some` for each overload: each original method to which members of the obfuscated one belong. */
static void pick(struct retrace *r, pick_from_overload *pick_some)
{
    r->picked_count = 0;
    for (size_t at = 0; at < r->member_count && !r->out->busy;) {
        size_t end = overload_end(r, at);
        pick_some(r, at, end);
        at = end;
    }
}

/* Picks by line, keeping only the members whose range contains it. True if that sufficed, because they are one group of inlined calls; also
 * when out of memory, with r->out->busy set. */
static bool pick_only_group(struct retrace *r)
{
    struct jvm_members at_line = r->all;
    struct jvm_member m;
    size_t capacity = sizeof r->few_members / sizeof *r->few_members, groups = 0;
    uint32_t last = 0;
    at_line.line = (uint32_t)r->line;
    r->members = r->few_members;
    r->member_count = r->picked_count = 0;
    while (groups <= 1 && jvm_next_member(&at_line, &m)) {
        if (!range_holds(&m, r->line))
            continue;
        /* a group is adjacent members with equal ranges; `read` counts skipped members, too */
        bool same = groups && at_line.read == last + 1 && same_range(&m, &r->members[r->member_count - 1]);
        groups += !same;
        last = at_line.read;
        if (!add_member(r, &capacity, &m))
            return true;
    }
    r->out->steps += at_line.read / MEMBERS_PER_STEP;
    if (groups == 1)
        add_picked(r, 0, r->member_count, false);
    return groups == 1;
}

/* The frame may have called an outline (code that R8 moved out of several methods). If a picked member has a position for the line in that
 * outline, replaces r->line by the line of the position and returns true: the caller picks again by the new line. */
static bool apply_callsite(struct retrace *r)
{
    uint32_t line;
    for (size_t i = 0; r->has_callsite && i < r->picked_count; i++)
        for (size_t k = r->picked[i].count; k--;)
            if (jvm_line_at(&r->picked[i].members[k], r->outline_line, &line)) {
                r->has_callsite = false;
                r->line = line;
                return true;
            }
    return false;
}

/* Picks from each overload the group of inlined calls that contains r->line (pick_group), the usual case of a single one first. */
static void pick_by_line(struct retrace *r)
{
    if (r->line > 0 && pick_only_group(r))
        return;
    read_members(r);
    pick(r, pick_group);
}

/* Picks by line, and again if the position of an outline replaced the line. If that gave nothing: members without a range, for a known
 * line, or method names only, for an unknown one. */
static void pick_members(struct retrace *r)
{
    pick_by_line(r);
    if (apply_callsite(r))
        pick_by_line(r);
    if (!r->picked_count && r->line > 0)
        pick(r, pick_without_range);
    if (!r->picked_count && r->line <= 0)
        pick(r, pick_name);
}

/* True if there are several alternatives: picked members of several original methods, or source lines that cannot be distinguished. */
static bool is_any_ambiguous(const struct retrace *r)
{
    if (r->picked_count > 1)
        return true;
    for (size_t i = 0; r->picked_count && !r->picked->only_name && i < r->picked->count; i++) {
        const struct jvm_member *m = &r->picked->members[i];
        /* members without a range never have the same one: several of them are alternatives */
        if (is_ambiguous(m) || (i && !same_range(m, r->picked->members)))
            return true;
    }
    return false;
}

/* ---- frames ---- */

/* Returns the text after the last dot; empty if there is no dot. */
static struct sl_str get_extension(struct sl_str file)
{
    const char *dot = file.size ? memrchr(file.data, '.', file.size) : NULL;
    return (struct sl_str){dot ? dot + 1 : "", dot ? (size_t)(file.data + file.size - dot - 1) : 0};
}

/* Sets the file of a frame: the one that the mapping has for its class; else "Native Method" if the obfuscated frame has that; else a name
 * made from the class with the extension .kt or .java. The extension is taken from the file of the obfuscated frame's own class or, if that
 * has none, from the file in the obfuscated frame. */
static void set_file(const struct retrace *r, const struct jvm_original_class *of, struct sl_jvm_frame *frame)
{
    struct sl_str obfuscated_file = r->query->file, own = r->own.suffix.size ? r->own.suffix : r->own.file;
    frame->file = of->file;
    frame->suffix = of->suffix;
    if (of->file.data)
        return;
    if (sl_str_equal(obfuscated_file, SL_STR("Native Method"))) {
        frame->file = obfuscated_file;
        frame->suffix = SL_STR("");
        return;
    }
    struct sl_str extension = get_extension(get_extension(own).size ? own : obfuscated_file);
    bool kotlin = sl_str_equal(extension, SL_STR("kt"));
    frame->file = sl_jvm_outermost(of->name);
    /* Kotlin compiles the functions of File.kt into a class FileKt */
    if ((kotlin || !extension.size) && sl_str_ends(frame->file, SL_STR("Kt"))) {
        frame->file.size -= 2;
        kotlin = true;
    }
    frame->suffix = kotlin ? SL_STR(".kt") : SL_STR(".java");
}

/* False if there are several alternatives and the frame had no line: then no lines are shown, except with signatures. */
static bool shows_lines(const struct retrace *r)
{
    return r->line != NO_LINE || !r->ambiguous || r->query->signatures;
}

/* Sets the frame's line, if lines are shown. A line that was computed from a range of the mapping may exceed 32 bits: it is left out, as
 * are 0 and NO_LINE. */
static void set_line(const struct retrace *r, int64_t line, struct sl_jvm_frame *frame)
{
    frame->has_line = shows_lines(r) && line > 0 && line <= UINT32_MAX;
    frame->line = frame->has_line ? (uint32_t)line : 0;
}

/* Returns the source line of a member: `chosen`, unless that is NO_LINE. Else returns its only source line. If it has several, returns the
 * one as far from the first as the obfuscated line is from the start of the range; the first one if that cannot be computed. An obfuscated
 * line that cannot be mapped is returned as it is, NO_LINE for none. */
static int64_t source_line(const struct retrace *r, const struct jvm_member *m, int64_t chosen)
{
    /* spans: it has several source lines */
    bool has_line = m->flags & JVM_LINE, spans = has_line && m->flags & JVM_LAST_LINE && m->last_line != m->line;
    if (chosen == NO_LINE && has_line && !spans)
        chosen = m->line;
    if (chosen != NO_LINE)
        return chosen;
    if (!r->ambiguous && (!has_own_range(m) || r->line == NO_LINE)) { /* nothing to compute from: the first line */
        uint32_t first = has_line ? m->line : has_own_range(m) ? m->start : 0;
        return first ? first : r->line;
    }
    if (!range_holds(m, r->line) || !has_line)
        return r->line;
    return m->line + (r->line - m->start);
}

/* Makes a frame of a member and its source line. The class is the original one of the query's, unless the member was inlined from another
 * class. Parameters and type are set only if the query asks for them. */
static void set_frame(const struct retrace *r, const struct jvm_member *m, int64_t line, struct sl_jvm_frame *frame)
{
    struct jvm_original_class receiver =
        m->flags & JVM_INLINED_FROM_OTHER_CLASS ? jvm_original_class(r->mapper, m->receiver) : r->own;
    *frame = (struct sl_jvm_frame){.class = receiver.name,
                                   .method = jvm_text(r->mapper, m->name),
                                   .synthesized = m->flags & JVM_SYNTHESIZED,
                                   .alternative = r->alternatives};
    if (r->query->signatures)
        frame->parameters = jvm_text(r->mapper, m->arguments);
    if (r->query->types)
        frame->type = sl_jvm_signatures_type(r->query->types, frame->class, frame->method, frame->parameters, m->line);
    set_file(r, &receiver, frame);
    set_line(r, line, frame);
}

/* Orders frames by class, method, return type, parameters, file, suffix and line: the order in which alternatives are shown. */
static int compare_frames(const struct sl_jvm_frame *a, const struct sl_jvm_frame *b)
{
    int order = sl_str_compare(a->class, b->class);
    order = order ? order : sl_str_compare(a->method, b->method);
    order = order ? order : sl_str_compare(a->type, b->type);
    order = order ? order : sl_str_compare(a->parameters, b->parameters);
    order = order ? order : sl_str_compare(a->file, b->file);
    order = order ? order : sl_str_compare(a->suffix, b->suffix);
    return order ? order : a->line < b->line ? -1 : a->line > b->line;
}

/* True if an alternative begins with this frame. */
static bool is_begun(const struct retrace *r, const struct sl_jvm_frame *frame)
{
    for (size_t i = r->first; i < r->out->count; i++) {
        const struct sl_jvm_frame *other = &r->out->items[i];
        bool is_first = i == r->first || other[-1].alternative != other->alternative;
        if (is_first && other->line == frame->line && compare_frames(other, frame) == 0)
            return true;
    }
    r->out->steps += r->out->count - r->first;
    return false;
}

/* Returns how many inner frames of the group the rules of its members (R8's rewriteFrame) remove; 0 if that is more than it has: such rules
 * are ignored. 0 unless an exception's class is known. */
static uint64_t count_removed(const struct retrace *r, const struct picked *group)
{
    uint64_t removed = 0;
    for (size_t i = 0; r->query->thrown.data && i < group->count; i++)
        if (group->members[i].flags & JVM_EXTRAS)
            removed += jvm_removed_by(r->mapper, &group->members[i], r->query);
    return removed <= group->count ? removed : 0;
}

/* Adds the frames of a group of inlined calls as one alternative, without those that rules remove and without an outermost method that the
 * compiler made or that is an outline. An alternative that begins with the same frame as an earlier one is dropped. `chosen`: source line
 * of the innermost frame; NO_LINE: by the mapping. */
static void add_alternative(struct retrace *r, const struct picked *group, int64_t chosen)
{
    size_t removed = (size_t)count_removed(r, group);
    const struct jvm_member *last = &group->members[group->count - 1];
    size_t end = group->count - (last->flags & (JVM_SYNTHESIZED | JVM_IS_OUTLINE) ? 1 : 0);
    r->is_outline = last->flags & JVM_IS_OUTLINE;
    for (size_t i = removed; i < end; i++) {
        const struct jvm_member *m = &group->members[i];
        int64_t line = group->only_name ? r->line : source_line(r, m, i == 0 ? chosen : NO_LINE);
        struct sl_jvm_frame frame;
        set_frame(r, m, line, &frame);
        if (i == removed && is_begun(r, &frame))
            return;
        if (i == removed && r->alternatives == MAX_ALTERNATIVES)
            r->out->limited = true;
        if (r->out->limited || !sl_jvm_frames_add(r->out, &frame))
            return;
    }
    r->out->steps += end;
    r->alternatives += end > removed;
}

/* Adds a group of inlined calls: as one alternative, or, if nothing tells which of several source lines of the innermost call is meant, as
 * one alternative for each. If these are more than MAX_ALTERNATIVES, none is added and r->out->limited is set. */
static void add_group(struct retrace *r, const struct picked *group)
{
    const struct jvm_member *inner = group->members;
    if (!r->ambiguous || !is_ambiguous(inner)) {
        add_alternative(r, group, NO_LINE);
        return;
    }
    /* if no lines are shown, all would look the same */
    uint64_t lines = shows_lines(r) ? UINT64_C(1) + inner->last_line - inner->line : 1;
    if (lines > MAX_ALTERNATIVES)
        r->out->limited = true;
    for (uint64_t i = 0; i < lines && !r->out->limited && !r->out->busy; i++)
        add_alternative(r, group, (int64_t)(inner->line + i));
}

/* Adds the frames of the members picked from one original method. Adjacent members with equal ranges are a group of inlined calls, and each
 * group becomes an alternative. With `only_name` the last member, the outermost method, alone is added. */
static void add_picked_frames(struct retrace *r, const struct picked *picked)
{
    if (picked->only_name) {
        add_alternative(r,
                        &(struct picked){.members = picked->members + picked->count - 1, .count = 1, .only_name = true},
                        NO_LINE);
        return;
    }
    for (size_t at = 0, end; at < picked->count && !r->out->limited && !r->out->busy; at = end) {
        end = at + 1;
        while (end < picked->count && same_range(&picked->members[at], &picked->members[end]))
            end++;
        add_group(r, &(struct picked){.members = picked->members + at, .count = end - at});
    }
}

/* Adds a frame of which only the class is known: method and line stay as they are. */
static void add_class_only(struct retrace *r)
{
    struct sl_jvm_frame frame = {.class = r->own.name, .method = r->query->method};
    set_file(r, &r->own, &frame);
    set_line(r, r->line, &frame);
    sl_jvm_frames_add(r->out, &frame);
}

/* ---- order ---- */

struct jvm_retrace_chain { /* frames of one alternative */
    const struct sl_jvm_frame *frames;
    size_t count;
};

/* Orders alternatives by their innermost frames, equal ones as they were added. */
static int compare_chains(const void *left, const void *right)
{
    const struct jvm_retrace_chain *a = left, *b = right;
    int order = compare_frames(a->frames, b->frames);
    return order ? order : a->frames < b->frames ? -1 : a->frames > b->frames;
}

/* Sorts the alternatives by their innermost frames and numbers them in this order. When out of memory, sets out->busy. */
static void sort_alternatives(struct retrace *r)
{
    size_t count = r->out->count - r->first, chain_count = 0;
    struct sl_jvm_frame *frames = r->out->items + r->first;
    struct jvm_retrace_chain *chains = SL_ARENA_ARRAY(r->out->arena, struct jvm_retrace_chain, r->alternatives);
    struct sl_jvm_frame *sorted = SL_ARENA_ARRAY(r->out->arena, struct sl_jvm_frame, count);
    if (!chains || !sorted) {
        r->out->busy = true;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || frames[i].alternative != frames[i - 1].alternative)
            chains[chain_count++].frames = &frames[i];
        chains[chain_count - 1].count++; /* the array began as zeros */
    }
    qsort(chains, chain_count, sizeof *chains, compare_chains);
    size_t at = 0;
    for (size_t i = 0; i < chain_count; i++)
        for (size_t k = 0; k < chains[i].count; k++, at++) {
            sorted[at] = chains[i].frames[k];
            sorted[at].alternative = (uint32_t)i;
        }
    memcpy(frames, sorted, count * sizeof *frames);
}

/* ---- entry points ---- */

/* Adds the frames of a method that is in the mapping. If it is an outline with at most one alternative, sets `*outline` for the next frame.
 * If no frame is left: SL_JVM_OUTLINE for an outline; else SL_JVM_CLEARED, as rules have removed all. But if a limit was reached or memory
 * ran out, which the flags in r->out tell, it is SL_JVM_FRAMES even without a frame. */
static enum sl_jvm_answer retrace_method(struct retrace *r, struct sl_jvm_outline *outline)
{
    r->has_callsite = outline->is_carried_over; /* the frame before was in an outline, which this method called */
    r->outline_line = outline->line;
    outline->is_carried_over = false;
    pick_members(r);
    if (!r->picked_count) { /* no member matches the line */
        add_class_only(r);
        return SL_JVM_FRAMES;
    }
    r->ambiguous = is_any_ambiguous(r);
    for (size_t i = 0; i < r->picked_count && !r->out->limited && !r->out->busy; i++)
        add_picked_frames(r, &r->picked[i]);
    if (r->alternatives > 1 && !r->out->limited && !r->out->busy)
        sort_alternatives(r);
    if (r->is_outline && r->alternatives <= 1)
        *outline = (struct sl_jvm_outline){.is_carried_over = true, .line = r->line > 0 ? (uint32_t)r->line : 0};
    if (r->out->count > r->first || r->out->limited || r->out->busy)
        return SL_JVM_FRAMES;
    return r->is_outline ? SL_JVM_OUTLINE : SL_JVM_CLEARED;
}

/* Retraces a method of a known class (`class`: id of its obfuscated name, `receiver`: id of its original class); a method that is not in
 * the mapping gives a frame with only the class. Separate from the look-up of the class, because an unknown class does not need this large
 * stack frame. */
static __attribute__((noinline)) enum sl_jvm_answer retrace_in_class(const struct sl_jvm_mapper *mapper,
                                                                     const struct sl_jvm_query *query,
                                                                     const struct jvm_names *names, uint32_t class,
                                                                     uint32_t receiver, struct sl_jvm_outline *outline,
                                                                     struct sl_jvm_frames *frames)
{
    struct retrace r;
    memset(&r, 0, offsetof(struct retrace, few_members)); /* skip few_members: clearing them would dominate the cost */
    memset(&r.picked, 0, sizeof r - offsetof(struct retrace, picked));
    r.mapper = mapper;
    r.query = query;
    r.out = frames;
    r.first = frames->count;
    r.picked = r.few_picked;
    r.picked_capacity = 1;
    r.own = jvm_original_class(mapper, receiver);
    r.line = query->line || query->line_is_known ? (int64_t)query->line : NO_LINE;
    if (jvm_find_method(mapper, names, class, &r.all))
        return retrace_method(&r, outline);
    outline->is_carried_over = false;
    add_class_only(&r);
    return SL_JVM_FRAMES;
}

enum sl_jvm_answer sl_jvm_mapper_retrace(const struct sl_jvm_mapper *mapper, const struct sl_jvm_query *query,
                                         struct sl_jvm_outline *outline, struct sl_jvm_frames *frames)
{
    struct jvm_names names = jvm_names(mapper, query->class, query->method);
    uint32_t class, receiver;
    if (jvm_find_class(mapper, &names, &class, &receiver))
        return retrace_in_class(mapper, query, &names, class, receiver, outline, frames);
    outline->is_carried_over = false;
    return SL_JVM_UNKNOWN;
}
