/**
 * The public half of the relay that a command needs before anything heavy is loaded: the link holds back what the editor
 * sends until the relay, a part of the adapter, is attached to it.
 */
export { openLink, type RelayLink } from './link.ts';
