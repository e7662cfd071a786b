// Debian's Chromium without windows, and without anything that talks to the world. Where its package is not there, Chromium itself.
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
// undefined: there is none.
export const program = process.env.CHROMIUM ?? ['/usr/lib/chromium/chromium-headless-shell', '/usr/bin/chromium'].find(existsSync);

export const launch = () => chromium.launch({ executablePath: program, args: flags });

// Ends what tests have opened. A page asks its daemon again and again: handlers of routes may be under way, and their answers are no
// matter any more.
export async function closeContexts(browser) {
  for (const context of browser?.contexts() ?? []) {
    await Promise.all(context.pages().map((page) => page.unrouteAll({ behavior: 'ignoreErrors' })));
    await context.close();
  }
}
