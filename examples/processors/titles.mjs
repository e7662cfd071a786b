// A processor in JavaScript, without packages: Argiope takes the title and the links from each page (`fields`).
//
// Argiope starts it with the first page as its argument: processor = ["node", "titles.mjs", "https://shop.example/"]
const rules = {
  page: {
    age_ms: 3_600_000,
    fields: { title: "css:h1", links: { css: "a", attribute: "href", type: "url", all: true } },
  },
};

function visit(call, content) {
  if (call.event === "start") return { pages: [{ url: process.argv[2], rule: "page" }] };
  const { title, links } = call.fields ?? {}; // null for what is not there
  console.error(`${content.length} bytes from ${call.response.url}`); // is the log
  return {
    pages: (links ?? []).filter((url) => url.startsWith("http")).map((url) => ({ url, rule: "page" })),
    results: [{ value: { title: title ?? "" } }],
  };
}

function answer(message, content) {
  if (message.type === "describe") return { type: "described", protocol: 1, on: { start: "start" }, rules };
  if (message.type !== "page") return undefined;
  try {
    return { type: "done", id: message.id, ...visit(message, content) };
  } catch (error) {
    return { type: "done", id: message.id, error: { kind: error.name, text: error.message, trace: error.stack } };
  }
}

// Standard input, as messages: a line, and of a page its bytes.
async function* messages(input) {
  const more = input[Symbol.asyncIterator]();
  let waiting = Buffer.alloc(0);
  const read = async (isEnough) => {
    const chunks = [waiting];
    for (let chunk = waiting; !isEnough(chunk, chunks); ) {
      const next = await more.next();
      if (next.done) return false;
      chunks.push((chunk = next.value));
    }
    waiting = Buffer.concat(chunks);
    return true;
  };
  while (await read((chunk) => chunk.includes(10))) {
    const end = waiting.indexOf(10);
    const line = waiting.subarray(0, end).toString();
    waiting = waiting.subarray(end + 1);
    if (!line.trim()) continue;
    const message = JSON.parse(line);
    const size = message.body ?? 0;
    if (!(await read((_, chunks) => chunks.reduce((sum, chunk) => sum + chunk.length, 0) >= size))) return;
    yield [message, waiting.subarray(0, size)];
    waiting = waiting.subarray(size);
  }
}

for await (const [message, content] of messages(process.stdin)) {
  const told = answer(message, content);
  if (told) process.stdout.write(JSON.stringify(told) + "\n");
}
