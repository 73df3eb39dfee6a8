/* Names in Swift's mangling since Swift 4, which is postfix: the operands of an operator are already on the reader's stack. Identifiers
 * with their suffixes, and back references. */
#include "demangle/swift_tree.h"

/* Limits of the repetitions of a type by a back reference, and of the bytes of an identifier: a short hostile name must not expand to an
 * arbitrarily large one. */
enum { MAX_REPEAT = 2048, MAX_IDENTIFIER = 64 << 10 };

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

/* ---- identifiers ---- */

/* Records the words of an identifier, up to 26, to which later identifiers refer by letters. A word has at least two characters, begins
 * with neither a digit nor an underscore, and ends before an underscore or before a capital that does not follow a capital. */
static void note_words(struct swift_reader *r, struct sl_str part)
{
    size_t start = part.size; /* of the current word; part.size: in none */
    for (size_t i = 0; i <= part.size; i++) {
        char c = i < part.size ? part.data[i] : '_'; /* the end counts as an underscore: it ends the last word */
        if (start < i && (c == '_' || (is_upper(c) && !is_upper(part.data[i - 1])))) {
            if (i - start >= 2 && r->word_count < sizeof r->words / sizeof *r->words)
                r->words[r->word_count++] = (struct sl_str){part.data + start, i - start};
            start = part.size;
        }
        if (start == part.size && c != '_' && !(c >= '0' && c <= '9'))
            start = i;
    }
}

/* Reads references to recorded words, `a` to `z` for the first 26, and appends the words. A capital marks the last reference of the
 * identifier and sets `*more` to false. False if there is no such word or the identifier becomes too long. */
static bool read_words(struct swift_reader *r, struct sl_buf *text, bool *more)
{
    while (*more && (is_lower(reader_peek(r)) || is_upper(reader_peek(r)))) {
        char c = reader_next(r);
        unsigned word = (unsigned)(is_lower(c) ? c - 'a' : c - 'A');
        *more = is_lower(c);
        if (word >= r->word_count || text->size + r->words[word].size > MAX_IDENTIFIER)
            return false;
        sl_buf_str(text, r->words[word]);
    }
    return true;
}

/* Reads an identifier that mixes references to recorded words (letters) and new text (its size and the text), and appends it to `text`.
 * After the last reference, a capital, comes one more text or `0`. False if it is malformed. */
static bool read_mixed(struct swift_reader *r, struct sl_buf *text)
{
    for (bool more = true; more;) {
        uint32_t size;
        if (!read_words(r, text, &more))
            return false;
        if (reader_eat(r, '0'))
            return true;
        if (!reader_natural(r, &size) || !size)
            return false;
        struct sl_str part = reader_take(r, size);
        if (!part.size)
            return false;
        note_words(r, part);
        sl_buf_str(text, part);
    }
    return true;
}

/* Returns a copy of the text in the reader's arena; empty when out of memory. */
static struct sl_str swift_name_keep(struct swift_reader *r, const struct sl_buf *text)
{
    char *copy = text->failed ? NULL : sl_arena_strndup(&r->arena, (const char *)text->data, text->size);
    return (struct sl_str){copy ? copy : "", copy ? text->size : 0};
}

/* Reads an identifier: `5hello`; after `0` a mixture of recorded words and new text (read_mixed); after `00` a size and Punycode. Empty if
 * it is malformed. */
static struct sl_str read_identifier(struct swift_reader *r)
{
    struct sl_str none = {"", 0};
    uint32_t size;
    if (!reader_eat(r, '0')) {
        if (!reader_natural(r, &size))
            return none;
        struct sl_str text = reader_take(r, size);
        note_words(r, text);
        return text;
    }
    if (reader_eat(r, '0')) {
        if (!reader_natural(r, &size))
            return none;
        reader_eat(r, '_'); /* separates the size from a text that begins with a digit or underscore */
        struct sl_str text = reader_take(r, size);
        return text.size ? name_punycode(r, text) : none;
    }
    struct sl_buf mixed = {0};
    struct sl_str text = read_mixed(r, &mixed) ? swift_name_keep(r, &mixed) : none;
    sl_buf_free(&mixed);
    return text;
}

struct swift_node *name_identifier(struct swift_reader *r)
{
    struct sl_str text = read_identifier(r);
    return text.size ? reader_substitutable(r, node_text(r, N_IDENTIFIER, text)) : NULL;
}

/* Pops an identifier, whose letters stand for the characters of an operator, and reads the operator's fixity: `i` infix, `p` prefix or `P`
 * postfix. NULL if it is malformed. */
struct swift_node *name_fixity(struct swift_reader *r)
{
    struct swift_node *letters = reader_pop_kind(r, N_IDENTIFIER);
    return letters ? name_operator(r, letters->text, reader_next(r)) : NULL;
}

/* Reads what follows `L`, the operator for a name that is not visible everywhere, and pops its operands: `L`: a private name and the
 * identifier of its file; `l`: the identifier of a file without a name; `a` to `j` and `A` to `J`: an entity that the compiler derived from
 * the named one; else a number that distinguishes local names. NULL if it is malformed. */
struct swift_node *name_local(struct swift_reader *r)
{
    char c = reader_peek(r);
    if (c == 'L' || c == 'l') {
        reader_next(r);
        struct swift_node *file = reader_pop_kind(r, N_IDENTIFIER);
        if (!file)
            return NULL;
        return c == 'L' ? node_with_child(r, N_PRIVATE_NAME, reader_pop_name(r))
                        : node_put(r, node_new(r, N_PRIVATE_NAME), NULL);
    }
    if ((c >= 'a' && c <= 'j') || (c >= 'A' && c <= 'J'))
        return node_add(r, node_text(r, N_RELATED_NAME, reader_take(r, 1)), reader_pop_name(r));
    uint32_t number;
    return reader_index(r, &number) ? node_add(r, node_number(r, N_LOCAL_NAME, number), reader_pop_name(r)) : NULL;
}

/* ---- back references ---- */

/* Pushes the node `count` - 1 times and returns it; the caller pushes it once more. NULL if `count` is too large or memory is short. */
static struct swift_node *repeat(struct swift_reader *r, struct swift_node *node, uint32_t count)
{
    if (count > MAX_REPEAT)
        return NULL;
    for (; node && count > 1; count--)
        node = reader_push(r, node);
    return node;
}

/* Reads back references after `A`. A letter is one of the first 26 substitutions, a capital the last reference; a number before a letter is
 * how often it is repeated. A number and `_` is a later substitution: `_` the 27th, `0_` the 28th. The last reference is returned, all
 * others are pushed. NULL if it is malformed. */
struct swift_node *name_substitution(struct swift_reader *r)
{
    uint32_t number = 0;
    for (;;) {
        bool given = reader_natural(r, &number);
        char c = reader_next(r);
        if (c == '_') /* indexes count from 0 */
            return node_child(r->substitutions, given ? number + 27 : 26);
        if (!is_lower(c) && !is_upper(c))
            return NULL;
        struct swift_node *node = node_child(r->substitutions, (uint32_t)(is_lower(c) ? c - 'a' : c - 'A'));
        node = repeat(r, node, given ? number : 1);
        if (!node || is_upper(c))
            return node;
        if (!reader_push(r, node))
            return NULL;
    }
}

struct standard_type {
    char letter;
    enum node_kind kind;
    const char *name;
};

static const struct standard_type standard_types[] = {
    {'A', N_STRUCT, "AutoreleasingUnsafeMutablePointer"},
    {'B', N_PROTOCOL, "BinaryFloatingPoint"},
    {'D', N_STRUCT, "Dictionary"},
    {'E', N_PROTOCOL, "Encodable"},
    {'F', N_PROTOCOL, "FloatingPoint"},
    {'G', N_PROTOCOL, "RandomNumberGenerator"},
    {'H', N_PROTOCOL, "Hashable"},
    {'I', N_STRUCT, "DefaultIndices"},
    {'J', N_STRUCT, "Character"},
    {'K', N_PROTOCOL, "BidirectionalCollection"},
    {'L', N_PROTOCOL, "Comparable"},
    {'M', N_PROTOCOL, "MutableCollection"},
    {'N', N_STRUCT, "ClosedRange"},
    {'O', N_STRUCT, "ObjectIdentifier"},
    {'P', N_STRUCT, "UnsafePointer"},
    {'Q', N_PROTOCOL, "Equatable"},
    {'R', N_STRUCT, "UnsafeBufferPointer"},
    {'S', N_STRUCT, "String"},
    {'T', N_PROTOCOL, "Sequence"},
    {'U', N_PROTOCOL, "UnsignedInteger"},
    {'V', N_STRUCT, "UnsafeRawPointer"},
    {'W', N_STRUCT, "UnsafeRawBufferPointer"},
    {'X', N_PROTOCOL, "RangeExpression"},
    {'Y', N_PROTOCOL, "RawRepresentable"},
    {'Z', N_PROTOCOL, "SignedInteger"},
    {'a', N_STRUCT, "Array"},
    {'b', N_STRUCT, "Bool"},
    {'d', N_STRUCT, "Double"},
    {'e', N_PROTOCOL, "Decodable"},
    {'f', N_STRUCT, "Float"},
    {'h', N_STRUCT, "Set"},
    {'i', N_STRUCT, "Int"},
    {'j', N_PROTOCOL, "Numeric"},
    {'k', N_PROTOCOL, "RandomAccessCollection"},
    {'l', N_PROTOCOL, "Collection"},
    {'m', N_PROTOCOL, "RangeReplaceableCollection"},
    {'n', N_STRUCT, "Range"},
    {'p', N_STRUCT, "UnsafeMutablePointer"},
    {'q', N_ENUM, "Optional"},
    {'r', N_STRUCT, "UnsafeMutableBufferPointer"},
    {'s', N_STRUCT, "Substring"},
    {'t', N_PROTOCOL, "IteratorProtocol"},
    {'u', N_STRUCT, "UInt"},
    {'v', N_STRUCT, "UnsafeMutableRawPointer"},
    {'w', N_STRUCT, "UnsafeMutableRawBufferPointer"},
    {'x', N_PROTOCOL, "Strideable"},
    {'y', N_PROTOCOL, "StringProtocol"},
    {'z', N_PROTOCOL, "BinaryInteger"},
};

static const struct standard_type concurrency_types[] = {
    {'A', N_PROTOCOL, "Actor"},
    {'C', N_STRUCT, "CheckedContinuation"},
    {'E', N_STRUCT, "CancellationError"},
    {'F', N_PROTOCOL, "Executor"},
    {'G', N_STRUCT, "TaskGroup"},
    {'I', N_PROTOCOL, "AsyncIteratorProtocol"},
    {'J', N_STRUCT, "UnownedJob"},
    {'M', N_CLASS, "MainActor"},
    {'P', N_STRUCT, "TaskPriority"},
    {'S', N_STRUCT, "AsyncStream"},
    {'T', N_STRUCT, "Task"},
    {'c', N_STRUCT, "UnsafeContinuation"},
    {'e', N_STRUCT, "UnownedSerialExecutor"},
    {'f', N_PROTOCOL, "SerialExecutor"},
    {'g', N_STRUCT, "ThrowingTaskGroup"},
    {'i', N_PROTOCOL, "AsyncSequence"},
    {'s', N_STRUCT, "AsyncThrowingStream"},
    {'t', N_STRUCT, "UnsafeCurrentTask"},
};

/* Returns a node for the type with this letter in the table; NULL if there is none. */
static struct swift_node *find_standard(struct swift_reader *r, const struct standard_type *types, size_t count,
                                        char letter)
{
    for (size_t i = 0; i < count; i++)
        if (types[i].letter == letter)
            return node_standard(r, types[i].kind, types[i].name);
    return NULL;
}

/* Reads what follows `S`: `o`, `C`: the modules of imported C declarations; `g`: the optional of the type on the stack; `c` and a letter: a
 * type for concurrency; any other letter: a type of the standard library. A number before the letter is how often the type is repeated.
 * NULL if it is malformed. */
struct swift_node *name_standard_type(struct swift_reader *r)
{
    uint32_t count = 1;
    if (reader_eat(r, 'o'))
        return node_write(r, N_MODULE, "__C");
    if (reader_eat(r, 'C'))
        return node_write(r, N_MODULE, "__C_Synthesized");
    if (reader_eat(r, 'g'))
        return reader_substitutable(r, node_optional(r, reader_pop_type(r)));
    if (reader_peek(r) >= '0' && reader_peek(r) <= '9' && !reader_natural(r, &count))
        return NULL;
    bool second = reader_eat(r, 'c');
    const struct standard_type *types = second ? concurrency_types : standard_types;
    size_t types_count = second ? sizeof concurrency_types / sizeof *types : sizeof standard_types / sizeof *types;
    return repeat(r, find_standard(r, types, types_count, reader_next(r)), count);
}
