let
a = 1; let [b] = c; let {d} = e; let = 1; let + 2