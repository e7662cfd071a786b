// Takes an event stream apart. feed() calls `take({event, data, id})` for each event that is whole. `id` is the last one that
// came, with an event or without.
export class EventParser {
  constructor(take) {
    this.take = take;
    this.rest = '';
    this.clear();
  }
  clear() {
    this.event = '';
    this.data = [];
  }
  feed(text) {
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop();
    for (const line of lines) this.line(line);
  }
  line(line) {
    if (line === '') {
      if (this.data.length) this.take({ event: this.event || 'message', data: this.data.join('\n'), id: this.id });
      this.clear();
      return;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'event') this.event = value;
    else if (name === 'data') this.data.push(value);
    else if (name === 'id' && !value.includes('\0')) this.id = value;
  }
}
