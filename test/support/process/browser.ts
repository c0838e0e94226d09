/** A real browser, from what npm ships. Opened once per file of tests; `close-browser.ts` closes it with the file. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import chromium from '@sparticuz/chromium';
import { type Browser, chromium as driver, type Page } from 'playwright-core';

let opened: Promise<Browser> | undefined;

export interface PageOptions {
  readonly width?: number;
  readonly height?: number;
}

/** One page in a context of its own; unless a size is given, as someone on a small screen would have it. */
export async function openPage({ width = 420, height = 800 }: PageOptions = {}) {
  opened ??= launch();
  const context = await (await opened).newContext({ viewport: { width, height }, colorScheme: 'light' });
  return await context.newPage();
}

/** The package is made for small servers: one process for everything, and no same-origin policy. A person's browser has both. */
const UNLIKE_A_PERSONS =
  /single-process|web-security|insecure-content|site-isolation|no-zygote|in-process-gpu|disable-features|swiftshader|use-gl/;

async function launch(): Promise<Browser> {
  const args = chromium.args.filter((arg) => !UNLIKE_A_PERSONS.test(arg));
  return await driver.launch({ executablePath: await chromium.executablePath(), args, headless: true });
}

/** Where `PICTURES` names a folder, the page as it is now, small enough to be committed. */
export async function picture(page: Page, name: string): Promise<void> {
  if (!process.env.PICTURES) return;
  const protocol = await page.context().newCDPSession(page);
  // The driver's own screenshots are PNG or JPEG, which take three times the space.
  const { data } = await protocol.send('Page.captureScreenshot', { format: 'webp', quality: 80 });
  await protocol.detach();
  await writeFile(join(process.env.PICTURES, `${name}.webp`), Buffer.from(data, 'base64'));
}

export async function closeBrowser(): Promise<void> {
  const last = await opened;
  opened = undefined;
  await last?.close();
}
