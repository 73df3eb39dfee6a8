function f() { return
a } function g() { return a } function h() { return }