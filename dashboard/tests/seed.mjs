// What is put into a daemon so that its pages have something to show: jobs in every state, schedules, and texts of strangers who
// mean harm.

// Names that try to be markup, to end a string, to turn what stands around them, to be wider than any screen, or not to be seen.
export const hostile = {
  markup: '<img src=x onerror="document.title=\'pwned\'">',
  script: '</script><script>document.title="pwned"</script>',
  quotes: '"\'`>{{7*7}}${document.title="pwned"}&lt;b&gt;',
  turned: 'invoice\u202Egnp.exe',
  wide: 'W'.repeat(512),
  blank: ' ',
  broken: 'two\nlines\u0007and a bell',
  path: '../../x?y=1#z%2F',
};

export const config = `
[[queue]]
name = "invoices"
rate = 2
key_concurrency = 1

[[schedule]]
name = "month-end"
trigger = { type = "cron", expression = "0 6 1 * *", zone = "Europe/Berlin" }
job = { queue = "invoices", payload = "close the month" }
`;

const kDayMs = 86_400_000;
const cron = (name, expression, queue = 'reports') => ({
  name,
  trigger: { type: 'cron', expression, zone: 'Europe/Berlin' },
  job: { queue, payload: name },
});

async function finish(daemon, queue, outcomes, worker) {
  const leases = await daemon.lease(queue, outcomes.length, worker);
  const settlements = leases.map(({ token }, i) => ({ token, ...outcomes[i] }));
  await daemon.good('POST', '/v1/leases/settle', { settlements });
}

// Gives {done, failed}: ids of a job that has ended well, and of one that is buried.
export async function seed(daemon) {
  for (const queue of ['mail', 'webhooks', 'reports']) await daemon.good('PUT', `/v1/queues/${queue}`, { keep_done_ms: kDayMs });
  const jobs = [];
  for (let n = 0; n < 90; ++n) jobs.push({ queue: 'mail', key: `customer-${n % 7}`, payload: JSON.stringify({ to: n, a: [] }) });
  for (let n = 0; n < 12; ++n) jobs.push({ queue: 'webhooks', key: 'example.com', priority: n % 3, max_attempts: 1 });
  for (let n = 0; n < 9; ++n) jobs.push({ queue: 'invoices', delay_ms: (n + 1) * kDayMs, function: 'send_invoice' });
  const { replies } = await daemon.good('POST', '/v1/jobs', { jobs });
  const sent = Array.from({ length: 70 }, (_, n) => ({ outcome: 'done', result: { sent: n, by: 'smtp-1' } }));
  await finish(daemon, 'mail', [...sent, { outcome: 'retry', error: '450 greylisted, try again later' }]);
  await finish(daemon, 'webhooks', Array(4).fill({ outcome: 'retry', error: 'HTTP 500 from example.com' }), 'hooks:1');
  await daemon.lease('webhooks', 1, 'hooks:2');
  await daemon.good('POST', '/v1/queues/webhooks/pause', {});
  const { id } = await daemon.put({ queue: 'reports', id: 'quarter', payload: 'sum up' });
  await daemon.put({ queue: 'reports', waits_for: [id], payload: 'send the sums' });
  for (const one of [cron('nightly-backup', '30 2 * * *'), cron('digest', '0 8 * * MON-FRI', 'mail'), cron('sweep', '*/10 * * * *')])
    await daemon.good('POST', '/v1/schedules', one);
  await daemon.good('POST', '/v1/schedules/digest/pause', { by: 'ann' });
  const { jobs: buried } = await daemon.good('GET', '/v1/jobs?state=buried');
  return { done: replies[0].id, failed: buried[0].id };
}

// The same texts wherever the daemon takes them. Gives the ids of jobs that are made of them and are buried.
export async function seedHostile(daemon) {
  const ids = [];
  for (const [what, text] of Object.entries(hostile)) {
    // The name of a job has no control characters.
    const name = what === 'broken' ? {} : { id: `${text}:name`.slice(-500) };
    const { id } = await daemon.put({ queue: text, key: text, function: text, unique: text, payload: text, ...name });
    await daemon.work(text, { outcome: 'bury', error: text }, text);
    await daemon.put({ queue: text, key: text, payload: JSON.stringify({ [text]: [text] }) });
    await daemon.lease(text, 1, text);
    await daemon.good('POST', '/v1/schedules', { ...cron(text, '15 4 * * *', text), job: { queue: text, payload: text, function: text } });
    if (ids.length % 2) await daemon.good('POST', `/v1/schedules/${encodeURIComponent(text)}/pause`, { by: text });
    ids.push(id);
  }
  return ids;
}
