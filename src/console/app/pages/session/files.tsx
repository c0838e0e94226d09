/** The files that a session changed, and its artifacts. */
import { useMemo, useState } from 'preact/hooks';
import { fileDiff } from '../../../../inbox/file-diff.ts';
import { all, textAt } from '../../api.ts';
import { writtenFiles } from '../../file-changes.ts';
import { Link } from '../../router.tsx';
import { type LogEvent, str } from '../../rows.ts';
import { Badge, Block, Diff, FileName, Line, Trouble, useLoad } from '../../ui.tsx';

interface Artifact {
  readonly id: string;
  readonly name?: string;
  readonly kind: string;
  readonly mime_type: string;
  readonly sha256?: string | null;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export function Files({ session, events }: { readonly session: string; readonly events: readonly LogEvent[] }) {
  const [most, setMost] = useState(50);
  const { value = [], error } = useLoad(() => all<Artifact>(`/v1/artifacts?session_id=${session}`), session);
  // What a replay repeats was not done again.
  const files = useMemo(() => writtenFiles(events.filter(({ replayed }) => !replayed)), [events.length]);
  return (
    <div class="column stack">
      <section class="card">
        <h2>Files changed</h2>
        {files.length === 0 && <p class="soft">None was reported or seen.</p>}
        {files.slice(0, most).map(({ event, path, operation, evidence, change }) => (
          <div key={event}>
            <p>
              <Link to={`/sessions/${session}?view=files&open=${event}`}>
                <code>
                  <FileName path={path} parts={3} />
                </code>
              </Link>{' '}
              <Badge tone="warn">{operation}</Badge> <Badge>{evidence}</Badge>{' '}
              <span class="soft">
                <Line text={change?.what ?? 'its content is not in the log, only its hash'} />
              </span>
            </p>
            {change?.text && <Diff text={change.text} />}
          </div>
        ))}
        {files.length > most && (
          <button type="button" onClick={() => setMost(most + 100)}>
            Show more of {files.length.toLocaleString('en')}
          </button>
        )}
      </section>
      <section class="card">
        <h2>Artifacts</h2>
        <Trouble thrown={error} />
        {value.length === 0 && <p class="soft">None.</p>}
        {value.slice(0, most).map((artifact, at) => (
          <ArtifactBlock
            key={artifact.id}
            artifact={artifact}
            before={value.slice(0, at).findLast((one) => nameOf(one) !== '' && nameOf(one) === nameOf(artifact))}
          />
        ))}
      </section>
    </div>
  );
}

function nameOf({ name, metadata }: Artifact): string {
  return name ?? str(metadata?.name);
}

/** More of an artifact is downloaded, not shown. */
const MOST_SHOWN = 200_000;

/** The content of an artifact; of a file that is here twice, what changed since the one before. */
function ArtifactBlock({ artifact, before }: { readonly artifact: Artifact; readonly before: Artifact | undefined }) {
  const { id, kind, mime_type: type, sha256 } = artifact;
  const readable = /^text\/|json|patch|diff/.test(type);
  const isPatch = kind === 'patch' || /patch|diff/.test(type);
  const { value } = useLoad(
    async () => {
      const content = (one: string) => textAt(`/v1/artifacts/${one}/content`, MOST_SHOWN);
      const [now, then] = await Promise.all([
        readable ? content(id) : undefined,
        readable && before && !isPatch ? content(before.id) : undefined,
      ]);
      const changed = now !== undefined && then !== undefined;
      return { now, diff: changed ? fileDiff({ path: '', before: then, after: now }) : undefined };
    },
    `${id} ${before?.id ?? ''}`,
  );
  return (
    <div>
      <p>
        <b>
          <Line text={nameOf(artifact) || id} />
        </b>{' '}
        <Badge>{kind}</Badge>{' '}
        <span class="soft">
          <Line text={type} />
        </span>{' '}
        <span class="soft mono">
          <Line text={(sha256 ?? '').slice(0, 23)} />
        </span>{' '}
        {value?.diff && <span class="soft">{value.diff.what} since the one before</span>}
      </p>
      {value?.diff?.text ? (
        <Diff text={value.diff.text} />
      ) : isPatch && value?.now ? (
        <Diff text={value.now} />
      ) : (
        value?.now && <Block text={value.now} />
      )}
    </div>
  );
}
