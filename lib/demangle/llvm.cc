// The one C++ file: LLVM's demanglers behind llvm.h.
#include "demangle/llvm.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>

namespace
{
struct TooLong {
};

// A few substitutions can name gigabytes of text. The output buffer grows through this function only, and stops here.
constexpr size_t MaxOutput = 64 * 1024;
} // namespace

namespace std
{
static void *symloom_limited_realloc(void *buffer, size_t size)
{
    if (size > 4 * MaxOutput)
        throw TooLong();
    return std::realloc(buffer, size);
}
} // namespace std

#define realloc symloom_limited_realloc
#include "llvm/Demangle/Utility.h"
#undef realloc
#include "llvm/Demangle/ItaniumDemangle.h"
#include "llvm/Demangle/MicrosoftDemangle.h"

using namespace llvm::itanium_demangle;
using llvm::itanium_demangle::OutputBuffer;

namespace
{

// ---- the style of crash reports, where LLVM's own differs ----

// `(long)12`; only an int has no type before it.
class TypedLiteral final : public Node
{
    StringView type, value;

  public:
    TypedLiteral(StringView type, StringView value) : Node(KIntegerLiteral), type(type), value(value) {}

    void printLeft(OutputBuffer &out) const override
    {
        static const struct {
            StringView suffix, name;
        } names[] = {{"u", "unsigned int"},
                     {"l", "long"},
                     {"ul", "unsigned long"},
                     {"ll", "long long"},
                     {"ull", "unsigned long long"}};
        StringView name = type;
        for (const auto &entry : names)
            if (type == entry.suffix)
                name = entry.name;
        if (!name.empty()) {
            out += "(";
            out += name;
            out += ")";
        }
        bool negative = value.startsWith('n');
        out += negative ? "-" : "";
        out += negative ? value.dropFront(1) : value;
    }
};

// `{lambda(int)#1}`: the first one is written without a number, the second one with 0.
void print_number(OutputBuffer &out, StringView count)
{
    unsigned long number = 1;
    if (!count.empty())
        number = std::strtoul(std::string(count.begin(), count.size()).c_str(), nullptr, 10) + 2;
    out += "#";
    out << number;
    out += "}";
}

class NumberedLambda final : public ClosureTypeName
{
  public:
    using ClosureTypeName::ClosureTypeName;

    void printLeft(OutputBuffer &out) const override
    {
        match([&](NodeArray, NodeArray, StringView count) {
            out += "{lambda";
            printDeclarator(out);
            print_number(out, count);
        });
    }
};

class NumberedType final : public UnnamedTypeName
{
  public:
    using UnnamedTypeName::UnnamedTypeName;

    void printLeft(OutputBuffer &out) const override
    {
        match([&](StringView count) {
            out += "{unnamed type";
            print_number(out, count);
        });
    }
};

// `&f()`, where LLVM has `&(f())`.
class AddressOf final : public Node
{
    const Node *of;

  public:
    AddressOf(const Node *of) : Node(KPrefixExpr), of(of) {}

    void printLeft(OutputBuffer &out) const override
    {
        out += "&";
        of->print(out);
    }
};

// `operator<< <int>`: kept apart.
class SpacedTemplate final : public NameWithTemplateArgs
{
  public:
    using NameWithTemplateArgs::NameWithTemplateArgs;

    void printLeft(OutputBuffer &out) const override
    {
        Name->print(out);
        out += out.getCurrentPosition() && out.back() == '<' ? " " : "";
        TemplateArgs->print(out);
    }
};

// `f<>`: for those who drop the arguments.
class BareTemplate final : public NameWithTemplateArgs
{
  public:
    using NameWithTemplateArgs::NameWithTemplateArgs;

    void printLeft(OutputBuffer &out) const override
    {
        Name->print(out);
        out += out.getCurrentPosition() && out.back() == '<' ? " <>" : "<>";
    }
};

// The destructor of `failure[abi:cxx11]` is `~failure`.
class TaggedName final : public AbiTagAttr
{
  public:
    using AbiTagAttr::AbiTagAttr;

    StringView getBaseName() const override { return Base->getBaseName(); }
};

// `.isra.0.cold` is said as ` [clone .isra.0] [clone .cold]`.
class CloneSuffix final : public Node
{
    const Node *encoding;
    StringView suffix;

    static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  public:
    CloneSuffix(const Node *encoding, StringView suffix) : Node(KDotSuffix), encoding(encoding), suffix(suffix) {}

    void printLeft(OutputBuffer &out) const override
    {
        encoding->print(out);
        for (const char *at = suffix.begin(); at != suffix.end();) {
            const char *end = at + 1;
            while (end != suffix.end() && (*end != '.' || (end + 1 != suffix.end() && is_digit(end[1]))))
                end++;
            out += " [clone ";
            out += StringView(at, end);
            out += "]";
            at = end;
        }
    }
};

// ---- nodes ----

// They live until the name is done; a name that wants very many is refused.
class Arena
{
    static constexpr size_t Block = 16 * 1024, MaxBlocks = 256;
    struct Chunk {
        Chunk *next;
        alignas(16) char data[Block];
    };
    Chunk *chunks = nullptr;
    size_t used = Block, count = 0;

    template <typename T, typename... Args> Node *place(Args &&...args)
    {
        return new (take(sizeof(T))) T(std::forward<Args>(args)...);
    }

  public:
    bool full = false; // LLVM's style, with return types, without template arguments

    Arena() = default;
    Arena(const Arena &) = delete;
    ~Arena() { reset(); }

    void reset()
    {
        while (chunks) {
            Chunk *next = chunks->next;
            std::free(chunks);
            chunks = next;
        }
        used = Block;
        count = 0;
    }

    void *take(size_t size)
    {
        size = size ? (size + 15) & ~size_t(15) : 16;
        if (size > Block || count > MaxBlocks)
            throw TooLong();
        if (size > Block - used) {
            auto *chunk = static_cast<Chunk *>(std::malloc(sizeof(Chunk)));
            if (!chunk)
                throw TooLong();
            chunk->next = chunks;
            chunks = chunk;
            used = 0;
            count++;
        }
        void *memory = chunks->data + used;
        used += size;
        return memory;
    }

    template <typename T, typename... Args> Node *makeNode(Args &&...args)
    {
        if constexpr (std::is_same_v<T, DotSuffix>)
            return place<CloneSuffix>(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, IntegerLiteral>)
            return full ? place<T>(std::forward<Args>(args)...) : place<TypedLiteral>(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, ClosureTypeName>)
            return place<NumberedLambda>(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, UnnamedTypeName>)
            return place<NumberedType>(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, ObjCProtoName>)
            return full ? place<T>(std::forward<Args>(args)...) : protocol(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, NameWithTemplateArgs>)
            return full ? place<BareTemplate>(std::forward<Args>(args)...)
                        : place<SpacedTemplate>(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, AbiTagAttr>)
            return place<TaggedName>(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, PrefixExpr>)
            return prefix(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, FunctionEncoding>)
            return function(std::forward<Args>(args)...);
        else
            return place<T>(std::forward<Args>(args)...);
    }

    void *allocateNodeArray(size_t size) { return take(sizeof(Node *) * size); }

  private:
    Node *prefix(StringView op, Node *child)
    {
        return !full && op == "&" ? place<AddressOf>(child) : place<PrefixExpr>(op, child);
    }

    Node *function(const Node *result, const Node *name, NodeArray parameters, const Node *attributes, Qualifiers cv,
                   FunctionRefQual ref)
    {
        return place<FunctionEncoding>(full ? result : nullptr, name, parameters, attributes, cv, ref);
    }

    // `objc_object objcproto9MTLDevice`: the qualifier as it is written, `objcproto` and a length before the name.
    Node *protocol(const Node *type, StringView name)
    {
        const char *begin = name.begin();
        while (begin[-1] >= '0' && begin[-1] <= '9')
            begin--;
        return place<VendorExtQualType>(type, StringView(begin - std::strlen("objcproto"), name.end()), nullptr);
    }
};

// LLVM's parser recurses with the name's nesting; it calls itself through these, which stop it in time.
struct Parser : AbstractManglingParser<Parser, Arena> {
    using Base = AbstractManglingParser<Parser, Arena>;
    using Base::Base;

    Node *parseEncoding()
    {
        return guarded([&] { return Base::parseEncoding(); });
    }
    Node *parseType()
    {
        return guarded([&] { return Base::parseType(); });
    }
    Node *parseExpr()
    {
        return guarded([&] { return Base::parseExpr(); });
    }
    Node *parseName(NameState *state = nullptr)
    {
        return guarded([&] { return Base::parseName(state); });
    }
    // The type of a conversion operator is parsed without template arguments; those inside it have their own.
    Node *parseTemplateArg()
    {
        bool outer = TryToParseTemplateArgs;
        TryToParseTemplateArgs = true;
        Node *argument = guarded([&] { return Base::parseTemplateArg(); });
        TryToParseTemplateArgs = outer;
        return argument;
    }
    Node *parseExprPrimary()
    {
        if (consumeIf("LDn0E"))
            return make<NameType>("nullptr");
        return Base::parseExprPrimary();
    }
    Node *parseUnresolvedName()
    {
        return guarded([&] { return Base::parseUnresolvedName(); });
    }

  private:
    static constexpr unsigned MaxDepth = 256;
    unsigned depth = 0;

    template <typename F> Node *guarded(F parse)
    {
        if (depth == MaxDepth)
            throw TooLong();
        depth++;
        Node *node = parse();
        depth--;
        return node;
    }
};

size_t copy_out(const char *text, size_t size, char *out, size_t capacity)
{
    if (!text || size == 0 || size > capacity)
        return 0;
    std::memcpy(out, text, size);
    return size;
}

// Frees the buffer also when printing was cut short.
struct Output {
    OutputBuffer buffer;
    Output() : buffer(static_cast<char *>(std::malloc(4096)), 4096) {}
    Output(const Output &) = delete;
    ~Output() { std::free(buffer.getBuffer()); }
};

} // namespace

size_t demangle_itanium(const char *name, size_t size, int full, char *out, size_t capacity)
{
    try {
        Parser parser(name, name + size);
        parser.ASTAllocator.full = full;
        Node *node = parser.parse();
        if (!node)
            return 0;
        Output output;
        node->print(output.buffer);
        return copy_out(output.buffer.getBuffer(), output.buffer.getCurrentPosition(), out, capacity);
    } catch (const TooLong &) {
        return 0;
    }
}

size_t demangle_microsoft(const char *name, size_t size, int full, char *out, size_t capacity)
{
    using namespace llvm::ms_demangle;
    try {
        Demangler demangler;
        llvm::itanium_demangle::StringView view(name, name + size);
        SymbolNode *node = demangler.parse(view);
        if (demangler.Error || !node)
            return 0;
        Output output;
        unsigned flags = OF_NoCallingConvention | OF_NoTagSpecifier | OF_NoAccessSpecifier | OF_NoMemberType;
        if (!full)
            flags |= OF_NoReturnType | OF_NoVariableType;
        node->output(output.buffer, static_cast<OutputFlags>(flags));
        return copy_out(output.buffer.getBuffer(), output.buffer.getCurrentPosition(), out, capacity);
    } catch (const TooLong &) {
        return 0;
    }
}
