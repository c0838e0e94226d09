/** The editor of one file of rules, with the mistakes that `policy check` finds and words that continue the one typed. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { visibleLine } from '../../../../model/values/visible-text.ts';
import type { RuleProblem, RulesInForce } from '../../../rule-answers.ts';
import { ApiError, call, type Me } from '../../api.ts';
import { Empty, FileName, Line, Trouble } from '../../ui.tsx';
import { Cases } from './cases.tsx';
import { WhatWouldChange } from './what-would-change.tsx';
import { WORDS } from './words.ts';

export function Editor({
  me,
  rules,
  wanted,
  saved,
}: {
  readonly me: Me;
  readonly rules: RulesInForce;
  readonly wanted: string;
  readonly saved: () => void;
}) {
  const [name, setName] = useState(rules.sources[0]?.name ?? '');
  const source = rules.sources.find((one) => one.name === name) ?? rules.sources[0];
  const [text, setText] = useState(source?.text ?? '');
  const [problems, setProblems] = useState<readonly RuleProblem[]>([]);
  const [state, setState] = useState('');
  const [trouble, setTrouble] = useState<unknown>();
  const field = useRef<HTMLTextAreaElement>(null);
  const changed = text !== source?.text;

  // Before anything can be typed: an effect after the first drawing would take it away again.
  useLayoutEffect(() => setText(source?.text ?? ''), [source?.text, name]);
  useEffect(() => {
    const at = wanted ? text.indexOf(wanted) : -1;
    if (at >= 0) field.current?.setSelectionRange(at, at + wanted.length);
  }, [wanted]);
  useEffect(() => {
    if (!changed || !source) return setProblems([]);
    const timer = setTimeout(() => {
      call<{ problems: readonly RuleProblem[] }>('/console/api/rules/check', {
        json: { name: source.name, text },
      }).then((found) => setProblems(found.problems), setTrouble);
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
        thrown instanceof ApiError ? (thrown.details.problems as readonly RuleProblem[] | undefined) : undefined;
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
              <option key={one.name} value={one.name}>
                {visibleLine(one.name)}
              </option>
            ))}
          </select>
        ) : (
          <FileName path={source.name} />
        )}
      </h2>
      <textarea
        ref={field}
        class="code"
        aria-label="Rules"
        spellcheck={false}
        rows={Math.min(30, Math.max(8, text.split('\n').length + 1))}
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
      <Cases me={me} source={source} text={text} />
      <WhatWouldChange name={source.name} text={text} broken={problems.length > 0} />
    </section>
  );
}

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
