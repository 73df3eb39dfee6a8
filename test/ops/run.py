#!/usr/bin/env python3
"""Runs the tests of running the service and of its packages: what needs root, a network or much of the machine.

usage: run.py --symloom PATH [PATTERN ...]

A test gets a temporary directory and a place for what several share. The last line is "N passed, N failed".
"""
import os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import ops, runner

args = runner.arguments().parse_args()
ops.SYMLOOM = args.symloom
sys.exit(runner.run(HERE, args, ops.Shared))
