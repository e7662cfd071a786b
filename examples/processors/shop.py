"""A shop's prices: the list again every hour, an item after ten days, or at once when the list names it otherwise."""
from argiope.processor import BaseHandler, config, every


class Handler(BaseHandler):
    @every(minutes=60)
    def on_start(self):
        self.crawl("https://shop.example/", callback=self.list_page, force_update=True)

    def list_page(self, response):
        for item in response.doc("a.item").items():
            self.crawl(item.attr.href, callback=self.item_page, itag=item.text())
        self.crawl([link.attr.href for link in response.doc("a.next").items()], callback=self.list_page, age=3600)

    @config(age=10 * 24 * 60 * 60, priority=1)
    def item_page(self, response):
        return {"name": response.doc("h1").text(), "price": float(response.doc(".price").text())}
