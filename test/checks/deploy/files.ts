/** The files of `examples/deploy`, read as the programs that use them read them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { PROJECT } from '../../support/process/project.ts';

export const DEPLOY = join(PROJECT, 'examples/deploy');

export const textOf = (file: string): string => readFileSync(join(DEPLOY, file), 'utf8');

/** `unknown` would make every look into it a cast. */
// biome-ignore lint/suspicious/noExplicitAny: the schemas of the tests that read it say what it is
export const yamlOf = (file: string): any => parse(textOf(file));

export interface Instruction {
  readonly name: string;
  readonly rest: string;
}

/** The stages of the image, each with its instructions in order. */
export function stagesOf(dockerfile: string): readonly (readonly Instruction[])[] {
  const stages: Instruction[][] = [];
  for (const line of dockerfile.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, name, rest] = /^([A-Z]+) (.+)$/.exec(line) ?? [];
    if (!name || !rest || rest.endsWith('\\')) throw new Error(`not an instruction on one line: ${line}`);
    if (name === 'FROM') stages.push([]);
    stages.at(-1)?.push({ name, rest });
  }
  return stages;
}

/** What `name` says in a stage, in order. */
export const said = (stage: readonly Instruction[] | undefined, name: string): readonly string[] =>
  (stage ?? []).filter((each) => each.name === name).map(({ rest }) => rest);

/** Sections of a unit; a key that stands twice has two values. */
export function sectionsOf(unit: string): ReadonlyMap<string, ReadonlyMap<string, readonly string[]>> {
  const sections = new Map<string, Map<string, string[]>>();
  let section: Map<string, string[]> | undefined;
  for (const line of unit.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, title] = /^\[(\w+)\]$/.exec(line) ?? [];
    if (title) {
      section = new Map();
      sections.set(title, section);
      continue;
    }
    const [, key, value = ''] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (!key || !section) throw new Error(`not a line of a unit: ${line}`);
    section.set(key, [...(section.get(key) ?? []), value]);
  }
  return sections;
}
