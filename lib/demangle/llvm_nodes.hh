// Nodes of LLVM's tree that print a C++ name in the style of crash reports or of GNU's tools. Included by llvm.cc only.
#pragma once

#include <cstring>
#include <string_view>

#include "llvm/Demangle/ItaniumDemangle.h"

using namespace llvm::itanium_demangle;
using llvm::itanium_demangle::OutputBuffer;

namespace
{

// Position at which a comma was last removed from the output; see GnuArguments.
struct TakenBack {
    size_t *at;
};

// ---- the style of crash reports, where it differs from LLVM's ----

// `(long)12`; only an int has no type in front.
class TypedLiteral final : public Node
{
    std::string_view type, value;

  public:
    TypedLiteral(std::string_view type, std::string_view value) : Node(KIntegerLiteral), type(type), value(value) {}

    void printLeft(OutputBuffer &out) const override
    {
        static const struct {
            std::string_view suffix, name;
        } names[] = {{"u", "unsigned int"},
                     {"l", "long"},
                     {"ul", "unsigned long"},
                     {"ll", "long long"},
                     {"ull", "unsigned long long"}};
        std::string_view name = type;
        for (const auto &entry : names)
            if (type == entry.suffix)
                name = entry.name;
        if (!name.empty()) {
            out += "(";
            out += name;
            out += ")";
        }
        bool negative = value[0] == 'n';
        out += negative ? "-" : "";
        out += value.substr(negative);
    }
};

// `{lambda(int)#1}`: the first one is mangled without a number, the second one with 0.
void print_number(OutputBuffer &out, std::string_view count)
{
    unsigned long number = 1;
    if (!count.empty())
        number = std::strtoul(std::string(count).c_str(), nullptr, 10) + 2;
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
        match([&](NodeArray, const Node *, NodeArray, const Node *, std::string_view count) {
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
        match([&](std::string_view count) {
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

// `operator<< <int>`: a space between the two `<`.
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

// `S<S<int> >`: a space between closing brackets.
class SpacedArguments final : public Node
{
    NodeArray arguments;

  public:
    SpacedArguments(NodeArray arguments, const Node *) : Node(KTemplateArgs), arguments(arguments) {}

    void printLeft(OutputBuffer &out) const override
    {
        ScopedOverride<unsigned> inside(out.GtIsGt, 0);
        out += "<";
        arguments.printWithComma(out);
        out += out.back() == '>' ? " >" : ">";
    }
};

// Template arguments in the style of GNU's tools: a comma follows an argument with empty text, unless it is the last: `f<int, ,
// void>`. Such a trailing comma is removed again, but still has an effect: closing brackets then get no space between them, as
// in `S<S<int>>` for `S<S<int>, >`.
class GnuArguments final : public Node
{
    NodeArray arguments;
    TakenBack taken;

    void print_one(OutputBuffer &out, const Node *argument) const
    {
        if (argument->getKind() == KTemplateArgumentPack)
            print_from(out, static_cast<const TemplateArgumentPack *>(argument)->getElements(), 0);
        else
            argument->print(out);
    }

    void print_from(OutputBuffer &out, NodeArray all, size_t index) const
    {
        if (index == all.size())
            return;
        print_one(out, all[index]);
        if (index + 1 == all.size())
            return;
        out += ", ";
        size_t before = out.getCurrentPosition();
        print_from(out, all, index + 1);
        if (out.getCurrentPosition() != before)
            return;
        out.setCurrentPosition(before - 2);
        *taken.at = before - 2;
    }

  public:
    GnuArguments(NodeArray arguments, TakenBack taken) : Node(KTemplateArgs), arguments(arguments), taken(taken) {}

    void printLeft(OutputBuffer &out) const override
    {
        ScopedOverride<unsigned> inside(out.GtIsGt, 0);
        out += "<";
        print_from(out, arguments, 0);
        out += out.back() == '>' && out.getCurrentPosition() != *taken.at ? " >" : ">";
    }
};

// `&(f(int))`, but `&ns::f` for a function in a scope.
class GnuAddressOf final : public Node
{
    const Node *of;

    static const Node *name_of(const Node *node)
    {
        if (node->getKind() != KFunctionEncoding)
            return node;
        const Node *name = static_cast<const FunctionEncoding *>(node)->getName();
        return name->getKind() == KNestedName ? name : node;
    }

  public:
    GnuAddressOf(const Node *of) : Node(KPrefixExpr), of(name_of(of)) {}

    void printLeft(OutputBuffer &out) const override
    {
        bool is_name = of->getKind() == KNameType || of->getKind() == KNestedName;
        out += is_name ? "&" : "&(";
        of->print(out);
        out += is_name ? "" : ")";
    }
};

// `std::string` used as a scope.
class SpelledString final : public ExpandedSpecialSubstitution
{
  public:
    using ExpandedSpecialSubstitution::ExpandedSpecialSubstitution;

    void printLeft(OutputBuffer &out) const override
    {
        out << "std::" << getBaseName();
        if (isInstantiation())
            out << "<char, std::char_traits<char>"
                << (SSK == SpecialSubKind::string ? ", std::allocator<char> >" : " >");
    }
};

// `f<>`: without template arguments.
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

    std::string_view getBaseName() const override { return Base->getBaseName(); }
};

// `.isra.0.cold` is printed as ` [clone .isra.0] [clone .cold]`.
class CloneSuffix final : public Node
{
    const Node *encoding;
    std::string_view suffix;

    static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  public:
    CloneSuffix(const Node *encoding, std::string_view suffix) : Node(KDotSuffix), encoding(encoding), suffix(suffix) {}

    void printLeft(OutputBuffer &out) const override
    {
        encoding->print(out);
        for (size_t at = 0, end; at < suffix.size(); at = end) {
            end = at + 1;
            while (end < suffix.size() &&
                   (suffix[end] != '.' || (end + 1 < suffix.size() && is_digit(suffix[end + 1]))))
                end++;
            out += " [clone ";
            out += suffix.substr(at, end - at);
            out += "]";
        }
    }
};

} // namespace
