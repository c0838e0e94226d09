/** Live followers by the stream they follow. An event reaches the followers of its own streams without visiting any other. */
import type { CoreEvent, Stream } from '../../../model/events.ts';
import type { Follower } from './follower.ts';

export interface Audience {
  add(stream: Stream, follower: Follower): void;
  /** False when the follower was not there. */
  remove(stream: Stream, follower: Follower): boolean;
  hand(event: CoreEvent, at: number): void;
  all(): Follower[];
}

type Groups = Map<string, Set<Follower>>;

export function createAudience(): Audience {
  const groups: Readonly<Record<Stream['of'], Groups>> = {
    all: new Map(),
    workspace: new Map(),
    session: new Map(),
    task: new Map(),
    resource: new Map(),
  };

  function groupsOf({ of }: Stream): Groups {
    switch (of) {
      case 'all':
        return groups.all;
      case 'workspace':
        return groups.workspace;
      case 'session':
        return groups.session;
      case 'task':
        return groups.task;
      case 'resource':
        return groups.resource;
    }
  }

  function wake(group: Set<Follower> | undefined, event: CoreEvent, at: number): void {
    if (group) for (const follower of group) follower.take(event, at);
  }

  return {
    add(stream, follower) {
      const among = groupsOf(stream);
      const name = nameOf(stream);
      const group = among.get(name);
      if (group) group.add(follower);
      else among.set(name, new Set([follower]));
    },
    remove(stream, follower) {
      const among = groupsOf(stream);
      const name = nameOf(stream);
      const group = among.get(name);
      if (!group?.delete(follower)) return false;
      if (group.size === 0) among.delete(name);
      return true;
    },
    hand(event, at) {
      wake(groups.all.get(''), event, at);
      // Few clients follow a single resource, and its name would have to be built for every event.
      if (groups.resource.size > 0) wake(groups.resource.get(resourceName(event.resource)), event, at);
      if (event.task_id) wake(groups.task.get(event.task_id), event, at);
      if (event.session_id) wake(groups.session.get(event.session_id), event, at);
      if (event.workspace_id) wake(groups.workspace.get(event.workspace_id), event, at);
    },
    all: () => Object.values(groups).flatMap((among) => [...among.values()].flatMap((group) => [...group])),
  };
}

function nameOf(stream: Stream): string {
  if (stream.of === 'all') return '';
  return stream.of === 'resource' ? resourceName(stream) : stream.id;
}

function resourceName({ object, id }: { readonly object: string; readonly id: string }): string {
  return `${object}\n${id}`;
}
