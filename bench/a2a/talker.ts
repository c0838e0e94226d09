/** What both agents of the measurement say, so that the same work is compared. */
export const PIECE = 'a piece of an answer ';
/** How many pieces an answer has: the last word of the command. */
export const pieces = (): number => Number(process.argv.at(-1));
