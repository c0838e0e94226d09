/**
 * Rules for the console: the sources in force, a check of edited ones, what they would change in the recorded decisions, and saving
 * them. Saving writes the file that the configuration names, as an editor would; the gateway then reads it like any change of it.
 */

import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { isMap, isScalar, isSeq, parseDocument } from 'yaml';
import type { ComparedDecision, RuleSource, RulesInForce, TestedCase } from '../../console/rule-answers.ts';
import type { RulesService } from '../../console/services.ts';
import { systemClock } from '../../core/clock.ts';
import { recordedDecisions } from '../../core/events/recorded-decisions.ts';
import { eventId, position } from '../../model/events.ts';
import { asFault, Fault } from '../../model/faults.ts';
import type { Pointer } from '../../model/resources.ts';
import { compareDecisions } from '../../policy/compare.ts';
import { type Cases, readCases } from '../../policy/rules/cases.ts';
import { loadPolicies, type Sources } from '../../policy/rules/load.ts';
import { type Problem, problemsFault } from '../../policy/rules/problems.ts';
import type { PolicyChange } from '../../policy/rules/reload.ts';
import type { CoreRuntime } from '../assemble.ts';
import { rulesToCompare } from '../compare-rules.ts';
import type { Config } from '../config/config.ts';
import { FIRST_RULES } from '../config/config.ts';
import { runCases } from '../rule-cases.ts';
import { RULES } from './rules-on-record.ts';

export interface ConsoleRulesDeps {
  readonly core: Pick<CoreRuntime, 'store' | 'log' | 'policy'>;
  readonly config: () => Config;
}

const BUILT_IN = 'built-in rules';
const HISTORY = 50;
/** Each saving in the console is an event of this resource. */
const SAVED = { object: 'configuration', id: 'rules' } as const;
const CASES_SAVED = { object: 'configuration', id: 'rule_cases' } as const;
/** A progress line is sent after this many decisions. */
const PROGRESS = 200;
const MOST_CASES = 1000;

export function consoleRules({ core, config }: ConsoleRulesDeps): RulesService {
  const { store, log, policy } = core;

  async function sources(): Promise<readonly RuleSource[]> {
    const { rules, rulesName, files } = await config().policy.load();
    const inline: RuleSource[] = [];
    if (rules !== undefined) {
      const name = rulesName ?? BUILT_IN;
      const text = typeof rules === 'string' ? rules.trimStart() : await inlineText(name);
      inline.push({ name, text, editable: typeof rules !== 'string', cases: await casesOf(name) });
    }
    const named = files.map(async ({ name, text, restricting }) => ({
      name,
      text,
      editable: !restricting,
      cases: await casesOf(name),
    }));
    return [...inline, ...(await Promise.all(named))];
  }

  /** The sources with one of them replaced. */
  async function edited(name: string, text: string): Promise<Sources> {
    const now = await config().policy.load();
    if (name === (now.rulesName ?? BUILT_IN) && now.rules !== undefined) {
      return { rules: text, rulesName: 'rules.yaml', files: now.files };
    }
    if (!now.files.some((file) => file.name === name)) throw new Fault('not_found', `there are no rules in ${name}`);
    return { ...now, files: now.files.map((file) => (file.name === name ? { ...file, text } : file)) };
  }

  async function check(name: string, text: string): Promise<{ problems: readonly Problem[]; rules: number }> {
    try {
      return { problems: [], rules: (await loadPolicies(await edited(name, text))).ruleCount };
    } catch (thrown) {
      return { problems: problemsOf(thrown, name), rules: 0 };
    }
  }

  async function requireEditable(name: string): Promise<void> {
    const source = (await sources()).find((one) => one.name === name);
    if (source?.editable) return;
    throw new Fault('conflict', 'these rules are not in a file of yours: "tollbridge init" makes one');
  }

  async function note(resource: Pointer, text: string, file: string, by: string): Promise<void> {
    const event = {
      event: 'vendor.tollbridge.note' as const,
      resource,
      actor: by,
      payload: { text, file, by },
    };
    await log.commit({ decide: () => ({ events: [event] }) });
  }

  /** The last event before this time, found by halving: ids are numbers in order. */
  async function cursorBefore(time: number): Promise<string | undefined> {
    const tip = await store.tip({ of: 'all' });
    let [low, high] = [0, tip ? (position(tip) ?? 0) : 0];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const event = await store.event(eventId(middle));
      // An event that is no longer kept is older than those that are.
      if (!event || Date.parse(event.created_at) < time) low = middle;
      else high = middle - 1;
    }
    return low === 0 ? undefined : eventId(low);
  }

  return {
    async inForce(): Promise<RulesInForce> {
      const { ruleCount, version, text, rules } = await loadPolicies(await config().policy.load());
      const history: RulesInForce['history'][number][] = [];
      for (const stream of [RULES, SAVED]) {
        for await (const { created_at: at, payload } of store.read({ stream: { of: 'resource', ...stream } })) {
          // Both streams hold changes of the rules, and an older version may have written less of one.
          const { outcome = 'saved', version: named, rules: count } = payload as unknown as Partial<PolicyChange>;
          const { by = null } = payload as { by?: string };
          history.push({ at, outcome, version: named ?? null, rules: count ?? null, by });
        }
      }
      history.sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0));
      return {
        version,
        in_force: policy.version ?? null,
        count: ruleCount,
        cedar: text,
        ids: rules.map(({ id }) => id),
        sources: await sources(),
        history: history.slice(0, HISTORY),
      };
    },
    check,
    async *compare(name, text, sinceMs, signal): AsyncGenerator<ComparedDecision> {
      const chain = rulesToCompare(await loadPolicies(await edited(name, text)));
      const after = await cursorBefore(Date.parse(systemClock.now()) - sinceMs);
      const tip = await store.tip({ of: 'all' });
      const first = after ? (position(after) ?? 0) : 0;
      const all = Math.max(1, (tip ? (position(tip) ?? 0) : 0) - first);
      const counts = { same: 0, changed: 0, unknown: 0 };
      let seen = '';
      const recorded = async function* () {
        for await (const one of recordedDecisions(store, { stream: { of: 'all' }, ...(after && { after }) })) {
          seen = one.event_id;
          yield one;
        }
      };
      let asked = 0;
      for await (const { kind, action, before, after: now, why } of compareDecisions(recorded(), chain, signal)) {
        counts[kind] += 1;
        asked += 1;
        if (kind !== 'same') {
          yield {
            object: 'difference',
            kind,
            event_id: seen,
            tool: action.tool ?? action.kind,
            target: action.target ?? null,
            actor: action.actor.id,
            before: before.verdict,
            after: now.verdict,
            rule: now.rule_id ?? before.rule_id ?? null,
            why: why ?? '',
          };
        }
        if (asked % PROGRESS === 0)
          yield { object: 'progress', done: ((position(seen) ?? 0) - first) / all, ...counts };
      }
      yield { object: 'summary', done: 1, ...counts };
    },
    async test(name, text, cases) {
      let read: Cases;
      try {
        read = await readCases('cases', cases);
      } catch (thrown) {
        return { problems: problemsOf(thrown, 'cases'), results: [] };
      }
      if (read.cases.length > MOST_CASES) throw new Fault('invalid_request', `at most ${MOST_CASES} cases run here`);
      const results: TestedCase[] = [];
      for await (const { one, decision, wrong } of runCases(read.cases, await loadPolicies(await edited(name, text)))) {
        const { rule_id: rule = null, verdict: got } = decision;
        results.push({ name: one.name, line: one.line, expect: one.expect, got, rule, wrong: wrong ?? null });
      }
      return { problems: [], results };
    },
    async saveCases(name, cases, by) {
      await requireEditable(name);
      // Cases that cannot be read would fail at the next run.
      await readCases('cases', cases);
      const file = casesFile(name);
      await replaceFile(file, cases);
      await note(CASES_SAVED, 'test cases of rules were saved in the console', file, by);
      return { file };
    },
    async save(name, text, by) {
      await requireEditable(name);
      const { problems } = await check(name, text);
      if (problems.length > 0) throw problemsFault(problems);
      const current = await config().policy.load();
      const isInline = current.rules !== undefined && current.rulesName === name;
      await replaceFile(name, isInline ? withRules(await readFile(name, 'utf8'), text) : text);
      // The event that the rules came into force follows; this one says who wanted them.
      await note(SAVED, 'rules were saved in the console', name, by);
      const change = await policy.reload();
      if (change.outcome === 'refused') throw problemsFault(change.errors);
      return { version: change.version ?? null };
    },
  };
}

/** The mistakes that a fault lists. Anything but a mistake in what was written is thrown on. */
function problemsOf(thrown: unknown, file: string): readonly Problem[] {
  const { kind, details, message } = asFault(thrown);
  if (kind !== 'invalid_request') throw thrown;
  // Put there by the loader of rules, with the fault.
  return (details?.problems as unknown as readonly Problem[] | undefined) ?? [{ file, message }];
}

/** Beside the rules: `rules.yaml` has its cases in `rules.cases.yaml`, where `tollbridge policy test` runs them too. */
function casesFile(rules: string): string {
  return `${rules.replace(/\.(ya?ml|cedar|json)$/, '')}.cases.yaml`;
}

async function casesOf(rules: string): Promise<string | null> {
  return rules === BUILT_IN ? null : await readFile(casesFile(rules), 'utf8').catch(() => null);
}

/** `rules` of a configuration file as they are written there, with their comments. */
async function inlineText(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  const found = text === undefined ? undefined : rulesIn(text);
  if (text === undefined || !found) return FIRST_RULES.trimStart();
  const lines = text
    .slice(found.from, found.to)
    .replace(/^\r?\n/, '')
    .split('\n');
  const depths = lines.filter((line) => line.trim() !== '').map((line) => line.length - line.trimStart().length);
  const depth = Math.min(...depths);
  return `${lines
    .map((line) => line.slice(depth))
    .join('\n')
    .trimEnd()}\n`;
}

/** The configuration with other rules; everything else stays byte for byte as it is written. */
function withRules(config: string, rules: string): string {
  if (!isSeq(parseDocument(rules).contents)) throw new Fault('invalid_request', 'rules are a list');
  const found = rulesIn(config);
  if (!found) throw new Fault('conflict', 'the file has no rules any more');
  const indented = rules
    .trimEnd()
    .split('\n')
    .map((line) => (line.trim() === '' ? '' : `  ${line}`))
    .join('\n');
  return `${config.slice(0, found.from)}\n${indented}\n${config.slice(found.to).replace(/^\n/, '')}`;
}

/** The place of the value of `rules`: from the end of its key's line to the end of the list. */
function rulesIn(text: string): { readonly from: number; readonly to: number } | undefined {
  const { contents } = parseDocument(text);
  const pair = isMap(contents) ? contents.items.find(({ key }) => isScalar(key) && key.value === 'rules') : undefined;
  const [key, value] = [pair?.key, pair?.value];
  if (!isScalar(key) || !isSeq(value) || !key.range || !value.range) return undefined;
  const colon = text.indexOf(':', key.range[1]) + 1;
  const line = text.indexOf('\n', colon);
  const from = value.flow || line < 0 || line > value.range[0] ? colon : line;
  return { from, to: value.range[2] };
}

/** Whole or not at all, with the permissions the file had. */
async function replaceFile(path: string, text: string): Promise<void> {
  // A new file is as private as the configuration beside it.
  const { mode } = await stat(path).catch(() => ({ mode: 0o600 }));
  const next = `${path}.${process.pid}.next`;
  try {
    await writeFile(next, text, { mode, flag: 'wx' });
    await rename(next, path);
  } catch (cause) {
    await rm(next, { force: true });
    throw cause;
  }
}
