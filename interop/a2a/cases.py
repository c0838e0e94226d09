"""What the Python programs here share: a line of JSON for each case, a webhook of their own, and the address they were given."""

import asyncio
import json
import os
import sys
import traceback
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

URL = os.environ["A2A_URL"]
HEADERS = {"Authorization": f"Bearer {os.environ['A2A_TOKEN']}"}
LONG = "0123456789" * 1000


def equal(got, wanted, what):
    if got != wanted:
        raise AssertionError(f"{what}: got {str(got)[:200]!r}, not {str(wanted)[:200]!r}")


def run(cases):
    """Every case by itself: one that fails does not hide the others."""

    async def each():
        for name, case in cases.items():
            try:
                await asyncio.wait_for(case(), 30)
                print(json.dumps({"case": name, "ok": True}), flush=True)
            except BaseException as thrown:  # a cancelled case is a failed one
                print(json.dumps({"case": name, "ok": False, "why": repr(thrown)[:400]}), flush=True)
                traceback.print_exc(file=sys.stderr)

    asyncio.run(each())


class Webhook:
    """Keeps the bodies that were posted to it."""

    def __init__(self):
        self.came = []
        came = self.came

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                came.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        Thread(target=self.server.serve_forever, daemon=True).start()

    async def until(self, wanted):
        for _ in range(200):
            if any(wanted(body) for body in self.came):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"no such notification among {len(self.came)}")
