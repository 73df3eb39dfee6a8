#!/usr/bin/env python3
"""Runs the HTTP tests: every function test_* of the files test_*.py beside this one, and in a folder for each API.

usage: run.py --symloom PATH [--jobs N] [--npm] [--corpus DIR] [PATTERN ...]

With --npm the tests that install a server from npm's registry, and only those. With --corpus also those that need
the conformance corpus. A test gets a temporary directory and the shared objects. Every request and its answer is held
against doc/openapi.yaml. The last line is "N passed, N failed".
"""
import os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import harness, openapi, runner

parser = runner.arguments()
parser.add_argument("--npm", action="store_true")
parser.add_argument("--corpus")
args = parser.parse_args()
harness.SYMLOOM = args.symloom
harness.CORPUS = args.corpus
harness.CHECK = openapi.check


def is_wanted(test):
    return getattr(test, "from_npm", False) == args.npm and (args.corpus or not getattr(test, "from_corpus", False))


sys.exit(runner.run(HERE, args, harness.Objects, is_wanted))
