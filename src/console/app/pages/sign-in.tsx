/** Signs in by the printed link, whose code is behind the `#`, at an OpenID provider, or by an API key. */
import { useEffect, useState } from 'preact/hooks';
import { beginOidc, call, type Me, oidcAnswer, type SignInHow, signIn } from '../api.ts';
import iconUrl from '../icon.svg';
import { Line, Trouble, useLoad } from '../ui.tsx';

export function SignIn({ signedIn }: { readonly signedIn: (me: Me) => void }) {
  const [opened] = useState(() => openedBy());
  const [busy, setBusy] = useState(opened !== undefined);
  const [trouble, setTrouble] = useState<unknown>();
  const [key, setKey] = useState('');

  const { value: provider } = useLoad(() => call<{ name: string | null }>('/console/oidc'), 'oidc');
  const attempt = async (how: SignInHow | 'provider') => {
    setBusy(true);
    setTrouble(undefined);
    try {
      if (how === 'provider') await beginOidc();
      else signedIn(await signIn(how));
    } catch (thrown) {
      setTrouble(thrown);
      setBusy(false);
    }
  };
  useEffect(() => {
    const refused = new URLSearchParams(location.search).get('error');
    if (refused) setTrouble(new Error(`The sign-in provider refused: ${refused.slice(0, 100)}`));
    // The code is used up; it need not stay in the address or in the history.
    if (opened || refused) history.replaceState(null, '', '/sign-in');
    if (opened) void attempt(opened);
  }, []);

  return (
    <main class="alone">
      <form
        class="card sign-in"
        onSubmit={(event) => {
          event.preventDefault();
          void attempt({ key: key.trim() });
        }}
      >
        <img src={iconUrl} alt="" width="40" height="40" />
        <h1>Sign in to Tollbridge</h1>
        {busy ? (
          <p role="status">Signing in…</p>
        ) : (
          <>
            <p>
              Open the link that <code>tollbridge serve</code> printed, or make a new one with{' '}
              <code>tollbridge console link</code>.
            </p>
            <Trouble thrown={trouble} />
            {provider?.name && (
              <button type="button" class="primary" onClick={() => void attempt('provider')}>
                Sign in at <Line text={provider.name} />
              </button>
            )}
            <label for="key">Or use an API key</label>
            <input
              id="key"
              type="password"
              autocomplete="off"
              value={key}
              onInput={(event) => setKey(event.currentTarget.value)}
              placeholder="tbk_…"
            />
            <button type="submit" class="primary" disabled={key.trim() === ''}>
              Sign in
            </button>
          </>
        )}
      </form>
    </main>
  );
}

/** How this page was opened: by a printed link, or by a provider that sends a person back. */
function openedBy(): SignInHow | undefined {
  if (location.pathname !== '/sign-in') return undefined;
  const code = location.hash.slice(1);
  return code ? { code } : oidcAnswer(new URLSearchParams(location.search));
}
