/**
 * Line hunks with three lines of context. Only LF ends a line; a last line without LF is marked.
 */
import { formatPatch, OMIT_HEADERS, structuredPatch, type StructuredPatchHunk } from 'diff';

/** Number of unchanged lines before and after each change in a hunk. */
const CONTEXT = 3;
/** Milliseconds after which the comparison of two files ends without a result. It blocks the page, and its time grows with the square of the number of changes. */
export const TIMEOUT = 500;

/** Hunks of one file, and how many lines they add and remove. */
export interface Hunks {
	readonly text: string;
	readonly insertions: number;
	readonly deletions: number;
}

/** Returns the hunks that turn `before` into `after`; none when they are equal. */
export function hunks( before: string, after: string ): Hunks {
	if ( before === after ) {
		return { text: '', insertions: 0, deletions: 0 };
	}
	const compared = '' === before || '' === after ? undefined : structuredPatch( '', '', before, after, '', '', { context: CONTEXT, timeout: TIMEOUT } );
	const made = compared?.hunks ?? [ replacement( before, after ) ];
	const count = ( sign: string ) => made.reduce( ( sum, { lines } ) => sum + lines.filter( ( line ) => line.startsWith( sign ) ).length, 0 );
	const text = formatPatch( { oldFileName: undefined, newFileName: undefined, oldHeader: undefined, newHeader: undefined, hunks: made }, OMIT_HEADERS );
	return { text, insertions: count( '+' ), deletions: count( '-' ) };
}

/** Returns the hunk that removes all lines and adds all others. */
function replacement( before: string, after: string ): StructuredPatchHunk {
	const [ old, fresh ] = [ signed( '-', before ), signed( '+', after ) ];
	return { oldStart: 1, oldLines: old.count, newStart: 1, newLines: fresh.count, lines: [ ...old.lines, ...fresh.lines ] };
}

function signed( sign: '-' | '+', text: string ): { readonly lines: string[]; readonly count: number } {
	const lines = text.split( '\n' ).map( ( line ) => sign + line );
	if ( '' === text || text.endsWith( '\n' ) ) {
		lines.pop();
		return { lines, count: lines.length };
	}
	return { lines: [ ...lines, '\\ No newline at end of file' ], count: lines.length };
}
