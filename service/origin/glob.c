/* Glob patterns for module names. A pattern must match the whole name; ASCII case is ignored; `*` and `?` match '/' too; `**` must
 * be a whole component of the path. */
#include "origin/origin.h"

static char glob_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* Returns the length of the class [...] that begins at `at`; 0 if it is not closed. A `]` directly after `[` or `[!` is a character. */
static size_t class_length(struct sl_str pattern, size_t at)
{
    size_t i = at + 1;
    if (i < pattern.size && pattern.data[i] == '!')
        i++;
    if (i < pattern.size && pattern.data[i] == ']')
        i++;
    while (i < pattern.size && pattern.data[i] != ']')
        i++;
    return i < pattern.size ? i + 1 - at : 0;
}

/* True if `c` matches the class, such as [a-z] or [!0-9], of `length` characters at `at`. Ranges are tried with both cases of `c`. */
static bool class_matches(struct sl_str pattern, size_t at, size_t length, char c)
{
    size_t i = at + 1, end = at + length - 1;
    bool negate = pattern.data[i] == '!', found = false;
    char l = glob_lower(c);
    i += negate;
    while (i < end) {
        char from = pattern.data[i], to = from;
        if (i + 2 < end && pattern.data[i + 1] == '-') {
            to = pattern.data[i + 2];
            i += 2;
        }
        i++;
        char upper = l >= 'a' && l <= 'z' ? (char)(l - 32) : l;
        found =
            found || (l >= from && l <= to) || (upper >= from && upper <= to) || (from == to && glob_lower(from) == l);
    }
    return found != negate;
}

/* Returns the number of stars at `at`. */
static size_t stars(struct sl_str pattern, size_t at)
{
    size_t n = 0;
    while (at + n < pattern.size && pattern.data[at + n] == '*')
        n++;
    return n;
}

/* True if the pattern is valid: its classes are closed, and ** is a whole component. */
bool origin_glob_valid(struct sl_str pattern)
{
    for (size_t i = 0; i < pattern.size;) {
        if (pattern.data[i] == '[') {
            size_t length = class_length(pattern, i);
            if (!length)
                return false;
            i += length;
        } else if (pattern.data[i] == '*') {
            size_t n = stars(pattern, i);
            bool begins = i == 0 || pattern.data[i - 1] == '/';
            bool ends = i + n == pattern.size || pattern.data[i + n] == '/';
            if (n > 2 || (n == 2 && (!begins || !ends)))
                return false;
            i += n;
        } else {
            i++;
        }
    }
    return true;
}

/* Greedy matching that after a mismatch returns only to the last star: at most pattern times subject steps, without recursion. The last
 * star is enough, as it can match whatever an earlier one could: `*` matches separators, and the star of `**` with its separator differs
 * only in that what it matches ends before the begin of a component. */
bool origin_glob(struct sl_str pattern, struct sl_str subject)
{
    size_t p = 0, s = 0, back_p = SIZE_MAX, back_s = 0;
    bool whole = false; /* the last star is that of a `**` with its separator */
    for (;;) {
        size_t length = 1;
        bool match = false;
        if (p < pattern.size && pattern.data[p] == '*') {
            size_t n = stars(pattern, p); /* 2 only before a separator or the end: origin_glob_valid() */
            p += n;
            whole = n == 2 && p < pattern.size;
            p += whole;
            back_p = p;
            back_s = s;
            continue;
        }
        if (s < subject.size && p < pattern.size) {
            if (pattern.data[p] == '?') {
                match = true;
            } else if (pattern.data[p] == '[' && (length = class_length(pattern, p)) > 0) {
                match = class_matches(pattern, p, length, subject.data[s]);
            } else {
                length = 1; /* also for a `[` without its `]` */
                match = glob_lower(pattern.data[p]) == glob_lower(subject.data[s]);
            }
        } else if (p == pattern.size && s == subject.size) {
            return true;
        }
        if (match) {
            p += length;
            s++;
        } else if (back_p != SIZE_MAX && back_s < subject.size) {
            const char *slash = whole ? memchr(subject.data + back_s, '/', subject.size - back_s) : NULL;
            if (whole && !slash)
                return false;
            back_s = whole ? (size_t)(slash - subject.data) + 1 : back_s + 1;
            s = back_s;
            p = back_p;
        } else {
            return false;
        }
    }
}
