"""Stacks of MIPS programs that crashed: functions and lines are those that the programs noted themselves."""
from test_processors import OF_ITS_OWN, OPTIMISED, check_processor

REASONS = dict.fromkeys(OF_ITS_OWN, "SIG")  # what is no multiple of four is a signal of its own, whose number others have for another


def test_mips_crashes_are_walked(work, args):
    check_processor(work, "mips", "-O1", kinds=OF_ITS_OWN, reasons=REASONS)
    check_processor(work, "mips", *OPTIMISED, kinds=OF_ITS_OWN, reasons=REASONS)


def test_mips64_crashes_are_walked(work, args):
    check_processor(work, "mips64", "-O1", kinds=OF_ITS_OWN, reasons=REASONS)
    check_processor(work, "mips64", *OPTIMISED, kinds=OF_ITS_OWN, reasons=REASONS)


def test_mips_big_endian_crashes_are_walked(work, args):
    check_processor(work, "mips big", "-O1", kinds=OF_ITS_OWN, reasons=REASONS)
    check_processor(work, "mips big", *OPTIMISED, kinds=OF_ITS_OWN, reasons=REASONS)


def test_mips64_big_endian_crashes_are_walked(work, args):
    check_processor(work, "mips64 big", "-O1", kinds=OF_ITS_OWN, reasons=REASONS)
    check_processor(work, "mips64 big", *OPTIMISED, kinds=OF_ITS_OWN, reasons=REASONS)
