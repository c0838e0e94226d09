/** `tollbridge doctor`: finds problems of this installation before they occur. Each finding says how to fix it. */
import { readConfig } from '../../../runtime/config/config.ts';
import { environmentInFront } from '../../child-environment.ts';
import { type CommonOptions, quietConfigFrom } from '../../context.ts';
import { lookAtChild } from '../../doctor/child.ts';
import { lookAtClock, lookAtKeyFiles, lookAtLog } from '../../doctor/data.ts';
import { type Finding, findingLine } from '../../doctor/finding.ts';
import { lookAtConfig, lookAtNode, lookAtPrograms, lookAtProjectFile, lookAtRules } from '../../doctor/here.ts';
import { lookAtPeers } from '../../doctor/peers.ts';
import { lookAtPort } from '../../doctor/port.ts';
import { lookAtTls } from '../../doctor/tls.ts';
import { lookAtToolServers } from '../../doctor/tool-servers.ts';
import { EXIT } from '../../output/exit-codes.ts';
import { counted } from '../../output/terminal-text.ts';
import { portOf } from '../../port.ts';

export interface DoctorOptions extends CommonOptions {
  readonly port?: string;
  readonly json?: boolean;
}

export async function doctor(command: readonly string[], options: DoctorOptions): Promise<number> {
  const port = options.port === undefined ? undefined : portOf(options.port);
  const findings: Finding[] = [];
  const report = async (look: () => Promise<readonly Finding[]> | readonly Finding[]) => {
    for (const finding of await look()) {
      findings.push(finding);
      process.stdout.write(options.json ? `${JSON.stringify(finding)}\n` : findingLine(finding));
    }
  };
  await report(() => lookAtNode(process.versions.node));
  const { config, finding } = await lookAtConfig(() => quietConfigFrom(options));
  await report(() => [finding]);
  // With a configuration that cannot be read, the rest is checked as if there were none.
  const effective = config ?? (await readConfig({ env: {}, cwd: '/', ...(options.data && { data: options.data }) }));
  if (config) await report(() => lookAtProjectFile(config, options));
  if (config) await report(() => lookAtRules(config));
  if (config) await report(() => lookAtPrograms(config));
  if (config) await report(() => lookAtToolServers(config));
  if (config) await report(() => lookAtPeers(config));
  await report(() => lookAtPort(effective.host, port ?? effective.port, effective.tls !== undefined));
  await report(() => lookAtTls(effective));
  await report(() => lookAtLog(effective));
  await report(() => lookAtKeyFiles(effective));
  await report(() => lookAtClock(effective));
  if (command.length > 0) await report(() => lookAtChild(command, undefined, environmentInFront(effective.vaults)));
  const wrong = findings.filter(({ state }) => state === 'bad').length;
  if (!options.json) {
    process.stdout.write(wrong === 0 ? 'All is well.\n' : `${counted(wrong, 'thing')} to mend.\n`);
  }
  return wrong === 0 ? EXIT.done : EXIT.no;
}
