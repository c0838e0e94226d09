/**
 * Secrets that can be distinguished from every honest text, in all the shapes secrets have, and a look for what is left of
 * them.
 */
import type { JsonObject } from '../../../src/model/schema.ts';

/** Every canary holds this word; no honest text does. */
export const MARK = 'kanari';

export let hatched = 0;
export const hatch = () => `${MARK}${String(++hatched).padStart(4, '0')}`;

/** Known by value: from a vault or an environment. It has no look of its own. */
export const KNOWN = `the ${MARK} in the mine`;

/** Recognised by their looks or by the name they go by. */
export const looks = {
  bearer: () => `Bearer ${hatch()}a9Z8y7X6w5V4u3`,
  provider: () => `sk-${hatch()}0123456789ABCDEF`,
  github: () => `ghp_${hatch()}abcdefghij0123456789`,
  signed: () => `eyJhbGciOi${hatch()}.eyJzdWIi${hatch()}.c2ln${hatch()}`,
  address: () => `https://hook:${hatch()}@hooks.example.com/in`,
  parameter: () => `https://hooks.example.com/in?token=${hatch()}&x=1`,
  variable: () => `DB_PASSWORD=${hatch()} make`,
  flag: () => `login --password ${hatch()}`,
  header: () => `x-api-key: ${hatch()}99`,
  known: () => KNOWN,
  coded: () => Buffer.from(`user ${KNOWN} end`).toString('base64'),
  percent: () => encodeURIComponent(KNOWN),
};

export const sentence = () =>
  `see ${Object.values(looks)
    .map((look) => look())
    .join(' and ')} there`;

const headers = () => ({
  Authorization: `Basic ${Buffer.from(`u:${hatch()}`).toString('base64')}`,
  'X-Api-Key': hatch(),
  Cookie: `sid=${hatch()}`,
});

const env = () => ({ DB_PASSWORD: hatch(), AWS_SECRET_ACCESS_KEY: hatch(), GITHUB_TOKEN: hatch(), HOME: '/root' });

export const bag = (): JsonObject => ({
  note: sentence(),
  headers: headers(),
  env: env(),
  list: [{ name: 'password', value: hatch() }, ['--token', hatch()], { nested: { client_secret: hatch() } }],
  inner: JSON.stringify({ password: hatch(), access_token: hatch() }),
  hook: looks.address(),
  [`key ${looks.provider()}`]: 1,
});

/** The mark as it would look in plain text, inside percent escapes, in base64 at any offset, and in hex. */
const TRACES = [
  MARK,
  MARK.toUpperCase(),
  Buffer.from(MARK).toString('hex'),
  ...[0, 1, 2].flatMap((offset) => {
    const coded = Buffer.concat([Buffer.alloc(offset), Buffer.from(MARK)]).toString('base64');
    return [coded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + MARK.length) * 8) / 6))];
  }),
];

export function expectClean(where: string, content: string): void {
  for (const trace of TRACES) {
    const at = content.indexOf(trace);
    if (at >= 0) throw new Error(`${where} holds ${JSON.stringify(content.slice(Math.max(0, at - 200), at + 60))}`);
  }
}
