// What the debug page does with text, without a browser: indenting, lines of errors, changes of a project's file, names in selectors.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { escapeName, isSteady, readSource } from '../pick.js';
import {
  fieldValue,
  indented,
  isWebhookIn,
  lineAt,
  lineOfError,
  linesOfTrace,
  newLine,
  patternOf,
  processorIn,
  rulesOf,
  scriptOf,
  statementsOf,
  tomlOf,
  tomlText,
  withField,
  withFollow,
} from '../source_edit.js';

describe('source text', () => {
  it('is indented by the line, and back', () => {
    assert.deepEqual(indented('ab', 1, 1, '    '), { text: 'a   b', start: 4, end: 4 });
    assert.deepEqual(indented('a\n\n  b\nc', 0, 6, '  '), { text: '  a\n\n    b\nc', start: 2, end: 10 });
    assert.deepEqual(indented('    a\n  b\nc', 5, 9, '    ', true), { text: 'a\nb\nc', start: 1, end: 3 });
    assert.deepEqual(indented('a\nb\n', 0, 2, '  '), { text: '  a\nb\n', start: 2, end: 4 });
    assert.deepEqual(indented('', 0, 0, '  ', true), { text: '', start: 0, end: 0 });
    assert.equal(newLine('if x:\n    y', 11), '\n    ');
    assert.equal(newLine('  a', 1), '\n ');
  });
  it('has lines', () => {
    const ends = [1, 2, 3, 9].map((n) => lineAt('ab\n\ncd', n));
    assert.deepEqual(ends, [{ begin: 0, end: 2 }, { begin: 3, end: 3 }, { begin: 4, end: 6 }, { begin: 4, end: 6 }]);
    assert.deepEqual(lineOfError('source:7: rule "item": no'), { line: 7, text: 'rule "item": no' });
    for (const text of ['the project has another name', '7: no', '']) assert.deepEqual(lineOfError(text), { line: null, text });
    const trace = 'Traceback\n  File "/usr/lib/json.py", line 9, in x\n  File "/a/shop.py", line 3, in on_start\n  File "shop.py", line 12, in y';
    assert.deepEqual(linesOfTrace(trace, 'shop.py'), [12, 3]);
    assert.deepEqual(linesOfTrace('at run (/a/shop.js:4:17)', 'shop.js'), [4]);
    assert.deepEqual(linesOfTrace(null, 'shop.py'), []);
    assert.equal(scriptOf(['python3', '-m', 'argiope.processor', 'scripts/shop.py']), 'shop.py');
    assert.equal(scriptOf(['./shop']), '');
  });
});

describe('a project as TOML', () => {
  const file = `[project]
name = "shop" # the shop
start = ["https://a.example/", # [[rule]]
  'https://b.example/[x]']
processor = ["python3", "-m", "argiope.processor", "scripts/shop.py"]

[[rule]]
name = "item"
match = """
[[rule]]
name = "no""""
follow = false # none

[rule.fields]
title = "css:h1"
price = { css = ".price", type = "number" }   # in euro

# The rest.
[[rule]]
name = 'list'
fields = { a = "css:a[href='x}']" }

[alarm]
least_results = 1
`;
  it('is read as far as is needed', () => {
    assert.deepEqual(
      rulesOf(file).map((r) => [r.name, Object.keys(r.own), Object.keys(r.fields?.members ?? {})]),
      [
        ['item', ['name', 'match', 'follow'], ['title', 'price']],
        ['list', ['name', 'fields'], []],
      ],
    );
    assert.equal(processorIn(file), 'shop.py');
    assert.equal(processorIn('[project]\nname = "x"\n[other]\nprocessor = ["a"]'), undefined);
    assert.deepEqual(rulesOf(''), []);
    assert.equal(isWebhookIn(file), false);
    for (const hook of [
      '[project]\nprocessor = { webhook = "https://a.example/shop.py" }\n',
      '[project]\nprocessor = {\n  webhook = "https://a.example/",\n}\n',
      '[project]\nname = "x"\n[project.processor]\nwebhook = "https://a.example/"\n',
      '[project]\nprocessor.webhook = "https://a.example/"\n',
    ]) {
      assert.equal(isWebhookIn(hook), true, hook);
      assert.equal(processorIn(hook), undefined, hook);
    }
  });
  it('is let be where it is none', () => {
    const wrong = ['[[rule', '[[rule]]\nname = "', '= =', 'x', '"""', "'''x", '[[rule]]\n]]}}\nname', '\\\n\r\0', '[a]\nb = [1,\n', 'x = {'.repeat(50)];
    for (const text of wrong) {
      statementsOf(text);
      const keeps = (changed) => assert.ok(changed.text.startsWith(text.trimEnd()), JSON.stringify([text, changed.text]));
      keeps(withField(text, 'r', 'f', '"css:a"'));
      keeps(withFollow(text, 'r', '/x'));
    }
  });
  it('takes a field to its rule', () => {
    const added = (rule, name) => withField(file, rule, name, '"css:b"');
    const has = (text, part) => assert.ok(text.includes(part), text);
    has(added('item', 'b').text, 'type = "number" }   # in euro\nb = "css:b"\n\n# The rest.');
    has(added('item', 'title').text, '[rule.fields]\ntitle = "css:b"\nprice');
    has(added('item', 'a b').text, '\n"a b" = "css:b"\n');
    has(added('list', 'b').text, `fields = { a = "css:a[href='x}']", b = "css:b" }\n`);
    has(added('new', 'b').text, 'least_results = 1\n\n[[rule]]\nname = "new"\n\n[rule.fields]\nb = "css:b"\n');
    assert.equal(withField('[[rule]]\nname = "r"', 'r', 'b', '"css:b"').text, '[[rule]]\nname = "r"\n\n[rule.fields]\nb = "css:b"\n');
    assert.equal(withField('', 'r', 'b', '"css:b"').text, '[[rule]]\nname = "r"\n\n[rule.fields]\nb = "css:b"\n');
    for (const [rule, name] of [['item', 'b'], ['item', 'title'], ['list', 'b'], ['new', 'b']]) {
      const { text, at } = added(rule, name);
      assert.ok(text.slice(at).startsWith(`${name} = "css:b"`), `${rule} ${name}: ${text.slice(at)}`);
    }
    assert.deepEqual(rulesOf(added('item', 'b').text).map((r) => Object.keys(r.fields?.members ?? {})), [['title', 'price', 'b'], []]);
  });
  it('takes a pattern to follow', () => {
    assert.ok(withFollow(file, 'item', '/a/*').text.includes('follow = ["/a/*"] # none\n'));
    assert.ok(withFollow(file, 'list', '/a/*').text.includes(`'x}']" }\nfollow = ["/a/*"]\n\n[alarm]`));
    const one = '[[rule]]\nname = "r"\nfollow = "/b"\n';
    assert.equal(withFollow(one, 'r', '/a').text, '[[rule]]\nname = "r"\nfollow = ["/b", "/a"]\n');
    assert.equal(withFollow(one, 'r', '/b').text, one);
    const list = '[[rule]]\nname = "r"\nfollow = [\n  "/b",\n]\n';
    assert.equal(withFollow(list, 'r', '/a').text, '[[rule]]\nname = "r"\nfollow = [\n  "/b", "/a"]\n');
    const none = withFollow('[project]\nname = "x"\n', 'r', '/a').text;
    assert.equal(none, '[project]\nname = "x"\n\n[[rule]]\nname = "r"\nfollow = ["/a"]\n');
  });
  it('says what a field takes', () => {
    assert.equal(fieldValue('h1'), '"css:h1"');
    assert.equal(fieldValue('a[title="x"]', { attribute: 'title' }), '"css:a[title=\\"x\\"]::attr(title)"');
    assert.equal(fieldValue('a', { attribute: 'href', all: true }), '{ css = "a", attribute = "href", type = "url", all = true }');
    assert.equal(tomlText('a\u0007\u007f"\\'), '"a\\u0007\\u007f\\"\\\\"');
  });
  it('is written of JSON', () => {
    const rule = [{ name: 'r', fields: { a: 'css:a', b: { css: 'b', all: true } } }, { name: 's', follow: false }];
    const definition = { project: { name: 'x', start: ['https://a.example/'], rate: 0.5 }, rule, sink: [{ file: 'a "b"' }] };
    const written = `[project]
name = "x"
start = ["https://a.example/"]
rate = 0.5

[[rule]]
name = "r"

[rule.fields]
a = "css:a"
b = { css = "b", all = true }

[[rule]]
name = "s"
follow = false

[[sink]]
file = "a \\"b\\""
`;
    assert.equal(tomlOf(definition), written);
  });
  it('follows what links have in common', () => {
    const page = 'https://shop.example/list';
    const common = (...links) => patternOf(links.map((link) => new URL(link, page).href), page);
    assert.equal(common('/item/1', '/item/2?x=y'), '/item/*');
    assert.equal(common('/item/1'), '/item/1');
    assert.equal(common('/a/item-1.html', '/b/item-22.html'), '/*/item-*.html');
    assert.equal(common('/a/1', '/a/b/2'), '/a/**');
    assert.equal(common('/x', '/y/z'), null);
    assert.equal(common('/a[1]/x', '/a[1]/y'), '/a?1?/*');
    assert.equal(common('https://other.example/p/1', 'https://other.example/p/2'), 'other.example/p/*');
    assert.equal(common('https://other.example/p/1', '/p/2'), null);
    assert.equal(common('mailto:a@b.example'), null);
  });
});

describe('a selector', () => {
  it('says names as CSS has them', () => {
    const names = { a: 'a', '1a': '\\31 a', '-1': '-\\31 ', '-': '\\-', 'a:b': 'a\\:b', 'a.b': 'a\\.b', ü: 'ü', 'a b': 'a\\ b', '\0': '\ufffd', '--x': '--x' };
    for (const [name, escaped] of Object.entries(names)) assert.equal(escapeName(name), escaped, name);
  });
  it('goes by names that last', () => {
    for (const name of ['price', 'product__name', 'col-md-6', 'item2', 'h-entry', 'Größe']) assert.ok(isSteady(name), name);
    const passing = ['', 'active', 'is-open', 'css-1q2w3e', 'Foo_bar__3xYzQ', 'item-12345', 'js-hook', 'ng-scope', 'x'.repeat(41)];
    for (const name of passing) assert.ok(!isSteady(name), name);
  });
  it('is taken from a source', () => {
    assert.deepEqual(readSource(' css:a.b > c::attr(href) '), { selector: 'a.b > c', tail: '::attr(href)' });
    assert.deepEqual(readSource('h1::text'), { selector: 'h1', tail: '::text' });
    assert.deepEqual(readSource('a:hover'), { selector: 'a:hover', tail: '' });
  });
});
