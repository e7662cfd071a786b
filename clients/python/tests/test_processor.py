"""Scripts on BaseHandler, run by `python3 -m argiope.processor` over the real protocol."""
import base64
import datetime
import hashlib
import json
import pathlib
import re
import unittest

from .running_processor import ProcessorTest

CURL_COMMANDS = pathlib.Path(__file__).resolve().parents[3] / "tests" / "data" / "curl_commands.json"
PYQUERY = "import sys; sys.modules['pyquery'] = None\n"  # as if it were not installed
SHOP = b"""<html><head><title>Shop</title></head><body><h1>All  <b>things</b></h1>
<ul id=list><li class="item first"><a href="/item/1">One</a> <i>1.50</i></li><li class=item><a href="item/2?a=b">Two</a> <i>2</i></li></ul>
<a class=next href="https://other.example/page2">Next</a><a href="mailto:ann@shop.example">Ann</a></body></html>"""


class Describing(ProcessorTest):
    def test_rules_ticks_events_and_defaults(self):
        told = self.script(
            """
            class Handler(BaseHandler):
                crawl_config = {"headers": {"User-Agent": "shop"}, "itag": "v2", "timeout": 30, "proxy": "localhost", "mine": 1}
                retry_delay = {0: 10, "": -1}
                @every(minutes=24 * 60)
                def on_start(self): pass
                @every(seconds=30)
                def look(self): pass
                @every
                def often(self): pass
                @config(age=10 * 24 * 60 * 60, priority=2, cookies={"a": "b"}, auto_recrawl=True, process_time_limit=1.5)
                def index_page(self, response): pass
                @catch_status_code_error
                @config(age=-1, allow_redirects=False, fetch_type="js", js_script="function() {}", js_viewport_width=100)
                def errors(self, response): pass
                def on_message(self, project, msg): pass
                def _private(self): pass
            """
        ).told
        self.assertEqual(told["on"], {"start": "on_start", "message": "on_message"})
        self.assertEqual(
            {each["rule"]: each["every_ms"] for each in told["ticks"]},
            {"on_start": 86_400_000, "look": 30_000, "often": 60_000},
        )
        self.assertEqual(
            told["rules"],
            {
                "on_start": {}, "look": {}, "often": {},
                "index_page": {
                    "age_ms": 864_000_000, "priority": 2, "recrawl": True, "time_limit_ms": 1500, "request": {"cookies": {"a": "b"}},
                },
                "errors": {
                    "errors": True, "age_ms": None,
                    "request": {
                        "redirects": 0, "render": {"images": False, "script": "function() {}", "run_at": "end", "width": 100},
                    },
                },
            },
        )  # fmt: skip
        self.assertEqual(
            told["defaults"],
            {
                "tag": "v2",
                "request": {"headers": {"User-Agent": "shop"}, "timeout_ms": 30_000, "proxy": "http://localhost:8080"},
            },
        )
        self.assertEqual(told["retry_delay_ms"], {"0": 10_000, "": None})
        self.assertIn("mine: not known", self.last.project_log[0]["text"])

    def test_what_base_classes_have_counts(self):
        told = self.script(
            """
            class Base(BaseHandler):
                @every(seconds=5)
                def tick(self): pass
            class Handler(Base):
                retry_delay = 60
                def on_finished(self, response, task): pass
            """
        ).told
        self.assertEqual(told["ticks"], [{"rule": "tick", "every_ms": 5000}])
        self.assertEqual((told["on"], told["retry_delay_ms"]), ({"finished": "on_finished"}, {"": 60_000}))

    def test_which_class_is_the_handler(self):
        two = "class A(BaseHandler):\n    def a(self): pass\nclass B(BaseHandler):\n    def b(self): pass\n"
        self.assertIn("b", self.script(two).told["rules"])
        self.assertIn("a", self.script(two + "__handler_cls__ = A\n").told["rules"])

    def test_a_script_that_redefines_names_it_was_given(self):
        told = self.script(
            """
            import argiope.processor
            class BaseHandler(argiope.processor.BaseHandler):
                def shared(self): pass
            class Handler(BaseHandler):
                def own(self): return "own"
            json = os = sys = open = print = len = None
            """
        )
        self.assertEqual(sorted(told.told["rules"]), ["own", "shared"])
        self.assertEqual(self.values(told.visit(rule="own")), ["own"])

    def test_scripts_that_cannot_be_loaded_say_where(self):
        for text, kind, where, words in (
            ("import no_such_module", "ModuleNotFoundError", "shop.py:1", "no_such_module"),
            ("x = 1\nclass H(:\n  pass", "SyntaxError", "shop.py:2", "syntax"),
            ("x = 1", "LookupError", None, "BaseHandler"),
            ("\n\nraise SystemExit(3)", "SystemExit", "shop.py:3", "exit(3)"),
            ("from argiope.processor import *\n@config(agee=1)\ndef f(): pass", "TypeError", "shop.py:2", "agee"),
            ("from argiope.processor import *\n@every(seconds=0)\ndef f(): pass", "ValueError", "shop.py:2", "one second"),
            (
                "from argiope.processor import *\nclass H(BaseHandler):\n  def __init__(self): self.x",
                "AttributeError",
                "shop.py:3",
                "x",
            ),
            ("b = 'caf\\xe9'\n1/0 # \u00e9", "ZeroDivisionError", "shop.py:2", "division"),
        ):
            with self.subTest(text):
                error = self.load(text).describe()["error"]
                self.assertEqual((error["kind"], error.get("where")), (kind, where))
                self.assertIn(words, error["text"])
                self.assertNotIn("argiope/processor/_", error["trace"])
                self.assertIn("could not be loaded", self.last.visit()["error"]["text"])

    def test_scripts_import_one_another_as_pyspiders_do(self):
        (self.folder / "other.py").write_text("class Shared: name = 'shared'")
        (self.folder / "colorsys.py").write_text("raise ValueError('a project of this name')")
        processor = self.script(
            """
            import colorsys
            import other as beside
            from projects import other
            from projects.other import Shared
            import projects.other
            class H(BaseHandler):
                def page(self, response): return [other.Shared.name, Shared.name, projects.other.Shared.name]
            """
        )
        self.assertEqual(self.values(processor.visit()), [["shared"] * 3])


class Answers(ProcessorTest):
    def one(self, body, **options):
        """Visits `page`, whose body is given."""
        lines = "".join(f"\n        {line}" for line in body.splitlines())
        text = f"class H(BaseHandler):\n    def page(self, response, task):{lines}\n    def other(self, response): pass\n"
        return self.script(text).visit(**options)

    def test_what_is_returned_is_the_result(self):
        for value, results in (
            ("None", None),
            ("{}", None),
            ("0", None),
            ("'text'", "text"),
            ("{'a': [1, 2.5, None]}", {"a": [1, 2.5, None]}),
        ):
            answer = self.one(f"return {value}")
            self.assertEqual(answer.get("results"), None if results is None else [{"value": results}])

    def test_a_generator_gives_several_results(self):
        answer = self.one("yield 'a'\nyield None\nself.crawl('/x')\nyield 'c'")
        self.assertEqual(answer["results"], [{"part": "1", "value": "a"}, {"part": "3", "value": "c"}])
        self.assertEqual(len(answer["pages"]), 1)

    def test_a_coroutine_is_run(self):
        processor = self.script("class H(BaseHandler):\n    async def page(self, response): return response.url")
        self.assertEqual(self.values(processor.visit()), ["https://shop.example/"])

    def test_results_that_json_cannot_say(self):
        answer = self.one(
            "import datetime\n"
            "return {1: b'x', None: b'\\xff', 'n': float('nan'), 'big': 2**70, 't': datetime.date(2026, 1, 2), 's': {3}, (1, 2): '\\ud800'}"
        )
        self.assertEqual(
            self.values(answer),
            [{
                "1": "x", "null": "[BASE64-DATA]/w==[/BASE64-DATA]", "n": None, "big": str(2**70), "t": "2026-01-02", "s": [3], "(1, 2)": "?",
            }],
        )  # fmt: skip
        self.assertIn("contains itself", self.one("x = []\nx.append(x)\nreturn x")["error"]["text"])

    def test_callbacks_take_what_they_want(self):
        processor = self.script(
            """
            import functools
            def passing(function):
                def wrapper(*arguments): return function(*arguments)
                return wrapper
            class H(BaseHandler):
                def none(self): return "none"
                def one(self, response): return response.url
                def two(self, response, task): return task["url"]
                def default(self, response, n=3): return type(n).__name__
                @passing
                def wrapped(self, response): return "wrapped"
                @staticmethod
                def still(response): return "still"
            """
        )
        for rule, value in (
            ("none", "none"), ("one", "https://shop.example/"), ("two", "https://shop.example/"), ("default", "dict"), ("wrapped", "wrapped"),
            ("still", "still"),
        ):  # fmt: skip
            self.assertEqual(self.values(processor.visit(rule=rule)), [value], rule)
        self.assertIn("no_such() not implemented", processor.visit(rule="no_such")["error"]["text"])

    def test_the_task_is_as_pyspiders(self):
        task = self.one(
            "return task",
            page={
                "attempt": 3, "age_ms": 5000, "tag": "t", "context": {"a": 1}, "request": {"method": "POST", "body": "x"},
                "last_at": "2026-11-24T12:00:00.25Z",
            },
        )  # fmt: skip
        self.assertEqual(
            self.values(task)[0],
            {
                "taskid": hashlib.md5(b"https://shop.example/").hexdigest(),
                "project": "shop", "url": "https://shop.example/", "schedule": {"retried": 2, "itag": "t", "age": 5.0},
                "fetch": {"method": "POST", "data": "x", "save": {"a": 1}}, "process": {"callback": "page"}, "track": {"save": {}},
                "status": 1, "lastcrawltime": 1795521600,
            },
        )  # fmt: skip

    def test_save_is_kept_for_the_next_visit(self):
        body = "self.save['visits'] = self.save.get('visits', 0) + 1\nreturn [self.save, response.save]"
        first = self.one(body)
        self.assertEqual(first["save"], {"visits": 1})
        again = self.one(body, save={"visits": 1}, page={"context": "given"})
        self.assertEqual((again["save"], self.values(again)), ({"visits": 2}, [[{"visits": 2}, "given"]]))
        self.assertNotIn("save", self.one("return 1", save={"visits": 1}))
        self.assertEqual(self.one("self.save = 1j")["save"], "1j")

    def test_messages(self):
        answer = self.one(
            "self.send_message('other', {'a': b'b'})\nself.send_message(self.project_name, 1, url=response.url + '#1')"
        )
        self.assertEqual(
            answer["messages"],
            [
                {"project": "other", "message": {"a": "b"}, "url": "data:,on_message"},
                {"project": "shop", "message": 1, "url": "https://shop.example/#1"},
            ],
        )
        processor = self.script("class H(BaseHandler):\n    def on_message(self, project, msg):\n        return [project, msg]")
        answer = processor.visit(
            "data:,on_message", "on_message", event="message", page={"context": {"project": "other", "message": {"a": 1}}}
        )
        self.assertEqual(self.values(answer), [["other", {"a": 1}]])
        processor = self.script(
            "class H(BaseHandler):\n    def on_message(self, project, msg): return [msg, self.response.url, self.task['url'], self.task['taskid']]"
        )
        url = "https://shop.example/item/1#2"
        answer = processor.visit("data:,on_message#" + url, "on_message", event="message", page={"context": {"project": "shop", "message": 1}})
        self.assertEqual(self.values(answer), [[1, url, url, hashlib.md5(url.encode()).hexdigest()]])

    def test_events(self):
        processor = self.script(
            """
            class H(BaseHandler):
                @every(minutes=1)
                def on_start(self, response): return [response.url, response.text, response.save]
                def on_finished(self, response, task): return [task["url"], response.save]
            """
        )
        answer = processor.visit("data:,on_start", "on_start", event="tick", page={"context": {"tick": 60}})
        self.assertEqual(self.values(answer), [["data:,on_start", "on_start", {"tick": 60}]])
        answer = processor.visit("data:,on_finished", "on_finished", event="finished", page={"context": {"pages": 3}})
        self.assertEqual(self.values(answer), [["data:,on_finished", {"pages": 3}]])

    def test_on_result_may_be_overridden(self):
        processor = self.script(
            """
            class H(BaseHandler):
                def page(self, response):
                    yield 1
                    yield None
                def on_result(self, result):
                    if result: super().on_result({"wrapped": result})
            """
        )
        self.assertEqual(self.values(processor.visit()), [{"wrapped": 1}])

    def test_what_is_no_success(self):
        processor = self.script(
            """
            class H(BaseHandler):
                def page(self, response): return response.status_code
                @catch_status_code_error
                def all(self, response): return [response.status_code, response.ok, bool(response), response.error]
            """
        )
        for status, error, words in (
            (404, None, "404 Client Error"), (500, None, "500 Server Error"), (0, {"kind": "timeout", "text": "after 30 s"}, "after 30 s"),
            (418, {"kind": "status", "text": "HTTP 418: I'm a teapot"}, "teapot"),
        ):  # fmt: skip
            response = {"status": status, "error": error}
            answer = processor.visit(response=response)
            self.assertEqual((answer["error"]["kind"], "results" in answer), ("HTTPError", False))
            self.assertIn(words, answer["error"]["text"])
            text = error and error["text"]
            self.assertEqual(self.values(processor.visit(rule="all", response=response)), [[status or 599, False, False, text]])
        self.assertEqual(self.values(processor.visit(response={"status": 304})), [])
        self.assertEqual(self.values(processor.visit(rule="all", response={"status": 304})), [[304, True, True, None]])
        self.assertEqual(self.values(processor.visit(response={"status": 302})), [302])

    def test_an_exception_keeps_what_came_before_it(self):
        answer = self.one("self.crawl('/a')\nself.send_message('o', 1)\nyield 'first'\nself.save['n'] = 1\n{}['key']")
        self.assertEqual((len(answer["pages"]), len(answer["messages"]), answer["save"]), (1, 1, {"n": 1}))
        self.assertEqual(answer["results"], [{"part": "1", "value": "first"}])
        error = answer["error"]
        self.assertEqual((error["kind"], error["text"], error["where"]), ("KeyError", "'key'", "shop.py:8"))
        self.assertRegex(error["trace"], r'(?s)Traceback.*shop.py", line 8, in page.*KeyError')

    def test_retry_and_bury_say_when(self):
        self.assertEqual(self.one("raise Retry(90, 'busy')")["error"]["delay_ms"], 90_000)
        self.assertEqual(self.one("raise Bury('gone')")["error"]["final"], True)

    def test_an_end_that_cannot_be_told_is_a_failure_and_the_script_goes_on(self):
        odd = {
            "raise Retry(__import__('datetime').timedelta(seconds=90))": None,
            "raise Retry('soon', 'busy')": "'soon' is no delay",
            "raise Retry(float('inf'))": "inf is no delay",
            "raise Retry(float('nan'))": "nan is no delay",
            "raise Retry(True)": "True is no delay",
            "raise Retry(10**30)": None,
            "raise type('Bare', (Retry,), {'__init__': lambda self: None})()": "delay",
            "raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})()": "Mute",
            "raise type('Halting', (Exception,), {'__str__': lambda self: exit(3)})()": "Halting",
            "raise Bury(type('Mute', (), {'__str__': lambda self: 1 / 0})())": "Bury",
            "raise type('Halt', (BaseException,), {})()": "Halt",
            "raise KeyboardInterrupt": "KeyboardInterrupt",
            "raise GeneratorExit": "GeneratorExit",
            "raise Exception('half \\ud83d')": "half",
            "raise Retry(-5)": None,
            "self.save = type('Odd', (), {'__str__': lambda self: exit(4)})()": "exit",
        }
        rules = "".join(f"    def rule{number}(self, response): {body}\n" for number, body in enumerate(odd))
        processor = self.script(f"class H(BaseHandler):\n{rules}    def fine(self, response): return 5\n")
        answers = [processor.visit(rule=f"rule{number}") for number in range(len(odd))]
        for (body, text), answer in zip(odd.items(), answers):
            self.assertIn(text or "", answer["error"]["text"], body)
        self.assertEqual([answers[0]["error"]["delay_ms"], answers[5]["error"]["delay_ms"]], [90_000, 2**53])
        self.assertEqual(self.values(processor.visit(rule="fine")), [5], "it goes on")

    def test_an_answer_that_is_long_comes_in_parts(self):
        answer = self.one(
            "for i in range(2500): self.crawl(f'/{i}', callback=self.other)\nfor i in range(8): yield 'x' * 900_000"
        )
        self.assertEqual((len(answer["pages"]), len(answer["results"])), (2500, 8))
        answer = self.one("for i in range(1001): self.send_message('other', i)\nfor i in range(1, 1002): yield i")
        self.assertEqual([each["message"] for each in answer["messages"]], list(range(1001)))
        self.assertEqual(self.values(answer), list(range(1, 1002)))


class Crawling(ProcessorTest):
    def setUp(self):
        super().setUp()
        self.script(
            """
            class H(BaseHandler):
                crawl_config = {"headers": {"X": "config"}, "priority": 1}
                def page(self, response):
                    exec(response.save, {"self": self})
                @config(age=60, cookies={"rule": "1"}, params={"r": 1})
                def other(self, response): pass
            """
        )

    def answer_to(self, calls, page=None, **options):
        return self.last.visit(page={"context": calls, **(page or {})}, **options)

    def pages(self, calls, **options):
        self.answer = self.answer_to(calls, **options)
        self.assertNotIn("error", self.answer, self.answer.get("error"))
        return self.answer["pages"]

    def page(self, call, **options):
        (page,) = self.pages(call, **options)
        return page

    def test_urls(self):
        for given, url in (
            ("'item?id=1'", "https://shop.example/dir/item?id=1"), ("'/'", "https://shop.example/"), ("' //b.example '", "https://b.example/"),
            ("'https://b.example'", "https://b.example/"), ("'?n=2'", "https://shop.example/dir/?n=2"),
            ("'http://b.example/\u4e2d?q=\u6587'", "http://b.example/%E4%B8%AD?q=%E6%96%87"),
            ("'http://b\u00fccher.example/'", "http://xn--bcher-kva.example/"), ("'data:,x'", "data:,x"),
            ("'http://b.example/?a=1', params={'b': [1, 2], '\u4e2d': None, 'c': '\u6587'}", "http://b.example/?a=1&b=1&b=2&c=%E6%96%87"),
        ):  # fmt: skip
            self.assertEqual(self.page(f"self.crawl({given})", url="https://shop.example/dir/")["url"], url)

    def test_a_relative_url_is_the_final_urls(self):
        page = self.page("self.crawl('b')", url="https://shop.example/a/", response={"url": "https://shop.example/moved/x"})
        self.assertEqual(page["url"], "https://shop.example/moved/b")

    def test_a_relative_url_needs_a_page(self):
        processor = self.script("class H(BaseHandler):\n    def on_start(self): self.crawl('x')")
        answer = processor.visit("data:,on_start", "on_start", event="start")
        self.assertIn("relative", answer["error"]["text"])

    def test_schedule(self):
        page = self.page(
            "self.crawl('/x', callback=self.other, age=3600, priority=5, exetime=1764000000.5, retries=2, itag='t', auto_recrawl=True,\n"
            "           force_update=True, cancel=True, process_time_limit=7, save={'n': 1})"
        )
        self.assertEqual(
            page,
            {
                "url": "https://shop.example/x?r=1", "rule": "other", "age_ms": 3_600_000, "priority": 5, "due_at": "2025-11-24T16:00:00.500Z",
                "retries": 2, "tag": "t", "recrawl": True, "force": True, "cancel": True, "time_limit_ms": 7000, "context": {"n": 1},
            },
        )  # fmt: skip
        self.assertEqual(datetime.datetime.fromisoformat("2025-11-24T16:00:00.500+00:00").timestamp(), 1764000000.5)

    def test_only_what_the_call_says_is_said(self):
        # What rules and crawl_config say counts when it is used, and the page does not carry it about.
        page = self.page("self.crawl('/x', callback=self.other, headers={'A': 1})")
        self.assertEqual(page, {"url": "https://shop.example/x?r=1", "rule": "other", "request": {"headers": {"A": "1"}}})
        self.assertEqual(self.last.effective(page)["request"], {"headers": {"A": "1", "X": "config"}, "cookies": {"rule": "1"}})
        task = self.page("self.save = self.crawl('/x', callback=self.other, age=-1, exetime=0, itag=5)")
        self.assertEqual((task["age_ms"], task["tag"], "due_at" in task), (None, "5", False))
        saved = self.answer["save"]
        self.assertEqual(saved["schedule"], {"age": -1, "exetime": 0, "itag": 5, "priority": 1})
        self.assertEqual(saved["fetch"]["cookies"], {"rule": "1"})

    def test_a_calls_own_parameters_come_first_and_count_more(self):
        self.assertEqual(
            self.page("self.crawl('/x', callback=self.other, params={'a': 1, 'r': 2})")["url"], "https://shop.example/x?a=1&r=2"
        )
        self.assertEqual(
            self.page("self.crawl('/x', callback=self.other, params={'a': 1})")["url"], "https://shop.example/x?a=1&r=1"
        )

    def test_calls_change_nothing_for_later_ones(self):
        pages = self.pages(
            "headers = {'A': 'b'}\n"
            "self.crawl('/1', callback=self.other, headers=headers, user_agent='me', data={'a': 1})\n"
            "self.crawl('/2', callback=self.other, headers=headers)"
        )
        self.assertEqual(pages[1]["request"], {"headers": {"A": "b"}})

    def test_requests(self):
        page = self.page(
            "self.crawl('/x', method='put', headers={'A': 'b', 'n': 1}, user_agent='me', cookies={'c': 1}, timeout=3, connect_timeout=1.5,\n"
            "  allow_redirects=False, validate_cert=False, proxy='u:p@proxy.example:3128', etag=False, last_modified='yesterday',\n"
            "  robots_txt=True, use_gzip=False, fetch_type='js', js_script='s', js_run_at='document-start', js_viewport_width=1,\n"
            "  js_viewport_height=2, load_images=True)"
        )
        self.assertEqual(
            page["request"],
            {
                "method": "PUT", "headers": {"A": "b", "n": "1", "User-Agent": "me", "Accept-Encoding": "identity"}, "cookies": {"c": "1"},
                "timeout_ms": 3000, "connect_timeout_ms": 1500, "redirects": 0, "verify_certificate": False,
                "proxy": "http://u:p@proxy.example:3128", "etag": False, "last_modified": "yesterday", "robots": True,
                "render": {"script": "s", "run_at": "start", "width": 1, "height": 2, "images": True},
            },
        )  # fmt: skip
        self.assertEqual(
            self.page("self.crawl('/x', proxy=False, max_redirects=9)")["request"], {"proxy": False, "redirects": 9}
        )

    def test_headers_of_the_connection_are_left_to_it(self):
        page = self.page(
            "self.crawl('/x', headers={'Host': 'a', 'connection': 'close', 'Content-Length': 5, 'Referer': 'r', 'X': None})"
        )
        self.assertEqual(page["request"], {"headers": {"Referer": "r"}})

    def test_a_cookie_header_is_cookies(self):
        page = self.page("self.crawl('/x', headers={'cookie': 'a=1; b=x=y;c'}, cookies={'a': 2})")
        self.assertEqual(page["request"], {"cookies": {"a": "2", "b": "x=y"}})

    def test_bodies(self):
        for data, body in (
            ("{'a': 1, 'b': ['x', '\u4e2d']}", "a=1&b=x&b=%E4%B8%AD"),
            ("'raw'", "raw"),
            ("[('a', 'b c')]", "a=b+c"),
        ):
            self.assertEqual(self.page(f"self.crawl('/x', data={data})")["request"], {"method": "POST", "body": body})
        self.assertEqual(
            self.page("self.crawl('/x', data=b'\\xff', method='PUT')")["request"], {"method": "PUT", "body_base64": "/w=="}
        )
        self.assertNotIn("request", self.page("self.crawl('/x', data='')"))

    def test_files(self):
        for files in ("{'f': {'a.txt': 'content'}}", "{'f': ('a.txt', b'content')}"):
            request = self.page(f"self.crawl('/x', data={{'n': 'v'}}, files={files})")["request"]
            kind, _, boundary = request["headers"]["Content-Type"].partition("; boundary=")
            self.assertEqual((request["method"], kind), ("POST", "multipart/form-data"))
            self.assertEqual(
                request["body"],
                f'--{boundary}\r\nContent-Disposition: form-data; name="n"\r\n\r\nv\r\n'
                f'--{boundary}\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\ncontent\r\n--{boundary}--\r\n',
            )
        request = self.page("self.crawl('/x', method='PUT', files={'f': b'\\xff\\xfe'})")["request"]
        self.assertEqual(request["method"], "PUT")
        self.assertIn(b"\r\n\r\n\xff\xfe\r\n--", base64.b64decode(request["body_base64"]))

    def test_fields_beside_files(self):
        def fields(data):
            request = self.page(f"self.crawl('/x', data={data}, files={{'f': 'x'}})")["request"]
            return re.findall(r'form-data; name="(\w+)"\r\n\r\n(.*)\r\n', request["body"])

        self.assertEqual(
            fields("{'t': 'a', 'n': 1.5, 'none': None, 'list': ['x', 2, None]}"),
            [("t", "a"), ("n", "1.5"), ("list", "x"), ("list", "2")],
        )
        self.assertEqual(fields("[('a', 1), ('a', (2, 3))]"), [("a", "1"), ("a", "2"), ("a", "3")])
        for data in ("'a=1'", "b'a'", "['ab']", "{'a': {}}", "{'a': {'b': 1}}", "{'a': [[1]]}", "{'a': [{}]}"):
            error = self.answer_to(f"self.crawl('/x', data={data}, files={{'f': 'x'}})")["error"]
            self.assertEqual((error["kind"], error["text"][:4]), ("TypeError", "data"), data)

    def test_curl_commands(self):
        """The table is said as the protocol may: a body is a POST there, an empty one too, and names of headers are in lower case."""
        processor = self.script(
            """
            class H(BaseHandler):
                def page(self, response): self.crawl(response.save)
            """
        )
        for case in json.loads(CURL_COMMANDS.read_text()):
            answer = processor.visit(page={"context": case["command"]})
            if "error" in case:
                self.assertIn(case["error"], answer["error"]["text"], case)
                continue
            self.assertNotIn("error", answer, case)
            expected = dict(case["request"])
            if expected.keys() & {"body", "body_base64"}:
                expected.setdefault("method", "POST")
            if expected.get("body") == "":
                del expected["body"]
            for page in answer["pages"]:
                asked = page.get("request", {})
                if "headers" in asked:
                    asked["headers"] = {name.lower(): value for name, value in asked["headers"].items()}
                self.assertEqual(asked, expected, case)
            self.assertEqual([page["url"] for page in answer["pages"]], case["urls"], case)

    def test_names(self):
        self.assertNotIn("name", self.page("self.crawl('/x')"))
        self.assertEqual(self.page("self.crawl('/x#2')")["name"], "https://shop.example/x#2")
        self.assertEqual(self.page("self.crawl('/x', taskid=7)")["name"], "7")
        self.assertEqual(len(self.page("self.crawl('/x', taskid='n' * 2000)")["name"]), 32)
        processor = self.script(
            """
            class H(BaseHandler):
                def get_taskid(self, task): return task["url"] + task["fetch"].get("data", "")
                def page(self):
                    for n in (1, 2, 1): self.crawl("/x", data={"n": n})
            """
        )
        self.assertEqual(
            [each["name"] for each in processor.visit()["pages"]], ["https://shop.example/xn=1", "https://shop.example/xn=2"]
        )

    def test_lists_and_repeats(self):
        pages = self.pages(
            "self.crawl(['/a', '/b', '/a'], callback='other')\nself.crawl(('/c',))\nself.crawl('/a', callback=self.other)"
        )
        self.assertEqual([each["url"][20:] for each in pages], ["/a?r=1", "/b?r=1", "/c"])

    def test_a_link_that_is_not_there_is_passed_over(self):
        self.assertEqual(self.pages("self.crawl(None, callback=self.other)"), [])
        self.assertEqual(self.answer["log"], [("warning", "crawl(None): there is no URL, and nothing was asked for")])

    def test_calls_that_are_wrong(self):
        for call, kind, words in (
            ("self.crawl('/x', cookie={})", "TypeError", "unexpected keyword argument: cookie"),
            ("self.crawl('/x', callback='no')", "NotImplementedError", "self.no()"),
            ("self.crawl('/x', callback=lambda r: 1)", "NotImplementedError", "lambda"),
            ("self.crawl(5)", "TypeError", "a URL"), ("self.crawl([None])", "TypeError", "text"),
            ("self.crawl('/x', priority='high')", "ValueError", "high"), ("self.crawl('http://[x')", "ValueError", ""),
            ("self.crawl('/x', data='a', files={'f': 'x'})", "TypeError", "dict"),
        ):  # fmt: skip
            error = self.answer_to(call)["error"]
            self.assertEqual(error["kind"], kind, call)
            self.assertIn(words, error["text"])
            self.assertEqual(error["where"], "shop.py:6")


class Responses(ProcessorTest):
    before = ""

    def value(self, expression, content=SHOP, **options):
        """Of an expression in a callback."""
        if self.last is None:
            self.script(self.before + "class H(BaseHandler):\n    def page(self, response): return [eval(response.save)]")
        ((value,),) = self.values(self.last.visit(content=content, page={"context": expression}, **options))
        return value

    def test_members(self):
        processor = self.script(
            """
            class H(BaseHandler):
                def page(self, r):
                    return [r.url, r.orig_url, r.headers["content-TYPE"], dict(r.headers), r.cookies, r.time, r.js_script_result, repr(r)]
            """
        )
        answer = processor.visit(
            response={
                "url": "https://shop.example/moved", "headers": [["Content-Type", "text/html"], ["Set-Cookie", "a"], ["set-cookie", "b"]],
                "cookies": {"a": "b"}, "time_ms": 1500, "script_result": [1],
            },
        )  # fmt: skip
        self.assertEqual(
            self.values(answer)[0],
            [
                "https://shop.example/moved", "https://shop.example/", "text/html", {"Content-Type": "text/html", "set-cookie": "a,b"},
                {"a": "b"}, 1.5, [1], "<Response [200]>",
            ],
        )  # fmt: skip

    def test_cookies_are_those_that_were_sent_and_those_that_were_set(self):
        sent = {"request": {"cookies": {"sid": "1", "lang": "de"}}}
        processor = self.script("class H(BaseHandler):\n    def page(self, r): return [r.cookies]")
        for came, cookies in (({}, {"sid": "1", "lang": "de"}), ({"lang": "en", "way": "2"}, {"sid": "1", "lang": "en", "way": "2"})):
            self.assertEqual(self.values(processor.visit(page=sent, response={"cookies": came})), [[cookies]])

    def test_the_fragment_that_was_asked_for_is_in_the_url_unless_it_led_elsewhere(self):
        asked = "https://shop.example/list#2"
        for came_from, url in (("https://shop.example/list", asked), ("", asked), ("https://shop.example/", "https://shop.example/")):
            self.assertEqual(self.value("response.url", url=asked, response={"url": came_from}), url)

    def test_too_many_redirects_are_no_answer(self):
        processor = self.script("class H(BaseHandler):\n    @catch_status_code_error\n    def page(self, r): return [r.status_code, r.error, r.ok]")
        answer = processor.visit(response={"status": 302, "error": {"kind": "redirects", "text": "more than 5"}})
        self.assertEqual(self.values(answer), [[599, "more than 5", False]])

    def test_encodings(self):
        text = "<p>\u4e2d\u6587 \u00e9</p>"
        for encoding, options, content in (
            ("gb18030", {"headers": [["Content-Type", "text/html; charset=gb2312"]]}, None),
            ("big5", {}, "<meta charset='big5'><p>\u4e2d\u6587</p>"), ("shift_jis", {"encoding": "shift_jis"}, "\u4e2d\u6587" * 20),
            ("utf-8", {}, None), ("utf-16-le", {}, "\ufeff" + text), ("utf-8", {}, "\ufeff" + text), ("cp1252", {"encoding": "latin-1"}, "\u20ac"),
            ("euc-kr", {}, '<?xml version="1.0" encoding="euc-kr"?><a>\ud55c</a>'),
        ):  # fmt: skip
            given = (content or text).encode(encoding)
            self.assertEqual(self.value("response.text", given, response=options), (content or text).lstrip("\ufeff"), encoding)
        self.assertEqual(self.value("response.text", "\u00e9".encode("cp1252")), "\u00e9")
        self.assertEqual(self.value("(setattr(response, 'encoding', 'no-such'), response.text)[1]", b"a\xff"), "a\ufffd")

    def test_json(self):
        self.assertEqual(self.value("response.json['a'][0]", b'{"a": [1]}'), 1)
        self.assertEqual(self.value("response.json", b"no json"), None)

    def test_a_document_without_pyquery_is_read_by_argiope(self):
        self.before = PYQUERY
        for expression, value in (
            ("response.doc('h1').text()", "All things"), ("response.doc('h1').html()", "All  <b>things</b>"),
            ("[a.attr.href for a in response.doc('a[href^=\"http\"]').items()]",
             ["https://shop.example/item/1", "https://shop.example/item/2?a=b", "https://other.example/page2"]),
            ("[each('a').text() for each in response.doc('.item').items()]", ["One", "Two"]),
            ("response.doc('li a').attr('href')", "https://shop.example/item/1"), ("response.doc('.nothing').attr.href", None),
            ("response.doc('.item').length", 2), ("response.doc('.item').eq(1).find('i').text()", "2"),
            ("response.doc('i').parent().has_class('first')", True), ("response.doc('li').filter('.first').attr['class']", "item first"),
            ("response.doc('a').not_('.next').length", 3), ("response.doc('.first').next().text()", "Two 2"),
            ("response.doc('.first').siblings('li').text()", "Two 2"), ("response.doc('i').closest('ul').attr.id", "list"),
            ("response.doc('#list').children().length", 2), ("response.doc('li')[1].text()", "Two 2"), ("bool(response.doc('video'))", False),
            ("response.doc('li li').length", 0), ("response.doc('li')('li').length", 0), ("response.doc('html title').text()", "Shop"),
            ("response.doc('a').is_('.next')", True), ("response.doc('.first').contents()[1]", " "), ("response.doc('.next').outer_html()", '<a class="next" href="https://other.example/page2">Next</a>'),
        ):  # fmt: skip
            self.assertEqual(self.value(expression), value, expression)

    def test_places_at_the_end_of_a_selector(self):
        self.before = PYQUERY
        for css, texts in (
            ("a:first", ["One"]), ("a:last", ["Ann"]), ("a:eq(1)", ["Two"]), ("a:eq(9)", []), ("a:eq( -1 )", ["Ann"]), ("a:gt(1)", ["Next", "Ann"]),
            ("a:lt(1)", ["One"]), ("a:even", ["One", "Next"]), ("a:odd", ["Two", "Ann"]), ("a.next:first", ["Next"]),
            ("a[href^=http]:first", ["One"]),
        ):  # fmt: skip
            self.assertEqual(self.value(f"[each.text() for each in response.doc({css!r}).items()]"), texts, css)
        self.assertEqual(self.value("[each.text() for each in response.doc('li')('i:first').items()]"), ["1.50", "2"])  # in each

    def test_what_only_pyquery_has_says_so(self):
        processor = self.script(PYQUERY + "class H(BaseHandler):\n    def page(self, response): response.doc('a').remove()")
        self.assertIn("python3-pyquery", processor.visit(content=SHOP)["error"]["text"])

    def test_a_selector_that_is_wrong(self):
        processor = self.script(PYQUERY + "class H(BaseHandler):\n    def page(self, response):\n        response.doc('a{')")
        error = processor.visit(content=SHOP)["error"]
        self.assertEqual((error["kind"], error["where"]), ("ValueError", "shop.py:5"))

    def test_a_document_with_pyquery(self):
        try:
            import pyquery  # noqa: F401
        except ImportError:
            self.skipTest("pyquery is not installed")
        self.assertEqual(
            self.value("[a.attr.href for a in response.doc('a[href^=\"http\"]').items()]"),
            ["https://shop.example/item/1", "https://shop.example/item/2?a=b", "https://other.example/page2"],
        )
        self.assertEqual(self.value("response.etree.xpath('//title')[0].text"), "Shop")

    def test_a_document_without_content_is_an_error(self):
        for before in ("", PYQUERY):
            processor = self.script(before + "class H(BaseHandler):\n    def page(self, response): response.doc")
            error = processor.visit(content=b" \n")["error"]
            self.assertEqual((error["kind"], error["text"]), ("ParserError", "Document is empty"))

    def test_without_lxml_etree_says_what_it_needs(self):
        processor = self.script("import sys; sys.modules['lxml'] = None\nclass H(BaseHandler):\n    def page(self, r): r.etree")
        self.assertIn("python3-lxml", processor.visit(content=SHOP)["error"]["text"])


class OldScripts(ProcessorTest):
    """Scripts that name pyspider's modules."""

    def test_the_names_are_there(self):
        processor = self.load(
            """\
            from pyspider.libs.base_handler import *
            from pyspider.libs.base_handler import BaseHandler, every, config, catch_status_code_error, not_send_status
            from pyspider.libs.response import Response, rebuild_response, get_encoding
            from pyspider.libs.utils import md5string, text, utf8, timeout, TimeoutError, ObjectDict, unicode_obj
            from pyspider.libs.url import quote_chinese, curl_to_arguments, _build_url
            from pyspider.libs import dataurl, utils, log, pprint
            from pyspider.scheduler import ThreadBaseScheduler
            from pyspider.fetcher.tornado_fetcher import Fetcher
            from pyspider.processor import Processor
            from pyspider.result import ResultWorker
            import pyspider.libs.base_handler as base

            class Handler(BaseHandler):
                @not_send_status
                def page(self, response):
                    logger.info("one")
                    with timeout(30, "late"):
                        pass
                    return [md5string("a"), dataurl.decode(dataurl.encode(u"\u4e2d")), quote_chinese(u"\u4e2d"), utils.text(b"x"),
                            rebuild_response({"content": "x", "status_code": 200}).text, base.BaseHandler is BaseHandler]
            """
        )
        processor.describe()
        answer = processor.visit()
        self.assertEqual(self.values(answer), [["0cc175b9c0f1b6a831c399e269772661", "\u4e2d", "%E4%B8%AD", "x", "x", True]])
        self.assertEqual(answer["log"], [("info", "one")])

    def test_a_debugger_is_where_one_page_is_tried_and_debug_is_a_status(self):
        for told, expected in (
            ({}, [False, False, "RUNNING"]),
            ({"debug": True}, [False, True, "DEBUG"]),
            ({"debug": True, "tried": True}, [True, True, "DEBUG"]),
        ):
            processor = self.script(
                """
                class Handler(BaseHandler):
                    def page(self, response):
                        return [self.is_debugger(), self.__env__["debug"], self.project["status"]]
                """,
                described=told,
            )
            self.assertEqual(self.values(processor.visit()), [expected])

    def test_cron_jobs_and_infos_that_are_asked_for_by_their_old_names(self):
        processor = self.script(
            """
            class H(BaseHandler):
                retry_delay = {1: 10}
                @every(seconds=10)
                def ten(self, response): self.save["ten"] = True
                @every
                def minute(self, response): self.save["minute"] = True
            """
        )
        self.assertNotIn("save", processor.visit("data:,x", "_on_cronjob", page={"context": {"tick": 11}}))
        self.assertEqual(processor.visit("data:,x", "_on_cronjob", page={"context": {"tick": 10}})["save"], {"ten": True})
        self.assertEqual(
            processor.visit("data:,x", "_on_cronjob", page={"context": {"tick": 120}})["save"], {"ten": True, "minute": True}
        )
        answer = processor.visit("data:,x", "_on_get_info", page={"context": ["min_tick", "retry_delay", "crawl_config"]})
        self.assertEqual(answer["save"], {"min_tick": 10, "retry_delay": {"1": 10}, "crawl_config": {}})


class Many(ProcessorTest):
    def test_pages_one_after_the_other(self):
        processor = self.script(
            "class H(BaseHandler):\n    def page(self, response):\n        self.crawl('/x')\n        return {'n': 1}"
        )
        content = b"x" * 40_960
        for _ in range(200):
            answer = processor.visit(content=content)
            self.assertEqual((self.values(answer), len(answer["pages"])), ([{"n": 1}], 1))


if __name__ == "__main__":
    unittest.main()
