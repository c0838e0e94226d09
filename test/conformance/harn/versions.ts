/** Which version is spoken: asked for on every request but the public ones, before anything else is looked at. */
import { equal, truth } from './expect.ts';
import { category, each } from './suite.ts';
import { VERSION, VERSION_HEADER } from './wire.ts';

const VERSIONED = [
  ['GET', '/v1/tasks'],
  ['GET', '/v1/sessions'],
  ['GET', '/v1/events'],
  ['POST', '/v1/sessions'],
  ['POST', '/v1/workspaces'],
  ['GET', '/v1/events/stream'],
  ['GET', '/v1/tasks/task_absent'],
] as const;
const PUBLIC = ['/v1', '/v1/agent-card', '/health', '/version', '/openapi.json'];

export const versions = category('versions', {
  ...each(
    VERSIONED,
    ([method, path]) => `${method} ${path} without a version is 426`,
    async ([method, path], at) => {
      const error = await at.refused('unsupported_protocol_version', method, path, {
        version: null,
        ...(method === 'POST' && { body: {} }),
      });
      equal(error.details?.supported_versions, [VERSION], 'supported_versions');
    },
  ),
  ...each(
    ['', 'agents-protocol-1900-01-01', `${VERSION}x`, VERSION.toUpperCase(), '2026-04-25'],
    (version) => `the version ${JSON.stringify(version)} is 426`,
    async (version, at) => {
      await at.refused('unsupported_protocol_version', 'GET', '/v1/tasks', { version });
    },
  ),
  async 'a wrong version is told before the missing token'(at) {
    await at.refused('unsupported_protocol_version', 'GET', '/v1/tasks', { version: 'other', as: null });
  },
  ...each(
    PUBLIC,
    (path) => `${path} answers without version and token`,
    async (path, at) => {
      const { status } = await at.ask('GET', path, { version: null, as: null });
      equal(status, 200, 'status');
    },
  ),
  async 'every answer says which version it speaks'(at) {
    for (const [path, asking] of [
      ['/v1', {}],
      ['/v1/tasks', {}],
      ['/v1/tasks', { as: null }],
      ['/v1/tasks', { version: 'other' }],
      ['/v1/tasks/task_absent', {}],
    ] as const) {
      const { headers, status } = await at.ask('GET', path, asking);
      equal(headers.get(VERSION_HEADER), VERSION, `${path} (${status})`);
    }
  },
  async '/version and discovery agree'(at) {
    const version = await at.ok<{ object: string; protocol_version: string }>('GET', '/version', { version: null });
    equal(version.object, 'version', 'object');
    equal(version.protocol_version, VERSION, 'protocol_version');
  },
  async 'discovery names only transports that answer'(at) {
    const { capabilities } = await at.ok<{ capabilities: Record<string, boolean> }>('GET', '/v1');
    for (const name of ['rest', 'sse', 'websocket', 'receipts', 'replay']) {
      truth(typeof capabilities[name] === 'boolean', `capabilities.${name} is not said`);
    }
  },
});
