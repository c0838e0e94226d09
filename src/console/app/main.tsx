import { render } from 'preact';
import { Shell } from './shell.tsx';

const root = document.getElementById('app');
if (root) render(<Shell />, root);
