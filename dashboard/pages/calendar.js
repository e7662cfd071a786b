// The planned times of the coming weeks, of all schedules or of one.
import * as api from '../api.js';
import { count, day, plural, span, writtenClock, writtenDay } from '../format.js';
import { html, useState } from '../lib.js';
import { useNow } from '../live.js';
import { to } from '../router.js';
import { Dialog, Icon, Name, Problem, useResource } from '../ui.js';

const kFirst = 36; // times that are asked for of each schedule: five weeks of one a day
const kTimes = 100; // and of one that comes more often
const kAtOnce = 4; // requests: a browser has six connections
const kMostAsked = 500; // schedules
const kMostInADay = 3; // that are written out
const kOften = 4; // planned times a day, and more, go below the month
const kWeeks = 5;
const kDayMs = 86_400_000;
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

// Five weeks, Monday first, from this week on: [{key: "2026-11-23", name: "23"}, …]. `page` 1 is the five weeks after that.
function daysOf(now, page) {
  const at = new Date(now);
  const lead = (at.getDay() + 6) % 7;
  return Array.from({ length: kWeeks * 7 }, (_, i) => {
    const date = new Date(at.getFullYear(), at.getMonth(), at.getDate() - lead + i + page * kWeeks * 7, 12);
    const number = date.getDate();
    return {
      key: day(date.getTime()),
      name: number === 1 || i === 0 ? `${number} ${months[date.getMonth()]}` : String(number),
      isOdd: date.getMonth() % 2 === 1,
      date,
    };
  });
}
function spanOf(days) {
  const [first, last] = [days[0].date, days.at(-1).date];
  const year = (d) => (first.getFullYear() === last.getFullYear() && d === first ? '' : ` ${d.getFullYear()}`);
  return [first, last].map((d) => `${d.getDate()} ${months[d.getMonth()]}${year(d)}`).join(' – ');
}

// The times of each trigger from the first of those days on, or from now.
async function loadTimes(schedules, first, isOne, signal) {
  const after = first > Date.now() ? { after: new Date(first).toISOString() } : {};
  const end = first + (kWeeks * 7 + 3) * kDayMs;
  const ask = (trigger, count) => api.post('/v1/next', { trigger, count, ...after }, { signal });
  const out = { schedules: [], error: null };
  const rest = schedules.slice(0, kMostAsked);
  const askForAll = async () => {
    for (let one; (one = rest.shift()) && !signal.aborted;) {
      try {
        let { times } = await ask(one.schedule.trigger, kFirst);
        if (times.length === kFirst && Date.parse(times.at(-1).at) < end && (isOne || !everyOf(times, kOften)))
          ({ times } = await ask(one.schedule.trigger, kTimes));
        out.schedules.push({ name: one.name, times });
      } catch (error) {
        out.error = error;
      }
    }
  };
  await Promise.all(Array.from({ length: kAtOnce }, askForAll));
  return out;
}

// From one time to the next, where more than `most` of them fall into a day; null where they do not.
function everyOf(times, most) {
  if (times.length <= most) return null;
  const every = (Date.parse(times.at(-1).at) - Date.parse(times[0].at)) / (times.length - 1);
  return every < kDayMs / most ? every : null;
}

// Times by the day of the trigger's own zone, and the schedules that come too often to be written into days.
function arrange(schedules, isOne) {
  const days = new Map();
  const often = [];
  for (const { name, times } of schedules) {
    if (!times.length) continue;
    const every = isOne ? null : everyOf(times, kOften);
    if (every) often.push({ name, every });
    else
      for (const time of times) {
        const key = writtenDay(time.local) || day(Date.parse(time.at));
        if (!days.has(key)) days.set(key, []);
        days
          .get(key)
          .push({
            name,
            time: writtenClock(time.local).replace(/:00$/, ''),
            note: time.note ?? '',
            at: Date.parse(time.at),
            local: time.local,
          });
      }
  }
  for (const list of days.values()) list.sort((a, b) => a.at - b.at);
  return { days, often };
}

function Fire({ fire, isOne }) {
  const title = `${isOne ? '' : `${fire.name}, `}${fire.local}${fire.note ? `: ${fire.note}` : ''}`;
  const inner = html`<b>${fire.time}</b>${!isOne && html`<span><${Name} of=${fire.name} /></span>`}${fire.note && html`<span
      class="hidden-text">${fire.note}</span>`}`;
  return isOne
    ? html`<div class="fire" data-note=${Boolean(fire.note)} title=${title}>${inner}</div>`
    : html`<a class="fire" data-note=${Boolean(fire.note)} title=${title} href=${to('schedules', fire.name)}>${inner}</a>`;
}

// All that is planned for a day.
function DayDialog({ date, fires, close, isOne }) {
  return html`<${Dialog} title=${`${date.date.getDate()} ${months[date.date.getMonth()]}: ${plural(fires.length, 'planned time')}`}
      close=${close}><ol class="day" onClick=${(e) => e.target.closest('a') && close()}>${fires.map((f) => html`<li
      key=${`${f.name}${f.local}`}><b>${f.time}</b>${!isOne && html`<a href=${to('schedules', f.name)}><${Name} of=${f.name} /></a>`}
      ${f.note && html`<span class="dst">${f.note}</span>`}</li>`)}</ol><//>`;
}

function DateCell({ date, fires = [], today, isOne }) {
  const [isOpen, setOpen] = useState(false);
  const most = isOne ? 4 : kMostInADay;
  const shown = fires.length > most ? fires.slice(0, most - 1) : fires;
  const rest = fires.slice(shown.length);
  return html`<div class="date" data-other=${date.isOdd} data-today=${date.key === today} data-past=${date.key < today}>
    <span class="date-number"><time datetime=${date.key}>${date.name}</time>${date.key === today && html`<span
        class="hidden-text"> today</span>`}</span>
    ${shown.map((f) => html`<${Fire} key=${`${f.name}${f.local}`} fire=${f} isOne=${isOne} />`)}
    ${rest.length > 0 && html`<button class="more" aria-label=${`all ${fires.length} of ${date.key}`}
        onClick=${() => setOpen(true)}>+${count(rest.length)}</button>`}
    ${isOpen && html`<${DayDialog} date=${date} fires=${fires} close=${() => setOpen(false)} isOne=${isOne} />`}</div>`;
}

export function Calendar({ schedules, version = 0, isOne = false, title = 'Calendar' }) {
  const now = useNow();
  const [page, setPage] = useState(0);
  const shown = daysOf(now, page);
  // A day before, because a day begins earlier in some zones than here.
  const first = shown[0].date.getTime() - 36 * 3600_000;
  const asked = JSON.stringify(schedules.map((s) => [s.name, s.schedule.trigger]));
  const found = useResource((signal) => loadTimes(schedules, first, isOne, signal), [asked, version, page, shown[0].key]);
  const isCut = found.data?.schedules.some((s) => s.times.length === kTimes);
  const { days, often } = arrange(found.data?.schedules ?? [], isOne);
  return html`<section class="card" aria-labelledby="calendar"><header><h2 id="calendar">${title}</h2><div class="head-actions">
      <span class="muted small">${isOne ? 'in its zone' : 'each in its own zone'}${isOne && isCut && `; the next ${kTimes} times`}</span>
      <button class="quiet square" aria-label="Weeks before" onClick=${() => setPage(page - 1)} disabled=${page === 0}><${Icon}
          name="back" /></button>
      <b aria-live="polite">${spanOf(shown)}</b>
      <button class="quiet square" aria-label="Next weeks" onClick=${() => setPage(page + 1)}><${Icon} name="forward" />
          </button></div></header>
    <${Problem} error=${found.error ?? found.data?.error} />
    <div class="month">${['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'].map((d) => html`<div key=${d} class="weekday">${d}
        </div>`)}
      ${shown.map((date) => html`<${DateCell} key=${date.key} date=${date} fires=${days.get(date.key)} today=${day(now)}
          isOne=${isOne} />`)}</div>
    ${often.length > 0 && html`<div class="often"><span class="muted">Too often for days:</span>${often.map((o) => html`<span
        key=${o.name}><a href=${to('schedules', o.name)}><${Name} of=${o.name} /></a> <span class="muted">about every ${span(o.every)}</span>
        </span>`)}</div>`}
    ${schedules.length > kMostAsked && html`<p class="often muted">The first ${kMostAsked} schedules are shown.</p>`}
  </section>`;
}
