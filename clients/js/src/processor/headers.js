// HeaderFields: as the platform's Headers. That one brings Node's whole client of HTTP with it, for which a confined script has no room.

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const AROUND = /^[\t\n\r ]+|[\t\n\r ]+$/g;
const IN_NO_VALUE = /[\0\r\n\u0100-\uffff]/;

export class HeaderFields {
  #fields = new Map(); // lower-case names to lists of values

  // Pairs, an object, or Headers. Errors: TypeError for what no header may hold.
  constructor(given = []) {
    const pairs = typeof given?.[Symbol.iterator] === "function" ? given : Object.entries(given ?? {});
    for (const [name, value] of pairs) this.append(name, value);
  }

  append(name, value) {
    this.#fields.set(nameOf(name), [...(this.#fields.get(nameOf(name)) ?? []), valueOf(name, value)]);
  }
  set(name, value) {
    this.#fields.set(nameOf(name), [valueOf(name, value)]);
  }
  delete(name) {
    this.#fields.delete(nameOf(name));
  }
  has(name) {
    return this.#fields.has(nameOf(name));
  }
  get(name) {
    return this.#fields.get(nameOf(name))?.join(", ") ?? null;
  }
  getSetCookie() {
    return [...(this.#fields.get("set-cookie") ?? [])];
  }
  forEach(callback, self) {
    for (const [name, value] of this) callback.call(self, value, name, this);
  }
  *entries() {
    for (const name of [...this.#fields.keys()].sort()) {
      if (name === "set-cookie") yield* this.getSetCookie().map((value) => [name, value]);
      else yield [name, this.get(name)];
    }
  }
  *keys() {
    for (const [name] of this) yield name;
  }
  *values() {
    for (const [, value] of this) yield value;
  }
  [Symbol.iterator]() {
    return this.entries();
  }
}

function nameOf(name) {
  if (!TOKEN.test(name)) throw new TypeError(`${JSON.stringify(String(name))} is no name of a header`);
  return String(name).toLowerCase();
}

function valueOf(name, value) {
  const text = String(value).replace(AROUND, "");
  if (IN_NO_VALUE.test(text)) throw new TypeError(`header ${name}: no header may hold this value`);
  return text;
}
