.globl _start
.type _start,@function
_start: nop
nop
nop
.type inner,@function
inner: nop
nop
.size inner,.-inner
nop
nop
label: nop
nop
.size _start,.-_start
.type next,@function
next: nop
.size next,1
