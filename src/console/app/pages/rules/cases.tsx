/** Test cases of one file of rules: written as `tollbridge policy test` reads them, run against the rules as they are edited. */
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import type { RuleProblem, RuleSource, TestedCase } from '../../../rule-answers.ts';
import { ApiError, call, type Me } from '../../api.ts';
import { VERDICT_WORDS } from '../../rows.ts';
import { Badge, FileName, Line, Trouble } from '../../ui.tsx';

const FIRST = `- name: reading is allowed
  action: { tool: read_note, effect: read }
  expect: allow
`;

export function Cases({ me, source, text }: { readonly me: Me; readonly source: RuleSource; readonly text: string }) {
  const [cases, setCases] = useState(source.cases ?? FIRST);
  const [results, setResults] = useState<readonly TestedCase[]>();
  const [problems, setProblems] = useState<readonly RuleProblem[]>([]);
  const [saved, setSaved] = useState('');
  const [trouble, setTrouble] = useState<unknown>();
  useLayoutEffect(() => setCases(source.cases ?? FIRST), [source.name, source.cases]);
  // Results are of the rules and cases that were run, and of no others.
  useEffect(() => setResults(undefined), [text, cases]);

  const run = async () => {
    setTrouble(undefined);
    try {
      const found = await call<{ problems: readonly RuleProblem[]; results: readonly TestedCase[] }>(
        '/console/api/rules/test',
        { json: { name: source.name, text, cases } },
      );
      setProblems(found.problems);
      setResults(found.problems.length > 0 ? undefined : found.results);
    } catch (thrown) {
      setTrouble(thrown);
    }
  };
  const save = async () => {
    setTrouble(undefined);
    try {
      const { file } = await call<{ file: string }>('/console/api/rules/cases', {
        method: 'PUT',
        json: { name: source.name, cases },
      });
      setSaved(file);
    } catch (thrown) {
      const found = thrown instanceof ApiError ? thrown.details.problems : undefined;
      setProblems((found as readonly RuleProblem[] | undefined) ?? []);
      setTrouble(thrown);
    }
  };
  const failed = results?.filter(({ wrong }) => wrong !== null).length ?? 0;
  return (
    <div class="would">
      <h3>Test cases</h3>
      <textarea
        class="code"
        aria-label="Test cases"
        spellcheck={false}
        rows={Math.min(16, Math.max(5, cases.split('\n').length + 1))}
        value={cases}
        onInput={(event) => {
          setCases(event.currentTarget.value);
          setSaved('');
        }}
      />
      <ul class="problems" aria-live="polite">
        {problems.map((problem, at) => (
          <li key={String(at)} class="bad">
            {problem.line ? `${problem.line}:${problem.column ?? 1} ` : ''}
            <Line text={problem.message} />
          </li>
        ))}
      </ul>
      <Trouble thrown={trouble} />
      <div class="filters">
        <button type="button" onClick={() => void run()}>
          Run the cases
        </button>
        {me.role === 'admin' && source.editable && (
          <button type="button" disabled={cases === source.cases} onClick={() => void save()}>
            Save the cases
          </button>
        )}
        {saved && (
          <span class="good" role="status">
            Saved in <FileName path={saved} />
          </span>
        )}
      </div>
      {results && (
        <div class="table-wrap" tabIndex={0}>
          <p role="status">
            {failed === 0 ? `All ${results.length} as expected.` : `${failed} of ${results.length} otherwise.`}
          </p>
          <table>
            <tbody>
              {results.map(({ name, line, got, rule, wrong }) => (
                <tr key={String(line)} class={wrong ? 'different' : ''}>
                  <td>
                    <Badge tone={wrong ? 'bad' : 'good'}>{wrong ? 'otherwise' : 'ok'}</Badge> <Line text={name} />
                  </td>
                  <td class="soft">
                    <Line text={wrong ?? ''} />
                  </td>
                  <td class="n">
                    {VERDICT_WORDS[got] ?? got} <span class="soft">{rule && <Line text={rule} />}</span>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}
