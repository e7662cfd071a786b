// The queues of the daemon's own, by which it tells people of trouble: lists leave them out until they are asked for.
import { plural } from './format.js';
import { html, useEffect, useState } from './lib.js';

const kPrefix = 'argiope.';
export const isOwn = (name) => name.startsWith(kPrefix);

const kKept = 'argiope.own';
const listeners = new Set();
function kept() {
  try {
    return localStorage.getItem(kKept) === 'shown';
  } catch {
    return false;
  }
}
function keep(shows) {
  try {
    if (shows) localStorage.setItem(kKept, 'shown');
    else localStorage.removeItem(kKept);
  } catch {
    // Storage is switched off; it lasts until the page is loaded again.
  }
}
let shown = kept();

// Whether they are shown, the same on all pages, and what turns it: [shows, set].
export function useOwn() {
  const [shows, set] = useState(shown);
  useEffect(() => {
    listeners.add(set);
    return () => listeners.delete(set);
  }, []);
  const turn = (on) => {
    shown = on;
    keep(on);
    for (const tell of listeners) tell(on);
  };
  return [shows, turn];
}

// Only where there is one among `names`.
export function OwnSwitch({ names, shows, set }) {
  const n = names.filter(isOwn).length;
  return n > 0 && html`<label class="check own-switch" title="Queues whose names begin with argiope."><input type="checkbox" role="switch"
      checked=${shows} onChange=${(e) => set(e.target.checked)} />Show the daemon’s own ${plural(n, 'queue')}</label>`;
}
