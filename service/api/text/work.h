/* POST /symbolicate-text: text with stacks of any format (lib/text), rewritten with names.
 *
 *     receive.c  the request: a text, or a form with further parts
 *     fill.c     splits the text into frames and other pieces, and makes the request that looks up native frames
 *     guess.c    ids of modules of which the text has only the name
 *     symbols.c  addresses of frames that are given as symbol and offset
 *     requests.c the requests to the APIs for scripts and the JVM (js, jvm)
 *     run.c      the look-ups: native code in this job, scripts and the JVM in jobs of their APIs
 *     write.c    the text with names, scripts.c: its frames of scripts; json.c: the JSON answer
 *
 * Everything lives in the job's arena; texts are views of the body. */
#pragma once

#include "api/js/js.h"
#include "api/jvm/jvm.h"
#include "api/local_text.h"
#include "api/native/native.h"
#include "base/json_write.h"

/* Parameter `guess` of the query. For a module of which the text has only the name, it says which file of that name gives the module's id:
 * GUESS_UNIQUE: one that is not ambiguous; GUESS_NEWEST: of ambiguous ones the newest; GUESS_NONE: none. */
enum text_guess { GUESS_UNIQUE, GUESS_NEWEST, GUESS_NONE };

enum text_part { /* part of a form; text, release and dist are plain texts, all others are JSON */
                 TEXT_TEXT,
                 TEXT_MODULES,
                 TEXT_SOURCES,
                 TEXT_OPTIONS,
                 TEXT_SCRAPING,
                 TEXT_SOURCE,
                 TEXT_RELEASE,
                 TEXT_DIST,
                 TEXT_PARTS
};

struct text_item { /* a piece of the text that is written in another way: a frame, or markup that other text replaces */
    struct sl_text_piece piece;
    struct sl_str source; /* the piece as it stands in the text */
    uint32_t stack;       /* of a frame: index of its stack in text_work.stacks */
    uint32_t frame;       /* of a frame: index in its stack */
    bool is_apart;        /* the next frame of the stack is not the caller of this one: something stands between them */
};

struct text_stack {      /* consecutive frames of native code, of scripts or of the JVM */
    size_t first;        /* index of the first frame in text_work.items */
    size_t count;        /* number of frames */
    uint32_t trace;      /* index of the stack's trace in the request to the native, script or JVM API */
    const char *begin;   /* begin of the lines in front of the first frame, with the title; NULL: there are none */
    const char *end;     /* end of the last line of the stack */
    struct sl_str title; /* the line in front of the frames that says what happened; may be empty */
};

struct text_unknown {     /* a module of which the text has only the path or name */
    struct object_id *id; /* to be filled in by guess.c */
    uint32_t module;      /* index in native_request.modules */
};

struct text_work {
    struct native_request native;    /* comes first: native_run and others take a pointer to text_work as one to this */
    struct sl_str parts[TEXT_PARTS]; /* of the form, or only the text; data NULL: not sent */
    struct request_files files;
    bool wants_text; /* the answer is the text; else JSON */
    enum text_guess guess;
    enum sl_text_format only;      /* look up only frames of this format; SL_TEXT_PLAIN: of all */
    struct sl_text request_reader; /* used unless a command has a reader of its own */
    struct sl_text *reader;        /* the one in use */
    struct text_item *items;
    size_t item_count, item_capacity;
    struct text_stack *stacks;
    size_t stack_count, stack_capacity;
    uint32_t *module_of; /* by index in reader->modules: index in native.modules; NATIVE_NO_MODULE: not looked up */
    struct text_unknown *unknown; /* modules in native.modules that have no ids */
    size_t unknown_count;
    size_t sent_count;   /* modules of the form's part `modules`, which come first in native.modules */
    size_t first_mapped; /* in reader->modules those before this index are of the text, the others of the form */
    struct sl_str js_modules, jvm_modules; /* modules of the form for scripts and for the JVM: JSON arrays */
    size_t js_frames, jvm_frames;
    struct job js, jvm; /* run within this job for frames of scripts, of the JVM; `request` NULL: not needed */
    const struct local_text *local; /* NULL: an HTTP request */
};

/* receive.c: true if the client wants JSON rather than text: its Accept header names application/json, and text/plain not before that. */
bool text_wants_json(const struct http_exchange *x);

/* receive.c: job_kind.receive. Receives the body and fills in `work`. False: the answer is set, or the client is gone. */
bool text_receive(struct http_exchange *x, struct job *job, void *work) SL_SUSPENDS;

/* fill.c: reads the parts of the request and its text, and fills in `work`. False: `failure` is set, also when out of memory. Pure. */
bool text_fill(struct job *job, struct text_work *work, struct json_failure *failure);

/* requests.c: makes the requests to the APIs for scripts and the JVM. text_put_..._body appends a JSON body without frames; when the API
 * has read that into `request` (struct js_request, struct jvm_request), text_fill_... adds the frames. False when out of memory. */
void text_put_js_body(const struct text_work *work, struct sl_buf *body);
bool text_fill_js(const struct text_work *work, void *request);
void text_put_jvm_body(const struct text_work *work, struct sl_buf *body);
bool text_fill_jvm(const struct text_work *work, void *request);
/* Writes the JSON in a part of the form as a member of an object; nothing if the part was not sent. */
void text_put_part(struct sl_json_writer *w, const char *key, struct sl_str json);

/* guess.c: asks the command for the ids of a module, by its path or name. False if there is no command, if it knows none or several such
 * modules, or for GUESS_NONE. Pure. */
bool text_find_id(const struct text_work *work, struct sl_str name, struct object_id *id);
/* Sets the ids of the modules in `unknown` by their path or name, from files of the request, uploads and scanned directories. Modules with
 * no file or with ambiguous ones stay without ids. */
enum sl_code text_guess_ids(const struct job *job, struct text_work *work, struct sl_error *error) SL_SUSPENDS;

/* symbols.c: sets the addresses of frames that the text gives as symbol and offset. A job_step, for native_request.locate. */
enum sl_code text_locate(struct job *job, void *work, struct sl_error *error);

/* write.c: writes the text with names. False when out of memory. Pure; runs on the pool. */
bool text_write(struct text_work *work, struct sl_buf *out);
/* json.c: writes the members of the JSON answer that follow "status". `text` is the text with names. Pure; runs on the pool. */
void text_write_json(struct text_work *work, struct sl_str text, struct sl_json_writer *w);

/* scripts.c: returns what the API for scripts has made of a frame; NULL if it has not symbolicated the frame. */
const struct js_frame *text_js_result(const struct text_work *work, const struct text_item *item);
/* Writes the line of a script's frame, and one more for each function into which its function was inlined. Writes no line for functions
 * that the source map hides. Resets `scratch`. False when out of memory. Pure; runs on the pool. */
bool text_put_script(const struct text_work *work, const struct text_item *item, struct sl_arena *scratch,
                     struct sl_buf *out);
