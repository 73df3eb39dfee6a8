// The one C++ file: LLVM's demanglers behind llvm.h.
#include "demangle/llvm.h"

#include <cstdlib>
#include <cstring>
#include <new>

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

// Nodes live until the name is done; a name that wants very many is refused.
class Arena
{
    static constexpr size_t Block = 16 * 1024, MaxBlocks = 256;
    struct Chunk {
        Chunk *next;
        alignas(16) char data[Block];
    };
    Chunk *chunks = nullptr;
    size_t used = Block, count = 0;

  public:
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

    template <typename T, typename... Args> T *makeNode(Args &&...args)
    {
        return new (take(sizeof(T))) T(std::forward<Args>(args)...);
    }

    void *allocateNodeArray(size_t size) { return take(sizeof(Node *) * size); }
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
    Node *parseTemplateArg()
    {
        return guarded([&] { return Base::parseTemplateArg(); });
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

void print_without_return(const Node *node, Arena &arena, OutputBuffer &out)
{
    if (node->getKind() != Node::KFunctionEncoding) {
        node->print(out);
        return;
    }
    static_cast<const FunctionEncoding *>(node)->match(
        [&](const Node *, const Node *name, NodeArray params, const Node *attrs, Qualifiers cv, FunctionRefQual ref) {
            arena.makeNode<FunctionEncoding>(nullptr, name, params, attrs, cv, ref)->print(out);
        });
}

} // namespace

size_t demangle_itanium(const char *name, size_t size, int return_types, char *out, size_t capacity)
{
    try {
        Parser parser(name, name + size);
        Node *node = parser.parse();
        if (!node)
            return 0;
        Arena extra;
        Output output;
        if (return_types)
            node->print(output.buffer);
        else
            print_without_return(node, extra, output.buffer);
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
