"""Chromium without a window, driven over a pipe: no port, no driver, no package."""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
PATIENCE = 60.0
# Chromium reads commands from file 3 and answers on file 4; this puts the pipes there and becomes Chromium.
LAUNCH = """
import os, sys
ends = [os.dup(int(number)) for number in sys.argv[1:3]]
for end, place in zip(ends, (3, 4)):
    os.dup2(end, place)
    os.set_inheritable(place, True)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page, its replies to commands by number, and its events by name."""

    def __init__(self, send, receive):
        self.send_to, self.receive_from = send, receive
        self.buffer, self.count, self.session = b"", 0, None
        self.events = []

    def call(self, method, **params):
        """Send a command of the DevTools protocol and return its answer."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.send_to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next()
            if answer.get("id") == self.count:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def next(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.receive_from], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError("Chromium did not answer.")
            self.buffer += os.read(self.receive_from, 1 << 16)
        one, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(one)

    def open(self, url):
        """Open a page in a tab of its own and wait until it is loaded."""
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.next())

    def run(self, script):
        """Return the value of an expression of the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key, code):
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def events_named(self, method):
        """Return the parameters of all events of a name so far."""
        self.run("1")  # events of whatever the page did before have arrived by now
        return [e["params"] for e in self.events if e.get("method") == method]


@contextmanager
def chromium(profile):
    """Start Chromium with a fresh profile; it ends with the block."""
    read_end, send = os.pipe()
    receive, write_end = os.pipe()

    words = [CHROMIUM, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
    words += ["--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
    words += ["--no-sandbox"] if os.geteuid() == 0 else []
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCH, str(read_end), str(write_end), *words, "about:blank"],
        pass_fds=(read_end, write_end),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_end)
    os.close(write_end)
    try:
        yield Browser(send, receive)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(send)
        os.close(receive)
