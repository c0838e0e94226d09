/** Runs before each file of browser tests, in a process that many of them share: a browser ends with its file. */
import { afterAll } from 'vitest';
import { closeBrowser } from './browser.ts';

afterAll(closeBrowser);
