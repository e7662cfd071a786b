// What an independent reader (npm's warcio) finds in WARC files: one line of JSON for each record, and of each file the index that
// it would make. Called by warc_test.py: node read_warc.mjs PATH-OF-WARCIO FILE…
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';

const [warcio, ...files] = process.argv.slice(2);
const { CDXIndexer, WARCParser } = await import(pathToFileURL(join(warcio, 'dist/index.js')).href);

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

function base32(bytes) {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  return bits.match(/.{5}/g).map((five) => LETTERS[parseInt(five, 2)]).join('');
}
const digest = (bytes) => 'sha1:' + base32(createHash('sha1').update(bytes).digest());

function payloadOf(block) {
  const end = Buffer.from(block).indexOf('\r\n\r\n');
  return end < 0 ? new Uint8Array() : block.subarray(end + 4);
}

const said = [];
const say = (what) => said.push(JSON.stringify(what));

for (const file of files) {
  // The bytes as they are …
  const blocks = [];
  const raw = new WARCParser(createReadStream(file), { parseHttp: false, keepHeadersCase: true });
  for await (const record of raw) {
    const block = await record.readFully(false);
    const payload = record.warcType === 'response' ? payloadOf(block) : undefined;
    blocks.push({
      block: record.warcBlockDigest === digest(block),
      payload: payload && record.warcPayloadDigest === digest(payload),
      hasBlock: Boolean(record.warcBlockDigest),
      // Of a file that is not packed it does not count the two line ends behind a block.
      end: raw.offset + raw.recordLength + (file.endsWith('.gz') ? 0 : 4),
    });
  }
  // … and as a browser would see them.
  const parser = new WARCParser(createReadStream(file), { keepHeadersCase: true });
  for (let i = 0; ; ++i) {
    const record = await parser.parse();
    if (!record) break;
    let content = await record.readFully(true);
    // The one coding of the web that it leaves to others, but for zstd.
    if (content.length && record.httpHeaders?.headers.get('Content-Encoding') === 'br') content = brotliDecompressSync(content);
    const header = (name) => record.warcHeaders.headers.get(name) ?? null;
    say({
      file: basename(file),
      offset: parser.offset,
      type: record.warcType,
      version: record.warcHeaders.statusline,
      url: record.warcTargetURI ?? null,
      id: header('WARC-Record-ID'),
      date: header('WARC-Date'),
      concurrent: header('WARC-Concurrent-To'),
      profile: header('WARC-Profile'),
      refersTo: header('WARC-Refers-To'),
      refersToUrl: header('WARC-Refers-To-Target-URI'),
      refersToDate: header('WARC-Refers-To-Date'),
      truncated: header('WARC-Truncated'),
      digest: record.warcPayloadDigest ?? null,
      status: record.httpHeaders?.statusCode ?? null,
      request: record.warcType === 'request' ? record.httpHeaders.statusline : undefined,
      headers: record.httpHeaders ? [...record.httpHeaders.headers] : [],
      text: record.warcType === 'warcinfo' ? new TextDecoder().decode(content) : undefined,
      contentHash: createHash('sha256').update(content).digest('hex'),
      contentSize: content.length,
      ...blocks[i],
    });
  }
  const indexer = new CDXIndexer({ format: 'cdxj' });
  for await (const line of indexer.iterIndex([{ filename: basename(file), reader: createReadStream(file) }])) {
    say({ index: line });
  }
}
process.stdout.write(said.map((line) => line + '\n').join(''));
