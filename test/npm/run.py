#!/usr/bin/env python3
"""Runs the tests beside npm's packages: every function test_* of the files test_*.py beside this one.

usage: run.py --symloom PATH --scopes PATH --mappings PATH [PATTERN ...]

--scopes and --mappings are the programs bench_scopes and bench_mappings. The last line is "N passed, N failed".
"""
import os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "http")]
import harness, runner

parser = runner.arguments()
parser.add_argument("--scopes", required=True, type=os.path.abspath)
parser.add_argument("--mappings", required=True, type=os.path.abspath)
args = parser.parse_args()
harness.SYMLOOM = args.symloom
sys.exit(runner.run(HERE, args, lambda work: args))
