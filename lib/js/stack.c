/* Finds the frame of a JavaScript stack trace in a line of text: function, URL, line, column; writes it again with others. */
#include "js/stack.h"

enum { MAX_TRIES = 16 }; /* at most so many occurrences of "at " in a line are tried as the begin of a frame */

static struct sl_str from(struct sl_str text, size_t at)
{
    return (struct sl_str){text.data + at, text.size - at};
}

/* Removes `word` from the beginning of `*text`; false if the text does not begin with it. */
static bool skip_word(struct sl_str *text, struct sl_str word)
{
    if (!sl_str_starts(*text, word))
        return false;
    *text = from(*text, word.size);
    return true;
}

/* ---- positions ---- */

/* Reads "12" at `*at` and moves `*at` past it. False if no digit is there, or the number is above INT32_MAX. */
static bool read_digits(struct sl_str text, size_t *at, uint32_t *number)
{
    struct sl_str rest = {text.data + *at, text.size - *at};
    uint64_t value;
    if (!sl_str_take_u64(&rest, &value) || value > INT32_MAX)
        return false;
    *at = text.size - rest.size;
    *number = (uint32_t)value;
    return true;
}

/* Reads ":12" at `*at` and moves `*at` past it. False if no colon and number are there, or the number is above INT32_MAX. */
static bool read_colon_number(struct sl_str text, size_t *at, uint32_t *number)
{
    size_t i = *at + 1;
    if (*at >= text.size || text.data[*at] != ':' || !read_digits(text, &i, number))
        return false;
    *at = i;
    return true;
}

/* True if a frame may end before `rest`: at the end of the line, before one of `ends` (punctuation, quotes, a colour code), or before a
 * blank and the `{` of an error's members. After a location in parentheses also before a blank and any text, or before a full stop with a
 * blank or nothing behind it. */
static bool is_end(struct sl_str rest, bool in_parentheses)
{
    static const char ends[] = ",;\"'`\\\033]}<|";
    size_t blanks = 0;
    while (blanks < rest.size && sl_is_blank(rest.data[blanks]))
        blanks++;
    bool sentence = in_parentheses && rest.size && rest.data[0] == '.';
    if (blanks == rest.size || (sentence && (rest.size == 1 || sl_is_blank(rest.data[1]))))
        return true;
    if (blanks)
        return in_parentheses || rest.data[blanks] == '{';
    return memchr(ends, rest.data[0], sizeof ends - 1) != NULL;
}

/* Reads URL:LINE:COLUMN at the beginning of the text, and `)` after it if `in_parentheses`. Sets frame->behind to the rest. The URL may be
 * empty, and may itself contain colons and numbers: the first that can be a position at the end of a frame counts. False if there is
 * none, or for line 0. */
static bool find_url_position(struct sl_str text, bool in_parentheses, struct sl_js_stack_frame *frame)
{
    for (size_t i = 0; i < text.size && text.data[i] != '\t' && text.data[i] != '\n'; i++) {
        size_t end = i;
        if (text.data[i] != ':' || !read_colon_number(text, &end, &frame->line) ||
            !read_colon_number(text, &end, &frame->column))
            continue;
        if (in_parentheses && (end == text.size || text.data[end++] != ')'))
            continue;
        if (!is_end(from(text, end), in_parentheses))
            continue;
        frame->url = (struct sl_str){text.data, i};
        frame->behind = from(text, end);
        return frame->line != 0;
    }
    return false;
}

/* Reads LINE:COLUMN without a URL. False if the text does not begin so, or for line 0. */
static bool find_position_alone(struct sl_str text, struct sl_js_stack_frame *frame)
{
    size_t end = 0;
    if (!read_digits(text, &end, &frame->line) || !read_colon_number(text, &end, &frame->column) || !frame->line ||
        !is_end(from(text, end), false))
        return false;
    frame->url = (struct sl_str){text.data, 0};
    frame->behind = from(text, end);
    return true;
}

/* Reads URL:LINE:COLUMN; false if there is none, or if the URL is empty or `<anonymous>`. Hermes writes "address at " in front of it and
 * counts columns of bytecode from 0: the column is made to count from 1, as in all other frames. */
static bool find_location(struct sl_str text, bool in_parentheses, struct sl_js_stack_frame *frame)
{
    const struct sl_str address = SL_STR("address at ");
    bool hermes = frame->v8 && sl_str_starts(text, address);
    while (frame->v8 && skip_word(&text, address)) /* however often it is repeated */
        ;
    if (!find_url_position(text, in_parentheses, frame) || !frame->url.size ||
        sl_str_starts(frame->url, SL_STR("<anonymous>")))
        return false;
    frame->column += hermes;
    return true;
}

/* True if the line may contain a position. Most log lines do not, so this check saves trying to read a frame. */
static bool has_position(struct sl_str line)
{
    uint32_t number;
    const char *colon;
    for (size_t at = 0; at < line.size && (colon = memchr(line.data + at, ':', line.size - at)); at++) {
        at = (size_t)(colon - line.data);
        size_t end = at;
        if (read_colon_number(line, &end, &number) && read_colon_number(line, &end, &number) &&
            ((end < line.size && line.data[end] == ')') || is_end(from(line, end), false)))
            return true;
    }
    return false;
}

/* ---- frames ---- */

/* Returns the offset of the `(` that belongs to the `)` at the end of the text; the text's size if there is none. */
static size_t find_opening(struct sl_str text)
{
    size_t depth = 0;
    for (size_t i = text.size; i-- > 0;) {
        depth += text.data[i] == ')';
        if (text.data[i] == '(' && --depth == 0)
            return i;
    }
    return text.size;
}

/* True if there is a `(` at `at` that may begin the location of a frame: after a name and a blank or, if `nameless`, at the beginning of
 * the text. */
static bool is_opening(struct sl_str text, size_t at, bool nameless)
{
    return at < text.size && text.data[at] == '(' && (at ? text.data[at - 1] == ' ' && at > 1 : nameless);
}

/* Reads FUNCTION (URL:LINE:COLUMN); with `nameless` the function may be missing. False for text of another form. Names and paths may
 * contain parentheses. The location begins at the `(` that belongs to its last `)`, if a blank is in front of that `(`; else at the first
 * `(` with a blank in front. */
static bool in_parentheses(struct sl_str text, bool nameless, struct sl_js_stack_frame *frame)
{
    size_t first = 0; /* the first `(` that may begin the location */
    while (first < text.size && !is_opening(text, first, nameless))
        first++;
    if (first == text.size || !find_location(from(text, first + 1), true, frame))
        return false;
    struct sl_str whole = {text.data, (size_t)(frame->behind.data - text.data)};
    /* `whole` ends with the location's `)`; only if there are more `(` in it the one that belongs to the `)` may be another than `first` */
    size_t at = memchr(text.data + first + 1, '(', whole.size - first - 1) ? find_opening(whole) : first;
    if (at != first && is_opening(text, at, nameless) && !find_location(from(text, at + 1), true, frame))
        return false;
    if (at == whole.size || !is_opening(text, at, nameless))
        at = first;
    frame->function = sl_str_trimmed((struct sl_str){text.data, at ? at - 1 : 0}); /* - 1: the blank before the `(` */
    return nameless || frame->function.size;
}

/* Reads a frame of V8 from the text after "at ". If only blanks precede "at ", `alone` is true. Otherwise the line may be any line of a
 * log, such as "at 10:20:30", so that a location without parentheses must have a slash or backslash and no blank. */
static bool v8_frame(struct sl_str text, bool alone, struct sl_js_stack_frame *frame)
{
    static const struct sl_str eval = SL_STR("(eval at ");
    const char *data = text.data;
    bool async = skip_word(&text, SL_STR("async "));
    /* of nested evals, "eval (eval at f (eval at g (URL...", the innermost position is in a file */
    for (const char *open; (open = memchr(text.data, '(', text.size)); frame->of_eval = true) {
        struct sl_str inner = from(text, (size_t)(open - text.data));
        if (!skip_word(&inner, eval))
            break;
        text = inner;
    }
    frame->v8 = true;
    frame->before.size += (size_t)(text.data - data); /* "async " and "eval (eval at " are kept as they are */
    frame->constructor = skip_word(&text, SL_STR("new "));
    /* after `async` or `new` the function may be missing: "new (URL:1:2)" */
    if (in_parentheses(text, (async || frame->constructor) && !frame->of_eval, frame))
        return true;
    /* no FUNCTION (LOCATION): a location alone, which follows neither `new` nor an eval */
    frame->function = (struct sl_str){NULL, 0};
    if (frame->of_eval || frame->constructor || !find_location(text, false, frame))
        return false;
    return alone || (!memchr(frame->url.data, ' ', frame->url.size) &&
                     (memchr(frame->url.data, '/', frame->url.size) || memchr(frame->url.data, '\\', frame->url.size)));
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'' || c == '`';
}

/* True if a terminal colour code such as "[90m" ends here. */
static bool is_behind_code(struct sl_str text, size_t at)
{
    if (at == 0 || text.data[--at] != 'm')
        return false;
    while (at > 0 && (sl_is_digit(text.data[at - 1]) || text.data[at - 1] == ';'))
        at--;
    return at > 0 && text.data[at - 1] == '[';
}

/* True if a frame may begin here: a log prefix ends with a blank, a bar, a quote or a colour code. */
static bool may_begin(struct sl_str line, size_t at)
{
    return at == 0 || sl_is_blank(line.data[at - 1]) || line.data[at - 1] == '|' || is_quote(line.data[at - 1]) ||
           is_behind_code(line, at);
}

/* Finds the V8 frame "at FUNCTION (...)" in a line from `begin` on; false if there is none. Text of a log in front may contain the word
 * "at", too. If several begin a frame, the last one before the end of the function's name counts. At most MAX_TRIES are tried, so that a
 * crafted line takes linear time. */
static bool find_v8(struct sl_str line, size_t begin, struct sl_js_stack_frame *frame)
{
    static const struct sl_str at = SL_STR("at ");
    size_t next = begin, end = line.size;
    bool is = false;
    for (unsigned tries = 0; tries < MAX_TRIES && next < end; next++) {
        struct sl_str rest = {line.data + next, end - next};
        const char *found = rest.size < at.size       ? NULL
                            : sl_str_starts(rest, at) ? rest.data
                                                      : memmem(rest.data, rest.size, at.data, at.size);
        if (!found)
            break;
        next = (size_t)(found - line.data);
        if (!may_begin(line, next))
            continue;
        tries++;
        struct sl_js_stack_frame it = {.before = {line.data, next + at.size}};
        if (!v8_frame(from(line, next + at.size), next == begin, &it))
            continue;
        is = true;
        *frame = it;
        /* another "at " may only follow in what was taken for the function's name; without a name the search ends (0) */
        end = it.function.size ? (size_t)(it.function.data + it.function.size - line.data) : 0;
    }
    return is;
}

/* Returns the offset of the beginning of the word that ends at `at`: after a blank, bar, quote or colour code. */
static size_t word_begin(struct sl_str text, size_t at)
{
    while (at > 0 && !may_begin(text, at))
        at--;
    return at;
}

/* Returns the offset of the function's name in `text`, which precedes an @ and may begin with a log prefix. A name is one word, except
 * Safari's `global code` and the like, and Firefox's `promise callback*f` and `... handler*f`, which are two. */
static size_t function_begin(struct sl_str text)
{
    static const struct sl_str codes[] = {SL_STR("global code"), SL_STR("module code"), SL_STR("eval code")};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (sl_str_ends(text, codes[i]))
            return text.size - codes[i].size;
    size_t at = word_begin(text, text.size);
    bool two = sl_str_starts(from(text, at), SL_STR("callback*")) || sl_str_starts(from(text, at), SL_STR("handler*"));
    return two && at > 0 ? word_begin(text, at - 1) : at;
}

/* Reads FUNCTION@URL:LINE:COLUMN, URL:LINE:COLUMN or, as JSC writes it, FUNCTION@LINE:COLUMN; false for text of another form. If a colon
 * precedes the @, the @ is part of the URL. A URL without a slash counts only with a function in front; behind a log prefix it must also
 * have a backslash. */
static bool other_frame(struct sl_str line, size_t begin, struct sl_js_stack_frame *frame)
{
    struct sl_str text = from(line, begin);
    const char *at = memchr(text.data, '@', text.size);
    /* the text before the @, of which the first `skipped` bytes are a log prefix */
    size_t size = at ? (size_t)(at - text.data) : 0,
           skipped = at ? function_begin((struct sl_str){text.data, size}) : 0;
    bool named = at && !memchr(text.data + skipped, ':', size - skipped);
    *frame = (struct sl_js_stack_frame){.before = {line.data, begin + (named ? skipped : 0)}};
    if (named) {
        frame->function = (struct sl_str){text.data + skipped, size - skipped};
        text = from(text, size + 1);
        if (frame->function.size && find_position_alone(text, frame))
            return true;
    }
    if (!find_location(text, false, frame) || memchr(frame->url.data, ' ', frame->url.size))
        return false;
    bool has_folder = memchr(frame->url.data, '/', frame->url.size) != NULL;
    return has_folder || (named && (!skipped || memchr(frame->url.data, '\\', frame->url.size)));
}

/* ---- parts of lines ---- */

/* Counts the backslashes at the beginning. */
static size_t backslashes(struct sl_str text)
{
    size_t count = 0;
    while (count < text.size && text.data[count] == '\\')
        count++;
    return count;
}

/* True if the `n` after `count` backslashes makes them an escaped line end of a stack in JSON; false if it belongs to a Windows path like
 * `C:\new`. It makes a line end if it follows a single backslash in quotes, or if the line of a V8 frame (" at ") comes after it. */
static bool is_newline(struct sl_str text, size_t count, bool quoted)
{
    if (count >= text.size || text.data[count] != 'n')
        return false;
    struct sl_str rest = from(text, count + 1);
    size_t blanks = 0;
    while (blanks < rest.size && rest.data[blanks] == ' ')
        blanks++;
    return (quoted && count == 1) || (blanks && sl_str_starts(from(rest, blanks), SL_STR("at ")));
}

bool sl_js_stack_part(struct sl_str *rest, struct sl_str *part)
{
    struct sl_str text = *rest;
    size_t at = backslashes(text);
    bool quoted = at > 0; /* the part before was in quotes */
    while (at < text.size) {
        const char *next = memchr(text.data + at, '\\', text.size - at);
        if (!next)
            break;
        size_t to = (size_t)(next - text.data), count = backslashes(from(text, to));
        quoted = quoted || memchr(text.data + at, '"', to - at);
        if (is_newline(from(text, to), count, quoted)) {
            *part = (struct sl_str){text.data, to};
            *rest = from(text, to);
            return true;
        }
        at = to + count;
    }
    *part = text;
    *rest = from(text, text.size);
    return text.size > 0;
}

/* ---- lines ---- */

bool sl_js_stack_frame(struct sl_str line, struct sl_js_stack_frame *frame)
{
    size_t begin = 0, count = backslashes(line), end = line.size;
    unsigned escapes = 0;
    if (count && count < line.size && line.data[count] == 'n') {
        begin = count + 1;
        for (size_t n = count; n; n /= 2) /* each level of quoting doubles the backslashes before the n */
            escapes++;
    }
    while (begin < end && sl_is_blank(line.data[begin]))
        begin++;
    bool placed = has_position(from(line, begin));
    const char *sign = placed || begin == end ? NULL : memchr(line.data + begin, '@', end - begin);
    bool alone = sign && sign + 1 < line.data + end && sl_is_digit(sign[1]); /* f@1:23, a position without URL */
    if (!placed && !alone)
        return false;
    bool is = (placed && find_v8(line, begin, frame)) || other_frame(line, begin, frame);
    frame->escapes = escapes;
    return is;
}

/* Each level of quoting escapes the backslashes of the level inside, so n levels put 2^n - 1 backslashes before a quote or backslash; at
 * most four levels are written. */
void sl_js_stack_escape(const struct sl_js_stack_frame *frame, struct sl_str text, struct sl_buf *out)
{
    unsigned times = frame->escapes < 4 ? frame->escapes : 4;
    if (!times) {
        sl_buf_str(out, text);
        return;
    }
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c != '"' && c != '\\') {
            sl_buf_u8(out, (uint8_t)c);
            continue;
        }
        for (size_t n = ((size_t)1 << times) - 1; n > 0; n--)
            sl_buf_u8(out, '\\');
        sl_buf_u8(out, (uint8_t)c);
    }
}

void sl_js_stack_put_url(struct sl_str url, struct sl_buf *out)
{
    for (size_t i = 0; i < url.size; i++) {
        bool repeats = i && url.data[i - 1] == '\\';
        if (url.data[i] == '\\' && (i < 2 || !repeats)) /* both of the first two stay: the path of a server */
            sl_buf_u8(out, '/');
        else if (url.data[i] == '\033') /* a colour code, up to its `m` */
            while (i + 1 < url.size && url.data[i] != 'm')
                i++;
        else if (url.data[i] != '\\')
            sl_buf_u8(out, (uint8_t)url.data[i]);
    }
}

/* V8: "f (URL:1:2)", "new (URL:1:2)" or, without a function, "URL:1:2". Others: "f@URL:1:2". */
void sl_js_stack_write(const struct sl_js_stack_frame *frame, struct sl_buf *out)
{
    bool braces = frame->v8 && (frame->function.size || frame->constructor);
    sl_buf_str(out, frame->before);
    if (frame->constructor && !sl_str_starts(frame->function, SL_STR("new ")))
        sl_buf_cstr(out, "new ");
    sl_buf_str(out, frame->function);
    sl_buf_cstr(out, !frame->v8 ? "@" : !braces ? "" : frame->function.size ? " (" : "(");
    sl_buf_str(out, frame->url);
    if (frame->url.size)
        sl_buf_u8(out, ':');
    sl_buf_number(out, frame->line, ':'); /* and the colon after it */
    sl_buf_decimal(out, frame->column);
    if (braces)
        sl_buf_u8(out, ')');
    sl_buf_str(out, frame->behind);
}
