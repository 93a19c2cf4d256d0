/**
 * Line hunks with three lines of context. Only LF ends a line; a last line without LF is marked.
 */
import { concat, key, lines, utf8 } from '../bytes';
import { lineChanges, type Change } from './myers';

/** Number of unchanged lines before and after each change in a hunk. */
const CONTEXT = 3;
const SIGNS = { ' ': utf8( ' ' ), '-': utf8( '-' ), '+': utf8( '+' ) } as const;
const NO_NEWLINE = utf8( '\n\\ No newline at end of file\n' );

/** Hunks of one file, and how many lines they add and remove. */
export interface Hunks {
	readonly bytes: Uint8Array;
	readonly insertions: number;
	readonly deletions: number;
}

/** Returns the hunks that turn `before` into `after`; none when they are equal. */
export function hunks( before: Uint8Array, after: Uint8Array ): Hunks {
	const old = lines( before );
	const fresh = lines( after );
	const known = new Map< string, number >();
	const number = ( line: Uint8Array ) => {
		const name = key( line );
		const found = known.get( name );
		if ( undefined !== found ) {
			return found;
		}
		known.set( name, known.size );
		return known.size - 1;
	};
	const out: Uint8Array[] = [];
	let insertions = 0;
	let deletions = 0;
	const push = ( sign: keyof typeof SIGNS, line: Uint8Array ) => {
		out.push( SIGNS[ sign ], line );
		if ( 0x0a !== line[ line.length - 1 ] ) {
			out.push( NO_NEWLINE );
		}
	};
	for ( const group of groups( lineChanges( Int32Array.from( old, number ), Int32Array.from( fresh, number ) ) ) ) {
		const first = group[ 0 ]!;
		const last = group[ group.length - 1 ]!;
		const oldCount = last.old + last.oldLength - first.old;
		const newCount = last.new + last.newLength - first.new;
		out.push( utf8( `@@ -${ position( first.old, oldCount ) } +${ position( first.new, newCount ) } @@\n` ) );
		for ( const change of group ) {
			if ( 'equal' === change.kind ) {
				old.slice( change.old, change.old + change.oldLength ).forEach( ( line ) => push( ' ', line ) );
				continue;
			}
			old.slice( change.old, change.old + change.oldLength ).forEach( ( line ) => push( '-', line ) );
			fresh.slice( change.new, change.new + change.newLength ).forEach( ( line ) => push( '+', line ) );
			deletions += change.oldLength;
			insertions += change.newLength;
		}
	}
	return { bytes: concat( out ), insertions, deletions };
}

/** Formats the position of a hunk. When it has no lines, its start is the number of the line before it. */
function position( start: number, count: number ): string {
	return `${ 0 === count ? start : start + 1 },${ count }`;
}

/** Splits changes into hunks: more than twice the context without a change separates two of them. */
function groups( changes: readonly Change[] ): Change[][] {
	const out: Change[][] = [];
	let group: Change[] = [];
	changes.forEach( ( change, index ) => {
		if ( 'equal' !== change.kind ) {
			group.push( change );
			return;
		}
		let start = 0;
		let end = change.oldLength;
		if ( 0 === index ) {
			start = Math.max( start, end - CONTEXT );
		}
		if ( index === changes.length - 1 ) {
			end = Math.min( end, start + CONTEXT );
		}
		if ( end - start > 2 * CONTEXT ) {
			group.push( part( change, start, start + CONTEXT ) );
			out.push( group );
			group = [];
			start = end - CONTEXT;
		}
		group.push( part( change, start, end ) );
	} );
	if ( group.some( ( change ) => 'equal' !== change.kind ) ) {
		out.push( group );
	}
	return out;
}

function part( change: Change, start: number, end: number ): Change {
	return { kind: 'equal', old: change.old + start, oldLength: end - start, new: change.new + start, newLength: end - start };
}
