#!/usr/bin/env python3
"""Speaks the helper's side of the pipes for tests. The model "file" is JSON that says how to behave; every line
it reads, and its own pid, are appended to the file beside it that ends in `.log`."""
import json, os, queue, subprocess, sys, threading, time

path = sys.argv[sys.argv.index("--model") + 1]
plan = json.load(open(path))
log = open(path + ".log", "a")


def note(what):
    log.write(json.dumps(what) + "\n")
    log.flush()


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def once(name):
    """True the first time over all runs."""
    try:
        open(path + "." + name, "x").close()
        return True
    except FileExistsError:
        return False


note({"pid": os.getpid(), "args": sys.argv[1:]})
if plan.get("child"):
    note({"child": subprocess.Popen(["sleep", "300"]).pid})
if "failed" in plan:
    say(event="failed", kind=plan["failed"], message="says no")
    sys.exit(1)
if plan.get("exit"):
    sys.stderr.write("the disk is on fire\n")
    sys.exit(3)
if plan.get("noise"):
    sys.stdout.write("loading...\n{\"event\":\"surprise\"}\n\xff\n")
if plan.get("deaf"):
    time.sleep(300)
if plan.get("slow_load"):
    time.sleep(1)
say(event="ready", context=4096, threads=1)

lines = queue.Queue()


def read():
    for line in sys.stdin:
        note(json.loads(line))
        lines.put(json.loads(line))
    os._exit(0)


threading.Thread(target=read, daemon=True).start()
decisions = plan.get("decisions", [])
while True:
    line = lines.get()
    if line["do"] != "prompt":
        continue
    id = line["id"]
    done = dict(event="done", id=id, stop="end", prompt=10, reused=5, tokens=3, dropped=0, first_token_ms=7, ms=20)
    if line["grammar"]:
        decision = decisions.pop(0) if decisions else 'answer_directly"}'
        if decision == "REFUSE":
            say(event="error", id=id, message="grammar: no")
            continue
        if decision == "CUT":
            say(event="text", id=id, text='read_file","argum')
            say(**dict(done, stop="length"))
            continue
        say(event="text", id=id, text=decision)
        say(**done)
    elif plan.get("endless") and once("endless"):
        while True:
            say(event="text", id=id, text="more ")
            try:
                if lines.get(timeout=0.02).get("do") == "stop":
                    break
            except queue.Empty:
                pass
        say(**dict(done, stop="stopped"))
    elif plan.get("die") and once("died"):
        say(event="text", id=id, text="half an ")
        os.kill(os.getpid(), 9)
    else:
        say(event="text", id=id, text="Hello ")
        say(event="text", id=id, text="世界")
        say(**done)
