/** A page of a protocol as a partner reads it: the call that it shows, and a gateway with a key as the page says to make one. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openApiKeys } from '../../../src/auth/api-keys.ts';
import { PRESETS, type Preset } from '../../../src/auth/presets.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { startGateway } from '../../../src/runtime/gateway.ts';
import { aDirectory } from './cli.ts';
import { configIn } from './config-in.ts';
import { PROJECT } from './project.ts';

export const readPage = (name: string): Promise<string> => readFile(join(PROJECT, 'docs', name), 'utf8');

const RULES =
  '[{ id: reads, when: { effect: read }, then: allow }, { id: mail, when: { tool: send_mail }, then: ask }]';

/** As `keys create partner --for <preset> --scope <more>` makes the key. */
export async function gatewayWithKey(preset: string, ...more: readonly string[]) {
  const dir = await aDirectory();
  await writeFile(join(dir, 'tollbridge.yaml'), `demo: true\nrules: ${RULES}\n`);
  const gateway = await startGateway(await configIn(dir, { data: join(dir, 'data'), port: 0 }));
  onTestFinished(() => gateway.close());
  const { scopes, doors, kind } = PRESETS.get(preset) as Preset;
  const actor = { id: 'partner', kind, scopes: [...scopes, ...more], doors: [...(doors ?? [])] };
  const { key } = await openApiKeys(join(dir, 'data'), systemClock).create({ name: 'partner', actor });
  return { url: gateway.url, token: key };
}

/** The headers and the body that the example of a page sends. */
export function exampleCall(page: string) {
  const block = /```bash\ncurl -s (\S+)([\s\S]*?) -d '([\s\S]*?)'\n```/.exec(page);
  const [, address = '', flags = '', body = '{}'] = block ?? [];
  const headers = [...flags.matchAll(/-H ["']([^:]+): ([^"']+)["']/g)].map(([, name = '', value = '']) => [
    name,
    value,
  ]);
  return { path: new URL(address).pathname, headers: Object.fromEntries(headers) as Record<string, string>, body };
}
