/**
 * Checks that a program exists before it is needed. Agents and servers are started on first use, which may be long
 * after a misspelled name could have been reported.
 */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { Fault } from '../model/faults.ts';
import type { JsonObject } from '../model/schema.ts';
import type { Config } from '../runtime/config/config.ts';

/** Throws the same fault as starting it would. */
export async function requireProgram([program = '']: readonly string[], cwd = process.cwd()): Promise<void> {
  if (await isThere(program, cwd)) return;
  throw new Fault('upstream_unavailable', `could not start ${program}: there is no such command`);
}

interface Missing {
  /** `agents.coder`: its path in the configuration. */
  readonly at: string;
  readonly program: string;
}

/** Programs the configuration starts and that do not exist. */
export async function missingPrograms({ agents, tools, harnesses }: Config): Promise<readonly Missing[]> {
  const missing: Missing[] = [];
  for (const [kind, parts] of Object.entries({ agents, tools, harnesses })) {
    for (const [name, sections] of Object.entries(parts)) {
      for (const section of Object.values(sections) as JsonObject[]) {
        const [program] = Array.isArray(section.command) ? section.command : [];
        const cwd = typeof section.cwd === 'string' ? section.cwd : undefined;
        if (typeof program === 'string' && !(await isThere(program, cwd)))
          missing.push({ at: `${kind}.${name}`, program });
      }
    }
  }
  return missing;
}

async function isThere(program: string, cwd = process.cwd()): Promise<boolean> {
  // On Windows a name stands for several files, by the system's own rules; starting it reports a missing one.
  if (process.platform === 'win32') return true;
  const candidates = program.includes('/')
    ? [isAbsolute(program) ? program : resolve(cwd, program)]
    : (process.env.PATH ?? '').split(delimiter).map((dir) => join(dir || '.', program));
  for (const candidate of candidates) {
    const runs = await access(candidate, constants.X_OK).then(
      async () => (await stat(candidate)).isFile(),
      () => false,
    );
    if (runs) return true;
  }
  return false;
}
