/** One approval: the act whole, as it will run, and the answer to it. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { questionMarkup } from '../../../../inbox/question-markup.ts';
import type { QuestionView } from '../../../../inbox/question-view.ts';
import { ApiError, call, holds, type Me } from '../../api.ts';
import type { Ended } from '../../live/waiting.ts';
import { Link } from '../../router.tsx';
import { Badge, Drawn, Line, Trouble, useKeys, useLoad, useNow } from '../../ui.tsx';
import { timeLeft } from './entry.tsx';
import { InputAnswer } from './input-answer.tsx';
import { Outcome } from './outcome.tsx';

export interface Question {
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

export function Card({ id, me, ended, next }: CardProps) {
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
