/** The frame round every page: sign-in, navigation, the connection's state, the count of approvals in the tab. */
import { useEffect, useState } from 'preact/hooks';
import { type Me, onSessionEnd, signOut, whoAmI } from './api.ts';
import { feed, useFeed } from './feed.ts';
import iconUrl from './icon.svg';
import iconWaitingUrl from './icon-waiting.svg';
import { Activity } from './pages/activity.tsx';
import { Approvals } from './pages/approvals.tsx';
import { SignIn } from './pages/sign-in.tsx';
import { go, Link, useRoute } from './router.tsx';
import { Trouble, useKeys } from './ui.tsx';
import { useWaiting, waiting } from './waiting.ts';

interface Entry {
  readonly page: string;
  readonly name: string;
  readonly key: string;
  readonly icon: string;
}

const ENTRIES: readonly Entry[] = [
  { page: 'approvals', name: 'Approvals', key: '2', icon: 'M4 12l5 5L20 6' },
  { page: 'activity', name: 'Activity', key: '3', icon: 'M3 12h4l3-7 4 14 3-7h4' },
];

export function Shell() {
  const [me, setMe] = useState<Me | undefined | 'asking'>('asking');
  const [trouble, setTrouble] = useState<unknown>();
  const route = useRoute();

  useEffect(() => {
    onSessionEnd(() => setMe(undefined));
    // A link with a code in it signs in anew, whoever is signed in.
    if (route.page === 'sign-in' && location.hash.length > 1) return setMe(undefined);
    whoAmI().then(setMe, setTrouble);
  }, []);

  const known = me !== 'asking' && me !== undefined;
  const id = known ? me.actor.id : '';
  useEffect(() => {
    if (!known) return;
    void feed
      .start()
      .then(() => waiting.start())
      .catch(setTrouble);
    return () => {
      feed.end();
      waiting.end();
    };
  }, [id]);

  if (trouble)
    return (
      <main class="alone">
        <Trouble thrown={trouble} />
      </main>
    );
  if (me === 'asking') return <main class="alone" aria-busy="true" />;
  if (!me || route.page === 'sign-in') {
    return (
      <SignIn
        signedIn={(now) => {
          setMe(now);
          go('/', 'replace');
        }}
      />
    );
  }
  return <Frame me={me} left={() => setMe(undefined)} />;
}

function Frame({ me, left }: { readonly me: Me; readonly left: () => void }) {
  const route = useRoute();
  const { list } = useWaiting();
  useTab(list.length);
  useNotices();
  useKeys({ ...Object.fromEntries(ENTRIES.map(({ page, key }) => [key, () => go(`/${page}`)])) });
  return (
    <div class="frame">
      <a class="skip" href="#page">
        Skip to the page
      </a>
      <nav aria-label="Pages">
        <Link to="/" class="brand" title="Overview">
          <img src={iconUrl} alt="" width="22" height="22" /> <span>Tollbridge</span>
        </Link>
        <ul>
          {ENTRIES.map(({ page, name, icon }) => (
            <li key={page}>
              <Link to={`/${page}`} current={isCurrent(route.page, page)}>
                <svg viewBox="0 0 24 24" aria-hidden="true">
                  <path d={icon} />
                </svg>
                <span>{name}</span>
                {page === 'approvals' && list.length > 0 && (
                  <b class="count" title={`${list.length} waiting`}>
                    {list.length}
                  </b>
                )}
              </Link>
            </li>
          ))}
        </ul>
        <Foot me={me} left={left} />
      </nav>
      <main id="page" tabIndex={-1}>
        <View me={me} />
      </main>
    </div>
  );
}

function isCurrent(page: string, entry: string): boolean {
  return page === entry || (entry === 'activity' && page === 'sessions');
}

function View({ me }: { readonly me: Me }) {
  const route = useRoute();
  switch (route.page) {
    case 'activity':
      return <Activity query={route.query} />;
    default:
      return <Approvals me={me} id={route.id} />;
  }
}

const STATES = { opening: 'connecting', live: 'live', waiting: 'reconnecting', over: 'not connected' } as const;

function Foot({ me, left }: { readonly me: Me; readonly left: () => void }) {
  const { state } = useFeed();
  return (
    <div class="foot">
      <p class={`state ${state}`} role="status">
        {STATES[state]}
      </p>
      <p class="who" title={`signed in as ${me.actor.id}`}>
        {me.actor.id} · {me.role}
      </p>
      <button type="button" class="quiet" onClick={() => void signOut().then(left)}>
        Sign out
      </button>
    </div>
  );
}

/** The tab's title and icon say how many approvals wait. */
function useTab(count: number): void {
  useEffect(() => {
    document.title = count > 0 ? `(${count}) Tollbridge` : 'Tollbridge';
    document.querySelector('link[rel=icon]')?.setAttribute('href', count > 0 ? iconWaitingUrl : iconUrl);
    const badge = navigator as { setAppBadge?: (count: number) => Promise<void> };
    void badge.setAppBadge?.(count).catch(() => {});
  }, [count]);
}

/** A notice says that something waits, never what: other people may see the screen. */
function useNotices(): void {
  useEffect(
    () =>
      waiting.onOpened((ask) => {
        if (!('Notification' in window) || Notification.permission !== 'granted' || !document.hidden) return;
        const notice = new Notification('An approval is waiting', { tag: ask.id });
        notice.onclick = () => {
          window.focus();
          go(`/approvals/${ask.id}`);
        };
      }),
    [],
  );
}
