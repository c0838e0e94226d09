/** The one reader of acts: core, the rules, and the commands that put recorded acts to rules all read with it. */
import { actVocabulary } from '../mappings/acts.ts';
import { createActReader } from './policy/acts/reader.ts';

export const readAct = createActReader(actVocabulary);
