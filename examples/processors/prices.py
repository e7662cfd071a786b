"""A processor in Python without the helper: the whole protocol in forty lines. Argiope itself finds the elements (`select`).

Argiope starts it with the first page as its argument: processor = ["python3", "prices.py", "https://shop.example/"]
"""
import json
import sys

receive, send = sys.stdin.buffer, sys.stdout


def say(kind, **members):
    send.write(json.dumps({"type": kind, **members}) + "\n")
    send.flush()


def select(page, css, *give, **more):
    say("select", id=page, query=1, css=css, give=["text", *give], **more)
    answer = json.loads(receive.readline())
    if "error" in answer:
        raise ValueError(answer["error"]["text"])
    return answer["matches"]


def visit(call, content):
    page, rule = call["id"], call["rule"]
    if rule == "start":
        return {"pages": [{"url": sys.argv[1], "rule": "list"}]}
    if rule == "list":
        links = select(page, "a.item, a.next", "attributes")
        return {"pages": [{"url": link["attributes"]["href"], "rule": RULES[link["attributes"]["class"]]} for link in links]}
    print(f"{len(content)} bytes from {call['response']['url']}", file=sys.stderr)  # is the log
    name, price = (select(page, css, most=1) for css in ("h1", ".price"))
    return {"results": [{"value": {"name": name[0]["text"], "price": float(price[0]["text"])}}]}


RULES = {"item": "item", "next": "list"}
while line := receive.readline():
    message = json.loads(line)
    if message["type"] == "describe":
        say("described", protocol=1, on={"start": "start"}, rules={"list": {"age_ms": 0}, "item": {"priority": 1}})
    elif message["type"] == "page":
        content = receive.read(message["body"])
        try:
            say("done", id=message["id"], **visit(message, content))
        except Exception as error:
            say("done", id=message["id"], error={"kind": type(error).__name__, "text": str(error)})
