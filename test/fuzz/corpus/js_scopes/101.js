class A extends B.c(d) { static #a = 1; static { b } 'c' = 2; [d] = 3; 4
5 = 6; static async; get
x() {} }