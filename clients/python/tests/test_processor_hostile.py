"""Scripts that misbehave: the page says so, and the processor, where it can, lives on."""
import hashlib
import signal
import subprocess
import sys

from .running_processor import PACKAGE, PATIENCE, Broken, ProcessorTest


class Output(ProcessorTest):
    def test_what_a_script_prints_is_the_log_and_never_the_protocol(self):
        processor = self.script(
            """
            import os, subprocess, sys
            print("at the import")
            class H(BaseHandler):
                def page(self, response):
                    print("printed", 1, end="")
                    print(" \u4e2d\u6587", "{\\"type\\":\\"done\\"}")
                    sys.stdout.write("no end of line")
                    os.write(1, b"to one\\n")
                    os.system("echo from a program")
                    subprocess.run(["echo", "from another"], stdout=sys.stdout)
                    print("to stderr", file=sys.stderr)
                    sys.__stdout__.write("to the old one\\n"); sys.__stdout__.flush()
                    logger.warning("warned %d", 2)
                    self.logger.debug("own")
                    logging.info("of the module")
                    logger.info("%d", "no number")
                    return "done"
            """
        )
        answer = processor.visit()
        self.assertEqual(self.values(answer), ["done"])
        self.assertEqual(
            answer["log"],
            [
                ("print", 'printed 1 \u4e2d\u6587 {"type":"done"}'), ("warning", "warned 2"), ("debug", "own"), ("info", "of the module"),
                ("info", "'%d' (cannot be written: %d format: a real number is required, not str)"), ("print", "no end of line"),
            ],
        )  # fmt: skip
        self.assertEqual([each["text"] for each in processor.project_log], ["at the import"])
        processor.close()
        for line in (b"to one\n", b"from a program\n", b"from another\n", b"to stderr\n", b"to the old one\n"):
            self.assertIn(line, processor.stderr)

    def test_a_log_without_end_is_cut(self):
        processor = self.script(
            """
            class H(BaseHandler):
                def page(self, response):
                    for i in range(5000): print("x" * 1000)
                def other(self, response): print("y")
            """
        )
        log = processor.visit()["log"]
        self.assertLess(sum(len(text) for _, text in log), 70_000)
        self.assertRegex(log[-1][1], r"^\d+ more characters of this log were not kept$")
        self.assertEqual(processor.visit(rule="other")["log"], [("print", "y")])

    def test_a_script_that_takes_stdout_away(self):
        processor = self.script(
            """
            import sys, io, os
            class H(BaseHandler):
                def page(self, response):
                    sys.stdout = io.StringIO(); print("lost"); os.close(0); os.close(1); os.close(2)
                def other(self, response):
                    print("here"); return 1
            """
        )
        processor.visit()
        answer = processor.visit(rule="other")
        self.assertEqual((self.values(answer), answer["log"]), ([1], [("print", "here")]))

    def test_texts_that_are_no_unicode(self):
        processor = self.script(
            """
            class H(BaseHandler):
                def page(self, response):
                    print("\\ud800 printed")
                    self.save["\\udfff"] = b"\\xff"
                    self.send_message("p", "\\ud800")
                    self.crawl("/\\ud800", headers={"A": "\\ud800"}, save="\\ud800", taskid="\\ud800")
                    yield {"\\ud800": "\\U0001f600\\x00\\u2028"}
                    raise ValueError("\\ud800")
            """
        )
        answer = processor.visit()
        self.assertEqual(answer["results"], [{"part": "1", "value": {"?": "\U0001f600\x00\u2028"}}])
        self.assertEqual(
            (answer["log"], answer["error"]["text"], answer["messages"][0]["message"]), ([("print", "? printed")], "?", "?")
        )


SHORT_MS = 2000  # a time that a visit is to exceed, and in which a busy machine reaches the script's first line


class Ends(ProcessorTest):
    SCRIPT = """
        import os, sys, time, signal, threading, ctypes
        class H(BaseHandler):
            def page(self, response): return 1
            def exit(self, response): sys.exit("why")
            def loop(self, response):
                print("begins")
                while True: pass
            def sleep(self, response): time.sleep(60)
            def swallow(self, response):
                for i in range(3):
                    try: time.sleep(60)
                    except Exception: print("swallowed")
                raise LookupError("at last")
            def generate(self, response):
                for i in range(10**9):
                    if i < 3: yield i
            def deaf(self, response):
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
                while True: pass
            def hard(self, response): os._exit(7)
            def crash(self, response):
                print("before"); ctypes.string_at(0)
            def deep(self, response): self.deep(response)
            def own(self, response):
                class Odd(BaseException):
                    def __str__(self): raise ValueError
                raise Odd()
            def fork(self, response):
                if os.fork() == 0: print("child")
                else: os.wait()
                self.crawl("/x")
                return "one answer"
            def thread(self, response):
                threading.Thread(target=lambda: (time.sleep(0.05), print("late")), daemon=True).start()
                threading.Thread(target=lambda: time.sleep(10_000)).start()
            def timer(self, response): signal.setitimer(signal.ITIMER_REAL, 0); time.sleep(60)
        """

    def test_a_visit_that_ends_badly_says_so_and_the_next_one_runs(self):
        processor = self.script(self.SCRIPT)
        for rule, kind, words, limit in (
            ("exit", "SystemExit", "the script has called exit('why')", 30_000), ("loop", "TimeoutError", "longer than 2 s", SHORT_MS),
            ("sleep", "TimeoutError", "process timeout", SHORT_MS), ("swallow", "LookupError", "at last", SHORT_MS),
            ("generate", "TimeoutError", "process timeout", SHORT_MS), ("deep", "RecursionError", "recursion", 30_000),
            ("own", "Odd", "cannot be had", 30_000),
        ):  # fmt: skip
            with self.subTest(rule):
                answer = processor.visit(rule=rule, time_limit_ms=limit)
                self.assertEqual(answer["error"]["kind"], kind)
                self.assertIn(words, answer["error"]["text"])
                self.assertLess(len(answer["error"].get("trace", "")), 20_000)
                self.assertEqual(self.values(processor.visit()), [1])
        self.assertEqual(self.values(processor.visit(rule="fork")), ["one answer"])
        self.assertEqual(self.values(processor.visit()), [1])

    def test_an_end_that_cannot_be_told_is_a_failure_and_the_next_visit_runs(self):
        processor = self.script("""
            import datetime, decimal
            class NoWords(Exception):
                def __str__(self): raise KeyError("no words")
                __repr__ = __str__
            class Leaves(Exception):
                def __str__(self): raise SystemExit(3)
                __repr__ = __str__
            class NoText(Exception):
                def __str__(self): return None
            class Hopeless(Bury):
                __str__ = Leaves.__str__
            class Odd(Retry):
                @property
                def delay(self): raise KeyboardInterrupt
                @delay.setter
                def delay(self, _): pass
            def syntax(**members):
                error = SyntaxError("wrong")
                for name, value in members.items(): setattr(error, name, value)
                return error
            circle = []
            circle.append(circle)
            DELAYS = {
                "timedelta": datetime.timedelta(minutes=2), "decimal": decimal.Decimal("1.5"), "past": -5, "far": 1e30,
                "inf": float("inf"), "nan": float("nan"), "text": "soon", "list": circle, "true": True, "huge": 10**400,
            }
            ERRORS = {
                "no words": NoWords(), "leaves": Leaves(), "no text": NoText(), "hopeless": Hopeless(), "odd": Odd(), "half": ValueError("\\ud800"),
                "msg": syntax(msg=NoWords()), "file": syntax(filename=5), "exit": SystemExit(NoWords()), "chain": ValueError(), "group": ValueError(NoWords()),
            }
            ERRORS["chain"].__cause__ = Leaves()
            class H(BaseHandler):
                def page(self, response): return 1
                def delay(self, response): raise Retry(DELAYS[response.save])
                def error(self, response): raise ERRORS[response.save]
                def kept(self, response): self.save = {"a": Leaves()}
            """)  # fmt: skip
        ask = lambda rule, context: processor.visit(rule=rule, page={"context": context})["error"]  # noqa: E731
        for context, ms in (("timedelta", 120_000), ("decimal", 1500), ("past", 0), ("far", 2**53)):
            with self.subTest(context):
                self.assertEqual(ask("delay", context).get("delay_ms"), ms)
        for context, words in (("inf", "finite"), ("nan", "nan is no delay"), ("huge", "is no delay"), ("text", "'soon' is no delay"), ("list", "is no delay"), ("true", "True is no delay")):
            with self.subTest(context):
                error = ask("delay", context)
                self.assertEqual((error["kind"], error["where"].split(":")[0], error.get("delay_ms")), ("Retry", "shop.py", None))
                self.assertIn(words, error["text"])
        for context, kind in (
            ("no words", "NoWords"), ("leaves", "Leaves"), ("no text", "NoText"), ("hopeless", "Hopeless"), ("odd", "Odd"), ("half", "ValueError"),
            ("msg", "SyntaxError"), ("file", "SyntaxError"), ("exit", "SystemExit"), ("chain", "ValueError"), ("group", "ValueError"),
        ):  # fmt: skip
            with self.subTest(context):
                error = ask("error", context)
                self.assertEqual((error["kind"], error.get("final")), (kind, True if context == "hopeless" else None))
                self.assertTrue(error["text"])
        self.assertEqual(ask("kept", None)["kind"], "SystemExit")
        self.assertEqual(self.values(processor.visit()), [1])

    def test_a_loop_that_was_cut_tells_what_it_printed(self):
        answer = self.script(self.SCRIPT).visit(rule="loop", time_limit_ms=SHORT_MS)
        self.assertEqual((answer["log"], answer["error"]["where"]), ([("print", "begins")], "shop.py:9"))

    def test_what_no_timeout_reaches_is_killed(self):
        for rule in ("deaf", "timer"):
            with self.assertRaisesRegex(Broken, "too long"):
                self.script(self.SCRIPT).visit(rule=rule, time_limit_ms=SHORT_MS, grace=1)

    def test_a_process_that_dies(self):
        with self.assertRaisesRegex(Broken, "it ended: 7"):
            self.script(self.SCRIPT).visit(rule="hard")
        processor = self.script(self.SCRIPT)
        with self.assertRaisesRegex(Broken, f"it ended: {-signal.SIGSEGV}"):
            processor.visit(rule="crash")
        processor.close()
        self.assertRegex(processor.stderr, rb'(?s)Fatal Python error: Segmentation fault.*shop.py", line \d+ in crash')

    def test_threads_that_a_script_leaves_behind_keep_nothing(self):
        processor = self.script(self.SCRIPT)
        processor.visit(rule="thread")
        self.assertEqual(processor.close(), 0)

    def test_exit_functions_run_at_the_end(self):
        processor = self.script("import atexit, os\natexit.register(os.write, 2, b'bye')\nclass H(BaseHandler): pass")
        self.assertEqual(processor.close(), 0)
        self.assertIn(b"bye", processor.stderr)

    def test_when_argiope_is_gone_it_ends(self):
        path = self.folder / "shop.py"
        path.write_text(
            "from argiope.processor import *\nclass H(BaseHandler):\n    def page(self, r):\n        while True: print('x' * 100_000)"
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "argiope.processor", path], cwd=PACKAGE, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.addCleanup(process.wait)
        process.stdin.write(b'{"type":"describe","protocol":1,"project":"shop","limits":{"log_bytes":1000000000}}\n')
        process.stdin.write(
            b'{"type":"page","id":1,"body":0,"event":"fetch","rule":"page","page":{},"response":{"status":200}}\n'
        )
        process.stdin.flush()
        self.assertIn(b"described", process.stdout.readline())
        process.stdout.close()
        self.assertEqual(process.wait(PATIENCE), 0)
        process.stdin.close()


class Sizes(ProcessorTest):
    def test_a_body_of_50_mb(self):
        content = bytes(range(256)) * (50 * 4096)
        processor = self.script(
            """
            import hashlib
            class H(BaseHandler):
                def page(self, response): return [len(response.content), hashlib.sha256(response.content).hexdigest()]
                def texts(self, response): return len(response.text)
            """
        )
        self.assertEqual(self.values(processor.visit(content=content)), [[len(content), hashlib.sha256(content).hexdigest()]])
        self.assertEqual(self.values(processor.visit(rule="texts", content=b"<p>" * 17_000_000)), [51_000_000])

    def test_bodies_that_look_like_messages(self):
        processor = self.script("class H(BaseHandler):\n    def page(self, response): return response.text")
        for text in ('{"type":"page","id":9,"body":3}\n', "\n\n", "\r\n", "x"):
            self.assertEqual(self.values(processor.visit(content=text.encode())), [text])

    def test_an_answer_of_40_mb(self):
        processor = self.script(
            "class H(BaseHandler):\n    def page(self, response):\n        for i in range(50): yield 'x' * 800_000"
        )
        self.assertEqual(len(processor.visit()["results"]), 50)

    def test_what_is_too_long_is_left_out_or_an_error_and_never_a_crash(self):
        processor = self.script(
            """
            class H(BaseHandler):
                def page(self, response):
                    yield "x" * 20_000_000
                    yield "y"
                    self.save = {"s": "x" * 20_000_000}
                    self.crawl("/1", save="x" * 20_000_000)
                    self.crawl("/2")
                def much(self, response):
                    for i in range(100): yield "x" * 1_000_000
                def error(self, response): raise ValueError("x" * 20_000_000)
                def text(self, response): print("x" * 20_000_000)
            """
        )
        answer = processor.visit()
        self.assertEqual(self.values(answer), ["y"])
        self.assertEqual([each["url"] for each in answer["pages"]], ["https://shop.example/2"])
        self.assertEqual([level for level, _ in answer["log"]], ["error"] * 3)
        self.assertIn("results/0: 20000023 bytes as JSON", answer["log"][2][1])
        answer = processor.visit(rule="much")
        self.assertIn("its answer has 100", answer["error"]["text"])
        self.assertLess(len(processor.visit(rule="error")["error"]["text"]), 2000)
        self.assertLess(sum(len(text) for _, text in processor.visit(rule="text")["log"]), 70_000)

    def test_a_page_with_many_links(self):
        processor = self.script(
            "class H(BaseHandler):\n    def page(self, response): self.crawl('/%d' % i for i in range(50_000))"
        )
        self.assertEqual(len(processor.visit()["pages"]), 50_000)

    def test_results_that_are_too_deep(self):
        processor = self.script(
            "class H(BaseHandler):\n    def page(self, r):\n        x = 1\n        for i in range(200): x = [x]\n        return x"
        )
        self.assertIn("nested deeper", processor.visit()["error"]["text"])


class Protocol(ProcessorTest):
    def test_what_it_does_not_know_it_ignores(self):
        processor = self.script("class H(BaseHandler):\n    def page(self, r): return 1")
        processor.send({"type": "a new one", "x": [1]})
        processor.send({"type": "selected", "id": 1, "query": 1, "matches": []})
        processor.process.stdin.write(b"\n  \n")
        self.assertEqual(self.values(processor.visit()), [1])

    def test_what_is_no_message_ends_it_with_an_error(self):
        for line in (b"no json\n", b"[1]\n", b"\xff\n"):
            processor = self.script("class H(BaseHandler): pass")
            processor.process.stdin.write(line)
            self.assertEqual(processor.close(), 1)
            self.assertRegex(processor.stderr, rb"argiope.processor: a line that is no (JSON|object)")
            self.assertNotIn(b"Traceback", processor.stderr)

    def test_half_a_message_is_the_end(self):
        processor = self.script("class H(BaseHandler):\n    def page(self, r): return 1")
        processor.process.stdin.write(b'{"type":"page","id":1,"body":100}\nonly this')
        self.assertEqual(processor.close(), 0)

    def test_the_command(self):
        def run(*arguments):
            return subprocess.run(
                [sys.executable, "-m", "argiope.processor", *arguments],
                cwd=PACKAGE,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
            )

        self.assertEqual((run().returncode, run("--help").returncode), (2, 0))
        self.assertIn("usage:", run().stderr)
        self.assertEqual(run("no-such-file.py").returncode, 0)  # it is told when it is described
        processor = self.start([sys.executable, "-m", "argiope.processor", "no-such-file.py"])
        self.assertEqual(processor.describe()["error"]["kind"], "FileNotFoundError")


if __name__ == "__main__":
    import unittest

    unittest.main()
