/**
 * Whether a program is there before anyone waits for it. Agents and servers are started when they are first needed, which may be
 * long after a misspelled name could have been noticed.
 */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import type { Config } from '../config.ts';
import { Fault } from '../model/faults.ts';
import type { JsonObject } from '../model/schema.ts';

/** Throws what starting it would. */
export async function requireProgram([program = '']: readonly string[], cwd = process.cwd()): Promise<void> {
  if (await isThere(program, cwd)) return;
  throw new Fault('upstream_unavailable', `could not start ${program}: there is no such command`);
}

export interface Missing {
  /** `agents.coder`: where the configuration speaks of it. */
  readonly at: string;
  readonly program: string;
}

/** Programs the configuration wants to start and that are not there. */
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
  // There a name stands for several files, by rules of the system's own; it is left to say so itself.
  if (process.platform === 'win32') return true;
  const places = program.includes('/')
    ? [isAbsolute(program) ? program : resolve(cwd, program)]
    : (process.env.PATH ?? '').split(delimiter).map((dir) => join(dir || '.', program));
  for (const place of places) {
    const runs = await access(place, constants.X_OK).then(
      async () => (await stat(place)).isFile(),
      () => false,
    );
    if (runs) return true;
  }
  return false;
}
