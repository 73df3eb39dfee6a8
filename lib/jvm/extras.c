/* Reads what R8's comments add to a member (a method line of the mapping): rules that remove frames, and positions of outlines. */
#include "jvm/members.h"

/* True if the descriptor "La/b/C;" denotes the class "a.b.C". */
static bool describes(struct sl_str descriptor, struct sl_str class)
{
    if (descriptor.size != class.size + 2 || descriptor.data[0] != 'L' || descriptor.data[class.size + 1] != ';')
        return false;
    for (size_t i = 0; i < class.size; i++)
        if (descriptor.data[i + 1] != (class.data[i] == '.' ? '/' : class.data[i]))
            return false;
    return true;
}

uint64_t jvm_removed_by(const struct sl_jvm_mapper *mapper, const struct jvm_member *m,
                        const struct sl_jvm_query *query)
{
    struct sl_reader r = m->extras; /* the caller has checked that there are any: JVM_EXTRAS */
    uint64_t sum = 0;
    for (uint64_t left = sl_read_uleb(&r); left && !r.failed; left--) { /* skips the positions of an outline */
        sl_read_uleb(&r);
        sl_read_uleb(&r);
    }
    for (uint64_t left = sl_read_uleb(&r); left && !r.failed; left--) {
        struct sl_str thrown = jvm_text(mapper, (uint32_t)sl_read_uleb(&r));
        uint64_t count = sl_read_uleb(&r) & UINT32_MAX; /* more only in a damaged file: the sum cannot overflow */
        if (describes(thrown, query->thrown) || (query->wrapped.data && describes(thrown, query->wrapped)))
            sum += count;
    }
    return sum;
}

/* Searches the positions, which come first in the extras: a count, then pairs of a line of the outline and the line of its caller. */
bool jvm_line_at(const struct jvm_member *m, uint32_t position, uint32_t *line)
{
    struct sl_reader r = m->extras;
    if (!(m->flags & JVM_EXTRAS))
        return false;
    for (uint64_t left = sl_read_uleb(&r); left && !r.failed; left--) {
        bool found = sl_read_uleb(&r) == position;
        *line = (uint32_t)sl_read_uleb(&r);
        if (found)
            return !r.failed;
    }
    return false;
}
