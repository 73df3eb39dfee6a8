/* void context_switch(void **save, void *load)
 *
 * Saves the callee-saved registers of the running stack and its pointer in `*save`, and goes on with the stack whose
 * pointer is `load`. The floating point control words are not switched: nothing in the process changes them.
 *
 * No .note.gnu.property: an object without it keeps the linker from marking the program for hardware shadow stacks,
 * which would not follow a switch. */
#if defined(__x86_64__)
    .text
    .globl context_switch
    .hidden context_switch
    .type context_switch, @function
context_switch:
    .cfi_startproc
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .cfi_endproc
    .size context_switch, . - context_switch

/* First code of a new context: r12 holds the function, r13 its argument. It never returns. */
    .globl context_entry
    .hidden context_entry
    .type context_entry, @function
context_entry:
    .cfi_startproc
    .cfi_undefined rip
    movq %r13, %rdi
    callq *%r12
    ud2
    .cfi_endproc
    .size context_entry, . - context_entry

#elif defined(__aarch64__)
    .text
    .globl context_switch
    .hidden context_switch
    .type context_switch, %function
context_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x2, sp
    str x2, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size context_switch, . - context_switch

/* First code of a new context: x19 holds the function, x20 its argument. It never returns. */
    .globl context_entry
    .hidden context_entry
    .type context_entry, %function
context_entry:
    mov x0, x20
    blr x19
    brk #1
    .size context_entry, . - context_entry
#else
#error "no context switch for this architecture"
#endif
    .section .note.GNU-stack, "", %progbits
