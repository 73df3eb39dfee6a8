/* The few texts that are wanted of an answer in XML. Entities of its own, which could make little much, end the reading. */
#include <expat.h>

#include "origin/impl.h"
#include "origin/xml.h"

enum { MAX_DEPTH = 32, MAX_TEXT = 16 * 1024 };

struct reading {
    XML_Parser parser;
    struct xml_text *wanted;
    size_t count;
    unsigned depth;
    struct xml_text *open; /* whose text is being collected */
    unsigned open_depth;
};

static void XMLCALL xml_begin(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    struct reading *r = arg;
    if (++r->depth > MAX_DEPTH) {
        XML_StopParser(r->parser, XML_FALSE);
        return;
    }
    for (size_t i = 0; !r->open && i < r->count; i++) {
        struct xml_text *w = &r->wanted[i];
        if (!w->found && (w->depth == 0 || w->depth == r->depth) && strcmp(w->name, name) == 0) {
            w->found = true;
            r->open = w;
            r->open_depth = r->depth;
        }
    }
}

static void XMLCALL xml_end(void *arg, const XML_Char *name)
{
    struct reading *r = arg;
    if (r->open && r->open_depth == r->depth)
        r->open = NULL;
    r->depth--;
}

static void XMLCALL text(void *arg, const XML_Char *data, int size)
{
    struct reading *r = arg;
    if (r->open && r->open_depth == r->depth && r->open->text.size + (size_t)size <= MAX_TEXT)
        sl_buf_add(&r->open->text, data, (size_t)size);
}

static void XMLCALL doctype(void *arg, const XML_Char *name, const XML_Char *system, const XML_Char *public, int inner)
{
    XML_StopParser(((struct reading *)arg)->parser, XML_FALSE);
}

bool xml_texts(struct sl_str xml, struct xml_text *wanted, size_t count)
{
    struct reading r = {.wanted = wanted, .count = count};
    if (xml.size > INT32_MAX || !(r.parser = XML_ParserCreate(NULL)))
        return false;
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, xml_begin, xml_end);
    XML_SetCharacterDataHandler(r.parser, text);
    XML_SetStartDoctypeDeclHandler(r.parser, doctype);
    bool ok = XML_Parse(r.parser, xml.data, (int)xml.size, 1) == XML_STATUS_OK;
    XML_ParserFree(r.parser);
    return ok;
}

void xml_texts_free(struct xml_text *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sl_buf_wipe(&wanted[i].text);
}

/* ---- walking ---- */
struct walking {
    XML_Parser parser;
    xml_listener *listener;
    void *arg;
    unsigned depth;
    struct sl_buf texts[MAX_DEPTH]; /* of the elements that are open */
};

static void XMLCALL walk_begin(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    struct walking *w = arg;
    (void)name, (void)attributes;
    if (w->depth == MAX_DEPTH)
        XML_StopParser(w->parser, XML_FALSE);
    else
        sl_buf_clear(&w->texts[w->depth++]);
}

static void XMLCALL walk_end(void *arg, const XML_Char *name)
{
    struct walking *w = arg;
    unsigned depth = w->depth--;
    w->listener(w->arg, name, depth, sl_buf_view(&w->texts[depth - 1]));
}

static void XMLCALL walk_text(void *arg, const XML_Char *data, int size)
{
    struct walking *w = arg;
    struct sl_buf *text = w->depth ? &w->texts[w->depth - 1] : NULL;
    if (text && text->size + (size_t)size <= MAX_TEXT)
        sl_buf_add(text, data, (size_t)size);
}

static void XMLCALL walk_doctype(void *arg, const XML_Char *name, const XML_Char *system, const XML_Char *public,
                                 int inner)
{
    (void)name, (void)system, (void)public, (void)inner;
    XML_StopParser(((struct walking *)arg)->parser, XML_FALSE);
}

bool xml_walk(struct sl_str xml, xml_listener *listener, void *arg)
{
    struct walking w = {.listener = listener, .arg = arg};
    if (xml.size > INT32_MAX || !(w.parser = XML_ParserCreate(NULL)))
        return false;
    XML_SetUserData(w.parser, &w);
    XML_SetElementHandler(w.parser, walk_begin, walk_end);
    XML_SetCharacterDataHandler(w.parser, walk_text);
    XML_SetStartDoctypeDeclHandler(w.parser, walk_doctype);
    bool ok = XML_Parse(w.parser, xml.data, (int)xml.size, 1) == XML_STATUS_OK;
    XML_ParserFree(w.parser);
    for (size_t i = 0; i < MAX_DEPTH; i++)
        sl_buf_free(&w.texts[i]);
    return ok;
}
