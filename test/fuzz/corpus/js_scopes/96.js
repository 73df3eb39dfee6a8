using a = b; { await using c = () => 1 } using(d); using
.e