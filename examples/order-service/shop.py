"""The shop: an order is answered as soon as it is saved, and is served whatever is killed. Usage: python3 shop.py [PORT]"""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from argiope import ApiError, Client, TooMany, Unavailable, Unreachable

IMPORTANT = {"ann", "bob"}
daemon = Client(retry_for=5)  # a daemon that is away for a moment is waited for


def post_order(order, key):
    """POST /order {"customer":"ann","item":"pizza"}; the same Idempotency-Key again is the same order."""
    customer, item = order["customer"], order["item"]
    job = daemon.put(
        "orders",
        {"customer": customer, "item": item},
        key=customer,
        priority=10 if customer in IMPORTANT else 0,
        idempotency_key=key,
    )
    return {"order": job.id}


def get_order(number):
    """GET /order/1"""
    job = daemon.jobs.get(int(number))
    return {"order": job["id"], "state": job["state"], "result": job["result"]}


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.answer(202, lambda: post_order(json.loads(body), self.headers["Idempotency-Key"]))

    def do_GET(self):
        self.answer(200, lambda: get_order(self.path.removeprefix("/order/")))

    def answer(self, status, ask):
        try:
            answer = ask()
        except (TooMany, Unavailable, Unreachable) as error:
            status, answer = 503, {"error": str(error)}
        except ApiError as error:
            status, answer = error.status, {"error": str(error)}
        except (LookupError, TypeError, ValueError):
            status, answer = 400, {"error": "that is no order"}
        body = json.dumps(answer).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if status == 503:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8080), Shop)
print(f"http://127.0.0.1:{server.server_port}/order", flush=True)
server.serve_forever()
