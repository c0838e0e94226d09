/** `tollbridge doctor`: looks for what could go wrong here before it does. Each finding says how to mend it. */
import { readConfig } from '../config.ts';
import { environmentInFront } from './child-environment.ts';
import { type CommonOptions, quietConfigFrom } from './context.ts';
import { lookAtChild } from './doctor/child.ts';
import { lookAtClock, lookAtKeyFiles, lookAtLog } from './doctor/data.ts';
import type { Finding } from './doctor/finding.ts';
import { lookAtConfig, lookAtNode, lookAtPrograms, lookAtProjectFile, lookAtRules } from './doctor/here.ts';
import { lookAtPort } from './doctor/port.ts';
import { EXIT } from './exit-codes.ts';
import { counted, plain } from './plain.ts';
import { portOf } from './port.ts';

export interface DoctorOptions extends CommonOptions {
  readonly port?: string;
  readonly json?: boolean;
}

export async function doctor(command: readonly string[], options: DoctorOptions): Promise<number> {
  const port = options.port === undefined ? undefined : portOf(options.port);
  const findings: Finding[] = [];
  const tell = async (look: () => Promise<readonly Finding[]> | readonly Finding[]) => {
    for (const finding of await look()) {
      findings.push(finding);
      process.stdout.write(options.json ? `${JSON.stringify(finding)}\n` : line(finding));
    }
  };
  await tell(() => lookAtNode(process.versions.node));
  const { config, finding } = await lookAtConfig(() => quietConfigFrom(options));
  await tell(() => [finding]);
  // With a configuration that cannot be read, the rest is looked at as if there were none.
  const house = config ?? (await readConfig({ env: {}, cwd: '/', ...(options.data && { data: options.data }) }));
  if (config) await tell(() => lookAtProjectFile(config, options));
  if (config) await tell(() => lookAtRules(config));
  if (config) await tell(() => lookAtPrograms(config));
  await tell(() => lookAtPort(house.host, port ?? house.port));
  await tell(() => lookAtLog(house));
  await tell(() => lookAtKeyFiles(house.dataDir));
  await tell(() => lookAtClock(house));
  if (command.length > 0) await tell(() => lookAtChild(command, undefined, environmentInFront(house.vaults)));
  const wrong = findings.filter(({ state }) => state === 'bad').length;
  if (!options.json) {
    process.stdout.write(wrong === 0 ? 'All is well.\n' : `${counted(wrong, 'thing')} to mend.\n`);
  }
  return wrong === 0 ? EXIT.done : EXIT.no;
}

const MARKS = { ok: 'ok  ', warn: 'note', bad: 'BAD ' } as const;

function line({ check, state, says, fix }: Finding): string {
  return `${MARKS[state]}  ${check.padEnd(9)}  ${plain(says)}\n${fix ? `${' '.repeat(17)}fix: ${plain(fix)}\n` : ''}`;
}
