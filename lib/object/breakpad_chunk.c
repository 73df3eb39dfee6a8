/* Breakpad: reads the records of one chunk (a part of the file that begins with a FUNC line) into functions.
 *
 * Line records are nearly all of a file, INLINE records most of the rest: both are scanned without looking for the end of the line
 * first. Other records, and malformed lines, are read field by field. */
#include "object/breakpad_reader.h"
#include "object/breakpad_scan.h"

enum { SMALLEST_LINE = 8 /* "0 1 1 0\n": gives the largest number of lines in a chunk */ };

/* The function whose line and INLINE records are being read. */
struct open_function {
    struct sl_function function;
    size_t first_line, first_inlinee;
    uint64_t last_address, lines_end; /* address of the last line record; the largest end of a line so far */
    bool open, sorted;                /* open: there is such a function; sorted: its lines ascend by address so far */
};

/* Returns the exclusive end of an address range, UINT64_MAX if the sum overflows. */
static uint64_t breakpad_chunk_end_address(uint64_t address, uint64_t size)
{
    return size > UINT64_MAX - address ? UINT64_MAX : address + size;
}

/* Returns the line, or 0 (unknown) if it does not fit into 32 bits. */
static uint32_t clamp_line(uint64_t line)
{
    return line > UINT32_MAX ? 0 : (uint32_t)line;
}

/* Returns the index in chunk->files of the file with number `id`; adds the file if it is not there yet. SL_NO_FILE if no FILE record has
 * that number, or when out of memory (chunk->failed). w->indexes caches the index for each file of the table r->files. An entry is valid if
 * its `batch` is w->batch, the number of the chunk that the worker reads now: each chunk has its own array of files. */
static uint32_t find_file(const struct breakpad_reader *r, struct breakpad_worker *w, struct breakpad_chunk *chunk,
                          uint64_t id)
{
    size_t index;
    struct sl_str name = breakpad_names_get(&r->files, id, &index);
    /* an index beyond the cache cannot occur: all FILE records were read before the cache was made */
    if (!name.data || index >= w->index_count)
        return SL_NO_FILE;
    struct breakpad_file_index *known = &w->indexes[index];
    if (known->batch != w->batch) {
        if (!sl_account_grow(&chunk->account, &chunk->files, &chunk->file_capacity, chunk->file_count + 1,
                             sizeof *chunk->files)) {
            chunk->failed = true;
            return SL_NO_FILE;
        }
        chunk->files[chunk->file_count] =
            (struct sl_file){.name = name, .number = index < UINT32_MAX ? (uint32_t)index + 1 : 0}; /* 0: no number */
        *known = (struct breakpad_file_index){w->batch, (uint32_t)chunk->file_count++};
    }
    return known->index;
}

/* Returns the index in chunk->files of the file with number `id` (SL_NO_FILE if there is none): at once if a line of this chunk had the
 * file before, else by find_file(). */
static inline uint32_t file_index(const struct breakpad_reader *r, struct breakpad_worker *w,
                                  struct breakpad_chunk *chunk, uint64_t id)
{
    if (id < r->files.count && w->indexes[id].batch == w->batch)
        return w->indexes[id].index;
    return find_file(r, w, chunk, id);
}

struct line_record {
    uint64_t address, size, line, file;
};

/* Scans a line record whose fields are separated by single spaces, have at most eight digits and no sign, as nearly all have. Returns the
 * position after the newline; NULL for any other line, which scan_line() may accept. `ends` are the offsets of the ends of the four fields;
 * two fields are converted at once, and `wrong` tells that one has a character that is no digit. */
static inline const uint8_t *scan_usual_line(const uint8_t *at, struct line_record *out)
{
    unsigned ends[4];
    if (!scan_fields(at, ends, 4) || at[ends[3]] != '\n')
        return NULL;
    /* scan_lane() loads the characters between two offsets into a u64 */
    struct scan_pair code = scan_hex_pair(scan_lane(at, 0, ends[0]), scan_lane(at, ends[0] + 1, ends[1]));
    struct scan_pair source =
        scan_decimal_pair(scan_lane(at, ends[1] + 1, ends[2]), scan_lane(at, ends[2] + 1, ends[3]));
    if (code.wrong | source.wrong)
        return NULL;
    *out = (struct line_record){code.first, code.second, source.first, source.second};
    return at + ends[3] + 1;
}

/* Scans the line record `address size [-]line file`; a negative line becomes 0 (unknown). Returns the position after the newline, NULL if
 * the text has another form. */
static inline const uint8_t *scan_line(const uint8_t *at, struct line_record *out)
{
    if (!(at = scan_hex(at, &out->address)) || !(at = scan_blanks(at)) || !(at = scan_hex(at, &out->size)) ||
        !(at = scan_blanks(at)))
        return NULL;
    bool negative = *at == '-';
    if (!(at = scan_decimal(at + negative, &out->line)) || !(at = scan_blanks(at)) ||
        !(at = scan_decimal(at, &out->file)))
        return NULL;
    if (negative)
        out->line = 0;
    return scan_line_end(at);
}

/* Makes room for one more inlined call in the chunk. Sets chunk->failed and returns false when out of memory. */
static bool grow_inlinees(struct breakpad_chunk *chunk)
{
    if (chunk->inlinee_count < chunk->inlinee_capacity ||
        sl_account_grow(&chunk->account, &chunk->inlinees, &chunk->inlinee_capacity, chunk->inlinee_count + 1,
                        sizeof *chunk->inlinees))
        return true;
    chunk->failed = true;
    return false;
}

/* The fields of an INLINE record before its address ranges. */
struct inline_head {
    uint64_t depth, call_line, call_file, origin; /* origin: number of the INLINE_ORIGIN record with the name */
};

/* Scans the four numbers before the address ranges of an INLINE record (depth, call line, call file, origin), if they are separated by
 * single spaces and have at most eight digits. Returns the position after the space behind them; NULL for any other form, which scan_head()
 * may accept. `ends` are the offsets of the ends of the numbers; two are converted at once, and `wrong` tells that one has a character that
 * is no digit. */
static inline const uint8_t *scan_usual_head(const uint8_t *at, struct inline_head *out)
{
    unsigned ends[4];
    if (!scan_fields(at, ends, 4) || at[ends[3]] != ' ')
        return NULL;
    /* scan_lane() loads the characters between two offsets into a u64 */
    struct scan_pair call = scan_decimal_pair(scan_lane(at, 0, ends[0]), scan_lane(at, ends[0] + 1, ends[1]));
    struct scan_pair names =
        scan_decimal_pair(scan_lane(at, ends[1] + 1, ends[2]), scan_lane(at, ends[2] + 1, ends[3]));
    *out = (struct inline_head){call.first, call.second, names.first, names.second};
    return call.wrong | names.wrong ? NULL : at + ends[3] + 1;
}

/* Scans the four numbers before the address ranges of an INLINE record: depth, call line, call file, origin (the number of the name).
 * Returns the position of the first range; NULL if the text has another form. */
static const uint8_t *scan_head(const uint8_t *at, struct inline_head *out)
{
    uint64_t *const values[] = {&out->depth, &out->call_line, &out->call_file, &out->origin};
    for (size_t i = 0; i < 4; i++)
        if (!(at = scan_decimal(at, values[i])) || !(at = scan_blanks(at)))
            return NULL;
    return at;
}

/* Scans `address size` of an INLINE record, if each has at most eight digits, and the byte after it: a newline, or a space with the next
 * range after it. Returns the position after that byte; NULL for any other form, which scan_range() may accept. */
static inline const uint8_t *scan_usual_range(const uint8_t *at, struct sl_flat_inlinee *out)
{
    unsigned ends[2];
    if (!scan_fields(at, ends, 2))
        return NULL;
    const uint8_t *behind = at + ends[1]; /* `ends`: offsets of the ends of the two numbers */
    if (*behind != '\n' && (*behind != ' ' || behind[1] <= ' '))
        return NULL;
    /* scan_lane() loads the characters between two offsets into a u64 */
    struct scan_pair code = scan_hex_pair(scan_lane(at, 0, ends[0]), scan_lane(at, ends[0] + 1, ends[1]));
    out->address = code.first;
    out->size = code.second;
    return code.wrong ? NULL : behind + 1;
}

/* Scans `address size` of an INLINE record, and the blanks or the end of the line after it. Returns the position after these; NULL if the
 * text has another form. */
static const uint8_t *scan_range(const uint8_t *at, struct sl_flat_inlinee *out)
{
    const uint8_t *next;
    if (!(at = scan_hex(at, &out->address)) || !(at = scan_blanks(at)) || !(at = scan_hex(at, &out->size)))
        return NULL;
    return (next = scan_line_end(at)) ? next : scan_blanks(at);
}

/* Makes the inlined call of an INLINE record, without its address range. Calls with the same `number` have the same name, so that readers
 * need not compare texts. The number is 0, so that they do compare, if the name is in the map for large numbers (not in r->origins.items),
 * or if the file defined any INLINE_ORIGIN number twice: equal numbers may then mean different names. */
static inline struct sl_flat_inlinee make_inlinee(const struct breakpad_reader *r, struct breakpad_worker *w,
                                                  struct breakpad_chunk *chunk, const struct inline_head *head)
{
    bool in_array = head->origin < r->origins.count;
    struct sl_str name =
        in_array ? r->origins.items[head->origin] : breakpad_names_get(&r->origins, head->origin, NULL);
    uint32_t number = in_array && !r->origins.redefined ? (uint32_t)head->origin + 1 : 0;
    /* without a number, readers will compare the name: that is charged here */
    if (!number && !sl_account_spend(&w->account, (uint32_t)name.size))
        chunk->failed = true;
    return (struct sl_flat_inlinee){
        .name = name,
        .number = number,
        .depth = head->depth > UINT32_MAX ? UINT32_MAX : (uint32_t)head->depth,
        .call_file = file_index(r, w, chunk, head->call_file),
        .call_line = clamp_line(head->call_line),
    };
}

/* Scans the address ranges of an INLINE record, `(address size)+`, and adds a copy of `inlinee` for each. Returns the position after the
 * newline. NULL when malformed or out of memory; then no range of the record is kept. */
static inline const uint8_t *scan_ranges(struct breakpad_chunk *chunk, const uint8_t *next,
                                         struct sl_flat_inlinee inlinee)
{
    size_t first = chunk->inlinee_count;
    do {
        const uint8_t *at = next;
        if ((!(next = scan_usual_range(at, &inlinee)) && !(next = scan_range(at, &inlinee))) || !grow_inlinees(chunk)) {
            chunk->inlinee_count = first;
            return NULL;
        }
        chunk->inlinees[chunk->inlinee_count++] = inlinee;
    } while (next[-1] != '\n'); /* both scanners stop behind a newline, or behind blanks before another range */
    return next;
}

/* Scans `INLINE depth call-line origin (address size)+`, which early Breakpad wrote: it lacks the file of the call. A truncated record of
 * the present form looks the same, but only early files have the form `INLINE_ORIGIN number file name` (file: a number or -1). Returns
 * the position after the line; NULL for any other record. */
static const uint8_t *scan_early_inline(const struct breakpad_reader *r, struct breakpad_worker *w,
                                        struct breakpad_chunk *chunk, const uint8_t *at)
{
    struct sl_flat_inlinee inlinee = {.call_file = SL_NO_FILE};
    uint64_t depth, call_line, origin, file;
    if (!(at = scan_decimal(at, &depth)) || !(at = scan_blanks(at)) || !(at = scan_decimal(at, &call_line)) ||
        !(at = scan_blanks(at)) || !(at = scan_decimal(at, &origin)) || !(at = scan_blanks(at)))
        return NULL;
    struct sl_str text = breakpad_names_get(&r->origins, origin, NULL); /* `file name` */
    struct breakpad_fields name = {text.data, text.data + text.size};
    if (!sl_account_spend(&w->account, (uint32_t)text.size)) /* the text is parsed again for every record */
        chunk->failed = true;
    bool has_file = breakpad_word(&name, SL_STR("-1")) || breakpad_decimal(&name, &file);
    if (!has_file || !(inlinee.name = breakpad_rest(&name)).size)
        return NULL;
    inlinee.depth = depth > UINT32_MAX ? UINT32_MAX : (uint32_t)depth;
    inlinee.call_line = clamp_line(call_line);
    return scan_ranges(chunk, at, inlinee);
}

/* Scans `INLINE depth call-line call-file origin (address size)+`, from the depth on, or the early form of the record, without the file.
 * Returns the position after the newline; NULL if the record is malformed or memory is used up (chunk->failed). */
static const uint8_t *scan_inline(const struct breakpad_reader *r, struct breakpad_worker *w,
                                  struct breakpad_chunk *chunk, const uint8_t *at)
{
    struct inline_head head;
    const uint8_t *next = scan_usual_head(at, &head);
    if (!next)
        next = scan_head(at, &head);
    if (next)
        next = scan_ranges(chunk, next, make_inlinee(r, w, chunk, &head));
    return next ? next : scan_early_inline(r, w, chunk, at);
}

/* Scans a FUNC record from the blank behind `FUNC` on, if it has a name, single blanks and none at its end, as nearly all have. The text
 * ends at `behind`. Returns the position after the newline; NULL for any other form, which read_func() may accept. */
static const uint8_t *scan_usual_func(const uint8_t *at, const uint8_t *behind, struct sl_function *function)
{
    uint64_t parameters;
    *function = (struct sl_function){.multiple = at[1] == 'm' && at[2] == ' '};
    at += function->multiple ? 3 : 1;
    if (!(at = scan_hex(at, &function->address)) || *at++ != ' ' || !(at = scan_hex(at, &function->size)) ||
        *at++ != ' ' || !(at = scan_hex(at, &parameters)) || *at++ != ' ' || *at <= ' ')
        return NULL;
    const uint8_t *newline = memchr(at, '\n', (size_t)(behind - at));
    if (!newline || newline[-1] <= ' ')
        return NULL;
    function->parameters = parameters & INT32_MAX; /* the member has 31 bits */
    function->name = (struct sl_str){(const char *)at, (size_t)(newline - at)};
    return sl_str_is_utf8(function->name) ? newline + 1 : NULL;
}

/* Reads `FUNC [m] address size parameter-size [name]`, from the `m` (several symbols have the address) on. Without a name the function is
 * called `<unknown>`. False if the record is malformed. */
static bool read_func(struct breakpad_fields f, struct sl_function *function)
{
    uint64_t parameters;
    *function = (struct sl_function){.multiple = breakpad_word(&f, SL_STR("m"))};
    if (!breakpad_hex(&f, &function->address) || !breakpad_hex(&f, &function->size) || !breakpad_hex(&f, &parameters))
        return false;
    function->parameters = parameters & INT32_MAX; /* the member has 31 bits */
    function->name = breakpad_rest(&f);
    if (!function->name.size)
        function->name = SL_STR("<unknown>");
    return sl_str_is_utf8(function->name);
}

/* Sorts the lines of a function by address; lines at the same address keep their order. A merge sort, bottom up, between the array and
 * w->sorted. Rarely called: lines are mostly in order. False when out of memory. */
static bool sort_lines(struct breakpad_worker *w, struct sl_line *lines, size_t count)
{
    if (!sl_account_grow(&w->account, &w->sorted, &w->sorted_capacity, count, sizeof *lines))
        return false;
    struct sl_line *from = lines, *to = w->sorted;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t start = 0; start < count; start += 2 * width) {
            size_t middle = count - start < width ? count : start + width;
            size_t end = count - middle < width ? count : middle + width;
            size_t a = start, b = middle;
            for (size_t i = start; i < end; i++)
                to[i] = b >= end || (a < middle && from[a].address <= from[b].address) ? from[a++] : from[b++];
        }
        struct sl_line *swap = from;
        from = to;
        to = swap;
    }
    if (from != lines)
        memcpy(lines, from, count * sizeof *lines);
    return true;
}

/* Gives the function its lines. Lines outside of the function are left out, and a line that extends beyond its end is cut there, in `lines`
 * itself. `lines_end` is the largest end of a line. Only for functions without inlined calls: others need sl_assemble(). */
static void set_lines(struct sl_function *function, struct sl_line *lines, size_t count, uint64_t lines_end)
{
    uint64_t end = breakpad_chunk_end_address(function->address, function->size);
    while (count && lines->address < function->address) {
        lines++;
        count--;
    }
    while (count && lines[count - 1].address >= end)
        count--;
    for (size_t i = 0; lines_end > end && i < count; i++) /* mostly no line extends beyond the end */
        if (lines[i].size > end - lines[i].address)
            lines[i].size = end - lines[i].address;
    function->lines = lines;
    function->line_count = (uint32_t)count;
}

/* Ends the open function, if there is one, and adds it to the chunk. Without inlined calls it gets its lines. With inlined calls it gets
 * lines and a flat list of the calls (`flats`) if the sink accepts that; else sl_assemble() makes the tree of calls. */
static void close_function(const struct breakpad_reader *r, struct breakpad_worker *w, struct breakpad_chunk *chunk,
                           struct open_function *open)
{
    struct sl_line *lines = chunk->lines + open->first_line;
    size_t count = chunk->line_count - open->first_line, index = chunk->function_count;
    size_t inlinee_count = chunk->inlinee_count - open->first_inlinee;
    if (!open->open)
        return;
    open->open = false;
    if ((!open->sorted && !sort_lines(w, lines, count)) || count > UINT32_MAX || /* line_count has 32 bits */
        !sl_account_grow(&chunk->account, &chunk->functions, &chunk->function_capacity, index + 1,
                         sizeof open->function) ||
        !sl_account_grow(&chunk->account, &chunk->flats, &chunk->flat_capacity, index + 1, sizeof *chunk->flats)) {
        chunk->failed = true;
        return;
    }
    /* breakpad_chunk_read() sets the pointer, as the array of inlined calls may still move */
    chunk->flats[index] = (struct sl_flat){NULL, 0};
    if (!inlinee_count) {
        set_lines(&open->function, lines, count, open->lines_end);
    } else if (r->sink->accepts_flat) {
        open->function.lines = lines;
        open->function.line_count = (uint32_t)count;
        chunk->flats[index].inlinee_count = inlinee_count;
    } else {
        chunk->failed =
            chunk->failed || !sl_assemble(&w->assembler, &chunk->arena, &open->function,
                                          chunk->inlinees + open->first_inlinee, inlinee_count, lines, count);
        /* sl_assemble() copied lines and inlined calls to the arena: their places are used for the next function */
        chunk->line_count = open->first_line;
        chunk->inlinee_count = open->first_inlinee;
    }
    chunk->functions[chunk->function_count++] = open->function;
}

/* Makes the function of a FUNC record the open one, to which the records after it belong. If the record could not be read (`good` false),
 * there is no open function: the lines after it belong to none. */
static void open_function(const struct breakpad_chunk *chunk, const struct sl_function *function, bool good,
                          struct open_function *open)
{
    *open = (struct open_function){
        .function = *function,
        .first_line = chunk->line_count,
        .first_inlinee = chunk->inlinee_count,
        .open = good,
        .sorted = true,
    };
}

/* Reads a FUNC record of the usual form: closes the function before it and opens the new one. Returns the next line; NULL if the line has
 * another form, which read_record() may accept. */
static const uint8_t *open_usual_func(const struct breakpad_reader *r, struct breakpad_worker *w,
                                      struct breakpad_chunk *chunk, const uint8_t *at, struct open_function *open)
{
    struct sl_function function;
    const uint8_t *next = memcmp(at, "FUNC ", 5) ? NULL : scan_usual_func(at + 4, chunk->behind, &function);
    if (!next)
        return NULL;
    close_function(r, w, chunk, open);
    open_function(chunk, &function, true, open);
    return next;
}

/* Reads a line that is not of the usual forms; returns the next line. A malformed line is counted in chunk->skipped. An INLINE_ORIGIN is
 * defined if chunks are read in order (r->ordered); else it only sets chunk->defines_origin, so that the chunk is read again in order. */
static const uint8_t *read_record(struct breakpad_reader *r, struct breakpad_worker *w, struct breakpad_chunk *chunk,
                                  const uint8_t *at, struct open_function *open)
{
    const char *next;
    struct breakpad_fields f = breakpad_line((const char *)at, (const char *)chunk->behind, &next);
    if (f.at == f.end)
        return (const uint8_t *)next;
    /* overwritten by later lines until one of them is malformed */
    if (!chunk->skipped)
        chunk->first_skipped = (size_t)(at - chunk->text);
    if (breakpad_word(&f, SL_STR("FUNC"))) {
        struct sl_function function;
        bool good = read_func(f, &function);
        close_function(r, w, chunk, open);
        open_function(chunk, &function, good, open);
        chunk->skipped += !good;
    } else if (breakpad_word(&f, SL_STR("PUBLIC"))) {
        close_function(r, w, chunk, open); /* breakpad_symbols() reads these records */
    } else if (breakpad_word(&f, SL_STR("INLINE_ORIGIN"))) {
        if (!r->ordered)
            chunk->defines_origin = true;
        else
            chunk->skipped += !breakpad_names_define(&r->origins, f);
    } else {
        /* inside a function any other line is malformed; outside of functions it is ignored */
        chunk->skipped += open->open;
    }
    return (const uint8_t *)next;
}

static inline bool is_inline(const uint8_t *at)
{
    return memcmp(at, "INLINE", 6) == 0 && (at[6] == ' ' || at[6] == '\t');
}

/* Adds line records of the usual form from `at` on to the open function. Returns the position of the first line that has another form.
 * chunk->lines has capacity for all lines of the chunk (breakpad_chunk_read), so it need not grow here. */
static const uint8_t *read_usual_lines(const struct breakpad_reader *r, struct breakpad_worker *w,
                                       struct breakpad_chunk *chunk, struct open_function *open, const uint8_t *at)
{
    struct sl_line *out = chunk->lines + chunk->line_count;
    uint64_t last_address = open->last_address, lines_end = open->lines_end;
    bool sorted = open->sorted;
    struct line_record record;
    for (const uint8_t *next; at < chunk->behind && (next = scan_usual_line(at, &record)); at = next) {
        if (!record.size) /* covers no code */
            continue;
        uint64_t end = record.address + record.size; /* no overflow: both have 32 bits */
        sorted = sorted && record.address >= last_address;
        last_address = record.address;
        lines_end = end > lines_end ? end : lines_end;
        *out++ =
            (struct sl_line){record.address, record.size, file_index(r, w, chunk, record.file), (uint32_t)record.line};
    }
    open->last_address = last_address;
    open->lines_end = lines_end;
    open->sorted = sorted;
    chunk->line_count = (size_t)(out - chunk->lines);
    return at;
}

/* Adds a line record to the open function, and notes whether lines are still sorted and where they end. chunk->lines has
 * capacity for it (breakpad_chunk_read). */
static void breakpad_chunk_add_line(const struct breakpad_reader *r, struct breakpad_worker *w,
                                    struct breakpad_chunk *chunk, struct open_function *open,
                                    const struct line_record *record)
{
    uint64_t end = breakpad_chunk_end_address(record->address, record->size);
    open->sorted = open->sorted && record->address >= open->last_address;
    open->last_address = record->address;
    open->lines_end = end > open->lines_end ? end : open->lines_end;
    chunk->lines[chunk->line_count++] = (struct sl_line){
        .address = record->address,
        .size = record->size,
        .file = file_index(r, w, chunk, record->file),
        .line = clamp_line(record->line),
    };
}

/* Reads all lines of the chunk; tries the most frequent kinds of records first. Lines before the first FUNC record belong to no function
 * and are ignored. Stops at an INLINE_ORIGIN that must be read in order (chunk->defines_origin): the whole chunk is read again later. */
static void read_lines(struct breakpad_reader *r, struct breakpad_worker *w, struct breakpad_chunk *chunk)
{
    struct open_function open = {.open = false};
    struct line_record record;
    const uint8_t *at = chunk->text, *next;
    while (at < chunk->behind && !chunk->defines_origin && !chunk->failed) {
        while (*at == ' ' || *at == '\t')
            at++;
        /* is_inline(): the line begins with `INLINE`, 6 characters, and a blank */
        if (open.open && is_inline(at) && (next = scan_inline(r, w, chunk, scan_blanks(at + 6)))) {
            at = next;
        } else if (open.open && (next = read_usual_lines(r, w, chunk, &open, at)) > at) {
            at = next;
        } else if ((next = scan_line(at, &record))) {
            if (record.size && open.open)
                breakpad_chunk_add_line(r, w, chunk, &open, &record);
            at = next;
        } else if ((next = open_usual_func(r, w, chunk, at, &open))) {
            at = next;
        } else {
            at = read_record(r, w, chunk, at, &open);
        }
    }
    close_function(r, w, chunk, &open);
}

/* Sets the text to scan, chunk->text to chunk->behind. The scanners need a newline at its end and SCAN_SLACK readable bytes after it. A
 * chunk without these, at the end of the file, is copied with newlines behind it. False when out of memory. */
static bool set_text(const struct breakpad_reader *r, struct breakpad_chunk *chunk)
{
    const char *file_end = (const char *)r->object->bytes.data + r->object->bytes.size;
    size_t size = (size_t)(chunk->end - chunk->begin);
    chunk->text = (const uint8_t *)chunk->begin;
    chunk->behind = (const uint8_t *)chunk->end;
    if (file_end - chunk->end >= SCAN_SLACK && chunk->end[-1] == '\n')
        return true;
    uint8_t *copy = sl_arena_alloc(&chunk->arena, size + 1 + SCAN_SLACK, 1);
    if (!copy)
        return false;
    memcpy(copy, chunk->begin, size);
    memset(copy + size, '\n', 1 + SCAN_SLACK);
    chunk->text = copy;
    chunk->behind = copy + size + 1;
    return true;
}

void breakpad_chunk_read(struct breakpad_reader *r, struct breakpad_chunk *chunk, struct breakpad_worker *w)
{
    chunk->line_count = chunk->function_count = chunk->inlinee_count = chunk->file_count = chunk->skipped = 0;
    chunk->defines_origin = chunk->failed = false;
    /* w->batch counts chunks, and w->indexes has the count of the chunk for which each entry is valid; after 2^32 chunks counts repeat */
    if (++w->batch == 0) {
        memset(w->indexes, 0, w->index_count * sizeof *w->indexes);
        w->batch = 1;
    }
    if (!set_text(r, chunk) ||
        !sl_account_grow(&chunk->account, &chunk->lines, &chunk->line_capacity,
                         (size_t)(chunk->behind - chunk->text) / SMALLEST_LINE + 1, sizeof *chunk->lines)) {
        chunk->failed = true;
        return;
    }
    read_lines(r, w, chunk);
    /* Inlined calls lie in the array in the order of their functions. Pointers are set last, as growing moves the array. */
    const struct sl_flat_inlinee *inlinees = chunk->inlinees;
    for (size_t i = 0; i < chunk->function_count; i++) {
        chunk->flats[i].inlinees = inlinees;
        inlinees += chunk->flats[i].inlinee_count;
    }
    chunk->batch = (struct sl_function_batch){
        .files = chunk->files,
        .file_count = chunk->file_count,
        .functions = chunk->functions,
        .flats = chunk->flats,
        .function_count = chunk->function_count,
        /* names point into the file, not into a copy of the chunk */
        .lasting = chunk->text == (const uint8_t *)chunk->begin,
    };
}
