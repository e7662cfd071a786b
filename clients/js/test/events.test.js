// Server-sent events from bytes, however they are cut.
import assert from "node:assert/strict";
import { test } from "node:test";
import { EventReader } from "../src/events.js";

const TEXT =
  ': hello\nretry: 1500\n\nid: 7\nevent: job\ndata: {"name":"ä"}\n\n' +
  "id: 8\r\nevent: counters\r\ndata: {\r\ndata: }\r\n\r\n";

test("events are read however they are cut", () => {
  const bytes = new TextEncoder().encode(TEXT);
  for (let at = 0; at <= bytes.length; at++) {
    const reader = new EventReader();
    const events = [...reader.feed(bytes.subarray(0, at)), ...reader.feed(bytes.subarray(at))];
    assert.deepEqual(events, [{ kind: "job", data: { name: "ä" }, id: "7" }, { kind: "counters", data: {}, id: "8" }]);
    assert.deepEqual([reader.retryMs, reader.lastEventId], [1500, "8"]);
  }
});

test("what was broken off is forgotten", () => {
  const reader = new EventReader("3");
  const feed = (text) => [...reader.feed(new TextEncoder().encode(text))];
  assert.deepEqual(feed("event: job\ndata: {}"), []);
  reader.brokenOff();
  assert.deepEqual(feed("event: queue\ndata: 1\n\n"), [{ kind: "queue", data: 1, id: "3" }]);
});
