#!/usr/bin/env python3
"""Runs the tests of dumps that other programs write: every function test_* of the files test_*.py beside this one.

usage: run.py --symloom PATH [PATTERN ...]

They need Debian's wine64, chromium-headless-shell, compilers for MIPS and RISC-V with qemu-user, and npm. The last line is "N passed, N failed".
"""
import os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "http"), os.path.join(os.path.dirname(HERE), "http/crash")]
import harness, runner

args = runner.arguments().parse_args()
harness.SYMLOOM = args.symloom
sys.exit(runner.run(HERE, args, lambda work: args))
