// What needs no browser: numbers, spans, JSON and events.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EventParser } from '../event_parser.js';
import {
  brief,
  bytes,
  distance,
  instant,
  prettyJson,
  rate,
  readSpan,
  seen,
  seenInName,
  span,
  writeSpan,
  writtenClock,
  writtenDay,
} from '../format.js';
import { askAgain, askSentence, cellOf, columnsOf, lineOf, parseExact, wholeOf } from '../results.js';

describe('numbers and spans', () => {
  it('are short, and exact below a million', () => {
    assert.deepEqual([0, 999, 12345, 999_999, 1_234_567, null].map(brief), ['0', '999', '12,345', '999,999', '1.235M', '–']);
    assert.deepEqual([0, 0.01, 0.5, 99.9, 1234.5, null].map(rate), ['0', '<0.1', '0.5', '99.9', '1,235', '–']);
    assert.deepEqual([0, 0.4, 340, 1250, 9949, 9951, 59_600, 3_600_000, 93_600_000, -500, null].map(span), [
      '0 s',
      '<1 ms',
      '340 ms',
      '1.3 s',
      '9.9 s',
      '10 s',
      '1 min',
      '1 h',
      '1 d 2 h',
      '−500 ms',
      '–',
    ]);
    assert.deepEqual([0, 999, 1000, 1536, 5_000_000].map(bytes), ['0 B', '999 B', '1.0 kB', '1.5 kB', '5.0 MB']);
  });
  it('are told from now', () => {
    assert.deepEqual(
      [0, 1400, 5000, -5000, 61_000, -7_200_000].map((ms) => distance(1e12 + ms, 1e12)),
      ['now', 'now', 'in 5 s', '5 s ago', 'in 1 min 1 s', '2 h ago'],
    );
    assert.equal(instant('1970-01-01T00:00:00Z'), null);
    assert.equal(instant('2026-11-22T08:00:00.250Z'), Date.UTC(2026, 10, 22, 8, 0, 0, 250));
    assert.equal(instant('when it suits'), null);
  });
  it('are read from forms as people write them, and written back', () => {
    assert.deepEqual(
      ['90', '90s', '1h30m', '250ms', '1.5h', '2w', ' 5m '].map(readSpan),
      [90_000, 90_000, 5_400_000, 250, 5_400_000, 1_209_600_000, 300_000],
    );
    for (const text of ['', 'soon', '5 x', '-3s', '1h 30', '1e3', 's', '∞']) assert.equal(readSpan(text), null, text);
    for (const ms of [0, 1, 999, 1000, 90_000, 5_400_000, 86_400_000, 90_061_001]) assert.equal(readSpan(writeSpan(ms)), ms);
  });
  it('of a zone are those that were written', () => {
    assert.equal(writtenClock('2026-03-29T03:30:00+02:00'), '03:30:00');
    assert.equal(writtenDay('2026-03-29T03:30:00+02:00'), '2026-03-29');
  });
});

describe('JSON', () => {
  it('is put on lines to the letter', () => {
    assert.equal(
      prettyJson('{"a":9007199254740993,"b":[1.50,{"c":"x,{\\"y\\":[1]}"}],"d":{},"e":[ ]}'),
      '{\n  "a": 9007199254740993,\n  "b": [\n    1.50,\n    {\n      "c": "x,{\\"y\\":[1]}"\n    }\n  ],\n  "d": {},\n  "e": []\n}',
    );
  });
  it('means what it meant', () => {
    for (const text of ['[]', ' [ 1 , 2 ] ', '{"":""}', '[[[]],{"a":[{}]}]', '["\\\\","\\"",":,{}[]"]', '[true,null,-1e-9]']) {
      assert.deepEqual(JSON.parse(prettyJson(text)), JSON.parse(text));
      assert.equal(prettyJson(prettyJson(text)), prettyJson(text));
    }
  });
  it('is only what is whole, and an object or a list', () => {
    for (const text of ['', 'hello', '1', '"x"', '{', '[1,]', '{"a":1} x', 'null']) assert.equal(prettyJson(text), null, text);
  });
});

describe('text of strangers', () => {
  it('shows what cannot be seen', () => {
    assert.deepEqual(seen('a\u202Eb\u0000'), ['a', '202E', 'b', '0000', '']);
    assert.deepEqual(seen('tab\tline\nü 日本 🕷'), ['tab\tline\nü 日本 🕷']);
    assert.deepEqual(seen('a\u{e0041}\u3164'), ['a', 'E0041', '', '3164', '']);
  });
  it('shows in names where lines break, and spaces at the ends', () => {
    assert.deepEqual(seenInName('a b\nc '), ['a b', '000A', 'c', '0020', '']);
    assert.deepEqual(seenInName(' '), ['', '0020', '']);
  });
});

describe('an event stream', () => {
  const events = (pieces) => {
    const taken = [];
    const parser = new EventParser((e) => taken.push(e));
    for (const piece of pieces) parser.feed(piece);
    return [taken, parser.id];
  };
  const text =
    'retry: 2000\nid: a1-7\n\n: a comment\n\nid: a1-8\nevent: job\ndata: {"id":1}\n\r\nevent: counters\r\ndata: {"a":\r\ndata: 2}\r\n\r\ndata:x\n\n';
  const wanted = [
    { event: 'job', data: '{"id":1}', id: 'a1-8' },
    { event: 'counters', data: '{"a":\n2}', id: 'a1-8' },
    { event: 'message', data: 'x', id: 'a1-8' },
  ];
  it('is read whole', () => assert.deepEqual(events([text]), [wanted, 'a1-8']));
  it('is read the same however it is cut', () => {
    for (let at = 1; at < text.length; ++at)
      assert.deepEqual(events([text.slice(0, at), text.slice(at)])[0], wanted, `cut at ${at}`);
    assert.deepEqual(events([...text])[0], wanted);
  });
  // As the HTML standard has it ("Interpreting an event stream"), of a text that has come whole.
  const byTheStandard = (whole) => {
    const taken = [];
    let [event, data, id] = ['', [], undefined];
    const lines = whole.split(/\r\n|\r|\n/);
    lines.pop(); // without its end it is no line
    for (const line of lines) {
      const [, name, value] = /^([^:]*):? ?([^]*)$/.exec(line);
      if (line === '') {
        if (data.length) taken.push({ event: event || 'message', data: data.join('\n'), id });
        [event, data] = ['', []];
      } else if (name === 'event') event = value;
      else if (name === 'data') data.push(value);
      else if (name === 'id' && !value.includes('\0')) id = value;
    }
    return taken;
  };
  it('is read by the standard, whatever it says and however it is cut', () => {
    let state = 20261122;
    const below = (bound) => {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      return (state >>> 8) % bound;
    };
    const parts = ['event', 'data', 'id', 'retry', ':', ': ', '::', ' ', '\n', '\n', '\n\n', '\r\n', '\r', '\r\n\r\n', 'é', '\0', '{}', 'a1-7'];
    for (let round = 0; round < 5000; ++round) {
      const pieces = [];
      for (let left = 1 + below(30); left > 0; --left) pieces.push(parts[below(parts.length)]);
      const whole = pieces.join('') + '\n\n';
      const cut = [];
      for (let from = 0; from < whole.length; ) {
        const to = from + 1 + below(6);
        cut.push(whole.slice(from, to));
        from = to;
      }
      assert.deepEqual(events(cut)[0], byTheStandard(whole), JSON.stringify(cut));
    }
  });
  it('keeps an id that came without an event, and drops an event that was cut off', () => {
    assert.deepEqual(events(['id: a1-7\n\nevent: job\ndata: {']), [[], 'a1-7']);
  });
});

describe('results', () => {
  const results = [{ value: { title: 'Lamp', price: 9.5, sizes: [1, 2] } }, { value: 'text' }, { value: { more: null, title: '' } }, { value: [1] }];
  it('have the columns of the rules first, and then what they have', () => {
    assert.deepEqual(columnsOf(results, ['price', 'none']), ['price', 'none', 'title', 'sizes', 'value', 'more']);
    assert.deepEqual(columnsOf([{ value: JSON.parse('{"__proto__":1,"constructor":2}') }]), ['__proto__', 'constructor']);
  });
  it('are cells of text', () => {
    const cells = (column) => results.map((result) => cellOf(result, column));
    assert.deepEqual(cells('price'), ['9.5', '', '', '']);
    assert.deepEqual(cells('sizes'), ['[1,2]', '', '', '']);
    assert.deepEqual(cells('value'), ['', 'text', '', '[1]']);
    assert.deepEqual(cells('constructor'), ['', '', '', '']);
    assert.equal(cellOf({ value: null }, 'value'), '');
  });
  it('are told in a line, without what is empty', () => {
    assert.deepEqual(results.map(({ value }) => lineOf(value)), ['title: Lamp · price: 9.5 · sizes: [1,2]', 'text', '', '[1]']);
    assert.equal(lineOf({ a: 'x'.repeat(1000) }, 10), `a: ${'x'.repeat(7)}…`);
    assert.equal(lineOf(null), '');
  });
  it('are shown whole', () => {
    assert.equal(wholeOf({ a: 1 }), '{\n  "a": 1\n}');
    assert.deepEqual(parseExact('{"a":[1,"2",null,1.5]}'), { a: [1, '2', null, 1.5] });
  });
});

describe('asks for pages', () => {
  it('are told in a sentence', () => {
    assert.equal(askSentence({ verdict: 'add', reason: 'new', until: null }), 'The page is added: it is new.');
    assert.match(askSentence({ verdict: 'drop', reason: 'fresh', until: '2026-11-24T10:00:00Z' }), /^Nothing is done: it is fresh until 2026-11-2\d /);
    assert.equal(askSentence({ verdict: 'cancel', reason: 'cancelled', until: null }), 'It is cancelled.');
    assert.equal(askSentence({ verdict: 'drop', reason: 'unheard', until: null }), 'Nothing is done: unheard.');
  });
  it('have all that the page was asked for with', () => {
    const url = 'http://a/1';
    const page = { page: url, url, rule: 'item', settings: { tag: 'v2', request: { method: 'POST' } }, context: { n: 0 }, save: 7 };
    assert.deepEqual(askAgain(page, { force: true }), {
      tag: 'v2',
      request: { method: 'POST' },
      url,
      rule: 'item',
      context: { n: 0 },
      force: true,
    });
    assert.deepEqual(askAgain({ page: 'one', url, rule: '', settings: {}, context: null }), { url, name: 'one' });
  });
});
