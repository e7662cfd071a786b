"""Scripts that read pages for Argiope: what they are made of, and (`python3 -m argiope.processor SCRIPT`) what runs them.

    from argiope.processor import BaseHandler, config, every

    class Handler(BaseHandler):
        @every(minutes=24 * 60)
        def on_start(self):
            self.crawl("https://shop.example/", callback=self.index_page)

        @config(age=10 * 24 * 60 * 60)
        def index_page(self, response):
            for link in response.doc("a.item").items():
                self.crawl(link.attr.href, callback=self.detail_page)

        def detail_page(self, response):
            return {"title": response.doc("h1").text()}
"""
from .._errors import Bury, Retry
from ._handler import BaseHandler, catch_status_code_error, config, every, not_send_status
from ._response import HTTPError, Response

__all__ = [
    "BaseHandler",
    "Bury",
    "HTTPError",
    "Response",
    "Retry",
    "catch_status_code_error",
    "config",
    "every",
    "not_send_status",
]
