/** What was said in a session: the transcript, and what each task was given. */
import { useMemo, useState } from 'preact/hooks';
import { all } from '../../api.ts';
import { type LogEvent, messageText, taskText } from '../../rows.ts';
import { Block, dayAndTime, Empty, Line, Trouble, useLoad } from '../../ui.tsx';

interface Message {
  readonly id: string;
  readonly role: string;
  readonly created_at: string;
}

export function Conversation({ session, events }: { readonly session: string; readonly events: readonly LogEvent[] }) {
  // The transcript is read again when something was said.
  const said = events.filter(({ event }) => /message(_appended)?$|^task\.submitted$/.test(event)).length;
  const { value, error } = useLoad(
    () => all<Message>(`/v1/sessions/${session}/messages`, 10_000),
    `${session} ${said}`,
  );
  const [most, setMost] = useState(200);
  const turns = useMemo(() => turnsOf(events, value ?? []), [value, said]);
  if (value && turns.length === 0) return <Empty title="Nothing was said in this session" />;
  return (
    <div class="column">
      <Trouble thrown={error} />
      {turns.slice(0, most).map(({ id, role, at, text }) => (
        <div key={id} class={`turn ${role === 'user' ? 'person' : ''}`}>
          <p>
            <Line text={`${role} · ${dayAndTime(at)}`} />
          </p>
          <Block text={text} />
        </div>
      ))}
      {turns.length > most && (
        <button type="button" onClick={() => setMost(most + 500)}>
          Show more of {turns.length.toLocaleString('en')}
        </button>
      )}
    </div>
  );
}

interface Turn {
  readonly id: string;
  readonly role: string;
  readonly at: string;
  readonly text: string;
}

/** The transcript, and what each task was given, in the order in which they were said. */
function turnsOf(events: readonly LogEvent[], messages: readonly Message[]): readonly Turn[] {
  const given = events.flatMap(({ id, event, payload, created_at }) => {
    const text = event === 'task.submitted' ? taskText(payload.task) : '';
    return text ? [{ id, role: 'user', at: created_at, text }] : [];
  });
  const told = messages.map((message) => ({
    id: message.id,
    role: message.role,
    at: message.created_at,
    text: messageText(message),
  }));
  const seen = new Set<string>();
  return [...given, ...told]
    .filter(({ role, text }) => {
      const key = `${role} ${text}`;
      return text !== '' && !seen.has(key) && seen.add(key);
    })
    .sort((one, other) => (one.at < other.at ? -1 : 1));
}
