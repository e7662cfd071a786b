// Debian's Chromium, without anything that talks to the world.
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
export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags });

// Ends what tests have opened. A page asks its daemon again and again: handlers of routes may be under way, and their answers are no
// matter any more.
export async function closeContexts(browser) {
  for (const context of browser?.contexts() ?? []) {
    await Promise.all(context.pages().map((page) => page.unrouteAll({ behavior: 'ignoreErrors' })));
    await context.close();
  }
}
