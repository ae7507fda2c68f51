"""Runs a Python program with points at its lines: at each, a thread sleeps for a drawn time.

    pirn run --seed 17 python3 lines.py PROGRAM
"""
import random, runpy, sys, threading, time

program, draw = sys.argv[1], random.Random().random

def line(frame, event, argument):
    time.sleep(draw() / 1000)
    return line

def call(frame, event, argument):
    return line if frame.f_code.co_filename == program else None

threading.settrace(call)
sys.settrace(call)
runpy.run_path(program, run_name="__main__")
