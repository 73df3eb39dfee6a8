; One unit for any machine: first, in which inner is inlined, and second. Version 5 of DWARF stands for the others, too.
source_filename = "m.c"
define i32 @first(i32 %a) noinline !dbg !6 {
  %1 = mul i32 %a, 3, !dbg !10
  %2 = xor i32 %1, 5, !dbg !12
  ret i32 %2, !dbg !12
}
define i32 @second(i32 %a) noinline !dbg !7 {
  %1 = add i32 %a, 3, !dbg !13
  %2 = mul i32 %1, %a, !dbg !13
  ret i32 %2, !dbg !14
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}
!0 = distinct !DICompileUnit(language: DW_LANG_C11, producer: "the producer", file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "m.c", directory: "/src")
!2 = !{i32 7, !"Dwarf Version", i32 5}
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = !DISubroutineType(types: !5)
!5 = !{null}
!6 = distinct !DISubprogram(name: "first", scope: !1, file: !1, line: 5, type: !4, scopeLine: 6, spFlags: DISPFlagDefinition, unit: !0)
!7 = distinct !DISubprogram(name: "second", scope: !1, file: !1, line: 10, type: !4, scopeLine: 11, spFlags: DISPFlagDefinition, unit: !0)
!8 = distinct !DISubprogram(name: "inner", scope: !1, file: !1, line: 1, type: !4, scopeLine: 2, spFlags: DISPFlagLocalToUnit | DISPFlagDefinition, unit: !0)
!9 = distinct !DILocation(line: 7, column: 13, scope: !6)
!10 = !DILocation(line: 3, column: 14, scope: !8, inlinedAt: !9)
!12 = !DILocation(line: 8, column: 5, scope: !6)
!13 = !DILocation(line: 12, column: 5, scope: !7)
!14 = !DILocation(line: 13, column: 1, scope: !7)
