/**
 * The files and hosts a finished call touched, as far as its agent reports them. Shell commands report nothing, and nothing is
 * claimed for them.
 */

import { createHash } from 'node:crypto';
import { isAbsolute, relative, resolve } from 'node:path';
import type { Json, JsonObject, NewArtifact, SideEffect } from '../../../../src/index.ts';
import { asText } from '../../../../src/index.ts';
import { toolFields } from '../../harn.ts';
import { listOf, objectOf, textOf, within } from '../../shapes.ts';
import { inputOf, type ReportedCall } from '../../translate.ts';

export interface EffectOptions {
  readonly cwd: string;
  /** Absolute paths written through us in this turn. */
  readonly written: Set<string>;
  readonly evidence: string;
}

export interface Effects {
  readonly effects: readonly SideEffect[];
  readonly files: readonly NewArtifact[];
}

export function effectsOf(call: ReportedCall, { cwd, written }: EffectOptions): Effects {
  const effects: SideEffect[] = [];
  const files: NewArtifact[] = [];
  const claim = (path: string, effect: (shown: string) => SideEffect) => {
    const whole = resolve(cwd, path);
    // A write that is reported twice, or reported after it went through us, is one write.
    if (written.has(whole)) return;
    written.add(whole);
    effects.push(effect(shownPath(cwd, whole)));
  };
  const diffs = listOf(call.content).flatMap((item) => {
    const found = objectOf(item);
    return found?.type === 'diff' ? [found] : [];
  });
  for (const diff of diffs) {
    const path = textOf(diff.path);
    if (!path) continue;
    files.push(diffFile(diff, path));
    claim(path, (shown) => writeOf(shown, diff));
  }
  const paths = listOf(call.locations).flatMap((location) => textOf(within(location, 'path')) ?? []);
  if (call.kind === 'delete') {
    for (const path of paths) claim(path, (shown) => ({ type: 'fs_write', path: shown, operation: 'delete' }));
  }
  if (call.kind === 'move' && paths.length > 0) {
    claim(paths.at(-1) as string, (shown) => ({ type: 'fs_write', path: shown, operation: 'rename' }));
  }
  const { changedPaths } = toolFields(call as JsonObject);
  for (const path of listOf(changedPaths).flatMap((each) => textOf(each) ?? [])) {
    claim(path, (shown) => ({ type: 'fs_write', path: shown, operation: 'modify' }));
  }
  const host = call.kind === 'fetch' ? hostOf(inputOf(call).url) : undefined;
  if (host) effects.push({ type: 'network', destination: host, purpose: call.name ?? call.title ?? 'fetch' });
  return { effects, files };
}

/** A diff may show a fragment; the content is known whole only for a new file. */
function writeOf(path: string, { oldText, newText }: JsonObject): SideEffect {
  const created = oldText === undefined || oldText === null;
  const after = created && typeof newText === 'string' ? sha256(newText) : null;
  return { type: 'fs_write', path, operation: created ? 'create' : 'modify', before_sha256: null, after_sha256: after };
}

function diffFile(diff: JsonObject, path: string): NewArtifact {
  const { oldText = null, newText = null } = diff;
  return {
    kind: 'diff',
    name: path.split('/').at(-1) || path,
    mime_type: 'application/json',
    visibility: 'internal',
    bytes: Buffer.from(JSON.stringify({ path, oldText, newText })),
  };
}

/** Relative to the workspace root inside it, absolute outside. */
export function shownPath(cwd: string, path: string): string {
  const inside = relative(cwd, path);
  return inside === '' || inside.startsWith('..') || isAbsolute(inside) ? path : inside;
}

export function sha256(text: string | Uint8Array): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

function hostOf(url: Json | undefined): string | undefined {
  try {
    return new URL(asText(url)).host || undefined;
  } catch {
    return undefined;
  }
}
