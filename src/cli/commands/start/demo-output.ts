/** The demo's output: on standard output for people, or on standard error when standard output is for programs. */
import type { AskRecord, PendingAct } from '../../../model/asks.ts';
import type { CoreEvent } from '../../../model/events.ts';
import { VERSION } from '../../../model/version.ts';
import type { Terminal } from '../../confirm.ts';
import { createNarrator } from '../../output/event-lines.ts';
import { folded } from '../../output/folding.ts';
import { brief, briefArguments, eventNumber } from '../../output/terminal-text.ts';
import { quoted } from '../../own-name.ts';

export interface DemoOutput {
  readonly terminal: Terminal;
  begin(): void;
  listens(url: string, token: string | undefined, consoleLink: string | undefined): void;
  event(event: CoreEvent): void;
  question(ask: AskRecord, act: PendingAct): void;
  answeredByOption(word: string): void;
  answeredElsewhere(): void;
  notAnswered(): void;
  interrupted(): void;
  end(event: CoreEvent, files: string): Promise<void>;
}

/** Column in which the text of an event begins. */
const EVENT_INDENT = '  event 123  completed  '.length;

export function createDemoOutput({ dir, name, json }: { dir: string; name: string; json: boolean }): DemoOutput {
  const narrate = createNarrator();
  const output = json ? process.stderr : process.stdout;
  const width = output.isTTY ? output.columns : undefined;
  // Indented lines are commands, to be typed or copied, and are not folded.
  const say = (...lines: readonly string[]) =>
    output.write(`${lines.map((line) => (/^ {2}/.test(line) ? line : folded(line, width))).join('\n')}\n`);
  const here = `${name} --data ${quoted(dir)}`;
  let http: { readonly url: string; readonly token: string | undefined } | undefined;

  return {
    terminal: { input: process.stdin, output },
    begin() {
      say(
        `tollbridge ${VERSION} demo: a built-in agent and its tools. Nothing leaves this machine; no keys, no network.`,
        `Files: ${dir}`,
        '',
      );
    },
    listens(url, token, consoleLink) {
      http = { url, token };
      say(
        `listens on ${url}${token ? `  (token ${token})` : ''}`,
        ...(consoleLink ? ['watch it, and answer, in the console:', `  ${consoleLink}`] : []),
        '',
      );
    },
    event(event) {
      if (json) process.stdout.write(`${JSON.stringify(event)}\n`);
      const line = json ? undefined : narrate(event);
      if (!line) return;
      const text = `  event ${eventNumber(event.id).padEnd(3)}  ${line.word.padEnd(9)}  ${line.text}`;
      output.write(`${folded(text, width, EVENT_INDENT)}\n`);
    },
    question(ask, act) {
      const tool = brief(act.tool ?? act.kind);
      say(
        '',
        `The agent asks to run ${tool} (${briefArguments(act.arguments, Number.POSITIVE_INFINITY)}). The call is held until you answer.`,
        `  from another terminal:  ${here} approve ${ask.id}`,
        `                     or:  ${here} deny ${ask.id} "why not"`,
        ...(http ? [`  over HTTP:              ${curl(http, ask.id)}`] : []),
      );
    },
    answeredByOption: (word) => say(`Answered by --${word}.`, ''),
    answeredElsewhere: () => say('', 'Answered elsewhere.', ''),
    notAnswered: () =>
      say('', 'Standard input is not a terminal, so the question is denied. Use --yes, --no or --wait in scripts.', ''),
    interrupted() {
      say('', 'Stopped. The approval stays pending. To continue:', `  ${name} demo --data ${quoted(dir)}`);
    },
    async end(event, files) {
      const receipt = event.payload.outcome as { receipt_id?: string } | undefined;
      if (json) {
        const result = {
          object: 'demo',
          task_id: event.task_id,
          receipt_id: receipt?.receipt_id ?? null,
          data: dir,
          files,
        };
        process.stdout.write(`${JSON.stringify(result)}\n`);
        return;
      }
      const file = quoted(`${files}/receipts.jsonl`);
      say(
        '',
        'The signed receipt lists each act, the rule that decided it, and who approved or denied it. Verify it:',
        `  ${name} verify ${quoted(files)}`,
        'Change one byte and verify again; verification names the changed record:',
        `  sed -i.bak s/send_mail/send_nail/ ${file}`,
        `  ${name} verify ${quoted(files)}`,
        'Print the task and the log:',
        `  ${here} task ${event.task_id}`,
        `  ${here} log`,
      );
    },
  };
}

function curl({ url, token }: { url: string; token: string | undefined }, askId: string): string {
  const headers = [
    `-H 'authorization: Bearer ${token ?? 'TOKEN'}'`,
    "-H 'harn-agents-protocol-version: agents-protocol-2026-04-25'",
    "-H 'content-type: application/json'",
  ].join(' ');
  return `curl ${headers} -d '{"approved":true}' ${url}/v1/permission-requests/${askId}/respond`;
}
