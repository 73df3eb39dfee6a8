/* `symloom lookup`: prints answers in the styles GNU, LLVM, JSON and table. */
#include "cli/lookup/gnu.h"
#include "cli/lookup/llvm.h"
#include "cli/lookup/lookup.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "demangle/demangle.h"

/* Appends the text, or `unknown` if it is empty. */
static void text_or(struct sl_buf *out, struct sl_str text, const char *unknown)
{
    if (text.size)
        sl_buf_str(out, text);
    else
        sl_buf_cstr(out, unknown);
}

/* Appends the number in decimal, faster than sl_buf_printf would: it is called for each line of output. */
static void put_decimal(struct sl_buf *out, uint32_t value)
{
    char digits[10];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    sl_buf_add(out, digits + at, sizeof digits - at);
}

/* ---- gnu ---- */

/* Appends `file:line`. GNU addr2line prints an unknown line as `?` if the name or file is known, else as 0; LLVM's tools as 0. */
static void put_gnu_position(struct lookup *l, const struct lookup_result *e)
{
    bool llvm = lookup_is_llvm(l);
    text_or(&l->out, e->file, "??");
    if (e->line || llvm) {
        sl_buf_u8(&l->out, ':');
        put_decimal(&l->out, e->line);
        if (e->discriminator)
            sl_buf_printf(&l->out, " (discriminator %u)", e->discriminator);
        return;
    }
    sl_buf_cstr(&l->out, e->name.size || e->file.size ? ":?" : ":0");
}

/* Prints function `index` of an inline chain (0: the innermost) in the style of GNU addr2line. LLVM's tools differ in this style: they
 * do not pad the address with zeros, and put " at " before the file even if name and file are unknown (`?? at ??:0`). */
static void print_gnu(struct lookup *l, const struct lookup_request *r, const struct lookup_result *e, size_t index)
{
    bool llvm = lookup_is_llvm(l);
    int digits = llvm ? 1 : r->module && r->module->is_32bit ? 8 : 16;
    if (index == 0 && l->addresses)
        sl_buf_printf(&l->out, l->pretty ? "0x%0*llx: " : "0x%0*llx\n", digits, (unsigned long long)r->address);
    if (l->pretty && index)
        sl_buf_cstr(&l->out, " (inlined by) ");
    if (l->functions) {
        text_or(&l->out, e->name, "??");
        sl_buf_cstr(&l->out, !l->pretty ? "\n" : e->name.size || e->file.size || llvm ? " at " : " ");
    }
    put_gnu_position(l, e);
    sl_buf_u8(&l->out, '\n');
}

/* Appends a name, demangled as GNU addr2line does: leading dots and dollars, and the symbol version after `@`, stay as they are. `??` if
 * it is empty. */
static void gnu_name(struct lookup *l, struct sl_str name)
{
    size_t start = 0;
    const char *version = name.size ? memchr(name.data, '@', name.size) : NULL;
    size_t end = version ? (size_t)(version - name.data) : name.size;
    while (start < end && (name.data[start] == '.' || name.data[start] == '$'))
        start++;
    struct sl_str mangled = {name.data + start, end - start};
    enum sl_language language = l->demangle && name.size ? sl_demangle_detect(mangled) : SL_LANG_UNKNOWN;
    sl_buf_clear(&l->scratch);
    if ((language != SL_LANG_CPP && language != SL_LANG_RUST) ||
        !sl_demangle_styled(mangled, language, SL_DEMANGLE_GNU, &l->scratch)) {
        text_or(&l->out, name, "??");
        return;
    }
    sl_buf_add(&l->out, name.data, start);
    sl_buf_str(&l->out, sl_buf_view(&l->scratch));
    sl_buf_add(&l->out, name.data + end, name.size - end);
}

/* Appends one function of an inline chain. GNU addr2line shows the discriminator of the innermost line at each of them. */
static void gnu_element(struct lookup *l, const struct gnu_element *e, uint32_t discriminator)
{
    if (l->functions) {
        gnu_name(l, e->name);
        sl_buf_cstr(&l->out, l->pretty ? " at " : "\n");
    }
    struct sl_str file = e->file.data ? e->file : SL_STR("??");
    const char *slash = l->basenames ? memrchr(file.data, '/', file.size) : NULL;
    sl_buf_str(&l->out, slash ? (struct sl_str){slash + 1, file.size - (size_t)(slash + 1 - file.data)} : file);
    sl_buf_u8(&l->out, ':');
    if (e->line)
        put_decimal(&l->out, e->line);
    else
        sl_buf_u8(&l->out, '?');
    if (e->line && discriminator)
        sl_buf_printf(&l->out, " (discriminator %u)", discriminator);
    sl_buf_u8(&l->out, '\n');
}

/* Answers by the rules of GNU addr2line. False where they do not apply to the file, or memory or the work budget ran out: the caller then
 * answers from the symcache. An address below the load address is answered with `??`. */
static bool answer_gnu(struct lookup *l, const struct lookup_request *r)
{
    struct gnu_tables *tables = gnu_get_tables(r->module);
    struct gnu_answer answer;
    uint64_t at;
    answer.count = 0;
    bool is_inside = lookup_relative(l, r->module, r->address, &at);
    at += sl_object_info(r->module->input.object)
              ->load_address; /* gnu_look_up takes addresses as in the file's headers */
    if (!tables || (is_inside && !gnu_look_up(tables, at, l->inlines, &answer)))
        return false;
    if (l->addresses)
        sl_buf_printf(&l->out, l->pretty ? "0x%0*llx: " : "0x%0*llx\n", r->module->is_32bit ? 8 : 16,
                      (unsigned long long)r->address);
    if (!answer.count)
        sl_buf_cstr(&l->out, !l->functions ? "??:0\n" : l->pretty ? "?? ??:0\n" : "??\n??:0\n");
    for (size_t i = 0; i < answer.count; i++) {
        if (i && l->pretty)
            sl_buf_cstr(&l->out, " (inlined by) ");
        gnu_element(l, &answer.elements[i], answer.discriminator);
    }
    return true;
}

/* ---- llvm ---- */

/* Prints the source lines around the line of `e` (--print-source-context-lines): `<n> >: <text>` for the line itself, `<n>  : <text>` for
 * others. Nothing if the file cannot be mapped: its path comes from the debug information, so it may be missing or a device. */
static void print_context(struct lookup *l, const struct lookup_result *e)
{
    enum { MAX_LINE_LENGTH = 4095 }; /* longer source lines are cut */
    char path[4096], number[16];
    struct sl_mapping mapping;
    if (!l->context_lines || !e->line || e->file.size >= sizeof path)
        return;
    snprintf(path, sizeof path, SL_STR_FMT, SL_STR_ARG(e->file));
    if (sl_map_file(path, &mapping, NULL) != SL_OK)
        return;
    uint32_t first = e->line > l->context_lines / 2 ? e->line - l->context_lines / 2 : 1;
    uint64_t last = (uint64_t)first + l->context_lines - 1, at = 1;
    int width = snprintf(number, sizeof number, "%llu", (unsigned long long)last);
    const char *text = (const char *)mapping.bytes.data, *end = text + mapping.bytes.size;
    for (const char *next; text < end && at <= last; text = next, at++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t size = (size_t)((newline ? newline : end) - text);
        next = newline ? newline + 1 : end;
        if (at < first)
            continue;
        size -= size && text[size - 1] == '\r';
        sl_buf_printf(&l->out, "%-*llu %s: ", width, (unsigned long long)at, at == e->line ? ">" : " ");
        sl_buf_add(&l->out, text, size < MAX_LINE_LENGTH ? size : MAX_LINE_LENGTH);
        sl_buf_u8(&l->out, '\n');
    }
    sl_unmap(&mapping);
}

/* Appends the lines of llvm-symbolizer --verbose; what is unknown is left out, except for file, line and column. If the file of the
 * declaration is unknown, LLVM's tools print `<invalid>` with --no-inlines, else nothing. */
static void print_verbose(struct lookup *l, const struct lookup_result *e)
{
    sl_buf_cstr(&l->out, "  Filename: ");
    text_or(&l->out, e->file, "??");
    if (e->start_line) {
        sl_buf_cstr(&l->out, "\n  Function start filename: ");
        text_or(&l->out, e->start_file, lookup_is_llvm(l) && !l->inlines ? "<invalid>" : "");
        sl_buf_printf(&l->out, "\n  Function start line: %u", e->start_line);
    }
    if (e->has_entry)
        sl_buf_printf(&l->out, "\n  Function start address: 0x%llx", (unsigned long long)e->entry);
    sl_buf_printf(&l->out, "\n  Line: %u\n  Column: %u\n", e->line, e->column);
    if (e->discriminator)
        sl_buf_printf(&l->out, "  Discriminator: %u\n", e->discriminator);
}

/* Prints function `index` of an inline chain (0: the innermost) as llvm-symbolizer does. */
static void print_llvm(struct lookup *l, const struct lookup_request *r, const struct lookup_result *e, size_t index)
{
    if (index == 0 && l->addresses)
        sl_buf_printf(&l->out, l->pretty ? "0x%llx: " : "0x%llx\n", (unsigned long long)r->address);
    if (l->pretty && index)
        sl_buf_cstr(&l->out, " (inlined by) ");
    if (l->functions) {
        text_or(&l->out, e->name, "??");
        sl_buf_cstr(&l->out, l->pretty && !l->verbose ? " at " : "\n");
    }
    if (l->verbose) {
        print_verbose(l, e);
        return;
    }
    text_or(&l->out, e->file, "??");
    sl_buf_u8(&l->out, ':');
    put_decimal(&l->out, e->line);
    sl_buf_u8(&l->out, ':');
    put_decimal(&l->out, e->column);
    sl_buf_u8(&l->out, '\n');
    print_context(l, e);
}

/* ---- symbols of data ---- */

/* Sets `symbol` to the data symbol, else the code symbol, that contains the requested address, with its name demangled if wanted; all
 * fields are 0 if there is none. The name lives until l->scratch changes. */
static void data_symbol(struct lookup *l, const struct lookup_request *r, struct sl_symbol *symbol)
{
    uint64_t at;
    const struct sl_symbol *found = NULL;
    if (r->module->error.code == SL_OK && lookup_relative(l, r->module, r->address, &at))
        found = lookup_data_at(r->module, at);
    *symbol = (struct sl_symbol){0};
    if (!found)
        return;
    sl_buf_clear(&l->scratch);
    bool readable =
        l->demangle && sl_demangle_styled(found->name, SL_LANG_UNKNOWN, lookup_demangle_style(l), &l->scratch);
    *symbol = (struct sl_symbol){found->address + r->module->load, found->size,
                                 readable ? sl_buf_view(&l->scratch) : found->name};
}

/* Answers a DATA request: the symbol's name, then its start and size; `??` and zeros if there is no symbol. */
static void print_data(struct lookup *l, const struct lookup_request *r)
{
    struct sl_symbol symbol;
    data_symbol(l, r, &symbol);
    if (l->addresses)
        sl_buf_printf(&l->out, l->pretty ? "0x%llx: " : "0x%llx\n", (unsigned long long)r->address);
    text_or(&l->out, symbol.name, "??");
    sl_buf_printf(&l->out, "\n%llu %llu\n", (unsigned long long)symbol.address, (unsigned long long)symbol.size);
}

/* ---- json ---- */

/* Writes one function of an inline chain with the members of llvm-symbolizer's JSON. */
static void json_element(struct lookup *l, struct sl_json_writer *w, const struct lookup_result *e)
{
    sl_json_begin_object(w);
    sl_json_member_u64(w, "Column", e->column);
    sl_json_member_u64(w, "Discriminator", e->discriminator);
    sl_json_member_str(w, "FileName", e->file);
    sl_json_member_str(w, "FunctionName", l->functions ? e->name : SL_STR(""));
    sl_json_member_u64(w, "Line", e->line);
    sl_json_put_key(w, "StartAddress");
    if (e->has_entry)
        sl_json_put_hex(w, e->entry);
    else
        sl_json_put_str(w, SL_STR(""));
    sl_json_member_str(w, "StartFileName", e->start_file);
    sl_json_member_u64(w, "StartLine", e->start_line);
    sl_json_end_object(w);
}

/* Writes the symbol of a DATA request as the member `Data`; an empty name and zeros if there is none. */
static void json_data(struct lookup *l, struct sl_json_writer *w, const struct lookup_request *r)
{
    struct sl_symbol symbol;
    data_symbol(l, r, &symbol);
    sl_json_member_object(w, "Data");
    sl_json_member_str(w, "Name", symbol.name);
    sl_json_member_hex(w, "Size", symbol.size);
    sl_json_member_hex(w, "Start", symbol.address);
    sl_json_end_object(w);
}

/* Sets `e` to function `index` of an inline chain of `count` functions. If `count` is 0, `e` is empty, but LLVM's tools still fill in the
 * symbol at the address. */
static void read_link(struct lookup *l, const struct lookup_request *r, const struct lookup_chain *chain, size_t index,
                      size_t count, struct lookup_result *e)
{
    *e = (struct lookup_result){0};
    if (count)
        lookup_result_at(l, r->module, chain, index, e);
    if (lookup_is_llvm(l) && r->module && r->module->error.code == SL_OK)
        llvm_complete(l, r->module, r->address, index, count, count ? chain->all : 0, e);
}

/* Writes the functions at an address, the innermost first. If the symcache knows none (`count` 0), there still is one element, which may
 * have the name of a symbol. */
static void json_symbols(struct lookup *l, struct sl_json_writer *w, const struct lookup_request *r,
                         const struct lookup_chain *chain, size_t count)
{
    struct lookup_result e = {0};
    sl_json_member_array(w, "Symbol");
    for (size_t i = 0; i < count; i++) {
        read_link(l, r, chain, i, count, &e);
        json_element(l, w, &e);
    }
    if (!count) {
        read_link(l, r, chain, 0, 0, &e);
        json_element(l, w, &e);
    }
    sl_json_end_array(w);
}

/* Writes why a request was not answered: its text could not be parsed, or its module not be read. */
static void json_error(struct lookup *l, struct sl_json_writer *w, const struct lookup_request *r)
{
    sl_buf_clear(&l->scratch);
    if (r->kind == REQUEST_BAD)
        sl_buf_printf(&l->scratch, "unable to parse arguments: " SL_STR_FMT, SL_STR_ARG(r->text));
    else
        sl_buf_cstr(&l->scratch, r->module->error.message);
    sl_json_member_object(w, "Error");
    sl_json_member_str(w, "Message", sl_buf_view(&l->scratch));
    sl_json_end_object(w);
}

/* Writes the answer to one request as llvm-symbolizer --output-style=JSON does. A request that could not be parsed has no address and, if
 * it has no file of its own, names the file of -e. */
static void answer_json(struct lookup *l, struct sl_json_writer *w, const struct lookup_request *r,
                        const struct lookup_chain *chain, size_t count)
{
    bool failed = r->kind == REQUEST_BAD || r->module->error.code != SL_OK;
    sl_json_begin_object(w);
    if (r->kind != REQUEST_BAD)
        sl_json_member_hex(w, "Address", r->address);
    if (failed)
        json_error(l, w, r);
    else if (r->kind == REQUEST_DATA)
        json_data(l, w, r);
    sl_json_member_str(w, "ModuleName", r->module ? sl_str(r->module->name) : sl_str(l->file ? l->file : ""));
    if (!failed && r->kind != REQUEST_DATA)
        json_symbols(l, w, r, chain, count);
    sl_json_end_object(w);
}

/* ---- table ---- */

/* Adds a row of four cells to the table. The texts of all cells are in one buffer, l->cells; a row stores where each of its cells ends. The
 * row is left out when out of memory. */
static void add_row(struct lookup *l, const char *address, struct sl_str function, const char *offset,
                    struct sl_str line)
{
    if (!sl_grow(&l->rows, &l->row_capacity, l->row_count + 1, sizeof *l->rows))
        return;
    struct table_row *row = &l->rows[l->row_count++];
    const struct sl_str cells[] = {sl_str(address), function, sl_str(offset), line};
    for (size_t i = 0; i < 4; i++) {
        sl_buf_str(&l->cells, cells[i]);
        row->ends[i] = l->cells.size;
    }
}

/* Adds the row of function `index` of an inline chain to the table, with the distance of the address from the function's start (`+0x12`).
 * Only the innermost function, 0, shows the address. */
static void add_element_row(struct lookup *l, const struct lookup_request *r, const struct lookup_result *e,
                            size_t index)
{
    char address[24] = "", offset[24] = "";
    struct sl_buf function = {0}, line = {0};
    if (index == 0)
        snprintf(address, sizeof address, "0x%llx", (unsigned long long)r->address);
    else
        sl_buf_cstr(&function, " (inlined by) ");
    text_or(&function, e->name, "??");
    uint64_t at = r->address - l->adjust; /* with the load address, which e->entry includes, too */
    if (e->has_entry && at >= e->entry)
        snprintf(offset, sizeof offset, "+0x%llx", (unsigned long long)(at - e->entry));
    if (e->file.size)
        sl_buf_printf(&line, SL_STR_FMT ":%u", SL_STR_ARG(e->file), e->line);
    add_row(l, address, sl_buf_view(&function), offset, sl_buf_view(&line));
    sl_buf_free(&function);
    sl_buf_free(&line);
}

/* Returns the text of a cell of the table. It begins where the cell before it ends in l->cells, in the same row or the row before. */
static struct sl_str cell(const struct lookup *l, size_t row, size_t column)
{
    size_t end = l->rows[row].ends[column];
    size_t start = column ? l->rows[row].ends[column - 1] : row ? l->rows[row - 1].ends[3] : 0;
    return (struct sl_str){(const char *)l->cells.data + start, end - start};
}

/* Shrinks the function column, then the column of file and line, to the terminal's width, but not below SHORTEST. */
static void fit_table(const struct lookup *l, int width[4])
{
    enum { BLANKS = 1 + 3 * 2, SHORTEST = 24 }; /* a blank before the first column, two between columns */
    static const int columns[] = {1, 3};
    for (size_t i = 0; l->table_width && i < 2; i++) {
        int over = width[0] + width[1] + width[2] + width[3] + BLANKS - (int)l->table_width, *w = &width[columns[i]];
        if (over > 0 && *w > SHORTEST)
            *w = *w - over > SHORTEST ? *w - over : SHORTEST;
    }
}

void lookup_table_flush(struct lookup *l)
{
    static const char *const titles[] = {"Address", "Function", "", "File:Line"};
    int width[4];
    if (!l->row_count)
        return;
    for (size_t c = 0; c < 4; c++) {
        width[c] = (int)strlen(titles[c]);
        for (size_t i = 0; i < l->row_count; i++)
            width[c] = output_columns(cell(l, i, c)) > width[c] ? output_columns(cell(l, i, c)) : width[c];
    }
    fit_table(l, width);
    sl_buf_printf(&l->out, "%s %-*s  %-*s  %-*s  %s%s\n", l->colour ? "\033[1m" : "", width[0], titles[0], width[1],
                  titles[1], width[2], titles[2], titles[3], l->colour ? "\033[0m" : "");
    for (size_t i = 0; i < l->row_count; i++) {
        struct sl_str address = cell(l, i, 0), function = cell(l, i, 1), offset = cell(l, i, 2), line = cell(l, i, 3);
        bool dim = l->colour && !address.size; /* the caller of an inlined function */
        sl_buf_printf(&l->out, "%s %*.*s  ", dim ? "\033[2m" : "", width[0], SL_STR_ARG(address));
        output_put_trimmed(&l->out, function, (size_t)width[1]);
        int pad = width[1] - output_columns(function);
        if (offset.size || line.size) /* else the line ends here, without blanks */
            sl_buf_printf(&l->out, "%*s  %*.*s", pad > 0 ? pad : 0, "", width[2], SL_STR_ARG(offset));
        if (line.size)
            sl_buf_cstr(&l->out, "  ");
        output_put_trimmed(&l->out, line, (size_t)width[3]);
        sl_buf_cstr(&l->out, dim ? "\033[0m\n" : "\n");
    }
    l->row_count = 0;
    sl_buf_clear(&l->cells);
}

/* ---- answers ---- */

void lookup_answer(struct lookup *l, struct sl_json_writer *w, const struct lookup_request *r)
{
    struct lookup_chain chain;
    struct lookup_result e = {0};
    bool is_usable = (r->kind == REQUEST_CODE) && r->module && r->module->error.code == SL_OK;
    if (is_usable && r->module->input.object && lookup_is_gnu(l) && answer_gnu(l, r))
        return;
    size_t count = is_usable ? lookup_chain(l, r->module, r->address, &chain) : 0;
    if (is_usable && (!count || !chain.links[0].line))
        r->module->lacks_lines = true;
    if (l->style == STYLE_JSON) {
        answer_json(l, w, r, &chain, count);
        return;
    }
    if (r->kind == REQUEST_BAD) { /* echoed, as LLVM's tools do */
        sl_buf_str(&l->out, r->text);
        sl_buf_u8(&l->out, '\n');
        return;
    }
    if (r->kind == REQUEST_FRAME) /* local variables are not looked up */
        sl_buf_cstr(&l->out, "??\n");
    else if (r->kind == REQUEST_DATA)
        print_data(l, r);
    /* an address of which nothing is known is answered with one function `??` */
    for (size_t i = 0; r->kind == REQUEST_CODE && i < (count ? count : 1); i++) {
        read_link(l, r, &chain, i, count, &e);
        if (l->style == STYLE_GNU)
            print_gnu(l, r, &e, i);
        else if (l->style == STYLE_LLVM)
            print_llvm(l, r, &e, i);
        else
            add_element_row(l, r, &e, i);
    }
    if (l->style == STYLE_LLVM) /* a blank line ends each answer */
        sl_buf_u8(&l->out, '\n');
}
