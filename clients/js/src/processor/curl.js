// A curl command, as browsers copy it (“Copy as cURL”), as what crawl() is given. The Python client's argiope/processor/_curl.py does the
// same; tests/data/curl_commands.json says what both make of which command.

// Options with a value, and what they say; those without one; those that say nothing about a request.
const TAKES = {
  "-H": "header", "--header": "header", "-X": "method", "--request": "method", "--url": "url",
  "-d": "data", "--data": "data", "--data-raw": "data", "--data-binary": "data", "--data-ascii": "data", "--data-urlencode": "data",
  "-A": "user-agent", "--user-agent": "user-agent", "-e": "referer", "--referer": "referer", "-b": "cookie", "--cookie": "cookie",
  "-x": "proxy", "--proxy": "proxy", "-m": "timeoutMs", "--max-time": "timeoutMs", "--connect-timeout": "connectTimeoutMs",
  "-u": "user", "--user": "user",
}; // prettier-ignore
const NOTHING = `-L --location -s --silent -S --show-error -v --verbose -i --include -f --fail -g --globoff -N --no-buffer -# --progress-bar
  --compressed --http1.1 --http2`;
const FLAGS = {
  ...Object.fromEntries(NOTHING.split(/\s+/).map((option) => [option, {}])),
  "-k": { verifyCertificate: false }, "--insecure": { verifyCertificate: false }, "-I": { method: "HEAD" }, "--head": { method: "HEAD" },
  "-G": { get: true }, "--get": { get: true },
}; // prettier-ignore
const SECONDS = /^\d{1,9}(\.\d*)?$/;
const NAMED = { n: "\n", r: "\r", t: "\t", a: "\x07", b: "\b", e: "\x1b", E: "\x1b", f: "\f", v: "\v" };
// One piece of a word: $'with escapes', 'as it is', "with some", \c, or characters.
const PIECE = /\$'((?:[^'\\]|\\[^])*)'|'([^']*)'|\$?"((?:[^"\\]|\\[^])*)"|\\(\r?\n|[^])|((?:[^ \t\r\n'"\\$]|\$(?!['"]))+)/y;
// What Bash's manual lists; before it two \u that are one character, which is how browsers write those beyond \uffff.
const KINDS = [
  String.raw`u([dD][89abAB]H{2})\\u([dD][c-fC-F]H{2})`, "x(H{1,2})", "([0-7]{1,3})", "u(H{1,4})", "U(H{1,8})",
  String.raw`c(\\\\|[\x00-\x7f])`, String.raw`([abeEfnrtv\\'"?])`,
]; // prettier-ignore
const ESCAPED = new RegExp(String.raw`\\(?:${KINDS.join("|").replaceAll("H", "[0-9A-Fa-f]")})`, "g");

// `urls`, and `options` of crawl(). Errors: TypeError for an option that is not known, without its value or with one that cannot be read,
// for one that names a file, and without a URL; SyntaxError for quotes that do not end.
export function fromCurl(command) {
  const said = { urls: [], data: [], cookies: [], headers: {}, own: {}, options: {} };
  const words = wordsOf(command).slice(1);
  while (words.length) {
    const word = words.shift();
    if (!word.startsWith("-") || word === "-") said.urls.push(fromUtf8(word));
    else [...optionsOf(word, words)].forEach((each) => take(said, ...each));
  }
  if (!said.urls.length) throw new TypeError("curl: no URL");
  const { get, ...options } = said.options;
  const { cookie = said.cookies.join(";"), ...headers } = { ...said.own, ...said.headers };
  const cookies = Object.fromEntries([...cookie.matchAll(/([^=;\s][^=;]*)=([^;]*)/g)].map(([, name, value]) => [name, value.trim()]));
  const data = said.data.join("&");
  if (said.data.length && !get) options.body = bodyOf(data);
  return { urls: get ? said.urls.map((url) => withQuery(url, data)) : said.urls, options: { headers, cookies, ...options } };
}

// Each option of a word with its value: what is behind it in the word, else the next word.
function* optionsOf(word, words) {
  const isLong = word.startsWith("--");
  const [, long, attached] = /^(--[^=]+)=([^]*)$/.exec(word) ?? [];
  if (TAKES[long]) return yield [long, attached];
  for (let at = 1; at < word.length; ++at) {
    const option = isLong ? word : "-" + word[at];
    if (TAKES[option]) {
      const value = isLong || at + 1 === word.length ? words.shift() : word.slice(at + 1);
      if (value === undefined) throw new TypeError(`curl: option ${option} without a value`);
      return yield [option, value];
    }
    if (!FLAGS[option]) throw new TypeError(`curl: there is no option ${fromUtf8(option)} here`);
    yield [option];
    if (isLong) return;
  }
}

function take(said, option, value) {
  const meaning = TAKES[option];
  if (!meaning) Object.assign(said.options, FLAGS[option]);
  else if (meaning === "data") said.data.push(dataOf(option, value));
  else if (meaning === "user") said.own.authorization = "Basic " + Buffer.from(value, "latin1").toString("base64");
  else takeText(said, option, meaning, fromUtf8(value));
}

function takeText(said, option, meaning, value) {
  if (meaning === "url") said.urls.push(value);
  else if (meaning === "header") takeHeader(said, option, value);
  else if (meaning === "cookie") {
    if (value && !value.includes("=")) refuseFile(option, value);
    said.cookies.push(value);
  } else if (meaning === "user-agent" || meaning === "referer") {
    delete said.own[meaning];
    if (value) said.own[meaning] = value;
  } else if (meaning === "proxy") said.options.proxy = value.includes("://") ? value : "http://" + value;
  else if (meaning === "method") said.options.method = value;
  else {
    if (!SECONDS.test(value)) throw new TypeError(`curl: ${option} ${value}: not a number of seconds`);
    delete said.options[meaning];
    if (Number(value) > 0) said.options[meaning] = Math.max(1, Math.round(Number(value) * 1000));
  }
}

// `Name: value`, `Name;` for one without a value. `Name:` takes a header of curl's own away, and nothing is said here, nor for one without a name.
function takeHeader(said, option, value) {
  if (value.startsWith("@")) refuseFile(option, value);
  const [, name, text] = /^([^:]*):([^]*)$/.exec(value) ?? [];
  const [, empty] = /^([^:;]*);\s*$/.exec(value) ?? [];
  if (empty?.trim()) said.headers[empty.trim().toLowerCase()] = "";
  else if (name?.trim() && text.trim()) said.headers[name.trim().toLowerCase()] = text.trim();
}

// Of --data-urlencode the content alone is encoded: what is behind the first "=", or all of it.
function dataOf(option, value) {
  const isEncoded = option === "--data-urlencode";
  const namesFile = isEncoded ? /^[^=]*@[^=]*$/.test(value) : option !== "--data-raw" && value.startsWith("@");
  if (namesFile) refuseFile(option, fromUtf8(value));
  if (!isEncoded) return value;
  const [, name, content] = /^(?:([^=]*)=)?([^]*)$/.exec(value);
  return (name ? name + "=" : "") + escapeBytes(content, /[^A-Za-z0-9._~-]/g).replaceAll("%20", "+");
}

function refuseFile(option, value) {
  const instead = "put the content there (--data-raw and --data-urlencode =… take text with an @)";
  throw new TypeError(`curl: ${option} ${value}: files are not read; ${instead}`);
}

function withQuery(url, data) {
  const [, before, fragment] = /^([^#]*)([^]*)$/.exec(url);
  if (!data) return url;
  const join = !before.includes("?") ? "?" : /[?&]$/.test(before) ? "" : "&";
  return before + join + escapeBytes(data, /[\x80-\xff]/g) + fragment;
}

// Words are bytes, each a character, because $'\xe4' may be a part of one.
const toUtf8 = (text) => Buffer.from(text).toString("latin1");
const fromUtf8 = (bytes) => Buffer.from(bytes, "latin1").toString();
const escapeBytes = (bytes, which) => bytes.replace(which, (byte) => "%" + byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0"));

function bodyOf(bytes) {
  const text = fromUtf8(bytes);
  return toUtf8(text) === bytes ? text : Buffer.from(bytes, "latin1");
}

// As Bash takes a line apart.
function wordsOf(line) {
  const words = [];
  let at = 0;
  while ((at += /^[ \t\r\n]*/.exec(line.slice(at))[0].length) < line.length) {
    let word = "";
    let isWord = false;
    while (at < line.length && !/[ \t\r\n]/.test(line[at])) {
      PIECE.lastIndex = at;
      const piece = PIECE.exec(line);
      if (!piece) throw new SyntaxError("curl: a quote or a backslash without its end");
      const [whole, escapes, literal, some, one, plain] = piece;
      at += whole.length;
      if (one !== undefined && /\n$/.test(one)) continue; // the line goes on
      isWord = true;
      const inQuotes = some?.replace(/\\(\r?\n|[$`"\\])/g, (_, each) => each.replace(/^\r?\n$/, ""));
      word += escapes === undefined ? toUtf8(literal ?? plain ?? one ?? inQuotes) : unescaped(escapes);
    }
    if (isWord) words.push(word);
  }
  return words;
}

// What is escaped in another way stays, with its backslash.
function unescaped(text) {
  let bytes = "";
  let at = 0;
  for (const found of text.matchAll(ESCAPED)) {
    bytes += toUtf8(text.slice(at, found.index)) + bytesOf(found);
    at = found.index + found[0].length;
  }
  return bytes + toUtf8(text.slice(at));
}

// In UTF-8; half a surrogate pair and numbers beyond Unicode are U+FFFD.
const characterOf = (number) => toUtf8(number > 0x10ffff ? "\ufffd" : String.fromCodePoint(number));

function bytesOf([, high, low, hex, octal, short, long, control, named]) {
  if (high) return toUtf8(String.fromCharCode(parseInt(high, 16), parseInt(low, 16)));
  if (hex) return String.fromCharCode(parseInt(hex, 16));
  if (octal) return String.fromCharCode(parseInt(octal, 8) & 0xff);
  if (short ?? long) return characterOf(parseInt(short ?? long, 16));
  if (control) return control === "?" ? "\x7f" : String.fromCharCode(control.charCodeAt(0) & 0x1f);
  return NAMED[named] ?? named;
}
