/** A real browser, from what npm ships. Opened once per file of tests, closed with it. */
import chromium from '@sparticuz/chromium';
import { type Browser, chromium as driver } from 'playwright-core';
import { afterAll } from 'vitest';

let opened: Promise<Browser> | undefined;

/** One page in a context of its own, as someone on a small screen would have it. */
export async function openPage(options: { readonly dark?: boolean } = {}) {
  opened ??= launch();
  const context = await (await opened).newContext({
    viewport: { width: 420, height: 800 },
    colorScheme: options.dark ? 'dark' : 'light',
  });
  return await context.newPage();
}

async function launch(): Promise<Browser> {
  return await driver.launch({ executablePath: await chromium.executablePath(), args: chromium.args, headless: true });
}

afterAll(async () => {
  await (await opened)?.close();
});
