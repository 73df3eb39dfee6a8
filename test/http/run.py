#!/usr/bin/env python3
"""Runs the HTTP tests: every function test_* of the files test_*.py beside this one.

usage: run.py --symloom PATH [--npm] [PATTERN ...]

With --npm the tests that install a server from npm's registry, and only those. A test gets a temporary directory and
the shared objects. The last line is "N passed, N failed".
"""
import os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import harness, runner

parser = runner.arguments()
parser.add_argument("--npm", action="store_true")
args = parser.parse_args()
harness.SYMLOOM = args.symloom
sys.exit(runner.run(HERE, args, harness.Objects, lambda test: getattr(test, "from_npm", False) == args.npm))
