/** Which version is spoken: asked for on every request but the public ones, before anything else is looked at. */
import { among, equal, list, truth } from '../harness/expect.ts';
import type { Revision } from '../harness/revision.ts';
import { category, each } from '../harness/suite.ts';
import { VERSION_HEADER } from '../harness/wire.ts';

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

export const versions = ({ version: spoken }: Revision) =>
  category('versions', {
    ...each(
      VERSIONED,
      ([method, path]) => `${method} ${path} without a version is 426`,
      async ([method, path], at) => {
        const error = await at.refused('unsupported_protocol_version', method, path, {
          version: null,
          ...(method === 'POST' && { body: {} }),
        });
        truth(
          list(error.details?.supported_versions, 'supported_versions').includes(spoken),
          'this version is not listed',
        );
      },
    ),
    ...each(
      ['', 'agents-protocol-1900-01-01', `${spoken}x`, spoken.toUpperCase(), spoken.slice(-10)],
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
        ['/v1/tasks/task_absent', {}],
      ] as const) {
        const { headers, status } = await at.ask('GET', path, asking);
        equal(headers.get(VERSION_HEADER), spoken, `${path} (${status})`);
      }
    },
    async 'without a version that is known, an answer speaks one that is supported'(at) {
      const { supported_versions } = await at.ok<{ supported_versions: string[] }>('GET', '/v1');
      for (const [path, version] of [
        ['/v1/tasks', 'other'],
        ['/v1', null],
        ['/version', null],
      ] as const) {
        const { headers, body } = await at.ask<{ protocol_version?: string }>('GET', path, { version });
        among(headers.get(VERSION_HEADER), supported_versions, path);
        among(body.protocol_version ?? spoken, supported_versions, `${path}: protocol_version`);
      }
    },
    async '/version and discovery agree'(at) {
      const version = await at.ok<{ object: string; protocol_version: string }>('GET', '/version');
      equal([version.object, version.protocol_version], ['version', spoken], 'object and protocol_version');
      equal((await at.ok<{ current_version: string }>('GET', '/v1')).current_version, spoken, 'current_version');
    },
    async 'discovery names only transports that answer'(at) {
      const { capabilities } = await at.ok<{ capabilities: Record<string, boolean> }>('GET', '/v1');
      for (const name of ['rest', 'sse', 'websocket', 'receipts', 'replay']) {
        truth(typeof capabilities[name] === 'boolean', `capabilities.${name} is not said`);
      }
    },
  });
