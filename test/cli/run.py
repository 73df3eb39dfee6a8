#!/usr/bin/env python3
"""Runs the tests of the commands: every function test_* of the files test_*.py beside this one.

usage: run.py --symloom PATH [--jobs N] [PATTERN ...]

A test gets a temporary directory and the shared files. The last line is "N passed, N failed".
"""
import os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import harness, runner

args = runner.arguments().parse_args()
harness.SYMLOOM = args.symloom
sys.exit(runner.run(HERE, args, harness.Files))
