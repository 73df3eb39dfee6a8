/* Converts Breakpad's microdumps, lines of a log that describe a crash, to minidumps. */
#include "minidump/microdump.h"

#include "id/id.h"
#include "minidump/impl.h"

static const struct sl_str begin_mark = SL_STR("-----BEGIN BREAKPAD MICRODUMP-----");
static const struct sl_str end_mark = SL_STR("-----END BREAKPAD MICRODUMP-----");
static const struct sl_str log_tag = SL_STR("google-breakpad");

static struct sl_str text_from(struct sl_str text, size_t at)
{
    return (struct sl_str){text.data + at, text.size - at};
}

/* Returns the offset of `part` in the text; the size of the text if it does not occur. */
static size_t find_text(struct sl_str text, struct sl_str part)
{
    const char *found = text.size ? memmem(text.data, text.size, part.data, part.size) : NULL;
    return found ? (size_t)(found - text.data) : text.size;
}

/* Removes the next word; false at the end. */
static bool take_log_word(struct sl_str *rest, struct sl_str *word)
{
    size_t size = 0;
    *rest = sl_str_trimmed(*rest);
    while (size < rest->size && !sl_is_blank(rest->data[size]))
        size++;
    *word = (struct sl_str){rest->data, size};
    *rest = text_from(*rest, size);
    return size != 0;
}

/* ---- lines of a log ---- */

/* The process that wrote a line, and how its lines begin. */
struct log_sender {
    bool is_tagged;   /* its lines have the prefix of logcat, with the tag "google-breakpad" */
    size_t column;    /* if not: column at which messages begin */
    uint64_t process; /* its id; 0: unknown */
};

/* Parses a decimal number; 0 if it is none. */
static uint64_t decimal(struct sl_str digits)
{
    uint64_t value;
    return sl_parse_u64(digits, &value) ? value : 0;
}

/* Returns the process id in the prefix of a log line; 0 if there is none. It is after the tag in "W/google-breakpad( 3745): ", else the
 * first number before the tag in "02-23 15:49:14.700  1740  1739 F google-breakpad: ". `tag` is the offset of the tag, `end` the end of the
 * prefix. */
static uint64_t parse_process(struct sl_str line, size_t tag, size_t end)
{
    struct sl_str before = {line.data, tag}, word;
    size_t at = tag + log_tag.size;
    if (at < end && line.data[at] == '(') {
        size_t size = find_text((struct sl_str){line.data + at, end - at}, SL_STR(")"));
        return decimal(sl_str_trimmed((struct sl_str){line.data + at + 1, size - 1}));
    }
    while (take_log_word(&before, &word))
        if (decimal(word))
            return decimal(word);
    return 0;
}

/* Returns the sender of a line with a begin or end marker at offset `mark`. */
static struct log_sender parse_sender(struct sl_str line, size_t mark)
{
    size_t tag = find_text((struct sl_str){line.data, mark}, log_tag);
    bool is_tagged = tag < mark;
    return (struct log_sender){
        .is_tagged = is_tagged, .column = mark, .process = is_tagged ? parse_process(line, tag, mark) : 0};
}

static bool same_sender(struct log_sender a, struct log_sender b)
{
    return a.is_tagged == b.is_tagged && a.process == b.process;
}

/* Sets `*message` to the line without its prefix, which ends with ": " after logcat's tag; in a log without tags it has sender.column
 * bytes. False if another process wrote the line, or if it is shorter than the prefix. */
static bool parse_message(struct sl_str line, struct log_sender sender, struct sl_str *message)
{
    size_t tag = sender.is_tagged ? find_text(line, log_tag) : 0, end = sender.column;
    if (sender.is_tagged) {
        struct sl_str behind = text_from(line, tag);
        end = tag + find_text(behind, SL_STR(": "));
        if (end >= line.size || parse_process(line, tag, end) != sender.process)
            return false;
        end += 2;
    }
    if (end > line.size)
        return false;
    *message = sl_str_trimmed(text_from(line, end));
    return true;
}

/* ---- finding microdumps ---- */

bool sl_microdump_is_in(struct sl_bytes bytes)
{
    struct sl_str text = {(const char *)bytes.data, bytes.size};
    /* A program file may contain the marker; only a file without NULs before it is a log. Most binary files have a NUL in their first
     * EARLY bytes, so they need not be searched. */
    enum { EARLY = 64 };
    /* signatures of minidumps, little- and big-endian */
    if (sl_str_starts(text, SL_STR("MDMP")) || sl_str_starts(text, SL_STR("PMDM")) ||
        (text.size && memchr(text.data, 0, text.size < EARLY ? text.size : EARLY)))
        return false;
    size_t mark = find_text(text, begin_mark);
    return mark < text.size && !memchr(text.data, 0, mark);
}

/* Finds the end of a microdump whose first line was read: its end mark, else the line before the next microdump. Lines of a second process
 * that crashes meanwhile may lie in between; its first line is `other`. A third process ends the search: otherwise, with many microdumps
 * that have no end, each line would be searched for each of them. */
static void find_end(struct sl_str rest, struct log_sender sender, struct sl_microdump *found)
{
    struct sl_str line;
    const char *end = rest.data, *other = NULL;
    while (sl_str_next_line(&rest, &line)) {
        size_t begins = find_text(line, begin_mark), ends = find_text(line, end_mark);
        if (begins < line.size && (other || same_sender(sender, parse_sender(line, begins))))
            break;
        if (begins < line.size)
            other = line.data;
        end = rest.data;
        if (ends < line.size && same_sender(sender, parse_sender(line, ends))) {
            found->is_whole = true;
            break;
        }
    }
    /* without its end mark it ends where the second process began */
    found->text.size = (size_t)((found->is_whole || !other ? end : other) - found->text.data);
}

bool sl_microdump_next(struct sl_microdump_search *search, struct sl_microdump *microdump)
{
    struct sl_str line;
    while (sl_str_next_line(&search->rest, &line)) {
        size_t mark = find_text(line, begin_mark);
        search->line++;
        if (mark == line.size)
            continue;
        *microdump = (struct sl_microdump){.text = {line.data, 0}, .line = search->line};
        find_end(search->rest, parse_sender(line, mark), microdump);
        return true;
    }
    return false;
}

/* ---- reading ---- */

/* Contiguous memory of the stack, from one or more lines S. */
struct stack_piece {
    uint64_t address;
    size_t at, size; /* where its bytes are in microdump.stack */
};

struct microdump_module {
    uint64_t address, size;
    struct sl_debug_id id;
    struct sl_str name;
    /* in the minidump: offset of the name; offset and size of the CodeView record */
    size_t name_at, record_at, record_size;
};

struct microdump {
    struct sl_arena *arena;
    bool out_of_memory;
    bool has_system; /* the system is known, and so is its processor */
    bool has_reason, has_stack_pointer;
    uint16_t cpu;
    uint32_t platform;
    uint64_t cpu_count, signal, address, stack_pointer;
    struct sl_str machine, os_text; /* "armv7l", and the text after it */
    struct sl_str product, process_type, graphics;
    struct sl_buf context, stack;
    struct stack_piece open; /* the part of the stack being read; size 0: none */
    struct sl_arena_array pieces, modules;
};

/* Parses a hexadecimal number with two digits per byte, as the writer prints it. False if it is no such number or has more than 8 bytes. */
static bool hex_number(struct sl_str word, uint64_t *value)
{
    uint8_t bytes[8];
    size_t size;
    if (!word.size || !sl_hex_decode(word, bytes, sizeof bytes, &size))
        return false;
    *value = 0;
    for (size_t i = 0; i < size; i++)
        *value = *value << 8 | bytes[i];
    return true;
}

static bool take_hex_number(struct sl_str *rest, uint64_t *value)
{
    struct sl_str word;
    return take_log_word(rest, &word) && hex_number(word, value);
}

/* Appends the bytes that the hex digits at the beginning of the text stand for; an odd digit at the end is dropped. Returns how many. 0,
 * with buf->failed set, when out of memory. */
static size_t add_bytes(struct sl_buf *buf, struct sl_str digits)
{
    size_t size = 0;
    /* decodes each pair only to find where the digits end */
    while (size + 2 <= digits.size && sl_hex_decode((struct sl_str){digits.data + size, 2}, (uint8_t[1]){0}, 1, NULL))
        size += 2;
    if (!sl_buf_reserve(buf, size / 2))
        return 0;
    sl_hex_decode((struct sl_str){digits.data, size}, buf->data + buf->size, size / 2, NULL);
    buf->size += size / 2;
    return size / 2;
}

/* Reads line O: system (A Android, L Linux), processor, number of processors, machine, and its version as text. The numbers of the
 * processors are those of MINIDUMP_SYSTEM_INFO; those above 0x8000 are defined by Breakpad. */
static void read_system(struct microdump *m, struct sl_str rest)
{
    static const struct {
        struct sl_str name;
        uint16_t cpu;
    } processors[] = {
        {SL_STR("arm"), 5},  {SL_STR("arm64"), 0x8003},  {SL_STR("x86"), 0},          {SL_STR("x86_64"), 9},
        {SL_STR("mips"), 1}, {SL_STR("mips64"), 0x8004}, {SL_STR("riscv32"), 0x8005}, {SL_STR("riscv64"), 0x8006},
    };
    struct sl_str os, processor;
    if (!take_log_word(&rest, &os) || !take_log_word(&rest, &processor))
        return;
    for (size_t i = 0; i < sizeof processors / sizeof *processors; i++)
        if (sl_str_equal(processor, processors[i].name)) {
            m->cpu = processors[i].cpu;
            m->has_system = true;
        }
    m->platform = sl_str_equal(os, SL_STR("A")) ? 0x8203 : 0x8201; /* Android and Linux in Breakpad's minidumps */
    if (!take_hex_number(&rest, &m->cpu_count))
        m->cpu_count = 0;
    take_log_word(&rest, &m->machine);
    m->os_text = sl_str_trimmed(rest);
}

/* Reads line R: number of the signal, its name, and the address. */
static void read_reason(struct microdump *m, struct sl_str rest)
{
    struct sl_str name;
    m->has_reason =
        take_hex_number(&rest, &m->signal) && take_log_word(&rest, &name) && take_hex_number(&rest, &m->address);
}

/* Adds the part of the stack that is being read, m->open, to the list of parts; a further line S then begins a new one. */
static void close_piece(struct microdump *m)
{
    struct stack_piece *piece = m->open.size ? sl_arena_array_add(&m->pieces) : NULL;
    if (piece)
        *piece = m->open;
    m->out_of_memory |= m->open.size && !piece;
    m->open.size = 0;
}

/* Reads line S: "0" and the stack pointer, or an address of the stack and the bytes there. Bytes that follow those of the line before are
 * joined to them. */
static void read_stack(struct microdump *m, struct sl_str rest)
{
    struct sl_str word;
    uint64_t address;
    if (!take_log_word(&rest, &word))
        return;
    if (sl_str_equal(word, SL_STR("0"))) {
        m->has_stack_pointer = take_hex_number(&rest, &m->stack_pointer);
        return;
    }
    if (!hex_number(word, &address))
        return;
    size_t at = m->stack.size, size = add_bytes(&m->stack, sl_str_trimmed(rest));
    if (m->open.size && m->open.address + m->open.size == address) {
        m->open.size += size;
        return;
    }
    close_piece(m);
    m->open = (struct stack_piece){.address = address, .at = at, .size = size};
}

/* Reads line M, a module: address, offset in its file (not used), size, debug id, name. A malformed line is skipped. */
static void read_module_line(struct microdump *m, struct sl_str rest)
{
    struct microdump_module module = {.address = 0}, *added;
    uint64_t offset;
    struct sl_str id;
    if (!take_hex_number(&rest, &module.address) || !take_hex_number(&rest, &offset) ||
        !take_hex_number(&rest, &module.size) || !take_log_word(&rest, &id) ||
        !sl_debug_id_parse_breakpad(id, &module.id) || !module.size)
        return;
    module.name = sl_str_trimmed(rest);
    if ((added = sl_arena_array_add(&m->modules)))
        *added = module;
    m->out_of_memory |= !added;
}

/* Reads a line by its letter: O system, V product, P process type, R reason, G graphics, S stack, C registers (CONTEXT), M module. */
static void read_message(struct microdump *m, struct sl_str message)
{
    struct sl_str rest = message.size > 1 ? sl_str_trimmed(text_from(message, 1)) : SL_STR("");
    if (message.size < 2 || message.data[1] != ' ')
        return;
    switch (message.data[0]) {
    case 'O': read_system(m, rest); break;
    case 'V': m->product = rest; break;
    case 'P': m->process_type = rest; break;
    case 'R': read_reason(m, rest); break;
    case 'G': m->graphics = rest; break;
    case 'S': read_stack(m, rest); break;
    case 'C': /* of several such lines the last counts */
        sl_buf_clear(&m->context);
        add_bytes(&m->context, rest);
        break;
    case 'M': read_module_line(m, rest); break;
    }
}

/* Reads the lines of a microdump that its process wrote. The first line begins it, and shows which process that is and where its messages
 * begin. */
static void read_lines(struct microdump *m, struct sl_str text)
{
    struct sl_str line, message;
    sl_str_next_line(&text, &line);
    const struct log_sender sender = parse_sender(line, find_text(line, begin_mark));
    while (sl_str_next_line(&text, &line))
        if (parse_message(line, sender, &message))
            read_message(m, message);
    close_piece(m);
}

/* ---- writing the minidump ---- */

enum { HEADER = 32, ENTRY = 12, MAX_STREAMS = 6 };

struct written_stream {
    uint32_t type;
    size_t at, size;
};

/* A minidump that is being written, and the streams written so far. */
struct dump_writer {
    struct sl_buf out;
    struct written_stream streams[MAX_STREAMS];
    size_t stream_count;
};

static void begin_stream(struct dump_writer *w, uint32_t type)
{
    w->streams[w->stream_count++] = (struct written_stream){.type = type, .at = w->out.size};
}

static void end_stream(struct dump_writer *w)
{
    struct written_stream *stream = &w->streams[w->stream_count - 1];
    stream->size = w->out.size - stream->at;
}

/* Writes a UTF-8 text as minidumps store it: `u32 bytes`, UTF-16. Returns its offset. When out of memory, w->out.failed is set. */
static size_t put_string(struct dump_writer *w, struct sl_str text)
{
    size_t begin = w->out.size, at = 0;
    sl_buf_u32(&w->out, 0); /* the size, which is filled in below */
    while (at < text.size) {
        uint32_t code = sl_utf8_next(text, &at);
        if (code > 0xFFFF) {
            sl_buf_u16(&w->out, (uint16_t)(0xD800 + ((code - 0x10000) >> 10)));
            sl_buf_u16(&w->out, (uint16_t)(0xDC00 + ((code - 0x10000) & 0x3FF)));
        } else {
            sl_buf_u16(&w->out, (uint16_t)code);
        }
    }
    uint32_t size = (uint32_t)(w->out.size - begin - 4);
    if (!w->out.failed)
        memcpy(w->out.data + begin, &size, 4);
    return begin;
}

/* Writes a location descriptor: size and file offset of something. */
static void put_location(struct dump_writer *w, size_t size, size_t at)
{
    sl_buf_u32(&w->out, (uint32_t)size);
    sl_buf_u32(&w->out, (uint32_t)at);
}

/* Reads the Android version, up to three numbers, from a build fingerprint "brand/product/device:7.1.1/id/.."
 * (android.os.Build.FINGERPRINT). It stays 0 if the text has another form. */
static void read_fingerprint(struct sl_str fingerprint, uint32_t version[3])
{
    size_t colon = find_text(fingerprint, SL_STR(":")), count = 0;
    struct sl_str rest = colon < fingerprint.size ? text_from(fingerprint, colon + 1) : SL_STR("");
    size_t slash = find_text(rest, SL_STR("/"));
    /* no slash after the colon, or none before */
    if (slash == rest.size || find_text(fingerprint, SL_STR("/")) > colon)
        return;
    for (size_t i = 0; i < slash && count < 3; i++) {
        if (sl_is_digit(rest.data[i]) && version[count] < 100000) /* stays below 32 bits */
            version[count] = version[count] * 10 + (uint32_t)(rest.data[i] - '0');
        else if (rest.data[i] != '.' || ++count == 3)
            return;
    }
}

/* Writes the system stream: processor, number of processors, version, platform, and the version as text. Fields that a microdump does not
 * have are zero. */
static void put_system(struct dump_writer *w, const struct microdump *m)
{
    bool is_android = m->platform == 0x8203; /* Breakpad's number */
    uint32_t version[3] = {0, 0, 0};
    struct sl_buf text = {.budget = m->arena->budget};
    if (is_android)
        read_fingerprint(m->os_text, version);
    else
        sl_buf_cstr(&text, "Linux ");
    sl_buf_str(&text, m->os_text);
    if (!is_android) { /* the output of uname(1), as in other dumps of Linux */
        sl_buf_u8(&text, ' ');
        sl_buf_str(&text, m->machine);
    }
    size_t at = put_string(w, sl_buf_view(&text));
    w->out.failed |= text.failed;
    sl_buf_free(&text);
    begin_stream(w, STREAM_SYSTEM_INFO);
    /* 0x8003 is Breakpad's number of ARM64, whose context has 796 bytes; 12 is that of Windows, whose context has 912 */
    sl_buf_u16(&w->out, m->cpu == 0x8003 && m->context.size >= 912 ? 12 : m->cpu);
    sl_buf_fill(&w->out, 0, 4); /* model and stepping of the processor */
    sl_buf_u8(&w->out, (uint8_t)m->cpu_count);
    sl_buf_u8(&w->out, 0); /* kind of Windows */
    for (int i = 0; i < 3; i++)
        sl_buf_u32(&w->out, version[i]);
    sl_buf_u32(&w->out, m->platform);
    sl_buf_u32(&w->out, (uint32_t)at);
    sl_buf_fill(&w->out, 0, 28); /* suites of Windows, features of the processor */
    end_stream(w);
}

/* Returns the part of the stack that contains the stack pointer, else the first part; NULL if the microdump has no stack. */
static const struct stack_piece *current_stack(const struct microdump *m, const struct stack_piece *pieces,
                                               size_t count)
{
    for (size_t i = 0; i < count && m->has_stack_pointer; i++)
        if (m->stack_pointer - pieces[i].address < pieces[i].size)
            return &pieces[i];
    return count ? pieces : NULL;
}

/* Writes the list of threads, with the crashed one: a microdump has no other, and gives no id for it. `stack`: its stack, may be NULL;
 * `memory_at`: file offset of m->stack's bytes; `context_at`: file offset of the registers. */
static void put_thread(struct dump_writer *w, const struct microdump *m, const struct stack_piece *stack,
                       size_t memory_at, size_t context_at)
{
    begin_stream(w, STREAM_THREAD_LIST);
    sl_buf_u32(&w->out, 1);
    sl_buf_fill(&w->out, 0, 24); /* id, suspend count, priorities, TEB */
    sl_buf_u64(&w->out, stack ? stack->address : 0);
    put_location(w, stack ? stack->size : 0, stack ? memory_at + stack->at : 0);
    put_location(w, m->context.size, context_at);
    end_stream(w);
}

/* Writes the list of memory regions: the parts of the stack, whose bytes begin at file offset `memory_at`. */
static void put_memory(struct dump_writer *w, const struct stack_piece *pieces, size_t count, size_t memory_at)
{
    begin_stream(w, STREAM_MEMORY_LIST);
    sl_buf_u32(&w->out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        sl_buf_u64(&w->out, pieces[i].address);
        put_location(w, pieces[i].size, memory_at + pieces[i].at);
    }
    end_stream(w);
}

/* Writes the exception; fields that a microdump does not have are zero. A microdump without a signal (line R) was requested by the program
 * or comes from an old writer. For it a Breakpad stream is written instead, which marks the thread as the one that requested the dump. */
static void put_crash(struct dump_writer *w, const struct microdump *m, size_t context_at)
{
    enum { REQUESTING_THREAD_VALID = 2 };
    if (!m->has_reason) {
        begin_stream(w, STREAM_BREAKPAD_INFO);
        sl_buf_u32(&w->out, REQUESTING_THREAD_VALID);
        sl_buf_fill(&w->out, 0, 8); /* ids of the thread that wrote the dump and of the requesting one */
        end_stream(w);
        return;
    }
    begin_stream(w, STREAM_EXCEPTION);
    sl_buf_fill(&w->out, 0, 8); /* thread id, padding */
    sl_buf_u32(&w->out, (uint32_t)m->signal);
    sl_buf_fill(&w->out, 0, 12); /* flags, nested exception */
    sl_buf_u64(&w->out, m->address);
    sl_buf_fill(&w->out, 0, 8 + 15 * 8); /* number of parameters, padding, parameters */
    put_location(w, m->context.size, context_at);
    end_stream(w);
}

/* Writes the CodeView record of a debug id: a GUID, its age and a name. The first three fields of a GUID are little-endian there, but
 * big-endian in module->id. */
static void put_codeview(struct dump_writer *w, struct microdump_module *module)
{
    const uint8_t *u = module->id.uuid;
    module->record_at = w->out.size;
    sl_buf_cstr(&w->out, "RSDS");
    sl_buf_add(&w->out, (uint8_t[8]){u[3], u[2], u[1], u[0], u[5], u[4], u[7], u[6]}, 8);
    sl_buf_add(&w->out, u + 8, 8);
    sl_buf_u32(&w->out, module->id.age);
    sl_buf_str(&w->out, module->name);
    sl_buf_u8(&w->out, 0);
    module->record_size = w->out.size - module->record_at;
}

/* Writes names and CodeView records of the modules, then the module list, which refers to them. A module of more than 4 GiB, which the list
 * cannot express, gets the size UINT32_MAX. */
static void put_module_list(struct dump_writer *w, struct microdump_module *modules, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        modules[i].name_at = put_string(w, modules[i].name);
        put_codeview(w, &modules[i]);
    }
    begin_stream(w, STREAM_MODULE_LIST);
    sl_buf_u32(&w->out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        sl_buf_u64(&w->out, modules[i].address);
        sl_buf_u32(&w->out, modules[i].size > UINT32_MAX ? UINT32_MAX : (uint32_t)modules[i].size);
        sl_buf_fill(&w->out, 0, 8); /* checksum, time stamp */
        sl_buf_u32(&w->out, (uint32_t)modules[i].name_at);
        sl_buf_fill(&w->out, 0, 52); /* version */
        put_location(w, modules[i].record_size, modules[i].record_at);
        sl_buf_fill(&w->out, 0, 24); /* miscellaneous record, reserved */
    }
    end_stream(w);
}

/* Writes the directory, and the header in front, which refers to it. */
static void put_directory(struct dump_writer *w)
{
    size_t at = w->out.size;
    for (size_t i = 0; i < w->stream_count; i++) {
        sl_buf_u32(&w->out, w->streams[i].type);
        put_location(w, w->streams[i].size, w->streams[i].at);
    }
    const uint32_t header[] = {DUMP_SIGNATURE, DUMP_VERSION, (uint32_t)w->stream_count, (uint32_t)at};
    if (!w->out.failed)
        memcpy(w->out.data, header, sizeof header);
}

/* Writes the whole minidump; data NULL if out of memory. */
static struct sl_str write_minidump(struct microdump *m)
{
    struct dump_writer w = {.out = {.budget = m->arena->budget}};
    size_t piece_count = m->pieces.count, module_count = m->modules.count;
    struct stack_piece *pieces = sl_arena_array_finish(&m->pieces);
    struct microdump_module *modules = sl_arena_array_finish(&m->modules);
    if (!pieces || !modules || m->context.failed || m->stack.failed)
        return (struct sl_str){NULL, 0};
    sl_buf_fill(&w.out, 0, HEADER);
    size_t context_at = w.out.size;
    sl_buf_add(&w.out, m->context.data, m->context.size);
    size_t memory_at = w.out.size;
    sl_buf_add(&w.out, m->stack.data, m->stack.size);
    put_system(&w, m);
    put_thread(&w, m, current_stack(m, pieces, piece_count), memory_at, context_at);
    put_memory(&w, pieces, piece_count, memory_at);
    put_crash(&w, m, context_at);
    put_module_list(&w, modules, module_count);
    put_directory(&w);
    return sl_buf_move_to_arena(&w.out, m->arena);
}

/* ---- data that minidumps have no stream for ---- */

/* Adds annotations about the program, under the names that Chromium's and WebView's reports use. Values that are empty or "UNKNOWN" are
 * left out. False when out of memory or budget. */
static bool add_annotations(struct sl_minidump *dump, const struct microdump *m)
{
    const struct {
        struct sl_str name, value;
    } known[] = {
        {SL_STR("product"), m->product}, {SL_STR("process_type"), m->process_type}, {SL_STR("gpu"), m->graphics}};
    enum { KNOWN = sizeof known / sizeof *known };
    struct sl_minidump_annotation *annotations = SL_ARENA_ARRAY(m->arena, struct sl_minidump_annotation, KNOWN);
    for (size_t i = 0; annotations && i < KNOWN; i++) {
        struct sl_buf text = {.budget = m->arena->budget};
        if (!known[i].value.size || sl_str_equal(known[i].value, SL_STR("UNKNOWN")))
            continue;
        sl_buf_utf8(&text, known[i].value);
        struct sl_str value = sl_buf_move_to_arena(&text, m->arena);
        if (!value.data)
            return false;
        annotations[dump->annotation_count++] = (struct sl_minidump_annotation){.name = known[i].name, .value = value};
    }
    dump->annotations = annotations;
    return annotations;
}

/* Removes from the dump what microdumps do not have but minidumps need (a version, a thread id, a time stamp), and adds annotations.
 * SL_MALFORMED if the registers of a supported processor cannot be read: without them there is no stack. */
static enum sl_code finish_microdump(const struct microdump *m, struct sl_minidump *dump, struct sl_error *error)
{
    if (!dump->unread_processor && !dump->threads[0].is_walked) /* a supported processor, but no registers */
        return sl_fail(error, SL_MALFORMED,
                       m->context.size ? "The registers of the microdump (line C) are cut: they have %zu bytes"
                                       : "The registers of the microdump (line C) were not found",
                       m->context.size);
    static const struct sl_str no_version = SL_STR("0.0.0 ");
    dump->is_microdump = true;
    dump->cpu_text = SL_STR("");
    if (sl_str_starts(dump->os_text, no_version)) {
        dump->os_text = text_from(dump->os_text, no_version.size);
        if (dump->os == SL_MINIDUMP_ANDROID) /* the text after it is not an Android version */
            dump->crash.system.os_version = SL_STR("");
    }
    dump->crash.has_timestamp = false;
    dump->crash.crashed = true;
    dump->crash.threads[0].has_id = false;
    if (!m->has_reason)
        dump->crash.reason = SL_STR("unknown");
    return add_annotations(dump, m) ? SL_OK : sl_budget_fail(m->arena->budget, error);
}

/* Reads the lines of a microdump, converts them to a minidump, and reads that. SL_MALFORMED if a line without which nothing can be shown is
 * missing or cut; else the codes of sl_budget_fail() when out of memory. */
static enum sl_code read_microdump(struct microdump *m, struct sl_str text, struct sl_minidump *dump,
                                   struct sl_error *error)
{
    read_lines(m, text);
    if (m->out_of_memory)
        return sl_budget_fail(m->arena->budget, error);
    if (!m->has_system)
        return sl_fail(error, SL_MALFORMED,
                       "The system of the microdump (line O) was not found, or its processor is not known");
    struct sl_str made = write_minidump(m);
    if (!made.data)
        return sl_budget_fail(m->arena->budget, error);
    if (made.size > UINT32_MAX)
        return sl_fail(error, SL_MALFORMED, "The microdump is larger than 4 GiB");
    enum sl_code code = dump_read((struct sl_bytes){(const uint8_t *)made.data, made.size}, m->arena, dump, error);
    return code == SL_OK ? finish_microdump(m, dump, error) : code;
}

enum sl_code dump_read_microdump(struct sl_bytes log, struct sl_arena *arena, struct sl_minidump *dump,
                                 struct sl_error *error)
{
    struct sl_microdump_search search = {.rest = {(const char *)log.data, log.size}};
    struct sl_microdump first, next;
    if (!sl_microdump_next(&search, &first))
        return sl_fail(error, SL_MALFORMED, "Header mismatch");
    /* use the first microdump that has an end, else the first one */
    for (next = first; !first.is_whole && sl_microdump_next(&search, &next);)
        first = next.is_whole ? next : first;
    struct microdump m = {.arena = arena,
                          .context = {.budget = arena->budget},
                          .stack = {.budget = arena->budget},
                          .pieces = {.arena = arena, .item = sizeof(struct stack_piece)},
                          .modules = {.arena = arena, .item = sizeof(struct microdump_module)}};
    enum sl_code code = read_microdump(&m, first.text, dump, error);
    sl_arena_array_discard(&m.pieces);
    sl_arena_array_discard(&m.modules);
    sl_buf_free(&m.context);
    sl_buf_free(&m.stack);
    return code;
}
