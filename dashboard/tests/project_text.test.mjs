// What pages of projects say and compare, without a browser.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  countedIn,
  countsText,
  differences,
  doingSentence,
  hunks,
  keepSame,
  ratesOf,
  rateText,
  readRate,
  startsOf,
  templateOf,
  withMember,
  wrongLine,
} from '../project_text.js';

describe('a project', () => {
  it('is the same object until something of it has changed', () => {
    const before = [
      { name: 'a', counts: { pending: 1 } },
      { name: 'b', counts: { pending: 1 } },
    ];
    const after = keepSame(before, [
      { name: 'b', counts: { pending: 2 } },
      { name: 'a', counts: { pending: 1 } },
      { name: 'c', counts: {} },
    ]);
    assert.equal(after[1], before[0]);
    assert.notEqual(after[0], before[1]);
    assert.deepEqual(after.map((p) => p.name), ['b', 'a', 'c']);
    assert.deepEqual(keepSame(undefined, []), []);
  });
  it('says what it is doing', () => {
    assert.equal(doingSentence({ doing: 'stopped', status: 'TODO' }), 'It is TODO: its pages are not visited, until it is set to DEBUG or RUNNING.');
    assert.equal(doingSentence({ doing: 'standing', trouble: 'no sandbox' }), 'no sandbox');
    assert.equal(doingSentence({ doing: 'visiting', under_way: 1, outstanding: 1 }), 'It visits 1 page.');
    assert.equal(doingSentence({ doing: 'visiting', under_way: 2, outstanding: 9 }), 'It visits 2 pages; 9 pages of its round are left.');
    assert.equal(doingSentence({ doing: 'waiting', outstanding: 1 }), 'One page of its round waits until it is due.');
    assert.equal(doingSentence({ doing: 'waiting' }), 'Nothing is due now.');
  });
  it('has its counts in words', () => {
    const counts = { '5m': { pending: 1234, success: 5, retry: 0, failed: 1 } };
    assert.equal(countsText(counts, '5m'), '5 minutes: 1,234 pending, 5 success, 0 retry, 1 failed');
    assert.deepEqual([countedIn(counts, '5m'), countedIn({ all: counts['5m'] }, 'all'), countedIn(undefined, 'all')], [6, 1240, 0]);
    assert.equal(countsText(undefined, 'all'), 'pages as they are now: 0 pending, 0 success, 0 retry, 0 failed');
  });
  it('has a rate that is read as it is written', () => {
    assert.equal(rateText({ rate: 2.5, burst: 10 }), '2.5/10');
    assert.equal(rateText({ rate: null, burst: 1 }), '');
    assert.deepEqual(readRate('2.5/10'), { rate: 2.5, burst: 10 });
    assert.deepEqual(readRate(' .5 / 3 '), { rate: 0.5, burst: 3 });
    assert.deepEqual(readRate('7'), { rate: 7 });
    assert.deepEqual(readRate(' '), { rate: null, burst: null });
    for (const wrong of ['fast', '-1', '1/', '1/2/3', '1/2.5', '/3']) assert.equal(readRate(wrong), null, wrong);
  });
  it('has its visits a second, of the step under way so far', () => {
    const history = { began: '2026-01-01T00:00:00Z', ended: '2026-01-01T00:00:25Z', step_s: 10, success: [10, 20, 10], failed: [0, 0, 5] };
    const began = Date.parse(history.began) / 1000;
    assert.deepEqual(ratesOf(history, ['success', 'failed']), [
      [began + 10, began + 20, began + 25],
      [1, 2, 2],
      [0, 0, 1],
    ]);
    assert.equal(ratesOf(undefined, ['success']), null);
  });
});

describe('a new file', () => {
  it('follows the fields, whatever else was written in it', () => {
    const { source } = templateOf('rules', 'shop', ['https://a.example/']);
    assert.match(source, /^name = "shop"$/m);
    assert.match(source, /^start = \["https:\/\/a\.example\/"\]$/m);
    const mine = source.replace('[[rule]]', '# mine\n[[rule]]');
    const renamed = withMember(mine, 'name', 'a"b\\$&');
    assert.match(renamed, /^name = "a\\"b\\\\\$&"$/m);
    assert.match(renamed, /^name = "item"$/m);
    assert.match(renamed, /# mine/);
    const moved = withMember(renamed, 'start', ['https://b.example/', 'https://c.example/']);
    assert.match(moved, /start = \[\n {2}"https:\/\/b\.example\/",\n {2}"https:\/\/c\.example\/",\n\]\nstatus/);
    assert.match(withMember(moved, 'start', []), /^start = \[\]\nstatus/m);
    assert.equal(withMember('nothing', 'start', ['x']), 'nothing');
  });
  it('has a script beside it, where one is wanted', () => {
    const { source, script } = templateOf('script', 'shop', ['https://a.example/']);
    assert.match(source, /^processor = \["python3", "-m", "argiope\.processor", "script\.py"\]$/m);
    assert.match(withMember(script, 'START', ['https://b.example/']), /^START = \["https:\/\/b\.example\/"\]$/m);
    assert.equal(templateOf('rules', 'shop', []).script, '');
  });
  it('has starts, however they are parted', () => {
    assert.deepEqual(startsOf(' https://a/ \n\nhttps://b/\t'), ['https://a/', 'https://b/']);
  });
  it('has the line of which the daemon speaks', () => {
    assert.deepEqual(wrongLine('source:2: no such member', 'a\nb\nc'), { line: 2, text: 'b' });
    assert.deepEqual(wrongLine('source:9: it ends here', 'a'), { line: 9, text: '' });
    assert.equal(wrongLine('the project has another name', 'a'), null);
  });
});

const text = (...lines) => lines.map((line) => `${line}\n`).join('');
const shown = (lines) => lines.map((line) => line.kind + line.text);
describe('differences', () => {
  it('are the fewest', () => {
    assert.deepEqual(shown(differences(text('a', 'b', 'c', 'd'), text('a', 'x', 'c', 'd', 'e'))), [' a', '-b', '+x', ' c', ' d', '+e']);
    assert.deepEqual(differences(text('a', 'b'), text('b')), [
      { kind: '-', text: 'a', before: 1, after: null },
      { kind: ' ', text: 'b', before: 2, after: 1 },
    ]);
    assert.deepEqual(differences('', ''), []);
    assert.deepEqual(shown(differences('', text('a', ''))), ['+a', '+']);
    assert.deepEqual(shown(differences(text('a'), '')), ['-a']);
  });
  it('lead from any text to any other', () => {
    let seed = 7;
    const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
    for (let turn = 0; turn < 500; ++turn) {
      const [a, b] = [0, 1].map(() => Array.from({ length: random(12) }, () => 'abc'[random(3)]));
      const way = differences(text(...a), text(...b));
      assert.deepEqual(way.filter((line) => line.kind !== '+').map((line) => line.text), a);
      assert.deepEqual(way.filter((line) => line.kind !== '-').map((line) => line.text), b);
    }
  });
  it('of texts that have nothing in common are told as a whole', () => {
    const of = (letter) => text(...Array.from({ length: 5000 }, (_, n) => `${letter}${n}`));
    const way = differences(of('a'), of('b'));
    assert.equal(way.length, 10_000);
    assert.ok(way.every((line, i) => line.kind === (i < 5000 ? '-' : '+')));
  });
  it('are shown with some lines around them', () => {
    const before = Array.from({ length: 20 }, (_, n) => `line ${n}`);
    const after = before.with(10, 'another');
    const near = hunks(differences(text(...before), text(...after)), 2);
    assert.deepEqual(near[0], { skipped: 8 });
    assert.deepEqual(shown(near.slice(1, -1)), [' line 8', ' line 9', '-line 10', '+another', ' line 11', ' line 12']);
    assert.deepEqual(near.at(-1), { skipped: 7 });
    assert.deepEqual(hunks([], 2), []);
  });
});
