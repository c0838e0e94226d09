/** The rules in force, their editor, temporary rules, and the changes of the rules. */
import type { RulesInForce } from '../../rule-answers.ts';
import { call, type Me } from '../api.ts';
import { Badge, Block, dayAndTime, Empty, Line, Title, useLoad } from '../ui.tsx';
import { Editor } from './rules/editor.tsx';
import { Grants } from './rules/grants.tsx';

export function Rules({ me, query }: { readonly me: Me; readonly query: URLSearchParams }) {
  const { value, error, again } = useLoad(() => call<RulesInForce>('/console/api/rules'), 'rules');
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
