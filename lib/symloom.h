/* libsymloom: debug files in, symcaches and readable names out.
 *
 *     sl_map_file(path, &mapping, &error)                     base/file.h
 *     sl_object_open(mapping.bytes, NULL, &object, &error)    object/object.h
 *     sl_symcache_convert(object, ...)                        symcache/symcache.h
 *     sl_symcache_open(bytes, &cache, &error)
 *     sl_symcache_lookup(&cache, address, chain, capacity)
 *     sl_demangle(name, language, &out)                       demangle/demangle.h
 *
 * No sockets, no threads of its own, no globals, no clock. Functions that can fail return an enum sl_code and fill the
 * struct sl_error they are given. Everything is safe on hostile input. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "base/parallel.h"
#include "breakpad/breakpad.h"
#include "demangle/demangle.h"
#include "function/function.h"
#include "function/path.h"
#include "id/id.h"
#include "object/archive.h"
#include "object/object.h"
#include "ppdb/table.h"
#include "symcache/symcache.h"
