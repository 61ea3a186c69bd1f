"""A program that speaks the adapter protocol and does what each prompt says, right or wrong. Standard library and Pillow."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from PIL import Image

hello, options, exchange = {}, {}, Path()


def say(message):
    print(json.dumps(message), flush=True)


def paint(request, name):
    Image.new("RGB", (8, 8), (request["seed"] % 256, 0, 0)).save(exchange / name)
    return {"id": request["id"], "file": name}


def first_time(what):
    mark = Path(options["marks"]) / what
    if mark.exists():
        return False
    mark.write_text("")
    return True


def answer(request):
    """The answer to a request, None when there is none to give."""
    does, identity, name = request["prompt"], request["id"], request["id"] + ".png"
    if does == "error":
        return {"id": identity, "error": "ran out of paint"}
    if does == "refuse":
        return {"id": identity, "refused": "not that"}
    if does == "echo":
        return {"id": identity, "error": json.dumps({**request, "hello": {key: hello[key] for key in ("options", "places", "steps")}})}
    if does == "environment":
        asked = ("CUDA_VISIBLE_DEVICES", "OPENAI_API_KEY", "PYTHONPATH")
        return {"id": identity, "error": ",".join(name for name in asked if name in os.environ)}
    if does == "condition":
        size = Image.open(request["condition_image"]).size
        layout = json.loads(request["render_layout"])
        return {"id": identity, "error": json.dumps({"size": size, "texts": request["render_texts"], "layout": layout})}
    if does == "outside":
        return {"id": identity, "file": "../" + name}
    if does == "absolute":
        return {"id": identity, "file": __file__}
    if does == "link":
        (exchange / name).symlink_to(__file__)
        return {"id": identity, "file": name}
    if does == "absent":
        return {"id": identity, "file": "absent.png"}
    if does == "folder":
        (exchange / name).mkdir()
        return {"id": identity, "file": name}
    if does == "no-image":
        (exchange / name).write_text("<html>")
        return {"id": identity, "file": name}
    if does == "nothing":
        return {"id": identity}
    if does == "number":
        return {"id": identity, "file": 7}
    if does == "chatter":
        print("50%|#####     |", flush=True)
        print("\x1b[31mloading\x1b[0m", flush=True)
    if does == "die" or (does == "die-once" and first_time(does)):
        print("the last words", file=sys.stderr, flush=True)
        os._exit(3)
    if does == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if does == "garble":
        print('{"id": "00', flush=True)
        return None
    if does == "flood":
        sys.stdout.write("{" + "x" * (2**20 + 10) + "\n")
        sys.stdout.flush()
        return None
    if does == "mute":
        os.close(1)
        time.sleep(300)
    if does == "hang":
        time.sleep(300)
    if does == "twice":
        say(paint(request, name))
        return {"id": identity, "file": name}
    if does == "stranger":
        return {**paint(request, name), "id": "999999"}
    if does == "no-id":
        return {"file": paint(request, name)["file"]}
    if does == "child":
        child = subprocess.Popen(["sleep", "60"])
        (Path(options["marks"]) / "child").write_text(str(child.pid))
    return paint(request, name)


def requests():
    """Lines as they come, None when there is none for a moment."""
    lines = queue.Queue()

    def read():
        for line in sys.stdin:
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=0.2)
        except queue.Empty:
            yield None
            continue
        if not line:
            return
        yield json.loads(line)


def main():
    ready = {"type": "ready", "protocol": 1, "model": "misbehaving", "device": "abacus", "batch": options.get("batch", 1)}
    if options.get("ready") == "die":
        print("no such weights", file=sys.stderr, flush=True)
        os._exit(4)
    if options.get("ready") == "hang":
        time.sleep(300)
    if options.get("ready") == "version":
        ready["protocol"] = 2
    if options.get("ready") == "nameless":
        del ready["model"]
    if options.get("changes") and (Path(options["marks"]) / "die-once").exists():
        ready["revision"] = "another"
    say(ready)
    held = []
    for request in requests():
        held += [request] if request else []
        if request is None or len(held) == ready.get("batch", 1):
            # From the last to the first, so that a batch's answers come out of order.
            while held:
                told = answer(held.pop())
                if told is not None:
                    say(told)


if __name__ == "__main__":
    hello = json.loads(sys.stdin.readline())
    options, exchange = hello["options"], Path(hello["exchange"])
    main()
