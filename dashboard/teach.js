// Lines for a shell that pages show where nothing is yet, with the page's own address.
import { base, hasTokens } from './api.js';

const authorization = () => (hasTokens() ? ' -H "Authorization: Bearer $ARGIOPE_TOKEN"' : '');
const curl = (path, body, method) => `curl${method ? ` -X ${method}` : ''}${authorization()} -d '${JSON.stringify(body)}' ${base}${path}`;

export const putLine = () => curl('/v1/jobs', { queue: 'mail', payload: 'hello' });
export const leaseLine = () => curl('/v1/leases', { queues: ['mail'], wait_ms: 30000, worker: 'me:1' });
export const settleLine = () => curl('/v1/leases/settle', { settlements: [{ token: 1, outcome: 'done' }] });
export const policyLine = () => curl('/v1/queues/mail', { rate: 5, key_concurrency: 1 }, 'PUT');
export const scheduleLine = () =>
  curl('/v1/schedules', {
    name: 'good-morning',
    trigger: { type: 'cron', expression: '0 8 * * MON-FRI', zone: 'Europe/Berlin' },
    job: { queue: 'mail', payload: 'good morning' },
  });
export const eventsLine = () => `curl -N${authorization()} ${base}/v1/events`;
