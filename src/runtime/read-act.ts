/** The one reader of acts: core, the rules, and the commands that test recorded acts against rules all use it. */
import { actVocabulary } from '../../mappings/acts.ts';
import { createActReader } from '../policy/acts/reader.ts';

export const readAct = createActReader(actVocabulary);
