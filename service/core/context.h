/* Machine-dependent part of the fibers: creates and switches stacks, and announces the switches to the sanitizers. Private to
 * core. */
#pragma once

#include <stddef.h>
#include <stdint.h>

void context_switch(void **save, void *load) __attribute__((visibility("hidden")));
void context_entry(void) __attribute__((visibility("hidden")));

/* Lays out the first frame of a fiber's stack below `top` (16-byte aligned). Returns the stack pointer; the first context_switch to it
 * calls run(arg). */
static inline void *context_make(void *top, void (*run)(void *arg), void *arg)
{
#if defined(__x86_64__)
    /* The words that context_switch pops: r15 r14 r13 r12 rbx rbp and the return address; context_entry finds the argument in r13 and the
     * function in r12. Two more words align the stack for its call of the function. */
    uintptr_t *frame = (uintptr_t *)top - 9;
    frame[0] = frame[1] = 0;
    frame[2] = (uintptr_t)arg;
    frame[3] = (uintptr_t)run;
    frame[4] = frame[5] = 0;
    frame[6] = (uintptr_t)context_entry;
    frame[7] = frame[8] = 0;
    return frame;
#else
    /* The words that context_switch loads: x19 to x30, then d8 to d15. It returns to x30, which is context_entry; that finds the function
     * in x19 and its argument in x20. */
    uintptr_t *frame = (uintptr_t *)top - 20;
    for (int i = 0; i < 20; i++)
        frame[i] = 0;
    frame[0] = (uintptr_t)run;
    frame[1] = (uintptr_t)arg;
    frame[11] = (uintptr_t)context_entry;
    return frame;
#endif
}

#if defined(__SANITIZE_ADDRESS__)
#define CONTEXT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONTEXT_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define CONTEXT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CONTEXT_TSAN 1
#endif
#endif

#ifdef CONTEXT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
static inline void context_start_switch(void **fake, const void *bottom, size_t size)
{
    __sanitizer_start_switch_fiber(fake, bottom, size);
}
static inline void context_finish_switch(void *fake, const void **from_bottom, size_t *from_size)
{
    __sanitizer_finish_switch_fiber(fake, from_bottom, from_size);
}
/* Unpoisons a recycled stack: frames of its last fiber may have been left without returning. */
static inline void context_clean(void *stack, size_t size)
{
    __asan_unpoison_memory_region(stack, size);
}
static inline void context_root(void *stack, size_t size)
{
    __lsan_register_root_region(stack, size);
}
static inline void context_unroot(void *stack, size_t size)
{
    __lsan_unregister_root_region(stack, size);
}
#else
static inline void context_start_switch(void **fake, const void *bottom, size_t size)
{
    (void)fake, (void)bottom, (void)size;
}
static inline void context_finish_switch(void *fake, const void **from_bottom, size_t *from_size)
{
    (void)fake, (void)from_bottom, (void)from_size;
}
static inline void context_clean(void *stack, size_t size)
{
    (void)stack, (void)size;
}
static inline void context_root(void *stack, size_t size)
{
    (void)stack, (void)size;
}
static inline void context_unroot(void *stack, size_t size)
{
    (void)stack, (void)size;
}
#endif

#ifdef CONTEXT_TSAN
#include <sanitizer/tsan_interface.h>
static inline void *context_tsan_new(void)
{
    return __tsan_create_fiber(0);
}
static inline void context_tsan_free(void *fiber)
{
    __tsan_destroy_fiber(fiber);
}
static inline void *context_tsan_self(void)
{
    return __tsan_get_current_fiber();
}
static inline void context_tsan_to(void *fiber)
{
    __tsan_switch_to_fiber(fiber, 0);
}
#else
static inline void *context_tsan_new(void)
{
    return NULL;
}
static inline void context_tsan_free(void *fiber)
{
    (void)fiber;
}
static inline void *context_tsan_self(void)
{
    return NULL;
}
static inline void context_tsan_to(void *fiber)
{
    (void)fiber;
}
#endif
