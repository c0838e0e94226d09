/** What waits for a person: the act whole, as it will run, and the answer. Every control works by keyboard. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { questionMarkup } from '../../../inbox/question-markup.ts';
import type { QuestionView } from '../../../inbox/question-view.ts';
import { ApiError, call, holds, type Me } from '../api.ts';
import { go, Link } from '../router.tsx';
import { str } from '../rows.ts';
import { Badge, Drawn, dayAndTime, duration, Empty, Line, Title, Trouble, useKeys, useLoad, useNow } from '../ui.tsx';
import { type Ended, useWaiting, type Waiting, waiting } from '../waiting.ts';

interface Question {
  readonly ask: {
    readonly id: string;
    readonly kind: string;
    readonly state: string;
    readonly answered_by: string | null;
    readonly answered_at: string | null;
    readonly reason: string | null;
    readonly session_id: string;
    readonly task_id: string;
    readonly expires_at: string;
    readonly rule_id: string | null;
  };
  readonly view: QuestionView;
  readonly arguments: Readonly<Record<string, unknown>> | null;
  readonly before: { readonly approved: number; readonly denied: number; readonly more: boolean };
  readonly taint: readonly { readonly server: string; readonly what: string; readonly target?: string }[];
}

export function Approvals({ me, id }: { readonly me: Me; readonly id: string }) {
  const { list, ended, loaded } = useWaiting();
  // The oldest becomes the address, so that it stays in sight when it is answered here or elsewhere.
  const oldest = list[0]?.id ?? '';
  useEffect(() => {
    if (!id && oldest) go(`/approvals/${oldest}`, 'replace');
  }, [id, oldest]);
  const current = id;
  const at = list.findIndex((one) => one.id === current);
  const move = (by: number) => {
    const next = list[at < 0 ? 0 : Math.min(list.length - 1, Math.max(0, at + by))];
    if (next) go(`/approvals/${next.id}`, 'replace');
  };
  useKeys({ j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1) });

  return (
    <div class="page">
      <Title note={list.length === 0 ? 'None pending' : `${list.length} pending, oldest first`} actions={<Notices />}>
        Approvals
      </Title>
      {list.length === 0 && !current ? (
        loaded && (
          <Empty title="Nothing waits for you">
            When a rule says <code>ask</code>, the act waits here until a person answers.{' '}
            <Link to="/activity?group=approval">Past approvals</Link>
          </Empty>
        )
      ) : (
        <div class="split">
          <ol class="queue" aria-label="Pending approvals">
            {list.map((one) => (
              <li key={one.id}>
                <Entry one={one} current={one.id === current} />
              </li>
            ))}
          </ol>
          {current && (
            <Card
              key={current}
              id={current}
              me={me}
              ended={ended.get(current)}
              next={() => {
                const rest = waiting.list.filter((one) => one.id !== current);
                go(rest[0] ? `/approvals/${rest[0].id}` : '/approvals', 'replace');
              }}
            />
          )}
        </div>
      )}
    </div>
  );
}

/** Asked for only when a person presses the button, as browsers want it. */
function Notices() {
  const [state, setState] = useState(() => ('Notification' in window ? Notification.permission : 'denied'));
  if (state !== 'default') return null;
  return (
    <button type="button" class="quiet" onClick={() => void Notification.requestPermission().then(setState)}>
      Notify me of new approvals
    </button>
  );
}

function Entry({ one, current }: { readonly one: Waiting; readonly current: boolean }) {
  const now = useNow(5000);
  const { tool, kind, actor, effect, target } = one.action;
  return (
    <Link to={`/approvals/${one.id}`} class="entry" current={current}>
      <span class="entry-what">
        <b>
          <Line text={str(tool) || str(kind) || 'A question'} />
        </b>{' '}
        <Line text={(str(target) || JSON.stringify(one.action.arguments ?? '').replace(/[{}"]/g, ' ')).slice(0, 120)} />
      </span>
      <span class="entry-who">
        <Line text={str(actor)} /> {str(effect) && <Badge tone={toneOf(str(effect))}>{str(effect)}</Badge>}
      </span>
      <span class="entry-time">{timeLeft(one.expires_at, now)}</span>
    </Link>
  );
}

export function toneOf(effect: string): string {
  return effect === 'read' || effect === 'none'
    ? 'good'
    : effect === 'delete' || effect === 'pay' || effect === 'unknown'
      ? 'bad'
      : 'warn';
}

function timeLeft(expires: string, now: number): string {
  const left = Date.parse(expires) - now;
  return left <= 0 ? 'time is up' : `${duration(left)} left`;
}

const GRANTS = [
  { ms: 0, name: 'Only this time' },
  { ms: 15 * 60_000, name: 'For 15 minutes in this session' },
  { ms: 3_600_000, name: 'For 1 hour in this session' },
];

interface CardProps {
  readonly id: string;
  readonly me: Me;
  readonly ended: Ended | undefined;
  readonly next: () => void;
}

function Card({ id, me, ended, next }: CardProps) {
  const { value, error, again } = useLoad(() => call<Question>(`/console/api/approvals/${id}`), id);
  const [reason, setReason] = useState('');
  const [edited, setEdited] = useState<string>();
  const [grant, setGrant] = useState(0);
  const [busy, setBusy] = useState(false);
  const [mine, setMine] = useState<'approved' | 'denied' | 'sent'>();
  const [trouble, setTrouble] = useState<unknown>();
  const approve = useRef<HTMLButtonElement>(null);
  const why = useRef<HTMLInputElement>(null);
  const now = useNow();
  const mayAnswer = holds(me, 'approvals:write');
  const open = value?.ask.state === 'open' && !ended && !mine;

  useEffect(() => {
    // It ended elsewhere while it was shown.
    if (ended && value?.ask.state === 'open') again();
  }, [ended?.state]);

  useKeys({
    a: () => approve.current?.focus(),
    d: () => why.current?.focus(),
    n: next,
    e: () =>
      open && value?.arguments && edited === undefined && setEdited(JSON.stringify(value.arguments, undefined, 2)),
  });

  const answer = async (approved: boolean) => {
    setBusy(true);
    setTrouble(undefined);
    try {
      const said: Record<string, unknown> = { approved, ...(reason.trim() && { reason: reason.trim() }) };
      if (approved && edited !== undefined) said.answer = { arguments: parsed(edited) };
      if (approved && grant > 0 && edited === undefined) {
        said.remember = true;
        said.scope = 'session';
        said.expires_at = new Date(Date.now() + grant).toISOString();
      }
      await call(`/v1/permission-requests/${id}/respond`, { json: said });
      setMine(approved ? 'approved' : 'denied');
    } catch (thrown) {
      // Another approver was first: the sentence above names that approver.
      if (thrown instanceof ApiError && thrown.status === 409) again();
      setTrouble(thrown);
    }
    setBusy(false);
  };

  if (error)
    return (
      <section class="card">
        <Trouble thrown={error} />
      </section>
    );
  if (!value) return <section class="card" aria-busy="true" />;
  const { ask, view } = value;
  return (
    <section class="card question" aria-label="The approval">
      <h2 class="headline">{view.headline}</h2>
      <Outcome ask={ask} ended={ended} mine={mine} me={me} />
      <p class="context">
        {open && (
          <Badge tone={Date.parse(ask.expires_at) - now < 60_000 ? 'bad' : ''}>{timeLeft(ask.expires_at, now)}</Badge>
        )}{' '}
        {ask.rule_id && (
          <Link to={`/rules?rule=${encodeURIComponent(ask.rule_id)}`}>
            rule <Line text={ask.rule_id} />
          </Link>
        )}{' '}
        <Link to={`/sessions/${ask.session_id}`}>session</Link> <span>{beforeText(value.before)}</span>
      </p>
      {value.taint.length > 0 && (
        <p class="taint" role="note">
          This session has read content from outside:{' '}
          {value.taint.map(({ server, what, target }) => (
            <code>
              <Line text={[server, what, target].filter(Boolean).join(' ')} />
            </code>
          ))}
        </p>
      )}
      <div class="question-parts">
        <Drawn parts={questionMarkup(view)} />
      </div>
      {open && mayAnswer && ask.kind === 'input' && <InputAnswer id={id} sent={() => setMine('sent')} />}
      {open && mayAnswer && ask.kind === 'approval' && (
        <form
          class="answer"
          onSubmit={(event) => {
            event.preventDefault();
            // Enter in the reason field denies: approving takes its own button.
            void answer(false);
          }}
        >
          {edited !== undefined && (
            <div class="edit">
              <label for="arguments">Arguments to run instead; the rules decide about them before they run</label>
              <textarea
                id="arguments"
                rows={Math.min(16, edited.split('\n').length + 1)}
                spellcheck={false}
                value={edited}
                onInput={(event) => setEdited(event.currentTarget.value)}
              />
              <button type="button" class="quiet" onClick={() => setEdited(undefined)}>
                Keep the arguments as asked
              </button>
            </div>
          )}
          <Trouble thrown={trouble} />
          {!view.whole && <p class="trouble">Parts of this act are hidden here. It can only be denied.</p>}
          <div class="answer-row">
            <label class="reason">
              <span>Reason</span>
              <input
                ref={why}
                id="reason"
                maxLength={500}
                autocomplete="off"
                placeholder="kept with your answer"
                value={reason}
                onInput={(event) => setReason(event.currentTarget.value)}
              />
            </label>
            {holds(me, 'permission_rules:write') && edited === undefined && (
              <div>
                <label for="grant">How long an approval holds</label>
                <select id="grant" value={grant} onChange={(event) => setGrant(Number(event.currentTarget.value))}>
                  {GRANTS.map(({ ms, name }) => (
                    <option key={ms} value={ms}>
                      {name}
                    </option>
                  ))}
                </select>
              </div>
            )}
          </div>
          <div class="choice">
            <button type="submit" class="no" disabled={busy}>
              Deny <kbd>d</kbd>
            </button>
            {edited === undefined && value.arguments && (
              <button
                type="button"
                disabled={busy}
                onClick={() => setEdited(JSON.stringify(value.arguments, undefined, 2))}
              >
                Change arguments <kbd>e</kbd>
              </button>
            )}
            <button
              ref={approve}
              type="button"
              class="yes"
              disabled={busy || !view.whole}
              onClick={() => void answer(true)}
            >
              {edited === undefined ? 'Approve' : 'Approve these arguments'} <kbd>a</kbd>
            </button>
          </div>
          <p class="keys">
            <kbd>j</kbd> <kbd>k</kbd> next and previous · <kbd>a</kbd> then <kbd>Enter</kbd> approves · <kbd>d</kbd>, a
            reason, <kbd>Enter</kbd> denies
          </p>
        </form>
      )}
      {open && !mayAnswer && <p class="context">You can see this approval; answering it takes another role.</p>}
      {!open && (
        <div class="choice">
          <Trouble thrown={trouble} />
          <button type="button" class="primary" onClick={next}>
            Next <kbd>n</kbd>
          </button>
        </div>
      )}
    </section>
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new Error(`The arguments are not JSON: ${cause instanceof Error ? cause.message : ''}`);
  }
}

function beforeText({ approved, denied, more }: Question['before']): string {
  if (approved + denied === 0) return 'First time this was asked.';
  const many = more ? ', at least' : '';
  return `Asked before${many}: approved ${approved}, denied ${denied}.`;
}

/** One answer counts, and this sentence says whose. */
function Outcome({
  ask,
  ended,
  mine,
  me,
}: {
  readonly ask: Question['ask'];
  readonly ended: Ended | undefined;
  readonly mine: string | undefined;
  readonly me: Me;
}) {
  const state = ended?.state ?? (ask.state === 'open' ? mine : ask.state);
  if (!state) return null;
  const by = ended?.by ?? ask.answered_by ?? (mine ? me.actor.id : '');
  const at = ended?.at ?? ask.answered_at;
  const tone = state === 'approved' || state === 'answered' || state === 'sent' ? 'good' : 'bad';
  return (
    <p class={`outcome ${tone}`} role="status">
      {sentence(state, by === me.actor.id ? 'you' : by)}
      {at ? ` at ${dayAndTime(at)}` : ''}
      {mine && ended && ended.by !== me.actor.id ? '. Your answer came later and does not count.' : '.'}
    </p>
  );
}

function sentence(state: string, by: string): string {
  switch (state) {
    case 'expired':
      return 'Not answered in time, which counts as denied';
    case 'canceled':
      return 'Withdrawn: the work it was about has ended';
    case 'sent':
    case 'answered':
      return `Answered by ${by}`;
    default:
      return `${state === 'approved' ? 'Approved' : 'Denied'} by ${by}`;
  }
}

function InputAnswer({ id, sent }: { readonly id: string; readonly sent: () => void }) {
  const [value, setValue] = useState('');
  const [trouble, setTrouble] = useState<unknown>();
  return (
    <form
      class="answer"
      onSubmit={(event) => {
        event.preventDefault();
        call(`/v1/permission-requests/${id}/respond`, { json: { answer: value } }).then(sent, setTrouble);
      }}
    >
      <Trouble thrown={trouble} />
      <label for="value">Your answer</label>
      <input
        id="value"
        required
        autocomplete="off"
        value={value}
        onInput={(event) => setValue(event.currentTarget.value)}
      />
      <div class="choice">
        <button type="submit" class="yes">
          Send
        </button>
      </div>
    </form>
  );
}
