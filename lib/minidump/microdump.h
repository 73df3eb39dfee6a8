/* Microdumps: the crash of one thread as lines of a log, which Breakpad writes on Android and Linux (microdump_writer.cc of Breakpad;
 * microdump.h).
 *
 *     W/google-breakpad( 3745): -----BEGIN BREAKPAD MICRODUMP-----
 *     W/google-breakpad( 3745): O A arm 02 armv7l brand/product/device:7.1/..     A: Android, L: Linux; processors
 *     W/google-breakpad( 3745): V product:version
 *     W/google-breakpad( 3745): P type of process
 *     W/google-breakpad( 3745): R 0000000B SIGSEGV 00000000                      signal and address; newer writers only
 *     W/google-breakpad( 3745): G version|vendor|renderer                       graphics processor
 *     W/google-breakpad( 3745): S 0 FFEA6898 FFEA6000 00003000                   stack pointer, lowest address, size
 *     W/google-breakpad( 3745): S FFEA6000 00112233..                           a piece of the stack
 *     W/google-breakpad( 3745): C 06000040..                                    registers, in the format of minidumps
 *     W/google-breakpad( 3745): M AAACD000 00000000 0007C000 DA77..D00 libc.so  a module: address, offset, size, debug id
 *     W/google-breakpad( 3745): -----END BREAKPAD MICRODUMP-----
 *
 * The lines may have any prefix that `logcat` writes, or none, and lines of other programs may be among them.
 * sl_minidump_read() converts a microdump to the equivalent minidump and reads that. */
#pragma once

#include "base/bytes.h"

struct sl_microdump {
    struct sl_str text; /* from its first to its last line; lines of other programs may be among them */
    size_t line;        /* its first line in the log, counted from 1 */
    bool is_whole;      /* its last line is there */
};

/* True if the text contains a microdump. Always false for a minidump, even if its memory holds the text of a
 * microdump. */
bool sl_microdump_is_in(struct sl_bytes bytes);

/* Position in a log. Initialise with {.rest = log}. */
struct sl_microdump_search {
    struct sl_str rest;
    size_t line; /* number of lines read so far */
};

/* Finds the next microdump of the log. Lines of two microdumps may be mixed; each is found by its own first line. False at the end. */
bool sl_microdump_next(struct sl_microdump_search *search, struct sl_microdump *microdump);
