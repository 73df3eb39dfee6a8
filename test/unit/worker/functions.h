/* Functions that the tests give to workers: one that sums up its inputs, and one that does what a function must not do. */
#pragma once

#include "../check.h"

#include <sys/types.h>
#include <unistd.h>

#include "worker/confine.h"
#include "worker/worker.h"

enum deed {
    /* what a function may do */
    DO_NOTHING,
    TELL_PROCESS,     /* value: its pid */
    TELL_ENVIRONMENT, /* value: variables, and characters at the address `number` */
    TELL_DESCRIPTORS, /* value: how many are open */
    TELL_ARGUMENTS,   /* value: whether the options came as they were sent */
    SPREAD_WORK,      /* value: sum of `number` pieces, done by threads */
    FAIL_WITH_RESULT,
    GIVE_BAD_RESULT, /* one that the check refuses */
    SORT_MUCH,       /* qsort asks how much memory there is */
    SPEND_FOR_EVER,  /* until the budget ends it */
    CHARGE_FOR_EVER,
    GROW_HEAP, /* takes `number` bytes and keeps them */
    /* crashes */
    READ_NOWHERE,
    READ_OUT_OF_BOUNDS, /* of the heap, by `number` bytes */
    OVERFLOW_STACK,
    ABORT,
    END_PROCESS,
    RAISE_SIGNAL, /* `number` */
    POISON,       /* the next job in this worker crashes */
    WRITE_FILES,  /* writes "written" to the output and to scratch files, and crashes if the worker had a job before */
    KEEP_OUTPUT,  /* writes "written" to the output, and keeps it mapped for writing if `number` is not 0 */
    /* limits */
    LOOP_FOR_EVER,
    SLEEP_FOR_EVER,
    ALLOCATE_FOR_EVER,
    /* system calls */
    CALL_OPEN,
    CALL_SOCKET,
    CALL_EXECVE,
    CALL_KILL, /* of process `number` */
    CALL_TGKILL,
    CALL_PTRACE,
    CALL_FORK,
    CALL_UNSHARE,
    CALL_CODE_MAPPING,
    CALL_CODE_PROTECTION,
    CALL_SHARED_MEMORY,
    CALL_SETRLIMIT,
    CALL_STAT,
    /* the protocol */
    ANSWER_GARBAGE,
    ANSWER_WITH_DESCRIPTOR,
    ANSWER_FOR_ANOTHER,
    ANSWER_TOO_LONG,
    CLOSE_SOCKET,
    ANSWER_TWICE,
    BURN_AFTER_ANSWER,
    DIE_AFTER_ANSWER,
};

struct deed_options {
    uint64_t deed, number;
    char text[32];
};

struct deed_result {
    int64_t value, breached; /* breached: what must not succeed has succeeded */
};

struct sum_result {
    uint64_t sum, roles, misaligned, written; /* written: inputs that could be changed */
};

extern const struct worker_function test_functions[];
enum { SUM, DEED, TEST_FUNCTIONS };

/* ---- pools ---- */

/* One that starts with a launcher of its own. */
struct worker_pool *open_pool(const struct worker_settings *settings);

/* What a test calls: the code, and the rest in `answer`. */
struct test_answer {
    enum sl_code code;
    struct deed_result result;
    struct worker_outcome outcome;
    struct sl_error error;
};
extern const struct worker_limits test_limits;
struct test_answer run_deed(struct worker_pool *pool, enum deed deed, uint64_t number);
struct test_answer run_deed_within(struct worker_pool *pool, enum deed deed, uint64_t number,
                                   const struct worker_limits *limits);
void assert_deed(struct worker_pool *pool, enum deed deed, uint64_t number, enum sl_code code, const char *message);

/* ---- processes ---- */
unsigned signal_children(pid_t parent, int number); /* how many there are; 0 = no signal */
unsigned count_children(pid_t parent);              /* also those that nobody has waited for */
unsigned count_descriptors(void);
/* Of /proc/PID/smaps_rollup: "Rss:", "Pss:"; 0 where this user may not look. */
uint64_t read_memory_kib(pid_t process, const char *key);
void wait_until_gone(pid_t process);
