// The place in the dashboard: "#/jobs/7?queue=mail". Behind "#", so that any server and proxy that serves "/" will do.
import { useEffect, useState } from './lib.js';

const decode = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

// {page, arg, params}: {"jobs", "7", {queue: "mail"}}.
export function here() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  const slash = path.indexOf('/');
  const page = slash < 0 ? path : path.slice(0, slash);
  const arg = slash < 0 ? '' : decode(path.slice(slash + 1));
  return { page: page || 'overview', arg, params: Object.fromEntries(new URLSearchParams(query)) };
}

export function to(page, arg = '', params = {}) {
  const given = Object.entries(params).filter(([, v]) => v != null && v !== '');
  const query = given.length ? `?${new URLSearchParams(given)}` : '';
  return `#/${page}${arg !== '' ? `/${encodeURIComponent(arg)}` : ''}${query}`;
}

export function go(href, { replace = false } = {}) {
  if (href === location.hash) return;
  if (!replace) {
    location.hash = href;
    return;
  }
  history.replaceState(null, '', href);
  window.dispatchEvent(new HashChangeEvent('hashchange'));
}

export function usePlace() {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const moved = () => setPlace(here());
    window.addEventListener('hashchange', moved);
    return () => window.removeEventListener('hashchange', moved);
  }, []);
  return place;
}
