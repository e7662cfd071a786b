// Says in which zone a schedule counts whose trigger names none.

const LOCAL = ["cron", "calendar"]; // triggers of times of day
const EXAMPLE = '{"type": "cron", "expression": "30 3 * * *", "zone": "Europe/Berlin"}';

// A sentence; undefined where the trigger names its zone, or needs none.
export function aboutZone(name, trigger) {
  if (namesItsZone(trigger)) return undefined;
  return `schedule ${JSON.stringify(name)} counts in UTC, since its trigger names no zone; ${EXAMPLE} names one`;
}

function namesItsZone(trigger) {
  if (typeof trigger === "string") return /^\s*(@every\s|(CRON_)?TZ=)/.test(trigger);
  if (trigger === null || typeof trigger !== "object" || trigger.zone !== undefined) return true;
  const { type, dialect, expression, triggers } = trigger;
  if (type === "and" || type === "or") return !Array.isArray(triggers) || triggers.every(namesItsZone);
  if (!LOCAL.includes(type) || dialect === "systemd") return true; // whose expressions have it in themselves
  return typeof expression === "string" && namesItsZone(expression);
}
