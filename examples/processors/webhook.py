"""A processor that lives behind a URL: each page is one POST, its answer what a script would print. No library is needed.

SHOP_HOOK="long and random" python3 webhook.py 9000 https://shop.example/

[project]
name = "shop"
processor = { webhook = "http://127.0.0.1:9000/shop", secret_env = "SHOP_HOOK" }
"""
import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ.get("SHOP_HOOK", "").encode()
OLDEST = 300  # seconds: what was signed before may be a repetition by somebody else
DESCRIBED = {"type": "described", "protocol": 1, "concurrency": 4, "on": {"start": "start"},
             "rules": {"list": {"age_ms": 0, "fields": {"items": {"css": "a.item::attr(href)", "all": True}}},
                       "item": {"fields": {"name": "css:h1", "price": {"css": ".price", "type": "number"}}}}}


def visit(page):
    """What `done` has besides its id. Argiope has read the fields already: they are in `fields`."""
    if page["rule"] == "start":
        return {"pages": [{"url": sys.argv[2], "rule": "list"}]}
    if page["rule"] == "list":
        return {"pages": [{"url": url, "rule": "item"} for url in page["fields"]["items"]]}
    return {"results": [{"value": page["fields"]}]}


def is_signed(header, number, content):
    parts = dict(part.split("=", 1) for part in header.split(",") if "=" in part)
    stamp = parts.get("t", "")
    if not stamp.isdigit() or abs(time.time() - int(stamp)) > OLDEST:
        return False
    wanted = hmac.new(SECRET, f"{stamp}.{number}.".encode() + content, hashlib.sha256).hexdigest()
    return hmac.compare_digest(wanted, parts.get("v1", ""))


class Worker(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections

    def do_POST(self):
        content = self.rfile.read(int(self.headers["Content-Length"]))
        line, _, body = content.partition(b"\n")  # `body` is the page as it came
        message = json.loads(line)
        if SECRET and not is_signed(self.headers.get("Argiope-Signature", ""), message.get("id", 0), content):
            return self.answer(403, {"error": "not signed with our secret"})
        if message["type"] == "describe":
            return self.answer(200, DESCRIBED)
        try:
            done = visit(message)
        except Exception as error:
            done = {"error": {"kind": type(error).__name__, "text": str(error)}}
        self.answer(200, {"type": "done", "id": message["id"], **done})

    def answer(self, status, message):
        content = json.dumps(message).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/x-argiope-processor")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Worker)
    print(f"listening on {server.server_port}", flush=True)
    server.serve_forever()
