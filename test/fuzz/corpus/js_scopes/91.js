function* g() { yield; yield* a; yield /b/; (yield); [yield, yield a]; x = yield
() => 1 }