#!/usr/bin/env python3
"""Runs the tests of the documents: every function test_* of the files test_*.py beside this one.

usage: run.py --symloom PATH [--jobs N] [PATTERN ...]

First it lists the blocks of the pages that cannot be tried here, each with the reason. The last line is "N passed, N failed".
"""
import os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "cli")]
import harness, pages, runner

args = runner.arguments().parse_args()
harness.SYMLOOM = args.symloom
for page in pages.PAGES:
    for block in pages.blocks(page):
        if block.reason:
            print(f"not run {page}:{block.line}: {block.reason}")
sys.stdout.flush()
sys.exit(runner.run(HERE, args, lambda work: None))
