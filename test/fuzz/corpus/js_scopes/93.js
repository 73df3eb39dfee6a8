var await = 1, yield = 2, async = 3, let1, of = 4, get = 5; async(a); async
(b); yield / 2