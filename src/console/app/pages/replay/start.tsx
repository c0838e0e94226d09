/** Starts a replay: as recorded, with other answers, or from one of its events on. */
import { useMemo, useState } from 'preact/hooks';
import { visibleLine } from '../../../../model/values/visible-text.ts';
import { all, call, holds, type Me, type Task } from '../../api.ts';
import { go } from '../../router.tsx';
import { bag, type LogEvent, str, toRow } from '../../rows.ts';
import { Line, Title, Trouble, timeOf, useLoad } from '../../ui.tsx';

const MODES = [
  { mode: 'exact', name: 'Exactly as recorded' },
  { mode: 'with_overrides', name: 'With other answers' },
  { mode: 'from_checkpoint', name: 'From one of its events on' },
];
/** Events that are offered as a beginning, and answers that are offered to be replaced. */
const MOST = 2000;

/** An answer that the agent was given, and that a replay can replace. */
interface Recorded {
  readonly key: string;
  readonly kind: string;
  readonly name: string;
  readonly value: unknown;
}

export function Start({ me, id }: { readonly me: Me; readonly id: string }) {
  const events = useLoad(() => all<LogEvent>(`/v1/tasks/${id}/events`, MOST), id);
  const recorded = useMemo(() => recordedIn(events.value ?? []), [events.value]);
  const [mode, setMode] = useState('exact');
  const [values, setValues] = useState<ReadonlyMap<string, string>>(new Map());
  const [from, setFrom] = useState('');
  const [busy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState<unknown>();
  const put = (key: string, text: string | undefined) => {
    const next = new Map(values);
    if (text === undefined) next.delete(key);
    else next.set(key, text);
    setValues(next);
  };
  const start = async () => {
    setBusy(true);
    setTrouble(undefined);
    try {
      const override = Object.fromEntries(
        recorded
          .filter(({ key }) => values.has(key))
          .map(({ key, kind, name }) => [
            key,
            { kind, value: parsed(name, values.get(key) ?? ''), visibility: 'public' },
          ]),
      );
      const body = {
        mode,
        ...(mode !== 'exact' && { override }),
        ...(mode === 'from_checkpoint' && { checkpoint_event_id: from }),
      };
      const made = await call<Task>(`/v1/tasks/${id}/replay`, { json: body });
      go(`/replay/${id}?with=${made.id}`);
    } catch (thrown) {
      setTrouble(thrown);
      setBusy(false);
    }
  };
  const left = recorded.filter(({ key }) => !values.has(key));
  const ready = mode === 'exact' || (mode === 'with_overrides' ? values.size > 0 : from !== '');
  return (
    <div class="page">
      <Title note="nothing is done a second time: tools, people and models answer from the record">
        Replay of <span class="mono">{id}</span>
      </Title>
      <form
        class="card stack"
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        <label>
          <span>Mode</span>
          <select value={mode} onChange={(event) => setMode(event.currentTarget.value)}>
            {MODES.map((one) => (
              <option key={one.mode} value={one.mode}>
                {one.name}
              </option>
            ))}
          </select>
        </label>
        {mode === 'from_checkpoint' && (
          <label>
            <span>Begin after this event; what came before is restored</span>
            <select value={from} onChange={(event) => setFrom(event.currentTarget.value)}>
              <option value="">Choose an event</option>
              {(events.value ?? []).map((event) => (
                <option key={event.id} value={event.id}>
                  {eventName(event)}
                </option>
              ))}
            </select>
          </label>
        )}
        {mode !== 'exact' && (
          <>
            <label>
              <span>{mode === 'with_overrides' ? 'Answer to replace' : 'Answer to replace, if any'}</span>
              <select
                value=""
                onChange={(event) => {
                  const one = recorded.find(({ key }) => key === event.currentTarget.value);
                  if (one) put(one.key, JSON.stringify(one.value ?? null, undefined, 2));
                }}
              >
                <option value="">{left.length > 0 ? 'Choose an answer' : 'No answer is left'}</option>
                {left.map(({ key, name }) => (
                  <option key={key} value={key}>
                    {visibleLine(name)}
                  </option>
                ))}
              </select>
            </label>
            {recorded
              .filter(({ key }) => values.has(key))
              .map(({ key, name }) => (
                <div key={key}>
                  <label>
                    <span>
                      <Line text={name} />, as JSON; it will stand in the log of the replay
                    </span>
                    <textarea
                      class="code"
                      spellcheck={false}
                      value={values.get(key)}
                      onInput={(event) => put(key, event.currentTarget.value)}
                    />
                  </label>
                  <button type="button" class="quiet" onClick={() => put(key, undefined)}>
                    Keep the answer as recorded
                  </button>
                </div>
              ))}
          </>
        )}
        <Trouble thrown={trouble ?? events.error} />
        {holds(me, 'tasks:write') ? (
          <div class="choice">
            <button type="submit" class="primary" disabled={busy || !ready}>
              Start the replay
            </button>
          </div>
        ) : (
          <p class="soft">Starting a replay takes the scope tasks:write.</p>
        )}
      </form>
    </div>
  );
}

/** The answers of tools and models in a task's events, under the keys that a replay knows them by. */
function recordedIn(events: readonly LogEvent[]): readonly Recorded[] {
  const servers = new Map<string, string>();
  return events.flatMap(({ event, payload }): Recorded[] => {
    const call = str(payload.tool_call_id);
    const tool = str(payload.name);
    if (event === 'tool.requested' && str(payload.server)) servers.set(call, str(payload.server));
    if (event === 'tool.completed' || event === 'tool.failed') {
      const server = servers.get(call);
      const [key, kind] = server
        ? [`mcp:${server}:${call}`, 'mcp_tool_return']
        : [`host:${tool}:${call}`, 'tool_result'];
      return [{ key, kind, name: `${tool || 'a tool'} ${call.split('.').at(-1)}`, value: payload.output }];
    }
    const span = bag(payload.span);
    if (event === 'span.completed' && span.kind === 'llm') {
      const id = str(span.call_id);
      return [{ key: `llm:${id}`, kind: 'llm_provider_response', name: `model ${id}`, value: payload.response }];
    }
    return [];
  });
}

function eventName(event: LogEvent): string {
  const { word, text } = toRow(event);
  return visibleLine(`${timeOf(event.created_at)} ${word} ${text}`).slice(0, 100);
}

function parsed(name: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Error(`The answer of ${name} is not JSON: ${cause instanceof Error ? cause.message : ''}`);
  }
}
