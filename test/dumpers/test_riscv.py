"""Stacks of RISC-V programs that crashed: functions and lines are those that the programs noted themselves."""
import subprocess

from test_processors import OF_ITS_OWN, OPTIMISED, check_processor

WALKED = {"minidump": {"compat": "none"}}  # Symbolicator does not walk them


def test_riscv64_crashes_are_walked(work, args):
    check_processor(work, "riscv64", "-O1", kinds=OF_ITS_OWN, settings=WALKED)
    check_processor(work, "riscv64", *OPTIMISED, kinds=OF_ITS_OWN, settings=WALKED)


def test_riscv64_crashes_are_walked_by_frame_pointers(work, args):
    """Of the leaf that crashed it is the register with the return address."""
    def without_tables(program):
        for section in (".debug_frame", ".eh_frame"):
            subprocess.run(["riscv64-linux-gnu-objcopy", "--remove-section", section, program], check=True)

    check_processor(work, "riscv64", "-O1", "-fno-omit-frame-pointer", "-static", kinds=("pointer", "room"), change=without_tables,
                    settings=WALKED, trust="fp")
