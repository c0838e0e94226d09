/** The past decisions that the edited rules would have made otherwise, as the gateway works them out. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { ChangedDecision, ComparedDecision, ComparedSoFar } from '../../../rule-answers.ts';
import { failure, headers } from '../../api.ts';
import { Link } from '../../router.tsx';
import { VERDICT_WORDS } from '../../rows.ts';
import { Line, Trouble } from '../../ui.tsx';

export function WhatWouldChange({
  name,
  text,
  broken,
}: {
  readonly name: string;
  readonly text: string;
  readonly broken: boolean;
}) {
  const [since, setSince] = useState('day');
  const [found, setFound] = useState<readonly ChangedDecision[]>([]);
  const [progress, setProgress] = useState<ComparedSoFar>();
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
        // The types of the two libraries differ in what a decoder takes.
        .pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>)
        .getReader();
      const rows: ChangedDecision[] = [];
      let rest = '';
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const lines = (rest + value).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) {
          const one = JSON.parse(line) as ComparedDecision;
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
