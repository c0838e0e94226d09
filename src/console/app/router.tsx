/** Every view is an address: the path names the page, the query its filters. */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';

export interface Route {
  readonly page: string;
  readonly id: string;
  readonly query: URLSearchParams;
}

function read(): Route {
  const [page = '', id = ''] = location.pathname.split('/').slice(1);
  return { page, id: decodeURIComponent(id), query: new URLSearchParams(location.search) };
}

/** The page has one address. */
const listeners = new Set<() => void>();

export function go(to: string, how: 'push' | 'replace' = 'push'): void {
  if (how === 'push') history.pushState(null, '', to);
  else history.replaceState(null, '', to);
  for (const listener of listeners) listener();
}

export function useRoute(): Route {
  const [route, setRoute] = useState(read);
  // Before anything can happen on what was drawn: a change that nobody listens to is not seen later.
  useLayoutEffect(() => {
    const changed = () => setRoute(read());
    listeners.add(changed);
    addEventListener('popstate', changed);
    return () => {
      listeners.delete(changed);
      removeEventListener('popstate', changed);
    };
  }, []);
  return route;
}

/** Changes one filter and keeps the others. */
export function withQuery(query: URLSearchParams, changes: Readonly<Record<string, string>>): string {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  return text ? `?${text}` : '';
}

interface LinkProps {
  readonly to: string;
  readonly class?: string;
  readonly title?: string;
  readonly current?: boolean;
  /** Where the content has no text. */
  readonly label?: string;
  readonly children: ComponentChildren;
}

export function Link({ to, class: name, title, current, label, children }: LinkProps) {
  return (
    <a
      href={to}
      class={name}
      title={title}
      aria-label={label}
      aria-current={current ? 'page' : undefined}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        go(to);
      }}
    >
      {children}
    </a>
  );
}
