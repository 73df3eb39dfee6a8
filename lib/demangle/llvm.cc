// The only C++ file: LLVM's demangler behind the interface of llvm.h.
#include "demangle/llvm.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

#include "demangle/llvm_nodes.hh"

namespace
{

// Thrown when a name exceeds a limit; demangle_itanium() catches it.
struct TooLong {
};

// ---- nodes ----

// Upper bound of the text a node will print, computed when the node is made. Names can refer to their own parts repeatedly, and
// a few such references can expand to gigabytes.
struct Extent {
    uint64_t text;
    uint32_t pack;     // the largest pack inside: an expansion prints its pattern that many times
    uint32_t forwards; // references to later arguments, not yet counted
};

// Nodes live until the name is done; a name that needs too many is refused.
class Arena
{
    static constexpr size_t Block = 16 * 1024, MaxBlocks = 256, MaxForwards = 64;
    static constexpr uint64_t MaxText = 1 << 20, NodeText = 64;
    struct Chunk {
        Chunk *next;
        alignas(16) char data[Block];
    };
    alignas(16) char first[4 * 1024]; // suffices for most names
    Chunk *chunks = nullptr;
    char *at = first, *end = first + sizeof first;
    size_t count = 0;
    const ForwardTemplateReference *forwards[MaxForwards];
    size_t forward_count = 0;
    size_t taken = SIZE_MAX; // see TakenBack

    static const Extent &get_extent(const Node *node) { return reinterpret_cast<const Extent *>(node)[-1]; }

    static void add(Extent &sum, const Node *node)
    {
        if (!node)
            return;
        const Extent &one = get_extent(node);
        sum.text += one.text;
        sum.pack = one.pack > sum.pack ? one.pack : sum.pack;
        sum.forwards += one.forwards;
    }
    static void add(Extent &sum, std::string_view text) { sum.text += text.size(); }
    static void add(Extent &, TakenBack) {}
    static void add(Extent &sum, NodeArray nodes)
    {
        for (const Node *node : nodes)
            add(sum, node);
        sum.text += 2 * nodes.size();
    }
    template <typename T> static std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>> add(Extent &, T) {}

    template <typename T, typename... Args> static Extent measure(const Args &...args)
    {
        Extent sum = {NodeText, 0, 0};
        (add(sum, args), ...);
        if constexpr (std::is_same_v<T, ParameterPack>)
            (void)std::initializer_list<int>{(sum.pack = args.size() > sum.pack ? args.size() : sum.pack, 0)...};
        if constexpr (std::is_same_v<T, ParameterPackExpansion> || std::is_same_v<T, SizeofParamPackExpr> ||
                      std::is_same_v<T, FoldExpr>) {
            sum.text *= sum.pack ? sum.pack : 1;
            sum.forwards *= sum.pack ? sum.pack : 1;
        }
        if constexpr (std::is_same_v<T, ForwardTemplateReference>)
            sum.forwards = 1;
        if (sum.text > MaxText || sum.forwards > MaxText)
            throw TooLong();
        return sum;
    }

    template <typename T, typename... Args> Node *place(Args &&...args)
    {
        static_assert(alignof(T) <= alignof(Extent) * 2 && sizeof(Extent) == 16);
        Extent extent = measure<T>(args...);
        auto *memory = static_cast<Extent *>(take(sizeof(Extent) + sizeof(T)));
        *memory = extent;
        T *node = new (memory + 1) T(std::forward<Args>(args)...);
        if constexpr (std::is_same_v<T, ForwardTemplateReference>) {
            if (forward_count == MaxForwards)
                throw TooLong();
            forwards[forward_count++] = node;
        }
        return node;
    }

  public:
    sl_demangle_style style = SL_DEMANGLE_CRASH;
    unsigned local_depth = 0; // functions around the current position; GNU's tools omit their return types

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
        at = first;
        end = first + sizeof first;
        count = forward_count = 0;
    }

    // True if the whole name is small enough to print; called when all references are resolved.
    bool printable(const Node *root) const
    {
        uint64_t most = 0;
        for (size_t i = 0; i < forward_count; i++) {
            if (!forwards[i]->Ref)
                continue;
            const Extent &extent = get_extent(forwards[i]->Ref);
            if (extent.forwards)
                return false; // possibly a cycle
            most = extent.text > most ? extent.text : most;
        }
        const Extent &whole = get_extent(root);
        return whole.text + whole.forwards * most <= MaxText;
    }

    void *take(size_t size)
    {
        size = size ? (size + 15) & ~size_t(15) : 16;
        if (size > Block || count > MaxBlocks)
            throw TooLong();
        if (size > size_t(end - at)) {
            auto *chunk = static_cast<Chunk *>(std::malloc(sizeof(Chunk)));
            if (!chunk)
                throw TooLong();
            chunk->next = chunks;
            chunks = chunk;
            at = chunk->data;
            end = chunk->data + Block;
            count++;
        }
        void *memory = at;
        at += size;
        return memory;
    }

    template <typename T, typename... Args> Node *makeNode(Args &&...args)
    {
        if constexpr (!std::is_same_v<T, FunctionEncoding>)
            if (style == SL_DEMANGLE_LLVM)
                return place<T>(std::forward<Args>(args)...);
        bool full = style == SL_DEMANGLE_PROFILE;
        (void)full;
        if constexpr (std::is_same_v<T, DotSuffix>)
            return place<CloneSuffix>(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, IntegerLiteral>)
            return style == SL_DEMANGLE_CRASH ? place<TypedLiteral>(std::forward<Args>(args)...)
                                              : place<T>(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, ClosureTypeName>)
            return place<NumberedLambda>(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, UnnamedTypeName>)
            return place<NumberedType>(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, ObjCProtoName>)
            return full ? place<T>(std::forward<Args>(args)...) : protocol(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, NameWithTemplateArgs>)
            return full ? place<BareTemplate>(std::forward<Args>(args)...)
                        : place<SpacedTemplate>(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, TemplateArgs>)
            return arguments(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, SpecialName>)
            return special(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, QualType>)
            return qualified(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, NameType>)
            return named(std::forward<Args>(args)...);
        else if constexpr (std::is_same_v<T, ExpandedSpecialSubstitution>)
            return place<SpelledString>(std::forward<Args>(args)...);
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
    Node *arguments(NodeArray all, const Node *constraint)
    {
        return style == SL_DEMANGLE_GNU ? place<GnuArguments>(all, TakenBack{&taken})
                                        : place<SpacedArguments>(all, constraint);
    }

    // GNU's tools print a qualifier once if a parameter and its argument both have it.
    Node *qualified(const Node *child, Qualifiers quals)
    {
        Qualifiers own = QualNone;
        if (style == SL_DEMANGLE_GNU && child->getKind() == Node::KQualType)
            static_cast<const QualType *>(child)->match([&](const Node *, Qualifiers q) { own = q; });
        Qualifiers left = Qualifiers(quals & ~own);
        return own && !left ? const_cast<Node *>(child) : place<QualType>(child, left);
    }

    Node *special(std::string_view what, Node *of)
    {
        bool gnu = style == SL_DEMANGLE_GNU;
        if (gnu && what == "thread-local initialization routine for ")
            what = "TLS init function for ";
        else if (gnu && what == "thread-local wrapper routine for ")
            what = "TLS wrapper function for ";
        return place<SpecialName>(what, of);
    }

    Node *named(std::string_view name)
    {
        bool is_null = style == SL_DEMANGLE_GNU && name == "std::nullptr_t";
        return place<NameType>(is_null ? std::string_view("decltype(nullptr)") : name);
    }

    Node *prefix(std::string_view op, Node *child, Node::Prec precedence)
    {
        if (op == "&" && style == SL_DEMANGLE_GNU)
            return place<GnuAddressOf>(child);
        return style != SL_DEMANGLE_PROFILE && op == "&" ? place<AddressOf>(child)
                                                         : place<PrefixExpr>(op, child, precedence);
    }

    Node *function(const Node *result, const Node *name, NodeArray parameters, const Node *attributes,
                   const Node *constraint, Qualifiers cv, FunctionRefQual ref)
    {
        const Node *none = nullptr;
        bool has_result = style != SL_DEMANGLE_CRASH && !(style == SL_DEMANGLE_GNU && local_depth);
        return place<FunctionEncoding>(has_result ? result : none, name, parameters, attributes, constraint, cv, ref);
    }

    // Reads a protocol qualifier as in `objc_object objcproto9MTLDevice`: `objcproto` and a length before the name.
    Node *protocol(const Node *type, std::string_view name)
    {
        const char *begin = name.data();
        while (begin[-1] >= '0' && begin[-1] <= '9')
            begin--;
        begin -= std::strlen("objcproto");
        const Node *arguments = nullptr;
        return place<VendorExtQualType>(type, std::string_view(begin, size_t(name.data() + name.size() - begin)),
                                        arguments);
    }
};

// LLVM's parser recurses with the nesting of the name, through these functions, which limit the depth.
struct Parser : AbstractManglingParser<Parser, Arena> {
    using Base = AbstractManglingParser<Parser, Arena>;
    using Base::Base;

    Node *parseEncoding(bool parameters = true)
    {
        return guarded([&] { return Base::parseEncoding(parameters); });
    }
    // Reads clones for transactional memory (Itanium C++ ABI, 5.1.4.4 "Virtual Tables and RTTI", GCC's addition).
    Node *parseSpecialName()
    {
        if (!plain() && consumeIf("GTt"))
            return clone("transaction clone for ");
        if (!plain() && consumeIf("GTn"))
            return clone("non-transaction clone for ");
        return Base::parseSpecialName();
    }
    Node *parseLocalName(NameState *state)
    {
        ASTAllocator.local_depth++;
        Node *name = Base::parseLocalName(state);
        ASTAllocator.local_depth--;
        return name;
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
        if (plain())
            return guarded([&] { return Base::parseTemplateArg(); });
        if (consumeIf('I'))
            return oldPack();
        bool outer = TryToParseTemplateArgs;
        TryToParseTemplateArgs = true;
        Node *argument = guarded([&] { return Base::parseTemplateArg(); });
        TryToParseTemplateArgs = outer;
        return argument;
    }
    Node *parseExprPrimary()
    {
        if (!plain() && consumeIf("LDn0E"))
            return make<NameType>("nullptr");
        return Base::parseExprPrimary();
    }
    // GNU's tools name an inherited constructor after the class it is inherited from.
    Node *parseCtorDtorName(Node *&scope, NameState *state)
    {
        if (ASTAllocator.style != SL_DEMANGLE_GNU || look() != 'C' || look(1) != 'I' || look(2) < '1' || look(2) > '5')
            return Base::parseCtorDtorName(scope, state);
        int variant = look(2) - '0';
        First += 3;
        Node *from = parseName(state);
        if (state)
            state->CtorDtorConversion = true;
        return from ? make<CtorDtorName>(from, false, variant) : nullptr;
    }
    // LLVM treats `operator->*` like `operator.*`, which cannot be overloaded.
    Node *parseOperatorName(NameState *state)
    {
        return !plain() && consumeIf("pm") ? make<NameType>("operator->*") : Base::parseOperatorName(state);
    }
    Node *parseUnresolvedName(bool global)
    {
        return guarded([&] { return asTypes && consumeIf("sr") ? memberOfType() : Base::parseUnresolvedName(global); });
    }
    // Reads `srSt6__and_I...E5value`: GCC mangles members of `std` in this way, where the ABI uses a substitution, and adds both
    // the name and the template to the substitutions.
    Node *parseUnresolvedType()
    {
        if (plain() || !consumeIf("St"))
            return Base::parseUnresolvedType();
        Node *space = make<NameType>("std");
        NameState state(this);
        Node *name = parseUnqualifiedName(&state, space, nullptr);
        if (!name)
            return nullptr;
        Subs.push_back(name);
        if (look() != 'I')
            return name;
        Node *arguments = parseTemplateArgs();
        if (!arguments)
            return nullptr;
        Node *whole = make<NameWithTemplateArgs>(name, arguments);
        Subs.push_back(whole);
        return whole;
    }

    // If set, members of unresolved types are read as GCC mangles them: like the type of a variable, with the same additions to
    // the substitutions; the ABI has a sequence of names instead.
    bool asTypes = false;

  private:
    // In LLVM's style, GCC's deviations are not accepted, as in LLVM's own tools.
    bool plain() const { return ASTAllocator.style == SL_DEMANGLE_LLVM; }

    // Reads the type and the member after `sr`; see asTypes.
    Node *memberOfType()
    {
        Node *type = parseType();
        Node *member = type ? parseBaseUnresolvedName() : nullptr;
        return member ? make<QualifiedName>(type, member) : nullptr;
    }

    // Reads an argument pack from before the ABI had `J` for it (GCC's -fabi-version below 6).
    Node *oldPack()
    {
        size_t begin = Names.size();
        while (!consumeIf('E')) {
            Node *argument = parseTemplateArg();
            if (!argument)
                return nullptr;
            Names.push_back(argument);
        }
        return make<TemplateArgumentPack>(popTrailingNodeArray(begin));
    }

    Node *clone(std::string_view what)
    {
        Node *of = parseEncoding();
        return of ? make<SpecialName>(what, of) : nullptr;
    }

    static constexpr unsigned MaxDepth = 256; // of guarded functions in each other: bounds the stack
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

// Frees the buffer even if printing was stopped early.
struct Output {
    OutputBuffer buffer;
    Output() : buffer(static_cast<char *>(std::malloc(4096)), 4096) {}
    Output(const Output &) = delete;
    ~Output() { std::free(buffer.getBuffer()); }
};

} // namespace

static size_t read_and_print(const char *name, size_t size, sl_demangle_style style, bool as_types, char *out,
                             size_t capacity)
{
    Parser parser(name, name + size);
    parser.ASTAllocator.style = style;
    parser.asTypes = as_types;
    Node *node = parser.parse();
    if (!node || !parser.ASTAllocator.printable(node))
        return 0;
    Output output;
    node->print(output.buffer);
    return copy_out(output.buffer.getBuffer(), output.buffer.getCurrentPosition(), out, capacity);
}

size_t demangle_itanium(const char *name, size_t size, enum sl_demangle_style style, char *out, size_t capacity)
{
    try {
        size_t length = read_and_print(name, size, style, false, out, capacity);
        bool again =
            !length && style != SL_DEMANGLE_LLVM && std::string_view(name, size).find("sr") != std::string_view::npos;
        return again ? read_and_print(name, size, style, true, out, capacity) : length;
    } catch (const TooLong &) {
        return 0;
    }
}
