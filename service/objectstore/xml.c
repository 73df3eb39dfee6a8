/* Reads texts of XML documents with expat. */
#include <expat.h>

#include "objectstore/impl.h"

enum { MAX_DEPTH = 32, MAX_TEXT = 16 * 1024 }; /* most nested elements; most bytes of the text of an element */

/* ---- walking ---- */
struct walking {
    XML_Parser parser;
    xml_listener *listener;
    void *arg;
    unsigned depth;
    bool no_memory;                 /* a text could not be stored */
    struct sl_buf texts[MAX_DEPTH]; /* of the open elements */
};

/* Called by expat at the begin of an element: empties the buffer for its text. Elements deeper than MAX_DEPTH, which no valid response
 * has, end the parsing. */
static void XMLCALL xml_begin(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    struct walking *w = arg;
    if (w->depth == MAX_DEPTH)
        XML_StopParser(w->parser, XML_FALSE);
    else
        sl_buf_clear(&w->texts[w->depth++]);
}

/* Called by expat at the end of an element: passes its text to the listener. */
static void XMLCALL xml_end(void *arg, const XML_Char *name)
{
    struct walking *w = arg;
    unsigned depth = w->depth--;
    w->listener(w->arg, name, depth, sl_buf_view(&w->texts[depth - 1]));
}

/* Called by expat with a piece of text: appends it to that of the innermost open element, unless that would exceed MAX_TEXT. */
static void XMLCALL text(void *arg, const XML_Char *data, int size)
{
    struct walking *w = arg;
    struct sl_buf *text = w->depth ? &w->texts[w->depth - 1] : NULL;
    if (text && text->size + (size_t)size <= MAX_TEXT)
        sl_buf_add(text, data, (size_t)size);
    if (text && text->failed) {
        w->no_memory = true;
        XML_StopParser(w->parser, XML_FALSE);
    }
}

/* Rejects documents with a DTD, whose entities could expand to any size. */
static void XMLCALL doctype(void *arg, const XML_Char *name, const XML_Char *system, const XML_Char *public, int inner)
{
    XML_StopParser(((struct walking *)arg)->parser, XML_FALSE);
}

enum sl_code xml_walk(struct sl_str xml, xml_listener *listener, void *arg)
{
    struct walking w = {.listener = listener, .arg = arg};
    if (xml.size > INT32_MAX)
        return SL_MALFORMED;
    if (!(w.parser = XML_ParserCreate(NULL)))
        return SL_BUSY;
    XML_SetUserData(w.parser, &w);
    XML_SetElementHandler(w.parser, xml_begin, xml_end);
    XML_SetCharacterDataHandler(w.parser, text);
    XML_SetStartDoctypeDeclHandler(w.parser, doctype);
    bool ok = XML_Parse(w.parser, xml.data, (int)xml.size, 1) == XML_STATUS_OK;
    bool no_memory = w.no_memory || XML_GetErrorCode(w.parser) == XML_ERROR_NO_MEMORY;
    XML_ParserFree(w.parser);
    for (size_t i = 0; i < MAX_DEPTH; i++)
        sl_buf_wipe(&w.texts[i]); /* they may be credentials */
    return ok ? SL_OK : no_memory ? SL_BUSY : SL_MALFORMED;
}

/* ---- selected texts of a response ---- */
struct xml_wanted_text {
    struct xml_text *texts;
    size_t count;
};

/* Keeps the first text of each wanted element. */
static void take_wanted(void *arg, const char *element, unsigned depth, struct sl_str text)
{
    const struct xml_wanted_text *wanted = arg;
    for (size_t i = 0; i < wanted->count; i++) {
        struct xml_text *w = &wanted->texts[i];
        if (!w->found && (w->depth == 0 || w->depth == depth) && strcmp(w->name, element) == 0) {
            w->found = true;
            sl_buf_str(&w->text, text);
            return;
        }
    }
}

enum sl_code xml_texts(struct sl_str xml, struct xml_text *wanted, size_t count)
{
    struct xml_wanted_text all = {wanted, count};
    enum sl_code code = xml_walk(xml, take_wanted, &all);
    for (size_t i = 0; i < count; i++)
        if (wanted[i].text.failed)
            code = SL_BUSY;
    return code;
}

void xml_texts_free(struct xml_text *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sl_buf_wipe(&wanted[i].text);
}
