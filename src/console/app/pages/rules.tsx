/** The rules in force, an editor with the errors of `policy check`, and what the edited rules would have decided. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ApiError, all, call, failure, headers, holds, type Me } from '../api.ts';
import { Link } from '../router.tsx';
import { str, VERDICT_WORDS } from '../rows.ts';
import { Badge, Block, dayAndTime, Empty, Line, Title, Trouble, useLoad } from '../ui.tsx';

interface Source {
  readonly name: string;
  readonly text: string;
  readonly editable: boolean;
}
interface InForce {
  readonly version: string;
  readonly in_force: string | null;
  readonly count: number;
  readonly cedar: string;
  readonly ids: readonly string[];
  readonly sources: readonly Source[];
  readonly history: readonly {
    readonly at: string;
    readonly outcome: string;
    readonly version: string | null;
    readonly rules: number | null;
    readonly by: string | null;
  }[];
}
interface Problem {
  readonly file?: string;
  readonly rule?: string;
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
}
interface Difference {
  readonly object: 'difference';
  readonly kind: string;
  readonly event_id: string;
  readonly tool: string;
  readonly target: string | null;
  readonly actor: string;
  readonly before: string;
  readonly after: string;
  readonly rule: string | null;
}
interface Progress {
  readonly object: 'progress' | 'summary';
  readonly done: number;
  readonly same: number;
  readonly changed: number;
  readonly unknown: number;
}

export function Rules({ me, query }: { readonly me: Me; readonly query: URLSearchParams }) {
  const { value, error, again } = useLoad(() => call<InForce>('/console/api/rules'), 'rules');
  if (error)
    return (
      <div class="page">
        <Empty title="The rules are not shown to this sign-in" />
      </div>
    );
  if (!value) return <div class="page" aria-busy="true" />;
  return (
    <div class="page">
      <Title note={`${value.count} rules · version ${(value.in_force ?? '').slice(7, 19)}`}>Rules</Title>
      <div class="stack">
        <Editor me={me} rules={value} wanted={query.get('rule') ?? ''} saved={again} />
        <Grants me={me} />
        <section class="card">
          <h2>Changes of the rules</h2>
          <table>
            <tbody>
              {value.history.map(({ at, outcome, version, rules, by }) => (
                <tr key={`${at} ${outcome}`}>
                  <td>{dayAndTime(at)}</td>
                  <td>
                    <Badge tone={outcome === 'refused' ? 'bad' : outcome === 'saved' ? 'info' : 'good'}>
                      {outcome}
                    </Badge>
                  </td>
                  <td>{by ? <Line text={`by ${by}`} /> : `${rules ?? 0} rules`}</td>
                  <td class="mono soft">{(version ?? '').slice(7, 19)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
        <details class="card">
          <summary>The rules as they are evaluated (Cedar)</summary>
          <Block text={value.cedar} />
        </details>
      </div>
    </div>
  );
}

function Editor({
  me,
  rules,
  wanted,
  saved,
}: {
  readonly me: Me;
  readonly rules: InForce;
  readonly wanted: string;
  readonly saved: () => void;
}) {
  const [name, setName] = useState(rules.sources[0]?.name ?? '');
  const source = rules.sources.find((one) => one.name === name) ?? rules.sources[0];
  const [text, setText] = useState(source?.text ?? '');
  const [problems, setProblems] = useState<readonly Problem[]>([]);
  const [state, setState] = useState('');
  const [trouble, setTrouble] = useState<unknown>();
  const field = useRef<HTMLTextAreaElement>(null);
  const changed = text !== source?.text;

  useEffect(() => setText(source?.text ?? ''), [source?.text, name]);
  useEffect(() => {
    const at = wanted ? text.indexOf(wanted) : -1;
    if (at >= 0) field.current?.setSelectionRange(at, at + wanted.length);
  }, [wanted]);
  useEffect(() => {
    if (!changed || !source) return setProblems([]);
    const timer = setTimeout(() => {
      call<{ problems: readonly Problem[] }>('/console/api/rules/check', { json: { name: source.name, text } }).then(
        (found) => setProblems(found.problems),
        setTrouble,
      );
    }, 300);
    return () => clearTimeout(timer);
  }, [text, name]);

  const save = async () => {
    setTrouble(undefined);
    setState('saving');
    try {
      await call('/console/api/rules', { method: 'PUT', json: { name: source?.name, text } });
      setState('saved');
      saved();
    } catch (thrown) {
      setState('');
      const found =
        thrown instanceof ApiError ? (thrown.details.problems as readonly Problem[] | undefined) : undefined;
      if (found) setProblems(found);
      setTrouble(thrown);
    }
  };

  if (!source) return <Empty title="There are no rules" />;
  return (
    <section class="card">
      <h2>
        {rules.sources.length > 1 ? (
          <select aria-label="File" value={name} onChange={(event) => setName(event.currentTarget.value)}>
            {rules.sources.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        ) : (
          <Line text={source.name} />
        )}
      </h2>
      <textarea
        ref={field}
        class="code"
        aria-label="Rules"
        spellcheck={false}
        rows={Math.min(30, Math.max(10, text.split('\n').length + 1))}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setState('');
        }}
      />
      <Completions field={field} text={text} put={setText} />
      <ul class="problems" aria-live="polite">
        {problems.map((problem, at) => (
          <li key={String(at)} class="bad">
            {problem.line ? `${problem.line}:${problem.column ?? 1} ` : ''}
            <Line text={[problem.rule, problem.message].filter(Boolean).join(': ')} />
          </li>
        ))}
      </ul>
      <Trouble thrown={trouble} />
      <div class="choice">
        {state === 'saved' && (
          <p class="good" role="status">
            Saved, and in force.
          </p>
        )}
        {changed && (
          <button type="button" onClick={() => setText(source.text)}>
            Discard changes
          </button>
        )}
        {me.role === 'admin' && source.editable && (
          <button
            type="button"
            class="primary"
            disabled={!changed || problems.length > 0 || state === 'saving'}
            onClick={() => void save()}
          >
            Save
          </button>
        )}
      </div>
      {!source.editable && (
        <p class="soft">
          These rules are not in a configuration file of yours. "tollbridge init" makes one; until then they can be
          tried here and not saved.
        </p>
      )}
      <WhatWouldChange name={source.name} text={text} broken={problems.length > 0} />
    </section>
  );
}

const WORDS = [
  'id:',
  'when:',
  'then:',
  'say:',
  'to:',
  'unless:',
  'allow',
  'ask',
  'deny',
  'modify',
  'effect:',
  'tool:',
  'server:',
  'principal:',
  'door:',
  'persona:',
  'target:',
  'path:',
  'command:',
  'arguments:',
  'attributes:',
  'kind:',
  'read',
  'write',
  'delete',
  'execute',
  'send',
  'publish',
  'pay',
  'unknown',
];

/** Words that continue the one before the cursor. */
function Completions({
  field,
  text,
  put,
}: {
  readonly field: { readonly current: HTMLTextAreaElement | null };
  readonly text: string;
  readonly put: (text: string) => void;
}) {
  const at = field.current?.selectionStart ?? 0;
  const begun = /[\w-]+$/.exec(text.slice(0, at))?.[0] ?? '';
  const found = begun.length < 2 ? [] : WORDS.filter((word) => word.startsWith(begun) && word !== begun).slice(0, 6);
  return (
    <div class="completions">
      {found.map((word) => (
        <button
          key={word}
          type="button"
          onClick={() => {
            put(`${text.slice(0, at - begun.length)}${word} ${text.slice(at)}`);
            field.current?.focus();
          }}
        >
          {word}
        </button>
      ))}
    </div>
  );
}

function WhatWouldChange({
  name,
  text,
  broken,
}: {
  readonly name: string;
  readonly text: string;
  readonly broken: boolean;
}) {
  const [since, setSince] = useState('day');
  const [found, setFound] = useState<readonly Difference[]>([]);
  const [progress, setProgress] = useState<Progress>();
  const [trouble, setTrouble] = useState<unknown>();
  const stop = useRef<AbortController | undefined>(undefined);
  const groups = useMemo(() => Map.groupBy(found, ({ rule }) => rule ?? 'no rule'), [found]);
  useEffect(() => () => stop.current?.abort(), []);

  const run = async () => {
    stop.current?.abort();
    const mine = new AbortController();
    stop.current = mine;
    setFound([]);
    setTrouble(undefined);
    setProgress({ object: 'progress', done: 0, same: 0, changed: 0, unknown: 0 });
    try {
      const response = await fetch('/console/api/rules/compare', {
        method: 'POST',
        headers: { ...headers(), 'content-type': 'application/json' },
        body: JSON.stringify({ name, text, since }),
        signal: mine.signal,
      });
      if (!response.ok || !response.body) throw await failure(response);
      const reader = response.body
        .pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>)
        .getReader();
      const rows: Difference[] = [];
      let rest = '';
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const lines = (rest + value).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) {
          const one = JSON.parse(line) as Difference | Progress;
          if (one.object === 'difference') {
            if (rows.length < 5000) rows.push(one);
          } else setProgress(one);
        }
        setFound([...rows]);
      }
    } catch (thrown) {
      if (!mine.signal.aborted) setTrouble(thrown);
    }
  };

  return (
    <div class="would">
      <h3>What would change</h3>
      <div class="filters">
        <select aria-label="Period" value={since} onChange={(event) => setSince(event.currentTarget.value)}>
          <option value="day">the last day</option>
          <option value="week">the last week</option>
          <option value="month">the last month</option>
        </select>
        <button type="button" disabled={broken} onClick={() => void run()}>
          Ask these rules about past decisions
        </button>
      </div>
      <Trouble thrown={trouble} />
      {progress && (
        <>
          <div class="progress">
            <i style={{ width: `${Math.round(progress.done * 100)}%` }} />
          </div>
          <p role="status">
            {progress.object === 'summary' ? '' : 'So far: '}
            {progress.changed} would change, {progress.unknown} cannot be told, {progress.same} stay as they were.
          </p>
        </>
      )}
      {[...groups].map(([rule, rows]) => (
        <div key={rule} class="table-wrap" tabIndex={0}>
          <h3>
            <Line text={rule} /> <span class="soft">{rows.length}</span>
          </h3>
          <table>
            <tbody>
              {rows.slice(0, 100).map((row) => (
                <tr key={row.event_id}>
                  <td>
                    <Link to={`/activity?open=${row.event_id}`}>
                      <Line text={row.tool} />
                    </Link>{' '}
                    <Line text={row.target ?? ''} />
                  </td>
                  <td class="soft">
                    <Line text={row.actor} />
                  </td>
                  <td class="n">
                    {VERDICT_WORDS[row.before] ?? row.before} →{' '}
                    <b>{row.kind === 'unknown' ? 'cannot be told' : (VERDICT_WORDS[row.after] ?? row.after)}</b>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ))}
    </div>
  );
}

interface Grant {
  readonly id: string;
  readonly scope: string;
  readonly scope_value?: string | null;
  readonly action_pattern: string;
  readonly target_pattern: string;
  readonly allow: boolean;
  readonly expires_at?: string | null;
  readonly created_by?: string;
}

function Grants({ me }: { readonly me: Me }) {
  const may = holds(me, 'permission_rules:read');
  const { value = [], again } = useLoad(
    () => (may ? all<Grant>('/v1/permissions/rules') : Promise.resolve([])),
    'grants',
  );
  if (!may) return null;
  return (
    <section class="card">
      <h2>Temporary rules from approvals</h2>
      {value.length === 0 && (
        <p class="soft">None. An approval that holds for a while appears here until it ends or is revoked.</p>
      )}
      <table>
        <tbody>
          {value.map((grant) => (
            <tr key={grant.id}>
              <td>
                <Badge tone={grant.allow ? 'good' : 'bad'}>{grant.allow ? 'allow' : 'deny'}</Badge>{' '}
                <Line text={`${grant.action_pattern} ${grant.target_pattern}`} />
              </td>
              <td class="soft">
                <Line text={`${grant.scope} ${grant.scope_value ?? ''}`} />
              </td>
              <td>{grant.expires_at ? `until ${dayAndTime(grant.expires_at)}` : 'no end'}</td>
              <td class="soft">
                <Line text={str(grant.created_by)} />
              </td>
              <td class="n">
                {holds(me, 'permission_rules:write') && (
                  <button
                    type="button"
                    onClick={() => void call(`/v1/permissions/rules/${grant.id}`, { method: 'DELETE' }).then(again)}
                  >
                    Revoke
                  </button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
