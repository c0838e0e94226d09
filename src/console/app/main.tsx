import { render } from 'preact';
import { standBy } from './live/presence.ts';
import { Shell } from './shell.tsx';

standBy();
const root = document.getElementById('app');
if (root) render(<Shell />, root);
