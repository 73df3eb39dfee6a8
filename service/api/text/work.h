/* POST /symbolicate-text: text with stacks of any format (lib/text), rewritten with names.
 *
 *     receive.c  the request: a text, or a form with further parts
 *     fill.c     the pieces of the text, and the look-ups that their frames ask for
 *     guess.c    ids of modules of which the text has only the name
 *     symbols.c  addresses of frames after a symbol
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

enum text_guess { GUESS_UNIQUE, GUESS_NEWEST, GUESS_NONE };

enum text_part { /* of a form; release and dist are plain texts, those between are JSON */
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

struct text_item { /* a piece that is not copied */
    struct sl_text_piece piece;
    struct sl_str source; /* the part of the text that the piece stands for */
    uint32_t stack;       /* index in `stacks` */
    uint32_t frame;       /* index in its stack */
    bool is_apart;        /* something stands between it and the next frame of the stack, which is not its caller */
};

struct text_stack {      /* consecutive frames of one format */
    size_t first, count; /* in `items` */
    uint32_t trace;      /* index among the traces of its API */
    const char *begin;   /* the lines in front of the first frame, with the title; NULL: none */
    const char *end;     /* behind the last line that belongs to it */
    struct sl_str title; /* the line in front of the frames; may be empty */
};

struct text_unknown { /* a module of which the text has only the path or name */
    struct object_id *id;
    uint32_t module; /* index among the native modules */
};

struct text_work {
    struct native_request native;    /* comes first: native_run and others use a pointer to this struct as one to it */
    struct sl_str parts[TEXT_PARTS]; /* data NULL: not sent */
    struct request_files files;
    bool wants_text;
    enum text_guess guess;
    enum sl_text_format only;               /* SL_TEXT_PLAIN: all formats */
    struct sl_text request_reader, *reader; /* `reader`: that of the request, or the command's */
    struct text_item *items;
    size_t item_count, item_capacity;
    struct text_stack *stacks;
    size_t stack_count, stack_capacity;
    uint32_t *module_of;          /* module of the text -> native module; NATIVE_NO_MODULE: not looked up */
    struct text_unknown *unknown; /* native modules without ids */
    size_t unknown_count;
    size_t sent_count;                     /* native modules of the part `modules` */
    size_t first_mapped;                   /* index of the first of these among the modules of the text */
    struct sl_str js_modules, jvm_modules; /* elements of the part `modules`, JSON */
    size_t js_frames, jvm_frames;
    struct job js, jvm;             /* jobs within this one; `request` NULL: not needed */
    const struct local_text *local; /* NULL: an HTTP request */
};

/* receive.c: true if the client wants JSON rather than text: its Accept header names JSON and no text before it. */
bool text_wants_json(const struct http_exchange *x);

/* receive.c: member of struct job_kind. */
bool text_receive(struct http_exchange *x, struct job *job, void *work) SL_SUSPENDS;

/* fill.c: reads the text and fills in the requests. False when out of memory, or `failure` says what is wrong. Pure. */
bool text_fill(struct job *job, struct text_work *work, struct json_failure *failure);

/* requests.c: the bodies of requests to the APIs for scripts and the JVM, without frames; and their frames, which are filled in when the
 * body was read into `request` (struct js_request, struct jvm_request): false when out of memory. */
void text_put_js_body(const struct text_work *work, struct sl_buf *body);
bool text_fill_js(const struct text_work *work, void *request);
void text_put_jvm_body(const struct text_work *work, struct sl_buf *body);
bool text_fill_jvm(const struct text_work *work, void *request);
/* Writes a part of the form as a member; nothing if it was not sent. */
void text_put_part(struct sl_json_writer *w, const char *key, struct sl_str json);

/* guess.c: set the ids of a module by its path or name, if the request wants that and they are not ambiguous. The first asks the
 * command and the files of the request: pure; false if they have no such module. The second asks the scanned directories for
 * the modules that are left. */
bool text_find_id(const struct text_work *work, struct sl_str name, struct object_id *id);
enum sl_code text_guess_ids(const struct job *job, struct text_work *work, struct sl_error *error) SL_SUSPENDS;

/* symbols.c: sets the addresses of frames of which the text has a symbol and an offset. A job_step, for native_request.locate. */
enum sl_code text_locate(struct job *job, void *work, struct sl_error *error);

/* write.c: writes the text with names. False when out of memory. Pure: pool. */
bool text_write(struct text_work *work, struct sl_buf *out);
/* json.c: writes the members of the answer behind "status". Pure: pool. */
void text_write_json(struct text_work *work, struct sl_str text, struct sl_json_writer *w);

/* scripts.c: returns the result of the API for scripts; NULL: the frame is not symbolicated. */
const struct js_frame *text_js_result(const struct text_work *work, const struct text_item *item);
/* Writes a frame of a script: a line for each function that was inlined there, none if the frame is left out. `scratch` is reset. False
 * when out of memory. Pure: pool. */
bool text_put_script(const struct text_work *work, const struct text_item *item, struct sl_arena *scratch,
                     struct sl_buf *out);
