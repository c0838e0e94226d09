/**
 * Reads and writes files for an agent through the gate, so these acts are held. The content read never enters the log, only its
 * hash. Paths outside the workspace are refused, symbolic links included, unless the configuration leaves them to the rules.
 */

import { mkdir, readFile, rename, stat, unlink, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, normalize, relative } from 'node:path';
import {
  type ActResult,
  asText,
  Fault,
  type HeldEffect,
  type Ids,
  type JsonObject,
  type Sink,
} from '../../../../src/index.ts';
import { realPath } from '../../real-path.ts';
import { numberOf, textOf } from '../../shapes.ts';
import type { UpdateReader } from '../read-updates.ts';
import { sha256, shownPath } from './effects.ts';

interface FilesDeps {
  readonly sink: Sink;
  readonly reader: Pick<UpdateReader, 'servedBy' | 'wrote'>;
  readonly taskId: string;
  readonly cwd: string;
  /** The agent's name for itself. */
  readonly agent: string;
  readonly outside: 'refuse' | 'rules';
  readonly ids: Ids;
}

export interface Files {
  /** The signal fires when the agent has withdrawn the request. */
  read(params: JsonObject, withdrawn: AbortSignal): Promise<JsonObject>;
  write(params: JsonObject, withdrawn: AbortSignal): Promise<JsonObject>;
}

const LARGEST = 32 * 1024 * 1024;

export function createFiles({ sink, reader, taskId, cwd, agent, outside, ids }: FilesDeps): Files {
  let count = 0;

  function pathOf(value: unknown): string {
    const path = textOf(value);
    if (!path || !isAbsolute(path) || path.includes('\0')) {
      throw new Fault('invalid_request', 'path must be an absolute path', { param: '/path' });
    }
    return normalize(path);
  }

  async function requireInside(path: string): Promise<void> {
    if (outside === 'rules') return;
    const root = await realPath(cwd);
    const inside = relative(root, await realPath(path));
    if (inside.startsWith('..') || isAbsolute(inside)) {
      throw new Fault('permission_denied', 'the path lies outside the workspace');
    }
  }

  async function act(
    kind: 'fs.read' | 'fs.write',
    args: JsonObject & { path: string },
    withdrawn: AbortSignal,
    effect: HeldEffect,
  ) {
    count += 1;
    const served = reader.servedBy({ path: args.path });
    const result = await sink.act(
      {
        kind,
        tool: kind,
        tool_call_id: `${taskId}.${kind}${count}`,
        // The real path: a symbolic link must not bypass a rule about the file behind it.
        target: await realPath(args.path),
        arguments: args,
        effect: kind === 'fs.read' ? 'read' : 'write',
        claims: { agent },
        cwd,
        ...(served && { attributes: { linked_to: served.id, linked_by: served.by } }),
      },
      effect,
      withdrawn,
    );
    return unlessRefused(result);
  }

  return {
    async read(params, withdrawn) {
      const path = pathOf(params.path);
      await requireInside(path);
      const [line, limit] = [numberOf(params.line), numberOf(params.limit)];
      let content = '';
      await act('fs.read', { path, ...(line && { line }), ...(limit && { limit }) }, withdrawn, async (args) => {
        const from = pathOf(args.path);
        await requireInside(from);
        if ((await stat(from)).size > LARGEST) throw new Fault('payload_too_large', 'the file is too large to be read');
        const whole = await readFile(from, 'utf8');
        content = excerpt(whole, numberOf(args.line), numberOf(args.limit));
        return { status: 'ok', output: { sha256: sha256(whole), bytes: Buffer.byteLength(whole) } };
      });
      return { content };
    },

    async write(params, withdrawn) {
      const path = pathOf(params.path);
      await requireInside(path);
      if (typeof params.content !== 'string') {
        throw new Fault('invalid_request', 'content must be a text', { param: '/content' });
      }
      await act('fs.write', { path, content: params.content }, withdrawn, async (args) => {
        const to = pathOf(args.path);
        await requireInside(to);
        const text = asText(args.content ?? '');
        const before = await readFile(to).catch((cause) => {
          if (isAbsent(cause)) return undefined;
          throw cause;
        });
        await replace(await realPath(to), text, ids.next('tmp'));
        reader.wrote(to);
        const after_sha256 = sha256(text);
        return {
          status: 'ok',
          output: { sha256: after_sha256, bytes: Buffer.byteLength(text) },
          effects: [
            {
              type: 'fs_write',
              path: shownPath(cwd, to),
              operation: before ? 'modify' : 'create',
              before_sha256: before ? sha256(before) : null,
              after_sha256,
            },
          ],
        };
      });
      return {};
    },
  };
}

/** A refusal is thrown as the protocol's error; a failed tool as its failure. */
export function unlessRefused(result: ActResult): void {
  if (result.kind === 'refused') throw new Fault('policy_violation', result.reason);
  const { status, error, code } = result.result;
  if (status === 'ok') return;
  throw new Fault(code === 'canceled' ? 'client_closed' : 'not_found', error ?? 'it failed without saying why');
}

/** Line numbers begin at one. */
function excerpt(text: string, line: number | undefined, limit: number | undefined): string {
  if (line === undefined && limit === undefined) return text;
  const from = Math.max(0, (line ?? 1) - 1);
  const lines = text.split('\n').slice(from, limit === undefined ? undefined : from + Math.max(0, limit));
  return lines.join('\n');
}

/** Atomic: a concurrent reader sees the old file. */
async function replace(path: string, text: string, suffix: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const beside = `${path}.${suffix}`;
  const mode = (await stat(path).catch(() => undefined))?.mode;
  try {
    await writeFile(beside, text, { flag: 'wx', ...(mode !== undefined && { mode }) });
    await rename(beside, path);
  } catch (cause) {
    await unlink(beside).catch(() => {});
    throw cause;
  }
}

function isAbsent(cause: unknown): boolean {
  return (cause as NodeJS.ErrnoException).code === 'ENOENT';
}
