/* Texts of documents in XML that servers answer with. Entities of a document's own, which could make little much, end the reading. */
#pragma once

#include "base/buf.h"

/* Tells of each element when it ends: its name, how deep it is (the root: 1), and the text that stands in it directly, cut behind
 * 16 KiB. */
typedef void xml_listener(void *arg, const char *element, unsigned depth, struct sl_str text);

/* False when the text is no well-formed document, has a document type, or is too deep. */
bool xml_walk(struct sl_str xml, xml_listener *listener, void *arg);
